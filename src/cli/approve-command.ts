import { Command, InvalidArgumentError, Option } from 'commander'
import { InspectError } from '../inspect/error.ts'
import { oneLine } from '../inspect/output.ts'
import { approvableKinds } from '../resources/staking-approval.ts'
import { dnsName, lifetime, stopSignal, targetOf } from './arguments.ts'
import { agreed } from './ask.ts'
import { contextOption, kubeconfigOption, open } from './cluster-options.ts'
import { decide, Interrupted } from './end.ts'

interface ApproveFlags {
  readonly kubeconfig?: string
  readonly context?: string
  readonly namespace?: string
  readonly kind?: string
  readonly plan?: string
  readonly expiresIn?: number
  readonly yes?: true
}

/** The one command of `kubectl staking` that writes: a StakingApproval, as whoever runs it. */
export function approveCommand(version: string): Command {
  return new Command('approve')
    .description(
      'approve what a stake, an exit or a withdrawal would have signed, as the user of the kubeconfig: shows the plan and asks. What was approved can be taken back until it is sent (kubectl delete approval NAME)',
    )
    .argument('<target...>', 'NAME, KIND NAME, or KIND/NAME such as ethstake/validator-1')
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .option('-n, --namespace <name>', "namespace (default: the context's)", dnsName)
    .addOption(new Option('--kind <kind>', 'kind of the resource').choices([...approvableKinds]))
    .addOption(new Option('--plan <hash>', 'approve this plan only: status.plan.hash').argParser(planHash))
    .addOption(new Option('--expires-in <duration>', 'it counts for so long at most, such as 30m or 4h').argParser(lifetime))
    .option('--yes', 'do not ask. Not on a terminal, --plan and --yes are needed')
    .action(async (words: readonly string[], flags: ApproveFlags) => {
      const { approve, limitsInWords, readApprovable } = await import('../inspect/approve.ts')
      const { planInWords } = await import('../inspect/plan-words.ts')
      const given = targetOf(words)
      const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true
      if (!isTerminal && (flags.plan === undefined || flags.yes !== true))
        throw new InspectError(
          'this is no terminal, so nobody can be asked: name the plan that you have looked at with --plan HASH, and write --yes',
        )
      const target = flags.kind === undefined || given.includes('/') ? given : `${flags.kind}/${given}`
      const signal = stopSignal()
      const cluster = await open(flags, version)
      try {
        const found = await readApprovable(cluster, target, flags.namespace ?? cluster.namespace, signal)
        const { plan, requestedBy, signers, user } = found
        if (flags.plan !== undefined && flags.plan !== plan.hash)
          throw new InspectError(`the plan is another now: its hash is ${plan.hash}. Look at it, and approve it if that is what you mean`)
        const lines = [
          ...planInWords(plan),
          ['asked for by', requestedBy.join(', ') || 'unknown'] as const,
          ...limitsInWords(signers.limits),
          ['plan', plan.hash] as const,
        ]
        // Whoever reads no more ends it: until it is approved, it is not.
        decide(1)
        const width = Math.max(...lines.map(([name]) => name.length))
        process.stdout.write(lines.map(([name, value]) => `${name.padEnd(width)}  ${oneLine(value)}\n`).join(''))
        if (
          flags.yes !== true &&
          !(await agreed(`\nApprove that as ${oneLine(user)}? [y/N] `, { input: process.stdin, output: process.stdout }, signal))
        ) {
          process.stdout.write('Nothing was approved.\n')
          return
        }
        const expiresAt = flags.expiresIn === undefined ? undefined : new Date(Date.now() + flags.expiresIn)
        const name = await approve(cluster, found, expiresAt, signal).catch((error: unknown) => {
          if (error instanceof Interrupted)
            process.stderr.write(`Whether it was approved is not known: kubectl get stakingapproval -n ${plan.resource.namespace}\n`)
          throw error
        })
        decide(0)
        process.stdout.write(
          `\nApproved as ${oneLine(user)}. To take it back before it is sent: kubectl delete stakingapproval ${name} -n ${plan.resource.namespace}\n`,
        )
      } finally {
        await cluster.close()
      }
    })
}

function planHash(text: string): string {
  if (!/^[0-9a-f]{64}$/.test(text))
    throw new InvalidArgumentError('write the whole hash: 64 hex digits in lower case, as status.plan.hash has it')
  return text
}
