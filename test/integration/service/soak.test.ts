import { expect, test } from 'vitest'
import { chooseSeed } from '../../crash/random.ts'
import { soak } from '../../soak/soak.ts'

/** One round of `npm run test:soak`, with each kind of fault once. Building toxiproxy, once, takes a minute or more. */
test.each([
  { database: 'postgres', kinds: 7 },
  { database: 'embedded', kinds: 4 },
] as const)(
  'under kills, freezes and a failing network the service on its $database database loses nothing and makes nothing twice',
  {
    timeout: 900_000,
  },
  async ({ database, kinds }) => {
    const seed = chooseSeed()
    const said: string[] = []
    const result = await soak({ database, seconds: 0, seed, say: (line) => said.push(line), signal: AbortSignal.timeout(800_000) })
    expect({ seed, said, violations: result.violations }).toEqual({ seed, said, violations: [] })
    expect(result.faults).toHaveLength(kinds)
    expect(result.created).toBeGreaterThan(0)
    expect(result.delivered).toBeGreaterThan(0)
  },
)
