import { isNotFound, KubeError } from './errors.ts'
import type { KubeObject, Ref } from './objects.ts'
import type { MergePatch, ResourceClient } from './resource-client.ts'

/** Labels or annotations to set; null removes. */
export type Marks = Readonly<Record<string, string | null>>

export const hasFinalizer = (object: KubeObject, finalizer: string): boolean => object.metadata.finalizers?.includes(finalizer) ?? false

export const isBeingDeleted = (object: KubeObject): boolean => object.metadata.deletionTimestamp !== undefined

export interface MetadataChange {
  readonly addFinalizer?: string
  readonly removeFinalizer?: string
  readonly annotations?: Marks
  readonly labels?: Marks
}

/**
 * The merge patch for a change of metadata; undefined when everything is so already. A merge patch replaces the list of finalizers whole, so it holds what
 * others have put there, as of the object given: it must be sent with that object's resourceVersion, and the object must have the whole list. Labels and
 * annotations are patched one by one, so those that a cache has left out stay; only one that the cache keeps can be removed.
 * @throws TypeError for an object that a cache has left finalizers out of.
 */
export function metadataPatch(object: KubeObject, change: MetadataChange): MergePatch | undefined {
  const { finalizers = [], annotations = {}, labels = {}, incomplete } = object.metadata
  if (incomplete) throw new TypeError('the finalizers of this object are not all known: read it first')
  const { addFinalizer, removeFinalizer } = change
  const metadata: Record<string, unknown> = {}
  if (addFinalizer !== undefined && !finalizers.includes(addFinalizer)) metadata.finalizers = [...finalizers, addFinalizer]
  if (removeFinalizer !== undefined && finalizers.includes(removeFinalizer))
    metadata.finalizers = finalizers.filter((name) => name !== removeFinalizer)
  const changedAnnotations = changed(annotations, change.annotations ?? {})
  const changedLabels = changed(labels, change.labels ?? {})
  if (changedAnnotations) metadata.annotations = changedAnnotations
  if (changedLabels) metadata.labels = changedLabels
  return Object.keys(metadata).length === 0 ? undefined : { metadata }
}

function changed(now: Readonly<Record<string, string>>, wanted: Marks): Marks | undefined {
  const entries = Object.entries(wanted).filter(([name, value]) => (now[name] ?? null) !== value)
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

export interface ChangeMetadataOptions {
  readonly fieldManager?: string
}

/**
 * Brings metadata to be as `change` says, in one fenced write, or none if it is so already. Returns the object as it then is; undefined when it is gone,
 * which removing the last finalizer of an object under deletion leads to. One from a cache that doesn't hold all its finalizers is read first.
 * @throws KubeError 409 when the object has changed since it was read: what was decided is to be decided anew.
 */
export async function changeMetadata<T extends KubeObject>(
  client: ResourceClient<T>,
  object: T,
  change: MetadataChange,
  signal: AbortSignal,
  options: ChangeMetadataOptions = {},
): Promise<T | undefined> {
  const { name, namespace, resourceVersion } = object.metadata
  const ref: Ref = namespace === undefined ? { name } : { name, namespace }
  try {
    const whole = object.metadata.incomplete ? await client.get(ref, signal, { whole: true }) : object
    if (whole.metadata.resourceVersion !== resourceVersion)
      throw new KubeError(409, 'Conflict', `${client.definition.plural} "${name}" has changed since it was read`)
    const patch = metadataPatch(whole, change)
    if (patch === undefined) return whole
    return await client.mergePatch(ref, patch, { resourceVersion, ...options }, signal)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
