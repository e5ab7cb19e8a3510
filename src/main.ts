#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { historyCommand } from './cli/history-command.ts'
import { operatorCommand } from './cli/operator-command.ts'
import { apiKeysCommand, auditLogCommand, keystoresCommand, serviceCommand } from './cli/service-commands.ts'
import { holds, lastWords, tellInOneLine } from './cli/tell.ts'
import { setNetworkDefaults } from './lib/network-defaults.ts'

setNetworkDefaults()

const here = new URL(import.meta.url)
const { version } = JSON.parse(readFileSync(new URL('../package.json', here), 'utf8')) as { version: string }
// What an image lacks is not offered; who asks for it all the same is told which image has it.
const ofOperator = { hidden: !holds('operator', here) }
const ofService = { hidden: !holds('service', here) }

const program = new Command('staking-operator')
  .description('Stakes as Kubernetes resources: an operator and a staking service.')
  .version(version)
  .addCommand(operatorCommand(version), ofOperator)
  .addCommand(serviceCommand(version), ofService)
  .addCommand(apiKeysCommand(), ofService)
  .addCommand(auditLogCommand(), ofService)
  .addCommand(keystoresCommand(), ofService)
  .addCommand(historyCommand(), ofOperator)

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
  await tellInOneLine(program).parseAsync()
} catch (error) {
  process.stderr.write(`${lastWords(error, here)}\n`)
  process.exit(1)
}
