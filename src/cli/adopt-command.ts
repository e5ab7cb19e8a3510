import { Command, Option } from 'commander'
import { createLogger } from '../lib/log.ts'
import { stopSignal } from './arguments.ts'
import { decide, endWith } from './end.ts'

interface AdoptFlags {
  readonly filename: readonly string[]
  readonly namespace: string
  readonly networks: string
  readonly write?: true
}

/** For a cluster that is made anew from Git: see docs/how-to/restore.md. */
export function adoptCommand(version: string): Command {
  return new Command('adopt')
    .description(
      'have the stakes of manifests take over what they made before, as in a cluster made anew from Git: asks the staking API by their names and sets spec.adopt.stakeId. Nothing is sent. The exit code is 1 when one is unclear',
    )
    .addOption(new Option('--all', 'every stake of the files').makeOptionMandatory())
    .requiredOption('-f, --filename <path...>', 'files of manifests, or folders of them')
    .option('-n, --namespace <name>', 'namespace of manifests that name none', 'default')
    .addOption(
      new Option('--networks <file>', "the operator's networks").default('/etc/staking-operator/networks.yaml').env('STAKING_NETWORKS'),
    )
    .option('--write', 'write the files (default: print them)')
    .action(async (flags: AdoptFlags) => {
      const { adoptFiles, write } = await import('../inspect/adopt/adopt.ts')
      const log = createLogger({ program: 'operator', level: 'warn', format: process.stderr.isTTY ? 'text' : 'json' })
      const { files, adoptions } = await adoptFiles(
        { paths: flags.filename, namespace: flags.namespace, networksFile: flags.networks, log, userAgent: `staking-operator/${version}` },
        stopSignal(),
      )
      const code = adoptions.some(({ is }) => is === 'unclear') ? 1 : 0
      decide(code)
      for (const { resource, is, says } of adoptions) process.stderr.write(`${is}: ${resource}: ${says}\n`)
      if (flags.write === true) for (const file of files) if (file.stakes.length > 0) write(file)
      if (flags.write !== true) process.stdout.write(files.map((file) => file.text()).join('---\n'))
      await endWith(code)
    })
}
