import type { DisplacedRequest, InFlight, Ledger } from '../../resources/staking-signer.ts'
import type { Origin } from '../engine/origin.ts'

/**
 * The nonce ledger of one signer on one network, as pure arithmetic. The engine reads it from the signer's status, plans, signs, and writes the
 * result back fenced by resourceVersion; only then is a nonce given out.
 */

/** What the chain says of the signer's address: numbers of transactions, which are the next free nonces. */
export interface NonceCounts {
  readonly latest: number
  /** With the node's pool. */
  readonly pending: number
  /** Up to the final block. */
  readonly final: number
}

export interface ReservationRequest {
  readonly origin: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly step: string
  readonly pubkey: string
}

/** Entries a ledger may hold: the schema's bound, less some room. */
export const MAX_IN_FLIGHT = 120

export const emptyLedger = (network: string): Ledger => ({ network, nextNonce: 0 })

/** Whose transaction it is. */
export type Owner = Pick<InFlight, 'kind' | 'namespace' | 'name' | 'origin'>

/** By UID and place: an annotation that names another resource's UID reaches nothing of that one. */
export const isOwner = (owner: Owner, { uid, kind, namespace, name }: Origin): boolean =>
  owner.origin === uid && owner.kind === kind && owner.namespace === namespace && owner.name === name
export const originOf = ({ origin: uid, kind, namespace, name }: Owner): Origin => ({ uid, kind, namespace, name })

export const entryOf = (ledger: Ledger | undefined, origin: Origin, step: string): InFlight | undefined =>
  ledger?.inFlight?.find((entry) => isOwner(entry, origin) && entry.step === step)

/** The step that a stake's creation and its one transaction belong to, in idempotency keys and in the signer's ledger. */
export const STAKE_STEP = 'stake'

/** Whether an entry pays a validator: at most one may. Requests of a validator may follow one another. */
export const isDeposit = ({ step }: Pick<InFlight, 'step'>): boolean => step === STAKE_STEP

/** Entries that were under a nonce before, at most: the schema's bound. Beyond that a nonce is not given on. */
export const MAX_DISPLACED = 8
/** Requests whose nonce was given on, beyond which none is any more: the schema's bound, less what may be given on at once. */
const MAX_DISPLACED_REQUESTS = 128

/**
 * The entries whose nonce may still pay for a validator: its own, or one that took the place of another that would. No second nonce may be given
 * out for that validator before this one is final: both could land, and the deposit contract takes a second deposit as a top-up.
 */
export const payersOf = (ledger: Ledger | undefined, pubkey: string): readonly InFlight[] =>
  (ledger?.inFlight ?? []).filter((entry) =>
    [isDeposit(entry) ? entry.pubkey : undefined, ...(entry.displacedPubkeys ?? [])].some(
      (paid) => paid?.toLowerCase() === pubkey.toLowerCase(),
    ),
  )

/** Requests are kept beyond finality, so many at most: the newest. */
const MAX_KEPT = 32

/**
 * Entries whose nonce is used at finality say nothing any more: the chain does. But no contract tells whether a request was made before, so that
 * those whose resource doesn't know their outcome yet are kept (`isOpen`), and so are those whose nonce was given to another.
 */
export function pruned(ledger: Ledger, counts: NonceCounts, isOpen: (owner: Owner) => boolean): Ledger {
  const { inFlight = [], displacedRequests = [], ...rest } = ledger
  const isLive = ({ nonce }: { readonly nonce: number }) => nonce >= counts.final
  const newest = <T extends Owner & { readonly nonce: number }>(entries: readonly T[]) =>
    entries.filter((entry) => !isLive(entry) && isOpen(entry)).slice(-MAX_KEPT)
  const displaced = [...newest(displacedRequests), ...displacedRequests.filter(isLive)]
  return {
    ...rest,
    inFlight: [...newest(inFlight.filter((entry) => !isDeposit(entry))), ...inFlight.filter(isLive)],
    ...(displaced.length === 0 ? {} : { displacedRequests: displaced }),
  }
}

/** The ledger without what a resource has in it for a step. */
export const withoutEntry = (ledger: Ledger, origin: Origin, step: string): Ledger => ({
  ...ledger,
  inFlight: (ledger.inFlight ?? []).filter((entry) => !isOwner(entry, origin) || entry.step !== step),
})

/**
 * Whether the chain shows transactions of this key that neither the ledger nor a person (acknowledgedNonce) knows of.
 * @returns the number of the first unaccounted nonce, or undefined.
 */
export function unaccounted(ledger: Ledger, counts: NonceCounts, acknowledgedNonce: number | undefined): number | undefined {
  const known = Math.max(ledger.nextNonce, acknowledgedNonce ?? 0)
  return Math.max(counts.latest, counts.pending) > known ? known : undefined
}

/**
 * Acknowledged transactions that may still land: the ledger doesn't know them, so one may be the very deposit that is asked for, and only what is
 * in the chain can be seen to be so.
 * @returns the number of the first such nonce, or undefined.
 */
export function unsettled(ledger: Ledger, counts: NonceCounts, acknowledgedNonce: number | undefined): number | undefined {
  const sent = Math.min(acknowledgedNonce ?? 0, Math.max(counts.latest, counts.pending))
  const first = Math.max(ledger.nextNonce, counts.final)
  return first < sent ? first : undefined
}

export interface NonceOffer {
  readonly nonce: number
  /** Who had this nonce before and gave it up: a new transaction under it must pay at least 10 % more than that one. */
  readonly displaces?: InFlight
}

/**
 * The nonces to hand out next, lowest first, without gaps: those given up by their resources or held by nobody, then
 * max(pending nonce of the chain, highest given out + 1) and on.
 */
export function* offers(ledger: Ledger, counts: NonceCounts, isReleased: (entry: InFlight) => boolean): Generator<NonceOffer, never> {
  const held = new Map((ledger.inFlight ?? []).map((entry) => [entry.nonce, entry]))
  const fresh = Math.max(counts.pending, counts.latest, ledger.nextNonce)
  for (let nonce = counts.latest; nonce < fresh; nonce++) {
    const entry = held.get(nonce)
    // Below the pool's count and unknown here: somebody else's transaction (a shared key), not a gap.
    if (entry === undefined ? nonce >= counts.pending : isReleased(entry) && mayBeDisplaced(ledger, entry))
      yield entry === undefined ? { nonce } : { nonce, displaces: entry }
  }
  for (let nonce = fresh; ; nonce++) yield { nonce }
}

const mayBeDisplaced = ({ displacedRequests = [] }: Ledger, { nonce, displacedPubkeys = [] }: InFlight): boolean =>
  displacedRequests.length < MAX_DISPLACED_REQUESTS &&
  displacedPubkeys.length + displacedRequests.filter((request) => request.nonce === nonce).length < MAX_DISPLACED

/** The ledger with an entry put in place of whatever held its nonce. What that would have paid, or asked for, is not forgotten: it may land instead. */
export function withEntry(ledger: Ledger, entry: InFlight): Ledger {
  const inFlight = ledger.inFlight ?? []
  const others = inFlight.filter((existing) => existing.nonce !== entry.nonce)
  const before = inFlight.find((existing) => existing.nonce === entry.nonce)
  const own = isDeposit(entry) ? entry.pubkey : undefined
  const pubkeys = [
    ...(before?.displacedPubkeys ?? []),
    ...(before?.pubkey !== undefined && isDeposit(before) ? [before.pubkey] : []),
  ].filter((pubkey, index, all) => pubkey !== own && all.indexOf(pubkey) === index)
  const isAnothers = before !== undefined && (!isOwner(before, originOf(entry)) || before.step !== entry.step)
  const requests = [...(ledger.displacedRequests ?? []), ...(isAnothers && !isDeposit(before) ? [displaced(before)] : [])]
  const { displacedPubkeys: _pubkeys, ...rest } = entry
  return {
    ...ledger,
    nextNonce: Math.max(ledger.nextNonce, entry.nonce + 1),
    inFlight: [...others, { ...rest, ...(pubkeys.length === 0 ? {} : { displacedPubkeys: pubkeys }) }].sort((a, b) => a.nonce - b.nonce),
    ...(requests.length === 0 ? {} : { displacedRequests: requests }),
  }
}

const displaced = (entry: InFlight): DisplacedRequest => {
  const { origin, kind, namespace, name, pubkey, nonce } = entry
  return { origin, kind, namespace, name, ...(pubkey === undefined ? {} : { pubkey }), nonce, hashes: [...hashesOf(entry)] }
}

/** All hashes that a ledger entry knows, the current one last. */
export const hashesOf = (entry: InFlight): readonly string[] => [...(entry.earlierHashes ?? []), entry.hash]

/** Wei that are bound by transactions not mined yet: value and highest possible fee of each. */
export function boundWei(ledger: Ledger, counts: NonceCounts): bigint {
  return (ledger.inFlight ?? [])
    .filter((entry) => entry.nonce >= counts.latest)
    .reduce((sum, entry) => sum + BigInt(entry.valueWei) + BigInt(entry.gas) * BigInt(entry.maxFeePerGasWei), 0n)
}
