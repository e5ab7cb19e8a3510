import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { approvalPolicy } from '../../../src/resources/admission-policies.ts'
import { RECONCILE_ANNOTATION, REQUESTED_BY_ANNOTATION } from '../../../src/resources/meta.ts'
import { readPlan, type ShownPlan } from '../../../src/resources/plan.ts'
import type { StakingTransaction } from '../../../src/resources/staking-transaction.ts'
import { chart, installChart, startHelm } from '../../cluster/chart.ts'
import { type PageOptions, pageCommands } from '../../cluster/page-commands.ts'
import { runToEnd } from '../../cluster/run.ts'
import { COMPILE_CACHE } from '../../stack/compile-cache.ts'
import {
  applyAll,
  eventually,
  getSigner,
  getStake,
  namespace,
  SIGNER,
  seen,
  signer,
  stake,
  untilHolds,
  validatorExit,
} from '../../stack/resources.ts'
import { kubectlEntry, NETWORK } from '../../stack/stack.ts'
import { deleteStake, metricsOf, recordOf, untilGone, untilPaidOnce, untilShows, useStack } from './harness.ts'

/** Approvals on a real API server, with the admission policies of the chart, by users as it knows them. */

const NAMESPACE = 'default'
const ARGO = `system:serviceaccount:${NAMESPACE}:argocd-application-controller`
/** Who approves with the real command, by a token of their own. */
const APPROVER = 'approver'
/** Of the pages' commands. */
const TEAM = 'team-a'
/** Users by their groups. */
const users: Readonly<Record<string, readonly string[]>> = {
  alice: ['tenants'],
  bob: ['approvers'],
  carol: ['approvers', 'tenants'],
  dave: ['tenants'],
  erin: ['approvers', 'tenants'],
}

const stack = useStack({
  anvil: { mining: 0.3, accounts: 6 },
  // The API server is restarted on its way, which takes longer than a lease lives on a busy machine.
  operatorArgs: ['--lease-duration', '120s', '--renew-deadline', '90s'],
  install: (cluster, { networks, stakingApi }) =>
    installChart(cluster, { networks, stakingApi: { url: stakingApi.url } }, AbortSignal.timeout(120_000)),
})

const binding = (role: string, group: string) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: `${group}-${role}`, namespace: NAMESPACE },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: `staking-operator-${role}` },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group }],
})
const account = (name: string) => ({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: NAMESPACE } })

const as = (user: string, args: readonly string[], input?: object) =>
  stack().cluster.kubectl(args, {
    asUser: user,
    asGroups: [...(users[user] ?? ['tenants']), 'system:authenticated'],
    ...(input === undefined ? {} : { input: JSON.stringify(input) }),
  })
const create = (user: string, object: object) => as(user, ['create', '-f', '-'], object)
async function createOk(user: string, object: object): Promise<void> {
  const { code, stderr } = await create(user, object)
  expect(code, stderr).toBe(0)
}

const approvalOf = (
  plan: Pick<ShownPlan, 'hash'> & { readonly resource: Omit<ShownPlan['resource'], 'namespace'> },
  user: string,
  change: object = {},
) => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'StakingApproval',
  metadata: { name: `approval-${randomUUID().slice(0, 8)}`, namespace: NAMESPACE },
  spec: {
    resourceRef: { kind: plan.resource.kind, name: plan.resource.name, uid: plan.resource.uid },
    planHash: plan.hash,
    approver: user,
    approverGroups: users[user] ?? [],
    requestedBy: ['somebody'],
    ...change,
  },
})

/** A stake that waits for an approval, with its plan. */
async function waiting(name: string): Promise<ShownPlan> {
  const found = await eventually(
    `stake ${name} waits for an approval and shows its plan`,
    () => getStake(stack().cluster, name),
    (value) => seen(value).reason === 'ApprovalRequired' && readPlan(value?.status?.plan) !== undefined,
  )
  const plan = readPlan(found?.status?.plan)
  if (plan === undefined) throw new Error('it shows none')
  return plan
}
const requesters = async (name: string) => (await getStake(stack().cluster, name))?.metadata.annotations?.[REQUESTED_BY_ANNOTATION]
const deposits = () => stack().anvil.depositCount()
async function list<T>(plural: string): Promise<readonly T[]> {
  const { code, stdout, stderr } = await stack().cluster.kubectl(['get', plural, '-o', 'json'])
  expect(code, stderr).toBe(0)
  return (JSON.parse(stdout) as { readonly items: readonly T[] }).items
}
const recordsOf = async (name: string) =>
  (await list<StakingTransaction>('stakingtransactions')).filter(({ spec }) => spec.owner.name === name)
const placesOf = async () => (await list('signernonces')).length
/** The real command, by the token of who approves. */
async function approverCommand() {
  const { cluster, dir } = stack()
  const kubeconfig = join(dir, 'approver.kubeconfig')
  writeFileSync(kubeconfig, await cluster.kubeconfigFor({ namespace: NAMESPACE, name: APPROVER }), { mode: 0o600 })
  return (...args: readonly string[]) =>
    runToEnd({
      command: process.execPath,
      args: [kubectlEntry, 'approve', ...args, '--kubeconfig', kubeconfig],
      env: COMPILE_CACHE,
      signal: AbortSignal.timeout(60_000),
    })
}
/** The operator has looked at it again, which takes a poll of the API server's watch. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 2_000))

beforeAll(async () => {
  const { cluster } = stack()
  const approval = {
    by: [
      { group: 'approvers' },
      { user: `system:serviceaccount:${NAMESPACE}:${APPROVER}` },
      { user: 'erin' },
      { user: `system:serviceaccount:${TEAM}:${APPROVER}` },
    ],
    kinds: ['Deposit'],
  }
  await applyAll(cluster, [
    namespace(TEAM),
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: APPROVER, namespace: TEAM } },
    { ...binding('edit', 'tenants'), metadata: { name: 'tenants-edit', namespace: TEAM } },
    ...['edit', 'view'].map((role) => binding(role, 'tenants')),
    binding('approver', 'approvers'),
    account(APPROVER),
    { ...binding('approver', 'sa'), subjects: [{ kind: 'ServiceAccount', name: APPROVER, namespace: NAMESPACE }] },
    // Who may create approvals, and not approve.
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'writes-approvals', namespace: NAMESPACE },
      rules: [{ apiGroups: ['staking.dev'], resources: ['stakingapprovals'], verbs: ['create', 'delete', 'get', 'update', 'patch'] }],
    },
    {
      ...binding('edit', 'tenants-write'),
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'writes-approvals' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'tenants' }],
    },
    signer({ policy: { approval, allowedNamespaces: { names: [NAMESPACE, TEAM] } } }),
  ])
  await eventually(
    'the signer is ready',
    () => getSigner(cluster, SIGNER),
    (value) => seen(value).ready === 'True',
  )
  // A policy is in force a moment after it was made, each by itself, and believed five seconds after that.
  const tried = (user: string, object: object) => as(user, ['create', '--dry-run=server', '-o', 'json', '-f', '-'], object)
  await untilHolds(
    'who asks is recorded',
    () => tried('alice', stake('probe', {}, { annotations: { [REQUESTED_BY_ANNOTATION]: 'bob' } })),
    ({ stdout }) => expect(JSON.parse(stdout)).toMatchObject({ metadata: { annotations: { [REQUESTED_BY_ANNOTATION]: 'alice' } } }),
  )
  const of = { hash: 'ab'.repeat(32), resource: { kind: 'EthereumStake', name: 'probe', uid: randomUUID() } } as const
  await untilHolds(
    'nobody approves who may not',
    () => tried('dave', approvalOf(of, 'dave')),
    ({ stderr }) => expect(stderr).toMatch(/dave may not approve EthereumStake default\/probe/),
  )
  await new Promise((resolve) => setTimeout(resolve, 6_000))
})

test('a stake waits with its plan, is approved by another user with the real command, and is paid once', async () => {
  const { cluster } = stack()
  await createOk('alice', stake('first'))
  const plan = await waiting('first')
  expect(await requesters('first')).toBe('alice')
  expect(await deposits()).toBe(0)
  expect(seen(await getStake(cluster, 'first')).stalled).toBe(false)
  await untilHolds(
    'the metrics count it',
    () => metricsOf(stack()),
    (scraped) => {
      expect(scraped).toMatch(/^staking_operator_waiting_resources\{kind="EthereumStake",reason="ApprovalRequired"\} 1$/m)
      expect(scraped).toMatch(/^staking_operator_oldest_wait_seconds\{kind="EthereumStake",reason="ApprovalRequired"\} [0-9.]+$/m)
    },
  )

  const approve = await approverCommand()
  expect((await approve('first', '--yes')).stderr).toMatch(/^error: this is no terminal/)
  expect((await approve('first', '--yes', '--plan', 'ab'.repeat(32))).stderr).toMatch(/^error: the plan is another now/)
  expect(await deposits()).toBe(0)
  const done = await approve('first', '--kind', 'EthereumStake', '--yes', '--plan', plan.hash)
  expect(done, done.stderr).toMatchObject({ code: 0 })
  for (const line of [
    /amount +32 ETH/,
    /withdrawal address +0x70997970C51812dc3A010C7d01b50e0d17dc79C8 \(Compounding\)/,
    /asked for by +alice/,
    /limits +not known: you may not read StakingSigner \S+ \(a ClusterRole with get on stakingsigners\)/,
    new RegExp(`plan +${plan.hash}`),
    /Approved as system:serviceaccount:default:approver/,
  ])
    expect(done.stdout).toMatch(line)
  await untilPaidOnce(stack(), 'first')
  expect((await recordOf(cluster, 'first')).status?.attempts?.[0]?.approval).toMatchObject({
    planHash: plan.hash,
    approvers: [`system:serviceaccount:${NAMESPACE}:${APPROVER}`],
  })
  expect(await approve('first', '--yes', '--plan', plan.hash)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/nothing of EthereumStake default\/first waits/),
  })
})

async function open(options: PageOptions) {
  const page = await pageCommands(stack().cluster, options, AbortSignal.timeout(60_000))
  return { ...page, [Symbol.dispose]: () => page.stop() }
}

test('as the page has it: an approver is bound, finds what waits, is shown it on a terminal, and says yes', {
  timeout: 120_000,
}, async () => {
  const { cluster, dir } = stack()
  const page = 'docs/how-to/approvals.md'
  using owner = await open({ page, placeholders: { 'treasury-approvers': `system:serviceaccounts:${TEAM}` } })
  await owner.run('Who may approve')
  await createOk('alice', stake('validator-1', {}, { namespace: TEAM, annotations: { [REQUESTED_BY_ANNOTATION]: 'alice' } }))
  await untilShows(cluster, 'validator-1', 'ApprovalRequired', /kubectl staking approve ethereumstake\/validator-1 -n team-a --plan/, {
    space: TEAM,
  })
  const kubeconfig = join(dir, 'team-approver.kubeconfig')
  writeFileSync(kubeconfig, await cluster.kubeconfigFor({ namespace: TEAM, name: APPROVER }), { mode: 0o600 })
  using approver = await open({ page, env: { KUBECONFIG: kubeconfig }, typed: 'yes\n' })
  const printed = await approver.run('Approve')
  expect(printed).toMatch(/validator-1 .*ApprovalRequired[\s\S]*amount +32 ETH[\s\S]*Approved as system:serviceaccount:team-a:approver/)
  // The page has let it read the signers.
  expect(printed).not.toContain('not known')
  await untilPaidOnce(stack(), 'validator-1', { space: TEAM })
})

test('a stake that is only planned shows what it would do and whose approval it needs, is approved, and once applied is paid by that', {
  timeout: 240_000,
}, async () => {
  const { cluster } = stack()
  const [paid, places] = [await deposits(), await placesOf()]
  await createOk('alice', stake('planned', { mode: 'Plan' }))
  await untilShows(cluster, 'planned', 'Planned', /nothing is signed.* asks for the approval of group approvers or user .*:approver/)
  const shown = await getStake(cluster, 'planned')
  const plan = readPlan(shown?.status?.plan)
  if (plan === undefined) throw new Error('it shows no plan')
  expect(plan).toMatchObject({ purpose: 'Deposit', amount: '32000000000', resource: { name: 'planned', uid: shown?.metadata.uid } })
  expect(shown?.status).toMatchObject({ phase: 'Planned', verifiedRoot: expect.stringMatching(/^0x/) })
  expect(seen(shown)).toMatchObject({ ready: 'False', stalled: false })
  using page = await open({ page: 'docs/how-to/plan.md', placeholders: { 'validator-7': 'planned' } })
  expect(JSON.parse(await page.run('A resource that is only planned'))).toMatchObject({ hash: plan.hash })
  await createOk('bob', approvalOf(plan, 'bob'))
  await settled()
  // Approved or not, there is no transaction, no place, nothing in the log.
  const later = await getStake(cluster, 'planned')
  expect([later?.status?.phase, later?.status?.transaction]).toEqual(['Planned', undefined])
  expect(await recordsOf('planned')).toEqual([])
  expect([await deposits(), await placesOf()]).toEqual([paid, places])
  // Nobody waits behind it.
  await createOk('alice', stake('beside-it'))
  await createOk('bob', approvalOf(await waiting('beside-it'), 'bob'))
  await untilPaidOnce(stack(), 'beside-it')
  expect(await recordsOf('planned')).toEqual([])

  const applied = await as('alice', ['patch', 'ethstake', 'planned', '-n', NAMESPACE, '--type=merge', '-p', '{"spec":{"mode":"Apply"}}'])
  expect(applied.code, applied.stderr).toBe(0)
  await untilPaidOnce(stack(), 'planned')
  const [record] = await recordsOf('planned')
  expect(record?.status?.attempts?.[0]?.approval).toMatchObject({ planHash: plan.hash, approvers: ['bob'] })
  expect((await getStake(cluster, 'planned'))?.status?.plan).toBeUndefined()
  expect(await deposits()).toBe(paid + 2)
  // What was sent can't be planned any more.
  const back = await as('alice', ['patch', 'ethstake', 'planned', '-n', NAMESPACE, '--type=merge', '-p', '{"spec":{"mode":"Plan"}}'])
  expect(back.stderr).toMatch(/mode can be set to Plan only while nothing was signed/)
})

describe('the API server refuses', () => {
  let plan: ShownPlan
  beforeAll(async () => {
    await createOk('carol', stake('refusals'))
    plan = await waiting('refusals')
  })

  test.each<[string, string, object, RegExp]>([
    ['an approval in the name of another', 'bob', { approver: 'erin' }, /spec\.approver must be who creates the approval: bob/],
    ['a group that its creator is not in', 'bob', { approverGroups: ['approvers', 'admins'] }, /names a group that its creator is not in/],
    ['whoever says that they have asked', 'carol', { requestedBy: ['carol'] }, /carol has asked for it, and may not approve it/],
    ['whoever has not the verb approve', 'dave', {}, /dave may not approve EthereumStake default\/refusals: that takes the verb approve/],
    ['a hash that is none', 'bob', { planHash: 'abc' }, /planHash/],
    ['a kind that is none', 'bob', { resourceRef: { kind: 'StakingSigner', name: 'x', uid: 'y' } }, /Unsupported value: "StakingSigner"/],
    ['what does not say whether anybody has asked', 'bob', { requestedBy: undefined }, /requestedBy/],
  ])('%s', async (_what, user, change, words) => {
    const { code, stderr } = await create(user, approvalOf(plan, user, change))
    expect(code).not.toBe(0)
    expect(stderr).toMatch(words)
  })

  test('of a hand-over of authorities too: whoever has asked, and who has not the verb approve; another user approves it', async () => {
    const name = 'hand-over'
    await createOk('erin', {
      apiVersion: 'staking.dev/v1alpha1',
      kind: 'SolanaStakeAuthorization',
      metadata: { name, namespace: NAMESPACE },
      spec: { stakeRef: { name: 'solana-1' }, withdrawAuthority: { signer: 'next' } },
    })
    const { stdout } = await as('erin', ['get', 'solauth', name, '-n', NAMESPACE, '-o', 'json'])
    const { metadata } = JSON.parse(stdout) as { readonly metadata: { readonly uid: string; readonly annotations: Record<string, string> } }
    const requestedBy = metadata.annotations[REQUESTED_BY_ANNOTATION]?.split('\n') ?? []
    expect(requestedBy).toEqual(['erin'])
    const resourceRef = { kind: 'SolanaStakeAuthorization', name, uid: metadata.uid }
    const by = (user: string) => create(user, approvalOf(plan, user, { resourceRef, requestedBy }))
    expect(await by('erin')).toMatchObject({ stderr: expect.stringMatching(/erin has asked for it, and may not approve it/) })
    expect(await by('dave')).toMatchObject({
      stderr: expect.stringMatching(/dave may not approve SolanaStakeAuthorization default\/hand-over: that takes the verb approve/),
    })
    expect(await by('bob')).toMatchObject({ code: 0 })
    // Nor does who changes it afterwards go unrecorded.
    await as('alice', ['patch', 'solauth', name, '-n', NAMESPACE, '--type=merge', '-p', '{"spec":{"maxPriorityFeeLamports":"1"}}'])
    const later = await as('erin', ['get', 'solauth', name, '-n', NAMESPACE, '-o', 'json'])
    expect((JSON.parse(later.stdout) as { metadata: typeof metadata }).metadata.annotations[REQUESTED_BY_ANNOTATION]).toBe('erin\nalice')
  })

  test('an amount without quotes, with the name of its field', async () => {
    const { code, stderr } = await create('alice', stake('unquoted', { amountEth: 32 as unknown as string }))
    expect(code).not.toBe(0)
    expect(stderr).toMatch(/spec\.amountEth in body must be of type string/)
  })

  test('an approval that is changed', async () => {
    const object = approvalOf(plan, 'dave')
    const other = approvalOf(plan, 'carol', { planHash: 'ab'.repeat(32) })
    await createOk('carol', other)
    const patched = await as('carol', [
      'patch',
      'stakingapproval',
      other.metadata.name,
      '-n',
      NAMESPACE,
      '--type=merge',
      '-p',
      JSON.stringify({ spec: { planHash: plan.hash } }),
    ])
    expect(patched.code).not.toBe(0)
    expect(patched.stderr).toMatch(/an approval never changes/)
    expect(object.spec.approver).toBe('dave')
  })

  test('what somebody writes about who has asked, at the creation and later', async () => {
    // Where the cluster records it, what is written is put right at once.
    await createOk('alice', stake('pretends', {}, { annotations: { [REQUESTED_BY_ANNOTATION]: 'bob' } }))
    expect(await requesters('pretends')).toBe('alice')
    await as('alice', ['annotate', 'ethereumstake', 'pretends', '-n', NAMESPACE, '--overwrite', `${REQUESTED_BY_ANNOTATION}=bob`])
    await as('alice', ['annotate', 'ethereumstake', 'pretends', '-n', NAMESPACE, `${REQUESTED_BY_ANNOTATION}-`])
    expect(await requesters('pretends')).toBe('alice')
    // By the way of its status, whoever may write that.
    const path = `/apis/staking.dev/v1alpha1/namespaces/${NAMESPACE}/ethereumstakes/pretends/status`
    const body = { metadata: { annotations: { [REQUESTED_BY_ANNOTATION]: 'bob' } }, status: { phase: 'Pending' } }
    const { status } = await stack().cluster.request({ method: 'PATCH', path, body, contentType: 'application/merge-patch+json' })
    expect(status).toBe(200)
    expect(await requesters('pretends')).toBe('alice')
    await deleteStake(stack().cluster, 'pretends')
  })

  test('an impersonation by who may not impersonate', async () => {
    const { cluster } = stack()
    const kubeconfig = join(stack().dir, 'approver.kubeconfig')
    writeFileSync(kubeconfig, await cluster.kubeconfigFor({ namespace: NAMESPACE, name: APPROVER }), { mode: 0o600 })
    const { code, stderr } = await cluster.kubectl(['create', '--validate=false', '-f', '-'], {
      kubeconfig,
      asUser: 'bob',
      asGroups: ['approvers'],
      input: JSON.stringify(approvalOf(plan, 'bob')),
    })
    expect(code).not.toBe(0)
    expect(stderr).toMatch(/cannot impersonate/)
  })
})

interface Bound {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly labels: Readonly<Record<string, string>>; readonly annotations: Readonly<Record<string, string>> }
  readonly spec: object
}
describe('does not count', () => {
  test('an approval for another plan, one that has expired, one by who has asked; and the next one does', {
    timeout: 240_000,
  }, async () => {
    const { cluster } = stack()
    await createOk('carol', stake('uncounted'))
    const plan = await waiting('uncounted')
    const before = await deposits()
    await createOk('bob', approvalOf({ ...plan, hash: 'ab'.repeat(32) }, 'bob'))
    await createOk('bob', approvalOf(plan, 'bob', { expiresAt: new Date(Date.now() - 1_000).toISOString() }))
    await untilShows(cluster, 'uncounted', 'ApprovalRequired', /Not counted: bob \(it has expired\)/)
    // Admission goes by what the approval says of who has asked; the operator by what the resource says.
    await createOk('carol', approvalOf(plan, 'carol'))
    await untilShows(cluster, 'uncounted', 'ApprovalRequired', /carol \(its approver has asked for this\)/)
    expect(await deposits()).toBe(before)
    await createOk('bob', approvalOf(plan, 'bob'))
    await untilPaidOnce(stack(), 'uncounted')
  })

  test('whoever has asked for it: by name, through a group, or as somebody whom they impersonate', async () => {
    const { cluster, dir } = stack()
    const before = await deposits()
    await createOk('erin', stake('own'))
    const own = await waiting('own')
    await createOk('erin', approvalOf(own, 'erin', { approverGroups: [] }))
    await createOk('erin', approvalOf(own, 'erin'))
    await untilShows(
      cluster,
      'own',
      'ApprovalRequired',
      /Not counted: erin \(its approver has asked for this\); erin \(its approver has asked/,
    )

    // One who may impersonate erin has asked as erin: that is who the API server records, and who may not approve.
    const name = 'impersonator'
    await applyAll(cluster, [
      account(name),
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name },
        rules: [
          { apiGroups: [''], resources: ['users'], resourceNames: ['erin'], verbs: ['impersonate'] },
          {
            apiGroups: [''],
            resources: ['groups'],
            resourceNames: ['approvers', 'tenants', 'system:authenticated'],
            verbs: ['impersonate'],
          },
        ],
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
        subjects: [{ kind: 'ServiceAccount', name, namespace: NAMESPACE }],
      },
    ])
    const kubeconfig = join(dir, `${name}.kubeconfig`)
    writeFileSync(kubeconfig, await cluster.kubeconfigFor({ namespace: NAMESPACE, name }), { mode: 0o600 })
    const asErin = (object: object) =>
      cluster.kubectl(['create', '-f', '-'], {
        kubeconfig,
        asUser: 'erin',
        asGroups: ['approvers', 'tenants', 'system:authenticated'],
        input: JSON.stringify(object),
      })
    const asked = await eventually(
      'the impersonator may',
      () => asErin(stake('borrowed')),
      ({ code }) => code === 0,
    )
    expect(asked.code, asked.stderr).toBe(0)
    const borrowed = await waiting('borrowed')
    expect(await requesters('borrowed')).toBe('erin')
    const approved = await asErin(approvalOf(borrowed, 'erin'))
    expect(approved.code, approved.stderr).toBe(0)
    await untilShows(cluster, 'borrowed', 'ApprovalRequired', /Not counted: erin \(its approver has asked for this\)/)
    expect(await deposits()).toBe(before)
    for (const one of ['own', 'borrowed']) await deleteStake(cluster, one)
  })

  test('an approval of a resource that was deleted and created anew', async () => {
    const { cluster } = stack()
    await createOk('alice', stake('again'))
    const before = await waiting('again')
    const count = await deposits()
    await deleteStake(cluster, 'again')
    await untilGone(cluster, 'again')
    await createOk('bob', approvalOf(before, 'bob'))
    await createOk('alice', stake('again'))
    const after = await waiting('again')
    expect(after.hash).not.toBe(before.hash)
    await createOk('bob', approvalOf(after, 'bob', { resourceRef: { kind: 'EthereumStake', name: 'again', uid: before.resource.uid } }))
    await untilShows(cluster, 'again', 'ApprovalRequired', /Not counted: bob \(it is for a resource of this name that is gone\)/)
    expect(await deposits()).toBe(count)
    await deleteStake(cluster, 'again')
  })

  test('whoever changed what Argo CD has created, nor Argo CD itself; somebody else does', async () => {
    const { cluster } = stack()
    await createOk(ARGO, stake('from-git'))
    await waiting('from-git')
    expect(await requesters('from-git')).toBe(ARGO)
    const patched = await as('erin', [
      'patch',
      'ethereumstake',
      'from-git',
      '-n',
      NAMESPACE,
      '--type=merge',
      '-p',
      '{"spec":{"maxFeePerGasGwei":"70"}}',
    ])
    expect(patched.code, patched.stderr).toBe(0)
    expect(await requesters('from-git')).toBe(`${ARGO}\nerin`)
    const plan = await eventually(
      'the plan has the new cap',
      () => waiting('from-git'),
      ({ maxFeePerGasWei }) => maxFeePerGasWei === '70000000000',
    )
    const argo = await create(ARGO, approvalOf(plan, ARGO, { approverGroups: [] }))
    expect(argo.stderr).toMatch(/may not approve EthereumStake default\/from-git/)
    await createOk('erin', approvalOf(plan, 'erin'))
    await untilShows(cluster, 'from-git', 'ApprovalRequired', /erin \(its approver has asked for this\)/)
    await createOk('bob', approvalOf(plan, 'bob'))
    await untilPaidOnce(stack(), 'from-git')
  })

  test('any approval, while a policy of the chart is not bound, nor afterwards one from then', async () => {
    const { cluster } = stack()
    await createOk('alice', stake('unproven'))
    const plan = await waiting('unproven')
    const count = await deposits()
    const bound = await cluster.kubectlOk(['get', 'validatingadmissionpolicybinding', approvalPolicy.name, '-o', 'json'])
    await cluster.kubectlOk(['delete', 'validatingadmissionpolicybinding', approvalPolicy.name])
    // Nothing keeps her from approving in the name of another now.
    await eventually(
      'the API server has forgotten the policy',
      () => create('dave', approvalOf(plan, 'bob', { approver: 'bob' })),
      ({ code }) => code === 0,
    )
    await untilShows(cluster, 'unproven', 'ApprovalUnproven', /there is no ValidatingAdmissionPolicyBinding approvals\.staking\.dev/)
    const { apiVersion, kind, spec, metadata } = JSON.parse(bound) as Bound
    // As it was, by Helm's own marks too.
    const { labels, annotations } = metadata
    await applyAll(cluster, [{ apiVersion, kind, metadata: { name: approvalPolicy.name, labels, annotations }, spec }])
    await untilShows(cluster, 'unproven', 'ApprovalRequired', /bob \(it is older than the admission policies that prove who made it\)/)
    expect(await deposits()).toBe(count)
    await deleteStake(cluster, 'unproven')
  })

  test('one that was forged while a binding was loosened in place, which is put right', { timeout: 240_000 }, async () => {
    const { cluster } = stack()
    await createOk('alice', stake('loosened'))
    const plan = await waiting('loosened')
    const count = await deposits()
    const actions = (validationActions: readonly string[]) =>
      cluster.kubectlOk([
        ...['patch', 'validatingadmissionpolicybinding', approvalPolicy.name, '--type=merge', '-p'],
        JSON.stringify({ spec: { validationActions } }),
      ])
    await actions(['Audit'])
    const forge = () => create('dave', approvalOf(plan, 'bob', { approver: 'bob' }))
    await eventually('the API server only audits', forge, ({ code }) => code === 0)
    await untilShows(cluster, 'loosened', 'ApprovalUnproven', /does not have everything denied that the policy refuses/)
    await actions(['Deny'])
    await untilShows(cluster, 'loosened', 'ApprovalRequired', /bob \(it is older than the admission policies that prove who made it\)/)
    expect(await deposits()).toBe(count)
    // And one from afterwards counts.
    await eventually('the API server denies again', forge, ({ code }) => code !== 0)
    await new Promise((resolve) => setTimeout(resolve, 6_000))
    await createOk('bob', approvalOf(plan, 'bob'))
    await untilPaidOnce(stack(), 'loosened')
  })
})

describe('a signer is refused with a word', () => {
  const by = [{ group: 'approvers' }]
  test.each<[string, object, RegExp]>([
    ['nobody', { by: [] }, /policy\.approval\.by/],
    ['an entry that is neither user nor group', { by: [{}] }, /write either group or user/],
    ['an entry that is both', { by: [{ user: 'a', group: 'b' }] }, /write either group or user/],
    ['somebody twice', { by: [...by, ...by] }, /names somebody twice/],
    ['somebody twice, in other letters', { by: [{ user: 'carol@example.com' }, { user: 'Carol@example.com' }] }, /names somebody twice/],
    ['everybody', { by: [{ group: 'system:authenticated' }] }, /everybody is in this group/],
    ['every pod of the cluster', { by: [{ group: 'system:serviceaccounts' }] }, /everybody is in this group, or every pod/],
    ['more than the users that it names', { by: [{ user: 'bob' }], count: 2 }, /is more than the users that by names/],
    ['SOL', { by, aboveSol: '1' }, /of an Ethereum signer it is in ETH/],
    ['wei', { by, aboveEth: '32000000000000000000' }, /must be a plain decimal number of ETH/],
    ['what a Solana signer signs', { by, kinds: ['SolanaStake'] }, /an Ethereum signer signs Deposit, Exit and Withdrawal/],
    ['a kind twice', { by, kinds: ['Exit', 'Exit'] }, /Duplicate value/],
    ['a time without a unit', { by, validFor: '3600' }, /must be a whole number of seconds, minutes, hours or days/],
    ['a count of none', { by, count: 0 }, /greater than or equal to 1/],
  ])('that names %s', async (_what, approval, words) => {
    const object = signer({ policy: { approval } }, 'refused')
    const { code, stderr } = await stack().cluster.kubectl(['apply', '--dry-run=server', '-f', '-'], { input: JSON.stringify(object) })
    expect(code).not.toBe(0)
    expect(stderr).toMatch(words)
  })
})

test('kinds that no policy names need no approval', async () => {
  const pubkey = `0x${'ab'.repeat(48)}` as const
  await createOk('alice', validatorExit('no-approval', { network: NETWORK, pubkey }))
  const { stdout } = await as('alice', ['get', 'validatorexit', 'no-approval', '-n', NAMESPACE, '-o', 'json'])
  expect((JSON.parse(stdout) as { metadata: { annotations: Record<string, string> } }).metadata.annotations[REQUESTED_BY_ANNOTATION]).toBe(
    'alice',
  )
})

describe('on a cluster without MutatingAdmissionPolicy, as Kubernetes 1.33 is', () => {
  beforeAll(async () => {
    await stack().cluster.restartApiServer(['--emulated-version=1.33'])
  })

  test('the chart brings none', async () => {
    const helm = await startHelm(stack().cluster.adminKubeconfigPath, AbortSignal.timeout(120_000))
    try {
      const values = helm.valuesFile({
        networks: [{ name: 'hoodi', chain: 'Ethereum', rpcUrls: ['http://127.0.0.1:1'] }],
        stakingApi: { url: 'http://127.0.0.1:1' },
      })
      const release = ['template', 'staking-operator', chart, '--namespace', 'staking-system', '--values', values]
      const rendered = await helm.ok([...release, '--dry-run=server'])
      expect(rendered).toContain('kind: ValidatingAdmissionPolicy\n')
      expect(rendered).not.toContain('kind: MutatingAdmissionPolicy')
    } finally {
      helm.stop()
    }
  })

  test('what does not say who has asked is not approved, whoever says yes', async () => {
    const { cluster } = stack()
    await createOk('alice', stake('unrecorded'))
    const shown = await untilShows(cluster, 'unrecorded', 'ApprovalUnproven', /requested-by/)
    const plan = readPlan(shown.status?.plan)
    if (plan === undefined) throw new Error('it shows no plan')
    expect(await requesters('unrecorded')).toBeUndefined()
    const count = await deposits()
    await createOk('bob', approvalOf(plan, 'bob'))
    await cluster.kubectlOk(['annotate', 'ethereumstake', 'unrecorded', '-n', NAMESPACE, `${RECONCILE_ANNOTATION}=now`])
    await eventually(
      'it was looked at again',
      () => getStake(cluster, 'unrecorded'),
      (value) => value?.status?.lastHandledReconcileAt === 'now',
    )
    await untilShows(cluster, 'unrecorded', 'ApprovalUnproven', /requested-by/)
    expect(await deposits()).toBe(count)
    // Neither she nor anybody else can say so afterwards.
    for (const user of ['alice', 'dave']) {
      const late = await as(user, ['annotate', 'ethereumstake', 'unrecorded', '-n', NAMESPACE, `${REQUESTED_BY_ANNOTATION}=${user}`])
      expect(late.stderr).toMatch(/It must be left out, since it was when this was created/)
    }
    await deleteStake(cluster, 'unrecorded')
  })

  test('unless the policy of its signer lets that go: then by the command', async () => {
    const { cluster } = stack()
    const lets = (allowUnrecorded: boolean) =>
      cluster.kubectlOk([
        ...['patch', 'stakingsigner', SIGNER, '--type=merge', '-p'],
        JSON.stringify({ spec: { policy: { approval: { allowUnrecorded } } } }),
      ])
    await lets(true)
    await createOk('alice', stake('let-go'))
    const plan = await waiting('let-go')
    expect(await requesters('let-go')).toBeUndefined()
    const done = await (await approverCommand())('ethstake/let-go', '--yes', '--plan', plan.hash)
    expect(done, done.stderr).toMatchObject({ code: 0 })
    expect(done.stdout).toMatch(/asked for by +unknown/)
    await untilPaidOnce(stack(), 'let-go')
    await lets(false)
  })

  test('who has asked is written by whoever asks, about nobody else, and approved by another user', async () => {
    const { cluster } = stack()
    const asked = (by: string) => stake('recorded', {}, { annotations: { [REQUESTED_BY_ANNOTATION]: by } })
    expect((await create('alice', asked('bob'))).stderr).toMatch(/It must be exactly: alice/)
    await createOk('alice', asked('alice'))
    const plan = await waiting('recorded')
    // A change of the spec adds a line, or is refused.
    const patch = (annotations: object) =>
      as('erin', [
        ...['patch', 'ethereumstake', 'recorded', '-n', NAMESPACE, '--type=merge', '-p'],
        JSON.stringify({ metadata: { annotations }, spec: { maxFeePerGasGwei: '70' } }),
      ])
    expect((await patch({})).stderr).toMatch(/It must be exactly: alice, then on a line of its own erin/)
    expect((await patch({ [REQUESTED_BY_ANNOTATION]: 'alice\nerin' })).code).toBe(0)
    const changed = await eventually(
      'the plan has the new cap',
      () => waiting('recorded'),
      ({ maxFeePerGasWei }) => maxFeePerGasWei === '70000000000',
    )
    expect(changed.hash).not.toBe(plan.hash)
    await createOk('erin', approvalOf(changed, 'erin'))
    await untilShows(cluster, 'recorded', 'ApprovalRequired', /erin \(its approver has asked for this\)/)
    await createOk('bob', approvalOf(changed, 'bob'))
    await untilPaidOnce(stack(), 'recorded')
  })

  test('it is stopped in a hurry by the command of the how-to, without a line of its own; to change it, or to let it go on, takes one', async () => {
    const { cluster } = stack()
    await createOk('alice', stake('stopped', {}, { annotations: { [REQUESTED_BY_ANNOTATION]: 'alice' } }))
    const before = await waiting('stopped')
    const patch = (change: object) =>
      as('erin', ['patch', 'ethstake', 'stopped', '-n', NAMESPACE, '--type=merge', '-p', JSON.stringify(change)])
    const refused = /It must be exactly: alice, then on a line of its own erin/
    expect((await patch({ spec: { suspend: true, maxFeePerGasGwei: '70' } })).stderr).toMatch(refused)
    expect((await patch({ spec: { suspend: false } })).stderr).toMatch(refused)
    const stopped = await patch({ spec: { suspend: true } })
    expect(stopped.code, stopped.stderr).toBe(0)
    expect(await requesters('stopped')).toBe('alice')
    await untilShows(cluster, 'stopped', 'Suspended', /./)
    // Nor does a stop rewrite what is recorded.
    expect((await patch({ metadata: { annotations: { [REQUESTED_BY_ANNOTATION]: null } } })).stderr).toMatch(/It must be exactly: alice/)
    expect((await patch({ spec: { maxFeePerGasGwei: '70' } })).stderr).toMatch(refused)
    for (const suspend of [false, null]) expect((await patch({ spec: { suspend } })).stderr).toMatch(refused)
    const resumed = await patch({ metadata: { annotations: { [REQUESTED_BY_ANNOTATION]: 'alice\nerin' } }, spec: { suspend: false } })
    expect(resumed.code, resumed.stderr).toBe(0)
    expect((await waiting('stopped')).hash).toBe(before.hash)
    await deleteStake(cluster, 'stopped')
  })
})
