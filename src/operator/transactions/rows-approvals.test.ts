import { describe, expect, test, vi } from 'vitest'
import { REQUESTED_BY_ANNOTATION } from '../../resources/meta.ts'
import { planHash, readPlan, type ShownPlan, withHash } from '../../resources/plan.ts'
import type { StakingSignerSpec } from '../../resources/staking-signer.ts'
import { add, assertOnce, calls, kinds, node, POLL, polls } from '../testing/rows.ts'
import { type Around, addressOf, createWorld, EXIT, KEY, type Operator, WITHDRAWAL, type World } from '../testing/world.ts'

/** What a signer's policy wants approved is not signed before, whoever leads, and holds nobody. */

// Signatures are made for real, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 })

type Policy = NonNullable<StakingSignerSpec['policy']['approval']>
const policy = (change: Partial<Policy> = {}): Policy => ({
  by: [{ user: 'bob' }, { group: 'approvers' }],
  count: 1,
  validFor: '7d',
  ...change,
})
const askedBy = (...users: readonly string[]) => ({ annotations: { [REQUESTED_BY_ANNOTATION]: users.join('\n') } })

function worldOf(key = KEY, approval: Policy | undefined = policy(), options: Parameters<typeof createWorld>[0] = {}): World {
  const world = createWorld(options)
  world.addSigner('signer-1', {}, approval === undefined ? {} : { approval })
  add(world, key)
  annotate(world, key, 'alice')
  return world
}
/** As the admission policies record who has asked. */
function annotate(world: World, key: string, ...users: readonly string[]): void {
  const change = (object: { metadata: object }) => ({ ...object, metadata: { ...object.metadata, ...askedBy(...users) } })
  if (key === KEY || !key.includes(':')) world.stakes.edit(key, change)
  else world.editRequest(key, change)
}
const planOf = (world: World, key: string): ShownPlan => {
  const plan = readPlan(world.object(key)?.status?.plan)
  if (plan === undefined) throw new Error(`${key} shows no plan: ${JSON.stringify(world.condition('Ready', key))}`)
  return plan
}
const reasonOf = (world: World, key: string) => world.condition('Ready', key)?.reason
const messageOf = (world: World, key: string) => world.condition('Ready', key)?.message ?? ''
async function rounds(world: World, operator: Operator, keys: readonly string[], count: number): Promise<void> {
  for (let round = 0; round < count; round++) {
    for (const key of keys) if (world.object(key) !== undefined) await world.visit(operator, key)
    world.chain.mine()
    world.clock.advance(POLL)
  }
}
const assertNothing = (world: World) => {
  expect(calls(world)).toEqual([])
  expect(world.keys.signed).toEqual([])
  expect(world.places.list()).toEqual([])
}

describe.each(kinds)('%s', (key) => {
  test('waits for an approval with its plan and how to approve it, takes no place, and goes once it is approved', async () => {
    const world = worldOf(key)
    const operator = world.start()
    await rounds(world, operator, [key], 3)
    assertNothing(world)
    expect(world.condition('Stalled', key)?.status).toBe('False')
    expect(reasonOf(world, key)).toBe('ApprovalRequired')
    const plan = planOf(world, key)
    const { kind, name } = plan.resource
    expect(messageOf(world, key)).toBe(
      `StakingSigner signer-1 asks for the approval of user bob or group approvers (spec.policy.approval). status.plan shows what would be signed. To approve it: kubectl staking approve ${kind.toLowerCase()}/${name} -n team-a --plan ${plan.hash}.`,
    )
    expect(plan).toMatchObject({
      resource: { uid: world.object(key)?.metadata.uid },
      from: world.record(key)?.spec.from,
      to: world.record(key)?.spec.call?.to,
      maxFeePerGasWei: '100000000000',
      ...(key === EXIT ? {} : { amount: key === KEY ? '32000000000' : '1000000000' }),
    })
    world.approvals.approve(plan, 'bob')
    await rounds(world, operator, [key], 5)
    assertOnce(world, key)
    expect(world.record(key)?.status?.attempts?.[0]?.approval).toMatchObject({
      planHash: plan.hash,
      approvers: ['bob'],
      maxFeePerGasWei: '100000000000',
    })
    expect(world.object(key)?.status?.plan).toBeUndefined()
  })

  test.each<[string, (world: World, plan: ShownPlan) => void, string | undefined]>([
    [
      'by whoever has asked for it',
      (world, plan) => world.approvals.approve(plan, 'alice', { approverGroups: ['approvers'] }),
      'alice (its approver has asked for this)',
    ],
    [
      'by a user whom the policy does not name',
      (world, plan) => world.approvals.approve(plan, 'mallory'),
      'Not counted: mallory (the policy names neither its approver nor any of its approverGroups).',
    ],
    [
      'by a user with the name of the group',
      (world, plan) => world.approvals.approve(plan, 'approvers'),
      'approvers (the policy names neither its approver nor any of its approverGroups)',
    ],
    ['of another plan', (world, plan) => world.approvals.approve({ ...plan, maxFeePerGasWei: '1' }, 'bob'), undefined],
    [
      'for a resource of this name that is gone',
      (world, plan) =>
        world.approvals.approve(plan, 'bob', {
          resourceRef: { kind: plan.resource.kind as 'EthereumStake', name: plan.resource.name, uid: 'of-before' },
        }),
      'it is for a resource of this name that is gone',
    ],
    [
      'that has expired by the time of the blocks, where the clock was set back',
      (world, plan) => {
        const approval = world.approvals.approve(plan, 'bob', { expiresAt: '2030-01-03T00:00:00Z' })
        world.clock.advance(3 * 86_400_000)
        world.chain.mine()
        world.clock.setBack(2.5 * 86_400_000)
        return approval
      },
      'it has expired',
    ],
    ['that has expired', (world, plan) => world.approvals.approve(plan, 'bob', { expiresAt: '2030-01-01T00:00:00Z' }), 'it has expired'],
    [
      'that is older than the policy lets it be',
      (world, plan) => world.approvals.approve(plan, 'bob', {}, { creationTimestamp: '2029-12-25T00:00:00Z' }),
      'Not counted: bob (it is older than the policy lets it be (validFor)).',
    ],
    [
      'by who has lost the verb approve',
      (world, plan) => {
        world.approvals.state.mayNot.add('bob')
        world.approvals.approve(plan, 'bob')
      },
      'verb approve',
    ],
  ])('an approval %s does not count', async (_what, approve, said) => {
    const world = worldOf(key)
    const operator = world.start()
    await rounds(world, operator, [key], 2)
    approve(world, planOf(world, key))
    await rounds(world, operator, [key], 3)
    assertNothing(world)
    expect(reasonOf(world, key)).toBe('ApprovalRequired')
    if (said !== undefined) expect(messageOf(world, key)).toContain(said)
  })

  test('after it was deleted and made anew under its name, the old approval does not count', async () => {
    const world = worldOf(key)
    const operator = world.start()
    await rounds(world, operator, [key], 2)
    world.approvals.approve(planOf(world, key), 'bob')
    world.remove(key)
    await rounds(world, operator, [key], 2)
    expect(world.object(key)).toBeUndefined()
    add(world, key)
    annotate(world, key, 'alice')
    await rounds(world, operator, [key], 3)
    assertNothing(world)
  })

  test('revoked between signature and first broadcast, it is not sent, whoever leads then', async () => {
    const world = worldOf(key)
    const first = world.start()
    await rounds(world, first, [key], 2)
    first.kill()
    const approval = world.approvals.approve(planOf(world, key), 'bob')
    const dying = world.start((point, self) => {
      if (point.startsWith('before send')) self.kill()
    })
    await world.visit(dying, key)
    expect(world.keys.signed.length).toBeGreaterThan(0)
    expect(calls(world)).toEqual([])
    world.approvals.objects.vanish(approval)
    const operator = world.start()
    await rounds(world, operator, [key], 4)
    expect(calls(world)).toEqual([])
    expect(reasonOf(world, key)).toBe('ApprovalRequired')
    // Nobody waits behind it for ever: its nonce is cancelled.
    world.addStake('team-a/next')
    annotate(world, 'team-a/next', 'alice')
    world.editPolicy({ approval: policy({ kinds: key === KEY ? ['Deposit'] : ['Exit', 'Withdrawal'], aboveEth: '0' }) })
    if (key === KEY) return
    await rounds(world, operator, [key, 'team-a/next'], 8)
    expect(world.ready('team-a/next')).toBe(true)
    expect(world.chain.requests()).toEqual([])
  })

  test('revoked between signature and first broadcast, it is not sent, though a node counts another transaction under its nonce for a while', async () => {
    const world = worldOf(key)
    const first = world.start()
    await rounds(world, first, [key], 2)
    first.kill()
    const approval = world.approvals.approve(planOf(world, key), 'bob')
    const dying = world.start((point, self) => {
      if (point.startsWith('before send')) self.kill()
    })
    await world.visit(dying, key)
    const [signed] = world.keys.signed
    if (signed === undefined) throw new Error('nothing was signed')
    world.approvals.objects.vanish(approval)
    const { own } = node(world, 0)
    const { valueWei, nonce, gas, maxFeePerGas, maxPriorityFeePerGas } = signed.transaction
    const hash = `0x${'ab'.repeat(32)}` as const
    const from = addressOf(0)
    own.set(hash, { hash, from, to: from, data: '0x', valueWei, nonce, gas, maxFeePerGas, maxPriorityFeePerGas })
    const operator = world.start()
    await polls(world, operator, key, 2)
    own.clear()
    await rounds(world, operator, [key], 4)
    expect(calls(world)).toEqual([])
    expect(reasonOf(world, key)).toBe('ApprovalRequired')
  })

  test('a cache that still shows what was revoked has nothing signed', async () => {
    const world = worldOf(key)
    const operator = world.start()
    await rounds(world, operator, [key], 2)
    const held = world.start()
    const approval = world.approvals.approve(planOf(world, key), 'bob')
    held.caches.approvals.frozen = true
    world.approvals.objects.vanish(approval)
    await rounds(world, held, [key], 2)
    assertNothing(world)
  })

  test('revoked after it was sent, it goes on', async () => {
    const world = worldOf(key)
    const operator = world.start()
    await rounds(world, operator, [key], 1)
    const approval = world.approvals.approve(planOf(world, key), 'bob')
    await world.visit(operator, key)
    expect(calls(world)).toHaveLength(1)
    world.approvals.objects.vanish(approval)
    world.chain.forget()
    world.clock.advance(POLL)
    await rounds(world, operator, [key], 4)
    assertOnce(world, key)
  })
})

describe('a plan that changes', () => {
  test('before it is sent needs another approval: a raised fee cap', async () => {
    const world = worldOf(KEY)
    world.editSpec({ maxFeePerGasGwei: '30' })
    const operator = world.start()
    await rounds(world, operator, [KEY], 2)
    const before = planOf(world, KEY)
    expect(before.maxFeePerGasWei).toBe('30000000000')
    world.editSpec({ maxFeePerGasGwei: '90' })
    world.approvals.approve(before, 'bob')
    await rounds(world, operator, [KEY], 2)
    assertNothing(world)
    const after = planOf(world, KEY)
    expect(after.maxFeePerGasWei).toBe('90000000000')
    world.approvals.approve(after, 'bob')
    await rounds(world, operator, [KEY], 4)
    assertOnce(world, KEY)
  })

  test('is not changed by a resource that is suspended for a while', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await rounds(world, operator, [KEY], 2)
    world.approvals.approve(planOf(world, KEY), 'bob')
    world.editSpec({ suspend: true })
    await rounds(world, operator, [KEY], 1)
    world.editSpec({ suspend: false })
    await rounds(world, operator, [KEY], 4)
    assertOnce(world, KEY)
  })

  /** Sent at a price that then rises. */
  async function sent(cap: string): Promise<{ readonly world: World; readonly operator: Operator; readonly approval: string }> {
    const world = worldOf(KEY, policy(), { bumpAfterMs: 60_000 })
    world.editSpec({ maxFeePerGasGwei: cap })
    const operator = world.start()
    await world.visit(operator, KEY)
    const approval = world.approvals.approve(planOf(world, KEY), 'bob')
    await world.visit(operator, KEY)
    expect(calls(world)).toHaveLength(1)
    return { world, operator, approval }
  }
  async function rise(world: World, operator: Operator, factor: bigint): Promise<void> {
    world.chain.state.baseFee *= factor
    for (let poll = 0; poll < 8; poll++) {
      world.clock.advance(POLL)
      await world.visit(operator, KEY)
    }
  }
  const prices = (world: World) => calls(world).map(({ maxFeePerGas }) => maxFeePerGas)

  test('is the same at a higher price within the approved cap: no approval is asked for again', async () => {
    const { world, operator, approval } = await sent('90')
    world.approvals.objects.vanish(approval)
    await rise(world, operator, 3n)
    expect(calls(world).length).toBeGreaterThan(1)
    await rounds(world, operator, [KEY], 4)
    assertOnce(world, KEY)
  })

  test('is another with a cap that was raised after it was sent: nothing above the approved one is signed before that is approved too', async () => {
    const { world, operator } = await sent('25')
    world.editSpec({ maxFeePerGasGwei: '100' })
    await rise(world, operator, 6n)
    expect(world.keys.signed.every(({ transaction }) => transaction.maxFeePerGas <= 25_000_000_000n)).toBe(true)
    expect(planOf(world, KEY).maxFeePerGasWei).toBe('100000000000')
    world.approvals.approve(planOf(world, KEY), 'carol', { approverGroups: ['approvers'] })
    await rise(world, operator, 1n)
    expect(prices(world).some((price) => price > 60_000_000_000n)).toBe(true)
    expect(world.record(KEY)?.status?.attempts?.at(-1)?.approval).toMatchObject({ approvers: ['carol'], maxFeePerGasWei: '100000000000' })
    await rounds(world, operator, [KEY], 4)
    assertOnce(world, KEY)
  })
})

test('a higher price that has an approval of its own is not sent where that is taken back before', async () => {
  const world = worldOf(KEY, policy(), { bumpAfterMs: 60_000 })
  world.editSpec({ maxFeePerGasGwei: '25' })
  const dear = (maxFeePerGas: bigint) => maxFeePerGas > 25_000_000_000n
  let raised: string | undefined
  const operator = world.start((point) => {
    const isSigned = world.keys.signed.some(({ transaction }) => dear(transaction.maxFeePerGas))
    if (raised !== undefined && isSigned && point.startsWith('after record write')) world.approvals.objects.vanish(raised)
  })
  const polls = async (count: number): Promise<void> => {
    for (let poll = 0; poll < count; poll++) {
      world.clock.advance(POLL)
      await world.visit(operator, KEY)
    }
  }
  await world.visit(operator, KEY)
  world.approvals.approve(planOf(world, KEY), 'bob')
  await world.visit(operator, KEY)
  expect(calls(world)).toHaveLength(1)
  world.editSpec({ maxFeePerGasGwei: '100' })
  world.chain.state.baseFee *= 6n
  await polls(4)
  raised = world.approvals.approve(planOf(world, KEY), 'bob')
  await polls(8)
  expect(world.keys.signed.some(({ transaction }) => dear(transaction.maxFeePerGas))).toBe(true)
  expect(calls(world).filter(({ maxFeePerGas }) => dear(maxFeePerGas))).toEqual([])
  expect(reasonOf(world, KEY)).toBe('ApprovalRequired')
  raised = undefined
  world.approvals.approve(planOf(world, KEY), 'bob')
  await rounds(world, operator, [KEY], 6)
  assertOnce(world, KEY)
})

describe('nobody waits behind what waits for an approval', () => {
  test('of the same signer, in the same namespace', async () => {
    const world = worldOf(KEY, policy({ aboveEth: '32' }))
    world.addStake('team-a/large', { amountEth: '33' })
    annotate(world, 'team-a/large', 'alice')
    world.addStake('team-a/other')
    const keys = ['team-a/large', KEY, 'team-a/other']
    await rounds(world, world.start(), keys, 5)
    expect(keys.map((key) => world.ready(key))).toEqual([false, true, true])
    expect(reasonOf(world, 'team-a/large')).toBe('ApprovalRequired')
  })

  test('of the same validator, though that one is older', async () => {
    const world = worldOf(WITHDRAWAL, policy({ kinds: ['Withdrawal'] }))
    world.clock.advance(60_000)
    world.addExit()
    await rounds(world, world.start(), [WITHDRAWAL, EXIT], 6)
    expect(reasonOf(world, WITHDRAWAL)).toBe('ApprovalRequired')
    expect(world.ready(EXIT)).toBe(true)
  })

  test('of the same limit', async () => {
    const world = worldOf(KEY, policy({ kinds: ['Deposit'] }))
    world.editPolicy({ limits: [{ window: '24h', per: 'Signer', maxCount: 1 }] })
    world.addExit()
    await rounds(world, world.start(), [KEY, EXIT], 6)
    expect(world.ready(KEY)).toBe(false)
    expect(world.ready(EXIT)).toBe(true)
  })
})

describe('two approvals', () => {
  test('are of two users', async () => {
    const world = worldOf(KEY, policy({ count: 2 }))
    const operator = world.start()
    await rounds(world, operator, [KEY], 2)
    const plan = planOf(world, KEY)
    world.approvals.approve(plan, 'bob')
    world.approvals.approve(plan, 'bob', { approverGroups: ['approvers'] })
    world.approvals.approve(plan, 'Bob', { approverGroups: ['approvers'] })
    await rounds(world, operator, [KEY], 2)
    assertNothing(world)
    expect(messageOf(world, KEY)).toMatch(
      /asks for 2 approvals of user bob or group approvers .* So far: bob\. Not counted: bob \(another one of this user counts\); Bob \(another one of this user counts\)\.$/,
    )
    world.approvals.approve(plan, 'carol', { approverGroups: ['approvers'] })
    await rounds(world, operator, [KEY], 4)
    assertOnce(world, KEY)
    expect(world.record(KEY)?.status?.attempts?.[0]?.approval?.approvers).toEqual(['bob', 'carol'])
  })

  test('of one user do not help where the API server denies that user', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await rounds(world, operator, [KEY], 2)
    world.approvals.state.mayNot.add('bob')
    const plan = planOf(world, KEY)
    world.approvals.approve(plan, 'bob')
    world.approvals.approve(plan, 'bob')
    await rounds(world, operator, [KEY], 2)
    assertNothing(world)
    expect(world.approvals.state.reviewed).toContain('bob')
  })

  test('of one who may not approve, five hundred of them, cost one question at each look, and keep out nobody else', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await rounds(world, operator, [KEY], 2)
    world.approvals.state.mayNot.add('mallory')
    const plan = planOf(world, KEY)
    for (let n = 0; n < 500; n++)
      world.approvals.approve(plan, 'mallory', { approverGroups: n % 2 === 0 ? ['approvers', 'dev'] : ['dev', 'approvers'] })
    world.approvals.state.reviewed.length = 0
    await operator.visitLanes()
    expect(world.approvals.state.reviewed).toEqual(['mallory'])
    await world.visit(operator, KEY)
    assertNothing(world)
    expect(messageOf(world, KEY)).toMatch(/ and 495 more\.$/)
    world.approvals.approve(plan, 'bob')
    await rounds(world, operator, [KEY], 4)
    assertOnce(world, KEY)
    expect(world.record(KEY)?.status?.attempts?.[0]?.approval?.approvers).toEqual(['bob'])
  })
})

describe('what approvals rest on', () => {
  test.each<[string, (world: World) => unknown, RegExp]>([
    [
      'the admission policies are missing',
      (world) => Object.assign(world.approvals.state, { policies: { missing: 'there is no policy' } }),
      /No approval counts.*there is no policy/,
    ],
    ['nobody has recorded who asks', (world) => world.annotate({ [REQUESTED_BY_ANNOTATION]: undefined }), /nobody can prove who has asked/],
    [
      'the resource is older than the policy',
      (world) =>
        Object.assign(world.approvals.state, { policies: { approvalsSinceMs: 0, requestersSinceMs: world.clock.now().getTime() + 1 } }),
      /older than the admission policy/,
    ],
  ])('%s: a person must look, and nothing is signed', async (_what, change, said) => {
    const world = worldOf(KEY)
    const operator = world.start()
    await rounds(world, operator, [KEY], 1)
    world.approvals.approve(planOf(world, KEY), 'bob')
    change(world)
    await rounds(world, operator, [KEY], 2)
    assertNothing(world)
    expect(world.stalled(KEY)).toBe('ApprovalUnproven')
    expect(messageOf(world, KEY)).toMatch(said)
  })

  test('an approval that is older than the policies does not count', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await rounds(world, operator, [KEY], 1)
    world.approvals.approve(planOf(world, KEY), 'bob')
    world.approvals.state.policies = { approvalsSinceMs: world.clock.now().getTime() + 1_000, requestersSinceMs: 0 }
    await rounds(world, operator, [KEY], 2)
    assertNothing(world)
    expect(messageOf(world, KEY)).toContain('older than the admission policies')
  })

  test('the owner of the key may let go what is older than the policies; whoever is known to have asked still may not approve', async () => {
    const world = worldOf(KEY, policy({ allowUnrecorded: true }))
    world.approvals.state.policies = { approvalsSinceMs: 0, requestersSinceMs: world.clock.now().getTime() + 1 }
    const operator = world.start()
    await rounds(world, operator, [KEY], 1)
    world.approvals.approve(planOf(world, KEY), 'alice', { approverGroups: ['approvers'] })
    await rounds(world, operator, [KEY], 2)
    assertNothing(world)
    world.approvals.approve(planOf(world, KEY), 'bob')
    await rounds(world, operator, [KEY], 4)
    assertOnce(world, KEY)
  })

  test('the owner of the key may let go what nobody is recorded to have asked for, by approvals that name nobody either', async () => {
    const world = worldOf(KEY, policy({ allowUnrecorded: true }))
    const operator = world.start()
    await rounds(world, operator, [KEY], 1)
    // Where somebody is recorded, such an approval is for something else.
    world.approvals.approve(planOf(world, KEY), 'bob', { requestedBy: [] })
    await rounds(world, operator, [KEY], 2)
    assertNothing(world)
    world.annotate({ [REQUESTED_BY_ANNOTATION]: undefined })
    await rounds(world, operator, [KEY], 4)
    assertOnce(world, KEY)
  })

  test('a list of who has asked that is too long to be kept whole can not be approved, even where the policy lets go what is unrecorded', async () => {
    const world = worldOf(KEY, policy({ allowUnrecorded: true }))
    const many = Array.from({ length: 2_000 }, (_, n) => `user-${n}@example.com`)
    annotate(world, KEY, ...many, 'bob')
    const operator = world.start()
    await rounds(world, operator, [KEY], 1)
    world.approvals.approve(planOf(world, KEY), 'bob')
    await rounds(world, operator, [KEY], 2)
    assertNothing(world)
    expect(world.stalled(KEY)).toBe('ApprovalUnproven')
    // A hundred are kept.
    annotate(world, KEY, ...many.slice(0, 100))
    world.approvals.approve(planOf(world, KEY), 'bob')
    await rounds(world, operator, [KEY], 4)
    assertOnce(world, KEY)
  })

  test('whoever changed the spec has asked for it as well', async () => {
    const world = worldOf(KEY)
    annotate(world, KEY, 'system:serviceaccount:argocd:argocd-application-controller', 'bob')
    const operator = world.start()
    await rounds(world, operator, [KEY], 1)
    world.approvals.approve(planOf(world, KEY), 'bob')
    await rounds(world, operator, [KEY], 2)
    assertNothing(world)
    world.approvals.approve(planOf(world, KEY), 'carol', { approverGroups: ['approvers'] })
    await rounds(world, operator, [KEY], 4)
    assertOnce(world, KEY)
  })

  test.each([
    ['nobody', { by: [] }],
    ['more than it names', { by: [{ user: 'bob' }], count: 3 }],
    ['an amount of another chain', { by: [{ user: 'bob' }], aboveSol: '1' }],
    ['something that this version does not know', { by: [{ user: 'bob' }], unless: 'friday' }],
  ])('a policy that names %s admits nothing, where the API server let it through', async (_what, approval) => {
    const world = worldOf(KEY)
    world.editPolicy({ approval })
    await rounds(world, world.start(), [KEY], 2)
    assertNothing(world)
    expect(world.stalled(KEY)).toBe('PolicyUnreadable')
  })

  test('what somebody writes as the plan in status is put right, and nothing is signed by it', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await rounds(world, operator, [KEY], 1)
    const plan = planOf(world, KEY)
    const forged = withHash({ ...plan, amount: '1000000000', withdrawalAddress: plan.from })
    for (const written of [forged, { ...forged, hash: plan.hash }]) {
      world.editStatus((status) => ({ ...status, plan: written }))
      world.approvals.approve(forged, 'bob')
      await rounds(world, operator, [KEY], 2)
      expect(planOf(world, KEY).hash).toBe(plan.hash)
      assertNothing(world)
    }
  })
})

test('ended at every single point, with the approval revoked at that moment: nothing is sent that was not sent before', {
  tags: 'whole',
}, async () => {
  let points = 0
  const story = async (endAt: number) => {
    const world = worldOf(KEY)
    const first = world.start()
    await rounds(world, first, [KEY], 1)
    first.kill()
    const approval = world.approvals.approve(planOf(world, KEY), 'bob')
    let count = 0
    const around: Around = (_point, self) => {
      if (++count === endAt) self.kill()
    }
    const dying = world.start(around)
    await world.visit(dying, KEY)
    points = Math.max(points, count)
    const before = calls(world).length
    world.approvals.objects.vanish(approval)
    await rounds(world, world.start(), [KEY], 4)
    expect(calls(world).length > 0, `ended at point ${endAt}`).toBe(before > 0)
    expect(world.chain.violations).toEqual([])
    return before
  }
  await story(0)
  const sent: number[] = []
  for (let endAt = 1; endAt <= points; endAt++) sent.push(await story(endAt))
  expect(sent.some((one) => one > 0)).toBe(true)
  expect(sent.some((one) => one === 0)).toBe(true)
})

test('a plan hash is not what status says, but what is signed', async () => {
  const world = worldOf(KEY)
  await rounds(world, world.start(), [KEY], 1)
  const { hash, ...plan } = planOf(world, KEY)
  expect(planHash(plan)).toBe(hash)
})

describe('more approvals than anybody asked for', () => {
  test('are not written down, and hold nobody: it is paid once, by as many as the policy asks for', async () => {
    const world = worldOf(KEY, policy({ by: [{ group: 'approvers' }] }))
    const operator = world.start()
    await rounds(world, operator, [KEY], 2)
    const plan = planOf(world, KEY)
    for (let n = 0; n < 100; n++) world.approvals.approve(plan, `user-${n}`, { approverGroups: ['approvers'] })
    await rounds(world, operator, [KEY], 5)
    assertOnce(world, KEY)
    expect(world.record(KEY)?.status?.attempts?.[0]?.approval?.approvers).toHaveLength(1)
    expect(world.chain.everSent()).toHaveLength(1)
  })

  const groupsOf = (n: number) => ['approvers', ...Array.from({ length: 9 }, (_, bit) => `g-${bit}`).filter((_, bit) => (n >> bit) & 1)]

  test('of one who may no longer, in other groups each time, do not keep one that counts from being heard', async () => {
    const world = worldOf(KEY, policy({ by: [{ group: 'approvers' }, { user: 'mallory' }] }))
    const operator = world.start()
    await rounds(world, operator, [KEY], 2)
    const plan = planOf(world, KEY)
    world.approvals.state.mayNot.add('mallory')
    for (let n = 0; n < 500; n++) world.approvals.approve(plan, 'mallory', { approverGroups: groupsOf(n) })
    world.approvals.approve(plan, 'bob', { approverGroups: ['approvers'] }, { creationTimestamp: '2030-01-01T00:00:30Z' })
    world.approvals.state.reviewed.length = 0
    await world.visit(operator, KEY)
    expect(world.approvals.state.reviewed.length).toBeLessThan(20)
    await rounds(world, operator, [KEY], 5)
    assertOnce(world, KEY)
    expect(world.record(KEY)?.status?.attempts?.[0]?.approval?.approvers).toEqual(['bob'])
  })

  test('of very many who may no longer are not asked about without end: it waits, and says what to delete', async () => {
    const world = worldOf(KEY, policy({ by: [{ group: 'approvers' }] }))
    const operator = world.start()
    await rounds(world, operator, [KEY], 2)
    const plan = planOf(world, KEY)
    for (let n = 0; n < 200; n++) {
      world.approvals.state.mayNot.add(`user-${n}`)
      world.approvals.approve(plan, `user-${n}`, { approverGroups: ['approvers'] })
    }
    world.approvals.state.reviewed.length = 0
    await world.visit(operator, KEY)
    // In two looks.
    expect(world.approvals.state.reviewed.length).toBeLessThan(140)
    expect(reasonOf(world, KEY)).toBe('ApprovalRequired')
    expect(messageOf(world, KEY)).toMatch(
      /has 200 approvals of this plan, and more than 64 of those who gave them may not approve it any more/,
    )
    assertNothing(world)
  })
})
