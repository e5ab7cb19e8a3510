import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Commands, pageCommands } from '../../cluster/page-commands.ts'
import { applyAll, eventually, PAYER, WITHDRAWAL_ADDRESS } from '../../stack/resources.ts'
import { NETWORK } from '../../stack/stack.ts'
import { defineMonitoring } from '../chart/monitoring-definitions.ts'
import { untilPaidOnce, useStack } from '../operator/harness.ts'

/**
 * docs/how-to/first-stake-on-hoodi.md from its first command to a stake that is Ready, on the tests' own chain in place of hoodi: what a reader fills in is filled
 * in, and the operator and the service run as processes in place of pods.
 */
const page = 'docs/how-to/first-stake-on-hoodi.md'
/** Of the well-known account that PAYER is. */
const TEST_KEY = 'ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const dir = mkdtempSync(join(tmpdir(), 'first-stake-'))
const placeholders = {
  REGISTRY: 'registry.example',
  'RPC-URL-1': 'https://rpc-1.example',
  'RPC-URL-2': 'https://rpc-2.example',
  'BEACON-API-URL': 'https://beacon.example',
  'ADDRESS-OF-THE-SIGNER': PAYER,
  'WITHDRAWAL-ADDRESS': WITHDRAWAL_ADDRESS,
  'network: hoodi': `network: ${NETWORK}`,
}
const stopping = new AbortController()
const opened: Commands[] = []
/** Who reads the page from its first line to its last. */
const reader = (): Commands => opened[0] ?? expect.fail('nothing was installed')
const values = () => parse(readFileSync(reader().save('Values', 'values.yaml'), 'utf8'))
const stack = useStack({
  dir,
  async install(cluster) {
    const commands = await pageCommands(cluster, { page, placeholders, pod: { serviceConfig: join(dir, 'service.yaml') } }, stopping.signal)
    opened.push(commands)
    commands.file('treasury.hex', TEST_KEY)
    await commands.run('Secrets')
    commands.save('Values', 'values.yaml')
    await commands.run('Install')
    return { namespace: 'staking-system', name: 'staking-operator' }
  },
})
afterAll(() => {
  stopping.abort()
  for (const each of opened) each.stop()
  rmSync(dir, { recursive: true, force: true })
})

test('the page leads from an empty cluster to a stake, and to its alerts', { timeout: 300_000 }, async () => {
  const { cluster, anvil } = stack()
  const key = await cluster.kubectlOk(['-n', 'staking-system', 'get', 'secret', 'staking-api-key', '-o', 'jsonpath={.data.key}'])
  // One line: the key and nothing beside it, as the operator reads it.
  expect(Buffer.from(key, 'base64').toString().trim()).toMatch(/^\S+$/)

  reader().save('The signer', 'signer.yaml')
  await reader().run('The signer')
  // "As soon as the operator has read it."
  await eventually(
    'the signer shows its balance',
    () => reader().run('Fund it'),
    (text) => /treasury .*ETH on local/.test(text),
  )

  reader().save('Stake', 'stake.yaml')
  await reader().run('Stake')
  const stake = await untilPaidOnce(stack(), 'validator-1', { space: 'staking' })
  expect(await anvil.depositCount()).toBe(1)
  const watched = await reader().run('Watch it')
  expect(watched).toContain(stake.status?.transaction?.minedHash)
  expect(watched).toMatch(/Deposit .*Landed/)
})

test('the values that switch on the alerts do, by an upgrade', async () => {
  const { cluster } = stack()
  await defineMonitoring(cluster)
  const alerts = parse(readFileSync(reader().save('Have it wake you', 'alerts.yaml'), 'utf8'))
  reader().file('values.yaml', JSON.stringify({ ...values(), ...alerts }))
  await reader().run('Have it wake you')
  const made = await cluster.kubectlOk(['-n', 'staking-system', 'get', 'servicemonitors,prometheusrules', '-o', 'name'])
  for (const kind of ['servicemonitor', 'prometheusrule']) expect(made).toContain(`${kind}.monitoring.coreos.com/`)
})

test('the database of the service is copied and restored in the cluster, by the commands of the page', async () => {
  const { cluster } = stack()
  const backup = join(dir, 'backup')
  const page = await pageCommands(
    cluster,
    {
      page: 'docs/how-to/back-up-and-restore-the-service.md',
      placeholders: { '/backup/2026-11-28': backup, REGISTRY: 'registry.example' },
      pod: { serviceConfig: join(dir, 'service.yaml') },
    },
    stopping.signal,
  )
  opened.push(page)
  const heading = 'Back up the embedded database'
  const mounted = parse(readFileSync(page.save(heading, 'backup.yaml'), 'utf8'))
  await page.run(heading, 2)
  expect(existsSync(join(backup, 'pgdata'))).toBe(true)

  const replicas = () =>
    cluster.kubectlOk(['-n', 'staking-system', 'get', 'deploy', 'staking-operator-service', '-o', 'jsonpath={.spec.replicas}'])
  await page.run('Restore', 1)
  expect(await replicas()).toBe('0')
  page.save('Restore', 'restore.yaml')
  // No controller makes it here, as one does in every other cluster.
  await applyAll(cluster, [{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'staking-system' } }])
  await cluster.kubectlOk(['label', 'namespace', 'staking-system', 'pod-security.kubernetes.io/enforce=restricted'])
  await page.run('Restore', 4)
  // It names what the chart has made, and no pod runs here: what a kubelet would say of it is said by hand.
  const pod = JSON.parse(await cluster.kubectlOk(['-n', 'staking-system', 'get', 'pod', 'restore', '-o', 'json'])) as Pod
  const [config] = pod.spec.volumes.flatMap(({ secret }) => secret?.secretName ?? [])
  await cluster.kubectlOk(['-n', 'staking-system', 'get', 'secret', config ?? 'none'])
  const chartsOwn = JSON.parse(
    await cluster.kubectlOk(['-n', 'staking-system', 'get', 'deploy', 'staking-operator-service', '-o', 'json']),
  ) as { readonly spec: { readonly template: { readonly spec: PodSpec } } }
  const pathsOf = ({ containers }: PodSpec) => containers.flatMap(({ volumeMounts }) => volumeMounts.map(({ mountPath }) => mountPath))
  expect(pathsOf(chartsOwn.spec.template.spec)).toEqual(expect.arrayContaining(pathsOf(pod.spec).filter((path) => path !== '/backup')))
  await cluster.kubectlOk([
    ...[
      '-n',
      'staking-system',
      'patch',
      'pod',
      'restore',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"phase":"Succeeded"}}',
    ],
  ])
  await page.run('Restore', 5)
  const { service, ...rest } = values()
  const storage = { existingClaim: 'staking-restored' }
  page.file('values.yaml', JSON.stringify({ ...rest, service: { ...service, ...mounted.service, database: { storage } } }))
  await page.run('Restore', 6)
  expect(await replicas()).toBe('1')
  const claims = await cluster.kubectlOk([
    ...['-n', 'staking-system', 'get', 'deploy', 'staking-operator-service', '-o'],
    'jsonpath={.spec.template.spec.volumes[*].persistentVolumeClaim.claimName}',
  ])
  expect(claims.split(' ').toSorted()).toEqual(['staking-backup', 'staking-restored'])
  // The old volume stays as it is.
  await cluster.kubectlOk(['-n', 'staking-system', 'get', 'pvc', 'staking-operator-service-data', 'staking-restored'])
})
interface PodSpec {
  readonly containers: readonly { readonly volumeMounts: readonly { readonly mountPath: string }[] }[]
  readonly volumes: readonly { readonly secret?: { readonly secretName: string } }[]
}
interface Pod {
  readonly spec: PodSpec
}

test('the manifests of the page are refused as long as a placeholder is in them', async () => {
  const { cluster } = stack()
  const bare = await pageCommands(cluster, { page }, stopping.signal)
  opened.push(bare)
  for (const [heading, says] of [
    ['The signer', /spec\.address.*must be an Ethereum address/s],
    ['Stake', /spec\.withdrawalAddress/],
  ] as const) {
    const file = bare.save(heading, 'refused.yaml')
    const { code, stderr } = await cluster.kubectl(['create', '--dry-run=server', '-f', file])
    expect(code, heading).not.toBe(0)
    expect(stderr).toMatch(says)
  }
})
