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
    const held = compact(record)
    const { outcome } = held.status ?? {}
    if (outcome === undefined) return held
    const { call: _call, amount: _amount, ...spec } = held.spec
    const { attempts: _attempts, ...status } = held.status ?? {}
    return { ...held, spec: { ...spec, amount: '' }, status }
  }
}

export function createPlaceCacheForm(): (place: PlaceObject) => PlaceObject {
  return createCompact(KEPT)
}
