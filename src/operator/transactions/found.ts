import type { Clock } from '../../lib/clock.ts'
import type { TransactionAttempt } from '../../resources/staking-transaction.ts'
import { type Halt, wait } from '../engine/verdict.ts'
import type { RecordMemory } from './memory.ts'
import type { Moment } from './moment.ts'
import { PATIENCE_MS } from './protocol.ts'

type Known = Pick<RecordMemory, 'nextSince' | 'unseenSince'>
type Look = Pick<Moment, 'counts' | 'network'>

/**
 * A call that the log does not have the bytes of: a witness has named it, and it is followed. Nobody here can send it again, or make it dearer, so that where it
 * is next in its lane and goes nowhere, ▸ the cancel is all that moves the lane. What waits behind an earlier nonce is in no node's count, and holds nobody.
 */
export function createFoundWatch({ monotonicMs }: Pick<Clock, 'monotonicMs'>) {
  /** @throws Halt where it goes nowhere */
  function assertGoesOn(known: Known, { counts, network }: Look, { hash, nonce = 0 }: TransactionAttempt): void {
    const now = monotonicMs()
    const isNext = counts.latest === nonce
    known.nextSince = isNext ? (known.nextSince ?? now) : undefined
    known.unseenSince = isNext && counts.pending <= nonce ? (known.unseenSince ?? now) : undefined
    if (known.unseenSince !== undefined) {
      if (now - known.unseenSince < PATIENCE_MS) return
      throw stuck(
        `No RPC node shows transaction ${hash} any more, which was made for this before and whose bytes are not known here. Its nonce ${nonce} is cancelled: as soon as others wait behind it, or else before long. Then it is made again.`,
        network,
      )
    }
    if (known.nextSince === undefined || now - known.nextSince <= network.bumpAfterMs) return
    throw stuck(
      `Transaction ${hash} was made for this before, and its bytes are not known here. It is next and is not mined: most likely it pays too little. If others wait behind it, its nonce ${nonce} is cancelled, and it is made again.`,
      network,
    )
  }

  /** No node has shown it for so long that it is cancelled though nobody waits behind it: what it was made for waits itself. */
  const isLost = ({ unseenSince }: Known, { network }: Pick<Look, 'network'>): boolean =>
    unseenSince !== undefined && monotonicMs() - unseenSince > network.bumpAfterMs

  return { assertGoesOn, isLost }
}

const stuck = (message: string, { config }: Look['network']): Halt => wait('Cancelling', message, config.pollIntervalMs)
