import { isPlanOnly } from '../../../resources/mode.ts'
import type { ShownPlan } from '../../../resources/plan.ts'
import type { SolanaProtocol, SolanaStakeSpec, SolanaStakeStatus, SolanaTransaction } from '../../../resources/solana-stake.ts'
import { externalReference, idempotencyKey, type Origin } from '../../engine/origin.ts'
import { defineSteps, type Step } from '../../engine/step.ts'

/** What a step sees: the resource's identity, its spec, and its status as far as it has come in this visit. */
export interface SolanaStakeView {
  readonly origin: Origin
  readonly spec: SolanaStakeSpec
  readonly status: SolanaStakeStatus
  readonly deleting: boolean
  /** The resource's own, as the API server gave it. */
  readonly uid: string
}

/** The three transactions of a stake's life. */
export type ActionKind = 'stake' | 'deactivation' | 'withdrawal'

/** How the stake is asked for at the staking API. With `adoptStakeId` it is only read. */
export interface SolanaStakeRequest {
  readonly origin: Origin
  readonly network: string
  readonly amountLamports: string
  readonly stakeSigner: string
  readonly withdrawSigner: string
  readonly voteAccount?: string
  readonly destination?: string
  readonly maxPriorityFeeLamports: string
  readonly idempotencyKey: string
  readonly externalReference: string
  readonly adoptStakeId?: string
  /** Whether a stake is wanted, or only the end of one that may be there. */
  readonly wanted: boolean
}

/** What the staking API has made of the request. */
export interface StakeTerms {
  readonly stakeId: string
  readonly stakeAccount: string
  readonly stakeAuthority: string
  readonly withdrawAuthority: string
  readonly voteAccount: string
}

/** What a transaction is made from. */
export interface SolanaPlan {
  readonly request: SolanaStakeRequest
  readonly kind: ActionKind
}
/** What a step knows of its transaction. */
export interface FollowPlan extends SolanaPlan {
  readonly terms: StakeTerms
  /** What status shows of it. */
  readonly shown: SolanaTransaction | undefined
  /** Whether it may be asked for. Of a resource that is being deleted, only the money's way out is, and only where the spec asks for it. */
  readonly mayMake: boolean
  /** Of one that is only planned: the resource's own UID, which its plan names. */
  readonly plannedAs?: string
}

export type SolanaStakeEffects = {
  readonly createStake: { args: SolanaStakeRequest; result: StakeTerms }
  readonly verifyStake: {
    /** `tentative`: nothing was ever made of the evidence in status; what the service says now takes its place. */
    args: { request: SolanaStakeRequest; terms: StakeTerms; tentative: boolean }
    result: StakeTerms
  }
  readonly followTransaction: { args: FollowPlan; result: { transaction: SolanaTransaction | undefined; plan?: ShownPlan } }
  /** Sees a stake that is not wanted any more to its end; `nothing`: there is none, and none can come. */
  readonly settleStake: { args: FollowPlan; result: { transaction: SolanaTransaction | undefined; nothing: boolean } }
  /** Cancels at the staking API what it has under the resource's name and was never paid; `cancelled` is false where the API can't. */
  readonly undoStake: {
    args: { origin: Origin; network: string; stakeId?: string; externalReference: string }
    result: { cancelled: boolean }
  }
  readonly reportTransaction: {
    args: { network: string; stakeId: string; txId: string; signature: string }
    result: { reportedSignature: string }
  }
  readonly observeStake: {
    args: {
      request: SolanaStakeRequest
      terms: StakeTerms
      seen: SolanaProtocol | undefined
      awaited: Awaited
      madeAtSlot: number
      /** Slot in which the transaction landed that brings it about. */
      since: number
    }
    result: SolanaProtocol
  }
}
/** What is waited for. */
export type Awaited = 'Active' | 'Inactive' | 'Withdrawn'

/** The step that a stake's creation belongs to, in idempotency keys. */
export const SOLANA_STAKE_STEP = 'stake'

export const solanaRequestOf = ({ origin, spec }: Pick<SolanaStakeView, 'origin' | 'spec'>): SolanaStakeRequest => ({
  origin,
  network: spec.network,
  amountLamports: spec.amountLamports,
  stakeSigner: spec.stakeAuthority.signer,
  withdrawSigner: spec.withdrawAuthority.signer,
  ...(spec.voteAccount === undefined ? {} : { voteAccount: spec.voteAccount }),
  ...(spec.destination === undefined ? {} : { destination: spec.destination }),
  maxPriorityFeeLamports: spec.maxPriorityFeeLamports,
  idempotencyKey: idempotencyKey(origin, SOLANA_STAKE_STEP),
  externalReference: externalReference(origin),
  ...(spec.adopt === undefined ? {} : { adoptStakeId: spec.adopt.stakeId }),
  wanted: spec.desiredState === 'Active',
})

/** Of a transaction POST: the number counts those of this kind that the staking API has, so that a key is never used for two. */
export const transactionKey = (origin: Origin, kind: ActionKind, number: number): string =>
  idempotencyKey(origin, `${kind}-transaction`, number)

/** The evidence of an earlier step. The order of the steps guarantees it; its absence is a bug, not a state. */
function evidence<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`a step ran before its evidence: status has no ${what}`)
  return value
}

export function termsOf(status: SolanaStakeStatus): StakeTerms | undefined {
  const { stakeId, stakeAccount, stakeAuthority, withdrawAuthority, voteAccount } = status
  if (
    stakeId === undefined ||
    stakeAccount === undefined ||
    stakeAuthority === undefined ||
    withdrawAuthority === undefined ||
    voteAccount === undefined
  )
    return undefined
  return { stakeId, stakeAccount, stakeAuthority, withdrawAuthority, voteAccount }
}

export const transactionOf = (status: SolanaStakeStatus | undefined, kind: ActionKind): SolanaTransaction | undefined =>
  status?.transactions?.[kind]
/** It may land, as far as status says. */
export const isInFlight = (transaction: SolanaTransaction | undefined): boolean =>
  transaction?.state === 'Prepared' || transaction?.state === 'Broadcast'
export const isFinal = (transaction: SolanaTransaction | undefined): boolean => transaction?.state === 'Confirmed'
/** Whether status names something that was signed for a step, or says that it was done. */
export const isWitness = (shown: SolanaTransaction | undefined): shown is SolanaTransaction =>
  shown !== undefined && (shown.state === 'Confirmed' || signaturesOf(shown).length > 0)

/** Every signature that status names of a step, the present one last. */
export function signaturesOf({ earlier = [], signature, landedSignature }: SolanaTransaction): readonly string[] {
  const all = [...earlier.map((one) => one.signature), landedSignature, signature].filter((one) => one !== undefined)
  return [...new Set(all)]
}
/** The stake account was made and funded, for good. */
export const isFunded = (status: SolanaStakeStatus | undefined): boolean => isFinal(transactionOf(status, 'stake'))
/** The account is closed, and all of it went where the resource says. */
export const isWithdrawn = (status: SolanaStakeStatus | undefined): boolean =>
  status?.protocol?.status === 'Withdrawn' && isFinal(transactionOf(status, 'withdrawal'))
/** Nothing was paid, and nothing that was signed may land. `looked` says that it was not only status that was asked. */
export const isNothingStaked = (status: SolanaStakeStatus | undefined): boolean => {
  const state = transactionOf(status, 'stake')?.state
  return state === 'Expired' || state === 'Failed' || (state === undefined && status?.looked === true)
}

/** A slot at which the account was there. */
export const madeAtSlot = (status: SolanaStakeStatus): number => (isFunded(status) ? (transactionOf(status, 'stake')?.slot ?? 0) : 0)

const planOf =
  (kind: ActionKind) =>
  (view: SolanaStakeView): FollowPlan => ({
    request: solanaRequestOf(view),
    kind,
    terms: evidence(termsOf(view.status), 'stake'),
    shown: transactionOf(view.status, kind),
    mayMake: view.spec.suspend !== true && (!view.deleting || (kind !== 'stake' && view.spec.desiredState === 'Withdrawn')),
    ...(isPlanOnly(view.spec) ? { plannedAs: view.uid } : {}),
  })

function withTransaction(status: SolanaStakeStatus, kind: ActionKind, transaction: SolanaTransaction | undefined): SolanaStakeStatus {
  const { looked, transactions, ...rest } = status
  const { [kind]: _before, ...others } = transactions ?? {}
  const next = transaction === undefined ? others : { ...others, [kind]: transaction }
  return {
    ...rest,
    // Of a transaction in flight, nobody may say any more that there is none.
    ...(looked === undefined || (kind === 'stake' && transaction !== undefined) ? {} : { looked }),
    ...(Object.keys(next).length === 0 ? {} : { transactions: next }),
  }
}

type SolanaStep = Step<SolanaStakeView, SolanaStakeStatus, SolanaStakeEffects>
const step = defineSteps<SolanaStakeView, SolanaStakeStatus, SolanaStakeEffects>()
type Skip = (status: SolanaStakeStatus) => boolean
const never: Skip = () => false

const createStake = step({
  name: 'CreateStake',
  done: (status) => termsOf(status) !== undefined,
  effect: 'createStake',
  args: solanaRequestOf,
  absorb: (status, terms) => ({ ...status, ...terms }),
})
const verifyStake = step({
  name: 'VerifyStake',
  done: (status) => isFunded(status) || (status.stakeId !== undefined && status.verifiedStakeId === status.stakeId),
  effect: 'verifyStake',
  args: (view) => ({
    request: solanaRequestOf(view),
    terms: evidence(termsOf(view.status), 'stake'),
    tentative: view.status.verifiedStakeId === undefined && view.status.transactions === undefined,
  }),
  absorb: (status, terms) => ({ ...status, ...terms, verifiedStakeId: terms.stakeId }),
})

const names = { stake: 'Stake', deactivation: 'Deactivation', withdrawal: 'Withdrawal' } as const

/**
 * One transaction: its StakingTransaction is made and followed; attempts, signing and sending are the log's. Then it is reported. `skip` says that it is
 * not needed (any more).
 */
const transactionSteps = (kind: ActionKind, skip: Skip = never): readonly SolanaStep[] => [
  step({
    name: `${names[kind]}Transaction`,
    // Status is a mirror of the log, put right before anything is read from it.
    done: (status) => skip(status) || isFinal(transactionOf(status, kind)),
    effect: 'followTransaction',
    args: planOf(kind),
    absorb: ({ plan: _planned, ...status }, { transaction, plan }) => ({
      ...withTransaction(status, kind, transaction),
      ...(plan === undefined ? {} : { plan }),
    }),
    watches: (status) => isInFlight(transactionOf(status, kind)) && termsOf(status) !== undefined,
  }),
  report(kind, skip),
]

const report = (kind: ActionKind, skip: Skip): SolanaStep =>
  step({
    name: `Report${names[kind]}`,
    done: (status) => {
      const transaction = transactionOf(status, kind)
      const { txId, landedSignature, reportedSignature } = transaction ?? {}
      return (
        skip(status) ||
        !isFinal(transaction) ||
        txId === undefined ||
        landedSignature === undefined ||
        reportedSignature === landedSignature
      )
    },
    effect: 'reportTransaction',
    args: ({ spec, status }) => {
      const { txId, landedSignature } = evidence(transactionOf(status, kind), `transactions.${kind}`)
      return {
        network: spec.network,
        stakeId: evidence(status.stakeId, 'stakeId'),
        txId: evidence(txId, 'txId'),
        signature: evidence(landedSignature, 'landedSignature'),
      }
    },
    absorb: (status, { reportedSignature }) =>
      withTransaction(status, kind, { ...evidence(transactionOf(status, kind), `transactions.${kind}`), reportedSignature }),
    independent: true,
  })

const broughtAboutBy = { Active: 'stake', Inactive: 'deactivation', Withdrawn: 'withdrawal' } as const satisfies Record<Awaited, ActionKind>
/** Looks at the chain until the stake is where it is awaited. Each look is written down. */
const awaitState = (awaited: Awaited, reached: readonly SolanaProtocol['status'][], skip: Skip): SolanaStep =>
  step({
    name: `Await${awaited}`,
    done: (status) => skip(status) || (status.protocol !== undefined && reached.includes(status.protocol.status)),
    effect: 'observeStake',
    args: (view) => ({
      request: solanaRequestOf(view),
      terms: evidence(termsOf(view.status), 'stake'),
      seen: view.status.protocol,
      awaited,
      madeAtSlot: madeAtSlot(view.status),
      since: transactionOf(view.status, broughtAboutBy[awaited])?.slot ?? 0,
    }),
    absorb: (status, protocol) => ({ ...status, protocol }),
    watches: (status) => isFunded(status) && termsOf(status) !== undefined,
  })

const nothing = isNothingStaked
/** A stake that is not wanted any more, or never was: nothing is signed for it, but what may have been is found and seen to its end. */
const settleStake: readonly SolanaStep[] = [
  step({
    name: 'SettleStake',
    done: (status) => isFunded(status) || nothing(status),
    effect: 'settleStake',
    args: planOf('stake'),
    // Nothing of the stake is made any more: what waited for an approval does not.
    absorb: ({ plan: _planned, ...status }, { transaction, nothing: none }) => {
      const next = withTransaction(status, 'stake', transaction)
      return none && transaction === undefined ? { ...next, looked: true } : next
    },
    watches: (status) => termsOf(status) !== undefined,
  }),
]
const deactivate = [...transactionSteps('deactivation', nothing), awaitState('Inactive', ['Inactive', 'Withdrawn'], nothing)]
const withdraw = [...transactionSteps('withdrawal', nothing), awaitState('Withdrawn', ['Withdrawn'], nothing)]
const begin = [createStake, verifyStake]

/**
 * SolanaStake, as far as its desired state asks:
 *
 *   CreateStake ─▶ VerifyStake ─▶ StakeTransaction ─▶ Report ─▶ AwaitActive
 *                              └▶ SettleStake ─▶ DeactivationTransaction ─▶ Report ─▶ AwaitInactive
 *                                             ─▶ WithdrawalTransaction ─▶ Report ─▶ AwaitWithdrawn
 *
 * The records are named by stake account and step, so that no two resources, and no two leaders, carry one out twice.
 */
export const solanaStakeSteps: Readonly<Record<SolanaStakeSpec['desiredState'], readonly SolanaStep[]>> = {
  Active: [...begin, ...transactionSteps('stake'), awaitState('Active', ['Active', 'Deactivating', 'Inactive', 'Withdrawn'], never)],
  Inactive: [...begin, ...settleStake, ...deactivate],
  Withdrawn: [...begin, ...settleStake, ...deactivate, ...withdraw],
}
/** Of a resource that is being deleted: what may have been paid is seen to its end. */
export const settleBeforeDeletion: readonly SolanaStep[] = settleStake
/** A resource that is deleted with `desiredState: Withdrawn` still gets its money out. */
export const withdrawBeforeDeletion: readonly SolanaStep[] = [...begin, ...settleStake, ...deactivate, ...withdraw]
/** Before a deleted resource goes: a stake that was never paid is cancelled at the staking API, so that its name is free. */
export const undoStake: readonly SolanaStep[] = [
  step({
    name: 'UndoStake',
    done: (status) => status.cancelled !== undefined,
    effect: 'undoStake',
    args: ({ origin, spec, status }) => ({
      origin,
      network: spec.network,
      externalReference: externalReference(origin),
      ...(status.stakeId === undefined ? {} : { stakeId: status.stakeId }),
    }),
    absorb: (status, { cancelled }) => ({ ...status, cancelled }),
  }),
]
