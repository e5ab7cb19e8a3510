import type { KubeObject } from './objects.ts'

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
const POOL_LIMIT = 8192

/** Makes objects small for a cache: without managedFields and kubectl's copy of the object, and with the texts that all objects share held once. */
export type Compact = <T extends KubeObject>(object: T) => T

interface Condition {
  readonly type: string
}

/**
 * JSON.parse makes a new string for every text beyond ten characters. Names of kinds and namespaces, label values and the texts of conditions repeat over
 * a fleet, so they are taken from a pool; when that has grown too large (texts that don't repeat after all), it starts anew.
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

  const sharedValues = <R extends object>(record: R): R =>
    Object.fromEntries(Object.entries(record).map(([name, value]) => [name, typeof value === 'string' ? shared(value) : value])) as R

  return <T extends KubeObject>(object: T): T => {
    // Copies without the field: `delete` would turn the object into a slower and larger dictionary.
    const { managedFields: _, ...metadata } = object.metadata
    const copy: { status?: unknown } & KubeObject = {
      ...object,
      apiVersion: shared(object.apiVersion),
      kind: shared(object.kind),
      metadata,
    }
    if (metadata.namespace !== undefined) Object.assign(metadata, { namespace: shared(metadata.namespace) })
    if (metadata.labels !== undefined) Object.assign(metadata, { labels: sharedValues(metadata.labels) })
    if (metadata.finalizers !== undefined) Object.assign(metadata, { finalizers: metadata.finalizers.map(shared) })
    if (metadata.annotations !== undefined && LAST_APPLIED in metadata.annotations) {
      const { [LAST_APPLIED]: _lastApplied, ...annotations } = metadata.annotations
      Object.assign(metadata, { annotations })
    }
    const status = copy.status as { readonly conditions?: unknown } | undefined
    if (Array.isArray(status?.conditions))
      copy.status = { ...status, conditions: status.conditions.map((condition: Condition) => sharedValues(condition)) }
    return copy as T
  }
}
