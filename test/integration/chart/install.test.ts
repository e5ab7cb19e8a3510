import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { operatorCommand } from '../../../src/cli/operator-command.ts'
import { chart, type Helm, startHelm } from '../../cluster/chart.ts'
import { runToEnd } from '../../cluster/run.ts'
import { applyAll, eventually, getSigner, getStake, namespace, seen, signer, stake } from '../../stack/resources.ts'
import { mainEntry } from '../../stack/stack.ts'
import { untilPaidOnce, useStack } from '../operator/harness.ts'
import { matrix } from './harness.ts'

/** The chart, installed by a real Helm on a real API server; the operator runs under the ServiceAccount and with the rights that come of it. */
let helm: Helm
const stopping = new AbortController()
const RELEASE = ['staking-operator', chart, '--namespace', 'staking-system']
const values = (change: object = {}) =>
  helm.valuesFile({ ...matrix[0]?.values, signers: [{ keyName: 'treasury', secretName: 'treasury-key' }], ...change })

const stack = useStack({
  controllerManager: true,
  startOperator: false,
  async install(cluster) {
    helm = await startHelm(cluster.adminKubeconfigPath, stopping.signal)
    await helm.ok(['install', ...RELEASE, '--create-namespace', '--values', values()])
    return { namespace: 'staking-system', name: 'staking-operator' }
  },
})
afterAll(() => {
  stopping.abort()
  helm?.stop()
})

interface Deployed {
  readonly spec: { readonly template: { readonly spec: { readonly containers: readonly [{ readonly args: readonly string[] }] } } }
}
const deployed = async (): Promise<Deployed> =>
  JSON.parse(await stack().cluster.kubectlOk(['-n', 'staking-system', 'get', 'deployment', 'staking-operator', '-o', 'json'])) as Deployed
const definitions = async (): Promise<readonly string[]> =>
  (await stack().cluster.kubectlOk(['get', 'crd', '-o', 'name'])).split('\n').filter((name) => name.endsWith('.staking.dev'))

describe.each(matrix)('$what', ({ values: given }) => {
  test('each object is what the API server takes', async () => {
    const objects = (await helm.render(given))
      .filter(({ apiVersion }) => !apiVersion.startsWith('monitoring.coreos.com'))
      // A dry run makes no ServiceAccount, and a pod is refused without its own.
      .map((object) =>
        object.kind === 'Pod' ? { ...object, spec: { ...(object.spec as object), serviceAccountName: 'default' } } : object,
      )
    const { code, stderr } = await stack().cluster.kubectl(['apply', '--dry-run=server', '-f', '-'], {
      input: objects.map((object) => JSON.stringify(object)).join('\n---\n'),
    })
    expect(code, stderr).toBe(0)
  })
})

test('the rendered flags are those that the operator has', async () => {
  const { args } = (await deployed()).spec.template.spec.containers[0]
  expect(args[0]).toBe('operator')
  expect(
    operatorCommand('0')
      .exitOverride()
      .parseOptions([...args.slice(1)]).unknown,
  ).toEqual([])
})

test('helm test: the doctor of its pod finds nothing wrong, with the rights of the installed ServiceAccount and no more', async () => {
  const { cluster, operator, networksFile, keysDir, operatorKubeconfig } = stack()
  await operator.start()
  await applyAll(cluster, [namespace('team-a'), signer({ policy: { allowedNamespaces: { names: ['default'] } } })])
  await eventually(
    'the signer is ready',
    () => getSigner(cluster),
    (value) => seen(value).ready === 'True',
  )
  const hooks = parseAllDocuments(await helm.ok(['get', 'hooks', 'staking-operator', '--namespace', 'staking-system']))
  const pods = hooks.map((each) => each.toJS() as TestPod | null).filter((each) => each?.kind === 'Pod')
  expect(pods.map((pod) => pod?.metadata.annotations['helm.sh/hook'])).toEqual(['test'])
  const { serviceAccountName, containers } = pods[0]?.spec ?? { serviceAccountName: '', containers: [] }
  expect(serviceAccountName).toBe('staking-operator')
  // There is no kubelet: its command is run by hand, with the files and the token that the pod would have.
  const mounted: Readonly<Record<string, string>> = {
    '--networks=/etc/staking-operator/networks.yaml': `--networks=${networksFile}`,
    '--keys-dir=/var/run/staking/keys': `--keys-dir=${keysDir}`,
  }
  const args = (containers[0]?.args ?? []).map((arg) => mounted[arg] ?? arg)
  expect(args.filter((arg) => Object.keys(mounted).includes(arg))).toEqual([])
  const { code, stdout, stderr } = await runToEnd({
    command: process.execPath,
    args: [mainEntry, ...args, '--kubeconfig', operatorKubeconfig, '--permissions'],
    env: { POD_NAMESPACE: 'staking-system' },
    signal: AbortSignal.timeout(60_000),
  })
  expect(stdout, stderr).toMatch(/^ok +permission: RBAC/m)
  expect(stdout).not.toMatch(/^failed/m)
  expect(code).toBe(0)
})
interface TestPod {
  readonly kind: string
  readonly metadata: { readonly annotations: Readonly<Record<string, string>> }
  readonly spec: { readonly serviceAccountName: string; readonly containers: readonly { readonly args: readonly string[] }[] }
}

test('from the installation to a stake, an upgrade, a step back, and the end of the release: what holds money stays', {
  timeout: 300_000,
}, async () => {
  const { cluster, operator } = stack()
  await operator.start()
  await applyAll(cluster, [namespace('team-a'), signer({ policy: { allowedNamespaces: { names: ['default'] } } })])
  await eventually(
    'the signer is ready',
    () => getSigner(cluster),
    (value) => seen(value).ready === 'True',
  )
  await applyAll(cluster, [stake('one')])
  const paid = await untilPaidOnce(stack(), 'one')

  // Helm asks the cluster: a second operator would lead as well, in a namespace of its own.
  const second = await helm.run([
    ...['install', 'another', chart, '--namespace', 'elsewhere', '--create-namespace'],
    ...['--values', values({ crds: { enabled: false, protect: false }, approvals: { policies: false } })],
  ])
  expect(second.code).not.toBe(0)
  expect(second.stderr).toMatch(/has an operator already: release staking-operator in namespace staking-system/)

  await helm.ok(['upgrade', ...RELEASE, '--values', values({ workers: 8, commonLabels: { 'example.com/team': 'staking' } })])
  expect((await deployed()).spec.template.spec.containers[0].args).toContain('--workers=8')
  await operator.stop()
  await operator.start()
  await applyAll(cluster, [stake('two')])
  await untilPaidOnce(stack(), 'two')

  await helm.ok(['rollback', 'staking-operator', '1', '--namespace', 'staking-system'])
  expect((await deployed()).spec.template.spec.containers[0].args).toContain('--workers=16')
  await applyAll(cluster, [stake('three')])
  await untilPaidOnce(stack(), 'three')

  await operator.stop()
  await helm.ok(['uninstall', 'staking-operator', '--namespace', 'staking-system'])
  expect(await definitions()).toHaveLength(9)
  expect((await getStake(cluster, 'one'))?.status?.transaction?.minedHash).toBe(paid.status?.transaction?.minedHash)

  // Installed again, it goes on with what is there.
  await helm.ok(['install', ...RELEASE, '--values', values()])
  // Another ServiceAccount of the same name, and so another token, as its pods get it.
  writeFileSync(stack().operatorKubeconfig, await cluster.kubeconfigFor({ namespace: 'staking-system', name: 'staking-operator' }))
  await operator.start()
  await applyAll(cluster, [stake('four')])
  await untilPaidOnce(stack(), 'four')
  expect((await getStake(cluster, 'one'))?.status?.transaction?.minedHash).toBe(paid.status?.transaction?.minedHash)
})

test('what Argo CD is told of the kinds goes into its ConfigMap beside what is there', async () => {
  const { kubectlOk } = stack().cluster
  await kubectlOk(['create', 'namespace', 'argocd'])
  await kubectlOk(['-n', 'argocd', 'create', 'configmap', 'argocd-cm', '--from-literal=url=https://argocd.example'])
  await kubectlOk(['-n', 'argocd', 'patch', 'configmap', 'argocd-cm', '--patch-file', join(chart, '../../examples/argocd/argocd-cm.yaml')])
  const { data } = JSON.parse(await kubectlOk(['-n', 'argocd', 'get', 'configmap', 'argocd-cm', '-o', 'json'])) as {
    data: Record<string, string>
  }
  expect(Object.keys(data)).toContain('url')
  expect(data['resource.customizations.health.staking.dev_EthereumStake']).toContain('return health')
})

test('whoever has rights in one namespace alone installs it there, with roles and definitions that others have made', async () => {
  const { cluster, dir } = stack()
  await cluster.kubectlOk(['create', 'namespace', 'limited'])
  await cluster.kubectlOk(['create', 'serviceaccount', 'deployer', '-n', 'limited'])
  await cluster.kubectlOk([
    'create',
    'rolebinding',
    'deployer',
    '--clusterrole=admin',
    '--serviceaccount=limited:deployer',
    '-n',
    'limited',
  ])
  const kubeconfig = join(dir, 'deployer.kubeconfig')
  writeFileSync(kubeconfig, await cluster.kubeconfigFor({ namespace: 'limited', name: 'deployer' }), { mode: 0o600 })
  // The API server hears of the rights a moment after they were given.
  await eventually(
    'it may look',
    () => cluster.kubectl(['auth', 'can-i', 'list', 'configmaps', '-n', 'limited'], { kubeconfig }),
    ({ code }) => code === 0,
  )
  const theirs = await startHelm(kubeconfig, stopping.signal)
  try {
    const given = { crds: { enabled: false, protect: false }, approvals: { policies: false }, rbac: { create: false } }
    const rendered = await theirs.run(['template', 'mine', chart, '-n', 'limited', '--dry-run=server', '--values', values(given)])
    expect(rendered, rendered.stderr).toMatchObject({ code: 0 })
    expect(rendered.stdout).toContain('kind: Deployment')
  } finally {
    theirs.stop()
  }
})

test('a definition that holds resources is not deleted by a slip of the hand', async () => {
  const { cluster } = stack()
  // A policy is in force a moment after it was made.
  const refused = await eventually(
    'the policy is in force',
    () => cluster.kubectl(['delete', 'crd', 'validatorexits.staking.dev', '--dry-run=server']),
    ({ code }) => code !== 0,
  )
  expect(refused.stderr).toMatch(
    /every resource of it is deleted.*kubectl annotate crd validatorexits\.staking\.dev staking\.dev\/allow-delete=true/,
  )
  await cluster.kubectlOk(['annotate', 'crd', 'validatorexits.staking.dev', 'staking.dev/allow-delete=true'])
  await cluster.kubectlOk(['delete', 'crd', 'validatorexits.staking.dev', '--dry-run=server'])
})

test('who may edit a namespace may make stakes in it, and sees nothing of signers and of the log', async () => {
  const { cluster } = stack()
  await cluster.kubectlOk(['create', 'rolebinding', 'editors', '--clusterrole=edit', '--user=dana', '-n', 'default'])
  const may = async (...what: readonly string[]): Promise<string> =>
    (await cluster.kubectl(['auth', 'can-i', ...what, '-n', 'default'], { asUser: 'dana' })).stdout.trim()
  // The roles are put together by the controller manager.
  await eventually(
    'the roles are aggregated',
    () =>
      Promise.all([
        may('create', 'ethereumstakes.staking.dev'),
        may('delete', 'solanastakes.staking.dev'),
        may('list', 'validatorexits.staking.dev'),
      ]),
    (answers) => answers.every((answer) => answer === 'yes'),
  )
  for (const what of [
    ['get', 'stakingtransactions.staking.dev'],
    ['list', 'signernonces.staking.dev'],
    ['get', 'stakingsigners.staking.dev'],
    ['patch', 'ethereumstakes.staking.dev', '--subresource=status'],
  ])
    expect(await may(...what), what.join(' ')).toBe('no')
})

test('the service goes from a PostgreSQL of its own to another, and back', async () => {
  const strategies: string[] = []
  // A server's Deployment rolls, and the API server fills in how; with that, it refuses Recreate.
  for (const given of [matrix[2], matrix[1], matrix[2]]) {
    await helm.ok(['upgrade', ...RELEASE, '--values', helm.valuesFile(given?.values ?? {})])
    strategies.push(
      await stack().cluster.kubectlOk([
        ...['-n', 'staking-system', 'get', 'deployment', 'staking-operator-service', '-o', 'jsonpath={.spec.strategy.type}'],
      ]),
    )
  }
  expect(strategies).toEqual(['RollingUpdate', 'Recreate', 'RollingUpdate'])
})

test('definitions go with the release once nothing of an earlier one protects them any more', async () => {
  const { cluster } = stack()
  const loose = values({ crds: { keep: false, protect: false } })
  const { code, stderr } = await helm.run(['upgrade', ...RELEASE, '--values', loose])
  expect(code).not.toBe(0)
  const [, command = ''] = /Delete it first: kubectl (delete \S+ staking-operator-definitions)/.exec(stderr) ?? []
  await cluster.kubectlOk(command.split(' '))
  await helm.ok(['upgrade', ...RELEASE, '--values', loose])
  // Those that hold resources go once those are gone, which is not for Helm to wait for.
  await helm.ok(['uninstall', 'staking-operator', '--namespace', 'staking-system', '--wait=hookOnly'])
  await eventually('the definitions are gone, or going', definitionsThatStay, (names) => names.length === 0)
})
const definitionsThatStay = async (): Promise<readonly string[]> => {
  const { items } = JSON.parse(await stack().cluster.kubectlOk(['get', 'crd', '-o', 'json'])) as {
    items: { metadata: { name: string; deletionTimestamp?: string } }[]
  }
  return items
    .filter(({ metadata }) => metadata.name.endsWith('.staking.dev') && metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.name)
}
