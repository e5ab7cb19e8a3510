import { expect, test } from 'vitest'
import { chooseSeed } from '../../crash/random.ts'
import { fleetSoak } from './soak.ts'

/** Set by `npm test -- --soak-minutes N`. */
const minutes = Number(process.env.STAKING_SOAK_MINUTES ?? 10)
/** The faults and their order: CI has the same each time. */
const seed = Number(process.env.STAKING_SOAK_SEED ?? chooseSeed())
/** To start everything, and for what is unfinished when the faults are over. */
const beyondMs = 900_000

test(`under ${minutes} minutes of faults of everything around it, money moves once or not at all`, {
  timeout: minutes * 60_000 + beyondMs,
}, async () => {
  console.log(`seed ${seed}; again with npm run test:soak -- --only fleet --minutes ${minutes} --seed ${seed}`)
  const begun = performance.now()
  const say = (line: string) => console.log(`${((performance.now() - begun) / 1_000).toFixed(0).padStart(4)} s  ${line}`)
  const result = await fleetSoak({ seconds: minutes * 60, seed, say, signal: AbortSignal.timeout(minutes * 60_000 + beyondMs - 60_000) })
  console.log(JSON.stringify({ ...result, faults: result.faults.length }))
  expect({ seed, violations: result.violations }).toEqual({ seed, violations: [] })
  expect(result.faults.length).toBeGreaterThan(minutes)
  for (const count of [result.looks, ...Object.values(result.paid)]) expect(count).toBeGreaterThan(0)
})
