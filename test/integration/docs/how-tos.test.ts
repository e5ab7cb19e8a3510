import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Commands, pageCommands } from '../../cluster/page-commands.ts'
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
import { matrix } from '../chart/harness.ts'
import { untilPaidOnce, useStack } from '../operator/harness.ts'

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

async function open(name: string, placeholders: Record<string, string> = {}): Promise<Commands> {
  const page = `docs/how-to/${name}.md`
  const reader = await pageCommands(
    stack().cluster,
    { page, placeholders, pod: { serviceConfig: join(dir, 'service.yaml') } },
    stopping.signal,
  )
  opened.push(reader)
  reader.file('values.yaml', values)
  return reader
}

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
  expect(await page.run('Rights')).toMatch(/^yes$/m)
  await page.run('Numbers')
  await cluster.kubectlOk(['apply', '--dry-run=server', '-f', page.save('Money', 'signer.yaml')])
  const blank = await open('tenants')
  expect((await cluster.kubectl(['apply', '--dry-run=server', '-f', blank.save('Money', 'signer.yaml')])).stderr).toMatch(/spec\.address/)
})

test('rotation: the API key, with an overlap, and a signer that goes when nothing of it is open', async () => {
  const { cluster, serviceConfigFile } = stack()
  expect(serviceConfigFile).toBe(join(dir, 'service.yaml'))
  const list = await (await open('rotate-keys', { 'api-keys rotate KEY-ID --overlap 1h': 'api-keys list' })).run(
    'The API key of the operator',
  )
  // The first key below the heading.
  const keyId = list.split('\n')[1]?.split('\t')[0] ?? ''
  const page = await open('rotate-keys', { 'KEY-ID': keyId, 'OLD-SIGNER': 'second' })
  await page.run('The API key of the operator')
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
