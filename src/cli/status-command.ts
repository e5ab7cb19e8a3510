import { Command } from 'commander'
import type { Life } from '../inspect/life.ts'
import { type OutputFormat, oneLine, tableRows } from '../inspect/output.ts'
import { type Moment, timelineColumns } from '../inspect/timeline.ts'
import { dnsName, stopSignal, targetOf } from './arguments.ts'
import { type ClusterFlags, contextOption, kubeconfigOption, open } from './cluster-options.ts'
import { endWith } from './end.ts'
import { document, isTable, outputOption, paint, terminalWidth, write } from './print.ts'
import { look, watchOption } from './watch.ts'

interface StatusFlags extends ClusterFlags {
  readonly namespace?: string
  readonly watch?: true
  readonly output: OutputFormat
}

export function statusCommand(version: string): Command {
  return new Command('status')
    .description('tell the life of a stake, an exit or a withdrawal: its conditions, transactions and events in order')
    .argument('<target...>', 'NAME, KIND NAME, or KIND/NAME such as ethstake/validator-1')
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .option('-n, --namespace <name>', "namespace (default: the context's)", dnsName)
    .addOption(watchOption())
    .addOption(outputOption('table', 'wide', 'json', 'yaml'))
    .action(async (words: readonly string[], flags: StatusFlags) => {
      const { readLife } = await import('../inspect/life.ts')
      const target = targetOf(words)
      const signal = stopSignal()
      const cluster = await open(flags, version)
      const namespace = flags.namespace ?? cluster.namespace
      const told = new Set<string>()
      await look({ watch: flags.watch === true, signal }, async (isFirst) => {
        const life = await readLife(cluster, target, namespace, signal)
        const fresh = life.moments.filter((one) => !told.has(identity(one)))
        for (const one of fresh) told.add(identity(one))
        if (isFirst || fresh.length > 0) write(telling(life, fresh, { namespace, format: flags.output, isFirst }))
      })
      await cluster.close()
      await endWith(0)
    })
}

/** The first look tells all, later ones what is new. */
function telling(
  { resource, hidden }: Life,
  moments: readonly Moment[],
  { namespace, format, isFirst }: { readonly namespace: string; readonly format: OutputFormat; readonly isFirst: boolean },
): string {
  const { kind, metadata, status } = resource
  if (!isTable(format)) return document(format, { kind, namespace, name: metadata.name, phase: status?.phase, moments, hidden }, isFirst)
  const lines = colored(moments, { wide: format === 'wide', withTitle: isFirst })
  if (!isFirst) return lines
  const head = oneLine(`${kind} ${namespace}/${metadata.name}: ${status?.phase ?? 'not looked at yet'}`)
  return `${head}\n\n${lines}${hidden.map((part) => `\nYou may not read its ${part}: they are not shown.\n`).join('')}`
}

const identity = ({ at, what, text }: Moment): string => `${at} ${what} ${text}`

/** Lines of warnings in yellow. */
function colored(moments: readonly Moment[], { wide, withTitle }: { readonly wide: boolean; readonly withTitle: boolean }): string {
  const rows = tableRows(timelineColumns, moments, { wide, width: terminalWidth() })
    .map((row, index) => (moments[index - 1]?.isWarning === true ? paint('yellow', row) : row))
    .slice(withTitle ? 0 : 1)
  return rows.map((row) => `${row}\n`).join('')
}
