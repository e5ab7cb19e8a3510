import { expect, test } from 'vitest'
import { REQUESTED_BY_ANNOTATION } from '../../../resources/meta.ts'
import { readPlan, type ShownPlan } from '../../../resources/plan.ts'
import { createSolanaWorld, type SolanaOperator, type SolanaWorld } from '../../testing/solana-world.ts'

/** Approvals for Solana stakes: each step by itself, under the policies of all that sign it. */

const KEY = 'team-a/stake-1'
const by = [{ user: 'bob' }, { group: 'approvers' }]
const asks = (change: object = {}) => ({ by, count: 1, validFor: '7d', ...change })

function worldOf(approval: object, signer?: string): SolanaWorld {
  const world = createSolanaWorld()
  world.addSigners()
  if (signer === undefined) world.editPolicy({ approval })
  else world.signers.edit(signer, (one) => ({ ...one, spec: { ...one.spec, policy: { ...one.spec.policy, approval: approval as never } } }))
  world.addStake({}, KEY)
  world.stakes.edit(KEY, (stake) => ({
    ...stake,
    metadata: { ...stake.metadata, annotations: { ...stake.metadata.annotations, [REQUESTED_BY_ANNOTATION]: 'alice' } },
  }))
  return world
}
const planOf = (world: SolanaWorld): ShownPlan => {
  const plan = readPlan(world.stakes.get(KEY)?.status?.plan)
  if (plan === undefined) throw new Error(world.explain(KEY))
  return plan
}
const reasonOf = (world: SolanaWorld) => world.condition('Ready', KEY)?.reason
async function rounds(world: SolanaWorld, operator: SolanaOperator, count: number): Promise<void> {
  for (let round = 0; round < count; round++) {
    await world.visit(operator, KEY)
    world.cluster.settle()
    world.clock.advance(10_000)
  }
}
const landed = (world: SolanaWorld): number => world.cluster.landed().filter(({ failure }) => failure === undefined).length

test('a stake waits for an approval, signs nothing before, and goes once it is approved', async () => {
  const world = worldOf(asks())
  const operator = world.start()
  await rounds(world, operator, 3)
  expect(reasonOf(world)).toBe('ApprovalRequired')
  expect(landed(world)).toBe(0)
  expect(operator.records(KEY).flatMap(({ status }) => status?.attempts ?? [])).toEqual([])
  const plan = planOf(world)
  expect(plan).toMatchObject({ purpose: 'SolanaStake', signer: 'payer', withdrawSigner: 'withdrawer', amount: '5000000000' })
  world.approvals.approve(plan, 'alice', { approverGroups: ['approvers'] })
  await rounds(world, operator, 2)
  expect(landed(world)).toBe(0)
  world.approvals.approve(plan, 'bob')
  await rounds(world, operator, 4)
  expect(landed(world)).toBe(1)
  expect(world.stakes.get(KEY)?.status?.plan).toBeUndefined()
})

test('the policy of the withdraw authority is asked as well', async () => {
  const world = worldOf(asks(), 'withdrawer')
  const operator = world.start()
  await rounds(world, operator, 3)
  expect(world.condition('Ready', KEY)?.message).toMatch(/^StakingSigner withdrawer asks for the approval of user bob or group approvers/)
  expect(landed(world)).toBe(0)
  world.approvals.approve(planOf(world), 'bob')
  await rounds(world, operator, 4)
  expect(landed(world)).toBe(1)
})

test('an amount that is not above needs none; its withdrawal always does, and has a plan of its own', async () => {
  const world = worldOf(asks({ aboveSol: '5', kinds: ['SolanaStake', 'SolanaWithdrawal'] }))
  world.signers.edit('withdrawer', (one) => ({
    ...one,
    spec: { ...one.spec, policy: { ...one.spec.policy, approval: asks({ kinds: ['SolanaWithdrawal'] }) as never } },
  }))
  const operator = world.start()
  await rounds(world, operator, 4)
  expect(landed(world)).toBe(1)
  world.stakes.edit(KEY, (stake) => ({ ...stake, spec: { ...stake.spec, desiredState: 'Withdrawn' as const } }))
  for (let epoch = 0; epoch < 4; epoch++) {
    await rounds(world, operator, 3)
    world.cluster.nextEpoch()
  }
  await rounds(world, operator, 3)
  expect(reasonOf(world)).toBe('ApprovalRequired')
  expect(planOf(world)).toMatchObject({ purpose: 'SolanaWithdrawal' })
  expect(planOf(world).amount).toBeUndefined()
  expect(landed(world)).toBe(2)
  world.approvals.approve(planOf(world), 'bob')
  await rounds(world, operator, 6)
  expect(landed(world)).toBe(3)
  world.assertMoney({ funded: 1, withdrawn: 1 })
})

test('revoked between signature and broadcast, it is not sent and expires', async () => {
  const world = worldOf(asks())
  const first = world.start()
  await rounds(world, first, 2)
  first.kill()
  const approval = world.approvals.approve(planOf(world), 'bob')
  const dying = world.start((point, self) => {
    if (point.startsWith('before send')) self.kill()
  })
  await world.visit(dying, KEY)
  world.approvals.objects.vanish(approval)
  const operator = world.start()
  for (let round = 0; round < 6; round++) {
    await rounds(world, operator, 1)
    world.clock.advance(60_000)
  }
  expect(landed(world)).toBe(0)
  expect(reasonOf(world)).toBe('ApprovalRequired')
})
