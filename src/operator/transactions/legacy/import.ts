import type { ChainTransaction, EthereumChain, Hex } from '../../../chains/ethereum/chain.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { EthereumTransaction } from '../../../resources/ethereum-transaction.ts'
import type { InFlight, Ledger, StakingSigner } from '../../../resources/staking-signer.ts'
import type { TransactionAttempt, TransactionClaim, TransactionOwner } from '../../../resources/staking-transaction.ts'
import { readOrigin } from '../../engine/origin.ts'
import { wait } from '../../engine/verdict.ts'
import type { KubeObject } from '../../kube/objects.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { withClaims } from '../claims.ts'
import { each } from '../each.ts'
import type { TransactionLog } from '../log.ts'
import type { LaneId } from '../names.ts'
import { takenOver } from '../protocol.ts'
import type { SignerStore } from '../signer-store.ts'
import { type RecordObject, recordOf, type TransactionStore } from '../store.ts'
import type { LegacyKind, LegacyRecord, LegacySigner } from './kind.ts'

/** A resource as it matters here. */
export type LegacyResource = KubeObject & {
  readonly spec: { readonly signer?: string }
  readonly status?: {
    readonly transaction?: EthereumTransaction | undefined
    readonly depositData?: { readonly pubkey: string } | undefined
  }
}
/** A kind with its objects: from the cache, and past it. */
export interface LegacySource extends LegacyKind {
  list(): Iterable<LegacyResource>
  read(ref: { readonly namespace: string; readonly name: string }, signal: AbortSignal): Promise<LegacyResource | undefined>
}

export interface ImportDeps {
  readonly store: TransactionStore
  readonly log: Pick<TransactionLog, 'ofOwner'>
  readonly signers: SignerStore
  readonly sources: readonly LegacySource[]
  readonly network: (name: string) => EthereumNetwork | undefined
  readonly assertMayAct: () => void
}

export interface Imported {
  readonly open: number
  readonly resources: number
  readonly fillers: number
}

/** Resources that are looked up at once. */
const AT_ONCE = 8
/** Earlier versions under one nonce that are taken over: the newest. What used a nonce is known by its call, not by its hash. */
const MOST_VERSIONS = 8

const hashesOf = ({ earlierHashes = [], hash }: Pick<InFlight, 'earlierHashes' | 'hash'>): readonly string[] => [...earlierHashes, hash]
/** Every version of a transaction that a status of the version before names. */
export const hashesIn = ({ replaced = [], hash, broadcastHash, reportedHash, minedHash }: EthereumTransaction): readonly string[] => [
  ...new Set([...replaced.map((one) => one.hash), hash, broadcastHash, reportedHash, minedHash].flatMap((one) => one?.toLowerCase() ?? [])),
]
export const ledgersOf = (signer: StakingSigner | undefined): readonly Ledger[] => signer?.status?.ledgers ?? []

/**
 * Takes what the version before the log has left into the log: create-if-absent, so that whoever comes after a crash goes on. What the operator alone wrote
 * (StakingSigner.status.ledgers) is trusted as the log is. What stands in a resource's status, which a tenant can write, is a claim: it is looked for, and
 * holds the resource until it is found; it proves neither payment nor absence, and takes no place.
 */
export function createImport(deps: ImportDeps) {
  const { store, log, signers } = deps

  const sourceOf = (kind: string): LegacySource | undefined => deps.sources.find((one) => one.kind === kind)

  async function shown(chain: Pick<EthereumChain, 'transaction'>, hashes: readonly string[], signal: AbortSignal) {
    const found: ChainTransaction[] = []
    for (const hash of hashes) {
      const transaction = await chain.transaction(hash as Hex, signal)
      if (transaction !== undefined) found.push(transaction)
    }
    return found
  }

  const isOwner = (record: RecordObject, { kind, namespace, name, originUid }: TransactionOwner): boolean => {
    const { owner } = record.spec
    return owner.kind === kind && owner.namespace === namespace && owner.name === name && owner.originUid === originUid
  }

  /** The resource of an entry, if it is the very one. */
  async function resourceOf({ kind, namespace, name, originUid }: TransactionOwner, signal: AbortSignal) {
    const resource = await sourceOf(kind)?.read({ namespace, name }, signal)
    const origin = resource === undefined ? undefined : readOrigin(kind, resource.metadata)
    return resource !== undefined && origin?.is === 'own' && origin.origin.uid === originUid
      ? { resource, origin: origin.origin }
      : undefined
  }

  /** What a transaction that the ledger has was for; undefined where nobody can say any more. */
  async function recordFor(
    entry: Pick<InFlight, 'pubkey'> & { readonly hashes: readonly string[] },
    owner: TransactionOwner,
    network: EthereumNetwork,
    signer: LegacySigner,
    signal: AbortSignal,
  ): Promise<(LegacyRecord & { readonly isWhole: boolean }) | undefined> {
    const source = sourceOf(owner.kind)
    const isIts = (one: LegacyRecord | undefined): one is LegacyRecord =>
      one !== undefined && (entry.pubkey === undefined || sameHex(one.spec.subject, entry.pubkey))
    const asking = await resourceOf(owner, signal)
    const found = asking && (await source?.find(asking.resource, asking.origin, signer, signal))
    if (isIts(found)) return { ...found, isWhole: true }
    for (const call of await shown(network.chain, entry.hashes, signal)) {
      const made = sameHex(call.from, signer.spec.address) ? source?.ofCall(owner, call, network, signer) : undefined
      if (isIts(made)) return { ...made, isWhole: false }
    }
    return undefined
  }

  const attemptsFor = (entry: InFlight, isWhole: boolean): TransactionAttempt[] => {
    const { nonce, recordedAt: at, gas, maxFeePerGasWei, maxPriorityFeePerGasWei, valueWei } = entry
    const known = { nonce, kind: 'Call' as const, generation: 0, at }
    return [
      ...(entry.earlierHashes ?? []).slice(-MOST_VERSIONS).map((hash) => ({ ...known, hash, found: true })),
      // One that can be signed again byte for byte is sent again and replaced like any other; another one is only followed.
      { ...known, hash: entry.hash, gas, maxFeePerGasWei, maxPriorityFeePerGasWei, valueWei, ...(isWhole ? {} : { found: true }) },
    ]
  }

  async function claim(record: RecordObject, claims: readonly TransactionClaim[], signal: AbortSignal): Promise<void> {
    const status = withClaims(recordOf(record), claims)
    if (status !== record.status) await store.writeStatus(record, { ...status, state: status.state ?? 'Waiting' }, signal)
  }

  const ownerIn = ({ kind, namespace, name, origin }: Pick<InFlight, 'kind' | 'namespace' | 'name' | 'origin'>): TransactionOwner => ({
    kind,
    namespace,
    name,
    originUid: origin,
  })

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

  /** What else the ledger says of a validator: a deposit for it may land under these nonces. */
  const displacedFor = (ledger: Ledger, pubkey: string): readonly number[] =>
    (ledger.inFlight ?? []).flatMap(({ nonce, displacedPubkeys = [] }) =>
      displacedPubkeys.some((one) => sameHex(one, pubkey)) ? [nonce] : [],
    )

  /** The record of a resource by what its status claims. @returns whether there was something to take over */
  async function importResource(
    source: LegacySource,
    cached: LegacyResource,
    ledger: Ledger | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { namespace = '', name } = cached.metadata
    const resource = await source.read({ namespace, name }, signal)
    const transaction = resource?.status?.transaction
    const origin = resource === undefined ? undefined : readOrigin(source.kind, resource.metadata)
    const network = resource === undefined ? undefined : deps.network(source.networkOf(resource) ?? '')
    if (resource === undefined || network === undefined || origin?.is !== 'own') return false
    const signer: LegacySigner = signers.get(resource.spec.signer ?? '') ?? {
      metadata: { name: resource.spec.signer ?? '' },
      spec: { address: transaction?.from ?? '' },
    }
    const hashes = transaction === undefined ? [] : hashesIn(transaction)
    const calls = await shown(network.chain, hashes, signal)
    const owner = { kind: source.kind, namespace, name, originUid: origin.origin.uid }
    const byChain = (): LegacyRecord | undefined =>
      calls.flatMap((one) => (sameHex(one.from, signer.spec.address) ? (source.ofCall(owner, one, network, signer) ?? []) : []))[0]
    // What the staking API has forgotten the chain may know: a public key that it was never asked for is not given away by that.
    const found = (await source.find(resource, origin.origin, signer, signal)) ?? (source.isNamedByOwner ? byChain() : undefined)
    if (found === undefined) return false
    const nonces = ledger === undefined ? [] : displacedFor(ledger, found.spec.subject)
    if (hashes.length === 0 && nonces.length === 0) return false
    const { call } = found.spec
    // The signer may have had another key then.
    const made = calls.find(({ to, data }) => call !== undefined && to !== undefined && sameHex(to, call.to) && sameHex(data, call.data))
    const record = await store.create(found.name, { ...found.spec, from: made?.from ?? found.spec.from }, signal)
    if (!isOwner(record, owner)) return false
    await claim(record, [...hashes.map((hash) => ({ hash })), ...nonces.map((nonce) => ({ nonce }))], signal)
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

  async function importLedger(ledger: Ledger, signer: StakingSigner, signal: AbortSignal): Promise<Imported> {
    const { inFlight = [], displacedRequests = [], nextNonce } = ledger
    const network = deps.network(ledger.network)
    if (network === undefined) {
      // Without transactions there is nothing to lose: what the chain shows of the key stops it until a person has looked.
      if (inFlight.length === 0 && displacedRequests.length === 0) return { open: 0, resources: 0, fillers: 0 }
      throw wait(
        'Importing',
        `StakingSigner ${signer.metadata.name} has transactions on network ${ledger.network} from an earlier version, and the operator's networks file has no such network. Add it under this name: nothing is signed with this key before they are followed.`,
        30_000,
      )
    }
    const lane: LaneId = { chainId: network.config.chainId, address: signer.spec.address }
    let open = 0
    for (const entry of inFlight.toSorted((a, b) => a.nonce - b.nonce))
      if (await importEntry(entry, lane, network, signer, signal)) open += 1
    await importDisplaced(ledger, network, signer, signal)
    // Where the lane's own numbers end.
    if (nextNonce > 0) await store.takePlace(lane, nextNonce - 1, undefined, signal)
    const resources = deps.sources.flatMap((source) =>
      [...source.list()]
        .filter(
          (one) =>
            one.spec.signer === signer.metadata.name && source.networkOf(one) === ledger.network && mayHaveLegacy(source, one, ledger),
        )
        .map((one) => ({ source, one })),
    )
    const taken = await each(resources, AT_ONCE, ({ source, one }) => importResource(source, one, ledger, signal))
    return { open, resources: taken.filter(Boolean).length, fillers: inFlight.length - open }
  }

  const hasRecord = (kind: string, { metadata }: LegacyResource): boolean => {
    const origin = readOrigin(kind, metadata)
    const owner = { kind, namespace: metadata.namespace ?? '', name: metadata.name }
    return origin.is === 'own' && log.ofOwner(owner).some(({ spec }) => spec.owner.originUid === origin.origin.uid)
  }
  const mayHaveLegacy = (source: LegacySource, one: LegacyResource, ledger: Ledger): boolean =>
    (one.status?.transaction !== undefined && !hasRecord(source.kind, one)) ||
    (one.status?.depositData !== undefined && displacedFor(ledger, one.status.depositData.pubkey).length > 0)

  return {
    sourceOf,
    hasRecord,
    importResource,
    /** Takes over everything of a signer, and then its ledgers away: nothing of a status is believed as legacy after that. @returns undefined where there was nothing */
    async importSigner(cached: StakingSigner, signal: AbortSignal): Promise<Imported | undefined> {
      if (ledgersOf(cached).length === 0) return undefined
      deps.assertMayAct()
      const signer = await signers.read(cached.metadata.name, signal)
      if (signer === undefined || ledgersOf(signer).length === 0) return undefined
      const sum = { open: 0, resources: 0, fillers: 0 }
      for (const ledger of ledgersOf(signer)) {
        const { open, resources, fillers } = await importLedger(ledger, signer, signal)
        sum.open += open
        sum.resources += resources
        sum.fillers += fillers
      }
      const { ledgers: _taken, ...status } = signer.status ?? {}
      await signers.writeStatus(signer, status as NonNullable<StakingSigner['status']>, signal)
      return sum
    },
  }
}
