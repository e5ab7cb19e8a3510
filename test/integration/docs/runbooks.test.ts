import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { headings, runbookPages } from '../../../scripts/alerts/runbooks/pages.ts'
import { repository } from '../../../scripts/docs/pages.ts'
import { blocksOf, type Commands, pageCommands } from '../../cluster/page-commands.ts'
import { applyAll, eventually, getSigner, OTHER_ADDRESS, SIGNER, seen, signer, stake, untilReason } from '../../stack/resources.ts'
import { NETWORK } from '../../stack/stack.ts'
import { matrix } from '../chart/harness.ts'
import { untilPaidOnce, useStack } from '../operator/harness.ts'

/** Every command of every runbook, as it stands, on a cluster with a paid stake and one that needs a person. Their queries run in monitoring.test.ts. */
const dir = mkdtempSync(join(tmpdir(), 'runbooks-'))
const stopping = new AbortController()
const values = JSON.stringify(matrix[1]?.values)
const opened: Commands[] = []
const stack = useStack({
  dir,
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
  const { cluster } = stack()
  await eventually(
    'the signer is ready',
    () => getSigner(cluster),
    (value) => seen(value).ready === 'True',
  )
  await applyAll(cluster, [stake('paid'), stake('refused', { amountEth: '65' })])
  await untilPaidOnce(stack(), 'paid')
  await untilReason(cluster, 'refused', 'OverLimit')
})
afterAll(() => {
  stopping.abort()
  for (const reader of opened) reader.stop()
  rmSync(dir, { recursive: true, force: true })
})

const commandsUnder = (page: string, heading: string): boolean =>
  blocksOf(readFileSync(join(repository, page), 'utf8')).some((block) => block.heading === heading && block.language === 'sh')

test.each([...runbookPages().keys()])('the commands of %s run as they stand', { timeout: 240_000 }, async (page) => {
  const { cluster, operatorMetrics, serviceUrl } = stack()
  const stx = (await cluster.kubectlOk(['get', 'stx', '-o', 'jsonpath={.items[0].metadata.name}'])).trim()
  const reader = await pageCommands(
    cluster,
    {
      page,
      placeholders: {
        KIND: 'EthereumStake',
        NAME: 'paid',
        NAMESPACE: 'default',
        SIGNER,
        STX: stx,
        REASON: 'OverLimit',
        'NODE-HOST': 'localhost',
      },
      pod: {
        serviceConfig: join(dir, 'service.yaml'),
        operatorAddress: new URL(operatorMetrics).host,
        serviceAddress: new URL(serviceUrl).host,
        logs: ['operator.log', 'service.log'].map((name) => join(dir, name)),
      },
      mayFindNothing: true,
    },
    stopping.signal,
  )
  opened.push(reader)
  reader.file('values.yaml', values)
  for (const heading of headings.filter((each) => commandsUnder(page, each))) await reader.run(heading)
})

/** Of the Prometheus operator, whose definitions aren't here: their names are enough to keep objects of them. */
const definitionOf = (plural: string, kind: string) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.monitoring.coreos.com` },
  spec: {
    group: 'monitoring.coreos.com',
    scope: 'Namespaced',
    names: { plural, kind, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
})

test('the page on monitoring switches the alerts on, and each leads to its own runbook', { timeout: 240_000 }, async () => {
  const { cluster } = stack()
  await applyAll(cluster, [definitionOf('servicemonitors', 'ServiceMonitor'), definitionOf('prometheusrules', 'PrometheusRule')])
  await cluster.kubectlOk(['wait', '--for=condition=Established', 'crd', '-l', '!none', '--all', '--timeout=60s'])
  const reader = await pageCommands(
    cluster,
    { page: 'docs/how-to/monitor.md', placeholders: { 'WITHDRAWAL-ADDRESS': OTHER_ADDRESS, 'network: hoodi': `network: ${NETWORK}` } },
    stopping.signal,
  )
  opened.push(reader)
  await reader.run('Monitor it')
  const linked = (await reader.run('Runbooks')).trim().split(/\s+/)
  expect(linked.map((url) => url.replace('https://YOUR-DOCS/', 'docs/').replace('.html', '.md')).toSorted()).toEqual(
    [...runbookPages().keys()].toSorted(),
  )
  expect(await reader.run('A fire drill')).toMatch(/condition met[\s\S]*deleted/)
})

test('what they stop goes on afterwards: a stake is paid, once', async () => {
  const { cluster, anvil } = stack()
  const before = await anvil.depositCount()
  await cluster.kubectlOk(['-n', 'staking-system', 'annotate', 'lease', 'staking-operator', 'staking.dev/suspend-'])
  await applyAll(cluster, [signer({ suspend: false }), stake('after')])
  await untilPaidOnce(stack(), 'after')
  expect(await anvil.depositCount()).toBe(before + 1)
})
