#!/usr/bin/env node
import './cli/node-version.ts'
import { Command } from 'commander'
import { adoptCommand } from './cli/adopt-command.ts'
import { approveCommand } from './cli/approve-command.ts'
import { addCompletion } from './cli/completion.ts'
import { historyCommand } from './cli/history-command.ts'
import { inspectCommands } from './cli/inspect-commands.ts'
import { operatorCommand } from './cli/operator-command.ts'
import { runProgram, version } from './cli/program.ts'
import { apiKeysCommand, auditLogCommand, keystoresCommand, serviceCommand } from './cli/service-commands.ts'
import { holds } from './cli/tell.ts'

const here = new URL(import.meta.url)
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
  .addCommand(adoptCommand(version), ofOperator)

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

for (const command of inspectCommands(version)) program.addCommand(command, ofOperator)
program.addCommand(approveCommand(version), ofOperator)
addCompletion(program, 'staking-operator')

await runProgram(program, here)
