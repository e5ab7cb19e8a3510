import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { alerts } from '../../../scripts/alerts/alerts.ts'
import { alertRules, alertTests } from '../../../scripts/alerts/files.ts'
import { moneyInQuestion } from '../../../scripts/alerts/money.ts'
import { questions } from '../../../scripts/alerts/questions.ts'
import { slo } from '../../../scripts/alerts/slo.ts'
import { nobodysWaits } from '../../../scripts/alerts/waits.ts'
import { operatorMetrics, serviceMetrics } from '../../../scripts/metrics/files.ts'
import { createOperatorMetrics } from '../../../src/operator/metrics.ts'
import { reasons } from '../../../src/resources/reasons.ts'
import { type Helm, startHelm } from '../../cluster/chart.ts'
import { findOnPath } from '../../cluster/process.ts'
import { runToEnd } from '../../cluster/run.ts'
import { matrix } from './harness.ts'

/**
 * Prometheus itself reads the rules and evaluates them: promtool, of Debian's package `prometheus`, which `.ci/run` installs. Without it those two tests alone
 * are skipped.
 */
let dir: string
const stopping = new AbortController()
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'alerts-'))
})
afterAll(() => {
  stopping.abort()
  rmSync(dir, { recursive: true, force: true })
})

const found = findOnPath('promtool', process.env.PATH ?? '')
const byPrometheus = test.skipIf(found === undefined)
const why = found === undefined ? ' (skipped: install prometheus, for promtool)' : ''

async function promtool(args: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await runToEnd({ command: found ?? '', args, cwd: dir, signal: AbortSignal.timeout(200_000) })
  expect(code, stdout + stderr).toBe(0)
}

byPrometheus(`Prometheus takes the rules, with the texts in them${why}`, async () => {
  writeFileSync(join(dir, 'alerts.yaml'), alertRules())
  await promtool(['check', 'rules', 'alerts.yaml'])
})

byPrometheus(
  `each alert fires when it should, with its labels, and stays silent when it should not${why}`,
  { timeout: 240_000 },
  async () => {
    writeFileSync(join(dir, 'bare.yaml'), alertRules({ bare: true }))
    writeFileSync(join(dir, 'tests.yaml'), alertTests('bare.yaml'))
    await promtool(['test', 'rules', 'tests.yaml'])
  },
)

test('each alert asks for metrics that are there, and has a name of its own', () => {
  const known = new Set([...operatorMetrics(), ...serviceMetrics()].map(({ name }) => name))
  const asked = new Set(alerts.flatMap(({ expr }) => expr.match(/staking_(operator|service)_[a-z_]+/g) ?? []))
  expect(asked.size).toBeGreaterThan(10)
  for (const name of asked) {
    const metric = name.replace(/_(count|bucket)$/, '')
    expect(known.has(metric), name).toBe(true)
  }
  expect(new Set(alerts.map(({ name }) => name)).size).toBe(alerts.length)
})

test('each of the ten questions has an alert, and each alert answers a question or is the service’s own', () => {
  expect(questions).toHaveLength(10)
  const names = new Set(alerts.map(({ name }) => name))
  for (const { asks, alerts: answers } of questions) {
    expect(answers.length, asks).toBeGreaterThan(0)
    for (const name of answers) expect(names.has(name), name).toBe(true)
  }
  const answering = new Set(questions.flatMap(({ alerts: answers }) => answers))
  for (const { name, of } of alerts) expect(of === 'service' || answering.has(name), name).toBe(true)
})

test('what a person can end by a manifest is no wait that nobody can', () => {
  for (const reason of nobodysWaits) expect(reasons[reason].stalled, reason).toBe(false)
})

test('the objective’s time is a bucket of the histogram', async () => {
  const text = await createOperatorMetrics({ version: '0' }).registry.metrics()
  expect(text).toContain(
    `staking_operator_time_to_condition_seconds_bucket{le="${slo.seconds}",kind="EthereumStake",condition="Broadcast"} 0`,
  )
})

test('money is in question by reasons that stall', () => {
  for (const reason of moneyInQuestion) expect(reasons[reason].stalled, reason).toBe(true)
})

test.each([
  { runbookUrl: 'https://docs.example/runbooks', page: 'https://docs.example/runbooks/NAME.html' },
  { runbookUrl: 'https://docs.example/runbooks/', page: 'https://docs.example/runbooks/NAME.html' },
  { runbookUrl: 'https://git.example/docs/runbooks/{alert}.md?plain=1', page: 'https://git.example/docs/runbooks/NAME.md?plain=1' },
  { runbookUrl: '', page: undefined },
])('the chart brings them, each with a link to its own runbook ($runbookUrl)', async ({ runbookUrl, page }) => {
  const helm: Helm = await startHelm(undefined, stopping.signal)
  try {
    const values = { ...matrix[3]?.values, prometheusRule: { enabled: true, runbookUrl } }
    const rendered = (await helm.render(values)).find(({ kind }) => kind === 'PrometheusRule') as unknown as {
      spec: { groups: { rules: { alert: string; annotations: { runbook_url?: string; summary: string } }[] }[] }
    }
    const rules = rendered.spec.groups.flatMap((group) => group.rules)
    expect(rules.map(({ alert }) => alert).toSorted()).toEqual(alerts.map(({ name }) => name).toSorted())
    for (const { alert, annotations } of rules) {
      expect(annotations.runbook_url).toBe(page?.replace('NAME', alert))
      expect(annotations.summary).toBe(alerts.find(({ name }) => name === alert)?.summary)
    }
    expect(parse(alertRules()).groups).toHaveLength(2)
  } finally {
    helm.stop()
  }
})
