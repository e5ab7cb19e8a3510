import { describe, expect, test, vi } from 'vitest'
import { LANE_FINALIZER } from '../../resources/meta.ts'
import type { Ledger } from '../../resources/staking-signer.ts'
import { KubeError } from '../kube/errors.ts'
import { addressOf, createWorld, EXIT, KEY, type Operator, WITHDRAWAL, type World } from '../testing/world.ts'
import { hashIn, pubkeyOf } from './ethereum-texts.ts'

/**
 * A new leader has watched all along, as far as its watches were heard: its caches may show nothing of what the leader before it did. What isn't in them
 * proves nothing.
 */

// Signatures are made for real, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 })

const said = (world: World, key: string) => JSON.stringify([world.condition('Ready', key), world.record(key)?.status])
const calls = (world: World) => world.chain.everSent().filter(({ data }) => data !== '0x')

/** An instance that waits to lead, and whose watches of the log have gone silent. */
function standby(world: World, ...given: Parameters<World['start']>): Operator {
  const operator = world.start(...given)
  operator.caches.records.frozen = true
  operator.caches.places.frozen = true
  return operator
}
function worldOf(key: string): World {
  const world = createWorld()
  world.addSigner()
  if (key === EXIT) world.addExit()
  else if (key === WITHDRAWAL) world.addWithdrawal()
  else world.addStake()
  return world
}

describe('what an earlier version has signed for a stake that is gone, and another adopts by another signer', () => {
  const heir = 'team-a/heir'

  /** The deposit is in nobody's pool, and the staking API was not told of it: nothing but the ledger of signer-1 knows it. */
  async function abandoned(): Promise<{ readonly world: World; readonly mineIt: () => void }> {
    const world = worldOf(KEY)
    world.addSigner('signer-2', {}, {}, 1)
    const dying = world.start((point, self) => {
      if (point === 'before api.submitEthereumStake') self.kill()
    })
    await world.visit(dying, KEY)
    const [signed] = world.keys.signed
    const [record] = world.records.list()
    const [attempt] = record?.status?.attempts ?? []
    if (signed === undefined || record === undefined || attempt === undefined) throw new Error('nothing was signed')
    await world.chain.chain.send(signed.raw, 'all', new AbortController().signal)
    world.chain.forget()
    const { owner, apiId } = record.spec
    const inFlight: NonNullable<Ledger['inFlight']>[number] = {
      ...{
        origin: owner.originUid,
        kind: owner.kind,
        namespace: owner.namespace,
        name: owner.name,
        step: 'stake',
        pubkey: pubkeyOf(record),
      },
      ...{ nonce: 0, valueWei: attempt.valueWei ?? '', gas: attempt.gas ?? '', hash: hashIn(attempt), recordedAt: attempt.at },
      ...{ maxFeePerGasWei: attempt.maxFeePerGasWei ?? '', maxPriorityFeePerGasWei: attempt.maxPriorityFeePerGasWei ?? '' },
    }
    world.loseLog()
    world.stakes.vanish(KEY)
    const ledgers = [{ network: 'hoodi', nextNonce: 1, inFlight: [inFlight] }]
    world.signers.edit('signer-1', (signer) => ({ ...signer, status: { ...signer.status, ledgers } }))
    world.addStake(heir, { adopt: { stakeId: apiId ?? '' }, signer: 'signer-2' })
    return { world, mineIt: () => world.chain.mine(1, (versions) => versions.find(({ valueWei }) => valueWei > 0n)) }
  }

  test('a leader whose caches show nothing of it waits for its nonce, and pays nothing beside it', async () => {
    const { world, mineIt } = await abandoned()
    const next = standby(world)
    await world.start().visitSigner('signer-1')
    expect(world.signers.get('signer-1')?.status?.ledgers).toBeUndefined()
    expect(next.caches.places.size).toBe(0)
    for (let poll = 0; poll < 6; poll++) {
      await world.visit(next, heir)
      world.clock.advance(12_000)
      expect(calls(world), said(world, heir)).toHaveLength(1)
    }
    expect(world.condition('Ready', heir)?.reason).toBe('WaitingForNonce')
    mineIt()
    await world.settle(next, [heir], 12)
    expect(calls(world), said(world, heir)).toHaveLength(1)
    world.assertMoney({ deposits: 1 })
  })

  test('a leader that is at work already while another takes it over looks past its caches once the ledger is gone', async () => {
    const { world } = await abandoned()
    const next = standby(world)
    // It has caught up when there was nothing to see yet, and waits for the ledger.
    await world.visit(next, heir)
    await world.start().visitSigner('signer-1')
    for (let poll = 0; poll < 6; poll++) {
      await world.visit(next, heir)
      world.clock.advance(12_000)
      expect(calls(world), said(world, heir)).toHaveLength(1)
    }
    expect(world.condition('Ready', heir)?.reason).toBe('WaitingForNonce')
  })

  test('nothing is signed for it with any key as long as the ledger is not taken over, and others are not held', async () => {
    const { world } = await abandoned()
    world.addStake('team-a/other', { signer: 'signer-2' })
    const operator = world.start()
    for (let poll = 0; poll < 4; poll++) {
      for (const key of [heir, 'team-a/other']) await world.visit(operator, key)
      world.clock.advance(12_000)
      world.chain.mine(1, (versions) => versions.find(({ from }) => from === addressOf(1)))
    }
    expect(world.condition('Ready', heir)).toMatchObject({ reason: 'Importing', message: expect.stringContaining('signer-1') })
    expect(calls(world).filter(({ from }) => from === addressOf(1))).toHaveLength(1)
    expect(world.ready('team-a/other'), said(world, 'team-a/other')).toBe(true)
  })
})

test.each([KEY, EXIT, WITHDRAWAL])(
  '%s shows a transaction of an earlier version that its ledger does not have, and the importing leader has not heard of the resource',
  async (key) => {
    const world = createWorld()
    world.addSigner()
    const next = world.start()
    for (const cache of [next.caches.stakes, next.caches.exits, next.caches.withdrawals]) cache.frozen = true
    if (key === KEY) world.addStake()
    else if (key === EXIT) world.addExit()
    else world.addWithdrawal()
    const dying = world.start((point, self) => {
      if (point === 'before chain.send') self.kill()
    })
    await world.visit(dying, key)
    await world.visit(world.start(), key)
    world.loseLog()
    world.chain.forget()
    // Neither is it told.
    if (key === KEY) world.service.state.lie = (body) => ({ ...body, transaction: { status: 'awaiting_submission' } })
    else world.requests.state.lie = (body) => ({ ...body, status: 'awaiting_submission', transaction: {} })
    const ledgers = [{ network: 'hoodi', nextNonce: 1 }]
    world.signers.edit('signer-1', (signer) => ({ ...signer, status: { ...signer.status, ledgers } }))
    await next.visitSigner('signer-1')
    expect(world.signers.get('signer-1')?.status?.ledgers).toBeUndefined()
    expect(world.record(key)?.status?.claims).toHaveLength(1)
    const sent = calls(world).length
    for (let poll = 0; poll < 3; poll++) {
      await world.visit(next, key)
      world.clock.advance(12_000)
    }
    expect(calls(world), said(world, key)).toHaveLength(sent)
    expect(world.stalled(key)).toBe('UnknownSubmission')
  },
)

describe.each([KEY, EXIT, WITHDRAWAL])('%s was sent by the leader before, and the new one has not heard of it', (key) => {
  async function sent(): Promise<{ readonly world: World; readonly next: Operator }> {
    const world = worldOf(key)
    const next = standby(world)
    await world.visit(world.start(), key)
    expect(calls(world)).toHaveLength(1)
    expect([next.caches.records.size, next.caches.places.size]).toEqual([0, 0])
    return { world, next }
  }

  test('it is followed to its end, once', async () => {
    const { world, next } = await sent()
    await world.settle(next, [key], 24)
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(calls(world)).toHaveLength(1)
    expect(world.alarms).toEqual([])
  })

  test('deleted, with its status lost, it is not let go', async () => {
    const { world, next } = await sent()
    if (key === KEY) world.editStatus(() => undefined)
    else world.editRequestStatus(() => undefined, key)
    world.remove(key)
    await world.visit(next, key)
    expect(world.object(key)?.metadata.deletionTimestamp).toBeDefined()
  })

  test('its signer, deleted, is not let go', async () => {
    const { world, next } = await sent()
    world.signers.remove('signer-1')
    await next.visitSigner('signer-1')
    expect(world.signers.get('signer-1')?.metadata.finalizers).toContain(LANE_FINALIZER)
  })
})

test('a request waits for the one before it on the same validator, which only the log has', async () => {
  const world = worldOf(WITHDRAWAL)
  const next = standby(world)
  await world.visit(world.start(), WITHDRAWAL)
  const second = 'withdrawal:team-a/second'
  world.addWithdrawal(second)
  await world.visit(next, second)
  expect(world.condition('Ready', second)?.reason).toBe('WaitingForValidator')
  expect(calls(world)).toHaveLength(1)
})

test('the log is read once for a leadership, however much is done', async () => {
  const world = createWorld()
  world.addSigner()
  const keys = Array.from({ length: 12 }, (_, index) => `team-a/stake-${index}`)
  for (const key of keys) world.addStake(key)
  const lists: string[] = []
  const operator = world.start((point) => {
    if (/^before \w+\.list$/.test(point)) lists.push(point)
  })
  await world.settle(operator, keys, 24)
  for (const key of keys) expect(world.ready(key), said(world, key)).toBe(true)
  await operator.visitSigner('signer-1')
  expect(lists.toSorted()).toEqual(['before signernonces.list', 'before transactions.list'])
})

test('as long as it can not be read nothing is signed; it is tried again', async () => {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  let isDown = true
  const operator = world.start((point) => {
    if (isDown && point === 'before signernonces.list') throw new KubeError(503, 'ServiceUnavailable', 'the API server starts')
  })
  for (let poll = 0; poll < 3; poll++) expect(await world.visit(operator)).toMatchObject({ kind: 'error' })
  expect(world.keys.signed).toEqual([])
  isDown = false
  await world.settle(operator)
  world.assertMoney({ deposits: 1 })
})
