import { expect } from 'vitest'
import { createWorld, EXIT, type World } from './world.ts'

/** How the tests of exits and withdrawals begin. */

/** A world with one request, after some visits: whatever was wrong has had its chance. */
export async function visited(key: string, prepare: (world: World) => void = () => {}, spec: object = {}): Promise<World> {
  const world = createWorld()
  world.addSigner()
  prepare(world)
  if (key === EXIT) world.addExit(key, spec)
  else world.addWithdrawal(key, spec)
  await world.settle(world.start(), [key], 5)
  return world
}
export const message = (world: World, key: string, type = 'Ready') => world.condition(type, key)?.message ?? ''
export function assertNothingMoved(world: World): void {
  expect(world.keys.signed).toEqual([])
  expect(world.chain.everSent()).toEqual([])
}
/** The same, of a request that is made at the staking API and not sent: the contract's fee is above every cap. */
export const unsent = (key: string, prepare: (world: World) => void = () => {}): Promise<World> =>
  visited(key, (world) => {
    world.chain.state.requestFee = 10n ** 18n
    prepare(world)
  })
