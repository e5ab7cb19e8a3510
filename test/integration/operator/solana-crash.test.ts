import { afterAll, beforeAll, expect, test } from 'vitest'
import { SolanaError } from '../../../src/chains/solana/chain.ts'
import { StakingApiError } from '../../../src/contract/client-error.ts'
import { Halt } from '../../../src/operator/engine/verdict.ts'
import { KubeError, KubeTransportError } from '../../../src/operator/kube/errors.ts'
import { KeyError } from '../../../src/operator/ports.ts'
import { seededRandom } from '../../../src/operator/testing/test-clock.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import {
  AMOUNT,
  type Around,
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
  store = await openStore(await memoryDatabase())
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

/** More of them on demand: FUZZ_SEEDS=500. */
const seeds = Array.from({ length: Number(process.env.FUZZ_SEEDS ?? 3) }, (_, seed) => seed)

test.each(seeds)(
  'three lives among failures of every kind, at the same time, are each lived once (seed %i)',
  { timeout: 240_000 },
  async (seed) => {
    const random = seededRandom(seed)
    const any = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
    const world = createSolanaWorld(parts)
    world.addSigners()
    const { cluster } = world
    const { payer, withdrawer } = parts
    const keys = Array.from({ length: 3 }, () => `team-a/life-${++lives}`)
    for (const key of keys) world.addStake({}, key)
    firstHeight = cluster.ledger.head().height
    const before = { payer: cluster.balance(payer.address), withdrawer: cluster.balance(withdrawer.address) }

    let calm = false
    const around: Around = (point, operator) => {
      if (calm) return
      if (random() < 0.004) return operator.kill()
      const [when = '', call = ''] = point.split(' ')
      if (random() >= 0.03 || (when !== 'before' && when !== 'after')) return
      if (call.startsWith('chain.')) throw new SolanaError(any(['unavailable', 'node-behind']), 'no answer')
      if (call.startsWith('api.')) throw new StakingApiError('no answer', { kind: any(['timeout', 'network']), outcomeUnknown: true })
      if (call.startsWith('keys.')) throw new KeyError('missing', 'the Secret is being replaced')
      if (call.startsWith('stakes.'))
        throw any([new KubeTransportError('TIMEOUT', 'no answer'), new KubeError(500, 'InternalError', 'no leader')])
    }
    const isOver = (key: string) => world.ready(key) && world.status(key).phase === 'Withdrawn'
    /** Two at a time: one of them does not know that it was deposed. */
    const leaders = [world.start(around), world.start(around)]
    for (let round = 0; round < 150 && !keys.every(isOver); round++) {
      calm = round > 60
      if (!calm && random() < 0.2) cluster.node.fate(any([{ kind: 'drop' }, { kind: 'late', blocks: 40 }] as const))
      if (!calm && random() < 0.1) cluster.produce(155)
      if (!calm && random() < 0.1) world.editStatus(() => undefined, any(keys))
      if (!calm && random() < 0.1) world.editStatus(({ transactions: _lost, ...rest }) => rest, any(keys))
      await Promise.all(
        keys.map(async (key) => {
          const at = calm ? 0 : Math.floor(random() * 2)
          await leaders[at]?.visit(key).catch((error: unknown) => {
            if (!isExpected(error)) throw error
          })
          if (leaders[at]?.killed) leaders[at] = world.start(around)
          const wanted = world.stakes.get(key)?.spec.desiredState ?? 'Active'
          if (world.ready(key) && random() < 0.5) world.editSpec({ desiredState: order[order.indexOf(wanted) + 1] ?? 'Withdrawn' }, key)
        }),
      )
      cluster.settle()
      if (random() < 0.3) cluster.nextEpoch()
    }
    let fees = 0n
    for (const key of keys) {
      expect(isOver(key), `seed ${seed}: ${world.explain(key)}`).toBe(true)
      const money = moneyOf(world, world.status(key).stakeAccount ?? '')
      expect(money.paidIn, `seed ${seed}`).toEqual([AMOUNT])
      fees += money.fees
    }
    const paid = 3n * AMOUNT
    expect(cluster.balance(withdrawer.address) - before.withdrawer, `seed ${seed}`).toBe(paid)
    expect(before.payer - cluster.balance(payer.address), `seed ${seed}`).toBe(paid + fees)
  },
)

/** What a visit may end with when something fails around it. */
const isExpected = (error: unknown): boolean =>
  error instanceof Halt || error instanceof KubeError || error instanceof KubeTransportError || (error as Error).message === 'it was ended'
