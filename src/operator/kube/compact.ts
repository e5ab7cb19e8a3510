import type { KubeObject, ObjectMeta } from './objects.ts'

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
const POOL_LIMIT = 8192
/** Longer texts repeat only where people read them: in conditions. */
const SHORT = 32

/** Makes objects small for a cache: without managedFields and kubectl's copy of the object, and with the texts that many objects share held once. */
export type Compact = <T extends KubeObject>(object: T) => T

/**
 * JSON.parse makes a new string for every text beyond ten characters. Names of kinds, namespaces, networks and reasons and the texts of conditions repeat
 * over a fleet, so they are taken from a pool; when that has grown too large (texts that don't repeat after all), it starts anew.
 *
 * Copies are made by spreading and keep their fields, which lets V8 share one hidden class: an object that loses a field, or is built field by field,
 * takes up to twice the memory.
 */
export function createCompact(): Compact {
  const pool = new Map<string, string>()

  const shared = (text: string): string => {
    const known = pool.get(text)
    if (known !== undefined) return known
    if (pool.size >= POOL_LIMIT) pool.clear()
    pool.set(text, text)
    return text
  }

  /** A copy of plain JSON in which texts up to `longest` characters are shared; beneath `conditions`, all texts. */
  const share = <V>(value: V, longest: number): V => {
    if (typeof value === 'string') return (value.length <= longest ? shared(value) : value) as V
    if (Array.isArray(value)) return value.map((item) => share(item, longest)) as V
    if (typeof value !== 'object' || value === null) return value
    const copy = { ...value } as Record<string, unknown>
    for (const field in copy) {
      const old = copy[field]
      if (typeof old === 'string' || typeof old === 'object')
        copy[field] = share(old, field === 'conditions' ? Number.POSITIVE_INFINITY : longest)
    }
    return copy as V
  }

  return <T extends KubeObject>(object: T): T => {
    const { annotations } = object.metadata
    const metadata: ObjectMeta = { ...object.metadata, managedFields: undefined }
    const copy: object = { ...object, metadata }
    const fields = copy as Record<string, unknown>
    for (const field in fields) if (field !== 'metadata') fields[field] = share(fields[field], SHORT)
    const { namespace, finalizers, labels } = metadata
    if (namespace !== undefined) Object.assign(metadata, { namespace: shared(namespace) })
    if (finalizers !== undefined) Object.assign(metadata, { finalizers: finalizers.map(shared) })
    if (labels !== undefined) Object.assign(metadata, { labels: share(labels, SHORT) })
    if (annotations !== undefined && LAST_APPLIED in annotations) {
      const { [LAST_APPLIED]: _, ...kept } = annotations
      Object.assign(metadata, { annotations: kept })
    }
    return copy as T
  }
}
