import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Commands, type PageOptions, pageCommands } from '../../cluster/page-commands.ts'
import { writeKey } from '../../stack/keys.ts'
import {
  applyAll,
  eventually,
  getSigner,
  getStake,
  namespace,
  OTHER_ADDRESS,
  PAYER,
  SIGNER,
  seen,
  signer,
  stake,
  untilReason,
} from '../../stack/resources.ts'
import { NETWORK } from '../../stack/stack.ts'
import { matrix } from '../chart/harness.ts'
import { recordOf, untilPaidOnce, useStack } from '../operator/harness.ts'

/** The how-tos that have no test file of their own, with their commands as they stand, one after the other on one cluster. */
const dir = mkdtempSync(join(tmpdir(), 'how-tos-'))
const stopping = new AbortController()
const values = JSON.stringify(matrix[0]?.values)
const opened: Commands[] = []
const stack = useStack({
  dir,
  controllerManager: true,
  async install(cluster) {
    const reader = await pageCommands(cluster, { page: 'docs/how-to/install.md' }, stopping.signal)
    opened.push(reader)
    for (const [name, content] of [
      ['api-key', 'any'],
      ['treasury.hex', 'any'],
      ['my-values.yaml', values],
      ['signer.yaml', JSON.stringify(signer())],
    ] as const)
      reader.file(name, content)
    await reader.run('Install the operator')
    return { namespace: 'staking-system', name: 'staking-operator' }
  },
})
beforeAll(async () => {
  await eventually(
    'the signer is ready',
    () => getSigner(stack().cluster),
    (value) => seen(value).ready === 'True',
  )
})
afterAll(() => {
  stopping.abort()
  for (const reader of opened) reader.stop()
  rmSync(dir, { recursive: true, force: true })
})

async function openPage(page: string, options: Omit<PageOptions, 'page'> = {}): Promise<Commands> {
  const pod = { serviceConfig: join(dir, 'service.yaml'), logs: [join(dir, 'operator.log')] }
  const reader = await pageCommands(stack().cluster, { page, pod, ...options }, stopping.signal)
  opened.push(reader)
  reader.file('values.yaml', values)
  return reader
}
const open = (name: string, placeholders: Record<string, string> = {}): Promise<Commands> =>
  openPage(`docs/how-to/${name}.md`, { placeholders })

test('troubleshooting: what the page asks for can be asked, and an operator that is asked to look answers', async () => {
  const { cluster } = stack()
  await applyAll(cluster, [stake('asked', { amountEth: '65' })])
  await untilReason(cluster, 'asked', 'OverLimit')
  const page = await open('troubleshoot', { NAME: 'asked', NAMESPACE: 'default' })
  expect(await page.run('Troubleshoot by symptom')).toContain('OverLimit')
  await page.run('Nothing happens')
  expect(await page.run('It waits')).toContain('treasury')
  expect(await page.run("The signer isn't ready")).toContain(PAYER)
  await page.run('It shows an old state of the validator')
  const { status } = (await eventually(
    'it is acknowledged',
    () => getStake(cluster, 'asked'),
    (value) => value?.status?.lastHandledReconcileAt !== undefined,
  )) ?? { status: undefined }
  expect(status?.lastHandledReconcileAt).toMatch(/^\d{10}$/)
})

test('a stalled stake: what is there of it can be seen, and each way to let something go on is taken', async () => {
  const { cluster } = stack()
  await applyAll(cluster, [stake('settled'), stake('known-before', { suspend: true })])
  await untilPaidOnce(stack(), 'settled')
  const record = await recordOf(cluster, 'settled')
  const settled = { NAME: 'settled', NAMESPACE: 'default', STX: record.metadata.name }
  const page = await open('stalled', { ...settled, HASH: `0x${'ab'.repeat(32)}`, N: '1' })
  const seenOf = await page.run('When a stake is stalled')
  for (const part of ['OverLimit', record.metadata.name, 'state: Landed']) expect(seenOf).toContain(part)
  expect(await page.run('When it waits, or nothing seems to happen')).toContain('OverLimit')
  const serious = 'The ones to take seriously'
  // A status decides nothing: it is put right from the log, and nothing is paid again.
  await page.run(serious, 1)
  for (const nth of [2, 3]) await page.run(serious, nth)
  const { annotations } = (await recordOf(cluster, 'settled')).metadata
  expect(annotations).toMatchObject({ 'staking.dev/disregard-submission': `0x${'ab'.repeat(32)}`, 'staking.dev/allow-remakes': '1' })
  await (await open('stalled', { NAME: SIGNER, N: '1' })).run(serious, 4)
  await (await open('stalled', { ...settled, NAME: 'known-before', ID: 'another-stake' })).run(serious, 5)
  expect((await getStake(cluster, 'known-before'))?.spec.adopt).toEqual({ stakeId: 'another-stake' })
  expect(await (await open('stalled', { NAME: SIGNER })).run('Waits that look like trouble')).toContain('"nextNonce":')
  await cluster.kubectlOk(['delete', 'ethstake', 'known-before', '--timeout=60s'])
  const { depositData } = (await untilPaidOnce(stack(), 'settled')).status ?? {}
  expect(depositData?.pubkey).toMatch(/^0x/)
})

test('whoever follows a stake waits for news of it, and has changes delivered', async () => {
  const { cluster, apiKeyFile, serviceUrl } = stack()
  const env = { KEY: readFileSync(apiKeyFile, 'utf8').trim(), ID: (await getStake(cluster, 'settled'))?.status?.stakeId ?? '' }
  const placeholders = { 'https://staking.example': serviceUrl, 'wait=30s': 'wait=1s' }
  const page = 'docs/how-to/follow.md'
  const first = await (await openPage(page, { placeholders, env })).run('Wait for a change', 1)
  const [, ETAG = ''] = /^etag: (\S+)\r?$/im.exec(first) ?? []
  expect(ETAG).not.toBe('')
  const second = await (await openPage(page, { placeholders, env: { ...env, ETAG } })).run('Wait for a change', 2)
  expect(second).toMatch(/^HTTP\/1\.1 304 /)
  expect(second).toMatch(/^preference-applied: wait=1\r?$/im)
  expect(await (await openPage(page, { placeholders, env })).run('Have changes delivered')).toMatch(/"secret":"whsec_/)
})

test('stopping: one resource, one signer, and all of it; and going on', async () => {
  const { cluster, anvil } = stack()
  const before = await anvil.depositCount()
  await applyAll(cluster, [stake('held', { suspend: true })])
  const one = await open('emergency-stop', { NAME: 'held', NAMESPACE: 'default' })
  await one.run('One resource')
  await untilReason(cluster, 'held', 'Suspended')

  await (await open('emergency-stop', { NAME: SIGNER })).run('One key')
  await applyAll(cluster, [stake('stopped')])
  await untilReason(cluster, 'stopped', 'SignerSuspended')
  expect(await anvil.depositCount()).toBe(before)

  // Both of its commands: everything stops, and goes on.
  await one.run('Everything')
  await applyAll(cluster, [signer({ suspend: false })])
  await untilPaidOnce(stack(), 'stopped')
  expect(await one.run('Afterwards')).toMatch(/stopped .*Landed/)

  // Its life in the log, and that Kubernetes can forget it.
  const lines = await (await open('troubleshoot', { NAME: 'stopped' })).run('The log of one resource')
  expect(lines).toContain((await getStake(cluster, 'stopped'))?.status?.transaction?.minedHash)
  const paid = await anvil.depositCount()
  const restore = await open('restore', { NAME: 'stopped', NAMESPACE: 'default' })
  await restore.run('Take the manifests away, keep the stakes')
  expect(await getStake(cluster, 'stopped')).toBeUndefined()
  await restore.run('etcd itself')
  const deployment = ['-n', 'staking-system', 'get', 'deploy', 'staking-operator', '-o', 'jsonpath={.spec.replicas}']
  expect(await cluster.kubectlOk(deployment)).toBe('0')
  expect(await anvil.depositCount()).toBe(paid)
})

test('tenants: their own namespace, their own rights, and a signer that is refused until it is filled in', async () => {
  const { cluster } = stack()
  const page = await open('tenants', { 'ADDRESS-OF-THE-SIGNER': OTHER_ADDRESS, 'WITHDRAWAL-ADDRESS': OTHER_ADDRESS })
  // The controller manager puts the roles together a moment after the chart is there.
  await eventually(
    'the roles are aggregated',
    () => cluster.kubectl(['get', 'clusterrole', 'edit', '-o', 'yaml']),
    ({ stdout }) => stdout.includes('ethereumstakes'),
  )
  // A person types it slower than the API server hears of the rights: where the page was too quick, they are asked for again.
  const rights = await page.run('Rights').catch(() => '')
  const may = ['auth', 'can-i', 'create', 'ethereumstakes', '--as=dana', '--as-group=team-b', '-n', 'team-b']
  if (!/^yes$/m.test(rights))
    await eventually(
      'dana may',
      () => cluster.kubectl(may),
      ({ stdout }) => stdout.trim() === 'yes',
    )
  await page.run('Numbers')
  await cluster.kubectlOk(['apply', '--dry-run=server', '-f', page.save('Money', 'signer.yaml')])
  const blank = await open('tenants')
  expect((await cluster.kubectl(['apply', '--dry-run=server', '-f', blank.save('Money', 'signer.yaml')])).stderr).toMatch(/spec\.address/)
})

test('rotation: the API key, with an overlap, and a signer that goes when nothing of it is open', async () => {
  const { cluster, serviceConfigFile } = stack()
  expect(serviceConfigFile).toBe(join(dir, 'service.yaml'))
  const list = await (await open('rotate-keys')).run('The API key of the operator', 1)
  // The first key below the heading.
  const keyId = list.split('\n')[1]?.split('\t')[0] ?? ''
  const page = await open('rotate-keys', { 'KEY-ID': keyId, 'OLD-SIGNER': 'second' })
  await page.run('The API key of the operator', 2)
  const key = await cluster.kubectlOk(['-n', 'staking-system', 'get', 'secret', 'staking-api-key', '-o', 'jsonpath={.data.key}'])
  const answer = await fetch(`${stack().serviceUrl}/v1/ethereum/stakes`, {
    headers: { authorization: `Bearer ${Buffer.from(key, 'base64').toString().trim()}` },
  })
  expect(answer.status).toBe(200)
  await applyAll(cluster, [signer({ address: OTHER_ADDRESS, keyName: 'second' }, 'second')])
  await page.run('Let what is in flight end')
  await page.run('Have it pay nothing more')
  await page.run('Let the old key go')
  expect((await cluster.kubectl(['get', 'signer', 'second'])).code).not.toBe(0)
})

test('the service: its Secrets, its keys, its audit log and the keystores of its validators', async () => {
  const { cluster } = stack()
  const config = { STAKING_SERVICE_CONFIG: join(dir, 'service.yaml') }
  const page = 'docs/how-to/run-the-service.md'
  // The page exports a month that is over by now; what is exported here is what this run has written.
  const tomorrow = new Date(Date.now() + 24 * 3_600_000).toISOString().slice(0, 10)
  const owner = await openPage(page, { placeholders: { hoodi: NETWORK, '2026-12-01': tomorrow }, env: config })
  await cluster.kubectlOk(['-n', 'staking-system', 'delete', 'secret', 'staking-api-key'])
  expect(await owner.run('Run the staking service')).toMatch(
    /staking-seed created\n[\s\S]*staking-database created\n[\s\S]*staking-api-key created/,
  )
  expect(readFileSync(join(owner.dir, 'api-key'), 'utf8')).toMatch(/^sop_\S+\n$/)
  expect(readFileSync(join(owner.dir, 'seed'), 'utf8')).toMatch(/^[0-9a-f]{64}\n$/)
  const listed = await owner.run('API keys', 1)
  const [, keyId = ''] = /^(\S+)\tplatform\t.*createEthereumStake/m.exec(listed) ?? []
  const narrow = await openPage(page, { placeholders: { 'KEY-ID': keyId }, env: config })
  expect(await narrow.run('API keys', 2)).toMatch(new RegExp(`^renamed ${keyId}\\nsop_\\S+\\nrevoked ${keyId}\\n$`))
  await owner.run('API keys', 3)
  expect(readFileSync(join(owner.dir, 'november.jsonl'), 'utf8')).toMatch(/createEthereumStake/)
  owner.file('service.yaml', readFileSync(join(dir, 'service.yaml'), 'utf8'))
  owner.file('password', 'correct horse battery')
  expect(await owner.run("The validators' keystores", 2)).toMatch(/^wrote [1-9]\d* keystores to \.\/keystores$/m)
  await cluster.kubectlOk(['-n', 'staking-system', 'delete', 'secret', 'staking-seed', 'staking-database'])
})

test('a signer more, health for Argo CD, a page of the fleet, and the deposit history in a file', async () => {
  const { cluster, keysDir, anvil, networksFile } = stack()
  const hot = anvil.accounts[2] ?? expect.fail('anvil has too few accounts')
  const install = await open('install')
  install.file('hot-2.hex', hot.privateKey.slice(2))
  install.file('hot-2-signer.yaml', JSON.stringify(signer({ keyName: 'hot-2', address: hot.address }, 'hot-2')))
  // No kubelet mounts the Secret here.
  writeKey(keysDir, 'hot-2', hot.privateKey)
  expect(await install.run('Another signer, later')).toContain('signer.staking.dev/hot-2 condition met')
  const data = '{.data.hot-2\\.privateKey}'
  const mounted = await cluster.kubectlOk(['-n', 'staking-system', 'get', 'secret', 'staking-signer-keys', '-o', `jsonpath=${data}`])
  expect(Buffer.from(mounted, 'base64').toString()).toBe(hot.privateKey.slice(2))

  const settings = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'argocd-cm', namespace: 'argocd' },
    data: { url: 'https://argocd.example' },
  }
  await applyAll(cluster, [namespace('argocd'), settings])
  await (await open('argo-cd')).run('Health and actions')
  const patched = await cluster.kubectlOk(['-n', 'argocd', 'get', 'configmap', 'argocd-cm', '-o', 'yaml'])
  for (const part of ['https://argocd.example', 'staking.dev_EthereumStake']) expect(patched).toContain(part)

  await (await open('look-at-the-fleet')).run('Look at the fleet')
  const args = ['-n', 'staking-system', 'get', 'deploy', 'staking-operator', '-o', 'jsonpath={.spec.template.spec.containers[0].args}']
  expect(await cluster.kubectlOk(args)).toContain('--ui')

  const out = join(dir, 'deposits')
  const placeholders = { '/var/lib/staking/mainnet-deposits': out, mainnet: NETWORK }
  const history = await openPage('docs/reference/configuration.md', { placeholders })
  await history.run("The operator's networks file")
  expect(parse(readFileSync(join(history.dir, 'networks.yaml'), 'utf8'))).toMatchObject({ networks: parse(values).networks })
  history.file('networks.yaml', readFileSync(networksFile, 'utf8'))
  expect(await history.run('The deposit history')).toMatch(
    /^wrote \d+ deposits up to block \d+ to .*\ndepositHistorySha256: [0-9a-f]{64}\n$/,
  )
  expect(existsSync(out)).toBe(true)
})

test('a network more, other sizes, an upgrade and the way back', async () => {
  await applyAll(stack().cluster, [namespace('unused')])
  const add = await open('add-a-network')
  const given = add.save('An operator with its networks in the values', 'more.yaml')
  add.file('values.yaml', JSON.stringify({ ...JSON.parse(values), ...parse(readFileSync(given, 'utf8')) }))
  await add.run('An operator with its networks in the values')
  const networks = ['-n', 'staking-system', 'get', 'configmap', 'staking-operator-networks', '-o', 'yaml']
  expect(await stack().cluster.kubectlOk(networks)).toContain('mainnet')
  await (await open('size')).run('The operator')
  const upgrade = await open('upgrade')
  expect(await upgrade.run('Upgrade')).toMatch(/deployed/)
  await upgrade.run('Roll back')
  expect(await stack().cluster.kubectlOk(networks)).not.toContain('mainnet')
})
