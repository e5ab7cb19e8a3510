import { describe, expect, test } from 'vitest'
import { REQUESTED_BY_ANNOTATION } from '../../../resources/meta.ts'
import { readPlan, type ShownPlan } from '../../../resources/plan.ts'
import type { TransactionPurpose } from '../../../resources/staking-transaction.ts'
import { AMOUNT, createSolanaWorld, KEY, payer, type SolanaWorld, withdrawer } from '../../testing/solana-world.ts'

/** What the policies of a Solana stake's signers want approved: each step by itself, and nothing of it is signed before, not even for the staking API. */

type Operator = ReturnType<SolanaWorld['start']>
const steps = [
  { purpose: 'SolanaStake', before: undefined, state: 'Active', asks: 'payer' },
  { purpose: 'SolanaDeactivation', before: 'Active', state: 'Inactive', asks: 'payer' },
  { purpose: 'SolanaWithdrawal', before: 'Inactive', state: 'Withdrawn', asks: 'withdrawer' },
] as const satisfies readonly { purpose: TransactionPurpose; before: string | undefined; state: string; asks: string }[]
type Step = (typeof steps)[number]

/** A stake right before a step that one of its signers wants approved. */
async function rightBefore({
  purpose,
  before: reached,
  state,
  asks,
}: Step): Promise<{ world: SolanaWorld; operator: Operator; signed: number }> {
  const world = createSolanaWorld()
  world.addSigners()
  world.editPolicy({ approval: { by: [{ user: 'bob' }, { group: 'approvers' }], count: 1, validFor: '7d', kinds: [purpose] } }, asks)
  world.addStake({}, KEY, { annotations: { [REQUESTED_BY_ANNOTATION]: 'alice' } })
  const operator = world.start()
  if (reached !== undefined) await world.settle(operator)
  if (reached === 'Inactive') {
    world.editSpec({ desiredState: 'Inactive' })
    await world.settle(operator)
  }
  if (reached !== undefined) expect(world.ready(), world.explain()).toBe(true)
  const signed = world.keys.signed.length
  if (state !== 'Active') world.editSpec({ desiredState: state })
  return { world, operator, signed }
}
async function rounds(world: SolanaWorld, operator: Operator, count: number): Promise<void> {
  for (let round = 0; round < count; round++) {
    await world.visit(operator)
    world.cluster.settle()
    world.clock.advance(60_000)
  }
}
const planOf = (world: SolanaWorld): ShownPlan => {
  const plan = readPlan(world.status().plan)
  if (plan === undefined) throw new Error(`it shows no plan: ${world.explain()}`)
  return plan
}

describe.each(steps)('$purpose', (step) => {
  const isPaid = step.state === 'Active' ? 0 : 1

  test('waits for its own approval with its plan, and goes once it is approved', async () => {
    const { world, operator, signed } = await rightBefore(step)
    await rounds(world, operator, 3)
    expect(world.condition('Ready')?.reason, world.explain()).toBe('ApprovalRequired')
    expect(world.stalled()).toBe('')
    expect(world.keys.signed).toHaveLength(signed)
    const plan = planOf(world)
    expect(plan).toMatchObject({
      resource: { kind: 'SolanaStake', uid: world.stakes.get(KEY)?.metadata.uid },
      purpose: step.purpose,
      from: payer,
      withdrawAuthority: withdrawer,
      destination: withdrawer,
      subject: world.status().stakeAccount,
    })
    expect(plan.amount).toBe(step.state === 'Active' ? String(AMOUNT) : undefined)
    world.approvals.approve(plan, 'bob')
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status().plan).toBeUndefined()
    world.assertMoney({ funded: 1, withdrawn: step.state === 'Withdrawn' ? 1 : 0 })
  })

  test.each<[string, (world: SolanaWorld, plan: ShownPlan) => void]>([
    ['by whoever has asked for it', (world, plan) => world.approvals.approve(plan, 'alice', { approverGroups: ['approvers'] })],
    ['by a user whom the policy does not name', (world, plan) => world.approvals.approve(plan, 'mallory')],
    ['of another plan', (world, plan) => world.approvals.approve({ ...plan, destination: payer }, 'bob')],
    ['of another step', (world, plan) => world.approvals.approve({ ...plan, purpose: 'Exit' }, 'bob')],
    [
      'for a resource of this name that is gone',
      (world, plan) =>
        world.approvals.approve(plan, 'bob', { resourceRef: { kind: 'SolanaStake', name: plan.resource.name, uid: 'of-before' } }),
    ],
    [
      'that has expired by the cluster’s time, where the clock was set back',
      (world, plan) => {
        const inADay = new Date(world.clock.now().getTime() + 86_400_000).toISOString()
        world.approvals.approve(plan, 'bob', { expiresAt: inADay })
        world.cluster.state.timeBehindMs = -2 * 86_400_000
      },
    ],
    ['that has expired', (world, plan) => world.approvals.approve(plan, 'bob', { expiresAt: '2030-01-01T00:00:00Z' })],
    [
      'by who has lost the verb approve',
      (world, plan) => {
        world.approvals.state.mayNot.add('bob')
        world.approvals.approve(plan, 'bob')
      },
    ],
  ])('an approval %s does not count', async (_what, approve) => {
    const { world, operator, signed } = await rightBefore(step)
    await rounds(world, operator, 2)
    approve(world, planOf(world))
    await rounds(world, operator, 2)
    expect(world.condition('Ready')?.reason, world.explain()).toBe('ApprovalRequired')
    expect(world.keys.signed).toHaveLength(signed)
    world.assertMoney({ funded: isPaid, withdrawn: 0 })
  })

  test('taken back between signature and first broadcast, it is not sent, whoever leads then', async () => {
    const { world, operator } = await rightBefore(step)
    await rounds(world, operator, 2)
    operator.kill()
    const landed = world.cluster.landed().length
    const approval = world.approvals.approve(planOf(world), 'bob')
    const dying = world.start((point, self) => {
      if (point.startsWith('before send') || point.startsWith('before chain.sendTransaction')) self.kill()
    })
    await world.visit(dying)
    expect(dying.killed).toBe(true)
    world.approvals.objects.vanish(approval)
    const next = world.start()
    await rounds(world, next, 3)
    expect(world.cluster.landed()).toHaveLength(landed)
    world.assertMoney({ funded: isPaid, withdrawn: 0 })
  })
})

test('the approval of one step is none of the next', async () => {
  const world = createSolanaWorld()
  world.addSigners({ approval: { by: [{ user: 'bob' }], count: 1, validFor: '7d' } })
  world.addStake({}, KEY, { annotations: { [REQUESTED_BY_ANNOTATION]: 'alice' } })
  const operator = world.start()
  for (const { purpose, state } of steps) {
    if (state !== 'Active') world.editSpec({ desiredState: state })
    await rounds(world, operator, 3)
    expect(world.condition('Ready')?.reason, world.explain()).toBe('ApprovalRequired')
    const plan = planOf(world)
    expect(plan.purpose).toBe(purpose)
    world.approvals.approve(plan, 'bob')
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
  }
  world.assertMoney({ funded: 1, withdrawn: 1 })
})
