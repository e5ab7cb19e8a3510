import { type Halt, stall } from '../engine/verdict.ts'

/** Of a resource that is done: the network that it is on is not configured any more. */
export const networkGone = (name: string): Halt =>
  stall(
    'UnknownNetwork',
    `The operator's networks file has no Ethereum network "${name}" any more. Nothing is known of what becomes of this resource there: put the network back.`,
  )
