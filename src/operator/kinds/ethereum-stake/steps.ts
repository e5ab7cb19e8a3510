import type { Address, Hash, Hex } from '../../../lib/chain-types.ts'
import type { EthereumStakeSpec, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import type { EthereumTransaction } from '../../../resources/ethereum-transaction.ts'
import { isPlanOnly } from '../../../resources/mode.ts'
import type { ShownPlan } from '../../../resources/plan.ts'
import { externalReference, idempotencyKey, type Origin } from '../../engine/origin.ts'
import { defineSteps, type Step } from '../../engine/step.ts'
import { evidence, isFinal, isReported } from '../../transactions/mirror.ts'

/** What a step sees: the resource's identity, its spec, and its status as far as it has come in this reconcile. */
export interface EthereumStakeView {
  readonly origin: Origin
  readonly spec: EthereumStakeSpec
  readonly status: EthereumStakeStatus
  /** The resource's own, as the API server gave it. */
  readonly uid: string
}

export type DepositFields = NonNullable<EthereumStakeStatus['depositData']>

/** How the stake is asked for at the staking API. With `adoptStakeId` it is only read. */
export interface StakeRequest {
  readonly origin: Origin
  readonly signer: string
  readonly network: string
  readonly amountEth: string
  readonly withdrawalAddress: Address
  readonly credentialsType: EthereumStakeSpec['credentialsType']
  readonly idempotencyKey: string
  readonly externalReference: string
  readonly adoptStakeId?: string
}

/** What a deposit transaction is made from: compared with the staking API's answer and the spec, never believed. */
export interface DepositPlan {
  readonly request: StakeRequest
  readonly stakeId: string
  readonly depositData: DepositFields
  /** What status shows of the transaction. */
  readonly shown: EthereumTransaction | undefined
  /** Of one that is only planned: the resource's own UID, which its plan names. */
  readonly plannedAs?: { readonly uid: string; readonly maxFeePerGasGwei: string | undefined }
}

export type EthereumStakeEffects = {
  readonly createStake: { args: StakeRequest; result: { stakeId: string; depositData: DepositFields } }
  readonly verifyDeposit: {
    /** `tentative`: nothing was ever verified or made of the evidence in status; what the service says now takes its place. */
    args: { request: StakeRequest; stakeId: string; depositData: DepositFields; tentative: boolean }
    result: { verifiedRoot: Hex; stakeId: string; depositData: DepositFields; withdrawalAddressIsContract: boolean | undefined }
  }
  readonly followDeposit: {
    args: DepositPlan
    /** `found`: what the staking API said of the stake, where it was asked. */
    result: {
      transaction: EthereumTransaction | undefined
      found?: { stakeId: string; depositData: DepositFields }
      /** Of one that is only planned, or has to be approved. */
      plan?: ShownPlan
    }
  }
  readonly undoStake: {
    args: { network: string; stakeId: string | undefined; externalReference: string }
    result: { cancelled: true }
  }
  readonly reportDeposit: { args: { network: string; stakeId: string; hash: Hash }; result: { reportedHash: Hash } }
}

/** The name of a stake's creation in idempotency keys. */
export const STAKE_STEP = 'stake'

export const stakeRequestOf = ({ origin, spec }: Pick<EthereumStakeView, 'origin' | 'spec'>): StakeRequest => ({
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
  request: stakeRequestOf(view),
  stakeId: evidence(view.status.stakeId, 'stakeId'),
  depositData: evidence(view.status.depositData, 'depositData'),
  shown: view.status.transaction,
  ...(isPlanOnly(view.spec) ? { plannedAs: { uid: view.uid, maxFeePerGasGwei: view.spec.maxFeePerGasGwei } } : {}),
})

const step = defineSteps<EthereumStakeView, EthereumStakeStatus, EthereumStakeEffects>()

/**
 * EthereumStake: CreateStake ─▶ VerifyDeposit ─▶ Transaction ─▶ Report
 *
 * Transaction makes the deposit's StakingTransaction and follows it: nonces, fees, signing and sending are the log's.
 */
export const ethereumStakeSteps: readonly Step<EthereumStakeView, EthereumStakeStatus, EthereumStakeEffects>[] = [
  step({
    name: 'CreateStake',
    done: (status) => status.stakeId !== undefined && status.depositData !== undefined,
    effect: 'createStake',
    args: stakeRequestOf,
    absorb: (status, { stakeId, depositData }) => ({ ...status, stakeId, depositData }),
    // Lost, and the log knows which stake it was.
    watches: (status) => status.stakeId !== undefined && status.depositData === undefined,
  }),
  step({
    name: 'VerifyDeposit',
    done: (status) => isFinal(status) || (status.verifiedRoot !== undefined && status.verifiedRoot === status.depositData?.depositDataRoot),
    effect: 'verifyDeposit',
    args: (view) => ({
      request: stakeRequestOf(view),
      stakeId: evidence(view.status.stakeId, 'stakeId'),
      depositData: evidence(view.status.depositData, 'depositData'),
      tentative: view.status.verifiedRoot === undefined && view.status.transaction === undefined,
    }),
    absorb: (
      { withdrawalAddressIsContract: before, ...status },
      { stakeId, depositData, verifiedRoot, withdrawalAddressIsContract: now },
    ) => ({
      ...status,
      stakeId,
      depositData,
      verifiedRoot,
      // A node that can't tell takes nothing back.
      ...((now ?? before) === true ? { withdrawalAddressIsContract: true } : {}),
    }),
  }),
  step({
    name: 'Transaction',
    // Status is a mirror: that it says so is looked up in the log, by the effect, whenever the resource is observed.
    done: isFinal,
    effect: 'followDeposit',
    args: depositPlanOf,
    watches: (status) => status.stakeId !== undefined && status.depositData !== undefined,
    absorb: (status, { transaction, found, plan }) => {
      const {
        transaction: _before,
        plan: _planned,
        ...rest
      } = {
        ...status,
        ...(found === undefined ? {} : { ...found, verifiedRoot: found.depositData.depositDataRoot }),
      }
      return { ...rest, ...(plan === undefined ? {} : { plan }), ...(transaction === undefined ? {} : { transaction }) }
    },
  }),
  step({
    name: 'Report',
    done: (status) => !isFinal(status) || isReported(status),
    effect: 'reportDeposit',
    args: (view) => ({
      network: view.spec.network,
      stakeId: evidence(view.status.stakeId, 'stakeId'),
      hash: evidence(view.status.transaction?.minedHash ?? view.status.transaction?.hash, 'transaction'),
    }),
    absorb: (status, { reportedHash }) => ({
      ...status,
      transaction: { ...evidence(status.transaction, 'transaction'), reportedHash },
    }),
    watches: (status) => isFinal(status),
    independent: true,
  }),
]

/** Before a deleted resource goes: a stake that was never paid is cancelled at the staking API, so that its name is free. */
export const undoStake: readonly Step<EthereumStakeView, EthereumStakeStatus, EthereumStakeEffects>[] = [
  step({
    name: 'UndoStake',
    done: (status) => status.cancelled === true,
    effect: 'undoStake',
    args: (view) => ({
      network: view.spec.network,
      stakeId: view.status.stakeId,
      externalReference: externalReference(view.origin),
    }),
    absorb: (status, { cancelled }) => ({ ...status, cancelled }),
  }),
]
