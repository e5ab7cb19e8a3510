import { expect, test } from 'vitest'
import { chooseSeed } from '../../crash/random.ts'
import { fleetSoak } from './soak.ts'

/** Some seconds of `npm run test:soak`: other faults in each run, the same for the same seed. The whole is a step of CI's own. */
test('under a few faults of everything around it, money moves once or not at all', { timeout: 400_000 }, async () => {
  const seed = chooseSeed()
  const said: string[] = []
  const result = await fleetSoak({
    seconds: 8,
    seed,
    say: (line) => said.push(line),
    signal: AbortSignal.timeout(360_000),
    settleMs: 200_000,
  })
  expect({ seed, said, violations: result.violations }).toEqual({ seed, said, violations: [] })
  expect(result.faults.length).toBeGreaterThan(0)
  expect(result.wishes).toBeGreaterThan(0)
})
