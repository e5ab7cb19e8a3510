import { expect, test } from 'vitest'
import { runToEnd } from '../cluster/run.ts'

/** Three of the mutants, the quick ones; all of them: npm run test:mutants. */
const few = ['fence', 'block-hash', 'deposit-root']

test('a rule that is taken out is missed by a test', { timeout: 120_000 }, async () => {
  const { code, stdout, stderr } = await runToEnd({
    command: process.execPath,
    args: ['scripts/mutants.ts', ...few],
    cwd: new URL('../..', import.meta.url).pathname,
    env: {},
    signal: AbortSignal.timeout(120_000),
  })
  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain(`${few.length} of ${few.length} mutants killed`)
})
