import { expect, test } from 'vitest'
import { createLogger } from '../lib/log.ts'
import { Secret } from '../lib/secret.ts'

const canary = 'canary-5e81'
const apiKey = `sop_${'k'.repeat(43)}`

function logged(...args: [object, string]): string {
  const lines: string[] = []
  createLogger({ program: 'service', level: 'info', destination: { write: (line) => lines.push(line) } }).info(...args)
  return lines.join('')
}

test.each([
  { what: 'a header', value: { req: { method: 'GET', url: '/x', headers: { authorization: `Bearer ${canary}` } } } },
  { what: 'headers', value: { headers: { authorization: canary } } },
  { what: 'a password', value: { database: { password: canary } } },
  { what: 'a URL in an error', value: { err: new Error(`connect to https://node/${canary} failed`) } },
  {
    what: "a database's URL in an error's cause",
    value: { err: new Error('failed', { cause: new Error(`postgres://user:${canary}@host/db`) }) },
  },
  { what: 'a body that an error carries', value: { err: Object.assign(new Error('failed'), { body: canary, request: { url: canary } }) } },
  { what: 'a Secret', value: { url: new Secret(canary) } },
])('$what is not logged', ({ value }) => {
  const text = logged(value, 'message')
  expect(text).toContain('message')
  expect(text).not.toContain(canary)
})

test('an API key in an error is not logged', () => {
  expect(logged({ err: new Error(`bad ${apiKey}, Bearer ${apiKey}`) }, 'message')).not.toContain('kkkk')
})

test('an error keeps its text, code and cause', () => {
  const line = JSON.parse(logged({ err: Object.assign(new Error('outer', { cause: new Error('inner') }), { code: 'E42' }) }, 'm'))
  expect(line.err).toMatchObject({ message: 'outer', code: 'E42', cause: { message: 'inner' } })
})
