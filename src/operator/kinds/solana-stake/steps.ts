import type {
  EarlierAttempt,
  SolanaProtocol,
  SolanaStakeSpec,
  SolanaStakeStatus,
  SolanaTransaction,
} from '../../../resources/solana-stake.ts'
import { externalReference, idempotencyKey, type Origin } from '../../engine/origin.ts'
import { defineSteps, type Step } from '../../engine/step.ts'

/** What a step sees: the resource's identity, its spec, and its status as far as it has come in this visit. */
export interface SolanaStakeView {
  readonly origin: Origin
  readonly spec: SolanaStakeSpec
  readonly status: SolanaStakeStatus
  readonly deleting: boolean
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
}

/** What the staking API has made of the request. */
export interface StakeTerms {
  readonly stakeId: string
  readonly stakeAccount: string
  readonly stakeAuthority: string
  readonly withdrawAuthority: string
  readonly voteAccount: string
}

/** Where something may have been staked, for all that status says. */
export interface StakeSearch {
  readonly request: SolanaStakeRequest
  readonly stakeId: string
  readonly stakeAccount?: string
  /** The stake was never verified, and so nothing was ever signed for it, as far as status says. */
  readonly tentative: boolean
}

/** What a transaction is made from. */
export interface SolanaPlan {
  readonly request: SolanaStakeRequest
  readonly kind: ActionKind
  readonly terms: StakeTerms
  /** An attempt that is over, if there was one. */
  readonly previous?: SolanaTransaction
  /** A slot at which the account was there, 0 if it never was: seen at an earlier one, it doesn't count that it isn't. */
  readonly madeAtSlot: number
}
export interface InFlightSolana extends SolanaPlan {
  readonly transaction: SolanaTransaction
  /** Whether the same bytes may be sent again. Not for a stake that is no longer wanted: it is only watched. */
  readonly resend: boolean
}

/** What it was made for stands on the chain, at finalized commitment: by this transaction, or by one that status doesn't know. */
type Confirmed = { readonly is: 'confirmed'; readonly landedSignature?: string; readonly slot: number }
/** It can never land, at finalized height, and is in no node's history. */
type Expired = { readonly is: 'expired' }
/** It is in a final block, and moved nothing but its fee. */
type Failed = { readonly is: 'failed'; readonly landedSignature: string; readonly slot: number; readonly failure: string }
export type SolanaOutcome = Confirmed | Expired | Failed
/** The failure of a withdrawal that landed and paid out, and whose account is open still: it had got lamports meanwhile. */
export const NOT_CLOSED = 'AccountNotClosed'

export type SolanaStakeEffects = {
  readonly createStake: { args: SolanaStakeRequest; result: StakeTerms }
  readonly verifyStake: {
    /** `tentative`: nothing was ever made of the evidence in status; what the service says now takes its place. */
    args: { request: SolanaStakeRequest; terms: StakeTerms; tentative: boolean }
    result: StakeTerms
  }
  /** Whether a stake that is not wanted any more was made all the same: undefined where there is none, and none can come. */
  readonly findStake: { args: StakeSearch; result: SolanaTransaction | undefined }
  readonly prepareTransaction: { args: SolanaPlan; result: SolanaTransaction }
  readonly broadcastTransaction: { args: InFlightSolana; result: { is: 'sent' } | SolanaOutcome }
  readonly reportTransaction: {
    /** `isFinal`: its outcome is known, whatever the staking API makes of it. */
    args: { network: string; stakeId: string; txId: string; signature: string; isFinal: boolean }
    result: { reportedSignature: string }
  }
  readonly confirmTransaction: { args: InFlightSolana; result: SolanaOutcome }
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
/** The stake account was made and funded, for good. */
export const isFunded = (status: SolanaStakeStatus | undefined): boolean => isFinal(transactionOf(status, 'stake'))
export const isWithdrawn = (status: SolanaStakeStatus | undefined): boolean => status?.protocol?.status === 'Withdrawn'
/** Nothing was paid, and nothing that was signed may land. `looked` says that it was not only status that was asked. */
export const isNothingStaked = (status: SolanaStakeStatus | undefined): boolean => {
  const state = transactionOf(status, 'stake')?.state
  return state === 'Expired' || state === 'Failed' || (state === undefined && status?.looked === true)
}

/** Nothing was ever made of the stake in status: it was not verified yet, or refused. */
const isTentative = ({ verifiedStakeId, transactions }: SolanaStakeStatus): boolean =>
  verifiedStakeId === undefined && transactions === undefined

/** A slot at which the account was there. */
export const madeAtSlot = (status: SolanaStakeStatus): number => (isFunded(status) ? (transactionOf(status, 'stake')?.slot ?? 0) : 0)

const planOf =
  (kind: ActionKind) =>
  (view: SolanaStakeView): SolanaPlan => {
    const previous = transactionOf(view.status, kind)
    return {
      request: solanaRequestOf(view),
      kind,
      terms: evidence(termsOf(view.status), 'stake'),
      ...(previous === undefined ? {} : { previous }),
      madeAtSlot: madeAtSlot(view.status),
    }
  }
const inFlightOf =
  (kind: ActionKind, resend: boolean) =>
  (view: SolanaStakeView): InFlightSolana => ({
    ...planOf(kind)(view),
    transaction: evidence(transactionOf(view.status, kind), `transactions.${kind}`),
    // Of a resource that is being deleted, only the money's way out is sent again, and only where the spec asks for it.
    resend: resend && view.spec.suspend !== true && (!view.deleting || view.spec.desiredState === 'Withdrawn'),
  })

const withTransaction = (status: SolanaStakeStatus, kind: ActionKind, transaction: SolanaTransaction): SolanaStakeStatus => {
  // Of a transaction in flight, nobody may say any more that there is none.
  const { looked: _over, ...rest } = status
  return { ...(kind === 'stake' ? rest : status), transactions: { ...status.transactions, [kind]: transaction } }
}
const changed = (status: SolanaStakeStatus, kind: ActionKind, change: Partial<SolanaTransaction>): SolanaStakeStatus =>
  withTransaction(status, kind, { ...evidence(transactionOf(status, kind), `transactions.${kind}`), ...change })

function absorbOutcome(status: SolanaStakeStatus, kind: ActionKind, outcome: SolanaOutcome): SolanaStakeStatus {
  switch (outcome.is) {
    case 'confirmed': {
      const { landedSignature, slot } = outcome
      // What it was is on the chain now, for good.
      const { message: _sent, ...rest } = evidence(transactionOf(status, kind), `transactions.${kind}`)
      const landed = landedSignature === undefined ? {} : { landedSignature }
      return withTransaction(status, kind, { ...rest, state: 'Confirmed', ...landed, slot })
    }
    case 'failed': {
      const { landedSignature, slot, failure } = outcome
      return changed(status, kind, { state: 'Failed', landedSignature, slot, failure })
    }
    case 'expired':
      return changed(status, kind, { state: 'Expired' })
  }
}

/** The schema's bound. */
const MAX_EARLIER = 32
/** The attempts before a new one, its predecessor the last. */
export function earlierOf(previous: SolanaTransaction | undefined): readonly EarlierAttempt[] {
  if (previous === undefined) return []
  const { earlier = [], signature, attempt, state } = previous
  if (signature === undefined || (state !== 'Expired' && state !== 'Failed')) return earlier
  return [...earlier, { signature, attempt, outcome: state }].slice(-MAX_EARLIER)
}
/** All signatures under which a transaction may stand on the chain and have done its work, the present one last. */
export const signaturesOf = (transaction: SolanaTransaction): readonly string[] => [
  ...(transaction.earlier ?? []).flatMap(({ signature, outcome }) => (outcome === 'Expired' ? [signature] : [])),
  ...(transaction.signature === undefined ? [] : [transaction.signature]),
]

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
    tentative: isTentative(view.status),
  }),
  absorb: (status, terms) => ({ ...status, ...terms, verifiedStakeId: terms.stakeId }),
})

const names = { stake: 'Stake', deactivation: 'Deactivation', withdrawal: 'Withdrawal' } as const

/** Watches a transaction until it is final, cannot land any more, or has failed. */
const confirm = (kind: ActionKind, options: { readonly resend: boolean; readonly skip: Skip; readonly endsOver?: boolean }): SolanaStep =>
  step({
    name: `Confirm${names[kind]}`,
    done: (status) =>
      options.skip(status) ||
      isFinal(transactionOf(status, kind)) ||
      (options.endsOver === true && transactionOf(status, kind) !== undefined && !isInFlight(transactionOf(status, kind))),
    effect: 'confirmTransaction',
    args: inFlightOf(kind, options.resend),
    absorb: (status, outcome) => absorbOutcome(status, kind, outcome),
    watches: (status) => isInFlight(transactionOf(status, kind)) && termsOf(status) !== undefined,
  })

/**
 * One transaction, made, written down, sent, reported and seen final. `skip` says that it is not needed (any more). What can't land any more is made
 * anew, as another attempt under the same id.
 */
const transactionSteps = (kind: ActionKind, skip: Skip = never): readonly SolanaStep[] => [
  step({
    name: `Prepare${names[kind]}`,
    done: (status) => skip(status) || isFinal(transactionOf(status, kind)) || isInFlight(transactionOf(status, kind)),
    effect: 'prepareTransaction',
    args: planOf(kind),
    absorb: (status, transaction) => withTransaction(status, kind, transaction),
  }),
  step({
    name: `Broadcast${names[kind]}`,
    done: (status) => {
      const transaction = transactionOf(status, kind)
      return skip(status) || isFinal(transaction) || (transaction !== undefined && transaction.broadcastSignature === transaction.signature)
    },
    effect: 'broadcastTransaction',
    args: inFlightOf(kind, true),
    absorb: (status, outcome) => {
      if (outcome.is !== 'sent') return absorbOutcome(status, kind, outcome)
      const { signature } = evidence(transactionOf(status, kind), `transactions.${kind}`)
      return changed(status, kind, { broadcastSignature: evidence(signature, 'signature'), state: 'Broadcast' })
    },
    writeAhead: true,
  }),
  step({
    name: `Report${names[kind]}`,
    done: (status) => {
      const transaction = transactionOf(status, kind)
      if (skip(status)) return true
      if (transaction === undefined) return false
      const { txId, signature, landedSignature, reportedSignature } = transaction
      // The staking API takes only the signature of its present message; an earlier attempt's it has been told before.
      const isEarlier = landedSignature !== undefined && landedSignature !== signature
      return txId === undefined || signature === undefined || isEarlier || reportedSignature === signature
    },
    effect: 'reportTransaction',
    args: ({ spec, status }) => {
      const transaction = evidence(transactionOf(status, kind), `transactions.${kind}`)
      const { txId, signature } = transaction
      return {
        isFinal: isFinal(transaction),
        network: spec.network,
        stakeId: evidence(status.stakeId, 'stakeId'),
        txId: evidence(txId, 'txId'),
        signature: evidence(signature, 'signature'),
      }
    },
    absorb: (status, { reportedSignature }) => changed(status, kind, { reportedSignature }),
    independent: true,
  }),
  confirm(kind, { resend: true, skip }),
]

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
    name: 'FindStake',
    done: (status) => status.looked === true || transactionOf(status, 'stake') !== undefined,
    effect: 'findStake',
    args: ({ origin, spec, status }) => ({
      request: solanaRequestOf({ origin, spec }),
      stakeId: evidence(status.stakeId, 'stakeId'),
      ...(status.stakeAccount === undefined ? {} : { stakeAccount: status.stakeAccount }),
      tentative: isTentative(status),
    }),
    absorb: (status, found) => (found === undefined ? { ...status, looked: true } : withTransaction(status, 'stake', found)),
    watches: (status) => status.stakeId !== undefined,
  }),
  confirm('stake', { resend: false, skip: nothing, endsOver: true }),
]
const deactivate = [...transactionSteps('deactivation', nothing), awaitState('Inactive', ['Inactive', 'Withdrawn'], nothing)]
const withdraw = [...transactionSteps('withdrawal', nothing), awaitState('Withdrawn', ['Withdrawn'], nothing)]
const begin = [createStake, verifyStake]

/**
 * SolanaStake, as far as its desired state asks:
 *
 *   CreateStake ─▶ VerifyStake ─▶ Prepare ─▶ Broadcast ─▶ Report ─▶ Confirm ─▶ AwaitActive                (Stake)
 *                              └▶ FindStake ─▶ Confirm ─▶ Prepare ─▶ … ─▶ Confirm ─▶ AwaitInactive        (Deactivation)
 *                                                       ─▶ Prepare ─▶ … ─▶ Confirm ─▶ AwaitWithdrawn      (Withdrawal)
 *
 * Broadcast sends money and is written ahead. There is no ledger of nonces: the address of the account is made of the stake's id, so that no two
 * transactions can fund it, and a transaction is made anew only once it can't land any more.
 */
export const solanaStakeSteps: Readonly<Record<SolanaStakeSpec['desiredState'], readonly SolanaStep[]>> = {
  Active: [...begin, ...transactionSteps('stake'), awaitState('Active', ['Active', 'Deactivating', 'Inactive', 'Withdrawn'], never)],
  Inactive: [...begin, ...settleStake, ...deactivate],
  Withdrawn: [...begin, ...settleStake, ...deactivate, ...withdraw],
}
/** Of a resource that is being deleted: what may have been paid is found, and seen to its end. */
export const settleBeforeDeletion: readonly SolanaStep[] = settleStake
/** A resource that is deleted with `desiredState: Withdrawn` still gets its money out. */
export const withdrawBeforeDeletion: readonly SolanaStep[] = [...begin, ...settleStake, ...deactivate, ...withdraw]
