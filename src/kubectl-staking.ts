#!/usr/bin/env node
import { Command } from 'commander'
import { addCompletion } from './cli/completion.ts'
import { inspectCommands } from './cli/inspect-commands.ts'
import { runProgram, version } from './cli/program.ts'

/** `kubectl staking …`: kubectl runs a program of this name that is on the PATH. */
const program = new Command('kubectl staking')
  .description('Look at stakes, exits and withdrawals, and at what the operator has signed.')
  .version(version)
for (const command of inspectCommands(version)) program.addCommand(command)
addCompletion(program, 'kubectl-staking')
await runProgram(program, new URL(import.meta.url))
