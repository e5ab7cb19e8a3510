#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { historyCommand } from './cli/history-command.ts'
import { operatorCommand } from './cli/operator-command.ts'
import { apiKeysCommand, auditLogCommand, keystoresCommand, serviceCommand } from './cli/service-commands.ts'
import { setNetworkDefaults } from './lib/network-defaults.ts'

setNetworkDefaults()

const version = (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version

const program = new Command('staking-operator')
  .description('Stakes as Kubernetes resources: an operator and a staking service.')
  .version(version)
  .addCommand(operatorCommand(version))
  .addCommand(serviceCommand(version))
  .addCommand(apiKeysCommand())
  .addCommand(auditLogCommand())
  .addCommand(keystoresCommand())
  .addCommand(historyCommand())

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

/** Errors whose message is all that a person needs: what was wrong, where, what to do. */
const told = new Set([
  'ConfigError',
  'NetworksFileError',
  'SeedError',
  'KeystoreError',
  'KeymanagerError',
  'KeyError',
  'DatabaseInUseError',
  'DatabaseUnavailableError',
])

try {
  await program.parseAsync()
} catch (error) {
  const text = !(error instanceof Error) ? String(error) : told.has(error.name) ? `error: ${error.message}` : (error.stack ?? error.message)
  process.stderr.write(`${text}\n`)
  process.exit(1)
}
