import type { EthereumStakeSpec, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import type { EthereumTransaction } from '../../../resources/ethereum-transaction.ts'
import { externalReference, idempotencyKey, type Origin } from '../../engine/origin.ts'
import { defineSteps, type Step } from '../../engine/step.ts'
import { STAKE_STEP } from '../../transactions/ledger.ts'
import {
  absorbBroadcast,
  absorbConfirm,
  type BroadcastOutcome,
  type ConfirmOutcome,
  evidence,
  type InFlightPlan,
  isFinal,
  isReported,
  isSent,
  type TransactionPlan,
  withTransaction,
} from '../../transactions/transaction-evidence.ts'

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
export interface DepositPlan extends TransactionPlan {
  readonly request: StakeRequest
  readonly stakeId: string
  readonly depositData: DepositFields
}
export type InFlightDeposit = InFlightPlan<DepositPlan>

export type EthereumStakeEffects = {
  readonly createStake: { args: StakeRequest; result: { stakeId: string; depositData: DepositFields } }
  readonly verifyDeposit: {
    /** `tentative`: nothing was ever verified or made of the evidence in status; what the service says now takes its place. */
    args: { request: StakeRequest; stakeId: string; depositData: DepositFields; tentative: boolean }
    result: { verifiedRoot: string; stakeId: string; depositData: DepositFields }
  }
  readonly prepareDeposit: { args: DepositPlan; result: EthereumTransaction }
  readonly broadcastDeposit: { args: InFlightDeposit; result: BroadcastOutcome }
  readonly reportDeposit: { args: { network: string; stakeId: string; hash: string }; result: { reportedHash: string } }
  readonly confirmDeposit: { args: InFlightDeposit; result: ConfirmOutcome }
}

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
    done: (status) => isFinal(status) || (status.verifiedRoot !== undefined && status.verifiedRoot === status.depositData?.depositDataRoot),
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
    done: (status) => isFinal(status) || isSent(status),
    effect: 'broadcastDeposit',
    args: inFlightOf,
    absorb: absorbBroadcast,
    writeAhead: true,
  }),
  step({
    name: 'Report',
    done: isReported,
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
    done: isFinal,
    effect: 'confirmDeposit',
    args: inFlightOf,
    watches: (status) => status.transaction !== undefined && status.depositData !== undefined && status.stakeId !== undefined,
    absorb: absorbConfirm,
  }),
]
