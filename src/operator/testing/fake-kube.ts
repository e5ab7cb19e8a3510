import type { z } from 'zod'
import type { Clock } from '../../lib/clock.ts'
import { timestamp } from '../../resources/conditions.ts'
import { tellsGeneration } from '../../resources/crd.ts'
import { API_VERSION, type KindDefinition } from '../../resources/meta.ts'
import { UNSEEN_GENERATION } from '../../resources/schema.ts'
import type { CacheOptions, Collection } from '../kube/collections.ts'
import { KubeError } from '../kube/errors.ts'
import { cacheKey, type KubeObject, type NewObject, type ObjectMeta, type Ref } from '../kube/objects.ts'
import type { ListOptions, ResourceClient } from '../kube/resource-client.ts'
import { definitionOf } from '../saga-collection.ts'
import { createFakeInformer, type FakeInformer, type Hearing } from './fake-informer.ts'

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

export type Stored = KubeObject & { readonly spec?: unknown; readonly status?: unknown }

/** An API server in memory: a collection for each kind, made when it is asked for first, with one count of revisions for all. */
export function createFakeKube(clock: Clock) {
  let revision = 1000
  const server: Server = { clock, revision: () => String(revision), next: () => String(++revision) }
  const collections = new Map<string, unknown>()
  const collection = <T extends Stored>(definition: KindDefinition): FakeCollection<T> => {
    const known = collections.get(definition.plural) ?? createFakeCollection<T>(definition, server)
    collections.set(definition.plural, known)
    return known as FakeCollection<T>
  }
  return {
    collection,
    /** All objects of every kind as they are now, as in a backup of etcd. @returns what makes them so again */
    copy(): () => void {
      const all = [...collections.values()].map((one) => (one as { copy(): () => void }).copy())
      return () => {
        for (const bringBack of all) bringBack()
      }
    },
    /** As one operator follows a kind: through a cache of its own. */
    follow<T extends KubeObject>(
      definition: KindDefinition,
      options: CacheOptions<T> = {},
    ): Collection<T> & { readonly cache: FakeInformer<T> } {
      const { client, cache } = collection<T>(definition)
      const informer = cache(options)
      return { client, cache: informer, onChange: informer.onChange }
    },
  }
}
export type FakeKube = ReturnType<typeof createFakeKube>

/** What whoever creates an object says of it; the server adds the rest. */
interface Made {
  readonly metadata: Ref & Partial<ObjectMeta>
}

interface Server {
  readonly clock: Clock
  /** The last one given out. */
  readonly revision: () => string
  readonly next: () => string
}

/**
 * One kind with the API server's rules: names that are taken, resource versions, fences (409), merge patches, status as a subresource, finalizers, the
 * schemas of spec and status, field selectors. CEL rules are not run.
 */
function createFakeCollection<T extends Stored>(definition: KindDefinition, server: Server) {
  const { kind } = definition
  const objects = new Map<string, T>()
  const caches = new Set<Hearing<T>>()
  const statusWrites = new Map<string, number>()
  let uids = 0

  const tell = (key: string, revision: string): void => {
    for (const cache of caches) cache.hear(key, objects.get(key), revision)
  }
  /** Stores what differs, with a new resource version; what doesn't differ is no write, as on the real server. */
  const store = (key: string, next: T): T => {
    const old = objects.get(key)
    const bare = (object: T | undefined) => JSON.stringify(object && { ...object, metadata: { ...object.metadata, resourceVersion: '' } })
    if (old !== undefined && bare(old) === bare(next)) return old
    const specChanged = old !== undefined && JSON.stringify(old.spec) !== JSON.stringify(next.spec)
    const resourceVersion = server.next()
    const stored = structuredClone({
      ...next,
      metadata: { ...next.metadata, resourceVersion, generation: (old?.metadata.generation ?? 1) + (specChanged ? 1 : 0) },
    })
    if (stored.metadata.deletionTimestamp !== undefined && (stored.metadata.finalizers ?? []).length === 0) objects.delete(key)
    else objects.set(key, stored)
    tell(key, resourceVersion)
    return stored
  }
  const existing = (key: string): T => {
    const object = objects.get(key)
    if (object === undefined) throw new KubeError(404, 'NotFound', `${kind} ${key} not found`)
    return object
  }
  /** Gone at once, or marked when finalizers hold it. */
  const remove = (key: string): void => {
    const object = existing(key)
    store(key, { ...object, metadata: { deletionTimestamp: '2030-01-02T00:00:00Z', ...object.metadata } })
  }
  const add = (object: Made): T => {
    const metadata = {
      creationTimestamp: timestamp(server.clock.now()),
      generation: 1,
      // As long as a real one may get.
      uid: `uid-${++uids}-of-${object.metadata.name}`.slice(0, 36),
      ...object.metadata,
    }
    return store(cacheKey(metadata), { apiVersion: API_VERSION, kind, ...object, metadata } as unknown as T)
  }
  /** The key of an object, which must have a namespace where the kind is namespaced, and none where it isn't. */
  const keyOf = (ref: Ref): string => {
    if ((ref.namespace === undefined) !== (definition.scope === 'Cluster'))
      throw new TypeError(`${definition.plural} are ${definition.scope === 'Cluster' ? 'cluster-scoped' : 'namespaced'}: ${cacheKey(ref)}`)
    return cacheKey(ref)
  }

  const client: ResourceClient<T> = {
    definition: definitionOf(definition),
    apiVersion: API_VERSION,
    get: async (ref) => structuredClone(existing(keyOf(ref))),
    async list({ namespace, limit = Number.POSITIVE_INFINITY, continue: after = '', fieldSelector }: ListOptions) {
      const selects = selectorOf(definition, fieldSelector)
      const found = [...objects]
        .filter(([key, object]) => key > after && (namespace === undefined || object.metadata.namespace === namespace) && selects(object))
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
      const page = found.slice(0, limit)
      const last = page.at(-1)?.[0]
      const items = structuredClone(page.map(([, object]) => object))
      return {
        items,
        bytes: JSON.stringify(items).length,
        resourceVersion: server.revision(),
        ...(page.length < found.length && last !== undefined ? { continue: last } : {}),
      }
    },
    async create(object: NewObject<T>) {
      const { status: _dropped, ...rest } = structuredClone(object) as unknown as Stored
      const key = keyOf(rest.metadata)
      if (objects.has(key)) throw new KubeError(409, 'AlreadyExists', `${kind} ${key} already exists`)
      const unseen = tellsGeneration(definition) ? { status: { observedGeneration: UNSEEN_GENERATION } } : {}
      return structuredClone(add({ ...rest, ...unseen, spec: valid(definition.spec, rest.spec, 'spec') } as Stored))
    },
    async delete(ref, { preconditions = {} }) {
      const key = keyOf(ref)
      const { uid, resourceVersion } = existing(key).metadata
      if ((preconditions.uid ?? uid) !== uid || (preconditions.resourceVersion ?? resourceVersion) !== resourceVersion)
        throw new KubeError(409, 'Conflict', `the preconditions don't hold for ${kind} ${key}`)
      remove(key)
    },
    async mergePatch(ref, patch, { resourceVersion, subresource }) {
      const key = keyOf(ref)
      const old = existing(key)
      if (old.metadata.resourceVersion !== resourceVersion) throw new KubeError(409, 'Conflict', 'the object has been modified')
      const merged = mergePatch(old, JSON.parse(JSON.stringify(patch))) as T
      if (subresource !== 'status') {
        // What is left as it was isn't validated again.
        const isSame = JSON.stringify(merged.spec) === JSON.stringify(old.spec)
        return structuredClone(
          store(key, { ...merged, ...(isSame ? {} : { spec: valid(definition.spec, merged.spec, 'spec') }), status: old.status }),
        )
      }
      const before = old.metadata.resourceVersion
      const stored = store(key, { ...old, status: valid(definition.status, merged.status, 'status') })
      if (stored.metadata.resourceVersion !== before) statusWrites.set(key, (statusWrites.get(key) ?? 0) + 1)
      return structuredClone(stored)
    },
    watch: async () => {
      throw new Error('a fake collection is followed by its caches')
    },
  }

  return {
    client,
    get: (key: string) => objects.get(key),
    list: () => [...objects.values()],
    statusWrites: (key: string) => statusWrites.get(key) ?? 0,
    /** As a user does, of an older CRD even: no schema. */
    create: (object: Made & Json): T => add(object),
    /** As a user does, by whatever right: no fence, no schema. */
    edit(key: string, change: (object: T) => unknown): T {
      return store(key, change(structuredClone(existing(key))) as T)
    },
    /** As a user does: gone at once, or marked when finalizers hold it. */
    remove,
    /** Gone whatever holds it, as when somebody strips the finalizers. */
    vanish(key: string): void {
      objects.delete(key)
      tell(key, server.next())
    },
    /** All objects as they are now, as in a backup. @returns what makes them so again: what came since is gone, what went is back */
    copy(): () => void {
      const kept = structuredClone([...objects])
      return () => {
        const names = new Set(kept.map(([key]) => key))
        for (const key of [...objects.keys()].filter((one) => !names.has(one))) {
          objects.delete(key)
          tell(key, server.next())
        }
        for (const [key, object] of structuredClone(kept)) {
          const resourceVersion = server.next()
          objects.set(key, { ...object, metadata: { ...object.metadata, resourceVersion } })
          tell(key, resourceVersion)
        }
      }
    },
    cache(options: CacheOptions<T> = {}): FakeInformer<T> {
      const cache = createFakeInformer<T>({ list: () => objects.values(), revision: server.revision }, { ...options, clock: server.clock })
      caches.add(cache)
      return cache
    },
  }
}
export type FakeCollection<T extends Stored> = ReturnType<typeof createFakeCollection<T>>

/** As the schema leaves it: unknown fields pruned, defaults filled in. @throws KubeError 422 */
function valid(schema: z.ZodType, value: unknown, where: string): unknown {
  const parsed = schema.safeParse(value)
  if (!parsed.success) throw new KubeError(422, 'Invalid', `${where} is invalid: ${parsed.error.message}`)
  return parsed.data
}

/** `metadata.name=a,spec.signer!=b`. @throws KubeError 400 for a path that is not selectable */
function selectorOf({ selectableFields }: KindDefinition, selector: string | undefined): (object: Stored) => boolean {
  const terms = (selector === undefined || selector === '' ? [] : selector.split(',')).map((term) => {
    const [, path = '', operator = '', value = ''] = /^([^=!]+)(!=|==?)(.*)$/.exec(term) ?? []
    const isKnown = path === 'metadata.name' || path === 'metadata.namespace' || selectableFields.includes(`.${path}`)
    if (!isKnown) throw new KubeError(400, 'BadRequest', `field label not supported: ${path === '' ? term : path}`)
    return { path, value, wanted: operator !== '!=' }
  })
  const at = (object: unknown, path: string): string => {
    const found = path.split('.').reduce<unknown>((value, field) => (isRecord(value) ? value[field] : undefined), object)
    return found === undefined ? '' : String(found)
  }
  return (object) => terms.every(({ path, value, wanted }) => (at(object, path) === value) === wanted)
}
