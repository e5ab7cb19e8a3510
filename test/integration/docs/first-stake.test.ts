import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { chart, startHelm } from '../../cluster/chart.ts'
import { type Commands, pageCommands } from '../../cluster/page-commands.ts'
import { PAYER, WITHDRAWAL_ADDRESS } from '../../stack/resources.ts'
import { NETWORK } from '../../stack/stack.ts'
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
let commands: Commands | undefined
const stack = useStack({
  dir,
  async install(cluster) {
    commands = await pageCommands(cluster, { page, placeholders, pod: { serviceConfig: join(dir, 'service.yaml') } }, stopping.signal)
    commands.file('treasury.hex', TEST_KEY)
    await commands.run('Secrets')
    commands.save('Values', 'values.yaml')
    await commands.run('Install')
    return { namespace: 'staking-system', name: 'staking-operator' }
  },
})
afterAll(() => {
  stopping.abort()
  commands?.stop()
  rmSync(dir, { recursive: true, force: true })
})

test('the page leads from an empty cluster to a stake, and to its alerts', { timeout: 300_000 }, async () => {
  const { cluster, anvil } = stack()
  const reader = commands
  if (reader === undefined) throw new Error('nothing was installed')
  const key = await cluster.kubectlOk(['-n', 'staking-system', 'get', 'secret', 'staking-api-key', '-o', 'jsonpath={.data.key}'])
  // One line: the key and nothing beside it, as the operator reads it.
  expect(Buffer.from(key, 'base64').toString().trim()).toMatch(/^\S+$/)

  reader.save('The signer', 'signer.yaml')
  await reader.run('The signer')
  expect(await reader.run('Fund it')).toMatch(/treasury .*ETH on local/)

  reader.save('Stake', 'stake.yaml')
  await reader.run('Stake')
  const stake = await untilPaidOnce(stack(), 'validator-1', { space: 'staking' })
  expect(await anvil.depositCount()).toBe(1)
  const watched = await reader.run('Watch it')
  expect(watched).toContain(stake.status?.transaction?.minedHash)
  expect(watched).toMatch(/Deposit .*Landed/)
})

test('the values that switch on the alerts are values of the chart', async () => {
  const { cluster } = stack()
  const reader = await pageCommands(cluster, { page, placeholders }, stopping.signal)
  try {
    const alerts = reader.save('Have it wake you', 'alerts.yaml')
    const values = reader.save('Values', 'values.yaml')
    const helm = await startHelm(undefined, stopping.signal)
    try {
      const rendered = await helm.ok(['template', 'staking-operator', chart, '--values', values, '--values', alerts])
      for (const kind of ['ServiceMonitor', 'PrometheusRule']) expect(rendered).toContain(`kind: ${kind}`)
    } finally {
      helm.stop()
    }
  } finally {
    reader.stop()
  }
})

test('the manifests of the page are refused as long as a placeholder is in them', async () => {
  const { cluster } = stack()
  const reader = await pageCommands(cluster, { page }, stopping.signal)
  try {
    for (const [heading, says] of [
      ['The signer', /spec\.address.*must be an Ethereum address/s],
      ['Stake', /spec\.withdrawalAddress/],
    ] as const) {
      const file = reader.save(heading, 'refused.yaml')
      const { code, stderr } = await cluster.kubectl(['create', '--dry-run=server', '-f', file])
      expect(code, heading).not.toBe(0)
      expect(stderr).toMatch(says)
    }
  } finally {
    reader.stop()
  }
})
