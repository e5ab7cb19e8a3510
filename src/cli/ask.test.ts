import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { agreed } from './ask.ts'
import { Interrupted } from './end.ts'

function ask() {
  const [input, output, stop] = [new PassThrough(), new PassThrough(), new AbortController()]
  return { input, stop, answer: agreed('Approve that? [y/N] ', { input, output, terminal: true }, stop.signal) }
}

test.each([
  ['y', 'y\r', true],
  ['yes, with blanks', ' YES \r', true],
  ['nothing', '\r', false],
  ['no', 'n\r', false],
  ['yes and more', 'yes please\r', false],
  ['Ctrl-C', '\u0003', false],
  ['Ctrl-C behind a yes', 'y\u0003', false],
  ['Ctrl-D', '\u0004', false],
])('%s', async (_what, keys, is) => {
  const { input, answer } = ask()
  input.write(keys)
  expect(await answer).toBe(is)
})

test('a signal while it waits is a no', async () => {
  const { stop, answer } = ask()
  await sleep(10)
  stop.abort(new Interrupted('SIGTERM'))
  expect(await answer).toBe(false)
})
