import type { z } from 'zod'
import { KubeError } from '../kube/errors.ts'
import { cacheKey, compareResourceVersions, type KubeObject } from '../kube/objects.ts'
import type { ResourceClient } from '../kube/resource-client.ts'

type Json = { readonly [field: string]: unknown }
const isRecord = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** RFC 7386. */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch
  const merged: Record<string, unknown> = isRecord(target) ? { ...target } : {}
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete merged[field]
    else merged[field] = mergePatch(merged[field], value)
  }
  return merged
}

/** What of an informer the operator reads and feeds. While `frozen`, it hears nothing of others' writes: a stale cache. */
export interface FakeCache<T extends KubeObject> {
  get(key: string): T | undefined
  put(object: T): void
  list(): Iterable<T>
  frozen: boolean
  /** Hears again, and lists what it has missed. */
  thaw(): void
}

type Stored = KubeObject & { readonly spec?: unknown; readonly status?: unknown }

/** One kind in memory with the API server's rules: resource versions, fences (409), merge patches, status as a subresource, finalizers, the status' schema. */
export function createFakeCollection<T extends Stored>(options: {
  readonly kind: string
  readonly revision: () => number
  readonly statusSchema: z.ZodType
}) {
  const objects = new Map<string, T>()
  const caches = new Set<FakeCache<T> & { hear(key: string, object: T | undefined): void }>()
  const statusWrites = new Map<string, number>()
  let uids = 0

  const tell = (key: string): void => {
    for (const cache of caches) cache.hear(key, objects.get(key))
  }
  /** Stores what differs, with a new resource version; what doesn't differ is no write, as on the real server. */
  const store = (key: string, next: T): T => {
    const old = objects.get(key)
    const bare = (object: T | undefined) => JSON.stringify(object && { ...object, metadata: { ...object.metadata, resourceVersion: '' } })
    if (old !== undefined && bare(old) === bare(next)) return old
    const specChanged = old !== undefined && JSON.stringify(old.spec) !== JSON.stringify(next.spec)
    const stored = structuredClone({
      ...next,
      metadata: {
        ...next.metadata,
        resourceVersion: String(options.revision()),
        generation: (old?.metadata.generation ?? 1) + (specChanged ? 1 : 0),
      },
    })
    if (stored.metadata.deletionTimestamp !== undefined && (stored.metadata.finalizers ?? []).length === 0) objects.delete(key)
    else objects.set(key, stored)
    tell(key)
    return stored
  }
  const existing = (key: string): T => {
    const object = objects.get(key)
    if (object === undefined) throw new KubeError(404, 'NotFound', `${options.kind} ${key} not found`)
    return object
  }

  const client = {
    apiVersion: 'staking.dev/v1alpha1',
    get: async (ref: { name: string; namespace?: string }) => structuredClone(existing(cacheKey(ref))),
    mergePatch: async (
      ref: { name: string; namespace?: string },
      patch: Json,
      { resourceVersion, subresource }: { resourceVersion: string; subresource?: 'status' },
    ) => {
      const key = cacheKey(ref)
      const old = existing(key)
      if (old.metadata.resourceVersion !== resourceVersion) throw new KubeError(409, 'Conflict', 'the object has been modified')
      const merged = mergePatch(old, JSON.parse(JSON.stringify(patch))) as T
      if (subresource !== 'status') return structuredClone(store(key, { ...merged, status: old.status }))
      const parsed = options.statusSchema.safeParse(merged.status)
      if (!parsed.success) throw new KubeError(422, 'Invalid', `status is invalid: ${parsed.error.message}`)
      const before = objects.get(key)?.metadata.resourceVersion
      const stored = store(key, { ...old, status: parsed.data })
      if (stored.metadata.resourceVersion !== before) statusWrites.set(key, (statusWrites.get(key) ?? 0) + 1)
      return structuredClone(stored)
    },
  } as unknown as ResourceClient<T>

  return {
    client,
    get: (key: string) => objects.get(key),
    list: () => [...objects.values()],
    statusWrites: (key: string) => statusWrites.get(key) ?? 0,
    /** As a user does. */
    create(object: { readonly metadata: { readonly name: string; readonly namespace?: string } } & Json): T {
      const key = cacheKey(object.metadata)
      const metadata = {
        creationTimestamp: '2030-01-01T00:00:00Z',
        generation: 1,
        uid: `uid-${++uids}-of-${object.metadata.name}`,
        ...object.metadata,
      }
      return store(key, { apiVersion: 'staking.dev/v1alpha1', kind: options.kind, ...object, metadata } as unknown as T)
    },
    /** As a user does, by whatever right: no fence, no schema. */
    edit(key: string, change: (object: T) => unknown): T {
      return store(key, change(structuredClone(existing(key))) as T)
    },
    /** As a user does: gone at once, or marked when finalizers hold it. */
    remove(key: string): void {
      store(key, { ...existing(key), metadata: { ...existing(key).metadata, deletionTimestamp: '2030-01-02T00:00:00Z' } })
    },
    /** Gone whatever holds it, as when somebody strips the finalizers. */
    vanish(key: string): void {
      objects.delete(key)
      tell(key)
    },
    cache(): FakeCache<T> {
      const held = new Map([...objects].map(([key, object]) => [key, structuredClone(object)]))
      const cache = {
        frozen: false,
        get: (key: string) => held.get(key),
        list: () => [...held.values()],
        put(object: T) {
          const key = cacheKey(object.metadata)
          const old = held.get(key)
          if (!objects.has(key)) return
          if (old === undefined || compareResourceVersions(object.metadata.resourceVersion, old.metadata.resourceVersion) > 0)
            held.set(key, structuredClone(object))
        },
        hear(key: string, object: T | undefined) {
          if (cache.frozen) return
          if (object === undefined) held.delete(key)
          else held.set(key, structuredClone(object))
        },
        thaw() {
          cache.frozen = false
          held.clear()
          for (const [key, object] of objects) held.set(key, structuredClone(object))
        },
      }
      caches.add(cache)
      return cache
    },
  }
}
export type FakeCollection<T extends Stored> = ReturnType<typeof createFakeCollection<T>>
