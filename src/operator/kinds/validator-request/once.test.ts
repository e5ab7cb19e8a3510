import { describe, expect, test } from 'vitest'
import { encodeRequestCalldata, withdrawalRequestContract } from '../../../chains/ethereum/requests.ts'
import { gwei } from '../../../lib/amounts.ts'
import { DISREGARD_SUBMISSION_ANNOTATION, REQUESTED_BY_ANNOTATION } from '../../../resources/meta.ts'
import { readPlan } from '../../../resources/plan.ts'
import { testAddress } from '../../testing/fake-keys.ts'
import { createWorld, EXIT, GWEI, type Operator, WITHDRAWAL, type World } from '../../testing/world.ts'
import { nameBySpec, transactionName } from '../../transactions/names.ts'

/** What is asked for once, as the log and the chain's history tell it, and who may ask for it once more. */

const said = (world: World, key: string) => JSON.stringify(world.condition('Ready', key))
const suspend = (world: World, key: string, on: boolean) =>
  world.editRequest(key, (one) => ({ ...one, spec: { ...one.spec, suspend: on } }))
/** The record is as it was before it took its place: etcd was set back. */
function setBack(world: World, key: string): void {
  world.editRecord(({ status: _gone, ...record }) => ({ ...record, status: {} }), key)
  for (const { metadata } of world.places.list()) world.places.vanish(metadata.name)
}
/** Somebody with the signer's key asks for this at the contract. */
const askElsewhere = (world: World, request: Parameters<typeof encodeRequestCalldata>[0]) =>
  world.chain.mineForeign({
    from: testAddress(0),
    to: withdrawalRequestContract,
    data: encodeRequestCalldata(request),
    valueWei: 1_000n,
  })

test.each([
  {
    what: 'has landed',
    status: { state: 'Landed' as const, outcome: { is: 'Landed' as const, nonce: 0, hash: `0x${'7'.repeat(64)}`, blockNumber: 1 } },
  },
  {
    what: 'may land',
    status: {
      state: 'Open' as const,
      place: 0,
      attempts: [{ hash: `0x${'7'.repeat(64)}`, kind: 'Call' as const, nonce: 0, at: '2030-01-01T00:00:00Z' }],
    },
  },
])('a withdrawal that $what on another chain, which had the name of its network, is not asked for on this one too', async ({ status }) => {
  const world = createWorld()
  world.addSigner()
  world.addWithdrawal()
  world.chain.state.requestFee = 10n ** 18n
  const operator = world.start()
  await world.visit(operator, WITHDRAWAL)
  const { spec } = world.record(WITHDRAWAL) ?? {}
  if (spec === undefined) throw new Error('no record was made')
  const chainId = 424_242
  const name = transactionName({ purpose: 'Withdrawal', chainId, owner: spec.owner })
  world.records.create({ metadata: { name }, spec: { ...spec, chainId }, status })
  world.chain.state.requestFee = 1n
  world.clock.advance(60_000)
  await operator.visitLanes()
  world.chain.mine(4)
  await operator.visitLanes()
  expect(world.keys.signed).toEqual([])
  expect(world.chain.requests()).toEqual([])
  const other = operator.log.standing(nameBySpec(spec))
  expect(other).toMatchObject({ reason: 'AlreadyRequested', message: expect.stringContaining(name) })
})

describe('two withdrawals of one amount from one validator', () => {
  test('are each made once, one after the other', async () => {
    const world = createWorld()
    world.addSigner()
    const keys = ['withdrawal:team-a/a', 'withdrawal:team-a/b']
    for (const key of keys) world.addWithdrawal(key)
    await world.settle(world.start(), keys, 20)
    expect(keys.map((key) => world.ready(key))).toEqual([true, true])
    expect(world.chain.requests()).toHaveLength(2)
    expect(new Set(keys.map((key) => world.record(key)?.status?.outcome?.hash)).size).toBe(2)
  })

  test('where one is left over in the history that the log does not account for, nothing is signed before a person has looked', async () => {
    const world = createWorld()
    world.addSigner()
    world.addWithdrawal()
    world.chain.state.requestFee = 10n ** 18n
    const operator = world.start()
    await world.visit(operator, WITHDRAWAL)
    world.chain.state.requestFee = 1n
    const hash = askElsewhere(world, { kind: 'withdrawal', pubkey: world.validator(), amountGwei: gwei(GWEI) })
    await world.settle(operator, [WITHDRAWAL], 4)
    expect(world.stalled(WITHDRAWAL), said(world, WITHDRAWAL)).toBe('UnknownSubmission')
    expect(world.condition('Ready', WITHDRAWAL)?.message).toContain(hash)
    expect(world.keys.signed).toEqual([])

    world.signers.edit('signer-1', (signer) => ({ ...signer, spec: { ...signer.spec, acknowledgedNonce: 1 } }))
    await world.settle(operator, [WITHDRAWAL], 2)
    expect(world.stalled(WITHDRAWAL)).toBe('UnknownSubmission')
    world.editRecord(
      (record) => ({ ...record, metadata: { ...record.metadata, annotations: { [DISREGARD_SUBMISSION_ANNOTATION]: hash } } }),
      WITHDRAWAL,
    )
    await world.settle(operator, [WITHDRAWAL])
    expect(world.ready(WITHDRAWAL), said(world, WITHDRAWAL)).toBe(true)
    expect(world.chain.requests()).toHaveLength(2)
  })

  test('one of another amount is no news', async () => {
    const world = createWorld()
    world.addSigner('signer-1', { acknowledgedNonce: 1 })
    world.addWithdrawal()
    world.chain.state.requestFee = 10n ** 18n
    const operator = world.start()
    await world.visit(operator, WITHDRAWAL)
    world.chain.state.requestFee = 1n
    askElsewhere(world, { kind: 'withdrawal', pubkey: world.validator(), amountGwei: gwei(GWEI + 1n) })
    await world.settle(operator, [WITHDRAWAL])
    expect(world.ready(WITHDRAWAL), said(world, WITHDRAWAL)).toBe(true)
  })
})

describe.each([EXIT, WITHDRAWAL])('%s, sent and told, whose record was set back to before that', (key) => {
  test.each([0, 1, 8])('is followed and not made again, %i blocks later', async (blocks) => {
    const world = createWorld()
    world.addSigner()
    if (key === EXIT) world.addExit()
    else world.addWithdrawal()
    await world.visit(world.start(), key)
    const sent = world.record(key)?.status?.attempts?.[0]?.hash
    world.chain.mine(blocks)
    setBack(world, key)
    await world.settle(world.start(), [key])
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(world.record(key)?.status?.outcome?.hash).toBe(sent)
    expect(world.chain.requests()).toHaveLength(1)
    expect(world.chain.violations).toEqual([])
  })
})

test('an exit that was made by the same key elsewhere is followed, and not asked for again', async () => {
  const world = createWorld()
  world.addSigner()
  world.addExit()
  world.chain.state.requestFee = 10n ** 18n
  const operator = world.start()
  await world.visit(operator, EXIT)
  world.chain.state.requestFee = 1n
  const hash = askElsewhere(world, { kind: 'exit', pubkey: world.validator() })
  await world.settle(operator, [EXIT], 4)
  expect(world.record(EXIT)?.status?.outcome).toMatchObject({ is: 'Landed', hash })
  expect(world.chain.requests()).toHaveLength(1)
})

describe('an exit that the consensus layer has dropped', () => {
  const AGAIN = 'exit:team-a/again'
  async function dropped(nodes = 1): Promise<{ world: World; operator: Operator }> {
    const world = createWorld({ nodes })
    world.addSigner()
    world.addExit()
    let first: string | undefined
    world.requests.state.consensus = (_request, hash) => {
      first ??= hash
      return hash === first ? { status: 'dropped', reason: 'too-young: …' } : { status: 'accepted' }
    }
    const operator = world.start()
    await world.settle(operator, [EXIT], 8)
    expect(world.stalled(EXIT)).toBe('RequestDropped')
    return { world, operator }
  }

  test('is asked for once more by another resource; the first one keeps its answer and asks no more', async () => {
    const { world, operator } = await dropped()
    const first = world.requestStatus(EXIT).transaction
    world.addExit(AGAIN)
    await world.settle(operator, [AGAIN])
    expect(world.ready(AGAIN), said(world, AGAIN)).toBe(true)
    expect(world.record(AGAIN)?.status).toMatchObject({
      closed: [{ nonce: 0, by: 'Dropped', hash: first?.hash, owner: { name: 'exit-1' } }],
      outcome: { is: 'Landed', nonce: 1 },
    })
    expect(world.chain.requests()).toHaveLength(2)

    for (const edit of [(status: object) => status, () => ({})]) {
      world.editRequestStatus(edit, EXIT)
      await world.settle(world.start(), [EXIT], 4)
      expect(world.stalled(EXIT), said(world, EXIT)).toBe('RequestDropped')
      expect(world.requestStatus(EXIT).transaction).toMatchObject({ minedHash: first?.hash, state: 'Confirmed' })
    }
    expect(world.chain.requests()).toHaveLength(2)
  })

  test.each([false, true])(
    'and the staking API has forgotten: it is told again, and its word decides (its resource gone: %s)',
    async (isGone) => {
      const { world, operator } = await dropped()
      world.requests.forget()
      if (isGone) world.exits.vanish('team-a/exit-1')
      world.addExit(AGAIN)
      await world.settle(operator, [AGAIN], 16)
      expect(world.ready(AGAIN), said(world, AGAIN)).toBe(true)
      expect(world.record(AGAIN)?.status).toMatchObject({ closed: [{ by: 'Dropped', owner: { name: 'exit-1' } }], outcome: { nonce: 1 } })
      expect(world.chain.requests()).toHaveLength(2)
      expect((await world.requests.requests()).map(({ consensus }) => consensus.status)).toEqual(['accepted', 'dropped'])
    },
  )

  test.each([undefined, 'nothing came of it', 'some-later-rule: whatever'])(
    'by a staking API that names no rule any more (%s) is not asked for again: it may be waiting still',
    async (reason) => {
      const { world, operator } = await dropped()
      world.requests.state.consensus = () => ({ status: 'dropped', ...(reason === undefined ? {} : { reason }) })
      world.addExit(AGAIN)
      await world.settle(operator, [AGAIN], 4)
      expect(world.stalled(AGAIN), said(world, AGAIN)).toBe('AlreadyRequested')
      expect(world.chain.requests()).toHaveLength(1)
    },
  )

  test('and the staking API has forgotten, and does not say yet: it is waited for', async () => {
    const { world, operator } = await dropped()
    world.requests.forget()
    const { consensus } = world.requests.state
    world.requests.state.consensus = () => ({ status: 'pending' })
    world.addExit(AGAIN)
    await world.settle(operator, [AGAIN], 4)
    expect(world.condition('Ready', AGAIN), said(world, AGAIN)).toMatchObject({
      reason: 'AwaitingConsensus',
      message: expect.stringContaining('team-a/exit-1'),
    })
    expect(world.chain.requests()).toHaveLength(1)
    world.requests.state.consensus = consensus
    await world.settle(operator, [AGAIN], 16)
    expect(world.ready(AGAIN), said(world, AGAIN)).toBe(true)
    expect(world.chain.requests()).toHaveLength(2)
  })

  test('and the staking API has forgotten: under the same name it is not asked for again', async () => {
    const { world, operator } = await dropped()
    world.requests.forget()
    world.exits.vanish('team-a/exit-1')
    world.addExit()
    await world.settle(operator, [EXIT], 4)
    expect(world.stalled(EXIT), said(world, EXIT)).toBe('AlreadyRequested')
    expect(world.chain.requests()).toHaveLength(1)
  })

  test('is not asked for again before every node has its block as final', async () => {
    const { world, operator } = await dropped(2)
    const [, second] = world.chain.nodes
    if (second === undefined) throw new Error('the chain has two nodes')
    second.silent = true
    world.addExit(AGAIN)
    await world.settle(operator, [AGAIN], 3)
    expect(world.condition('Ready', AGAIN)?.reason, said(world, AGAIN)).toBe('AwaitingFinality')
    expect(world.chain.requests()).toHaveLength(1)
    second.silent = false
    await world.settle(operator, [AGAIN], 6)
    expect(world.chain.requests()).toHaveLength(2)
  })

  test.each([
    { takes: true, reason: 'AlreadyRequested' },
    { takes: false, reason: 'AlreadyExiting' },
  ])(
    'that was accepted is not asked for again by a staking API that has forgotten (it takes it again: $takes)',
    async ({ takes, reason }) => {
      const world = createWorld()
      world.addSigner()
      world.addExit()
      const operator = world.start()
      await world.settle(operator, [EXIT])
      world.requests.forget()
      world.addExit(AGAIN)
      // Its own request is made; the earlier one breaks a rule by having worked.
      let made = 0
      world.requests.state.broken = () => (made++ === 0 || takes ? [] : ['already-exiting'])
      await world.settle(operator, [AGAIN], 4)
      expect(world.stalled(AGAIN), said(world, AGAIN)).toBe(reason)
      expect(world.chain.requests()).toHaveLength(1)
    },
  )

  test('that was accepted is not asked for again, whoever asks', async () => {
    const world = createWorld()
    world.addSigner('signer-1', {}, { allowedNamespaces: { names: ['team-a', 'team-b'] } })
    world.addExit()
    const operator = world.start()
    await world.settle(operator, [EXIT])
    world.addExit('exit:team-b/mine')
    await world.settle(operator, ['exit:team-b/mine'], 4)
    expect(world.stalled('exit:team-b/mine'), said(world, 'exit:team-b/mine')).toBe('AlreadyRequested')
    expect(world.chain.requests()).toHaveLength(1)
    world.exits.vanish('team-a/exit-1')
    await world.settle(operator, ['exit:team-b/mine'], 4)
    expect(world.stalled('exit:team-b/mine')).toBe('AlreadyRequested')
    expect(world.chain.requests()).toHaveLength(1)
  })
})

describe("two tenants' exits of one validator: one is made, and neither's wish holds the other", () => {
  const OTHER = 'exit:team-b/other'
  const at = (seconds: string) => ({ creationTimestamp: `2030-01-01T00:00:${seconds}Z` })
  function worldOfTwo(): World {
    const world = createWorld()
    world.addSigner('signer-1', {}, { allowedNamespaces: { names: ['team-a', 'team-b'] } })
    world.addExit(EXIT, { maxRequestFeeGwei: '0.000001' }, at('01'))
    return world
  }
  /** The first has a record, and waits for a fee that it would pay. */
  async function withRecord(world: World): Promise<Operator> {
    world.chain.state.requestFee = 50_000n
    const operator = world.start()
    await world.visit(operator, EXIT)
    expect(world.record(EXIT)?.status?.place).toBeUndefined()
    expect(world.condition('Ready', EXIT)?.reason).toBe('RequestFeeTooHigh')
    return operator
  }

  test.each<{ which: string; policy: object; before: string; approve: boolean }>([
    {
      which: 'an approval that the younger gets',
      policy: { approval: { by: [{ user: 'bob' }], count: 1, validFor: '7d' } },
      before: 'ApprovalRequired',
      approve: true,
    },
    {
      which: 'a limit of its namespace that is used up',
      policy: { limits: [{ window: '24h', maxCount: 1, per: 'Namespace' }] },
      before: 'LimitReached',
      approve: false,
    },
  ])('the older one, which waits for $which, lets the younger have its turn', async ({ policy, before, approve }) => {
    const world = createWorld()
    world.addSigner('signer-1', {}, { allowedNamespaces: { names: ['team-a', 'team-b'] }, ...policy })
    const asked = { ...at('01'), annotations: { [REQUESTED_BY_ANNOTATION]: 'alice' } }
    const operator = world.start()
    if (!approve) {
      world.addWithdrawal(WITHDRAWAL, {}, at('00'))
      await world.settle(operator, [WITHDRAWAL])
    }
    world.addExit(EXIT, {}, asked)
    await world.settle(operator, [EXIT], 3)
    expect(world.condition('Ready', EXIT)?.reason).toBe(before)
    world.addExit(OTHER, {}, { ...asked, ...at('02') })
    await world.settle(operator, [EXIT, OTHER], 40)
    if (approve) {
      expect(world.record(OTHER)?.spec.owner).toMatchObject({ name: 'other' })
      const plan = readPlan(world.object(OTHER)?.status?.plan)
      if (plan === undefined) throw new Error(`no plan: ${said(world, OTHER)}`)
      world.approvals.approve(plan, 'bob')
      await world.settle(operator, [EXIT, OTHER], 12)
    }
    expect(world.ready(OTHER), said(world, OTHER)).toBe(true)
    expect(world.chain.requests().filter(({ kind }) => kind === 'exit')).toHaveLength(1)
  })

  describe('the older one, which waits for its approval,', () => {
    const asked = (seconds: string) => ({ ...at(seconds), annotations: { [REQUESTED_BY_ANNOTATION]: 'alice' } })
    /** Somebody else has asked a few times. */
    async function contended() {
      const world = createWorld()
      const approval = { by: [{ user: 'bob' }], count: 1, validFor: '7d' }
      world.addSigner('signer-1', {}, { allowedNamespaces: { names: ['team-a', 'team-b'] }, approval })
      const operator = world.start()
      world.addExit(EXIT, {}, asked('01'))
      await world.settle(operator, [EXIT], 3)
      world.addExit(OTHER, {}, asked('02'))
      await world.settle(operator, [EXIT, OTHER], 5)
      const owner = () => world.record(EXIT)?.spec.owner.name ?? world.record(OTHER)?.spec.owner.name
      expect(owner()).toBe('exit-1')
      return { world, operator, owner }
    }

    test('has its whole turn anew once nobody has asked for a while', async () => {
      const { world, operator, owner } = await contended()
      world.exits.vanish('team-b/other')
      world.clock.advance(24 * 3_600_000)
      await world.settle(operator, [EXIT], 2)
      world.addExit(OTHER, {}, asked('03'))
      await world.settle(operator, [EXIT, OTHER], 20)
      expect(owner()).toBe('exit-1')
      await world.settle(operator, [EXIT, OTHER], 10)
      expect(owner()).toBe('other')
    })

    test('goes on with it, its turn being over, when it was approved a moment ago', async () => {
      const { world, operator, owner } = await contended()
      const plan = readPlan(world.object(EXIT)?.status?.plan)
      if (plan === undefined) throw new Error(`no plan: ${said(world, EXIT)}`)
      world.clock.advance(25 * 12_000)
      world.approvals.approve(plan, 'bob')
      await world.visit(operator, OTHER)
      expect(owner()).toBe('exit-1')
      await world.settle(operator, [EXIT, OTHER], 6)
      expect(world.ready(EXIT), said(world, EXIT)).toBe(true)
      expect(world.chain.requests()).toHaveLength(1)
    })

    test('has had its turn where it was approved by nobody who counts', async () => {
      const { world, operator, owner } = await contended()
      const plan = readPlan(world.object(EXIT)?.status?.plan)
      if (plan === undefined) throw new Error(`no plan: ${said(world, EXIT)}`)
      world.clock.advance(25 * 12_000)
      world.approvals.approve(plan, 'mallory')
      await world.visit(operator, OTHER)
      expect(owner()).toBe('other')
    })
  })

  test.each<{ which: string; change: (world: World) => void }>([
    { which: 'waits for its own fee', change: () => {} },
    { which: 'is suspended', change: (world) => suspend(world, EXIT, true) },
    { which: 'may not ask any more', change: (world) => world.editPolicy({ allowedNamespaces: { names: ['team-b'] } }) },
    { which: 'is gone', change: (world) => world.exits.vanish('team-a/exit-1') },
  ])('the older one, which $which, lets the younger go', async ({ change }) => {
    const world = worldOfTwo()
    const operator = await withRecord(world)
    change(world)
    if (world.object(EXIT) !== undefined) await world.visit(operator, EXIT)
    world.addExit(OTHER, {}, at('02'))
    await world.settle(operator, [OTHER])
    expect(world.ready(OTHER), said(world, OTHER)).toBe(true)
    expect(world.record(OTHER)?.spec).toMatchObject({ generation: 1, owner: { name: 'other' } })
    // The first one comes too late.
    world.chain.state.requestFee = 1n
    if (world.object(EXIT) !== undefined) {
      suspend(world, EXIT, false)
      world.editPolicy({ allowedNamespaces: { names: ['team-a', 'team-b'] } })
      await world.settle(operator, [EXIT], 6)
      expect(world.stalled(EXIT), said(world, EXIT)).toBe('AlreadyRequested')
    }
    expect(world.chain.requests()).toHaveLength(1)
    expect(world.chain.violations).toEqual([])
  })

  test('the older one that asks and may keeps it', async () => {
    const world = worldOfTwo()
    const operator = await withRecord(world)
    world.chain.state.requestFee = 1n
    world.addExit(OTHER, {}, at('02'))
    await world.settle(operator, [OTHER, EXIT], 10)
    expect(world.ready(EXIT), said(world, EXIT)).toBe(true)
    expect(world.ready(OTHER)).toBe(false)
    expect(world.chain.requests()).toHaveLength(1)
  })

  test('sent, forgotten by the nodes and suspended: its place is cancelled, and the younger goes', async () => {
    const world = worldOfTwo()
    const operator = world.start()
    await world.visit(operator, EXIT)
    expect(world.chain.pool()).toHaveLength(1)
    world.chain.forget()
    suspend(world, EXIT, true)
    await world.visit(operator, EXIT)
    world.addExit(OTHER, {}, at('02'))
    await world.settle(operator, [EXIT, OTHER], 20)
    expect(world.ready(OTHER), said(world, OTHER)).toBe(true)
    expect(world.chain.requests()).toHaveLength(1)
    expect(world.chain.violations).toEqual([])
  })

  test('an older one that nothing comes of is waited for some polls only', async () => {
    const world = worldOfTwo()
    world.addExit(OTHER, {}, at('02'))
    const operator = world.start()
    await world.visit(operator, OTHER)
    expect(world.condition('Ready', OTHER)?.reason).toBe('WaitingForValidator')
    // The operator never gets to work on the older one.
    await world.settle(operator, [OTHER], 20)
    expect(world.ready(OTHER), said(world, OTHER)).toBe(true)
  })
})

test('a withdrawal that was made before under this name is not made again, and says how to ask once more', async () => {
  const world = createWorld()
  world.addSigner()
  world.addWithdrawal()
  const operator = world.start()
  await world.settle(operator, [WITHDRAWAL])
  world.remove(WITHDRAWAL)
  await world.visit(operator, WITHDRAWAL)
  expect(world.object(WITHDRAWAL)).toBeUndefined()
  // Even where the staking API has forgotten it.
  world.requests.forget()
  world.addWithdrawal()
  await world.settle(operator, [WITHDRAWAL], 4)
  expect(world.stalled(WITHDRAWAL), said(world, WITHDRAWAL)).toBe('AlreadyRequested')
  expect(world.condition('Ready', WITHDRAWAL)?.message).toContain('another name')
  expect(world.chain.requests()).toHaveLength(1)
  world.addWithdrawal('withdrawal:team-a/once-more')
  await world.settle(operator, ['withdrawal:team-a/once-more'])
  expect(world.ready('withdrawal:team-a/once-more'), said(world, 'withdrawal:team-a/once-more')).toBe(true)
  expect(world.chain.requests()).toHaveLength(2)
})

describe.each([EXIT, WITHDRAWAL])('%s is final, and the staking API has lost the request', (key) => {
  async function lost(at: 'reporting' | 'deciding') {
    const world = createWorld()
    world.addSigner()
    if (key === EXIT) world.addExit()
    else world.addWithdrawal()
    world.requests.state.consensus = () => ({ status: 'pending' })
    const operator = world.start()
    await world.settle(operator, [key], at === 'deciding' ? 6 : 3)
    expect(world.condition('Ready', key)?.reason).toBe(at === 'deciding' ? 'AwaitingConsensus' : 'AwaitingFinality')
    const before = world.requestStatus(key).requestId
    world.requests.forget()
    // Its ids are made of their number: this one makes another.
    await world.requests.api.createExitRequest(
      { idempotencyKey: 'other', externalReference: 'other', pubkey: world.validator(1) },
      new AbortController().signal,
    )
    return { world, operator, before, signed: world.keys.signed.length }
  }

  test.each(['reporting', 'deciding'] as const)(
    'before %s: it is told of the transaction again, and nothing is asked again',
    async (at) => {
      const { world, operator, before, signed } = await lost(at)
      world.requests.state.consensus = () => ({ status: 'accepted' })
      await world.settle(operator, [key], 12)
      expect(world.ready(key), said(world, key)).toBe(true)
      const { requestId, transaction } = world.requestStatus(key)
      expect(requestId).not.toBe(before)
      expect(transaction).toMatchObject({ reportedHash: transaction?.minedHash })
      expect(world.chain.requests()).toHaveLength(1)
      expect(world.keys.signed).toHaveLength(signed)
    },
  )

  test.each([false, true])(
    'and does not take it again, as the validator leaves: an exit has done that (deleted: %s)',
    async (isDeleted) => {
      const { world, operator } = await lost('deciding')
      world.requests.state.broken = () => ['already-exiting']
      if (isDeleted) world.remove(key)
      await world.settle(operator, [key], 6)
      // What came of a withdrawal is not told by that.
      if (key === WITHDRAWAL) expect(world.stalled(key), said(world, key)).toBe('AlreadyExiting')
      else if (isDeleted) expect(world.object(key)).toBeUndefined()
      else expect(world.condition('Ready', key), said(world, key)).toMatchObject({ status: 'True', reason: 'Accepted' })
      expect(world.chain.requests()).toHaveLength(1)
    },
  )

  test('and does not take it again: it says so, and nothing is asked again', async () => {
    const { world, operator } = await lost('deciding')
    const rule = key === EXIT ? 'too-young' : 'already-exiting'
    world.requests.state.broken = () => [rule]
    await world.settle(operator, [key], 4)
    expect(world.condition('Ready', key)?.reason, said(world, key)).toBe(key === EXIT ? 'ValidatorTooYoung' : 'AlreadyExiting')
    expect(world.condition('Ready', key)?.message).toContain('does not know the request any more')
    expect(world.chain.requests()).toHaveLength(1)
    world.requests.state.broken = () => []
    world.requests.state.consensus = () => ({ status: 'accepted' })
    await world.settle(world.start(), [key], 6)
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(world.chain.requests()).toHaveLength(1)
  })
})

describe("an exit that the staking API refuses for a withdrawal that the beacon chain does not show, its database having been set back, while the withdrawal's", () => {
  /** As the service has it: an exit comes after what was promised, until that is known to be over. */
  function refuseUnseen({ requests, chain }: World): void {
    const isPromised = ({ request, hashes, cancelled }: ReturnType<typeof requests.stored>[number]) =>
      request.kind === 'withdrawal' && !cancelled && chain.outcome(hashes.at(-1) ?? '')?.final !== true
    requests.state.broken = ({ kind }) => (kind === 'exit' && requests.stored().some(isPromised) ? ['pending-withdrawals'] : [])
  }
  /** A withdrawal whose request is made, and that waits for its fee. */
  async function asked() {
    const world = createWorld()
    world.addSigner()
    world.addWithdrawal()
    world.chain.state.requestFee = 10n ** 18n
    const operator = world.start()
    await world.settle(operator, [WITHDRAWAL], 2)
    return { world, operator }
  }

  test.each<{ resource: string; prepare: (world: World, operator: Operator) => Promise<void>; becomes: string }>([
    {
      resource: 'is Ready',
      becomes: 'confirmed',
      prepare: async (world, operator) => {
        await world.settle(operator, [WITHDRAWAL])
        expect(world.ready(WITHDRAWAL), said(world, WITHDRAWAL)).toBe(true)
      },
    },
    {
      resource: 'has landed and is gone',
      becomes: 'confirmed',
      prepare: async (world, operator) => {
        await world.settle(operator, [WITHDRAWAL])
        world.remove(WITHDRAWAL)
        await world.settle(operator, [WITHDRAWAL])
        expect(world.object(WITHDRAWAL)).toBeUndefined()
      },
    },
    {
      resource: 'was taken back and is gone',
      becomes: 'cancelled',
      prepare: async (world, operator) => {
        world.chain.state.requestFee = 10n ** 18n
        world.remove(WITHDRAWAL)
        await world.settle(operator, [WITHDRAWAL])
        expect(world.object(WITHDRAWAL)).toBeUndefined()
        world.chain.state.requestFee = 1n
      },
    },
  ])('resource $resource, is made once the staking API was told', async ({ prepare, becomes }) => {
    const { world, operator } = await asked()
    const setItBack = world.requests.copy()
    world.chain.state.requestFee = 1n
    await prepare(world, operator)
    setItBack()
    refuseUnseen(world)
    world.addExit()
    await world.settle(world.start(), [EXIT])
    expect(world.ready(EXIT), said(world, EXIT)).toBe(true)
    expect((await world.requests.requests()).map(({ status }) => status)).toEqual([becomes, 'confirmed'])
    expect(world.chain.violations).toEqual([])
  })

  test('resource is Ready, as another withdrawal is refused for it, is made with it', async () => {
    const { world, operator } = await asked()
    const setItBack = world.requests.copy()
    world.chain.state.requestFee = 1n
    await world.settle(operator, [WITHDRAWAL])
    setItBack()
    const other = 'withdrawal:team-a/other'
    world.requests.state.broken = () => (world.requests.stored().some(({ hashes }) => hashes.length === 0) ? ['amount-over-available'] : [])
    world.addWithdrawal(other, { amountGwei: String(2n * GWEI) })
    await world.settle(world.start(), [other])
    expect(world.ready(other), said(world, other)).toBe(true)
    expect(world.chain.requests()).toHaveLength(2)
  })

  test.each([false, true])('resource has not sent it and is there, waits, and takes nothing back (made anew: %s)', async (isNew) => {
    const { world, operator } = await asked()
    refuseUnseen(world)
    if (isNew) {
      world.withdrawals.vanish('team-a/withdrawal-1')
      world.addWithdrawal(WITHDRAWAL, { suspend: true })
    }
    world.addExit()
    await world.settle(operator, [EXIT], 4)
    expect(world.condition('Ready', EXIT)?.reason).toBe('PendingWithdrawals')
    expect((await world.requests.requests()).map(({ status }) => status)).toEqual(['awaiting_submission'])
  })
})
