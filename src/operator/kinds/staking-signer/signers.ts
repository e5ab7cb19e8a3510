import type { Address } from '../../../chains/ethereum/chain.ts'
import type { SolanaAddress } from '../../../chains/solana/chain.ts'
import type { Clock } from '../../../lib/clock.ts'
import { jitter } from '../../../lib/clock.ts'
import { sameHex } from '../../../lib/hex.ts'
import { shareNextCall } from '../../../lib/shared-call.ts'
import { LANE_FINALIZER } from '../../../resources/meta.ts'
import { type StakingSigner, type StakingSignerStatus, stakingSignerSpec } from '../../../resources/staking-signer.ts'
import { classify } from '../../engine/classify.ts'
import { conflict, Halt } from '../../engine/verdict.ts'
import type { Result } from '../../kube/controller.ts'
import { isConflict, isNotFound } from '../../kube/errors.ts'
import type { EventRecorder } from '../../kube/events.ts'
import { changeMetadata } from '../../kube/finalizers.ts'
import type { Informer } from '../../kube/informer.ts'
import { diffMergePatch } from '../../kube/merge-patch.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { Priority } from '../../kube/queue.ts'
import type { ResourceClient } from '../../kube/resource-client.ts'
import type { EthereumKeys, Networks, SolanaKeys } from '../../ports.ts'
import { unreadable } from '../../transactions/policy.ts'
import { closedOf, highestPlace, nextPlaces } from '../../transactions/protocol.ts'
import type { SignerStore } from '../../transactions/signer-store.ts'
import { isOpen } from '../../transactions/solana/holders.ts'
import { type RecordObject, recordOf, type TransactionStore } from '../../transactions/store.ts'
import { type SignerFacts, stakingSignerStatus } from './status.ts'

/** The fenced store of signers: reads from the cache, writes with the resourceVersion of what was read. */
export function createSignerStore(deps: {
  readonly client: ResourceClient<StakingSigner>
  readonly informer: Pick<Informer<StakingSigner>, 'get' | 'list' | 'put'>
  readonly fieldManager: string
  readonly assertHeld: () => void
  readonly onWrite: () => void
  readonly onPoint?: (point: string, key: string) => void
}): SignerStore {
  const { client, informer } = deps
  // Each read has a time-out of its own, and no caller's signal: others wait for it too.
  const never = new AbortController().signal
  const readNow = async (name: string): Promise<StakingSigner | undefined> => {
    try {
      const signer = await client.get({ name }, never)
      informer.put(signer)
      return signer
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }
  /** By name. Many transactions of one signer are about to be signed at once: one read that begins after all of them asked serves them all. */
  const reads = new Map<string, (signal: AbortSignal) => Promise<StakingSigner | undefined>>()
  return {
    get: (name) => informer.get(name),
    list: () => informer.list(),
    async read(name, signal) {
      const read = reads.get(name) ?? shareNextCall(() => readNow(name))
      reads.set(name, read)
      const found = await read(signal)
      if (found === undefined) reads.delete(name)
      return found
    },
    async writeStatus(signer, status, signal) {
      const patch = diffMergePatch(signer.status as Record<string, unknown> | undefined, status as Record<string, unknown>)
      if (patch === undefined) return signer
      deps.assertHeld()
      deps.onPoint?.('before signer write', signer.metadata.name)
      try {
        const written = await client.mergePatch(
          { name: signer.metadata.name },
          { status: patch },
          { resourceVersion: signer.metadata.resourceVersion, subresource: 'status', fieldManager: deps.fieldManager },
          signal,
        )
        deps.onPoint?.('after signer write', signer.metadata.name)
        deps.onWrite()
        informer.put(written)
        return written
      } catch (error) {
        if (isConflict(error)) throw conflict()
        throw error
      }
    },
  }
}

/**
 * The older signer with the same address, if there is one. Ties go by name, so that of two exactly one stands. Ethereum only: what makes two of
 * them dangerous is one nonce sequence, which Solana doesn't have.
 */
export function duplicateOf(signer: StakingSigner, all: Iterable<StakingSigner>): string | undefined {
  if (signer.spec.chain !== 'Ethereum') return undefined
  const age = ({ metadata }: StakingSigner) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`
  for (const other of all) {
    if (
      other.metadata.uid === signer.metadata.uid ||
      other.spec.chain !== signer.spec.chain ||
      !sameHex(other.spec.address, signer.spec.address)
    )
      continue
    if (age(other) < age(signer)) return other.metadata.name
  }
  return undefined
}

/** The newest transaction of somebody else that has used a nonce which was given out, unless a person has looked at it. */
function foreignIn(records: readonly RecordObject[], acknowledged: number): { readonly nonce: number; readonly hash: string } | undefined {
  return records
    .flatMap((record) => closedOf(recordOf(record)))
    .filter(({ by, nonce }) => by === 'Foreign' && nonce >= acknowledged)
    .toSorted((a, b) => b.nonce - a.nonce)[0]
}

const countsOf = (records: readonly RecordObject[]): { readonly open: number; readonly waiting: number } => {
  const open = records.filter(isOpen).length
  return { open, waiting: records.length - open }
}

export interface SignerReconcilerDeps {
  readonly store: SignerStore
  readonly informer: Pick<Informer<StakingSigner & KubeObject>, 'get' | 'list'>
  readonly client: ResourceClient<StakingSigner & KubeObject>
  readonly put: (signer: StakingSigner & KubeObject) => void
  readonly fieldManager: string
  readonly assertHeld: () => void
  readonly networks: Networks
  readonly keys: EthereumKeys
  readonly solanaKeys: Pick<SolanaKeys, 'address'>
  readonly clock: Clock
  readonly events: Pick<EventRecorder, 'event'>
  /** How often a signer is looked at: key file, balance, nonces, in ms. */
  readonly intervalMs: number
  /** Wei or lamports. */
  readonly onBalance: (signer: string, network: string, balance: bigint) => void
  readonly onAlarm: (network: string, signer: string, reason: string) => void
  readonly transactions: Pick<TransactionStore, 'recordsIn' | 'placesIn' | 'readPlaces' | 'unsettledOf'>
  /** Takes over what an earlier version has signed. @returns ms after which it is tried again; undefined where nothing is left */
  readonly importSigner: (signer: StakingSigner, signal: AbortSignal) => Promise<number | undefined>
}

/** Looks after a signer's own conditions: its key, its funds, transactions that nobody accounts for. */
export function createSignerReconciler(deps: SignerReconcilerDeps): (name: string, signal: AbortSignal) => Promise<Result> {
  const { store, informer, networks, keys, clock, events, transactions } = deps
  /** What was last known of a signer's funds: a node that is down for a while is no news. */
  const funds = new Map<string, boolean>()

  async function keyOf(signer: StakingSigner, signal: AbortSignal): Promise<SignerFacts['key']> {
    try {
      const mounted = signer.spec.chain === 'Solana' ? deps.solanaKeys : keys
      return { address: await mounted.address(signer.spec.keyName, signal) }
    } catch (error) {
      const verdict = classify(error)
      if (verdict.kind === 'stall') return { reason: verdict.reason, message: verdict.message }
      throw error
    }
  }

  async function networkFacts(signer: StakingSigner, name: string, signal: AbortSignal): Promise<SignerFacts['networks'][number]> {
    const fundedWith = (balance: bigint): { readonly name: string; readonly hasFunds: boolean } => {
      funds.set(`${signer.metadata.uid}/${name}`, balance > 0n)
      deps.onBalance(signer.metadata.name, name, balance)
      return { name, hasFunds: balance > 0n }
    }
    if (signer.spec.chain === 'Solana') {
      const cluster = networks.solana(name)
      if (cluster === undefined) return { name, hasFunds: undefined }
      const lamports = await cluster.chain.balance(signer.spec.address as SolanaAddress, 'confirmed', signal)
      const counts = countsOf(transactions.unsettledOf(signer.spec.address).filter((record) => networkName(record) === name))
      return { ...fundedWith(lamports), lane: { network: name, ...counts, balanceLamports: lamports.toString() } }
    }
    const network = networks.ethereum(name)
    if (network === undefined) return { name, hasFunds: undefined }
    const address = signer.spec.address as Address
    const [counts, balance] = await Promise.all([network.chain.laneCounts(address, signal), network.chain.balance(address, signal)])
    // The log is read after the chain: a nonce that is given out meanwhile must not look like a stranger's.
    const lane = { chainId: network.config.chainId, address }
    const { acknowledgedNonce: acknowledged, policy } = signer.spec
    const use = { acknowledged, shared: policy.sharedKey === true }
    let places = transactions.placesIn(lane)
    let next = nextPlaces(places, counts, use, 1)
    if (next.is === 'unaccounted') {
      // The cache may lag behind the log: nobody is alarmed before it was read afresh.
      places = await transactions.readPlaces(lane, signal)
      next = nextPlaces(places, counts, use, 1)
    }
    const unfinished = transactions.recordsIn(lane).filter(({ status }) => status?.outcome === undefined)
    const open = unfinished.flatMap(({ status }) => status?.place ?? [])
    return {
      ...fundedWith(balance),
      ...(next.is === 'unaccounted' ? { unaccounted: { first: next.from, count: next.count } } : {}),
      foreign: foreignIn(transactions.recordsIn(lane), acknowledged ?? 0),
      lane: {
        network: name,
        nextNonce: Math.max(counts.final, (highestPlace(places) ?? -1) + 1),
        open: open.length,
        waiting: unfinished.length - open.length,
        ...(open.length === 0 ? {} : { oldestNonce: Math.min(...open) }),
        balanceWei: balance.toString(),
      },
    }
  }

  /** The configured network of a Solana record; its own word where its cluster is not configured any more. */
  const networkName = ({ spec }: RecordObject): string =>
    networks.names('Solana').find((name) => networks.solana(name)?.config.genesisHash === spec.genesisHash) ?? spec.network

  /** What a Solana signer has on clusters that are not configured any more: it is held for that all the same. */
  function lanesElsewhere({ spec }: StakingSigner): SignerFacts['networks'] {
    if (spec.chain !== 'Solana') return []
    const names = new Set(networks.names('Solana'))
    const groups = Map.groupBy(
      transactions.unsettledOf(spec.address).filter((record) => !names.has(networkName(record))),
      networkName,
    )
    return [...groups].map(([name, records]) => ({ name, hasFunds: undefined, lane: { network: name, ...countsOf(records) } }))
  }

  /** Whether something that its key has signed may land: a place of its lane is open, or an attempt of a Solana record. */
  function isInUse({ spec }: StakingSigner): boolean {
    if (spec.chain === 'Solana') return transactions.unsettledOf(spec.address).some(isOpen)
    return networks.names('Ethereum').some((name) => {
      const chainId = networks.ethereum(name)?.config.chainId
      return (
        chainId !== undefined &&
        transactions
          .recordsIn({ chainId, address: spec.address })
          .some(({ status }) => status?.place !== undefined && status.outcome === undefined)
      )
    })
  }

  /** A signer of which something is open stays until that is settled, whoever deletes it. @returns undefined when it is gone */
  async function held(signer: StakingSigner & KubeObject, signal: AbortSignal): Promise<(StakingSigner & KubeObject) | undefined> {
    const inUse = isInUse(signer)
    const isDeleted = signer.metadata.deletionTimestamp !== undefined
    const has = signer.metadata.finalizers?.includes(LANE_FINALIZER) === true
    if (inUse === has || (isDeleted && inUse)) return signer
    if (!inUse && !isDeleted) return signer
    deps.assertHeld()
    const change = inUse ? { addFinalizer: LANE_FINALIZER } : { removeFinalizer: LANE_FINALIZER }
    const changed = await changeMetadata(deps.client, signer, change, signal, { fieldManager: deps.fieldManager })
    if (changed !== undefined) deps.put(changed)
    return changed
  }

  return async (name, signal) => {
    const known = informer.get(name)
    if (known === undefined) return { kind: 'done' }
    const againMs = await deps.importSigner(known, signal)
    if (againMs !== undefined) return { kind: 'wait', afterMs: jitter(againMs), priority: Priority.high }
    const signer = await held(informer.get(name) ?? known, signal)
    if (signer === undefined) return { kind: 'done' }
    // Deleted, it is looked at until its lane is settled.
    if (signer.metadata.deletionTimestamp !== undefined)
      return signer.metadata.finalizers?.includes(LANE_FINALIZER) === true
        ? { kind: 'wait', afterMs: jitter(deps.intervalMs) }
        : { kind: 'done' }
    const parsed = stakingSignerSpec.safeParse(signer.spec)
    const key = await keyOf(signer, signal)
    const facts: SignerFacts = {
      key,
      // Base58 has no second spelling.
      matches:
        'address' in key &&
        (signer.spec.chain === 'Solana' ? key.address === signer.spec.address : sameHex(key.address, signer.spec.address)),
      duplicateOf: duplicateOf(signer, informer.list()),
      unreadable: parsed.success ? undefined : unreadable(parsed.error),
      networks: (
        await Promise.all(
          networks.names(signer.spec.chain).map(async (network): Promise<SignerFacts['networks'][number]> => {
            try {
              return await networkFacts(signer, network, signal)
            } catch (error) {
              signal.throwIfAborted()
              classify(error)
              return { name: network, hasFunds: funds.get(`${signer.metadata.uid}/${network}`) }
            }
          }),
        )
      ).concat(lanesElsewhere(signer)),
    }
    const current = informer.get(name) ?? signer
    const status: StakingSignerStatus = stakingSignerStatus(current, facts, clock.now())
    const before = current.status?.conditions?.find(({ type }) => type === 'Ready')
    let written: StakingSigner
    try {
      written = await store.writeStatus(current, status, signal)
    } catch (error) {
      // Somebody else wrote meanwhile: that is no failure.
      if (!(error instanceof Halt) || error.verdict.kind !== 'conflict') throw error
      await store.read(name, signal)
      return { kind: 'wait', afterMs: jitter(50, Math.random, 0.5) }
    }
    const alarm = (of: StakingSigner) => of.status?.conditions?.find(({ type }) => type === 'KeyUsedElsewhere')
    const elsewhere = alarm(written)
    if (elsewhere?.status === 'True' && elsewhere.message !== alarm(current)?.message) {
      events.event(written, { type: 'Warning', reason: elsewhere.reason, action: 'Reconcile', note: elsewhere.message })
      const used = facts.networks.find(({ foreign }) => foreign !== undefined)
      deps.onAlarm(used?.name ?? '', name, elsewhere.reason)
    }
    const ready = written.status?.conditions?.find(({ type }) => type === 'Ready')
    if (ready !== undefined && (ready.status !== before?.status || ready.reason !== before.reason)) {
      events.event(written, {
        type: ready.status === 'True' ? 'Normal' : 'Warning',
        reason: ready.status === 'True' ? 'Ready' : ready.reason,
        action: 'Reconcile',
        note: ready.message,
      })
      const unaccounted = facts.networks.find((network) => network.unaccounted !== undefined)
      if (ready.reason === 'UnaccountedTransactions') deps.onAlarm(unaccounted?.name ?? '', name, ready.reason)
    }
    return { kind: 'wait', afterMs: jitter(deps.intervalMs) }
  }
}
