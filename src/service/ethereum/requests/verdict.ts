import type { BeaconBlock } from '../../../chains/ethereum/beacon.ts'
import type { RequestOutcome } from '../../../chains/ethereum/beacon-outcome.ts'
import type { Hex } from '../../../chains/ethereum/chain.ts'
import type { KnownPlace } from '../../../chains/ethereum/request-queue.ts'
import { type BrokenRule, isRuleCode, type RuleCode } from '../../../chains/ethereum/withdrawal-rules.ts'
import type { Gwei } from '../../../lib/amounts.ts'

/** What the consensus layer made of a request that is mined. */
export type Verdict = Pending | Decided
export type Decided = Accepted | Dropped

interface Told {
  readonly reason?: string
  /** The beacon chain may tell more before the execution layer has another block. */
  readonly askAgain?: true
}
export interface Pending extends Told {
  readonly status: 'pending'
  /** Nothing was seen that contradicts an earlier verdict on the same block. */
  readonly cannotTell?: true
  /** Where it waits in the contract's queue: to be handed in when it is judged again. */
  readonly place?: KnownPlace
}
interface Judged extends Told {
  /** The block that handed the request on. */
  readonly judgedAt: bigint
  /** Its hash: another block at that height may judge otherwise. */
  readonly judgedBy?: Hex
  /** From Gloas on: the block of the beacon chain that processed it, the next one, by whose state it was judged. Absent: the handing-on block's own. */
  readonly processedBy?: BeaconBlock
  /** Its effect was found so many slots after the one that would process it: where it stood in the contract's queue was not known. */
  readonly slotsLater?: number
  /** By what the head shows, and not by the states that processed it. */
  readonly inferred?: true
}
export interface Accepted extends Judged {
  readonly status: 'accepted'
  /** Of a withdrawal: what is to be paid, which may be less than what was asked for. */
  readonly payment?: { readonly amountGwei: Gwei; readonly withdrawableEpoch: number }
  /** Of an exit: after this epoch, deposits that are queued are credited and paid out. */
  readonly withdrawableEpoch?: number
}
/**
 * The block of the execution layer that must be final for the verdict to be. From Gloas on, the next one's slot is that of the block which processed the
 * request, or comes after it; where it was found some slots later, so many more blocks are waited for, as each takes a slot.
 */
export const finalWith = ({ judgedAt, processedBy, slotsLater = 0 }: Decided): bigint =>
  judgedAt + BigInt(slotsLater) + (processedBy === undefined ? 0n : 1n)
/** Only by a rule that it broke: there is none without one. */
export interface Dropped extends Judged {
  readonly status: 'dropped'
  readonly rules: RuleCodes
  readonly reason: string
}
export type RuleCodes = readonly [RuleCode, ...RuleCode[]]

/** What the contract of the API allows a reason. */
export const maxReason = 1024

export const cannotTell = (reason: string): Pending => ({ status: 'pending', cannotTell: true, reason: reason.slice(0, maxReason) })

type NonEmpty<T> = readonly [T, ...T[]]
/** @param more What is to be said besides. */
export const droppedBy = (broken: NonEmpty<BrokenRule>, judgedAt: bigint, more = ''): Dropped => {
  const [first, ...others] = broken
  const reason = `${broken.map(({ code, message }) => `${code}: ${message}`).join('; ')}${more}`.slice(0, maxReason)
  return { status: 'dropped', rules: [first.code, ...others.map(({ code }) => code)], reason, judgedAt }
}

/** The rules that a reason of `droppedBy` names; undefined where it names none. */
export function rulesIn(reason: string): RuleCodes | undefined {
  const [first, ...others] = [...reason.matchAll(/(?:^|; )([a-z][a-z0-9-]*): /g)].map(([, code = '']) => code).filter(isRuleCode)
  return first === undefined ? undefined : [first, ...others]
}

/** An outcome that the states show. */
export type Seen = Exclude<RequestOutcome, { readonly status: 'not shown' }>
