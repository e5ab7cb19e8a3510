import { describe, expect, test } from 'vitest'
import type { SignerLimit } from '../../../resources/signer-limits.ts'
import { type StakingTransaction, stakingTransaction } from '../../../resources/staking-transaction.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { createSolanaWorld, KEY, type SolanaOperator, type SolanaWorld } from '../../testing/solana-world.ts'

/** Rolling limits of whoever pays for Solana stakes: there are no places, so that an attempt which is written down is the claim. */

const HOUR = 3_600_000
const DAY = 24 * HOUR
const limit = (change: Partial<SignerLimit> = {}): SignerLimit => ({ window: '24h', per: 'Signer', ...change })
const keys = ['team-a/stake-1', 'team-a/stake-2', 'team-a/stake-3']

function worldOf(limits: readonly SignerLimit[]): SolanaWorld {
  const world = createSolanaWorld()
  world.addSigners()
  world.editPolicy({ limits })
  for (const key of keys) {
    world.addStake({}, key)
    world.clock.advance(1_000)
  }
  return world
}
const reasonOf = (world: SolanaWorld, key: string) => world.condition('Ready', key)?.reason
const waiting = (world: SolanaWorld) => keys.filter((key) => reasonOf(world, key) === 'LimitReached')
const paid = (world: SolanaWorld): number => world.cluster.landed().filter(({ failure }) => failure === undefined).length
async function rounds(world: SolanaWorld, operator: SolanaOperator, count: number): Promise<void> {
  for (let round = 0; round < count; round++) {
    for (const key of keys) await world.visit(operator, key)
    world.cluster.settle()
    world.clock.advance(10_000)
  }
}

test('what is over the limit waits, and goes on as the window frees', async () => {
  const world = worldOf([limit({ maxTotalSol: '10' })])
  const operator = world.start()
  await rounds(world, operator, 4)
  expect(paid(world)).toBe(2)
  expect(waiting(world)).toEqual(keys.slice(2))
  expect(world.condition('Ready', keys[2])?.message).toMatch(
    /^StakingSigner payer may sign 10 SOL in 24h \(spec\.policy\.limits\)\. There is no room for this one now\. It goes on at 2030-01-02T00:0/,
  )
  world.clock.advance(23 * HOUR)
  await rounds(world, world.start(), 2)
  expect(paid(world)).toBe(2)
  world.clock.advance(HOUR)
  await rounds(world, world.start(), 3)
  expect(paid(world)).toBe(3)
})

test('who waits behind an earlier one is told for what that waits, and until when', async () => {
  const world = createSolanaWorld()
  world.addSigners()
  // The first leaves room for three more; of the second that one alone has had a part.
  world.editPolicy({ limits: [limit({ window: '1h', maxCount: 10 }), limit({ maxTotalSol: '12' })] })
  const [large = '', ...small] = keys
  world.addStake({}, 'team-a/stake-0')
  const operator = world.start()
  await world.settle(operator, { key: 'team-a/stake-0' })
  for (const [index, key] of [large, ...small].entries()) {
    world.addStake({ amountLamports: index === 0 ? '10000000000' : '2000000000' }, key)
    await world.visit(operator, key)
    world.clock.advance(1_000)
  }
  await rounds(world, operator, 2)
  expect(paid(world)).toBe(1)
  expect(waiting(world)).toEqual(keys)
  const until = /It goes on at (\S+)\.$/.exec(world.condition('Ready', large)?.message ?? '')?.[1]
  expect(until).toMatch(/^2030-01-02T00:0/)
  for (const key of small)
    expect(world.condition('Ready', key)?.message).toBe(
      `StakingSigner payer may sign 12 SOL in 24h (spec.policy.limits). An earlier one of namespace team-a waits for room, and has its turn first. It goes on at ${until} at the earliest.`,
    )
  // There is room, and the earlier one has not been looked at since.
  world.clock.advance(25 * HOUR)
  await world.visit(operator, small[0])
  expect(world.condition('Ready', small[0])?.message).toMatch(
    /An earlier one of namespace team-a waits for room, and has its turn first\. It goes on right after that\.$/,
  )
  await rounds(world, operator, 4)
  expect(paid(world)).toBe(3)
})

describe('a clock that is wrong', () => {
  test('set forward by two days opens nothing: the cluster says otherwise', async () => {
    const world = worldOf([limit({ maxCount: 1 })])
    await rounds(world, world.start(), 3)
    expect(paid(world)).toBe(1)
    // The cluster's time goes on as it did: only who leads now is wrong.
    world.clock.advance(2 * DAY)
    world.cluster.state.timeBehindMs = 2 * DAY
    await rounds(world, world.start(), 3)
    expect(paid(world)).toBe(1)
    expect(waiting(world)).toHaveLength(2)
    world.cluster.state.timeBehindMs = DAY
    await rounds(world, world.start(), 3)
    expect(paid(world)).toBe(2)
  })

  test('far ahead lets no record go that somebody deletes: by the cluster’s time it counts', async () => {
    const world = createSolanaWorld()
    world.addSigners()
    world.editPolicy({ limits: [limit({ window: '60d', maxCount: 1 })] })
    world.addStake()
    const operator = world.start()
    await world.settle(operator)
    for (const desiredState of ['Inactive', 'Withdrawn'] as const) {
      world.editSpec({ desiredState })
      await world.settle(operator)
    }
    const records = world.collection<StakingTransaction & KubeObject>(stakingTransaction)
    const paying = () => records.list().filter(({ spec }) => spec.purpose === 'SolanaStake')
    world.stakes.remove(KEY)
    await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeUndefined()
    world.cluster.expire()
    world.cluster.settle()
    world.clock.advance(100 * DAY)
    world.cluster.state.timeBehindMs = 100 * DAY
    for (const { metadata } of paying()) records.remove(metadata.name)
    for (const { metadata } of paying()) await operator.visitRecord(metadata.name)
    expect(paying().map(({ status }) => status?.held)).toEqual([
      expect.stringMatching(/^A limit of StakingSigner payer .* counts it by the chain's own time/),
    ])
    world.cluster.state.timeBehindMs = 0
    for (const { metadata } of paying()) await operator.visitRecord(metadata.name)
    expect(paying()).toEqual([])
  })

  test('a day behind when it was signed, and put right afterwards, opens nothing either', async () => {
    const world = worldOf([limit({ maxCount: 1 })])
    // The cluster is a day ahead of whoever signs.
    world.cluster.state.timeBehindMs = -DAY
    await rounds(world, world.start(), 3)
    expect(paid(world)).toBe(1)
    world.clock.advance(DAY)
    world.cluster.state.timeBehindMs = 0
    await rounds(world, world.start(), 3)
    expect(paid(world)).toBe(1)
  })

  test('a cluster that shows no time it could have lets nothing go under a limit', async () => {
    const world = worldOf([limit({ maxCount: 3 })])
    world.cluster.state.timeBehindMs = -400_000_000_000_000
    await rounds(world, world.start(), 3)
    expect(paid(world)).toBe(0)
  })
})

describe('with two leaders', () => {
  test('what one has written down and not sent counts for the next', async () => {
    const world = worldOf([limit({ maxCount: 1 })])
    const dying = world.start((point, self) => {
      if (point.startsWith('before send')) self.kill()
    })
    await world.visit(dying, keys[0])
    const operator = world.start()
    await world.visit(operator, keys[1])
    await world.visit(operator, keys[2])
    expect(waiting(world)).toEqual(keys.slice(1))
    await rounds(world, operator, 4)
    expect(paid(world)).toBe(1)
  })

  test('one whose watch of the log is silent sends nothing beside what the other has written down', async () => {
    const world = worldOf([limit({ maxCount: 1 })])
    const [first, second] = [world.start(), world.start()]
    // Both have read the log before anything was in it.
    second.caches.log.frozen = true
    await second.visitSigner('payer')
    await world.visit(first, keys[0])
    await world.visit(second, keys[1])
    world.cluster.settle()
    expect(paid(world)).toBe(1)
    expect(reasonOf(world, keys[1] ?? '')).toBe('LimitReached')
    // What was written down and not sent expires, and is made when there is room.
    world.cluster.expire()
    world.clock.advance(25 * HOUR)
    await rounds(world, world.start(), 4)
    expect(paid(world)).toBeGreaterThanOrEqual(2)
  })
})

test('an attempt that has expired counts no more; made again, it counts once', async () => {
  const world = worldOf([limit({ maxCount: 1 })])
  world.cluster.state.forgetful = true
  const operator = world.start()
  await world.visit(operator, keys[0])
  await world.visit(operator, keys[1])
  expect(reasonOf(world, keys[1] ?? '')).toBe('LimitReached')
  world.cluster.expire()
  world.cluster.state.forgetful = false
  await rounds(world, operator, 4)
  expect(paid(world)).toBe(1)
  expect(waiting(world)).toHaveLength(2)
})
