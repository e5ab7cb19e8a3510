import { stringify } from 'yaml'
import { alerts } from './alerts.ts'
import { questions } from './questions.ts'
import { slo } from './slo.ts'

const header = 'Generated from scripts/alerts by `npm run generate`. Do not edit.'
const groups = [
  { name: 'staking-operator', of: 'operator' },
  { name: 'staking-service', of: 'service' },
] as const

/** The rules as Prometheus reads them. `bare`: without annotations, which promtool would compare word by word. */
export const alertRules = ({ bare = false } = {}): string =>
  `# ${header}\n${stringify(
    {
      groups: groups.map(({ name, of }) => ({
        name,
        rules: alerts
          .filter((alert) => alert.of === of)
          .map((alert) => ({
            alert: alert.name,
            expr: alert.expr,
            for: alert.for,
            labels: { severity: alert.severity },
            ...(bare ? {} : { annotations: { summary: alert.summary, description: alert.means } }),
          })),
      })),
    },
    { lineWidth: 0 },
  )}`

/** All alerts in one page, with a way to the runbook of each. */
export function alertReference(): string {
  const linked = (name: string): string => `[${name}](../runbooks/${name}.md)`
  const asked = questions.map(({ asks, alerts: names, query }) => `| ${asks} | ${names.map(linked).join(', ')} | \`${query}\` |`)
  const listed = alerts.map(
    ({ name, severity, for: holds, means }) => `| ${linked(name)} | ${severity} | ${holds === '0m' ? 'at once' : holds} | ${means} |`,
  )
  return `# Alerts

<!-- ${header} -->

The chart brings them as a PrometheusRule (\`prometheusRule.enabled: true\`); without it, [the rules](../../charts/staking-operator/files/alerts.yaml) are a file that Prometheus reads as it is. Each has a runbook: what it means, whether money is at risk, what to look at, what to do and what never to do. With \`prometheusRule.runbookUrl\` each alert links to its own ([Monitor it](../how-to/monitor.md)).

A **critical** alert wakes somebody up; a **warning** can wait for the morning.

## Ten questions

[On call](../how-to/on-call.md) has a command for each, too.

| question | alerts | query |
|---|---|---|
${asked.join('\n')}

## The objective

${slo.objective * 100} % of all EthereumStakes and SolanaStakes are broadcast within ${slo.seconds / 60} minutes of their creation, over 30 days. Two alerts tell when that is missed faster than it may be. Stakes whose spec was changed after their creation do not count.

## All alerts

| alert | severity | after | meaning |
|---|---|---|---|
${listed.join('\n')}
`
}

/** What is asked first, each with a command that answers it, how to read that, and where to go on. */
export function onCallPage(): string {
  const parts = questions.map(
    ({ asks, run, shows, alerts: names, query }, index) =>
      `## ${index + 1}. ${asks}\n\n\`\`\`sh\n${run}\n\`\`\`\n\n${shows}\n\nIn Prometheus:\n\n\`\`\`promql\n${query}\n\`\`\`\n\nIf something is wrong: ${names
        .map((name) => `[${name}](../runbooks/${name}.md)`)
        .join(', ')}.`,
  )
  return `# On call: ten questions

<!-- ${header} -->

What somebody who was woken asks first. Each has a command that answers within a minute, a query for Prometheus, and the alerts that tell without being asked: their pages are the runbooks.

Before anything else: if money may be going where nobody sent it, [stop everything](emergency-stop.md). That takes two seconds and loses nothing.

Commands are for a release \`staking-operator\` in the namespace \`staking-system\`. [Look into it](look-into-it.md) has what to ask of a single stake.

${parts.join('\n\n')}
`
}

/** What promtool is to prove: each alert fires by its series, with its labels, and stays silent by the others. */
export const alertTests = (rulesFile: string): string =>
  stringify({
    rule_files: [rulesFile],
    evaluation_interval: '1m',
    tests: alerts.flatMap(({ name, severity, fires, silent }) => [
      {
        name: `${name} fires`,
        interval: '1m',
        input_series: Object.entries(fires.series).map(([series, values]) => ({ series, values })),
        alert_rule_test: [{ alertname: name, eval_time: fires.at, exp_alerts: [{ exp_labels: { severity, ...fires.labels } }] }],
      },
      {
        name: `${name} stays silent`,
        interval: '1m',
        input_series: Object.entries(silent.series).map(([series, values]) => ({ series, values })),
        alert_rule_test: [{ alertname: name, eval_time: silent.at, exp_alerts: [] }],
      },
    ]),
  })
