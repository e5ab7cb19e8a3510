import { classify } from '../engine/classify.ts'
import type { Halt } from '../engine/verdict.ts'
import type { Standing } from './memory.ts'
import type { Hindrance } from './protocol.ts'

/**
 * A refusal that an answer ends, or whoever runs the operator, and not the owner of the transaction: something does not answer, a key is being replaced,
 * a definition updated. It is given some time before the place is cancelled.
 */
const isPassing = (standing: Standing): boolean => standing.kind === 'retry' || passing.has(standing.reason)
const passing: ReadonlySet<Standing['reason']> = new Set<Standing['reason']>([
  'ServiceUnavailable',
  'ChainUnavailable',
  'HistorySyncing',
  'NodeAccessDenied',
  'KeyMissing',
  'KeyMalformed',
  'KeyAddressMismatch',
  'SignerUnavailable',
  'SignerRefused',
  'ApiKeyUnreadable',
  'OutdatedCRD',
  'Unauthorized',
])

/** What an error means for who waits. @throws what is a conflict, which concerns nobody but the writer */
export const standingOf = (error: unknown): Standing => {
  const verdict = classify(error)
  if (verdict.kind === 'conflict') throw error
  return verdict
}

/** What a halt means for who waits. @throws it, where it is a conflict */
export const verdictOf = (halt: Halt): Standing => {
  if (halt.verdict.kind === 'conflict') throw halt
  return halt.verdict
}

/** What keeps a transaction from being sent, or from taking a place: nothing, something that passes, or something that needs a person or a price. */
export const hindranceOf = (standing: Standing | undefined): Hindrance =>
  standing === undefined || (standing.kind === 'wait' && behindOthers.has(standing.reason))
    ? 'none'
    : isPassing(standing)
      ? 'passing'
      : 'lasting'

/** It waits for something of its own: nobody needs to make room for it. What may land and can't be sent holds the room of a limit as it holds a lane. */
export const isHeldBack = (standing: Standing | undefined): boolean =>
  standing !== undefined &&
  (standing.kind === 'stall' || (standing.kind === 'wait' && !behindOthers.has(standing.reason) && standing.reason !== 'LimitReached'))
const behindOthers: ReadonlySet<string> = new Set(['WaitingForNonce', 'AwaitingFinality', 'NoFinality', 'OperatorSuspended'])
