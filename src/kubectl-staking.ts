#!/usr/bin/env node
import './cli/node-version.ts'
import { Command } from 'commander'
import { approveCommand } from './cli/approve-command.ts'
import { addCompletion } from './cli/completion.ts'
import { inspectCommands } from './cli/inspect-commands.ts'
import { runProgram, version } from './cli/program.ts'

/** `kubectl staking …`: kubectl runs a program of this name that is on the PATH. */
const program = new Command('kubectl staking')
  .description('Look at stakes, exits and withdrawals, at what the operator has signed, and approve what waits for you.')
  .version(version)
for (const command of inspectCommands(version)) program.addCommand(command)
program.addCommand(approveCommand(version))
addCompletion(program, 'kubectl-staking')
await runProgram(program, new URL(import.meta.url))
