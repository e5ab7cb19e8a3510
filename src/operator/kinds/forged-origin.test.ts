import { expect, test } from 'vitest'
import { ORIGIN_ANNOTATION } from '../../resources/meta.ts'
import { readyStake, stakeWorld } from '../testing/solana-stories.ts'
import { KEY as SOLANA } from '../testing/solana-world.ts'
import { createWorld, EXIT, KEY, WITHDRAWAL } from '../testing/world.ts'
import { nameBySpec } from '../transactions/names.ts'

/** Somebody changes the origin of a resource and deletes it: it stays as long as what was signed for it may land, whoever it says that it is. */

const origins = [
  { what: 'another', origin: (place: string) => `0000-other/${place}` },
  { what: 'another (restored before)', restored: 'restored', origin: (place: string) => `0000-other/${place}` },
  { what: 'no', origin: () => undefined },
]
const annotated = (origin: string | undefined) => (origin === undefined ? {} : { [ORIGIN_ANNOTATION]: origin })

test.each([KEY, EXIT, WITHDRAWAL].flatMap((key) => origins.map((origin) => ({ key, ...origin }))))(
  '$key in flight, deleted, with $what origin',
  async ({ key, restored, origin }) => {
    const world = createWorld()
    world.addSigner()
    if (key === EXIT) world.addExit()
    else if (key === WITHDRAWAL) world.addWithdrawal()
    else world.addStake()
    const operator = world.start()
    await world.visit(operator, key)
    expect(world.chain.everSent()).toHaveLength(1)
    const place = key.replace(/^.*:/, '')
    world.editRequest(key, (one: { metadata: { uid?: string } }) => ({
      ...one,
      metadata: { ...one.metadata, uid: restored ?? one.metadata.uid, annotations: annotated(origin(place)) },
      status: {},
    }))
    world.remove(key)
    await world.visit(world.start(), key)
    expect(world.object(key)).toBeDefined()
    world.chain.mine(4)
    await world.visit(world.start(), key)
    expect(world.chain.everSent().filter(({ data }) => data !== '0x')).toHaveLength(1)
  },
)

test.each(origins)('a SolanaStake in flight, deleted, with $what origin', async ({ restored, origin }) => {
  const world = stakeWorld()
  await world.visit(world.start())
  world.stakes.edit(SOLANA, (one) => ({
    ...one,
    metadata: { ...one.metadata, uid: restored ?? one.metadata.uid, annotations: annotated(origin(SOLANA)) },
    status: {},
  }))
  world.stakes.remove(SOLANA)
  await world.visit(world.start())
  expect(world.stakes.get(SOLANA)).toBeDefined()
})

test.each(origins)('a paid EthereumStake, deleted, with $what origin and no status', async ({ restored, origin }) => {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  await world.settle(world.start())
  expect(world.ready()).toBe(true)
  world.stakes.edit(KEY, (one) => ({
    ...one,
    metadata: { ...one.metadata, uid: restored ?? one.metadata.uid, annotations: annotated(origin(KEY)) },
    status: {},
  }))
  world.remove(KEY)
  await world.visit(world.start(), KEY)
  expect(world.object(KEY)).toBeDefined()
})

test.each(origins)('a paid SolanaStake, deleted, with $what origin and no status', async ({ restored, origin }) => {
  const { world } = await readyStake()
  world.stakes.edit(SOLANA, (one) => ({
    ...one,
    metadata: { ...one.metadata, uid: restored ?? one.metadata.uid, annotations: annotated(origin(SOLANA)) },
    status: {},
  }))
  world.stakes.remove(SOLANA)
  await world.visit(world.start())
  expect(world.stakes.get(SOLANA)).toBeDefined()
})

test('an exit in flight, deleted, that says it is a copy, where an earlier one of its name has landed', async () => {
  const world = createWorld()
  world.addSigner()
  world.addExit()
  await world.visit(world.start(), EXIT)
  const record = world.record(EXIT)
  if (record === undefined) throw new Error('no record was made')
  const { spec, status, metadata } = record
  const earlier = { ...spec, subject: world.validator(7), owner: { ...spec.owner, originUid: 'earlier' } }
  const outcome = { is: 'Landed' as const, nonce: 9, hash: `0x${'7'.repeat(64)}`, blockNumber: 1 }
  world.records.vanish(metadata.name)
  world.records.create({ metadata: { name: nameBySpec(earlier) }, spec: earlier, status: { state: 'Landed', outcome } })
  world.records.create({ metadata: { name: metadata.name }, spec, ...(status === undefined ? {} : { status }) })
  world.editRequest(EXIT, (one) => ({
    ...one,
    metadata: { ...one.metadata, annotations: annotated('copy/of/another') },
    status: { ...one.status, consensus: { status: 'Accepted' } },
  }))
  world.remove(EXIT)
  await world.start().visit(EXIT)
  expect(world.object(EXIT)).toBeDefined()
})
