import { describe, expect, test, vi } from 'vitest'
import type { Hex } from '../../chains/ethereum/chain.ts'
import { StakingApiError } from '../../contract/client-error.ts'
import { DISREGARD_SUBMISSION_ANNOTATION } from '../../resources/meta.ts'
import { makeStake } from '../testing/fake-staking-api.ts'
import { add, assertOnce, calls, kinds, node, none, polls, said } from '../testing/rows.ts'
import { addressOf, createWorld, ETH, EXIT, GWEI, hoodi, KEY, type Operator, WITHDRAWAL, type World } from '../testing/world.ts'
import { placeName } from './names.ts'

/** Absence proves nothing: who else knows of a transaction, and what follows when what was seen goes away. */

// Signatures are made for real, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 })

function worldOf(key: string, policy: object = {}, nodes = 2): World {
  const world = createWorld({ nodes })
  world.addSigner('signer-1', {}, policy)
  add(world, key)
  return world
}
/** Resource and log are as they were before anything was signed. */
function setBack(world: World, key: string): void {
  world.loseLog()
  if (key === KEY) world.editStatus(({ transaction: _gone, ...status }) => status)
  else world.editRequestStatus(({ transaction: _gone, ...status }) => status, key)
}
/** The staking API's database was set back as well: it was told of nothing. */
function forgetTold(world: World, key: string): void {
  if (key === KEY) world.service.state.lie = (body) => ({ ...body, transaction: { status: 'awaiting_submission' } })
  else world.requests.state.lie = (body) => ({ ...body, transaction: {} })
}

const firstNode: { readonly how: string; readonly make: (world: World) => void }[] = [
  { how: 'is syncing', make: (world) => void Object.assign(node(world, 0), { stillAt: 0 }) },
  { how: 'was restarted, its pool empty', make: () => {} },
  { how: 'is behind', make: (world) => void Object.assign(node(world, 0), { lag: 30 }) },
  { how: 'does not answer', make: (world) => void Object.assign(node(world, 0), { silent: true }) },
]

test.each(kinds)(
  '%s: what a witness knows is followed under a number that was given to nobody, and nothing is sent against it',
  async (key) => {
    const world = worldOf(key)
    await world.visit(world.start(), key)
    const [hash] = calls(world).map((one) => one.hash)
    setBack(world, key)
    const other = key === KEY ? 'team-a/waits-behind' : KEY
    await polls(world, world.start(), key, 3)
    // As where the number was a filler's before the witness was heard.
    const lane = { chainId: hoodi.chainId, address: addressOf(0) }
    world.places.vanish(placeName(lane, 0))
    world.places.create({ metadata: { name: placeName(lane, 0) }, spec: { ...lane, address: lane.address.toLowerCase(), nonce: 0 } })
    world.addStake(other)
    const operator = world.start()
    await polls(world, operator, other, 3)
    await polls(world, operator, key, 3)
    expect(world.keys.signed.filter(({ transaction: { data } }) => data === '0x')).toEqual([])
    expect(calls(world).filter(({ nonce }) => nonce === 0)).toMatchObject([{ hash }])
    await world.settle(operator, [key, other])
    expect(world.record(key)?.status?.outcome).toMatchObject({ is: 'Landed', hash })
    expect(world.ready(other), said(world, other)).toBe(true)
  },
)

describe.each(kinds)('%s: the log has lost it, a witness has named it, and it is followed under its nonce', (key) => {
  async function followed(): Promise<{ world: World; operator: Operator; hash: Hex | undefined }> {
    const world = worldOf(key)
    await world.visit(world.start(), key)
    const [hash] = calls(world).map((one) => one.hash)
    setBack(world, key)
    const operator = world.start()
    await polls(world, operator, key, 3)
    expect(world.record(key)?.status?.attempts).toMatchObject([{ hash, found: true }])
    return { world, operator, hash }
  }
  const isUsed = (world: World) => world.chain.nonce(addressOf(0)) > 0
  const cancels = (world: World) => world.keys.signed.filter(({ transaction: { data, nonce } }) => data === '0x' && nonce === 0)

  test('then every node forgets it: whoever waits behind it goes on within a minute, and it is made once', async () => {
    const { world, operator } = await followed()
    world.chain.forget()
    world.addStake('team-a/waits-behind')
    const since = world.clock.monotonicMs()
    while (!isUsed(world) && world.clock.monotonicMs() - since < 90_000) {
      await polls(world, operator, 'team-a/waits-behind', 1)
      if (cancels(world).length > 0) world.chain.mine()
    }
    expect(cancels(world).length, said(world, key)).toBeGreaterThan(0)
    expect(world.clock.monotonicMs() - since).toBeLessThanOrEqual(60_000)
    await world.settle(operator, [key, 'team-a/waits-behind'])
    expect([world.ready(key), world.ready('team-a/waits-behind')], said(world, key)).toEqual([true, true])
    expect(world.record(key)?.status?.closed).toMatchObject([{ nonce: 0, by: 'Cancel' }])
    expect(world.chain.violations).toEqual([])
  })

  test('then every node forgets it, and nobody waits: it is cancelled after a while, and made once', async () => {
    const { world, operator } = await followed()
    world.chain.forget()
    await world.settle(operator, [key], 30)
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(world.record(key)?.status?.closed).toMatchObject([{ nonce: 0, by: 'Cancel' }])
    assertOnce(world, key)
  })

  test('it is too cheap to be mined: whoever waits behind it goes on after as long as one is bumped', async () => {
    const { world, operator, hash } = await followed()
    world.addStake('team-a/waits-behind')
    world.chain.state.baseFee = 30n * GWEI
    for (let n = 0; n < 40 && !isUsed(world); n++) {
      await polls(world, operator, 'team-a/waits-behind', 1)
      world.chain.mine()
    }
    expect(isUsed(world), said(world, key)).toBe(true)
    world.chain.state.baseFee = 10n * GWEI
    await world.settle(operator, [key, 'team-a/waits-behind'])
    expect([world.ready(key), world.ready('team-a/waits-behind')], said(world, key)).toEqual([true, true])
    expect(world.record(key)?.status?.outcome?.hash).not.toBe(hash)
    expect(world.chain.violations).toEqual([])
  })

  test('it waits behind an earlier nonce: nothing is cancelled, however long', async () => {
    const { world, operator, hash } = await followed()
    world.addStake('team-a/waits-behind')
    await polls(world, operator, 'team-a/waits-behind', 3)
    expect(cancels(world)).toEqual([])
    await world.settle(operator, [key, 'team-a/waits-behind'])
    expect(world.record(key)?.status?.outcome).toMatchObject({ is: 'Landed', hash })
  })
})

describe.each([{}, { sharedKey: true }])('etcd is restored to before it was sent, with the policy %o', (policy) => {
  /** Sent, and held by the second node alone. */
  async function sent(key: string): Promise<{ world: World; hash: Hex }> {
    const world = worldOf(key, policy)
    Object.assign(node(world, 1), { keepsToItself: true })
    Object.assign(node(world, 0), { silent: true })
    await world.visit(world.start(), key)
    Object.assign(node(world, 0), { silent: false })
    expect(calls(world)).toHaveLength(1)
    return { world, hash: world.record(key)?.status?.attempts?.[0]?.hash as Hex }
  }

  test.each(firstNode.flatMap((row) => kinds.map((key) => ({ ...row, key }))))(
    '$key: the first node $how, the second and the staking API know the transaction, which is followed',
    async ({ key, make }) => {
      const { world, hash } = await sent(key)
      setBack(world, key)
      make(world)
      const operator = world.start()
      await polls(world, operator, key, 4)
      expect(calls(world).map((one) => one.hash)).toEqual([hash])
      Object.assign(node(world, 0), { silent: false, stillAt: undefined, lag: 0 })
      Object.assign(node(world, 1), { keepsToItself: false })
      world.chain.mine(1, (versions) => versions[0])
      await world.settle(operator, [key])
      expect(world.ready(key), said(world, key)).toBe(true)
      expect(world.record(key)?.status?.outcome?.hash).toBe(hash)
      assertOnce(world, key)
    },
  )

  test.each(firstNode.flatMap((row) => kinds.map((key) => ({ ...row, key }))))(
    '$key: the first node $how, the staking API was set back too, and the second node knows the transaction: no place is taken',
    async ({ key, make }) => {
      const { world, hash } = await sent(key)
      setBack(world, key)
      forgetTold(world, key)
      make(world)
      const operator = world.start()
      await polls(world, operator, key, 6)
      expect(calls(world).map((one) => one.hash)).toEqual([hash])
      expect(['UnaccountedTransactions', 'WaitingForNonce']).toContain(world.condition('Ready', key)?.reason)
      expect(world.places.list()).toEqual([])
      // It lands: the chain's own history tells.
      Object.assign(node(world, 0), { silent: false, stillAt: undefined, lag: 0 })
      world.chain.mine(1, (versions) => versions[0])
      await world.settle(operator, [key], 6)
      assertOnce(world, key)
    },
  )

  test.each(kinds)('%s: nobody but the staking API knows it any more: a person must end the wait', async (key) => {
    const { world } = await sent(key)
    setBack(world, key)
    world.chain.forget()
    await world.settle(world.start(), [key], 6)
    expect(world.stalled(key), said(world, key)).toBe('UnknownSubmission')
    expect(calls(world)).toHaveLength(1)
  })
})

describe.each(kinds)('%s: somebody has reported a hash by hand, without its sender and nonce', (key) => {
  const other = 'team-a/waits-behind'
  const mistyped: Hex = `0x${'ab'.repeat(32)}`
  const refusal = () => new StakingApiError('refused', { kind: 'problem', code: 'already-submitted', status: 409, outcomeUnknown: false })
  const signal = new AbortController().signal

  /**
   * The staking API takes no other hash beside the reported one before the other has landed, as it can't know that they don't both land. Nothing was signed
   * yet: gas is too dear.
   */
  async function reported(hash = mistyped): Promise<World> {
    const world = worldOf(key)
    const { baseFee } = world.chain.state
    world.chain.state.baseFee = 10_000n * GWEI
    await world.visit(world.start(), key)
    world.chain.state.baseFee = baseFee
    const { api } = world.service
    const { api: requests } = world.requests
    const apiId = world.record(key)?.spec.apiId ?? ''
    if (key === KEY) await api.submitEthereumStake(apiId, hash, signal)
    else if (key === EXIT) await requests.submitExitRequest(world.validator(), apiId, hash, signal)
    else await requests.submitWithdrawalRequest(world.validator(), apiId, hash, signal)
    const mayTake = (told: string): boolean => told === hash || world.chain.outcome(told)?.success === true
    const [stake, exit, withdrawal] = [api.submitEthereumStake, requests.submitExitRequest, requests.submitWithdrawalRequest]
    vi.spyOn(api, 'submitEthereumStake').mockImplementation(async (id, told, ...rest) => {
      if (id === apiId && !mayTake(told)) throw refusal()
      return stake(id, told, ...rest)
    })
    vi.spyOn(requests, 'submitExitRequest').mockImplementation(async (pubkey, id, told, ...rest) => {
      if (!mayTake(told)) throw refusal()
      return exit(pubkey, id, told, ...rest)
    })
    vi.spyOn(requests, 'submitWithdrawalRequest').mockImplementation(async (pubkey, id, told, ...rest) => {
      if (!mayTake(told)) throw refusal()
      return withdrawal(pubkey, id, told, ...rest)
    })
    return world
  }
  const disregard = (world: World, hashes: string): void =>
    void world.editRecord(
      (record) => ({ ...record, metadata: { ...record.metadata, annotations: { [DISREGARD_SUBMISSION_ANNOTATION]: hashes } } }),
      key,
    )

  test.each([mistyped, mistyped.toUpperCase().replace('0X', '0x'), `0x${'cd'.repeat(32)}, ${mistyped}`])(
    'a person disregards it (%s): it is made, once, and the API is told of what has landed',
    async (hashes) => {
      const world = await reported()
      const operator = world.start()
      await world.settle(operator, [key], 4)
      expect(world.stalled(key), said(world, key)).toBe('UnknownSubmission')
      expect(world.keys.signed).toEqual([])
      disregard(world, hashes)
      await world.settle(operator, [key], 16)
      expect(world.ready(key), said(world, key)).toBe(true)
      assertOnce(world, key)
      const { transaction } = key === KEY ? world.status() : world.requestStatus(key)
      expect(transaction).toMatchObject({ reportedHash: transaction?.minedHash })
    },
  )

  test('the resource’s own annotation, which a tenant can write, ends nothing', async () => {
    const world = await reported()
    const annotations = { [DISREGARD_SUBMISSION_ANNOTATION]: mistyped }
    const annotated = (object: { metadata: object }) => ({ ...object, metadata: { ...object.metadata, annotations } })
    if (key === KEY) world.annotate(annotations)
    else world.editRequest(key, annotated)
    await world.settle(world.start(), [key], 4)
    expect(world.stalled(key), said(world, key)).toBe('UnknownSubmission')
    expect(world.keys.signed).toEqual([])
  })

  test('a person disregards another hash: nothing is signed', async () => {
    const world = await reported()
    disregard(world, `0x${'cd'.repeat(32)}`)
    await world.settle(world.start(), [key], 4)
    expect(world.stalled(key), said(world, key)).toBe('UnknownSubmission')
    expect(world.keys.signed).toEqual([])
  })

  test('another is reported after that: nothing is sent beside it', async () => {
    const world = await reported()
    disregard(world, mistyped)
    const later: Hex = `0x${'ef'.repeat(32)}`
    let isReported = false
    const operator = world.start((point) => {
      if (isReported || !/^after place create/.test(point)) return
      isReported = true
      world.service.state.lie = (body) => ({ ...body, transaction: { status: 'submitted', hash: later } })
      world.requests.state.lie = (body) => ({ ...body, status: 'submitted', transaction: { hash: later } })
    })
    await world.settle(operator, [key], 4)
    expect(isReported).toBe(true)
    expect(calls(world), said(world, key)).toEqual([])
  })

  test('the staking API says that it is final, which the nodes do not show yet: nothing is signed, whoever disregards it', async () => {
    const world = await reported()
    disregard(world, mistyped)
    world.service.state.lie = (body) => ({ ...body, transaction: { ...body.transaction, status: 'confirmed' } })
    world.requests.state.lie = (body) => ({ ...body, status: 'confirmed' })
    await world.settle(world.start(), [key], 4)
    expect(world.stalled(key), said(world, key)).toBe('UnknownSubmission')
    expect(calls(world)).toEqual([])
  })

  test('others on the signer wait for none of it', async () => {
    const world = await reported()
    world.addStake(other)
    const operator = world.start()
    await world.settle(operator, [other, key], 6)
    expect(world.ready(other), said(world, other)).toBe(true)
    expect(world.stalled(key)).toBe('UnknownSubmission')
  })
})

describe('the log is set back to before a bump, which one node holds', () => {
  test.each(kinds.flatMap((key) => [0, 1].map((which) => ({ key, which }))))(
    '$key is made once (version $which lands)',
    async ({ key, which }) => {
      const world = worldOf(key)
      const operator = world.start()
      await world.visit(operator, key)
      world.chain.state.baseFee = 40n * GWEI
      world.clock.advance(61_000)
      await world.visit(operator, key)
      const versions = world.record(key)?.status?.attempts ?? []
      expect(versions).toHaveLength(2)
      world.editRecord((record) => ({ ...record, status: { ...record.status, attempts: versions.slice(0, 1) } }), key)
      Object.assign(node(world, 0), { stillAt: 0 })
      const next = world.start()
      await polls(world, next, key, 6)
      world.chain.state.baseFee = 10n * GWEI
      world.chain.mine(1, (all) => all.find(({ hash }) => hash === versions[which]?.hash))
      await polls(world, next, key, 3)
      Object.assign(node(world, 0), { stillAt: undefined })
      await world.settle(next, [key])
      expect(world.ready(key), said(world, key)).toBe(true)
      expect(world.record(key)?.status?.outcome?.hash).toBe(versions[which]?.hash)
      expect(new Set(calls(world).map(({ nonce }) => nonce))).toEqual(new Set([0]))
      assertOnce(world, key)
    },
  )

  test.each(kinds)('%s, and to before its place was named: the place is its own, and no other is taken', async (key) => {
    const world = worldOf(key)
    await world.visit(world.start(), key)
    world.editRecord((record) => ({ ...record, status: {} }), key)
    forgetTold(world, key)
    Object.assign(node(world, 0), { stillAt: 0 })
    await polls(world, world.start(), key, 6)
    expect(new Set(calls(world).map(({ nonce }) => nonce))).toEqual(new Set([0]))
    expect(world.places.list()).toHaveLength(1)
  })
})

describe('others deposit for the key between the last look and ours', () => {
  /** With the BLS key that the staking API holds, and credentials of its own. */
  function thieve(world: World, sameCredentials = false): string {
    const [stake] = world.service.stakes()
    if (stake === undefined) throw new Error('there is no stake')
    const { network, credentialsType, withdrawalAddress } = stake
    const { depositData, unsignedTransaction } = makeStake(
      hoodi,
      {
        network,
        credentialsType,
        amountGwei: stake.amountEth,
        withdrawalAddress: sameCredentials ? withdrawalAddress : addressOf(1),
        externalReference: 'x',
      },
      'x',
      0,
    )
    expect(depositData.pubkey).toBe(stake.depositData.pubkey)
    world.chain.fund(addressOf(2), 100n * ETH)
    const { to, data, valueWei } = unsignedTransaction
    return world.chain.mineForeign({ from: addressOf(2), to: to as Hex, data: data as Hex, valueWei })
  }
  const warnings = (world: World) =>
    world.events.filter(({ text }) => text.type === 'Warning').map(({ key, text }) => `${key} ${text.reason}`)
  const ours = (world: World) => world.chain.deposits().filter(({ from }) => from === addressOf(0))

  test.each(['is in the pool', 'was forgotten', 'was sent by an operator that ended'])(
    'ours %s: it is cancelled, and no money moves',
    async (how) => {
      const world = worldOf(KEY)
      let operator = world.start()
      await world.visit(operator)
      expect(world.chain.pool()).toHaveLength(1)
      if (how === 'was forgotten') world.chain.forget()
      if (how.startsWith('was sent')) operator = world.start()
      const theirs = thieve(world)
      await world.settle(operator, [KEY], 10)
      expect(ours(world)).toEqual([])
      expect(world.record()?.status?.closed).toMatchObject([{ nonce: 0, by: 'Cancel' }])
      expect(world.stalled()).toBe('PubkeyAlreadyDeposited')
      expect(world.condition('Stalled')?.message).toContain(theirs)
      expect(warnings(world)).toContain('stake-1 PubkeyAlreadyDeposited')
      expect(world.chain.violations).toEqual([])
    },
  )

  test('while ours is made, which takes long: it is not sent', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    const submit = world.service.api.submitEthereumStake
    let theirs = ''
    world.service.api.submitEthereumStake = async (...call) => {
      theirs ||= thieve(world)
      world.clock.advance(5_000)
      return submit(...call)
    }
    await world.visit(operator)
    expect(world.chain.pool().filter(({ data }) => data !== '0x')).toEqual([])
    await world.settle(operator, [KEY], 10)
    expect(ours(world)).toEqual([])
    expect(world.stalled()).toBe('PubkeyAlreadyDeposited')
    expect(world.condition('Stalled')?.message).toContain(theirs)
    expect(world.chain.violations).toEqual([])
  })

  test('ours is suspended or deleted meanwhile: it is cancelled all the same', async () => {
    for (const change of [(world: World) => world.editSpec({ suspend: true }), (world: World) => world.stakes.remove(KEY)]) {
      const world = worldOf(KEY)
      const operator = world.start()
      await world.visit(operator)
      change(world)
      thieve(world)
      await world.settle(operator, [KEY], 8)
      expect(ours(world)).toEqual([])
      expect(world.record()?.status?.closed).toMatchObject([{ by: 'Cancel' }])
    }
  })

  test.each([false, true])(
    'ours comes second (with the same credentials: %s): FrontRun, Stalled, an event and a count of its own',
    async (same) => {
      const world = worldOf(KEY)
      const operator = world.start()
      await world.visit(operator)
      thieve(world, same)
      world.chain.mine()
      await world.settle(operator, [KEY], 6)
      expect(ours(world)).toHaveLength(1)
      expect(world.status().transaction?.state).toBe('FrontRun')
      expect(world.ready()).toBe(false)
      expect(world.stalled()).toBe('FrontRun')
      expect(warnings(world)).toContain('stake-1 FrontRun')
      expect(world.alarms).toEqual([{ network: 'hoodi', signer: 'signer-1', reason: 'FrontRun' }])
      // It stays so: nothing is made again, and a restart tells nobody twice.
      await world.settle(world.start(), [KEY], 6)
      expect(world.alarms).toHaveLength(1)
      expect(calls(world)).toHaveLength(1)
    },
  )

  test('theirs comes after ours: ours is the first, and Ready', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.visit(operator)
    world.chain.mine()
    thieve(world)
    await world.settle(operator)
    expect(world.ready()).toBe(true)
    expect(world.alarms).toEqual([])
  })

  test('theirs leaves the chain again: ours is made once', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.visit(operator)
    thieve(world)
    await world.visit(operator)
    world.chain.reorg(1, true)
    await world.settle(operator, [KEY], 15)
    expect(world.ready(), said(world, KEY)).toBe(true)
    expect(ours(world)).toHaveLength(1)
    expect(world.chain.violations).toEqual([])
  })
})

describe('what has landed goes away, deeper than finality should allow', () => {
  const observed = 3_700_000

  test.each(['returns to the pool', 'is forgotten'])(
    'a deposit that %s: Ready is False, and it is followed under the same nonce',
    async (how) => {
      const world = worldOf(KEY)
      const operator = world.start()
      await world.settle(operator)
      const before = world.record()?.status
      expect(before?.outcome?.is).toBe('Landed')
      const height = world.chain.height()
      world.chain.reorg(height, how === 'is forgotten')
      world.chain.mine(height + 2, none)
      // A settled one is looked at now and then.
      await world.visit(operator)
      world.clock.advance(observed)
      await world.visit(operator)
      expect(world.ready(), said(world, KEY)).toBe(false)
      expect(world.record()?.status).toMatchObject({ place: 0, attempts: before?.attempts })
      expect(world.record()?.status?.outcome).toBeUndefined()
      await world.settle(operator)
      expect(world.ready(), said(world, KEY)).toBe(true)
      expect(world.record()?.status?.outcome).toMatchObject({ nonce: 0, hash: before?.outcome?.hash })
      expect(world.record()?.status?.outcome?.blockHash).not.toBe(before?.outcome?.blockHash)
      assertOnce(world, KEY)
    },
  )

  test('a deposit that is in another block now: Ready again, with that block', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.settle(operator)
    const before = world.record()?.status?.outcome
    const height = world.chain.height()
    world.chain.reorg(height)
    world.chain.mine(height + 2)
    await world.visit(operator)
    world.clock.advance(observed)
    await world.settle(operator)
    expect(world.record()?.status?.outcome).toMatchObject({ is: 'Landed', hash: before?.hash })
    expect(world.record()?.status?.outcome?.blockHash).not.toBe(before?.blockHash)
    expect(world.status().transaction?.blockHash).toBe(world.record()?.status?.outcome?.blockHash)
    assertOnce(world, KEY)
  })

  test.each(['one node shows it no more', 'a node is silent'])('%s: that proves nothing', async (how) => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.settle(operator)
    const hash = world.record()?.status?.outcome?.hash as Hex
    if (how.startsWith('one')) node(world, 0).fork = { from: 1, without: [hash] }
    else {
      node(world, 1).silent = true
      node(world, 0).fork = { from: 1, without: [hash] }
    }
    await world.visit(operator)
    world.clock.advance(observed)
    await world.visit(operator)
    expect(world.record()?.status?.outcome?.is).toBe('Landed')
    expect(calls(world)).toHaveLength(1)
  })

  test('a stranger’s transaction has its nonce instead: it is made again, once', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.settle(operator)
    const height = world.chain.height()
    world.chain.reorg(height, true)
    world.chain.mineForeign({ from: addressOf(0) })
    world.chain.mine(height + 2, none)
    await world.visit(operator)
    world.clock.advance(observed)
    await world.settle(operator, [KEY], 20)
    expect(world.ready(), said(world, KEY)).toBe(true)
    expect(world.record()?.status).toMatchObject({ closed: [{ nonce: 0, by: 'Foreign' }], outcome: { nonce: 1 } })
    assertOnce(world, KEY)
  })

  test.each([EXIT, WITHDRAWAL])('%s, which the consensus layer has not decided on yet, is followed again', async (key) => {
    const world = worldOf(key)
    let isDecided = false
    world.requests.state.consensus = () => ({ status: isDecided ? 'accepted' : 'pending' })
    const operator = world.start()
    await world.settle(operator, [key], 6)
    const before = world.record(key)?.status?.outcome
    expect(before?.is, said(world, key)).toBe('Landed')
    const height = world.chain.height()
    world.chain.reorg(height, true)
    world.chain.mine(height + 2, none)
    await world.settle(operator, [key], 12)
    expect(world.record(key)?.status?.outcome?.blockHash).not.toBe(before?.blockHash)
    isDecided = true
    await world.settle(operator, [key], 8)
    expect(world.ready(key), said(world, key)).toBe(true)
    assertOnce(world, key)
  })
})

describe('its status is lost after its deposit is final, and it is deleted', () => {
  const isThere = (world: World) => world.stakes.get(KEY) !== undefined

  test.each(['and nothing else', 'and the operator is started again', 'and its origin annotation'])(
    '%s: it stays as long as it holds money',
    async (how) => {
      const world = worldOf(KEY)
      const operator = world.start()
      await world.settle(operator)
      world.editStatus(() => undefined)
      if (how.includes('annotation')) world.annotate({ 'staking.dev/origin': undefined })
      world.remove(KEY)
      const next = how.includes('started') ? world.start() : operator
      await world.settle(next, [KEY], 6)
      expect(isThere(world)).toBe(true)
      expect(world.condition('Ready')?.status).not.toBe('True')
      // Without its origin only a person can say whose it is.
      if (how.includes('annotation')) return
      const [stake] = world.service.stakes()
      world.service.setValidator(stake?.stakeId ?? '', 'withdrawal_done')
      for (let n = 0; n < 4 && isThere(world); n++) {
        world.clock.advance(3_700_000)
        await world.visit(next)
      }
      expect(isThere(world), said(world, KEY)).toBe(false)
    },
  )

  test('and the log too, but for what the staking API gave: the chain is asked, and it stays', async () => {
    const world = worldOf(KEY)
    await world.settle(world.start())
    world.loseLog()
    world.editStatus(({ stakeId, depositData }) => ({ stakeId, depositData }))
    world.remove(KEY)
    await world.settle(world.start(), [KEY], 4)
    expect(isThere(world)).toBe(true)
    assertOnce(world, KEY)
  })

  test.each(['and nothing else', 'and its origin annotation'])(
    'and the log too, %s: the staking API knows it by its name, the chain is asked, and it stays',
    async (how) => {
      const world = worldOf(KEY)
      await world.settle(world.start())
      world.loseLog()
      world.editStatus(() => undefined)
      if (how.includes('annotation')) world.annotate({ 'staking.dev/origin': undefined })
      world.remove(KEY)
      const operator = world.start()
      await world.settle(operator, [KEY], 4)
      expect(isThere(world)).toBe(true)
      assertOnce(world, KEY)
      world.annotate({ 'staking.dev/confirm-delete': 'stake-1' })
      await world.visit(operator)
      expect(isThere(world)).toBe(false)
    },
  )

  test.each(['the staking API', 'the chain'])('and the log too, and %s does not answer: it stays until it does', async (who) => {
    const world = worldOf(KEY)
    world.chain.state.baseFee = 10_000n * GWEI
    await world.visit(world.start())
    world.loseLog()
    world.editStatus(() => undefined)
    world.remove(KEY)
    let isDown = true
    const operator = world.start((point) => {
      if (isDown && point === (who === 'the chain' ? 'before chain.depositsFor' : 'before api.ethereumStakesNamed'))
        throw new StakingApiError('no answer', { kind: 'network', outcomeUnknown: true })
    })
    await polls(world, operator, KEY, 3)
    expect(isThere(world)).toBe(true)
    expect(world.condition('Ready')?.message).toContain('not certain yet')
    isDown = false
    await polls(world, operator, KEY, 1)
    expect(isThere(world), said(world, KEY)).toBe(false)
  })

  test('and the log too, before what was sent and told is in a block: it stays', async () => {
    const world = worldOf(KEY)
    await world.visit(world.start())
    expect(calls(world)).toHaveLength(1)
    world.loseLog()
    world.editStatus(() => undefined)
    world.chain.forget()
    world.remove(KEY)
    await polls(world, world.start(), KEY, 3)
    expect(isThere(world)).toBe(true)
  })

  test('and the chain does not answer: it stays until it does', async () => {
    const world = worldOf(KEY)
    await world.settle(world.start())
    world.loseLog()
    world.editStatus(({ stakeId, depositData }) => ({ stakeId, depositData }))
    world.remove(KEY)
    for (const one of world.chain.nodes) one.silent = true
    const operator = world.start()
    await polls(world, operator, KEY, 3)
    expect(isThere(world)).toBe(true)
    expect(world.condition('Ready')?.message).toContain('not certain yet')
  })

  test('one of which nothing was ever deposited goes', async () => {
    const world = worldOf(KEY)
    world.chain.state.baseFee = 200n * GWEI
    const operator = world.start()
    await world.visit(operator)
    world.loseLog()
    world.remove(KEY)
    await world.settle(operator, [KEY], 4)
    expect(isThere(world)).toBe(false)
  })
})
