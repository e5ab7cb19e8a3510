import type { Alert } from '../alert.ts'
import { alerts } from '../alerts.ts'
import type { Cause, Command, Look, Runbook } from './runbook.ts'
import { runbookOf } from './runbooks.ts'

const header = 'Generated from scripts/alerts by `npm run generate`. Do not edit.'

/** The parts of a runbook, in the order in which somebody who was woken needs them. */
export const headings = ['Meaning', 'Impact', 'First look', 'Causes', 'Mending', 'When to escalate', 'Never'] as const

const indented = (language: string, text: string): string =>
  ['', `\`\`\`${language}`, ...text.split('\n'), '```'].map((line) => (line === '' ? '' : `   ${line}`)).join('\n')
const step = (text: string, index: number, blocks: readonly string[]): string => [`${index + 1}. ${text}`, ...blocks].join('\n')

const look = ({ shows, run, query }: Look, index: number): string =>
  step(shows, index, [...(run === undefined ? [] : [indented('sh', run)]), ...(query === undefined ? [] : [indented('promql', query)])])
const mending = (item: string | Command, index: number): string =>
  typeof item === 'string' ? step(item, index, []) : step(item.does, index, [indented('sh', item.run)])
const causes = (all: readonly Cause[]): string =>
  `| what you see | cause |\n|---|---|\n${all.map(({ seen, cause }) => `| ${seen} | ${cause} |`).join('\n')}`

function page({ name, severity, for: holds, expr, means }: Alert, runbook: Runbook): string {
  const urgency = severity === 'critical' ? '**Critical**: somebody is woken.' : '**Warning**: it can wait for the morning.'
  const parts: Readonly<Record<(typeof headings)[number], string>> = {
    Meaning: [means, ...(runbook.meaning === undefined ? [] : [runbook.meaning])].join('\n\n'),
    Impact: `**Is money at risk?** ${runbook.money}\n\n${runbook.impact}`,
    'First look': runbook.look.map(look).join('\n\n'),
    Causes: causes(runbook.causes),
    Mending: runbook.mend.map(mending).join('\n\n'),
    'When to escalate': runbook.escalate,
    Never: runbook.never.map((each) => `- ${each}`).join('\n'),
  }
  return `# ${name}

<!-- ${header} -->

${urgency} It fires ${holds === '0m' ? 'at once' : `after ${holds}`} when

\`\`\`promql
${expr}
\`\`\`

${headings.map((heading) => `## ${heading}\n\n${parts[heading]}`).join('\n\n')}

---

Commands are for a release \`staking-operator\` in the namespace \`staking-system\`. What is in capitals stands in the alert's labels, or in what the command before it prints. A \`promql\` block is a query for Prometheus. [All alerts](../reference/alerts.md) · [All reasons](../reference/reasons.md) · [Stop in an emergency](../how-to/emergency-stop.md)
`
}

/** A page for each alert, by its path in the repository. */
export const runbookPages = (): ReadonlyMap<string, string> =>
  new Map(alerts.map((alert) => [`docs/runbooks/${alert.name}.md`, page(alert, runbookOf(alert.name))]))
