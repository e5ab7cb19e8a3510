import { type Kept, keptMetadata } from './kept-metadata.ts'
import type { KubeObject } from './objects.ts'
import { createPool } from './pool.ts'

/** Texts longer than this are kept as they are: the pool holds on to what it has seen for a while. */
const LONGEST = 1024

/** Makes objects small for a cache: of the metadata only what is used, and equal texts held once. */
export type Compact = <T extends KubeObject>(object: T) => T

/**
 * JSON.parse makes a new string for every text beyond ten characters. Names of kinds, namespaces and networks, addresses, reasons and messages repeat over
 * a fleet, and hashes and keys within one object: they are taken from a pool.
 *
 * Copies are made by spreading and keep their fields, which lets V8 share one hidden class: an object that loses a field, or is built field by field,
 * takes up to twice the memory.
 */
export function createCompact(kept: Kept = {}): Compact {
  const texts = createPool<string>()
  const lists = createPool<readonly string[]>(256)

  const shared = (text: string): string => (text.length <= LONGEST ? texts.share(text, text) : text)

  /** A copy of plain JSON in which equal texts are one. */
  const share = <V>(value: V): V => {
    if (typeof value === 'string') return shared(value) as V
    if (Array.isArray(value)) return value.map(share) as V
    if (typeof value !== 'object' || value === null) return value
    const copy = { ...value } as Record<string, unknown>
    for (const field in copy) {
      const old = copy[field]
      if (typeof old === 'string' || typeof old === 'object') copy[field] = share(old)
    }
    return copy as V
  }

  return <T extends KubeObject>(object: T): T => {
    const metadata = keptMetadata(object.metadata, kept)
    const copy: object = { ...object, metadata }
    const fields = copy as Record<string, unknown>
    for (const field in fields) if (field !== 'metadata') fields[field] = share(fields[field])
    const { namespace, creationTimestamp, finalizers, labels } = metadata
    if (namespace !== undefined) Object.assign(metadata, { namespace: shared(namespace) })
    if (creationTimestamp !== undefined) Object.assign(metadata, { creationTimestamp: shared(creationTimestamp) })
    if (finalizers !== undefined) Object.assign(metadata, { finalizers: lists.share(finalizers.join(), finalizers) })
    if (labels !== undefined) Object.assign(metadata, { labels: share(labels) })
    return copy as T
  }
}
