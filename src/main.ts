#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command, InvalidArgumentError, Option } from 'commander'
import { createLogger, type LogLevel, logLevels } from './lib/log.ts'

const version = (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version

/** A number of milliseconds from `15s`, `2m`, `500ms`. */
function duration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text)
  const unit = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[match?.[2] ?? '']
  if (match === null || unit === undefined) throw new InvalidArgumentError('write a duration such as 500ms, 15s, 2m or 1h')
  return Number(match[1]) * unit
}

/** `host:port`; port 0 takes a free one. */
function listenAddress(text: string): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port > 65_535) throw new InvalidArgumentError('write host:port, such as 0.0.0.0:8080')
  return { host: match[1] ?? (match[2] || '0.0.0.0'), port }
}

function count(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new InvalidArgumentError('write a whole number from 1 to 9999')
  return Number(text)
}

const logLevel = () =>
  new Option('--log-level <level>', 'what to log')
    .choices([...logLevels])
    .default('info')
    .env('STAKING_LOG_LEVEL')

/** Aborted by SIGTERM or SIGINT; a second signal ends the process at once. */
function stopSignal(): AbortSignal {
  const controller = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(130)
      controller.abort(new Error(`${name} received`))
    })
  }
  return controller.signal
}

const program = new Command('staking-operator')
  .description('Stakes as Kubernetes resources: an operator and a staking service.')
  .version(version)

program
  .command('operator')
  .description('reconcile the resources of a cluster')
  .addOption(new Option('--kubeconfig <file>', 'kubeconfig; inside a cluster the service account is used').env('KUBECONFIG'))
  .addOption(
    new Option('--networks <file>', "the operator's networks").default('/etc/staking-operator/networks.yaml').env('STAKING_NETWORKS'),
  )
  .addOption(new Option('--keys-dir <dir>', 'folder of the mounted keys').default('/var/run/staking/keys').env('STAKING_KEYS_DIR'))
  .addOption(
    new Option('--lease-namespace <name>', 'namespace of the leader election lease').default('staking-system').env('POD_NAMESPACE'),
  )
  .addOption(new Option('--lease-name <name>', 'name of the leader election lease').default('staking-operator'))
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
  .addOption(new Option('--workers <n>', 'stakes reconciled at a time').argParser(count).default(16))
  .addOption(
    new Option('--stall-recheck <duration>', 'how often a stalled resource is looked at again').argParser(duration).default(300_000, '5m'),
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
    new Option('--observe-settled <duration>', 'how often an active validator is looked at').argParser(duration).default(21_600_000, '6h'),
  )
  .addOption(logLevel())
  .action(async (options: OperatorFlags) => {
    const { runOperator } = await import('./operator/operator.ts')
    const log = createLogger({ program: 'operator', level: options.logLevel, pretty: process.stdout.isTTY })
    const ended = await runOperator(
      {
        kubeconfig: options.kubeconfig,
        networksFile: options.networks,
        keysDir: options.keysDir,
        leaseNamespace: options.leaseNamespace,
        leaseName: options.leaseName,
        identity: options.identity,
        leaseDurationMs: options.leaseDuration,
        renewDeadlineMs: options.renewDeadline,
        retryPeriodMs: options.retryPeriod,
        ...options.listen,
        workers: options.workers,
        stallRecheckMs: options.stallRecheck,
        signerIntervalMs: options.signerInterval,
        observation: { activatingMs: options.observeActivating, settledMs: options.observeSettled },
        version,
      },
      log,
      stopSignal(),
    )
    log.info({ ended }, ended === 'lost' ? 'the lease was lost: ending at once' : 'stopped')
    // What is still open must not keep a deposed leader alive.
    process.exit(ended === 'lost' ? 1 : 0)
  })

interface OperatorFlags {
  readonly kubeconfig: string | undefined
  readonly networks: string
  readonly keysDir: string
  readonly leaseNamespace: string
  readonly leaseName: string
  readonly identity: string | undefined
  readonly leaseDuration: number
  readonly renewDeadline: number
  readonly retryPeriod: number
  readonly listen: { readonly host: string; readonly port: number }
  readonly workers: number
  readonly stallRecheck: number
  readonly signerInterval: number
  readonly observeActivating: number
  readonly observeSettled: number
  readonly logLevel: LogLevel
}

program
  .command('crds')
  .description('print the CustomResourceDefinitions of this version as YAML')
  .action(async () => {
    const [{ kinds }, { customResourceDefinition }, { stringify }] = await Promise.all([
      import('./resources/kinds.ts'),
      import('./resources/crd.ts'),
      import('yaml'),
    ])
    process.stdout.write(kinds.map((kind) => stringify(customResourceDefinition(kind), { lineWidth: 0 })).join('---\n'))
  })

try {
  await program.parseAsync()
} catch (error) {
  // A configuration that can't be used is told in one line; anything else with its stack.
  const expected = error instanceof Error && /ConfigError|NetworksFileError/.test(error.name)
  process.stderr.write(
    `${expected ? `error: ${error.message}` : error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  )
  process.exit(1)
}
