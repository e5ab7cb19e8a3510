import { Command, Option } from 'commander'
import { createLogger } from '../lib/log.ts'
import { stopSignal } from './arguments.ts'
import { endWith } from './end.ts'

interface BuildFlags {
  readonly networks: string
  readonly network: string
  readonly out: string
}

export function historyCommand(): Command {
  const command = new Command('history').description('the history of the deposit contract')
  command
    .command('build')
    .description(
      "read a network's deposits once into a file, so that operator and service need not at every start (depositHistoryFile in the networks file). Make it yourself, with nodes that you trust",
    )
    .addOption(
      new Option('--networks <file>', "the operator's networks").default('/etc/staking-operator/networks.yaml').env('STAKING_NETWORKS'),
    )
    .requiredOption('--network <name>', 'network of the file')
    .requiredOption('--out <file>', 'file to write; one that is there is replaced once the new one is whole')
    .action(async (flags: BuildFlags) => {
      const { buildHistory } = await import('../operator/networks/build-history.ts')
      const log = createLogger({ program: 'operator', level: 'info', format: process.stderr.isTTY ? 'text' : 'json' })
      const { count, block, sha256 } = await buildHistory({ ...flags, log, signal: stopSignal() })
      process.stdout.write(`wrote ${count} deposits up to block ${block} to ${flags.out}\ndepositHistorySha256: ${sha256}\n`)
      await endWith(0)
    })
  return command
}
