import { expect, test } from 'vitest'
import { DISREGARD_SUBMISSION_ANNOTATION } from '../../../resources/meta.ts'
import { makeStake } from '../../testing/fake-staking-api.ts'
import { KILLED } from '../../testing/mortal.ts'
import { createWorld, hoodi, KEY, type Operator, type World, withdrawalAddress } from '../../testing/world.ts'
import { nameBySpec, transactionName } from '../../transactions/names.ts'

/**
 * A staking API that gives a resource another stake than before, as one whose data was lost and comes back, and that has both in its name. Both are written down and may
 * be signed at once: one deposit is paid.
 */
async function twoStakes(around?: Parameters<World['start']>[0], beforeTheSecond: (world: World) => Promise<void> = async () => {}) {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  const operator = world.start(around)
  world.chain.state.baseFee = 500n * 10n ** 9n
  await world.visit(operator, KEY)
  await beforeTheSecond(world)
  const [first] = world.service.stakes()
  if (first === undefined) throw new Error('no stake was made')
  const { depositData, externalReference = '' } = first
  const asked = {
    network: 'hoodi',
    amountGwei: depositData.amountGwei,
    withdrawalAddress,
    credentialsType: '0x02',
    externalReference,
  } as const
  // Its key comes first by the alphabet, so that its record stands before the other's where both have come as far.
  const second = makeStake(hoodi, asked, 'f'.repeat(32), 500)
  expect(second.depositData.pubkey < depositData.pubkey).toBe(true)
  const { ethereumStake } = world.service.api
  Object.assign(world.service.api, {
    createEthereumStake: async () => structuredClone(second),
    ethereumStake: async (id: string, signal: AbortSignal) => (id === second.stakeId ? structuredClone(second) : ethereumStake(id, signal)),
    submitEthereumStake: async () => structuredClone(second),
  })
  world.editStatus(() => undefined)
  await world.visit(operator, KEY)
  expect(world.records.list().map(({ status }) => status)).toEqual([undefined, undefined])
  const name = transactionName({ purpose: 'Deposit', chainId: hoodi.chainId, pubkey: depositData.pubkey })
  return { world, operator, name }
}

test.each(['first', 'second'])('two stakes of one resource that are signed in one look, the %s late: one deposit', async (late) => {
  const sent = Promise.withResolvers<void>()
  let signed = 0
  const { world, operator } = await twoStakes((point) => {
    if (point === 'after chain.send') {
      // It is mined before the other is even signed.
      world.chain.mine()
      sent.resolve()
    }
    if (point !== 'before keys.signTransaction') return undefined
    signed += 1
    return signed === (late === 'first' ? 1 : 2) ? sent.promise : undefined
  })
  world.chain.state.baseFee = 10n ** 10n
  await world.settle(operator, [KEY], 12)
  expect(signed).toBeGreaterThan(1)
  expect(world.ready()).toBe(true)
  world.assertMoney({ deposits: 1 })
})

test.each([
  { what: 'was sent', isNew: false },
  { what: 'was ever made', isNew: true },
])('two stakes of one resource, and a leader from before who has not heard that the second $what: one deposit', async ({ isNew }) => {
  const sent = Promise.withResolvers<void>()
  let before: Operator | undefined
  const freeze = () => {
    for (const cache of before === undefined ? [] : [before.caches.records, before.caches.places]) cache.frozen = true
  }
  let signed = 0
  const { world, operator } = await twoStakes(
    (point, self) => {
      // The second is sent, and nothing was signed of the first.
      if (point === 'after chain.send') {
        self.kill()
        sent.resolve()
      }
      if (point !== 'before keys.signTransaction') return undefined
      freeze()
      signed += 1
      return signed === 2 ? sent.promise : undefined
    },
    async (made) => {
      before = made.start()
      await before.visitLanes()
      if (isNew) freeze()
    },
  )
  world.chain.state.baseFee = 10n ** 10n
  expect(await operator.visitLanes()).toBe(KILLED)
  expect(world.records.list().map(({ status }) => status?.attempts?.length)).toEqual([undefined, 1])
  expect(before?.caches.records.size).toBe(isNew ? 1 : 2)
  for (let looks = 0; looks < 4; looks++) {
    await before?.visitLanes()
    world.chain.mine()
    world.clock.advance(12_000)
  }
  world.assertMoney({ deposits: 1 })
  await world.settle(world.start(), [KEY], 24)
  expect(world.ready()).toBe(true)
  world.assertMoney({ deposits: 1 })
})

test('two stakes of one resource, of which an earlier version may have paid the first: the second is not paid, before a person says that it was not', async () => {
  const { world, operator, name } = await twoStakes()
  const hash = `0x${'7'.repeat(64)}`
  world.records.edit(name, (record) => ({ ...record, status: { ...record.status, claims: [{ hash }] } }))
  world.chain.state.baseFee = 10n ** 10n
  await world.settle(operator, [KEY], 6)
  expect(world.keys.signed).toEqual([])
  expect(world.stalled(), world.condition('Ready')?.message).toBe('AdoptionMismatch')

  const annotations = { [DISREGARD_SUBMISSION_ANNOTATION]: hash }
  world.records.edit(name, (record) => ({ ...record, metadata: { ...record.metadata, annotations } }))
  await world.settle(operator, [KEY], 12)
  world.assertMoney({ deposits: 1 })
})

test.each([
  { what: 'was reverted', outcome: { is: 'Reverted' as const, nonce: 9, hash: `0x${'7'.repeat(64)}`, blockNumber: 1 } },
  { what: 'was never signed', outcome: undefined },
])('a deleted resource of two stakes, of which one $what and the other may land, stays', async ({ outcome }) => {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  await world.visit(world.start(), KEY)
  const record = world.record()
  if (record === undefined) throw new Error('no record was made')
  const { spec, status } = record
  expect(status?.attempts).toHaveLength(1)
  // The one that is over comes first.
  const other = { ...spec, subject: world.validator(7) }
  world.records.vanish(record.metadata.name)
  world.records.create({
    metadata: { name: nameBySpec(other) },
    spec: other,
    ...(outcome === undefined ? {} : { status: { state: 'Reverted', outcome } }),
  })
  world.records.create({ metadata: { name: record.metadata.name }, spec, ...(status === undefined ? {} : { status }) })
  world.remove(KEY)
  const operator = world.start()
  for (let visits = 0; visits < 3; visits++) await operator.visit(KEY)
  expect(world.object(KEY)).toBeDefined()
  expect(world.condition('Ready')?.message).toContain('may still land')
})
