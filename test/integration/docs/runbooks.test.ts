import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { questions } from '../../../scripts/alerts/questions.ts'
import { headings, runbookPages } from '../../../scripts/alerts/runbooks/pages.ts'
import { blocksOf } from '../../../scripts/docs/blocks.ts'
import { repository } from '../../../scripts/docs/pages.ts'
import { type Commands, pageCommands } from '../../cluster/page-commands.ts'
import { applyAll, eventually, getSigner, OTHER_ADDRESS, SIGNER, seen, signer, stake, untilReason } from '../../stack/resources.ts'
import { NETWORK } from '../../stack/stack.ts'
import { matrix } from '../chart/harness.ts'
import { defineMonitoring } from '../chart/monitoring-definitions.ts'
import { untilPaidOnce, useStack } from '../operator/harness.ts'

/** The ten questions of whoever is on call, and every command of every runbook, as it stands, on a cluster with a paid stake and one that needs a person. Their queries run in monitoring.test.ts. */
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
  await applyAll(cluster, [stake('paid'), stake('refused', { amountEth: '65' }), stake('capped', { maxFeePerGasGwei: '0.000000001' })])
  await untilPaidOnce(stack(), 'paid')
  await untilReason(cluster, 'refused', 'OverLimit')
  await untilReason(cluster, 'capped', 'FeeTooHigh')
})
afterAll(() => {
  stopping.abort()
  for (const reader of opened) reader.stop()
  rmSync(dir, { recursive: true, force: true })
})

const commandsUnder = (page: string, heading: string): boolean =>
  blocksOf(readFileSync(join(repository, page), 'utf8')).some((block) => block.heading === heading && block.language === 'sh')

/** What each command prints here, question by question. */
const answers: readonly (readonly [finds: RegExp, findsNot?: RegExp])[] = [
  [/^\S+ leads, renewed 20\d\d-\S+Z, suspend=$/m],
  [/\/capped .* FeeTooHigh [\s\S]*\/refused .* OverLimit /, /\/paid /],
  [/^treasury +False$/m, /VerificationFailed|FrontRun/],
  [/^NAMESPACE +NAME +VALIDATOR +SEEN$/m, /slashed/],
  [/^NAME +PURPOSE /m, / Landed /],
  [/^treasury .* 0xf39F\S+ +[\d.]+ ETH on local +True +True /im],
  [/\/capped .* FeeTooHigh .* gwei/],
  [/^(ok|warning) +node: .*, node 1: /m, /^failed/m],
  [/^ok +staking API: for .*: it takes the API key/m, /^failed/m],
  [/^ok +configuration: [\s\S]*^ok +key: signer treasury/m, /^failed/m],
]

test.each(questions.map(({ asks }, index) => [asks, index] as const))('on call: "%s" is answered within a minute', async (asks, index) => {
  const { cluster, networksFile, keysDir } = stack()
  const reader = await pageCommands(
    cluster,
    {
      page: 'docs/how-to/on-call.md',
      pod: { serviceConfig: '', doctorEnv: { STAKING_NETWORKS: networksFile, STAKING_KEYS_DIR: keysDir, POD_NAMESPACE: 'staking-system' } },
      mayFindNothing: true,
    },
    stopping.signal,
  )
  opened.push(reader)
  const asked = Date.now()
  const printed = await reader.run(`${index + 1}. ${asks}`)
  expect(Date.now() - asked).toBeLessThan(60_000)
  const [finds, findsNot] = answers[index] ?? []
  expect(printed).toMatch(finds ?? /^$/)
  if (findsNot !== undefined) expect(printed).not.toMatch(findsNot)
})

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

test('the page on monitoring switches the alerts on, and each leads to its own runbook', { timeout: 240_000 }, async () => {
  const { cluster } = stack()
  await defineMonitoring(cluster)
  const reader = await pageCommands(
    cluster,
    { page: 'docs/how-to/monitor.md', placeholders: { 'WITHDRAWAL-ADDRESS': OTHER_ADDRESS, hoodi: NETWORK } },
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
