import { existsSync, statSync } from 'node:fs'
import { Command, Option } from 'commander'
import { systemClock } from '../lib/clock.ts'
import { ConfigError } from '../lib/config-error.ts'
import { createLogger, type LogFormat, type LogLevel } from '../lib/log.ts'
import type { OperatorHooks } from '../operator/options.ts'
import { count, defaultLogFormat, dnsName, duration, listenAddress, logFormat, logLevel, stopSignal } from './arguments.ts'

interface OperatorFlags {
  readonly kubeconfig: string | undefined
  readonly networks: string
  readonly keysDir: string
  readonly remoteSigners: string | undefined
  readonly leaseNamespace: string
  readonly leaseName: string
  readonly identity: string | undefined
  readonly leaseDuration: number
  readonly renewDeadline: number
  readonly retryPeriod: number
  readonly listen: { readonly host: string; readonly port: number }
  readonly ui: boolean
  readonly workers: number
  readonly stallRecheck: number
  readonly signerInterval: number
  readonly observeActivating: number
  readonly observeSettled: number
  readonly transactionRetention: number
  readonly logLevel: LogLevel
  readonly logFormat: LogFormat | undefined
}

/** `hooks` are for tests: see OperatorHooks. */
export const operatorCommand = (version: string, hooks: OperatorHooks = {}): Command =>
  new Command('operator')
    .description('reconcile the resources of a cluster')
    .addOption(new Option('--kubeconfig <file>', 'kubeconfig; inside a cluster the service account is used').env('KUBECONFIG'))
    .addOption(
      new Option('--networks <file>', "the operator's networks").default('/etc/staking-operator/networks.yaml').env('STAKING_NETWORKS'),
    )
    .addOption(new Option('--keys-dir <dir>', 'folder of the mounted keys').default('/var/run/staking/keys').env('STAKING_KEYS_DIR'))
    .addOption(
      new Option('--remote-signers <file>', 'keys that others have: Web3Signer, AWS KMS, Vault or OpenBao').env('STAKING_REMOTE_SIGNERS'),
    )
    .addOption(
      new Option('--lease-namespace <name>', 'namespace of the leader election lease')
        .argParser(dnsName)
        .default('staking-system')
        .env('POD_NAMESPACE'),
    )
    .addOption(new Option('--lease-name <name>', 'name of the leader election lease').argParser(dnsName).default('staking-operator'))
    .addOption(new Option('--identity <name>', 'who holds the lease: the name of the pod').env('POD_NAME'))
    .addOption(
      new Option('--lease-duration <duration>', 'how long others wait before they take over').argParser(duration).default(15_000, '15s'),
    )
    .addOption(
      new Option('--renew-deadline <duration>', 'how long the leader tries to renew before it gives up')
        .argParser(duration)
        .default(10_000, '10s'),
    )
    .addOption(
      new Option('--retry-period <duration>', 'how often the lease is renewed or tried for').argParser(duration).default(2_000, '2s'),
    )
    .addOption(
      new Option('--listen <host:port>', 'health and metrics')
        .argParser(listenAddress)
        .default({ host: '0.0.0.0', port: 8081 }, '0.0.0.0:8081'),
    )
    .addOption(
      new Option(
        '--ui',
        'serve a web page that shows the fleet, at /ui/ of --listen: it only reads, and whoever reaches it sees it',
      ).default(false),
    )
    .addOption(new Option('--workers <n>', 'stakes reconciled at a time').argParser(count).default(16))
    .addOption(
      new Option('--stall-recheck <duration>', 'how often a stalled resource is looked at again')
        .argParser(duration)
        .default(300_000, '5m'),
    )
    .addOption(
      new Option('--signer-interval <duration>', "how often a signer's key, funds and nonces are looked at")
        .argParser(duration)
        .default(60_000, '1m'),
    )
    .addOption(
      new Option('--observe-activating <duration>', 'how often a validator is looked at before it is active')
        .argParser(duration)
        .default(300_000, '5m'),
    )
    .addOption(
      new Option('--observe-settled <duration>', 'how often an active validator is looked at').argParser(duration).default(3_600_000, '1h'),
    )
    .addOption(
      new Option(
        '--transaction-retention <duration>',
        'how long the StakingTransaction of an exit or a withdrawal is kept after its resource; those of stakes are kept for good',
      )
        .argParser(duration)
        .default(2_592_000_000, '720h'),
    )
    .addOption(logLevel().default('info'))
    .addOption(logFormat())
    .action(async (flags: OperatorFlags) => {
      checkTogether(flags)
      const { runOperator } = await import('../operator/operator.ts')
      const log = createLogger({ program: 'operator', level: flags.logLevel, format: flags.logFormat ?? defaultLogFormat() })
      const { startTracing } = await import('../lib/otel.ts')
      const tracing = await startTracing({ service: 'staking-operator', version, env: process.env, clock: systemClock, log })
      const ended = await runOperator({ ...operatorOptions(flags), version }, log, stopSignal(), hooks)
      log.info({ ended }, ended === 'lost' ? 'the lease was lost: ending at once' : 'stopped')
      // A leader that was deposed ends at once, without its last spans.
      if (ended === 'stopped') await tracing?.close()
      // What is still open must not keep a deposed leader alive.
      process.exit(ended === 'lost' ? 1 : 0)
    })

/** What no flag shows alone. @throws ConfigError */
function checkTogether({ leaseDuration, renewDeadline, retryPeriod, keysDir }: OperatorFlags): void {
  if (!(leaseDuration > renewDeadline && renewDeadline > retryPeriod))
    throw new ConfigError(
      `--lease-duration (${leaseDuration} ms) must be longer than --renew-deadline (${renewDeadline} ms), and that longer than --retry-period (${retryPeriod} ms)`,
    )
  if (existsSync(keysDir) && !statSync(keysDir).isDirectory())
    throw new ConfigError(`--keys-dir ${keysDir} is no folder: name the folder that the keys are mounted in`)
}

const operatorOptions = (flags: OperatorFlags) => ({
  // As kubectl takes it: an empty KUBECONFIG names none.
  kubeconfig: flags.kubeconfig === '' ? undefined : flags.kubeconfig,
  networksFile: flags.networks,
  keysDir: flags.keysDir,
  remoteSignersFile: flags.remoteSigners === '' ? undefined : flags.remoteSigners,
  leaseNamespace: flags.leaseNamespace,
  leaseName: flags.leaseName,
  identity: flags.identity,
  leaseDurationMs: flags.leaseDuration,
  renewDeadlineMs: flags.renewDeadline,
  retryPeriodMs: flags.retryPeriod,
  ...flags.listen,
  ui: flags.ui,
  workers: flags.workers,
  stallRecheckMs: flags.stallRecheck,
  signerIntervalMs: flags.signerInterval,
  observation: { activatingMs: flags.observeActivating, settledMs: flags.observeSettled },
  retentionMs: flags.transactionRetention,
})
