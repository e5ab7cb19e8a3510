import { expect } from 'vitest'
import type { FakeNode } from './fake-nodes.ts'
import { EXIT, KEY, type Operator, WITHDRAWAL, type World } from './world.ts'

/** What the tests of single failures (`transactions/rows-*.test.ts`) say of a world, for a stake, an exit and a withdrawal alike. */

export const kinds = [KEY, EXIT, WITHDRAWAL] as const
/** Between two looks of a lane, in ms. */
export const POLL = 12_000
/** A status that was lost. */
export const none = () => undefined

/** Adds the resource that a key is of: a stake, or by its prefix an exit or a withdrawal. */
export function add(world: World, key: string, spec: object = {}): void {
  if (key.startsWith('exit:')) world.addExit(key, spec)
  else if (key.startsWith('withdrawal:')) world.addWithdrawal(key, spec)
  else world.addStake(key, spec)
}

export function node(world: World, index: number): FakeNode {
  const found = world.chain.nodes[index]
  if (found === undefined) throw new Error(`the chain has no node ${index}`)
  return found
}

export const said = (world: World, key: string) => JSON.stringify(world.condition('Ready', key))
/** Transactions that do what is asked for: not those that cancel. */
export const calls = (world: World) => world.chain.everSent().filter(({ data }) => data !== '0x')
/** Deposits, or requests, that the chain has. */
const made = (world: World, key: string): number => (key === KEY ? world.chain.deposits() : world.chain.requests()).length

export function assertOnce(world: World, key: string): void {
  expect(made(world, key), said(world, key)).toBe(1)
  expect(world.chain.violations).toEqual([])
}

/** Visits, and lets polls pass, without a block. */
export async function polls(world: World, operator: Operator, key: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    await world.visit(operator, key)
    world.clock.advance(POLL)
  }
}
