import { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { addCompletion, candidates } from './completion.ts'
import { inspectCommands } from './inspect-commands.ts'

const program = (() => {
  const one = new Command('kubectl staking')
  for (const command of inspectCommands('0.0.0')) one.addCommand(command)
  addCompletion(one, 'kubectl-staking')
  return one
})()

describe('what comes next', () => {
  test.each<[string, string[], string[]]>([
    ['a command', [''], ['completion', 'doctor', 'log', 'plan', 'status', 'verify']],
    ['one that is begun', ['do'], ['doctor']],
    ['a command of a command', ['verify', ''], ['deposit', 'stake']],
    ['an option', ['log', '--s'], ['--signer', '--since']],
    ["an option's choices", ['log', '-o', ''], ['csv', 'json', 'table', 'wide', 'yaml']],
    ['those that begin so', ['log', '--output', 'c'], ['csv']],
    ['a file, which the shell knows', ['doctor', '--networks', ''], []],
    ['a shell', ['completion', 'z'], ['zsh']],
    ['nothing of a word that is none', ['nonsense', '--x'], []],
  ])('%s', (_what, words, expected) => {
    expect(candidates(program, words)).toEqual(expected)
  })
})
