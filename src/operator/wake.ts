import { findCondition } from '../resources/conditions.ts'
import type { StakingSigner } from '../resources/staking-signer.ts'
import type { TransactionOwner } from '../resources/staking-transaction.ts'
import { type Caches, sagasOf } from './caches.ts'
import type { Reconciled } from './compose.ts'
import type { ValidatorRequestResource } from './kinds/validator-request/deps.ts'
import { createRequestLookups, stakeStanding, standing } from './kinds/validator-request/requests.ts'
import { isAccepted } from './kinds/validator-request/status.ts'
import type { Change } from './kube/delivery.ts'
import { sameJson } from './kube/merge-patch.ts'
import { cacheKey, type KubeObject } from './kube/objects.ts'
import { Priority, type Queue } from './kube/queue.ts'
import type { SagaCollection, SagaIndex, SagaResource } from './saga-collection.ts'
import { senderOf } from './transactions/ethereum-texts.ts'
import { laneKey } from './transactions/names.ts'
import { holdersOf, isOpen } from './transactions/solana/holders.ts'
import { ownerKey, type RecordObject } from './transactions/store.ts'

/** How long news of a transaction on its way is gathered before its owner shows it, in ms. */
const SOON_MS = 250
/** What is about to be sent, or was, or is mined, takes its course, and status shows its hash already: what comes of it within this is shown instead. In ms. */
const PASSING_MS = 3_000

export interface Wakes {
  /** Everything is looked at again: the networks, the keys or the CRDs have changed. */
  all(): void
  /** Whatever a namespace has yet to sign is looked at again: its labels have changed. */
  namespace(name: string): void
  /** The resource that a record of the log is for has news there. `isPassing`: of a transaction that takes its course. */
  owner(owner: Pick<TransactionOwner, 'kind' | 'namespace' | 'name'>, isPassing?: boolean): void
}

const nowOf = <T>(change: Change<T>): T | undefined => (change.type === 'deleted' ? undefined : change.new)
/** Whether something was signed: what its limits have left is news of a signer that has any. */
const attemptsIn = (change: Change<RecordObject>): boolean =>
  nowOf(change)?.status?.attempts?.length !== beforeOf(change)?.status?.attempts?.length
const endsOf = ({ status }: RecordObject): string => `${status?.outcome?.hash} ${status?.closed?.length}`
const beforeOf = <T>(change: Change<T>): T | undefined => (change.type === 'added' ? undefined : change.old)

/** Who is woken by whose change. To be wired before the caches run. */
export function wireWakes(caches: Caches, queues: { readonly [Name in Reconciled]: Pick<Queue<string>, 'add' | 'addAfter'> }): Wakes {
  const requests = createRequestLookups(caches)
  const stakes = wakerOf(caches.stakes, queues.stakes)
  const exits = wakerOf(caches.exits, queues.exits)
  const withdrawals = wakerOf(caches.withdrawals, queues.withdrawals)
  const solanaStakes = wakerOf(caches.solanaStakes, queues.solanaStakes)
  const authorizations = wakerOf(caches.authorizations, queues.authorizations)
  const sagas = [stakes, exits, withdrawals, solanaStakes, authorizations]
  const byKind = new Map([
    [caches.stakes.kind, stakes] as const,
    [caches.exits.kind, exits] as const,
    [caches.withdrawals.kind, withdrawals] as const,
    [caches.solanaStakes.kind, solanaStakes] as const,
    [caches.authorizations.kind, authorizations] as const,
  ])
  const wakeOwner: Wakes['owner'] = ({ kind, namespace, name }, isPassing = false) =>
    byKind.get(kind)?.wakeAfter(`${namespace}/${name}`, isPassing ? PASSING_MS : SOON_MS)
  const wakeLane = ({ metadata, spec }: RecordObject) =>
    queues.records.add(spec.chainId === undefined ? metadata.name : laneKey({ chainId: spec.chainId, address: senderOf({ spec }) }), {
      priority: Priority.high,
    })

  const wakeRequests = (which: Iterable<ValidatorRequestResource & KubeObject>) => {
    for (const request of which) (request.kind === caches.exits.kind ? exits : withdrawals).wake(cacheKey(request.metadata))
  }
  const wakePeers = (change: Change<ValidatorRequestResource & KubeObject>) => {
    const [now, before] = [nowOf(change), beforeOf(change)]
    const request = now ?? before
    if (request !== undefined && standing(now) !== standing(before)) wakeRequests(requests.peersOf(request))
  }
  caches.stakes.onChange((_key, change) => {
    const [now, before] = [nowOf(change), beforeOf(change)]
    const stake = now ?? before
    if (stake !== undefined && stakeStanding(now) !== stakeStanding(before)) wakeRequests(requests.waitingFor(stake))
  })
  caches.exits.onChange((_key, change) => {
    wakePeers(change)
    const now = nowOf(change)
    if (now === undefined || !isAccepted(now.status) || isAccepted(beforeOf(change)?.status)) return
    for (const stake of requests.stakesOf(now)) stakes.wake(cacheKey(stake.metadata))
  })
  caches.withdrawals.onChange((_key, change) => wakePeers(change))

  caches.signers.onChange((name, change) => {
    if (change.type !== 'updated' || !change.own) queues.signers.add(name)
    if (mattersToUsers(change)) for (const saga of sagas) saga.wakeUnsettled('signer', name)
  })

  /** Whose key has signed something that may land is held from then on, and until it is settled. */
  function wakeHolders(change: Change<RecordObject>): void {
    const [now = [], before = []] = [nowOf(change), beforeOf(change)].map(
      (record) => record && [...holdersOf(record), String(isOpen(record))],
    )
    if (now.join() === before.join()) return
    const concerned = new Set([...now, ...before])
    for (const { metadata, spec } of caches.signers.cache.list()) if (concerned.has(spec.address)) queues.signers.add(metadata.name)
  }
  /** Steps of a stake and hand-overs of its authorities wait for each other; who has the authorities is news to the stake. */
  function wakeOthersOf(record: RecordObject): void {
    for (const other of othersOf(caches, record)) {
      if (other.status?.outcome === undefined) wakeLane(other)
      const isConcerned = [record, other].some(({ spec }) => spec.purpose === 'SolanaAuthorization')
      if (isConcerned) byKind.get(other.spec.owner.kind)?.wake(`${other.spec.owner.namespace}/${other.spec.owner.name}`)
    }
  }
  const isLimited = (signer: string): boolean => (caches.signers.cache.get(signer)?.spec.policy?.limits?.length ?? 0) > 0
  caches.records.onChange((_name, change) => {
    const record = nowOf(change) ?? beforeOf(change)
    if (record === undefined) return
    // What a lane has written itself it goes on with by itself; what a kind has made is news to it.
    if (change.type !== 'updated' || !change.own) wakeLane(record)
    const { kind, namespace, name } = record.spec.owner
    const isEnd = change.type !== 'updated' || endsOf(change.old) !== endsOf(change.new)
    // An outcome is what the owner waits for; the steps to it come close together, and one look shows them all. That it has made the record is no news to it.
    if (isEnd && !(change.type === 'added' && change.own)) byKind.get(kind)?.wake(`${namespace}/${name}`)
    else if (change.type === 'updated') wakeOwner(record.spec.owner, change.own)
    // What ended a place is news of its signer: its lane, and whether somebody else used its key.
    if (isEnd || (attemptsIn(change) && isLimited(record.spec.signer))) queues.signers.add(record.spec.signer)
    if (record.spec.chain === 'Solana') wakeHolders(change)
    if (record.spec.chain === 'Solana' && isEnd && change.type !== 'added') wakeOthersOf(record)
  })
  caches.signers.onChange((name, change) => {
    if (mattersToUsers(change)) for (const record of caches.records.cache.byIndex('signer', name)) wakeLane(record)
  })

  const wakeOpenOf = (owner: Parameters<typeof ownerKey>[0]) => {
    for (const record of caches.records.cache.byIndex('owner', ownerKey(owner))) if (record.status?.outcome === undefined) wakeLane(record)
  }
  // An approval that comes or goes is news of what waits for it.
  caches.approvals.onChange((_key, change) => {
    const { metadata, spec } = change.type === 'deleted' ? change.old : change.new
    wakeOpenOf({ ...spec.resourceRef, namespace: metadata.namespace ?? '' })
  })

  const wakeSteps = wireSteps(caches, wakeOpenOf, authorizations)
  // A record that somebody deletes waits for the last resource that it was made for.
  const wakeHeld = (kind: string) => (_key: string, change: Change<KubeObject>) => {
    if (change.type !== 'deleted') return
    const { namespace = '', name } = change.old.metadata
    for (const record of caches.records.cache.byIndex('owner', ownerKey({ kind, namespace, name })))
      if (record.metadata.deletionTimestamp !== undefined) wakeLane(record)
  }
  for (const saga of sagasOf(caches)) saga.onChange(wakeHeld(saga.kind))

  return {
    owner: wakeOwner,
    all() {
      for (const record of caches.records.cache.unsettled()) if (record.status?.outcome === undefined) wakeLane(record)
      for (const { metadata } of caches.signers.cache.list()) queues.signers.add(metadata.name)
      for (const saga of sagas) saga.wakeAll()
    },
    namespace(name) {
      for (const saga of sagas) saga.wakeUnsettled('namespace', name)
      wakeSteps('namespace', name)
    },
  }
}

/**
 * Solana's records wait for nobody else: what their resource or its other signer says is news to them. @returns what wakes the records of all unsettled
 * resources that an index has under a value
 */
function wireSteps(
  caches: Caches,
  wakeOpenOf: (owner: Parameters<typeof ownerKey>[0]) => void,
  authorizations: Pick<ReturnType<typeof wakerOf>, 'wakeAfter'>,
): (by: SagaIndex, value: string) => void {
  const wakeOf = ({ metadata: { namespace = '', name } }: KubeObject, kind: string) => wakeOpenOf({ kind, namespace, name })
  const wakeSteps = (by: SagaIndex, value: string) => {
    for (const saga of [caches.solanaStakes, caches.authorizations]) for (const one of saga.unsettled(by, value)) wakeOf(one, saga.kind)
  }
  caches.solanaStakes.onChange((_key, change) => {
    const stake = nowOf(change) ?? beforeOf(change)
    if (stake === undefined) return
    if (change.type !== 'updated' || !change.own) wakeOf(stake, caches.solanaStakes.kind)
    // A hand-over waits for its stake to be paid, or to go on.
    if (isNews(change))
      for (const one of caches.authorizations.cache.byIndex('stake', cacheKey(stake.metadata)))
        if (!caches.authorizations.isSettled(one)) authorizations.wakeAfter(cacheKey(one.metadata), SOON_MS)
  })
  caches.authorizations.onChange((_key, change) => {
    const one = nowOf(change) ?? beforeOf(change)
    if (one !== undefined && (change.type !== 'updated' || !change.own)) wakeOf(one, caches.authorizations.kind)
  })
  caches.signers.onChange((name, change) => {
    if (mattersToUsers(change)) wakeSteps('signer', name)
  })
  return wakeSteps
}

/** The other records about the same stake account. */
const othersOf = ({ records }: Caches, { spec, metadata }: RecordObject): readonly RecordObject[] =>
  records.cache
    .byIndex('subject', spec.subject.toLowerCase())
    .filter((other) => other.metadata.name !== metadata.name && other.spec.subject === spec.subject)

/** Wakes resources of one kind, each for its own change to begin with. */
function wakerOf<R extends SagaResource>(
  { cache, isSettled, unsettled, onChange }: SagaCollection<R>,
  queue: Pick<Queue<string>, 'add' | 'addAfter'>,
) {
  const wake = (key: string, resource: R | undefined) =>
    queue.add(key, { priority: resource !== undefined && isSettled(resource) ? Priority.low : Priority.high })
  onChange((key, change) => {
    if (!change.own && isNews(change)) wake(key, nowOf(change))
  })
  const wakeThese = (which: Iterable<R>) => {
    for (const resource of which) wake(cacheKey(resource.metadata), resource)
  }
  return {
    wake: (key: string) => wake(key, cache.get(key)),
    wakeAfter: (key: string, ms: number) => queue.addAfter(key, ms, { priority: Priority.high }),
    wakeAll: () => wakeThese(cache.list()),
    wakeUnsettled: (by: SagaIndex, value: string) => wakeThese(unsettled(by, value)),
  }
}

/** Whether anything that the cache keeps has changed: a label or an annotation that nobody reads is no reason to look. */
function isNews(change: Change<KubeObject>): boolean {
  if (change.type !== 'updated') return true
  const unversioned = (object: KubeObject) => ({ ...object, metadata: { ...object.metadata, resourceVersion: '' } })
  return !sameJson(unversioned(change.old), unversioned(change.new))
}

/** What matters to those who use a signer: its spec, and whether it may be used. What it says of its lanes is no news to them. */
function mattersToUsers(change: Change<StakingSigner>): boolean {
  if (change.type !== 'updated') return true
  const seen = ({ metadata, status }: StakingSigner) =>
    [metadata.generation, ...['Ready', 'Funded'].map((type) => findCondition(status?.conditions, type)?.status)].join()
  return seen(change.old) !== seen(change.new)
}
