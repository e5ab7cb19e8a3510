import { expect, test } from 'vitest'
import { add } from '../../testing/rows.ts'
import { createWorld, EXIT, WITHDRAWAL } from '../../testing/world.ts'

/**
 * A request has landed, and then the log and the staking API's database are lost together: only the contract's own history tells that it was made. The person
 * who is asked to look at the key's transactions, and acknowledges them, does not have it made once more by that.
 */
test.each(
  [EXIT, WITHDRAWAL].flatMap((key) =>
    ['with its status', 'without its status'].flatMap((lost) => [false, true].map((isAcknowledged) => ({ key, lost, isAcknowledged }))),
  ),
)('$key, $lost, is not asked for twice (its nonce acknowledged: $isAcknowledged)', async ({ key, lost, isAcknowledged }) => {
  const world = createWorld()
  world.addSigner()
  add(world, key)
  await world.settle(world.start(), [key])
  expect(world.ready(key)).toBe(true)
  // Long ago, by the chain's blocks and by the clocks.
  for (let hour = 0; hour < 6; hour++) {
    world.chain.mine(300)
    world.clock.advance(3_600_000)
  }
  world.loseLog()
  world.requests.forget()
  if (lost === 'without its status') world.editRequestStatus(() => undefined, key)
  if (isAcknowledged) world.editSigner({ acknowledgedNonce: 1 })
  await world.settle(world.start(), [key], 20)
  expect(world.chain.requests(), JSON.stringify(world.condition('Ready', key))).toHaveLength(1)
  expect(world.chain.violations).toEqual([])
  expect(world.ready(key) ? 'Ready' : world.stalled(key)).toBe(key === EXIT ? 'Ready' : 'UnknownSubmission')
  if (key === WITHDRAWAL) expect(world.condition('Stalled', key)?.message).toContain('If it is this one, nothing is left to do')
})
