import type { TransactionOwner } from '../resources/staking-transaction.ts'
import { type Caches, type SagaName, sagasOf } from './caches.ts'
import { readOrigin } from './engine/origin.ts'
import type { KubeObject } from './kube/objects.ts'
import type { RecordObject } from './transactions/store.ts'

/** Whether a resource is the one that a record was made for: one of the same name that was made later is another. */
export function isOwner(found: KubeObject | undefined, { kind, originUid }: TransactionOwner): boolean {
  const origin = found === undefined ? undefined : readOrigin(kind, found.metadata)
  return origin?.is === 'own' && origin.origin.uid === originUid
}

/**
 * Whether what a record was made for is there, by the caches: for what is told, not for what is decided. A record that was written before anything was signed
 * stays when its resource goes, and says nothing of what is to be paid any more. Of a kind that isn't known here it counts.
 */
export function createClaims(caches: Pick<Caches, SagaName>): (record: RecordObject) => boolean {
  const find = new Map<string, (key: string) => KubeObject | undefined>(
    sagasOf(caches).map((saga) => [saga.kind, (key: string) => saga.cache.get(key)]),
  )
  return ({ spec: { owner } }) => {
    const found = find.get(owner.kind)
    return found === undefined || isOwner(found(`${owner.namespace}/${owner.name}`), owner)
  }
}
