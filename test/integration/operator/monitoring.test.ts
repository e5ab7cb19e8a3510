import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { alerts } from '../../../scripts/alerts/alerts.ts'
import { alertRules } from '../../../scripts/alerts/files.ts'
import { questions } from '../../../scripts/alerts/questions.ts'
import { runbooks } from '../../../scripts/alerts/runbooks/runbooks.ts'
import { boards } from '../../../scripts/dashboards/files.ts'
import { type Picture, pictureHtml, pictureOf, whyEmpty } from '../../../scripts/dashboards/picture.ts'
import { chromiumProgram, startBrowser } from '../../browser/browser.ts'
import { type Prometheus, prometheusProgram, startPrometheus } from '../../stack/prometheus.ts'
import { applyAll, eventually, SIGNER, signer, stake, untilHolds, WITHDRAWAL_ADDRESS } from '../../stack/resources.ts'
import { writeKey } from '../../stack/stack.ts'
import { untilPaidOnce, untilStalls, useStack } from './harness.ts'
import { recordedRun, recordingStack } from './recorded-run.ts'

/**
 * A real Prometheus scrapes the operator and the service while they make a stake: every query of the dashboards and of the ten questions is run against it, and
 * it evaluates every alert. Each panel is drawn from what it answers. Without Debian's package `prometheus`, which `.ci/run` installs, these tests are skipped.
 *
 * `npm run docs:panels` has more happen in the run, and keeps the pictures in docs/assets/panels.
 */
const keepIn = process.env.PANELS
const command = prometheusProgram()
const why = command === undefined ? ' (skipped: install prometheus)' : ''

describe.skipIf(command === undefined)(`what Prometheus sees of a real run${why}`, () => {
  const stack = useStack(keepIn === undefined ? {} : recordingStack)
  let prometheus: Prometheus
  let start = 0
  beforeAll(async () => {
    const { cluster, ethereum, keysDir, operatorMetrics, serviceUrl } = stack()
    prometheus = await startPrometheus({
      command: command ?? '',
      targets: { operator: operatorMetrics, service: `${serviceUrl}/metrics` },
      rules: alertRules(),
    })
    start = Math.floor(Date.now() / 1000)
    // One that signs nothing, so that limits have series: under a limit, nothing is signed while the chain's time runs ahead, as it does here.
    const [, second] = ethereum.accounts
    if (second === undefined) throw new Error('the chain has one account only')
    writeKey(keysDir, 'limited', second.privateKey)
    const limited = signer(
      { keyName: 'limited', address: WITHDRAWAL_ADDRESS, policy: { limits: [{ window: '24h', maxCount: 10, maxTotalEth: '320' }] } },
      'limited',
    )
    await applyAll(cluster, [signer(), limited, stake('paid'), stake('refused', { signer: 'nobody' })])
    await untilPaidOnce(stack(), 'paid', { timeoutMs: 150_000 })
    await untilStalls(cluster, 'refused', 'SignerNotFound', /no StakingSigner nobody/)
    // A rate needs some scrapes of a series: of those that began last, too.
    const lastToBegin = [
      'staking_operator_transactions_total{event="Landed"}',
      'staking_operator_time_to_condition_seconds_count{kind="EthereumStake",condition="Ready"}',
      'staking_service_stakes_created_total',
      'staking_operator_signer_limit_eth_left',
    ]
    await eventually(
      'both were scraped a few times after the stake was paid',
      () => Promise.all(lastToBegin.map((series) => prometheus.query(`min(count_over_time(${series}[5m])) >= 3`))),
      (found) => found.every((samples) => samples.length === 1),
      120_000,
    )
    if (keepIn !== undefined) await recordedRun(stack())
  }, 900_000)
  afterAll(async () => await prometheus?.stop())

  const run = (expr: string) => prometheus.query(expr.replaceAll('$__rate_interval', '5m'))

  test.each(
    boards.flatMap(({ title, rows }) => rows.flatMap(({ panels }) => panels.map((panel) => [`${title}: ${panel.title}`, panel] as const))),
  )('%s', async (_title, { queries }) => {
    for (const query of queries) {
      if (whyEmpty(query) !== undefined) await run(query.expr)
      else
        await eventually(
          query.expr,
          () => run(query.expr),
          (samples) => samples.length > 0,
        )
    }
  })

  const program = chromiumProgram()
  test.skipIf(program === undefined)(
    `each panel is drawn from what Prometheus answers, or says why there is nothing${program === undefined ? ' (skipped: install chromium)' : ''}`,
    { timeout: 240_000 },
    async () => {
      const during = { start, end: Math.floor(Date.now() / 1000), step: 1 }
      const recorded = {
        ...during,
        range: (expr: string) => prometheus.range(expr, during),
        instant: (expr: string) => prometheus.query(expr),
      }
      const browser = await startBrowser(program ?? '')
      try {
        for (const board of boards) {
          const picture = await pictureOf(board, recorded)
          const page = await browser.newPage({ viewport: { width: 1200, height: 900 } })
          const wrong: string[] = []
          page.on('pageerror', (error) => wrong.push(error.message))
          await page.setContent(pictureHtml(picture))
          const all = picture.rows.flatMap(({ panels }) => panels)
          await page.locator(`body[data-drawn="${all.length}"]`).waitFor({ timeout: 60_000 })
          expect(wrong).toEqual([])
          expect(await page.locator('canvas').count()).toBe(withGraph(picture))
          for (const { title, empty } of all) expect(empty, `${board.title}: ${title}`).not.toBe('unexpected')
          const png = await page.locator('main').screenshot()
          expect(png.length).toBeGreaterThan(10_000)
          if (keepIn !== undefined) {
            mkdirSync(keepIn, { recursive: true })
            writeFileSync(join(keepIn, `${board.uid}.png`), png)
          }
          await page.close()
        }
      } finally {
        await browser.close()
      }
    },
  )

  const asked = Object.entries(runbooks).flatMap(([name, { look }]) =>
    look.flatMap(({ query }) => (query === undefined ? [] : [[name, query] as const])),
  )
  test.each(asked)('%s: the runbook asks %s', async (_name, query) => {
    await run(query)
  })

  test.each(questions.map(({ asks, query }) => [asks, query] as const))('%s', async (_asks, query) => {
    await run(query)
  })

  test('the waits name the stake that needs a person, with its reason', async () => {
    const refused = { namespace: 'default', name: 'refused', kind: 'EthereumStake', reason: 'SignerNotFound' }
    await untilHolds(
      'it was scraped',
      () => run('staking_operator_resource_condition{type="Stalled"}'),
      (found) => {
        const named = found.map(({ metric: { namespace, name, kind, reason } }) => ({ namespace, name, kind, reason }))
        // A recorded run has more of them.
        expect(named).toEqual(keepIn === undefined ? [refused] : expect.arrayContaining([refused]))
      },
    )
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

const withGraph = ({ rows }: Picture): number =>
  rows.flatMap(({ panels }) => panels).filter(({ shows, empty }) => shows === 'graph' && empty === undefined).length
