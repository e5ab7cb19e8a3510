import type { Health, Sightings } from './health.ts'
import type { Refusals } from './refusals.ts'

/** What is known of one node of a network. Times are monotonic, in ms. */
export interface NodeState<C, I, E> {
  readonly client: C
  /** From 0. */
  readonly index: number
  readonly refusals: Refusals
  verified: { readonly at: number; readonly identity: Promise<I> } | undefined
  restsUntil: number
  /** The last failure, until it answers again. */
  failure: E | undefined
  seen: Sightings | undefined
  probe: Promise<unknown> | undefined
  probedAt: number
  out: Health['out']
  disagreements: number
}

export const newNode = <C, I, E>(client: C, index: number, refusals: Refusals): NodeState<C, I, E> => ({
  client,
  index,
  refusals,
  verified: undefined,
  restsUntil: Number.NEGATIVE_INFINITY,
  failure: undefined,
  seen: undefined,
  probe: undefined,
  probedAt: Number.NEGATIVE_INFINITY,
  out: undefined,
  disagreements: 0,
})
