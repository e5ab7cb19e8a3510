import { Command, Option } from 'commander'
import { describe, expect, test } from 'vitest'
import { asCommanderTakes } from './words.ts'

const program = new Command('kubectl staking').version('1')
program.addCommand(
  new Command('status')
    .option('-n, --namespace <name>')
    .option('--context <name>')
    .option('-w, --watch')
    .addOption(new Option('-o, --output <format>')),
)
program.addCommand(new Command('verify').addCommand(new Command('stake').option('--history')))
const taken = (line: string) => asCommanderTakes(program, line.split(' ')).join(' ')

describe('a command line', () => {
  test.each([
    ['status x -o=json -n=team-a', 'status x -ojson -nteam-a'],
    ['-n team-a status x', 'status x -n team-a'],
    ['-n=team-a -w --context=prod -ojson status x', 'status x -nteam-a -w --context=prod -ojson'],
    ['--history verify stake x', 'verify stake x --history'],
    ['-n team-a status -- -o=json', 'status -n team-a -- -o=json'],
  ])('%s is %s', (line, is) => {
    expect(taken(line)).toBe(is)
  })

  test.each(['status x -n team-a -o json', '--version', '-h', '-A status x', '-n team-a', '-n', 'verify deposit - --network hoodi', ''])(
    '%j is left as it is',
    (line) => {
      expect(taken(line)).toBe(line)
    },
  )
})
