import { expect, test } from 'vitest'
import { fleetSoak } from './soak.ts'

/** Some seconds of `npm run test:soak`, with the same faults each time (`STAKING_TEST_SEED` for others): what is new is looked for there. */
test('under a few faults of everything around it, money moves once or not at all', { timeout: 400_000 }, async () => {
  const seed = Number(process.env.STAKING_TEST_SEED ?? 2)
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
