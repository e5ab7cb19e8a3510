import { answerTooLarge, KubeError } from '../../../src/operator/kube/errors.ts'
import { cacheKey, type KubeObject } from '../../../src/operator/kube/objects.ts'
import type { ListPage, ResourceClient, ResourceDefinition, WatchEvent } from '../../../src/operator/kube/resource-client.ts'

type Watcher<T> = (event: WatchEvent<T>) => void

type Unstored<T extends KubeObject> = Omit<T, 'metadata'> & {
  readonly metadata: Partial<KubeObject['metadata']> & { readonly name: string }
}

/** What a test does to the server's state, and what goes wrong at its will. */
export interface MemoryServer<T extends KubeObject> {
  readonly client: ResourceClient<T>
  /** Creates or changes; watchers are told unless `quietly`. Returns what is stored. */
  write(object: Unstored<T>, quietly?: 'quietly'): T
  remove(key: string, quietly?: 'quietly'): void
  bookmark(): void
  /** The next call of this method rejects. */
  failNext(method: 'get' | 'list' | 'watch' | 'create' | 'mergePatch', error: unknown): void
  /** Ends all watches, as a server does now and then, or with an error. */
  endWatches(error?: unknown): void
  /** Sets the revision back, as a restore from a backup does. */
  setRevision(revision: number): void
  readonly calls: Record<'get' | 'list' | 'watch' | 'create' | 'mergePatch', number>
  readonly watching: number
  /** resourceVersion that the latest watch asked for. */
  readonly watchedFrom: string
}

/** One kind of objects in memory, with the API server's rules for resource versions, fences and watches. */
export function createMemoryServer<T extends KubeObject>(definition: ResourceDefinition): MemoryServer<T> {
  let revision = 100
  let uids = 0
  let watchedFrom = ''
  const objects = new Map<string, T>()
  const watches = new Set<{ tell: Watcher<T>; end: (error?: unknown) => void }>()
  const failures = new Map<string, unknown[]>()
  const calls = { get: 0, list: 0, watch: 0, create: 0, mergePatch: 0 }
  const apiVersion = `${definition.group}/${definition.version}`

  const enter = (method: keyof typeof calls): void => {
    calls[method]++
    const error = failures.get(method)?.shift()
    if (error !== undefined) throw error
  }
  const store = (
    object: object & { readonly metadata: { readonly name: string; readonly namespace?: string } },
    quietly?: 'quietly',
  ): T => {
    const key = cacheKey(object.metadata)
    const old = objects.get(key)
    const stored = {
      apiVersion,
      kind: definition.kind,
      ...object,
      metadata: { ...object.metadata, uid: old?.metadata.uid ?? `uid-${++uids}`, resourceVersion: String(++revision) },
    } as unknown as T
    objects.set(key, stored)
    if (!quietly) for (const { tell } of watches) tell({ type: old ? 'MODIFIED' : 'ADDED', object: stored })
    return stored
  }
  const notFound = (key: string): KubeError => new KubeError(404, 'NotFound', `${definition.plural} "${key}" not found`)
  const conflict = (reason: string): KubeError => new KubeError(409, reason, reason)

  const client: ResourceClient<T> = {
    definition,
    apiVersion,
    async get(ref) {
      enter('get')
      const object = objects.get(cacheKey(ref))
      if (!object) throw notFound(cacheKey(ref))
      return object
    },
    async list({ limit = 1000, continue: token = '', maxBytes = Number.POSITIVE_INFINITY }): Promise<ListPage<T>> {
      enter('list')
      const rest = [...objects.values()]
        .sort((a, b) => (cacheKey(a.metadata) < cacheKey(b.metadata) ? -1 : 1))
        .filter((object) => cacheKey(object.metadata) > token)
      const items = rest.slice(0, limit)
      const last = items.at(-1)
      const bytes = JSON.stringify(items).length
      if (bytes > maxBytes) throw answerTooLarge(maxBytes)
      return { items, bytes, resourceVersion: String(revision), ...(rest.length > limit && last && { continue: cacheKey(last.metadata) }) }
    },
    async create(object) {
      enter('create')
      const { metadata } = object
      if (!('name' in metadata) || metadata.name === undefined) throw new TypeError('the fake makes no names')
      const named = { ...object, metadata: { ...metadata, name: metadata.name } }
      if (objects.has(cacheKey(named.metadata))) throw conflict('AlreadyExists')
      return store(named as Unstored<T>)
    },
    async delete(ref) {
      remove(cacheKey(ref))
    },
    async mergePatch(ref, patch, { resourceVersion }) {
      enter('mergePatch')
      const old = objects.get(cacheKey(ref))
      if (!old) throw notFound(cacheKey(ref))
      if (old.metadata.resourceVersion !== resourceVersion) throw conflict('Conflict')
      return store(merge(old, { ...patch, metadata: { ...patch.metadata } }) as T)
    },
    watch({ resourceVersion }, onEvent, signal, onBytes) {
      watchedFrom = resourceVersion
      return new Promise((resolve, reject) => {
        try {
          enter('watch')
        } catch (error) {
          return reject(error)
        }
        const watch = {
          tell: (event: WatchEvent<T>): void => {
            try {
              onBytes?.()
              onEvent(event)
            } catch (error) {
              watch.end(error)
            }
          },
          end: (error?: unknown): void => {
            watches.delete(watch)
            if (error === undefined) resolve()
            else reject(error)
          },
        }
        watches.add(watch)
        signal.addEventListener('abort', () => watch.end(signal.reason), { once: true })
      })
    },
  }

  const remove = (key: string, quietly?: 'quietly'): void => {
    const old = objects.get(key)
    if (!old) return
    objects.delete(key)
    const gone = { ...old, metadata: { ...old.metadata, resourceVersion: String(++revision) } }
    if (!quietly) for (const { tell } of watches) tell({ type: 'DELETED', object: gone })
  }

  return {
    client,
    write: store,
    remove,
    bookmark: () => {
      for (const { tell } of watches) tell({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(revision) } } })
    },
    failNext: (method, error) => failures.set(method, [...(failures.get(method) ?? []), error]),
    endWatches: (error) => {
      for (const { end } of [...watches]) end(error)
    },
    setRevision: (next) => {
      revision = next
    },
    calls,
    get watching() {
      return watches.size
    },
    get watchedFrom() {
      return watchedFrom
    },
  }
}

/** RFC 7386. */
export function merge(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const result: Record<string, unknown> = typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {}
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete result[field]
    else result[field] = merge(result[field], value)
  }
  return result
}
