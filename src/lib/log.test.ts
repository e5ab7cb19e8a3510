import { expect, test } from 'vitest'
import { createLogger } from './log.ts'

function lineOf(write: (log: ReturnType<typeof createLogger>) => void): string {
  const lines: string[] = []
  write(createLogger({ program: 'operator', level: 'info', destination: { write: (line: string) => void lines.push(line) } }))
  return lines.join('')
}
const failing = (message: string) => lineOf((log) => log.warn({ err: new Error(message) }, 'it failed'))

test('where an error is from can be read', () => {
  const line = failing('a defect')
  expect(line).toContain('src/lib/log.test.ts:')
  expect(line).not.toContain('file://[hidden]')
})

test.each([
  'https://rpc.example/v3/SECRET',
  'HTTPS://rpc.example/SECRET',
  'wss://SECRET@rpc.example',
  'postgres://staking:SECRET@db.example/staking',
  'filex://SECRET',
])('%s is hidden', (url) => {
  const line = failing(`no answer from ${url}`)
  expect(line).not.toContain('SECRET')
  expect(line).toContain('://[hidden]')
})

test('an API key is hidden, and what comes after a bearer', () => {
  const key = `sop_${'a'.repeat(40)}`
  expect(failing(`key ${key}, Authorization: Bearer SECRET`)).not.toMatch(new RegExp(`${key}|SECRET`))
})
