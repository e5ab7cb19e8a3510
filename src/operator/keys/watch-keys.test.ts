import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { watchKeys } from './watch-keys.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'staking-watch-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

function put(name: string, file: string, content: string) {
  mkdirSync(join(dir, name), { recursive: true })
  writeFileSync(join(dir, name, file), content)
}

/** Runs the watcher: between two looks, each step changes something; gives what was told after each. */
async function told(steps: (() => void)[]): Promise<string[][]> {
  const controller = new AbortController()
  const told: string[][] = []
  let next = 0
  const clock: Clock = {
    ...systemClock,
    sleep: async (_, signal) => {
      const step = steps[next]
      next += 1
      if (step === undefined) controller.abort()
      signal.throwIfAborted()
      told.push([])
      step?.()
    },
  }
  await watchKeys({ dir, clock, intervalMs: 1000, onChange: (names) => told.at(-1)?.push(...names), signal: controller.signal })
  return told
}

test('tells which keys appeared, changed and went, and nothing else', async () => {
  put('a', 'privateKey', '1')
  put('b', 'privateKey', '1')
  expect(
    await told([
      () => {},
      () => put('a', 'privateKey', '22'),
      () => {},
      () => put('c', 'keystore.json', '{}'),
      () => put('c', 'password', 'x'),
      () => rmSync(join(dir, 'b'), { recursive: true }),
      () => {
        put('a', 'privateKey', '333')
        put('c', 'password', 'yy')
      },
    ]),
  ).toEqual([[], ['a'], [], ['c'], ['c'], ['b'], ['a', 'c']])
})

test('sees the swap of a mounted Secret, even with the same size and time', async () => {
  const folder = join(dir, 'hot')
  mkdirSync(join(folder, '..1'), { recursive: true })
  mkdirSync(join(folder, '..2'))
  writeFileSync(join(folder, '..1', 'privateKey'), 'x')
  writeFileSync(join(folder, '..2', 'privateKey'), 'y')
  symlinkSync('..1', join(folder, '..data'))
  symlinkSync('..data/privateKey', join(folder, 'privateKey'))
  const swap = () => {
    symlinkSync('..2', join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  }
  expect(await told([() => {}, swap, () => {}])).toEqual([[], ['hot'], []])
})

test('a volume of many keys tells the names of the keys, whatever files they have', async () => {
  const write = (file: string, content: string) => writeFileSync(join(dir, file), content)
  expect(
    await told([
      () => write('a.privateKey', '1'),
      () => {
        write('b.keystore.json', '{}')
        write('b.password', 'x')
      },
      () => {},
      () => write('b.password', 'yy'),
      () => rmSync(join(dir, 'a.privateKey')),
    ]),
  ).toEqual([['a'], ['b'], [], ['b'], ['a']])
})

test('a folder that is not there yet has no keys', async () => {
  rmSync(dir, { recursive: true })
  expect(await told([() => {}, () => put('a', 'privateKey', '1')])).toEqual([[], ['a']])
})
