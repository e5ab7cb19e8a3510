import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import {
  AMOUNT,
  createSolanaWorld,
  FEE,
  type SolanaOperator,
  type SolanaParts,
  type SolanaWorld,
  startSolanaParts,
} from './solana-world.ts'

let store: Store
let parts: SolanaParts
beforeAll(async () => {
  store = await openStore({ kind: 'embedded', dataDir: 'memory://' })
  parts = await startSolanaParts(store)
})
afterAll(async () => {
  await parts?.close()
  await store?.close()
})

let lives = 0
function newWorld(): { readonly world: SolanaWorld; readonly key: string } {
  const world = createSolanaWorld(parts)
  world.addSigners()
  const key = `team-a/life-${++lives}`
  world.addStake({}, key)
  return { world, key }
}

const order = ['Active', 'Inactive', 'Withdrawn'] as const
/** From its creation to its withdrawal; what the spec says next is set as soon as the last is reached. */
async function live(world: SolanaWorld, operator: SolanaOperator, key: string): Promise<void> {
  for (const desiredState of order) {
    const { desiredState: now = 'Active' } = world.stakes.get(key)?.spec ?? {}
    if (order.indexOf(now) > order.indexOf(desiredState)) continue
    world.editSpec({ desiredState }, key)
    await world.settle(operator, { key })
    if (operator.killed) return
    expect(world.ready(key), world.explain(key)).toBe(true)
  }
}

/** Lamports that came into an account, one by one, and the fees that its transactions have cost. */
function moneyOf(world: SolanaWorld, account: string) {
  const { ledger } = world.cluster
  const transactions = Array.from({ length: ledger.head().height - firstHeight }, (_, index) =>
    ledger.block(firstHeight + 1 + index),
  ).flatMap((block) => (block?.transactions ?? []).filter(({ accounts }) => accounts.includes(account)))
  const paidIn = transactions.flatMap(({ accounts, preBalances, postBalances }) => {
    const at = accounts.indexOf(account)
    const gained = (postBalances[at] ?? 0n) - (preBalances[at] ?? 0n)
    return gained > 0n ? [gained] : []
  })
  return { paidIn, fees: transactions.reduce((sum, { fee }) => sum + fee, 0n) }
}

/**
 * Where the world is about to be changed, or has just been. Reading, verifying and signing change nothing: to end there is to end at the point
 * before. What follows one change is what precedes the next.
 */
const changes = /^(before (stakes\.mergePatch|api\.(create|renew|refresh|submit))|(before|after) chain\.sendTransaction)/
let firstHeight = 0

test('ended at every point of its whole life and started again, the operator has funded one account once, and all came back but the fees', async () => {
  const counting = newWorld()
  const points: string[] = []
  await live(
    counting.world,
    counting.world.start((point) => void points.push(point)),
    counting.key,
  )
  const fatal = points.flatMap((point, index) => (changes.test(point) ? [index] : []))
  expect(points.length).toBeGreaterThan(250)
  expect(fatal.length).toBeGreaterThan(25)
  expect(new Set(fatal.map((index) => points[index])).size).toBe(8)

  for (const last of fatal) {
    const { world, key } = newWorld()
    const { payer, withdrawer } = parts
    const { cluster } = world
    firstHeight = cluster.ledger.head().height
    const before = { payer: cluster.balance(payer.address), withdrawer: cluster.balance(withdrawer.address) }
    let passed = 0
    const doomed = world.start((_point, operator) => {
      if (passed++ === last) operator.kill()
    })
    const where = `ended at ${points[last]}, point ${last}`
    await live(world, doomed, key)
    expect(doomed.killed, where).toBe(true)
    await live(world, world.start(), key)
    const { paidIn, fees } = moneyOf(world, world.status(key).stakeAccount ?? '')
    expect(paidIn, where).toEqual([AMOUNT])
    expect(cluster.balance(withdrawer.address) - before.withdrawer, where).toBe(AMOUNT)
    expect(before.payer - cluster.balance(payer.address), where).toBe(AMOUNT + fees)
    expect(fees, where).toBe(4n * FEE)
  }
}, 300_000)
