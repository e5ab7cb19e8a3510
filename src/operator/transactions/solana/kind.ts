import type { NodeLook } from '../../../chains/solana/chain.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import type { TransactionAttempt, TransactionPurpose } from '../../../resources/staking-transaction.ts'
import type { Visit } from '../../engine/visit.ts'
import type { Approvable } from '../approvals.ts'
import type { RecordObject } from '../store.ts'
import type { Step } from './rules.ts'

/** A transaction to be signed, verified and simulated. */
export interface Obtained {
  /** Its id in the staking API, where that has made it. */
  readonly apiId?: string
  readonly message: Uint8Array
  readonly lastValidBlockHeight: number
  /** A slot before which it can't have landed. */
  readonly sinceSlot: number
}

/** What all nodes together say of heights. */
export interface Heights {
  /** The lowest finalized height of all configured nodes; undefined while one gives no answer. */
  readonly everywhere: bigint | undefined
  /** The highest finalized height that any of them shows. */
  readonly highest: bigint
}

/** A final transaction of the chain's history that did a step. */
export interface Done {
  readonly hash: string
  readonly slot: bigint
}
/** Whether the history says who did a step. */
export type Sought =
  | ({ readonly is: 'found' } & Done)
  /** No node's history shows it. */
  | { readonly is: 'unknown' }
  /** It was done by somebody, and not as the resource says: in words for a person. */
  | { readonly is: 'elsewhere'; readonly message: string }

/**
 * What an owner's kind says of its Solana steps: the log knows attempts, nodes and heights, and nothing of stakes. `Admission` is what the kind needs to
 * make and sign: who signs, by which terms. All throw Halt or a port's error.
 */
export interface SolanaTransactionKind<Admission = unknown> {
  readonly purposes: readonly TransactionPurpose[]
  /** As a sentence begins with it: `The stake transaction`. */
  what(record: RecordObject): string
  step(record: RecordObject): Step
  /** Whether a node's finalized state shows the step done. @throws SolanaError for an account that can't be read */
  isDone(record: RecordObject, look: Pick<NodeLook, 'account' | 'slot'>): boolean
  /**
   * Looks in the chain's history for who did the step: of one that leaves no trace before every attempt, of others when the state shows it done. `atSlot`: a node that has not come that far has no say. */
  seek(record: RecordObject, atSlot: bigint, signal: AbortSignal): Promise<Sought>
  /**
   * Whether an attempt that landed, and that the log did not make itself but was told of, does the step; undefined where no node has it.
   * @throws SolanaError
   */
  proves(record: RecordObject, attempt: TransactionAttempt, signal: AbortSignal): Promise<boolean | undefined>
  /**
   * Whether the step may be signed: the owner exists and asks for it, the record is what the owner's terms say, the signers' policies admit it.
   * `fresh`: owner and signers are read past the cache, as before the first broadcast. @throws Halt
   */
  mayBeSigned(record: RecordObject, fresh: boolean, visit: Visit, signal: AbortSignal): Promise<Admission>
  /** Gets a transaction from the staking API that can land, verified and simulated. Nothing of the record may land any more. */
  obtain(record: RecordObject, admission: Admission, heights: Heights, visit: Visit, signal: AbortSignal): Promise<Obtained>
  /** Whose limits it is counted by: whoever pays for it. */
  payerOf(admission: Admission): StakingSigner
  /** What the policies of its signers may want approved. */
  approvableOf(admission: Admission): Approvable
  sign(record: RecordObject, admission: Admission, message: Uint8Array, signal: AbortSignal): Promise<Signed>
  /** Verifies an attempt anew and signs it again. @throws Halt where it is not what the resource asks for, or not under the same signature */
  signAgain(record: RecordObject, admission: Admission, attempt: TransactionAttempt, signal: AbortSignal): Promise<Signed>
  /** Tells the staking API a signature, before it is sent and right after. @returns whether it was taken: `later` when it wants to see it first. */
  tell(record: RecordObject, attempt: TransactionAttempt, signal: AbortSignal): Promise<'taken' | 'later'>
  /** Why a record is needed though the resource that it was made for is gone; undefined where it isn't. */
  keeps?(record: RecordObject): string | undefined
  /** What a node's refusal of a transaction means, where more can be said than the code. */
  explain(record: RecordObject, error: unknown): unknown
}

export interface Signed {
  readonly raw: Uint8Array
  /** The fee payer's, by which the cluster knows the transaction. */
  readonly signature: string
}
