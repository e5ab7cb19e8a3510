import type { EthereumTransaction, TransactionAttempt } from '../../resources/ethereum-transaction.ts'
import type { Origin } from '../engine/origin.ts'

/** What is the same for every kind that sends one Ethereum transaction: its evidence in status, and how that changes. */

/** Who sends a transaction, and for what. */
export interface TransactionPlan {
  readonly request: { readonly origin: Origin; readonly signer: string; readonly network: string }
  /** The resource's own cap on the fee per gas, where it has one. */
  readonly maxFeePerGasGwei?: string
  /** Versions that can never land: their nonce was used by others at finality. */
  readonly superseded: readonly TransactionAttempt[]
}
export type InFlightPlan<Plan extends TransactionPlan = TransactionPlan> = Plan & { readonly transaction: EthereumTransaction }

/** A dearer version under the same nonce: written down first, then sent. */
export type Replaced = { readonly is: 'replaced'; readonly attempt: TransactionAttempt; readonly valueWei: string }
/** Its nonce was used by another transaction at finalized depth and none of its hashes is in the chain. */
export type Superseded = { readonly is: 'superseded' }
/** What this resource asked for was done by a transaction that status doesn't know. It takes the place of the one in status. */
export type Found = { readonly is: 'found'; readonly transaction: EthereumTransaction }
export type BroadcastOutcome = { readonly is: 'sent'; readonly broadcastHash: string } | Replaced | Superseded | Found
export type ConfirmOutcome =
  | {
      readonly is: 'confirmed' | 'reverted'
      readonly minedHash: string
      readonly blockNumber: number
      readonly blockHash: string
    }
  | Replaced
  | Superseded
  | Found

/** The status fields of such a kind (`transactionFields`). */
interface WithTransaction {
  readonly transaction?: EthereumTransaction | undefined
  readonly superseded?: TransactionAttempt[] | undefined
}

export const attemptOf = ({
  hash,
  nonce,
  gas,
  maxFeePerGasWei,
  maxPriorityFeePerGasWei,
  preparedAt,
}: EthereumTransaction): TransactionAttempt => ({ hash, nonce, gas, maxFeePerGasWei, maxPriorityFeePerGasWei, preparedAt })
/** Every version of the transaction, the current one last. */
export const attemptsOf = (transaction: EthereumTransaction): readonly TransactionAttempt[] => [
  ...(transaction.replaced ?? []),
  attemptOf(transaction),
]

/** Its outcome is final: it stands in the chain for good, whether it did what it was for or was reverted. */
export const isFinal = (status: WithTransaction): boolean =>
  status.transaction?.state === 'Confirmed' || status.transaction?.state === 'Failed'
export const isSent = (status: WithTransaction): boolean =>
  status.transaction !== undefined && status.transaction.broadcastHash === status.transaction.hash
export const isReported = ({ transaction }: WithTransaction): boolean =>
  transaction !== undefined && transaction.reportedHash === (transaction.minedHash ?? transaction.hash)

/** The evidence of an earlier step. The order of the steps guarantees it; its absence is a bug, not a state. */
export function evidence<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`a step ran before its evidence: status has no ${what}`)
  return value
}

export const withTransaction = <S extends WithTransaction>(status: S, change: Partial<EthereumTransaction>): S => ({
  ...status,
  transaction: { ...evidence(status.transaction, 'transaction'), ...change },
})

/** The schema's bound. A fee that grows 10 % each time goes up twentyfold within it. */
const MAX_ATTEMPTS = 32

/** A transaction that has to be sent in another version, or made anew under another nonce. Its old versions are never forgotten. */
function remade<S extends WithTransaction>(status: S, outcome: Replaced | Superseded | Found): S {
  const transaction = evidence(status.transaction, 'transaction')
  if (outcome.is === 'replaced') {
    return withTransaction(status, {
      ...outcome.attempt,
      valueWei: outcome.valueWei,
      replaced: [...(transaction.replaced ?? []), attemptOf(transaction)].slice(-MAX_ATTEMPTS),
      state: 'Prepared',
    })
  }
  const { transaction: _lost, ...rest } = status
  return {
    ...rest,
    ...(outcome.is === 'found' ? { transaction: outcome.transaction } : {}),
    superseded: [...(status.superseded ?? []), ...attemptsOf(transaction)].slice(-MAX_ATTEMPTS),
  } as S
}

export const absorbBroadcast = <S extends WithTransaction>(status: S, outcome: BroadcastOutcome): S =>
  outcome.is === 'sent' ? withTransaction(status, { broadcastHash: outcome.broadcastHash, state: 'Broadcast' }) : remade(status, outcome)

export function absorbConfirm<S extends WithTransaction>(status: S, outcome: ConfirmOutcome): S {
  switch (outcome.is) {
    case 'confirmed':
    case 'reverted': {
      const { minedHash, blockNumber, blockHash } = outcome
      return withTransaction(status, { state: outcome.is === 'confirmed' ? 'Confirmed' : 'Failed', minedHash, blockNumber, blockHash })
    }
    case 'replaced':
    case 'superseded':
    case 'found':
      return remade(status, outcome)
  }
}
