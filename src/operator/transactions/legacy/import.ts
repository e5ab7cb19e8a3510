import { type Hash, lowerCase } from '../../../lib/chain-types.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { EthereumTransaction } from '../../../resources/ethereum-transaction.ts'
import type { Ledger, StakingSigner } from '../../../resources/staking-signer.ts'
import { readOrigin } from '../../engine/origin.ts'
import { wait } from '../../engine/verdict.ts'
import type { KubeObject } from '../../kube/objects.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { each } from '../each.ts'
import { addressOf } from '../ethereum-texts.ts'
import type { TransactionLog } from '../log.ts'
import type { LaneId } from '../names.ts'
import type { SignerStore } from '../signer-store.ts'
import type { TransactionStore } from '../store.ts'
import { createEntries, isOwner } from './entries.ts'
import type { LegacyKind, LegacyRecord, LegacySigner } from './kind.ts'
import { createLookup, shown } from './lookup.ts'

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

/** Every version of a transaction that a status of the version before names. */
export const hashesIn = ({ replaced = [], hash, broadcastHash, reportedHash, minedHash }: EthereumTransaction): readonly Hash[] => [
  ...new Set(
    [...replaced.map((one) => one.hash), hash, broadcastHash, reportedHash, minedHash].flatMap((one) =>
      one === undefined ? [] : lowerCase(one),
    ),
  ),
]
export const ledgersOf = (signer: StakingSigner | undefined): readonly Ledger[] => signer?.status?.ledgers ?? []

/**
 * Takes what the version before the log has left into the log: create-if-absent, so that whoever comes after a crash goes on. What the operator alone wrote
 * (StakingSigner.status.ledgers) is trusted as the log is. What stands in a resource's status, which a tenant can write, is a claim: it is looked for, and
 * holds the resource until it is found; it proves neither payment nor absence, and takes no place.
 */
export function createImport(deps: ImportDeps) {
  const { store, log, signers } = deps
  const lookup = createLookup(deps.sources)
  const { sourceOf } = lookup
  const { claim, importEntry, importDisplaced } = createEntries(store, lookup)

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
    const lane: LaneId = { chainId: network.config.chainId, address: addressOf(signer) }
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
