import type { Address, ChainReceipt, Hash } from '../../chains/ethereum/chain.ts'
import type { StorageGas } from '../../chains/ethereum/storage-gas.ts'
import type { Wei } from '../../lib/amounts.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import type { AttemptApproval, TransactionPurpose } from '../../resources/staking-transaction.ts'
import type { Halt } from '../engine/verdict.ts'
import type { Approvable } from './approvals.ts'
import type { Landing, Witnesses } from './protocol.ts'
import type { RecordObject } from './store.ts'

/** A transaction that may be signed now: by whom, and at which price at most. */
export interface Admission {
  readonly signer: StakingSigner
  /** Highest fee per gas, in wei: the resource's own cap within the policy's. */
  readonly feeCap: Wei
  /** Highest value in wei, where the purpose leaves it open and somebody has approved no more than that. */
  readonly valueCap?: Wei
  /** By which approvals the next version is signed, where they are others than those of the last. */
  readonly approval?: AttemptApproval
  /** What a policy may want approved. */
  readonly approvable: Approvable
}

/** What an owner's kind says of its transactions: the log knows nonces, fees, nodes and attempts, and nothing of stakes. All throw Halt or a port's error. */
export interface TransactionKind {
  readonly purposes: readonly TransactionPurpose[]
  /** As a sentence begins with it: `The deposit`. */
  readonly what: string
  /**
   * Whether the call may be signed: the owner exists and asks for it, its spec and the call are the same thing, the signer's policy admits it.
   * `fresh`: owner and signer are read past the cache, as before the first broadcast. @throws Halt
   */
  mayBeSigned(record: RecordObject, fresh: boolean, signal: AbortSignal): Promise<Admission>
  /** Who knows of it besides the log, asked before every place. */
  witnesses(record: RecordObject, signal: AbortSignal): Promise<Witnesses>
  /** Tells the staking API the hash of an attempt before it is sent. */
  tell(
    record: RecordObject,
    attempt: { readonly hash: Hash; readonly from: Address; readonly nonce: number },
    signal: AbortSignal,
  ): Promise<void>
  /** What a successful receipt of this call has done. */
  judge(record: RecordObject, receipt: ChainReceipt, signal: AbortSignal): Promise<Landing['did']>
  /** Why what is not mined yet must not land any more; undefined as long as nothing is known against it. */
  overtaken(record: RecordObject, signal: AbortSignal): Promise<Halt | undefined>
  /** The value in wei to send now, and the least that still does. @throws Halt where it is above a cap */
  value(record: RecordObject, admission: Admission, signal: AbortSignal): Promise<{ readonly value: Wei; readonly least: Wei }>
  /** The gas limit for a node's estimate, where a new slot costs so much, and the one above which it can't be what it should be. */
  gasLimit(estimate: bigint, storage: StorageGas): bigint
  maxGas(storage: StorageGas): bigint
  /** Whether a call that was reverted may be made again by itself. */
  readonly remakeAfterRevert: boolean
  /** Whether its records stay for good: those of others go some time after the last resource that they were made for. */
  readonly keepsRecords: boolean
}
