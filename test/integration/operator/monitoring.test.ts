import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { alerts } from '../../../scripts/alerts/alerts.ts'
import { alertRules } from '../../../scripts/alerts/files.ts'
import { questions } from '../../../scripts/alerts/questions.ts'
import { boards } from '../../../scripts/dashboards/files.ts'
import { type Prometheus, prometheusProgram, startPrometheus } from '../../stack/prometheus.ts'
import { applyAll, eventually, SIGNER, signer, stake } from '../../stack/resources.ts'
import { untilPaidOnce, untilStalls, useStack } from './harness.ts'

/**
 * A real Prometheus scrapes the operator and the service while they make a stake: every query of the dashboards and of the ten questions is run against it, and
 * it evaluates every alert. Without Debian's package `prometheus`, which `.ci/run` installs, these tests are skipped.
 */
const command = prometheusProgram()
const why = command === undefined ? ' (skipped: install prometheus)' : ''

describe.skipIf(command === undefined)(`what Prometheus sees of a real run${why}`, () => {
  const stack = useStack()
  let prometheus: Prometheus
  beforeAll(async () => {
    const { cluster, operatorMetrics, serviceUrl } = stack()
    prometheus = await startPrometheus({
      command: command ?? '',
      targets: { operator: operatorMetrics, service: `${serviceUrl}/metrics` },
      rules: alertRules(),
    })
    await applyAll(cluster, [signer(), stake('paid'), stake('refused', { signer: 'nobody' })])
    await untilPaidOnce(stack(), 'paid', { timeoutMs: 150_000 })
    await untilStalls(cluster, 'refused', 'SignerNotFound', /no StakingSigner nobody/)
    // A rate needs some scrapes of a series: of those that began last, too.
    const lastToBegin = [
      'staking_operator_transactions_total{event="Landed"}',
      'staking_operator_time_to_condition_seconds_count{kind="EthereumStake",condition="Ready"}',
      'staking_service_stakes_created_total',
    ]
    await eventually(
      'both were scraped a few times after the stake was paid',
      () => Promise.all(lastToBegin.map((series) => prometheus.query(`min(count_over_time(${series}[5m])) >= 3`))),
      (found) => found.every((samples) => samples.length === 1),
      120_000,
    )
  }, 420_000)
  afterAll(async () => await prometheus?.stop())

  const run = (expr: string) => prometheus.query(expr.replaceAll('$__rate_interval', '5m'))

  /** What nothing is to be seen of in a run in which nothing goes wrong, on one Ethereum network and the embedded database. */
  const nothingOf =
    /_sol\b|Reverted|signatures_refused|alarms_total|outcome!="ok"|config_|_total\{event=~|transactions_open|chain_errors|requests_settled|webhook_attempts|stakes_settled|disagreements|database_connections/

  test.each(
    boards.flatMap(({ title, rows }) => rows.flatMap(({ panels }) => panels.map((panel) => [`${title}: ${panel.title}`, panel] as const))),
  )('%s', async (_title, { queries }) => {
    for (const { expr } of queries) {
      const samples = await run(expr)
      if (!nothingOf.test(expr)) expect(samples.length, expr).toBeGreaterThan(0)
    }
  })

  test.each(questions.map(({ asks, query }) => [asks, query] as const))('%s', async (_asks, query) => {
    await run(query)
  })

  test('the waits name the stake that needs a person, with its reason', async () => {
    const found = await run('staking_operator_resource_condition{type="Stalled"}')
    expect(found.map(({ metric: { namespace, name, kind, reason } }) => ({ namespace, name, kind, reason }))).toEqual([
      { namespace: 'default', name: 'refused', kind: 'EthereumStake', reason: 'SignerNotFound' },
    ])
  })

  test('what the signer has is there, with the time of its reading', async () => {
    const [has] = await run(`staking_operator_signer_balance_eth{signer="${SIGNER}"} - staking_operator_signer_needed_eth`)
    expect(Number(has?.value[1])).toBeGreaterThan(1000)
    const [age] = await run(`time() - staking_operator_signer_balance_read_timestamp_seconds{signer="${SIGNER}"}`)
    expect(Number(age?.value[1])).toBeLessThan(600)
  })

  test('every alert is evaluated, and none that wakes somebody up fires while all goes well', async () => {
    const rules = await eventually(
      'all rules are evaluated',
      () => prometheus.rules(),
      (all) => [...all.values()].every(({ health }) => health !== 'unknown'),
      120_000,
    )
    expect([...rules.keys()].toSorted()).toEqual(alerts.map(({ name }) => name).toSorted())
    for (const [name, { health }] of rules) expect(health, name).toBe('ok')
    const firing = alerts.filter(({ name, severity }) => severity === 'critical' && rules.get(name)?.state === 'firing')
    expect(firing.map(({ name }) => name)).toEqual([])
  })
})
