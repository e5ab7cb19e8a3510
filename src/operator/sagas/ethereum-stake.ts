import type { EthereumStakeSpec, EthereumStakeStatus, StakeTransaction, TransactionAttempt } from '../../resources/ethereum-stake.ts'
import { externalReference, idempotencyKey, type Origin } from './origin.ts'
import { defineSteps, type Step } from './step.ts'

/** What a step sees: the resource's identity, its spec, and its status as far as it has come in this visit. */
export interface EthereumStakeView {
  readonly origin: Origin
  readonly spec: EthereumStakeSpec
  readonly status: EthereumStakeStatus
}

export type DepositFields = NonNullable<EthereumStakeStatus['depositData']>

/** How the stake is asked for at the staking API. With `adoptStakeId` it is only read. */
export interface StakeRequest {
  readonly origin: Origin
  readonly signer: string
  readonly network: string
  readonly amountEth: string
  readonly withdrawalAddress: string
  readonly credentialsType: EthereumStakeSpec['credentialsType']
  readonly idempotencyKey: string
  readonly externalReference: string
  readonly adoptStakeId?: string
}

/** What a deposit transaction is made from. */
export interface DepositPlan {
  readonly request: StakeRequest
  readonly stakeId: string
  readonly depositData: DepositFields
  readonly maxFeePerGasGwei?: string
  /** Versions that can never land: their nonce was used by others at finality. */
  readonly superseded: readonly TransactionAttempt[]
}

export interface InFlightDeposit extends DepositPlan {
  readonly transaction: StakeTransaction
}

/** A dearer version under the same nonce: written down first, then sent. */
type Replaced = { readonly is: 'replaced'; readonly attempt: TransactionAttempt }
/** Its nonce was used by another transaction at finalized depth and none of its hashes is in the chain. */
type Superseded = { readonly is: 'superseded' }
/** The deposit of this very stake stands on the chain in a transaction that status doesn't know. It takes the place of the one in status. */
type Found = { readonly is: 'found'; readonly transaction: StakeTransaction }
export type BroadcastOutcome = { readonly is: 'sent'; readonly broadcastHash: string } | Replaced | Superseded | Found
export type ConfirmOutcome =
  | { readonly is: 'confirmed'; readonly minedHash: string; readonly blockNumber: number; readonly blockHash: string }
  | { readonly is: 'reverted'; readonly minedHash: string; readonly blockNumber: number; readonly blockHash: string }
  | Replaced
  | Superseded
  | Found

export type EthereumStakeEffects = {
  readonly createStake: { args: StakeRequest; result: { stakeId: string; depositData: DepositFields } }
  readonly verifyDeposit: {
    /** `tentative`: nothing was ever verified or made of the evidence in status; what the service says now takes its place. */
    args: { request: StakeRequest; stakeId: string; depositData: DepositFields; tentative: boolean }
    result: { verifiedRoot: string; stakeId: string; depositData: DepositFields }
  }
  readonly prepareDeposit: { args: DepositPlan; result: StakeTransaction }
  readonly broadcastDeposit: { args: InFlightDeposit; result: BroadcastOutcome }
  readonly reportDeposit: { args: { network: string; stakeId: string; hash: string }; result: { reportedHash: string } }
  readonly confirmDeposit: { args: InFlightDeposit; result: ConfirmOutcome }
}

/** The step that a stake's creation and its one transaction belong to, in idempotency keys and in the signer's ledger. */
export const STAKE_STEP = 'stake'

const requestOf = ({ origin, spec }: EthereumStakeView): StakeRequest => ({
  origin,
  signer: spec.signer,
  network: spec.network,
  amountEth: spec.amountEth,
  withdrawalAddress: spec.withdrawalAddress,
  credentialsType: spec.credentialsType,
  idempotencyKey: idempotencyKey(origin, STAKE_STEP),
  externalReference: externalReference(origin),
  ...(spec.adopt === undefined ? {} : { adoptStakeId: spec.adopt.stakeId }),
})

/** The evidence of an earlier step. The order of the steps guarantees it; its absence is a bug, not a state. */
function evidence<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`a step ran before its evidence: status has no ${what}`)
  return value
}

export const depositPlanOf = (view: EthereumStakeView): DepositPlan => ({
  request: requestOf(view),
  stakeId: evidence(view.status.stakeId, 'stakeId'),
  depositData: evidence(view.status.depositData, 'depositData'),
  ...(view.spec.maxFeePerGasGwei === undefined ? {} : { maxFeePerGasGwei: view.spec.maxFeePerGasGwei }),
  superseded: view.status.superseded ?? [],
})
const inFlightOf = (view: EthereumStakeView): InFlightDeposit => ({
  ...depositPlanOf(view),
  transaction: evidence(view.status.transaction, 'transaction'),
})

export const attemptOf = ({
  hash,
  nonce,
  gas,
  maxFeePerGasWei,
  maxPriorityFeePerGasWei,
  preparedAt,
}: StakeTransaction): TransactionAttempt => ({
  hash,
  nonce,
  gas,
  maxFeePerGasWei,
  maxPriorityFeePerGasWei,
  preparedAt,
})
/** Every version of the transaction, the current one last. */
export const attemptsOf = (transaction: StakeTransaction): readonly TransactionAttempt[] => [
  ...(transaction.replaced ?? []),
  attemptOf(transaction),
]

const settled = (status: EthereumStakeStatus): boolean =>
  status.transaction?.state === 'Confirmed' || status.transaction?.state === 'Failed'
const withTransaction = (status: EthereumStakeStatus, change: Partial<StakeTransaction>): EthereumStakeStatus => ({
  ...status,
  transaction: { ...evidence(status.transaction, 'transaction'), ...change },
})

/** A transaction that has to be sent in another version, or made anew under another nonce. Its old versions are never forgotten. */
function remade(status: EthereumStakeStatus, outcome: Replaced | Superseded | Found): EthereumStakeStatus {
  const transaction = evidence(status.transaction, 'transaction')
  if (outcome.is === 'replaced') {
    return withTransaction(status, {
      ...outcome.attempt,
      replaced: [...(transaction.replaced ?? []), attemptOf(transaction)].slice(-MAX_ATTEMPTS),
      state: 'Prepared',
    })
  }
  const { transaction: _lost, ...rest } = status
  return {
    ...rest,
    ...(outcome.is === 'found' ? { transaction: outcome.transaction } : {}),
    superseded: [...(status.superseded ?? []), ...attemptsOf(transaction)].slice(-MAX_ATTEMPTS),
  }
}
/** The schema's bound. A fee that grows 10 % each time goes up twentyfold within it. */
const MAX_ATTEMPTS = 32

const step = defineSteps<EthereumStakeView, EthereumStakeStatus, EthereumStakeEffects>()

/**
 * EthereumStake: CreateStake ─▶ VerifyDeposit ─▶ PrepareDeposit ─▶ Broadcast ─▶ Report ─▶ Confirm
 *
 * The two that put something out of hand are written ahead: PrepareDeposit takes a nonce in the signer's ledger (so the stake it pays for must
 * be known), Broadcast sends money (so the transaction must stand in status).
 */
export const ethereumStakeSteps: readonly Step<EthereumStakeView, EthereumStakeStatus, EthereumStakeEffects>[] = [
  step({
    name: 'CreateStake',
    done: (status) => status.stakeId !== undefined && status.depositData !== undefined,
    effect: 'createStake',
    args: requestOf,
    absorb: (status, { stakeId, depositData }) => ({ ...status, stakeId, depositData }),
  }),
  step({
    name: 'VerifyDeposit',
    done: (status) => settled(status) || (status.verifiedRoot !== undefined && status.verifiedRoot === status.depositData?.depositDataRoot),
    effect: 'verifyDeposit',
    args: (view) => ({
      request: requestOf(view),
      stakeId: evidence(view.status.stakeId, 'stakeId'),
      depositData: evidence(view.status.depositData, 'depositData'),
      tentative:
        view.status.verifiedRoot === undefined && view.status.transaction === undefined && (view.status.superseded ?? []).length === 0,
    }),
    absorb: (status, { verifiedRoot, stakeId, depositData }) => ({ ...status, stakeId, depositData, verifiedRoot }),
  }),
  step({
    name: 'PrepareDeposit',
    done: (status) => status.transaction !== undefined,
    effect: 'prepareDeposit',
    args: depositPlanOf,
    absorb: (status, transaction) => ({ ...status, transaction }),
  }),
  step({
    name: 'Broadcast',
    done: (status) => settled(status) || (status.transaction !== undefined && status.transaction.broadcastHash === status.transaction.hash),
    effect: 'broadcastDeposit',
    args: inFlightOf,
    absorb: (status, outcome) =>
      outcome.is === 'sent'
        ? withTransaction(status, { broadcastHash: outcome.broadcastHash, state: 'Broadcast' })
        : remade(status, outcome),
    writeAhead: true,
  }),
  step({
    name: 'Report',
    done: (status) =>
      status.transaction !== undefined && status.transaction.reportedHash === (status.transaction.minedHash ?? status.transaction.hash),
    effect: 'reportDeposit',
    args: ({ spec, status }) => {
      const transaction = evidence(status.transaction, 'transaction')
      return { network: spec.network, stakeId: evidence(status.stakeId, 'stakeId'), hash: transaction.minedHash ?? transaction.hash }
    },
    absorb: (status, { reportedHash }) => withTransaction(status, { reportedHash }),
    independent: true,
  }),
  step({
    name: 'Confirm',
    done: settled,
    effect: 'confirmDeposit',
    args: inFlightOf,
    watches: (status) => status.transaction !== undefined && status.depositData !== undefined && status.stakeId !== undefined,
    absorb: (status, outcome) => {
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
    },
  }),
]
