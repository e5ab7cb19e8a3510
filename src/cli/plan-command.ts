import { Command, Option } from 'commander'
import { dnsName, stopSignal } from './arguments.ts'
import { contextOption, kubeconfigOption, open } from './cluster-options.ts'
import { decide, endWith } from './end.ts'

interface PlanFlags {
  readonly filename: readonly string[]
  readonly recursive?: true
  readonly namespace?: string
  readonly server?: true
  readonly kubeconfig?: string
  readonly context?: string
  readonly networks?: string
  readonly fieldManager: string
  readonly leaseNamespace: string
  readonly leaseName: string
  readonly strict?: true
  readonly output: 'text' | 'json' | 'yaml'
  readonly color: boolean
}

/** For pull requests: see docs/how-to/plan.md. */
export const planCommand = (version: string): Command =>
  new Command('plan')
    .description(
      'tell what applying manifests would do: addresses, amounts, fees, which policy admits or refuses it and why, limits left. Nothing is written, signed or sent. The exit code is 0 when nothing would be refused, 2 when something would be, and 1 when that could not be found out',
    )
    .requiredOption('-f, --filename <path...>', 'files of manifests, folders of them, or - for standard input')
    .option('-R, --recursive', 'read the folders in a folder too')
    .addOption(
      new Option('-n, --namespace <name>', "namespace of manifests that name none (default: the context's, or default)").argParser(dnsName),
    )
    .option(
      '--server',
      'ask the cluster: it tries each object (server-side apply, dry run), and shows signers, namespaces, limits used and what is there',
    )
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .addOption(
      new Option('--networks <file>', "the operator's networks: their nodes are asked for fees and balances").env('STAKING_NETWORKS'),
    )
    .option('--field-manager <name>', 'who applies the manifests, as the API server knows it, with --server', 'kubectl')
    .addOption(
      new Option('--lease-namespace <name>', "namespace of the operator's lease, with --server")
        .default('staking-system')
        .env('POD_NAMESPACE'),
    )
    .option('--lease-name <name>', "name of the operator's lease, with --server", 'staking-operator')
    .option('--strict', 'exit with 2 also where something would wait, or is not known')
    .addOption(new Option('-o, --output <format>', 'how to print it').choices(['text', 'json', 'yaml']).default('text'))
    .option('--no-color', 'no colours on a terminal either')
    .action(async (flags: PlanFlags) => {
      const [{ makePlan }, { exitCodeOf }, { inWords }, { json, painter, yaml }, { systemClock }] = await Promise.all([
        import('../inspect/plan/plan.ts'),
        import('../inspect/plan/summary.ts'),
        import('../inspect/plan/words.ts'),
        import('../inspect/output.ts'),
        import('../lib/clock.ts'),
      ])
      const cluster = flags.server === true ? await open(flags, version) : undefined
      const signal = stopSignal()
      const plan = await makePlan(
        {
          paths: flags.filename,
          recursive: flags.recursive === true,
          namespace: flags.namespace,
          networksFile: flags.networks,
          server: cluster && {
            cluster,
            fieldManager: flags.fieldManager,
            lease: { namespace: flags.leaseNamespace, name: flags.leaseName },
          },
          clock: systemClock,
        },
        signal,
      )
      await cluster?.close()
      const paint = painter(flags.color ? process.stdout : {}, process.env)
      const text = flags.output === 'json' ? json(plan) : flags.output === 'yaml' ? yaml(plan) : inWords(plan, paint)
      const code = exitCodeOf(plan, { strict: flags.strict === true })
      decide(code)
      process.stdout.write(text)
      await endWith(code, signal)
    })
