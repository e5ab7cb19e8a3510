import { expect, test } from 'vitest'
import { kstatus } from '../../cluster/kstatus.ts'
import { phases } from './phases.ts'

/** What kstatus, by which Flux and others judge health, makes of each kind in each phase: its own Go library. */
test('kstatus sees each kind in each phase as it is: in progress, current, failed or terminating', { timeout: 600_000 }, async () => {
  const computed = await kstatus(
    phases.map(({ seen }) => seen),
    AbortSignal.timeout(500_000),
  )
  expect(Object.fromEntries(phases.map(({ what }, index) => [what, computed[index]?.status]))).toEqual(
    Object.fromEntries(phases.map(({ what, is }) => [what, is])),
  )
  expect(phases.length).toBeGreaterThan(50)
})
