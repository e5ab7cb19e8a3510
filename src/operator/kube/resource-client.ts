import type { ApiRequest, KubeCaller } from './caller.ts'
import { KubeError, type KubeStatus, kubeError } from './errors.ts'
import { type Kept, keptMetadata } from './kept-metadata.ts'
import { createLineSplitter } from './lines.ts'
import type { KubeObject, NewObject, ObjectMeta, Ref } from './objects.ts'
import { createRevisions, type Revisions } from './revisions.ts'
import { LARGEST_ANSWER_BYTES } from './transport.ts'

export interface ResourceDefinition {
  /** '' for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly kind: string
  readonly namespaced: boolean
}

export interface ListOptions {
  /** Absent: all namespaces. */
  readonly namespace?: string
  readonly limit?: number
  /** How many bytes of an answer are taken. @see TransportRequest */
  readonly maxBytes?: number
  readonly continue?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly resourceVersion?: string
}

export interface ListPage<T> {
  readonly items: readonly T[]
  /** Length of the answer. */
  readonly bytes: number
  /** Of the collection; the same for all pages of one list. */
  readonly resourceVersion: string
  /** Absent on the last page. */
  readonly continue?: string
}

export interface WatchOptions {
  readonly namespace?: string
  readonly resourceVersion: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** After which the server ends the watch by itself, seconds. */
  readonly timeoutSeconds?: number
}

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly object: { readonly metadata: Pick<ObjectMeta, 'resourceVersion'> } }

/** A merge patch (RFC 7386): null removes, lists are replaced whole. */
export type MergePatch = { readonly [field: string]: unknown; readonly metadata?: { readonly [field: string]: unknown } }

export interface PatchOptions {
  /** The version that the patch was computed from. The write is refused (409) when there is a newer one: no patch is ever unfenced. */
  readonly resourceVersion: string
  readonly subresource?: 'status'
  readonly fieldManager?: string
}

export interface DeleteOptions {
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan'
}

/**
 * All methods throw KubeError when refused, KubeTransportError when there was no answer (the outcome is then unknown), the signal's reason when aborted,
 * EtcdSetBack when the answer is older than it can be.
 */
export interface ResourceClient<T extends KubeObject> {
  readonly definition: ResourceDefinition
  readonly apiVersion: string
  /** `whole`: with all of its metadata, where the client keeps only what is used. */
  get(ref: Ref, signal: AbortSignal, options?: { readonly whole?: boolean }): Promise<T>
  list(options: ListOptions, signal: AbortSignal): Promise<ListPage<T>>
  create(object: NewObject<T>, signal: AbortSignal, options?: { readonly fieldManager?: string }): Promise<T>
  delete(ref: Ref, options: DeleteOptions, signal: AbortSignal): Promise<void>
  mergePatch(ref: Ref, patch: MergePatch, options: PatchOptions, signal: AbortSignal): Promise<T>
  /**
   * Passes on changes after `resourceVersion`, bookmarks among them, until the server ends the watch. An ERROR event rejects as a KubeError (410 when the
   * version is too old), a line that is no JSON as a KubeError `NotJson`, a throw of `onEvent` as itself. `onBytes` is told of every sign of life.
   */
  watch(options: WatchOptions, onEvent: (event: WatchEvent<T>) => void, signal: AbortSignal, onBytes?: () => void): Promise<void>
}

interface RawList<T> {
  readonly items?: readonly T[]
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string }
}

const MERGE_PATCH = 'application/merge-patch+json'
const JSON_TYPE = 'application/json'

export interface ResourceClientOptions {
  /**
   * What is kept of metadata in every answer; all of it by default. Anyone who may write an object may give it a megabyte of labels: who holds many answers
   * at a time, as workers do, is not to hold that.
   */
  readonly kept?: Kept
  /** What the server has given out so far; shared by all clients of one server. */
  readonly revisions?: Revisions
}

export function createResourceClient<T extends KubeObject>(
  caller: KubeCaller,
  definition: ResourceDefinition,
  { kept, revisions = createRevisions() }: ResourceClientOptions = {},
): ResourceClient<T> {
  const { group, version, plural, kind } = definition
  const apiVersion = group === '' ? version : `${group}/${version}`
  const { collection, path } = pathsOf(definition)
  const reduce = (object: T): T => (kept === undefined ? object : { ...object, metadata: keptMetadata(object.metadata, kept) })

  /** @param before The version of what is written over; '' where there was nothing. */
  async function write(request: ApiRequest, before: string, signal: AbortSignal): Promise<T> {
    const floor = revisions.seen(definition)
    const object = await caller.call<T>(request, signal)
    const { resourceVersion } = object.metadata
    // Unless nothing was changed: then the version is the one that the object had.
    if (resourceVersion !== before) revisions.assertAfter(floor, definition, resourceVersion, `a write of ${plural}`)
    revisions.note(definition, resourceVersion)
    return reduce(object)
  }

  return {
    definition,
    apiVersion,
    async get(ref, signal, { whole = false } = {}) {
      const object = await caller.call<T>({ verb: 'get', resource: plural, method: 'GET', path: path(ref) }, signal)
      revisions.note(definition, object.metadata.resourceVersion)
      return whole ? object : reduce(object)
    },

    async list({ namespace, maxBytes, ...options }, signal) {
      const floor = revisions.seen(definition)
      const { value: raw, bytes } = await caller.measured<RawList<T>>(
        {
          verb: 'list',
          resource: plural,
          method: 'GET',
          path: collection(namespace) + query(options),
          ...(maxBytes !== undefined && { maxBytes }),
        },
        signal,
      )
      const resourceVersion = raw.metadata?.resourceVersion
      if (!Array.isArray(raw.items) || resourceVersion === undefined)
        throw new KubeError(200, 'NotAList', `list ${plural}: the answer is not a list`)
      // A further page is as old as the first; one of a version that was asked for is of that version.
      if (options.continue === undefined && options.resourceVersion === undefined)
        revisions.assertNotBefore(floor, definition, resourceVersion, `a list of ${plural}`)
      revisions.note(definition, resourceVersion)
      const items: T[] = raw.items
      // Lists of built-in kinds leave these out of their items.
      const typed = items.map((item) => reduce(item.kind === undefined ? { ...item, apiVersion, kind } : item))
      return { items: typed, bytes, resourceVersion, ...(raw.metadata?.continue && { continue: raw.metadata.continue }) }
    },

    create: (object, signal, options = {}) =>
      write(
        {
          verb: 'create',
          resource: plural,
          method: 'POST',
          path: collection(object.metadata.namespace) + query(options),
          body: JSON.stringify(object),
          contentType: JSON_TYPE,
        },
        '',
        signal,
      ),

    async delete(ref, options, signal) {
      const body = JSON.stringify({ apiVersion: 'v1', kind: 'DeleteOptions', ...options })
      await caller.call({ verb: 'delete', resource: plural, method: 'DELETE', path: path(ref), body, contentType: JSON_TYPE }, signal)
    },

    mergePatch: (ref, patch, { resourceVersion, subresource, fieldManager }, signal) => {
      if (resourceVersion === '') throw new TypeError('a patch needs the resourceVersion that it was computed from')
      return write(
        {
          verb: 'patch',
          resource: plural,
          method: 'PATCH',
          path:
            path(ref) + (subresource === undefined ? '' : `/${subresource}`) + (fieldManager === undefined ? '' : query({ fieldManager })),
          body: JSON.stringify({ ...patch, metadata: { ...patch.metadata, resourceVersion } }),
          contentType: MERGE_PATCH,
        },
        resourceVersion,
        signal,
      )
    },

    async watch({ namespace, ...options }, onEvent, signal, onBytes) {
      let position = options.resourceVersion
      const split = createLineSplitter((line) => {
        const event = parseEvent<T>(line, plural)
        if (event.type === 'ERROR') throw kubeError(event.object.code ?? 500, event.object, `watch ${plural}`)
        const { resourceVersion } = event.object.metadata
        revisions.assertNotBefore(position, definition, resourceVersion, `a watch of ${plural}`)
        revisions.note(definition, resourceVersion)
        position = resourceVersion
        onEvent(event.type === 'BOOKMARK' ? event : { type: event.type, object: reduce(event.object) })
      }, LARGEST_ANSWER_BYTES)
      const onData = (chunk: Buffer): void => {
        onBytes?.()
        split(chunk)
      }
      const asked = query({ watch: true, allowWatchBookmarks: true, ...options })
      await caller.stream({ verb: 'watch', resource: plural, method: 'GET', path: collection(namespace) + asked }, onData, signal)
    },
  }
}

/** Where the API server has a resource. */
function pathsOf({ group, version, plural, namespaced }: ResourceDefinition) {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`

  const collection = (namespace: string | undefined): string =>
    namespaced && namespace !== undefined ? `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}` : `${root}/${plural}`

  const path = ({ namespace, name }: Ref): string => {
    if (namespaced && namespace === undefined) throw new TypeError(`${plural} are namespaced: "${name}" has no namespace`)
    // An empty name would address the whole collection: a delete of everything.
    if (name === '') throw new TypeError(`${plural} can't have an empty name`)
    return `${collection(namespace)}/${encodeURIComponent(name)}`
  }

  return { collection, path }
}

const query = (parameters: object): string => {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return given.length === 0 ? '' : `?${given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')}`
}

type RawEvent<T> = WatchEvent<T> | { readonly type: 'ERROR'; readonly object: KubeStatus }

function parseEvent<T>(line: string, plural: string): RawEvent<T> {
  try {
    const event = JSON.parse(line) as RawEvent<T>
    if (typeof event.object === 'object' && event.object !== null && typeof event.type === 'string') return event
  } catch {
    // Told below, without JSON.parse's message, which quotes the text.
  }
  throw new KubeError(200, 'NotJson', `watch ${plural}: a line is not a watch event`)
}
