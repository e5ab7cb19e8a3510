import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/**
 * A program that nobody here wrote makes requests from the service's own document, valid and not, and compares every answer with it. Few for each operation:
 * `node scripts/schemathesis.ts --examples 200` looks longer.
 */
test('schemathesis finds no answer that the document does not promise', { timeout: 900_000 }, async () => {
  const script = join(import.meta.dirname, '../../../scripts/schemathesis.ts')
  const child = spawn(process.execPath, ['--no-warnings', script, '--examples', '4'], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output = (output + chunk).slice(-20_000)
    })
  }
  const [code] = (await once(child, 'close')) as [number | null]
  expect([code, code === 0 ? '' : output]).toEqual([0, ''])
  expect(output).toMatch(/Tested: \d+/)
})
