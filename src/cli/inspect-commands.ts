import { Command, InvalidArgumentError, Option } from 'commander'
import type { Finding } from '../inspect/doctor/finding.ts'
import { type OutputFormat, oneLine, outputFormats } from '../inspect/output.ts'
import type { Verdict } from '../inspect/verdict.ts'
import type { Verdicts } from '../inspect/verify-commands.ts'
import { dnsName, moment, stopSignal, targetOf } from './arguments.ts'
import { type ClusterFlags, contextOption, kubeconfigOption, open } from './cluster-options.ts'
import { decide, endWith } from './end.ts'
import { planCommand } from './plan-command.ts'
import { document, isTable, outputOption, paint, show, write } from './print.ts'
import { statusCommand } from './status-command.ts'
import { look, watchOption } from './watch.ts'

const networksOption = () =>
  new Option('--networks <file>', "the operator's networks").default('/etc/staking-operator/networks.yaml').env('STAKING_NETWORKS')

/** What looks at a cluster and changes nothing, for `staking-operator` and `kubectl staking` alike. */
export const inspectCommands = (version: string): readonly Command[] => [
  doctorCommand(version),
  statusCommand(version),
  logCommand(version),
  verifyCommand(version),
  planCommand(version),
]

/** How often a watching doctor looks, in ms: each look is some forty calls. */
const DOCTOR_WATCH_MS = 10_000

const states = { ok: 'green', warning: 'yellow', failed: 'red', skipped: 'dim' } as const

function doctorCommand(version: string): Command {
  return new Command('doctor')
    .description(
      'look at everything that the operator needs: configuration, nodes, staking API, keys, CRDs, permissions, leader, clocks. Nothing is written or sent. The exit code is 1 when something is wrong, or nothing could be looked at',
    )
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .addOption(networksOption())
    .addOption(new Option('--keys-dir <dir>', 'folder of the mounted keys').default('/var/run/staking/keys').env('STAKING_KEYS_DIR'))
    .addOption(
      new Option('--remote-signers <file>', 'keys that others have: Web3Signer, AWS KMS, Vault or OpenBao').env('STAKING_REMOTE_SIGNERS'),
    )
    .addOption(
      new Option('--lease-namespace <name>', 'namespace of the leader election lease').default('staking-system').env('POD_NAMESPACE'),
    )
    .addOption(new Option('--lease-name <name>', 'name of the leader election lease').default('staking-operator'))
    .addOption(new Option('--permissions', "ask the API server for the operator's permissions, as whoever runs this (default: in a pod)"))
    .addOption(watchOption())
    .addOption(outputOption('table', 'wide', 'json', 'yaml'))
    .action(
      async (
        flags: ClusterFlags & {
          readonly watch?: true
          readonly networks: string
          readonly keysDir: string
          readonly remoteSigners?: string
          readonly leaseNamespace: string
          readonly leaseName: string
          readonly permissions?: true
          readonly output: OutputFormat
        },
        command: Command,
      ) => {
        const { examine } = await import('../inspect/doctor/doctor.ts')
        const { systemClock } = await import('../lib/clock.ts')
        const cluster = await open(flags, version).catch((error: unknown) => ({
          missing: error instanceof Error ? error.message : String(error),
          isNamed: [flags.kubeconfig, flags.context, process.env.KUBECONFIG || undefined].some((named) => named !== undefined),
        }))
        const inPod = flags.kubeconfig === undefined && process.env.KUBERNETES_SERVICE_HOST !== undefined
        const signal = stopSignal()
        const watch = flags.watch === true
        let before: readonly Finding[] = []
        await look({ watch, signal, everyMs: DOCTOR_WATCH_MS }, async (isFirst) => {
          const findings = await examine(
            {
              networksFile: flags.networks,
              isNetworksNamed: command.getOptionValueSource('networks') !== 'default',
              keysDir: flags.keysDir,
              isKeysDirNamed: command.getOptionValueSource('keysDir') !== 'default',
              remoteSignersFile: flags.remoteSigners || undefined,
              lease: { namespace: flags.leaseNamespace, name: flags.leaseName },
              cluster,
              isOperator: flags.permissions ?? inPod,
              clock: systemClock,
              userAgent: `staking-operator/${version}`,
            },
            signal,
          )
          // What a stopped look has not found is no news.
          if (!isFirst && signal.aborted) return
          const fresh = findings.filter((one) => !before.some((known) => isSame(known, one)))
          before = findings
          decide(codeOf(before))
          if (!isFirst && fresh.length === 0) return
          write(isTable(flags.output) ? report(fresh, isFirst) : document(flags.output, { findings: fresh }, isFirst))
        })
        if ('close' in cluster) await cluster.close()
        if (!isLooked(before)) process.stderr.write('error: nothing could be looked at from here\n')
        await (watch ? endWith(codeOf(before)) : endWith(codeOf(before), signal))
      },
    )
}

const isLooked = (findings: readonly Finding[]): boolean => findings.some(({ state }) => state !== 'skipped')
const codeOf = (findings: readonly Finding[]): 0 | 1 => (!isLooked(findings) || findings.some(({ state }) => state === 'failed') ? 1 : 0)

/** Whether a finding says the same as before: numbers in its words, such as heights, are no news. */
const isSame = (one: Finding, other: Finding): boolean => one.area === other.area && one.about === other.about && one.state === other.state

/** A line for each finding, and of all of them how many there are of each. */
function report(findings: readonly Finding[], isAll: boolean): string {
  const lines = findings.map(
    ({ state, area, about, message }) => `${paint(states[state], state.padEnd(7))}  ${area}: ${about}: ${oneLine(message)}\n`,
  )
  if (!isAll) return lines.join('')
  const counts = Object.keys(states).map((state) => `${findings.filter((finding) => finding.state === state).length} ${state}`)
  return `${lines.join('')}\n${counts.join(', ')}\n`
}

function logCommand(version: string): Command {
  return new Command('log')
    .description(
      'print the audit trail: every transaction that was signed, and every nonce that none names, as far as the transaction log has them. It does not keep all: a nonce that none names goes once it is final, and an exit or a withdrawal some time after its resource (--transaction-retention of the operator)',
    )
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .option('--signer <name>', 'only of this StakingSigner')
    .option('--network <name>', 'only on this network')
    .option('-n, --namespace <name>', 'only for resources of this namespace', dnsName)
    .addOption(new Option('--since <time>', 'only from this date or time on, such as 2030-01-31').argParser(moment))
    .addOption(watchOption())
    .addOption(outputOption(...outputFormats))
    .action(
      async (
        flags: ClusterFlags & {
          readonly signer?: string
          readonly network?: string
          readonly namespace?: string
          readonly since?: Date
          readonly watch?: true
          readonly output: OutputFormat
        },
      ) => {
        const [{ auditColumns }, { readAuditTrail }] = await Promise.all([
          import('../inspect/audit-trail.ts'),
          import('../inspect/read-audit-trail.ts'),
        ])
        const cluster = await open(flags, version)
        const signal = stopSignal()
        const told = new Set<string>()
        await look({ watch: flags.watch === true, signal }, async (isFirst) => {
          const entries = await readAuditTrail(cluster, flags, signal)
          // An entry whose result has changed is told anew.
          const fresh = entries.filter((entry) => !told.has(JSON.stringify(entry)))
          for (const entry of fresh) told.add(JSON.stringify(entry))
          if (isFirst || fresh.length > 0) write(show(flags.output, auditColumns, fresh, fresh, isFirst))
          // A name with a slip in it must not read as a key that has signed nothing.
          if (isFirst && fresh.length === 0)
            process.stderr.write('Nothing in the transaction log is of that: look at the names, and at the time.\n')
        })
        await cluster.close()
        await endWith(0)
      },
    )
}

interface VerifyFlags {
  readonly networks: string
  readonly network?: string
  readonly rpcUrl?: string[]
  readonly withdrawalAddress?: `0x${string}`
  readonly amountEth?: string
  readonly history?: true
  readonly output: OutputFormat
}

function verifyCommand(version: string): Command {
  const command = new Command('verify').description(
    'recompute from public data what a deposit pays, to whom, and whether it is in the chain for good. Nothing is believed that can be computed. The exit code is 1 when a rule does not hold, and 2 when none is broken and something is not known, such as whether it is final',
  )
  const withNodes = (one: Command) =>
    one
      .addOption(networksOption())
      .option('--rpc-url <url...>', 'RPC URLs to ask instead of those of the networks file (mainnet, hoodi and sepolia need no file)')
      .option('--history', 'read all deposits of the contract, so that an earlier deposit for the key is found')
      .addOption(outputOption('table', 'wide', 'json', 'yaml'))
  withNodes(command.command('deposit'))
    .description('verify a deposit_data-*.json, a stake of the staking API, or a transaction by its hash')
    .argument('<file or hash>', 'file, - for standard input, or 0x and 64 hex digits')
    .requiredOption('--network <name>', 'network that it is for')
    .addOption(new Option('--withdrawal-address <address>', 'address that the money must return to').argParser(ethereumAddress))
    .option('--amount-eth <eth>', 'amount that it must be')
    .action(async (target: string, flags: VerifyFlags & { readonly network: string }) => {
      const { verifyDepositTarget } = await import('../inspect/verify-commands.ts')
      const verdicts = await verifyDepositTarget(target, flags, stopSignal())
      await conclude(flags.output, verdicts)
    })
  withNodes(command.command('stake'))
    .description(
      'verify an EthereumStake of a cluster: its deposit against its spec, its transaction against the transaction log and the chain',
    )
    .argument('<name...>', 'name of the EthereumStake, with or without its kind')
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .option('-n, --namespace <name>', "namespace (default: the context's)", dnsName)
    .action(async (words: readonly string[], flags: VerifyFlags & ClusterFlags & { readonly namespace?: string }) => {
      const { verifyStake } = await import('../inspect/verify-commands.ts')
      const cluster = await open(flags, version)
      const verdicts = await verifyStake(
        cluster,
        { target: targetOf(words), namespace: flags.namespace ?? cluster.namespace },
        flags,
        stopSignal(),
      )
      await cluster.close()
      await conclude(flags.output, verdicts)
    })
  return command
}

function ethereumAddress(text: string): `0x${string}` {
  if (!/^0x[0-9a-fA-F]{40}$/.test(text)) throw new InvalidArgumentError('write an Ethereum address: 0x and 40 hex digits')
  return text as `0x${string}`
}

async function conclude(format: OutputFormat, groups: readonly Verdicts[]): Promise<never> {
  const { conclusionOf } = await import('../inspect/verdict.ts')
  const { holds, broken, unknown, notAsked, exitCode } = conclusionOf(groups.flatMap(({ verdicts }) => verdicts))
  decide(exitCode)
  if (!isTable(format)) write(document(format, { holds, groups }))
  else {
    for (const { what, verdicts } of groups) write(`${oneLine(what)}\n${verdicts.map(lineOf).join('')}`)
    const others = notAsked > 0 ? `; ${notAsked} was not asked for` : ''
    write(
      broken > 0
        ? `\n${broken} broken. Do not sign or send this.\n`
        : unknown > 0
          ? `\nNothing is broken, and ${unknown} could not be found out${others}: it is not verified yet.\n`
          : `\nEvery rule that was looked at holds${others}.\n`,
    )
  }
  return endWith(exitCode)
}

const lineOf = ({ rule, holds, says }: Verdict): string =>
  `  ${holds === true ? paint('green', 'holds  ') : holds === false ? paint('red', 'BROKEN ') : paint('dim', 'unknown')}  ${oneLine(`${rule}: ${says}`)}\n`
