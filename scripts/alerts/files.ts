import { stringify } from 'yaml'
import { type Alert, alerts } from './alerts.ts'

const header = 'Generated from scripts/alerts/alerts.ts by `npm run generate`. Do not edit.'
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

/** The page that says what to do at 3 a.m. */
export function alertReference(): string {
  const section = ({ name, severity, expr, for: holds, means, todo }: Alert): string =>
    `## ${name}\n\n${means}\n\n${todo.map((step, index) => `${index + 1}. ${step}`).join('\n')}\n\n${severity === 'critical' ? 'Wakes somebody up' : 'Can wait for the morning'}; ${holds === '0m' ? 'at once' : `after ${holds}`} when\n\n\`\`\`promql\n${expr}\n\`\`\`\n`
  return `# Alerts\n\n<!-- ${header} -->\n\nThe chart brings them as a PrometheusRule (\`prometheusRule.enabled: true\`); without it, [the rules](../../charts/staking-operator/files/alerts.yaml) are a file that Prometheus reads as it is.\n\n${alerts.map(section).join('\n')}`
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
