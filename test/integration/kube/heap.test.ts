import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runToEnd } from '../../cluster/run.ts'

test('an object of a settled fleet of ten thousand takes at most 2.5 kB of heap', async () => {
  const { stdout, code } = await runToEnd({
    command: process.execPath,
    args: ['--expose-gc', join(import.meta.dirname, 'heap-process.ts')],
    signal: AbortSignal.timeout(60_000),
  })
  expect(code).toBe(0)
  expect(Number(stdout)).toBeLessThan(2500)
  // Far less would mean that nothing was measured.
  expect(Number(stdout)).toBeGreaterThan(1000)
})
