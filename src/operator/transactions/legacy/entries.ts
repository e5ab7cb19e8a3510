import type { Hash } from '../../../lib/chain-types.ts'
import type { InFlight, Ledger, StakingSigner } from '../../../resources/staking-signer.ts'
import type { TransactionAttempt, TransactionClaim, TransactionOwner } from '../../../resources/staking-transaction.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { withClaims } from '../claims.ts'
import type { LaneId } from '../names.ts'
import { takenOver } from '../protocol.ts'
import { type RecordObject, recordOf, type TransactionStore } from '../store.ts'
import type { Lookup } from './lookup.ts'

/** Earlier versions under one nonce that are taken over: the newest. What used a nonce is known by its call, not by its hash. */
const MOST_VERSIONS = 8

/** Takes over what a signer's ledger has of single transactions: those in flight, and requests that lost their nonce to another. */
export function createEntries(store: TransactionStore, { recordFor }: Lookup) {
  async function claim(record: RecordObject, claims: readonly TransactionClaim[], signal: AbortSignal): Promise<void> {
    const status = withClaims(recordOf(record), claims)
    if (status !== record.status) await store.writeStatus(record, { ...status, state: status.state ?? 'Waiting' }, signal)
  }

  /** @returns whether a transaction was taken over; otherwise its nonce is filled by the lane. */
  async function importEntry(
    entry: InFlight,
    lane: LaneId,
    network: EthereumNetwork,
    signer: StakingSigner,
    signal: AbortSignal,
  ): Promise<boolean> {
    const owner = ownerIn(entry)
    const hashes = hashesOf(entry)
    const made = await recordFor({ ...entry, hashes }, owner, network, signer, signal)
    const displaced = entry.displacedPubkeys ?? []
    if (made === undefined) {
      // Its resource is gone and no node shows it; it may land all the same, and whoever takes the stake over must not pay beside it.
      await store.takePlace(lane, entry.nonce, undefined, signal, [...displaced, ...(entry.pubkey === undefined ? [] : [entry.pubkey])])
      return false
    }
    const record = await store.create(made.name, made.spec, signal)
    const place = await store.takePlace(lane, entry.nonce, { ...recordOf(record), name: record.metadata.name }, signal, displaced)
    const status = isOwner(record, owner) ? takenOver(recordOf(record), place, attemptsFor(entry, made.isWhole)) : undefined
    if (status !== undefined) await store.writeStatus(record, status, signal)
    // Another nonce of the same purpose: it is waited for.
    else
      await claim(
        record,
        hashes.map((hash) => ({ hash, nonce: entry.nonce })),
        signal,
      )
    return true
  }

  /** Requests whose nonce was given to another transaction: they may land instead of it. */
  async function importDisplaced(ledger: Ledger, network: EthereumNetwork, signer: StakingSigner, signal: AbortSignal): Promise<void> {
    for (const one of ledger.displacedRequests ?? []) {
      const made = await recordFor(one, ownerIn(one), network, signer, signal)
      if (made === undefined) continue
      const record = await store.create(made.name, made.spec, signal)
      await claim(
        record,
        one.hashes.map((hash) => ({ hash, nonce: one.nonce })),
        signal,
      )
    }
  }

  return { claim, importEntry, importDisplaced }
}

const hashesOf = ({ earlierHashes = [], hash }: Pick<InFlight, 'earlierHashes' | 'hash'>): readonly Hash[] => [...earlierHashes, hash]
const attemptsFor = (entry: InFlight, isWhole: boolean): TransactionAttempt[] => {
  const { nonce, recordedAt: at, gas, maxFeePerGasWei, maxPriorityFeePerGasWei, valueWei } = entry
  const known = { nonce, kind: 'Call' as const, generation: 0, at }
  return [
    ...(entry.earlierHashes ?? []).slice(-MOST_VERSIONS).map((hash) => ({ ...known, hash, found: true })),
    // One that can be signed again byte for byte is sent again and replaced like any other; another one is only followed.
    { ...known, hash: entry.hash, gas, maxFeePerGasWei, maxPriorityFeePerGasWei, valueWei, ...(isWhole ? {} : { found: true }) },
  ]
}

const ownerIn = ({ kind, namespace, name, origin }: Pick<InFlight, 'kind' | 'namespace' | 'name' | 'origin'>): TransactionOwner => ({
  kind,
  namespace,
  name,
  originUid: origin,
})

export const isOwner = (record: RecordObject, { kind, namespace, name, originUid }: TransactionOwner): boolean => {
  const { owner } = record.spec
  return owner.kind === kind && owner.namespace === namespace && owner.name === name && owner.originUid === originUid
}
