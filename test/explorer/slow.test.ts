import { expect, test } from 'vitest'
import { slow } from '../../src/operator/transactions/explorer/configs.ts'
import { explore } from '../../src/operator/transactions/explorer/explore.ts'

/** The worlds of explore.test.ts that take more than a few seconds each. */
test.each(slow)('$id: $title: each purpose lands once, every lane moves, and Ready is true', { timeout: 300_000 }, (config) => {
  const explored = explore(config, { states: 2_000_000, ms: Number.POSITIVE_INFINITY }, () => performance.now())
  console.log(`explored: ${explored.states.toLocaleString('en')} states, depth ${explored.depth}: ${config.id} ${config.title}`)
  expect(explored.counterexample).toBeUndefined()
  expect(explored.isExhausted).toBe(true)
  expect(explored.states).toBeGreaterThan(100_000)
})
