import { describe, expect, test, vi } from 'vitest'
import { lowerCase } from '../../lib/chain-types.ts'
import { CONFIRM_DELETE_ANNOTATION, RECORD_FINALIZER } from '../../resources/meta.ts'
import { KubeError } from '../kube/errors.ts'
import { addressOf, createWorld, EXIT, hoodi, KEY, type Operator, WITHDRAWAL, type World } from '../testing/world.ts'
import { laneKey, placeName } from './names.ts'

/** How records of the log end: by themselves long after their resource, by hand as soon as nothing hangs on them, and never while something does. */

// Signatures are made for real, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 })

const RETENTION = 30 * 86_400_000
/** When a lane is next looked at for what may go. */
const SOON = 600_000
const lane = laneKey({ chainId: hoodi.chainId, address: addressOf(0) })
const look = (operator: Operator) => operator.reconcile('records', lane)
/** As long as nothing else would have a lane looked at. */
async function pass(world: World, operator: Operator, ms: number): Promise<void> {
  world.clock.advance(ms)
  await look(operator)
}
const nameOf = (key: string): string => key.replace(/^[a-z]+:/, '')
const recordName = (world: World, key: string): string => world.record(key)?.metadata.name ?? ''

function worldOf(keys: readonly string[], options: Parameters<typeof createWorld>[0] = {}): World {
  const world = createWorld(options)
  world.addSigner()
  for (const key of keys)
    if (key === EXIT) world.addExit()
    else if (key === WITHDRAWAL) world.addWithdrawal()
    else world.addStake(key)
  return world
}
async function settled(world: World, keys: readonly string[]): Promise<Operator> {
  const operator = world.start()
  await world.settle(operator, keys, 24)
  for (const key of keys) expect(world.ready(key), JSON.stringify(world.condition('Ready', key))).toBe(true)
  return operator
}
async function deleted(world: World, operator: Operator, key: string): Promise<void> {
  world.remove(key)
  await world.visit(operator, key)
  expect(world.object(key)).toBeUndefined()
}

test('places go as fast as a busy lane makes them, and the highest stays', async () => {
  const world = createWorld()
  world.addSigner('signer-1', {}, { sharedKey: true })
  const at = { chainId: hoodi.chainId, address: addressOf(0) }
  for (let nonce = 0; nonce < 130; nonce++) {
    world.chain.mineForeign({ from: addressOf(0) })
    const transaction = { name: `gone-${nonce}`, uid: `uid-${nonce}`, generation: 0 }
    world.places.create({ metadata: { name: placeName(at, nonce) }, spec: { ...at, address: lowerCase(at.address), nonce, transaction } })
  }
  world.addStake()
  const operator = await settled(world, [KEY])
  for (let n = 0; n < 3; n++) await pass(world, operator, 31_000)
  expect(world.places.list().map(({ spec }) => spec.nonce)).toEqual([130])
})

describe.each([EXIT, WITHDRAWAL])('the record of %s', (key) => {
  test('goes thirty days after its resource, and not before', async () => {
    const world = worldOf([key])
    const operator = await settled(world, [key])
    await deleted(world, operator, key)
    for (let days = 0; days < 30; days++) await pass(world, operator, 86_400_000)
    expect(world.record(key)?.status?.outcome?.is).toBe('Landed')
    await pass(world, operator, 2 * 86_400_000)
    expect(world.record(key)).toBeUndefined()
  })

  test('stays while its resource is there, however long', async () => {
    const world = worldOf([key])
    const operator = await settled(world, [key])
    for (let times = 0; times < 3; times++) await pass(world, operator, RETENTION)
    expect(world.record(key)?.status).toMatchObject({ outcome: { is: 'Landed' } })
    expect(world.record(key)?.status?.unclaimedSince).toBeUndefined()
    // Whoever writes that it never was asked for, is shown what was done, and nothing is asked for again.
    world.editRequestStatus(() => undefined, key)
    await world.settle(operator, [key])
    expect(world.ready(key)).toBe(true)
    expect(world.chain.requests()).toHaveLength(1)
  })

  test('stays when its resource comes back, as from a backup', async () => {
    const world = worldOf([key])
    const operator = await settled(world, [key])
    const { metadata, ...rest } = world.object(key) as NonNullable<ReturnType<World['object']>>
    await deleted(world, operator, key)
    await pass(world, operator, SOON)
    expect(world.record(key)?.status?.unclaimedSince).toBeDefined()
    const { resourceVersion: _rv, deletionTimestamp: _gone, ...kept } = metadata
    const collection = key === EXIT ? world.exits : world.withdrawals
    collection.create({ ...rest, metadata: { ...kept, uid: 'another-uid' } } as never)
    await pass(world, operator, RETENTION)
    expect(world.record(key)?.status?.unclaimedSince).toBeUndefined()
    await pass(world, operator, RETENTION)
    await world.settle(operator, [key])
    expect(world.ready(key)).toBe(true)
    expect(world.chain.requests()).toHaveLength(1)
  })

  test('stays while a configured node is silent', async () => {
    const world = worldOf([key], { nodes: 2 })
    const operator = await settled(world, [key])
    await deleted(world, operator, key)
    await pass(world, operator, SOON)
    const [, second] = world.chain.nodes
    if (second === undefined) throw new Error('there is one node')
    second.silent = true
    await pass(world, operator, 2 * RETENTION)
    expect(world.record(key)).toBeDefined()
    second.silent = false
    await pass(world, operator, RETENTION)
    expect(world.record(key)).toBeUndefined()
  })

  test('goes as well where nothing was ever signed for it', async () => {
    const world = worldOf([key])
    world.chain.state.requestFee = 10n ** 18n
    const operator = world.start()
    await world.visit(operator, key)
    expect(world.record(key)).toBeDefined()
    await deleted(world, operator, key)
    await pass(world, operator, SOON)
    await pass(world, operator, RETENTION)
    expect(world.record(key)).toBeUndefined()
    expect(world.keys.signed).toEqual([])
  })
})

test('an exit that was dropped is kept for the resource that had its answer', async () => {
  const world = worldOf([EXIT])
  let first: string | undefined
  world.requests.state.consensus = (_request, hash) => {
    first ??= hash
    return hash === first ? { status: 'dropped', reason: 'too-young: x' } : { status: 'accepted' }
  }
  const operator = world.start()
  await world.settle(operator, [EXIT])
  world.addExit('exit:team-a/exit-2')
  await world.settle(operator, ['exit:team-a/exit-2'], 24)
  expect(world.ready('exit:team-a/exit-2')).toBe(true)
  await deleted(world, operator, 'exit:team-a/exit-2')
  await pass(world, operator, RETENTION)
  await pass(world, operator, RETENTION)
  expect(world.records.list()).toHaveLength(1)
  await deleted(world, operator, EXIT)
  await pass(world, operator, RETENTION)
  await pass(world, operator, RETENTION)
  expect(world.records.list()).toEqual([])
})

test("a deposit's record stays for good, and of its lane the highest place", async () => {
  const keys = [KEY, 'team-a/stake-2']
  const world = worldOf(keys)
  const operator = await settled(world, keys)
  for (const key of keys) world.stakes.vanish(key)
  for (let times = 0; times < 3; times++) await pass(world, operator, RETENTION)
  expect(world.records.list()).toHaveLength(2)
  expect(world.places.list().map(({ spec }) => spec.nonce)).toEqual([1])
})

test('a lane in which nothing may go is not looked at again', async () => {
  const world = worldOf([KEY])
  const operator = await settled(world, [KEY])
  expect(await look(operator)).toEqual({ kind: 'done' })
})

describe('somebody deletes the records by hand', () => {
  const all = [KEY, EXIT, WITHDRAWAL]

  test.each(all)('%s: while it is in flight its record stays, says why, and is followed to its end', async (key) => {
    const world = worldOf([key])
    const operator = world.start()
    await world.visit(operator, key)
    expect(world.record(key)?.metadata.finalizers).toEqual([RECORD_FINALIZER])
    world.records.remove(recordName(world, key))
    await look(operator)
    expect(world.record(key)?.status?.held).toContain(`${nameOf(key)} is there, and this is the only record`)
    await world.settle(operator, [key], 24)
    expect(world.ready(key)).toBe(true)
    expect(world.record(key)?.status?.outcome?.is).toBe('Landed')
    expect(world.chain.violations).toEqual([])
  })

  test.each(all)('%s: once it is settled its record goes with its resource', async (key) => {
    const world = worldOf([key])
    const operator = await settled(world, [key])
    world.records.remove(recordName(world, key))
    await look(operator)
    expect(world.record(key)).toBeDefined()
    if (key === KEY) world.annotate({ [CONFIRM_DELETE_ANNOTATION]: 'stake-1' })
    await deleted(world, operator, key)
    expect(await look(operator)).toMatchObject({ kind: 'done' })
    expect(world.record(key)).toBeUndefined()
  })

  test.each(all)('%s: its resource was taken away by force, and a transaction of it may land', async (key) => {
    const world = worldOf([key], { nodes: 2 })
    const operator = world.start()
    await world.visit(operator, key)
    world.records.remove(recordName(world, key))
    const collection = key === KEY ? world.stakes : key === EXIT ? world.exits : world.withdrawals
    collection.vanish(nameOf(key))
    await look(operator)
    expect(world.record(key)?.status?.held).toContain('may still land under nonce 0')
    for (let blocks = 0; blocks < 3; blocks++) {
      world.chain.mine()
      await pass(world, operator, 60_000)
    }
    expect(world.records.list()).toEqual([])
  })

  test('the places are deleted too, and none can be made while their definition goes: what was sent is followed to its end', async () => {
    const world = worldOf([KEY])
    let isGoing = false
    const operator = world.start((point) => {
      if (isGoing && point === 'before signernonces.create') throw new KubeError(405, 'MethodNotAllowed', 'the definition is terminating')
    })
    await world.visit(operator, KEY)
    isGoing = true
    world.places.vanish(world.places.list()[0]?.metadata.name ?? '')
    world.addStake('team-a/stake-2')
    await world.settle(operator, [KEY])
    expect(world.ready()).toBe(true)
    expect(world.chain.deposits()).toHaveLength(1)
    isGoing = false
    await world.settle(operator, ['team-a/stake-2'])
    expect(world.ready('team-a/stake-2')).toBe(true)
    expect(world.chain.violations).toEqual([])
  })

  test('a network that is not configured any more proves nothing: it says what a person can do', async () => {
    const world = worldOf([KEY])
    const operator = await settled(world, [KEY])
    world.records.remove(recordName(world, KEY))
    world.networks.clear()
    await look(operator)
    expect(world.record()?.status?.held).toContain(RECORD_FINALIZER)
  })
})

describe('what its state says of a record that was never sent', () => {
  /** As the definition has it of one that nobody has written yet. */
  const stateOf = (record: { readonly status?: { readonly state?: string | undefined } } | undefined) =>
    record && (record.status?.state ?? 'Waiting')
  /** A cap that no price is under: the record is made, and nothing is signed. */
  async function waiting(key: string): Promise<{ world: World; operator: Operator }> {
    const world = createWorld()
    world.addSigner()
    if (key === EXIT) world.addExit(key, { maxRequestFeeGwei: '0' })
    else world.addStake(key, { maxFeePerGasGwei: '0.000000001' })
    const operator = world.start()
    await world.settle(operator, [key], 6)
    await look(operator)
    expect(stateOf(world.record(key))).toBe('Waiting')
    return { world, operator }
  }

  test.each([KEY, EXIT])(
    '%s: Waiting while somebody waits for it, Unclaimed once its resource is gone, and Waiting when it is back',
    async (key) => {
      const { world, operator } = await waiting(key)
      const name = recordName(world, key)
      const record = () => world.records.list().find(({ metadata }) => metadata.name === name)
      const { metadata, ...rest } = world.object(key) as NonNullable<ReturnType<World['object']>>
      world.remove(key)
      await world.visit(operator, key)
      expect(world.object(key)).toBeUndefined()
      await look(operator)
      expect(record()?.status?.state).toBe('Unclaimed')
      const { resourceVersion } = record()?.metadata ?? {}
      for (let times = 0; times < 3; times++) await look(operator)
      expect(record()?.metadata.resourceVersion).toBe(resourceVersion)
      const { resourceVersion: _rv, deletionTimestamp: _gone, ...kept } = metadata
      const collection = key === EXIT ? world.exits : world.stakes
      collection.create({ ...rest, metadata: { ...kept, uid: 'another-uid' } } as never)
      await look(operator)
      expect(stateOf(record())).toBe('Waiting')
      expect(world.chain.deposits()).toHaveLength(0)
    },
  )
})

test('without limits nothing counts, though the chain’s clock is ahead of ours', async () => {
  const world = worldOf([EXIT])
  const operator = await settled(world, [EXIT])
  await deleted(world, operator, EXIT)
  // As of a chain whose blocks are of tomorrow.
  world.clock.advance(-86_400_000)
  world.records.remove(recordName(world, EXIT))
  await look(operator)
  expect(world.record(EXIT)?.status?.held ?? '').not.toContain('limit')
})
