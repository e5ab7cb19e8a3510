import { lowerCase } from '../../lib/chain-types.ts'
import { RECORD_FINALIZER } from '../../resources/meta.ts'
import type { SignerNonce } from '../../resources/signer-nonce.ts'
import { SIGNER_NONCE_API, signerNonce } from '../../resources/signer-nonce.ts'
import {
  STAKING_TRANSACTION_API,
  type StakingTransaction,
  type StakingTransactionSpec,
  type StakingTransactionStatus,
  stakingTransaction,
  type TransactionOwner,
  type TransactionPurpose,
} from '../../resources/staking-transaction.ts'
import { conflict } from '../engine/verdict.ts'
import { isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts'
import { changeMetadata } from '../kube/finalizers.ts'
import type { Informer } from '../kube/informer.ts'
import { diffMergePatch } from '../kube/merge-patch.ts'
import type { KubeObject } from '../kube/objects.ts'
import { readThrough } from '../kube/read-through.ts'
import type { ResourceClient } from '../kube/resource-client.ts'
import type { Rank } from '../kube/store.ts'
import { senderOf } from './ethereum-texts.ts'
import { accountKey, lastUseMs } from './limits.ts'
import { type LaneId, laneKey, placeName } from './names.ts'
import { isOpen, type Place, type TransactionRecord } from './protocol.ts'
import { holdersOf } from './solana/holders.ts'

export type RecordObject = StakingTransaction & KubeObject
export type PlaceObject = SignerNonce & KubeObject

/** What of an informer the log reads and feeds. */
export type Cache<T extends KubeObject> = Pick<Informer<T>, 'get' | 'put' | 'list' | 'byIndex' | 'atLeast' | 'hasHeard'>

/** Something is to be done about it, or to be said: it has no outcome, somebody deletes it, or somebody else has used a nonce that was given to it. */
const isLive = ({ metadata, status }: RecordObject): boolean =>
  status?.outcome === undefined || metadata.deletionTimestamp !== undefined || (status.closed ?? []).some(({ by }) => by === 'Foreign')

/** Indexes that the caches of the two kinds have. */
export const recordIndexers = {
  /** Those that their lane looks at each time. A lane has thousands that are over: they are not among them. */
  lane: (record: RecordObject): readonly string[] =>
    record.spec.chainId === undefined || !isLive(record) ? [] : [laneKey({ chainId: record.spec.chainId, address: senderOf(record) })],
  /** Those who had their answer before, too: a dropped landing stays theirs. */
  owner: ({ spec, status }: RecordObject): readonly string[] => [
    ...new Set([spec.owner, ...(status?.closed ?? []).flatMap(({ owner }) => owner ?? [])].map(ownerKey)),
  ],
  subject: ({ spec }: RecordObject): readonly string[] => [spec.subject.toLowerCase()],
  /** Those without an outcome. */
  signer: ({ spec, status }: RecordObject): readonly string[] => (status?.outcome === undefined ? [spec.signer] : []),
  holder: (record: RecordObject): readonly string[] =>
    record.spec.chain === 'Solana' ? holdersOf(record) : isOpen(recordOf(record)) ? [record.spec.from.toLowerCase()] : [],
}
export const recordRanks = {
  /** Those that limits may count, by when they were signed for last. */
  signed: (record: RecordObject): Rank | undefined => {
    const rank = lastUseMs(record)
    return rank === undefined ? undefined : { group: accountKey(record), rank }
  },
  /** Records that have an outcome, by their place. */
  concluded: ({ spec, status }: RecordObject): Rank | undefined =>
    spec.chainId === undefined || status?.outcome === undefined
      ? undefined
      : { group: concludedIn({ chainId: spec.chainId, address: senderOf({ spec }) }, spec.purpose), rank: status.place ?? -1 },
}
const concludedIn = (lane: LaneId, purpose: TransactionPurpose): string => `${laneKey(lane)} ${purpose}`

/** Nothing of it is signed any more, and nobody is told of it. */
export const isSettledRecord = ({ metadata, status }: RecordObject): boolean =>
  status?.outcome !== undefined && metadata.deletionTimestamp === undefined

/** ▸ Its name is what gives a number out once: one that says another number than its name, as of one made by hand, has given out none. */
const isNamedSo = ({ metadata, spec }: PlaceObject): boolean => metadata.name === placeName(spec, spec.nonce)
const ofPlaces =
  (keys: (spec: PlaceObject['spec']) => readonly string[]) =>
  (place: PlaceObject): readonly string[] =>
    isNamedSo(place) ? keys(place.spec) : []

export const placeIndexers = {
  lane: ofPlaces((spec) => [laneKey(spec)]),
  transaction: ofPlaces(({ transaction }) => (transaction === undefined ? [] : [transaction.uid])),
  subject: ofPlaces(({ subjects = [] }) => subjects),
}
export const ownerKey = ({ kind, namespace, name }: Pick<TransactionOwner, 'kind' | 'namespace' | 'name'>): string =>
  `${kind}/${namespace}/${name}`

export const recordOf = ({ metadata, spec, status }: RecordObject): TransactionRecord => ({
  uid: metadata.uid,
  subject: spec.subject.toLowerCase(),
  generation: spec.generation,
  status: status ?? {},
})

/** The log in the API server: made before anything is signed, written fenced, read by name past the cache where money depends on it. */
export interface TransactionStore {
  /** From the cache. */
  record(name: string): RecordObject | undefined
  records(): Iterable<RecordObject>
  /** Those of a lane that have an outcome, with this place or a later one; without `from`, those that never had a place too. */
  concludedIn(lane: LaneId, purpose: TransactionPurpose, from?: number): Iterable<RecordObject>
  /** Those of a lane without an outcome, that somebody deletes, or of which somebody else has used a nonce. */
  liveIn(lane: LaneId): readonly RecordObject[]
  /** Those of an account (`accountKey`) that something may land of, or that were signed for since then (Unix ms). */
  signedSince(account: string, sinceMs: number): Iterable<RecordObject>
  recordsOf(owner: Pick<TransactionOwner, 'kind' | 'namespace' | 'name'>): readonly RecordObject[]
  recordsAbout(subject: string): readonly RecordObject[]
  /**
   * What may need an address's key yet: of Solana, records without an outcome that it pays for, or whose open attempts it has signed; of Ethereum, those that
   * have a place, on whatever chain.
   */
  unsettledOf(address: string): readonly RecordObject[]
  /** From the cache, by nonce. */
  placesIn(lane: LaneId): ReadonlyMap<number, Place>
  /** Places of any lane that were taken for a record, or under which an earlier version may have paid for what it is about, from the cache. */
  placesFor(record: TransactionRecord): readonly { readonly lane: LaneId; readonly place: Place }[]
  /** Past the cache. */
  read(name: string, signal: AbortSignal): Promise<RecordObject | undefined>
  /** Every place of the lane, past the cache, which takes them in. */
  readPlaces(lane: LaneId, signal: AbortSignal): Promise<ReadonlyMap<number, Place>>
  /** Every record of the resource of this one, as they stood when it was written last, or later: past the cache, unless that has heard of that write. */
  recordsBeside(record: RecordObject, signal: AbortSignal): Promise<readonly RecordObject[]>
  /** Every record of a purpose, past the cache, which takes them in. */
  readRecords(purpose: TransactionPurpose, signal: AbortSignal): Promise<void>
  /** Makes the record. What stands under this name already comes back as it is. */
  create(name: string, spec: StakingTransactionSpec, signal: AbortSignal): Promise<RecordObject>
  /** @throws Halt (conflict) where it was written meanwhile */
  writeStatus(record: RecordObject, status: StakingTransactionStatus, signal: AbortSignal): Promise<RecordObject>
  /** @throws Halt (conflict) where it was written meanwhile */
  writeSpec(record: RecordObject, change: Partial<StakingTransactionSpec>, signal: AbortSignal): Promise<RecordObject>
  /** Gives the nonce out, once. @returns what stands under the number: this place, or the one that was there before. */
  takePlace(
    lane: LaneId,
    nonce: number,
    by: (TransactionRecord & { readonly name: string }) | undefined,
    signal: AbortSignal,
    subjects?: readonly string[],
  ): Promise<Place & { readonly created: boolean }>
  prunePlace(lane: LaneId, nonce: number, signal: AbortSignal): Promise<void>
  /** Lets a record go that somebody deletes. @throws Halt (conflict) where it was written meanwhile */
  releaseRecord(record: RecordObject, signal: AbortSignal): Promise<RecordObject | undefined>
  /** Deletes a record as it was read. @throws Halt (conflict) where it was written meanwhile */
  pruneRecord(record: RecordObject, signal: AbortSignal): Promise<void>
}

export interface TransactionStoreDeps {
  readonly records: { readonly client: ResourceClient<RecordObject>; readonly cache: Cache<RecordObject> }
  readonly places: { readonly client: ResourceClient<PlaceObject>; readonly cache: Cache<PlaceObject> }
  readonly fieldManager: string
  /** Throws when this process may not write any more. */
  readonly assertHeld: () => void
  readonly onPoint?: (point: string, key: string) => void
}

export const createTransactionStore = (deps: TransactionStoreDeps): TransactionStore => ({ ...createRecords(deps), ...createPlaces(deps) })

type PlaceMethods = 'placesIn' | 'placesFor' | 'readPlaces' | 'takePlace' | 'prunePlace'

function createRecords(deps: TransactionStoreDeps): Omit<TransactionStore, PlaceMethods> {
  const { records, fieldManager } = deps
  const point = (name: string, key: string) => deps.onPoint?.(name, key)

  /** A write that is fenced: by the version that it was computed from, and by the object's identity. */
  async function patch(
    record: RecordObject,
    change: object,
    subresource: 'status' | undefined,
    signal: AbortSignal,
  ): Promise<RecordObject> {
    const { name, uid, resourceVersion } = record.metadata
    deps.assertHeld()
    point('before record write', name)
    try {
      const now = await records.client.mergePatch(
        { name },
        { ...change, metadata: { uid } },
        { resourceVersion, fieldManager, ...(subresource === undefined ? {} : { subresource }) },
        signal,
      )
      point('after record write', name)
      records.cache.put(now)
      return now
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error
      await read(name, signal)
      throw conflict()
    }
  }

  const read = (name: string, signal: AbortSignal): Promise<RecordObject | undefined> => readThrough(records, { name }, signal)

  async function releaseRecord(record: RecordObject, signal: AbortSignal): Promise<RecordObject | undefined> {
    const { name } = record.metadata
    deps.assertHeld()
    point('before record release', name)
    try {
      const left = await changeMetadata(records.client, record, { removeFinalizer: RECORD_FINALIZER }, signal, { fieldManager })
      point('after record release', name)
      if (left !== undefined) records.cache.put(left)
      return left
    } catch (error) {
      if (!isConflict(error)) throw error
      await read(name, signal)
      throw conflict()
    }
  }

  return {
    record: (name) => records.cache.get(name),
    records: () => records.cache.list(),
    concludedIn: (lane, purpose, from = -1) => records.cache.atLeast('concluded', concludedIn(lane, purpose), from),
    signedSince: (account, sinceMs) => records.cache.atLeast('signed', account, sinceMs),
    liveIn: (lane) => records.cache.byIndex('lane', laneKey(lane)),
    recordsOf: (owner) => records.cache.byIndex('owner', ownerKey(owner)),
    recordsAbout: (subject) => records.cache.byIndex('subject', subject.toLowerCase()),
    unsettledOf: (address) => records.cache.byIndex('holder', address.startsWith('0x') ? address.toLowerCase() : address),
    read,
    async recordsBeside({ metadata, spec: { owner } }, signal) {
      if (records.cache.hasHeard(metadata.resourceVersion)) return records.cache.byIndex('owner', ownerKey(owner))
      // Without a limit: for pages an API server may read the whole log from etcd; all of it at once comes from its own cache, once that has caught up (KEP-2340).
      const fieldSelector = `spec.owner.namespace=${owner.namespace},spec.owner.name=${owner.name}`
      const { items } = await records.client.list({ fieldSelector }, signal)
      for (const record of items) records.cache.put(record)
      return items.filter(({ spec }) => spec.owner.kind === owner.kind)
    },
    readRecords: (purpose, signal) => takeInAll(records, `spec.purpose=${purpose}`, signal),
    async create(name, spec, signal) {
      deps.assertHeld()
      point('before record create', name)
      try {
        // From its first moment: whoever deletes it by hand deletes no memory of money in flight.
        const metadata = { name, finalizers: [RECORD_FINALIZER] }
        const made = await records.client.create({ ...STAKING_TRANSACTION_API, metadata, spec } as never, signal, { fieldManager })
        point('after record create', name)
        records.cache.put(made)
        return made
      } catch (error) {
        if (!isAlreadyExists(error)) throw error
        const existing = await read(name, signal)
        if (existing === undefined) throw conflict()
        return existing
      }
    },

    writeStatus: async (record, status, signal) => {
      const change = diffMergePatch(record.status as Record<string, unknown> | undefined, status as Record<string, unknown>)
      return change === undefined ? record : patch(record, { status: change }, 'status', signal)
    },
    writeSpec: (record, change, signal) => patch(record, { spec: change }, undefined, signal),

    releaseRecord,
    async pruneRecord(record, signal) {
      const released = await releaseRecord(record, signal)
      if (released === undefined) return
      const { name, uid, resourceVersion } = released.metadata
      point('before record delete', name)
      await records.client.delete({ name }, { preconditions: { uid, resourceVersion } }, signal).catch(ignoreGone)
      point('after record delete', name)
    },
  }
}

function createPlaces(deps: TransactionStoreDeps): Pick<TransactionStore, PlaceMethods> {
  const { places, fieldManager } = deps
  const point = (name: string, key: string) => deps.onPoint?.(name, key)

  const toPlace = ({ spec }: PlaceObject): Place => ({
    nonce: spec.nonce,
    transaction: spec.transaction,
    ...(spec.subjects === undefined ? {} : { subjects: spec.subjects }),
  })
  const toPlaces = (lane: LaneId): ReadonlyMap<number, Place> =>
    new Map(places.cache.byIndex('lane', laneKey(lane)).map((place) => [place.spec.nonce, toPlace(place)]))

  return {
    placesIn: toPlaces,
    placesFor({ uid, subject = '' }) {
      const found = new Set([...places.cache.byIndex('transaction', uid), ...places.cache.byIndex('subject', subject)])
      return [...found].map((place) => ({ lane: place.spec, place: toPlace(place) }))
    },
    async readPlaces(lane, signal) {
      await takeInAll(places, `spec.address=${lane.address.toLowerCase()}`, signal)
      return toPlaces(lane)
    },

    async takePlace(lane, nonce, by, signal, subjects = []) {
      const name = placeName(lane, nonce)
      deps.assertHeld()
      point('before place create', name)
      const spec: SignerNonce['spec'] = {
        chainId: lane.chainId,
        address: lowerCase(lane.address),
        nonce,
        ...(by === undefined ? {} : { transaction: { name: by.name, uid: by.uid, generation: by.generation } }),
        ...(subjects.length === 0 ? {} : { subjects: [...new Set(subjects.map((one) => one.toLowerCase()))] }),
      }
      let place: PlaceObject
      let created = true
      try {
        place = await places.client.create({ ...SIGNER_NONCE_API, metadata: { name }, spec } as never, signal, { fieldManager })
        point('after place create', name)
      } catch (error) {
        if (!isAlreadyExists(error)) throw error
        created = false
        place = await places.client.get({ name }, signal)
      }
      places.cache.put(place)
      return { ...toPlace(place), created }
    },

    async prunePlace(lane, nonce, signal) {
      const name = placeName(lane, nonce)
      const uid = places.cache.get(name)?.metadata.uid
      if (uid === undefined) return
      deps.assertHeld()
      await places.client.delete({ name }, { preconditions: { uid } }, signal).catch(ignoreGone)
    },
  }
}

/** Reads all that a selector selects past the cache, and into it. */
async function takeInAll<T extends KubeObject>(
  { client, cache }: { readonly client: ResourceClient<T>; readonly cache: Cache<T> },
  fieldSelector: string,
  signal: AbortSignal,
): Promise<void> {
  let more: string | undefined
  // As many pages as there are objects by the hundred; the bound is far beyond.
  for (let page = 0; page < 10_000; page++) {
    const answer = await client.list({ fieldSelector, limit: 500, ...(more === undefined ? {} : { continue: more }) }, signal)
    for (const object of answer.items) cache.put(object)
    more = answer.continue
    if (more === undefined) break
  }
}

function ignoreGone(error: unknown): void {
  if (!isNotFound(error) && !isConflict(error)) throw error
}

export const logKinds = [stakingTransaction, signerNonce] as const
