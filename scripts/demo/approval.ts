import { readPlan } from '../../src/resources/plan.ts'
import { runToEnd } from '../../test/cluster/run.ts'
import { kubectlEntry } from '../../test/stack/stack.ts'
import { isReady, named, nameOf, readyReason } from './resources.ts'
import type { Scene } from './scene.ts'

const NAMESPACE = 'team-a'
/** Two ServiceAccounts: one asks, the other approves. Neither may do both. */
const ASKS = 'staking-requester'
const APPROVES = 'staking-approver'
const STAKE = 'needs-approval'
const SIGNER = 'treasury'

const account = (name: string, ...roles: readonly string[]) => [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: NAMESPACE } },
  ...roles.map((role) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: role, namespace: NAMESPACE },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', name, namespace: NAMESPACE }],
  })),
]

/**
 * A stake that its signer's policy wants approved waits; who has asked for it may not approve it, and another user does, by `kubectl staking approve`.
 * @returns what should hold and doesn't
 */
export async function playApproval(
  { stack, say, follow }: Scene,
  kubeconfigFile: (name: string, content: string) => string,
): Promise<readonly string[]> {
  const { cluster } = stack
  say(`\nApprovals: StakingSigner ${SIGNER} asks for one from now on`)
  const apply = (objects: readonly object[]) => cluster.apply(objects.map((object) => JSON.stringify(object)).join('\n---\n'))
  await apply([...account(ASKS, 'staking-operator-edit', 'staking-operator-view'), ...account(APPROVES, 'staking-operator-approver')])
  const by = [{ user: `system:serviceaccount:${NAMESPACE}:${APPROVES}` }]
  await cluster.kubectlOk([
    'patch',
    'stakingsigner',
    SIGNER,
    '--type=merge',
    '-p',
    JSON.stringify({ spec: { policy: { approval: { by, kinds: ['Deposit'] } } } }),
  ])
  const asks = kubeconfigFile('requester', await cluster.kubeconfigFor({ namespace: NAMESPACE, name: ASKS }))
  const approves = kubeconfigFile('approver', await cluster.kubeconfigFor({ namespace: NAMESPACE, name: APPROVES }))
  const example = JSON.parse(await cluster.kubectlOk(['get', 'ethereumstakes', '-n', NAMESPACE, '-o', 'json'])) as {
    items: readonly { apiVersion: string; kind: string; spec: { signer: string; adopt?: unknown } }[]
  }
  const of = example.items.find(({ spec }) => spec.signer === SIGNER)
  if (of === undefined) return [`no example in ${NAMESPACE} is paid by ${SIGNER}`]
  const object = { apiVersion: of.apiVersion, kind: of.kind, metadata: { name: STAKE, namespace: NAMESPACE }, spec: of.spec }
  await cluster.kubectlOk(['create', '-f', '-'], { kubeconfig: asks, input: JSON.stringify(object) })

  const name = `${NAMESPACE}/${STAKE}`
  const own = (resources: Parameters<Parameters<typeof follow>[0]>[0]) => resources.stakes.find((stake) => nameOf(stake) === name)
  const waits = await follow((resources) => {
    const stake = own(resources)
    return stake !== undefined && readyReason(stake) === 'ApprovalRequired' && readPlan(stake.status?.plan) !== undefined
  })
  const plan = readPlan(named(waits.stakes, name).status?.plan)
  if (plan === undefined) return [`${name} does not wait for an approval: ${readyReason(named(waits.stakes, name))}`]

  const approve = (kubeconfig: string) =>
    runToEnd({
      command: process.execPath,
      args: [kubectlEntry, 'approve', STAKE, '-n', NAMESPACE, '--plan', plan.hash, '--yes', '--kubeconfig', kubeconfig],
      env: {},
      signal: AbortSignal.timeout(60_000),
    })
  const refused = await approve(asks)
  say(`\n$ kubectl staking approve ${STAKE} -n ${NAMESPACE}   # as ${ASKS}, who has asked for it\n${refused.stderr.trim()}`)
  const done = await approve(approves)
  say(`\n$ kubectl staking approve ${STAKE} -n ${NAMESPACE}   # as ${APPROVES}\n${done.stdout.trim() || done.stderr.trim()}\n`)
  const paid = await follow((resources) => {
    const stake = own(resources)
    return stake !== undefined && isReady(stake)
  })
  // Whoever looks around in a demo that is kept stakes with this key too.
  await cluster.kubectlOk(['patch', 'stakingsigner', SIGNER, '--type=merge', '-p', '{"spec":{"policy":{"approval":null}}}'])
  return [
    ...(refused.code === 0 ? [`${ASKS} has asked for ${name}, and could approve it`] : []),
    ...(done.code === 0 ? [] : [`${APPROVES} could not approve ${name}: ${done.stderr.trim()}`]),
    ...(isReady(named(paid.stakes, name)) ? [] : [`${name} was approved, and is not ready: ${readyReason(named(paid.stakes, name))}`]),
  ]
}
