import { findCondition } from '../resources/conditions.ts'
import type { StakingSigner } from '../resources/staking-signer.ts'
import type { Caches } from './caches.ts'
import { createRequestLookups, stakeStanding, standing } from './kinds/validator-request/requests.ts'
import { isAccepted } from './kinds/validator-request/status.ts'
import type { ValidatorRequestResource } from './kinds/validator-request/target.ts'
import type { Change } from './kube/delivery.ts'
import { cacheKey, type KubeObject } from './kube/objects.ts'
import { Priority, type Queue } from './kube/queue.ts'
import type { SagaCollection, SagaIndex, SagaResource } from './saga-collection.ts'

export interface Wakes {
  /** Everything is looked at again: the networks, the keys or the CRDs have changed. */
  all(): void
  /** Whatever a namespace has yet to sign is looked at again: its labels have changed. */
  namespace(name: string): void
}

const nowOf = <T>(change: Change<T>): T | undefined => (change.type === 'deleted' ? undefined : change.new)
const beforeOf = <T>(change: Change<T>): T | undefined => (change.type === 'added' ? undefined : change.old)

/** Who is woken by whose change. To be wired before the caches run. */
export function wireWakes(caches: Caches, queues: { readonly [Name in keyof Caches]: Queue<string> }): Wakes {
  const requests = createRequestLookups(caches)
  const stakes = wakerOf(caches.stakes, queues.stakes)
  const exits = wakerOf(caches.exits, queues.exits)
  const withdrawals = wakerOf(caches.withdrawals, queues.withdrawals)
  const sagas = [stakes, exits, withdrawals, wakerOf(caches.solanaStakes, queues.solanaStakes)]

  const wakeRequests = (which: Iterable<ValidatorRequestResource & KubeObject>) => {
    for (const request of which) (request.kind === caches.exits.kind ? exits : withdrawals).wake(cacheKey(request.metadata))
  }
  const wakePeers = (change: Change<ValidatorRequestResource & KubeObject>) => {
    const now = nowOf(change)
    const before = beforeOf(change)
    const request = now ?? before
    if (request !== undefined && standing(now) !== standing(before)) wakeRequests(requests.peersOf(request))
  }
  caches.stakes.onChange((_key, change) => {
    const now = nowOf(change)
    const before = beforeOf(change)
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

  return {
    all() {
      for (const { metadata } of caches.signers.cache.list()) queues.signers.add(metadata.name)
      for (const saga of sagas) saga.wakeAll()
    },
    namespace(name) {
      for (const saga of sagas) saga.wakeUnsettled('namespace', name)
    },
  }
}

/** Wakes resources of one kind, each for its own change to begin with. */
function wakerOf<R extends SagaResource>({ cache, isSettled, unsettled, onChange }: SagaCollection<R>, queue: Queue<string>) {
  const wake = (key: string, resource: R | undefined) =>
    queue.add(key, { priority: resource !== undefined && isSettled(resource) ? Priority.low : Priority.high })
  onChange((key, change) => {
    if (!change.own) wake(key, nowOf(change))
  })
  const wakeThese = (which: Iterable<R>) => {
    for (const resource of which) wake(cacheKey(resource.metadata), resource)
  }
  return {
    wake: (key: string) => wake(key, cache.get(key)),
    wakeAll: () => wakeThese(cache.list()),
    wakeUnsettled: (by: SagaIndex, value: string) => wakeThese(unsettled(by, value)),
  }
}

/** What matters to those who use a signer: its spec, and whether it may be used. The ledger's own writes are no news to them. */
function mattersToUsers(change: Change<StakingSigner>): boolean {
  if (change.type !== 'updated') return true
  const seen = ({ metadata, status }: StakingSigner) =>
    [metadata.generation, ...['Ready', 'Funded'].map((type) => findCondition(status?.conditions, type)?.status)].join()
  return seen(change.old) !== seen(change.new)
}
