import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { laterNodeFor, OLDEST_NODE } from './later-node.ts'

const own = '/clone/node_modules/node/bin/node'

describe('a program that is started with an old Node', () => {
  test('goes on with the one beside it', () => {
    expect(laterNodeFor({ version: '20.20.2', own, command: 'status' })).toEqual({ do: 'hand over', to: own })
    expect(laterNodeFor({ version: '18.0.0', own, command: undefined })).toEqual({ do: 'hand over', to: own })
  })
  test.each(['operator', 'service'])('does not stand between %s and the signals that end it, and says what to start it with', (command) => {
    expect(laterNodeFor({ version: '20.20.2', own, command })).toEqual({
      do: 'refuse',
      says: `error: this needs Node 24 or later, and was started with Node 20.20.2: start it with ${own}`,
    })
  })
  test('says which it needs where there is no other', () => {
    expect(laterNodeFor({ version: '22.1.0', own: undefined, command: 'log' })).toEqual({
      do: 'refuse',
      says: 'error: this needs Node 24 or later, and was started with Node 22.1.0',
    })
  })
})
test.each(['24.0.0', '24.21.0', '100.1.0'])('Node %s is late enough', (version) => {
  expect(laterNodeFor({ version, own, command: 'operator' })).toEqual({ do: 'go on' })
})
test('what is needed is what package.json says, and both programs look before they load anything', () => {
  const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
  expect((JSON.parse(read('../../package.json')) as { engines: { node: string } }).engines.node).toBe(`>=${OLDEST_NODE}`)
  for (const program of ['../main.ts', '../kubectl-staking.ts'])
    expect(
      read(program)
        .split('\n')
        .find((line) => line.startsWith('import')),
    ).toBe("import './cli/node-version.ts'")
})
