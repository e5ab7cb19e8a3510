import { KEPT } from '../engine/kept.ts'
import { createCompact } from '../kube/compact.ts'
import type { PlaceObject, RecordObject } from './store.ts'

/**
 * How the cache holds records. Of one whose outcome is known nothing is signed any more, so its call and its versions are left out: who needs them reads
 * the record by its name. They are never written back: every write goes by what was read.
 */
export function createRecordCacheForm(): (record: RecordObject) => RecordObject {
  const compact = createCompact(KEPT)
  return (record) => {
    const { outcome } = record.status ?? {}
    if (outcome === undefined) return compact(record)
    const { call: _call, amount: _amount, ...spec } = record.spec
    const { attempts: _attempts, ...status } = record.status ?? {}
    return compact({ ...record, spec: { ...spec, amount: '' }, status })
  }
}

/** Nothing of it is signed any more, and nobody is told of it. */
export const isSettledRecord = ({ metadata, status }: RecordObject): boolean =>
  status?.outcome !== undefined && metadata.deletionTimestamp === undefined

export function createPlaceCacheForm(): (place: PlaceObject) => PlaceObject {
  return createCompact(KEPT)
}
