import { describe, expect, test } from 'vitest'
import { createWorld, KEY } from '../../testing/world.ts'
import { standsBefore } from '../../transactions/owner.ts'
import type { RecordObject } from '../../transactions/store.ts'

/** `spec.adopt` may change as long as nothing was verified: a resource still pays one deposit, of the stake that it names when that is signed. */

/** A world in which two stakes without resources are there to be adopted, and nothing is cheap enough to be paid. */
async function orphans() {
  const world = createWorld()
  world.addSigner()
  const operator = world.start()
  world.chain.state.baseFee = 500n * 10n ** 9n
  const ids: string[] = []
  for (const name of ['gone-1', 'gone-2']) {
    world.addStake(`team-a/${name}`)
    await world.visit(operator, `team-a/${name}`)
    ids.push(world.status(`team-a/${name}`).stakeId ?? '')
    world.stakes.vanish(`team-a/${name}`)
  }
  return { world, operator, first: ids[0] ?? '', second: ids[1] ?? '' }
}
type Orphans = Awaited<ReturnType<typeof orphans>>

describe.each<{ what: string; from: (orphans: Orphans) => string | undefined; to: (orphans: Orphans) => string | undefined }>([
  { what: 'added', from: () => undefined, to: ({ first }) => first },
  { what: 'removed', from: ({ first }) => first, to: () => undefined },
  { what: 'changed', from: ({ first }) => first, to: ({ second }) => second },
  { what: 'changed back', from: ({ second }) => second, to: ({ first }) => first },
])('adopt that is $what while a deposit waits', ({ from, to }) => {
  const adopt = (stakeId: string | undefined) => ({ adopt: stakeId === undefined ? undefined : { stakeId } }) as never

  test('is one deposit, of the stake that is named then', async () => {
    const all = await orphans()
    const { world, operator } = all
    world.addStake(KEY, adopt(from(all)))
    await world.visit(operator, KEY)
    const before = world.status().stakeId
    world.editSpec(adopt(to(all)))
    await world.visit(operator, KEY)
    world.chain.state.baseFee = 10n ** 10n
    await world.settle(operator, [KEY], 12)
    world.assertMoney({ deposits: 1 })
    expect(world.ready()).toBe(true)
    const paid = world.service.stakes().find(({ transaction }) => transaction.status === 'submitted')
    expect(paid?.stakeId).toBe(world.status().stakeId)
    expect(paid?.stakeId).not.toBe(before)
    if (to(all) !== undefined) expect(paid?.stakeId).toBe(to(all))
  })

  test('is the deposit that was sent before, once one was', async () => {
    const all = await orphans()
    const { world, operator } = all
    world.chain.state.baseFee = 10n ** 10n
    world.addStake(KEY, adopt(from(all)))
    await world.visit(operator, KEY)
    const { stakeId, transaction } = world.status()
    expect(transaction?.state).toBe('Broadcast')
    world.editSpec(adopt(to(all)))
    await world.settle(operator, [KEY], 12)
    expect(world.status()).toMatchObject({ stakeId, transaction: { state: 'Confirmed' } })
    world.assertMoney({ deposits: 1 })
  })
})

describe.each<{ what: string; from: (orphans: Orphans) => string | undefined; to: (orphans: Orphans) => string | undefined }>([
  { what: 'added', from: () => undefined, to: ({ first }) => first },
  { what: 'changed', from: ({ first }) => first, to: ({ second }) => second },
  { what: 'removed', from: ({ first }) => first, to: () => undefined },
])('adopt that is $what once a deposit was made, with status lost', ({ from, to }) => {
  test('shows the deposit that the resource has paid, and no other', async () => {
    const all = await orphans()
    const { world, operator } = all
    const adopt = (stakeId: string | undefined) => ({ adopt: stakeId === undefined ? undefined : { stakeId } }) as never
    world.chain.state.baseFee = 10n ** 10n
    world.addStake(KEY, adopt(from(all)))
    await world.settle(operator, [KEY], 12)
    expect(world.ready()).toBe(true)
    const { stakeId, depositData } = world.status()
    world.editStatus(() => undefined)
    world.editSpec(adopt(to(all)))
    const next = world.start()
    for (let look = 0; look < 3; look++) await world.settle(next, [KEY], 3)
    expect(world.status(), JSON.stringify(world.status().conditions)).toMatchObject({ stakeId, depositData })
    expect(world.ready()).toBe(true)
    world.assertMoney({ deposits: 1 })
  })
})

test.each<{ what: string; statuses: [object, object]; first: number | undefined }>([
  { what: 'neither has begun', statuses: [{}, {}], first: undefined },
  { what: 'one has a place', statuses: [{}, { place: 1 }], first: 1 },
  { what: 'both have a place', statuses: [{ place: 2 }, { place: 1 }], first: 0 },
  { what: 'one has an attempt', statuses: [{ place: 2 }, { place: 1, attempts: [{}] }], first: 1 },
  { what: 'one has ended', statuses: [{ attempts: [{}], place: 0 }, { outcome: {} }], first: 1 },
  { what: 'both have ended', statuses: [{ outcome: {} }, { outcome: {} }], first: 0 },
])('of two deposits of one resource, where $what, one stands before the other and never both', ({ statuses, first }) => {
  const [a, b] = statuses.map((status, index) => ({ metadata: { name: `dep-${index}` }, status }) as unknown as RecordObject)
  if (a === undefined || b === undefined) throw new Error('two')
  expect([standsBefore(a, b), standsBefore(b, a)]).toEqual([first === 0, first === 1])
})
