import { createHash } from 'node:crypto'
import type { ObjectMeta } from './objects.ts'

/** What of an object's metadata is used, beside name, namespace, uid, resourceVersion, generation and the times of creation and deletion. */
export interface Kept {
  /** Names of the annotations that are read. None by default. */
  readonly annotations?: readonly string[]
  /** Those of them that may be long. */
  readonly long?: readonly string[]
  /** Whether labels are read. Not by default. */
  readonly labels?: boolean
  /** Finalizers that are looked for. They are kept however many others there are. */
  readonly finalizers?: readonly string[]
}

/** Longer values are kept as their beginning and their hash, which differs whenever the values do. */
const LONGEST_ANNOTATION = 512
const LONGEST_LONG_ANNOTATION = 16 * 1024
/** Labels beyond that, in characters, are left out as unknown: a selector selects nothing by them. */
const LARGEST_LABELS = 64 * 1024
const MOST_FINALIZERS = 16
const LARGEST_FINALIZERS = 1024

/**
 * The metadata that a cache holds: what is used, each part bounded, for anyone who may write an object may fill its metadata with as much as etcd takes (1.5 MiB
 * by default). A list of finalizers beyond the bounds is cut to those that are looked for and marked `incomplete`.
 */
export function keptMetadata(metadata: ObjectMeta, kept: Kept): ObjectMeta {
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp } = metadata
  const { finalizers, incomplete } = boundedFinalizers(metadata.finalizers, kept.finalizers ?? [])
  const annotations = pickAnnotations(metadata.annotations, kept.annotations ?? [], kept.long ?? [])
  const labels = kept.labels === true ? boundedLabels(metadata.labels) : undefined
  // Literals, so that V8 gives most objects one hidden class and no room to spare; a field that is undefined counts as absent.
  const usual = { name, namespace, uid, resourceVersion, generation, creationTimestamp, finalizers, annotations } as ObjectMeta
  const reduced = deletionTimestamp === undefined && labels === undefined ? usual : ({ ...usual, deletionTimestamp, labels } as ObjectMeta)
  return incomplete || metadata.incomplete === true ? { ...reduced, incomplete: true } : reduced
}

function boundedFinalizers(finalizers: readonly string[] | undefined, wanted: readonly string[]) {
  if (finalizers === undefined) return { finalizers, incomplete: false }
  const size = finalizers.reduce((sum, name) => sum + name.length, 0)
  if (finalizers.length <= MOST_FINALIZERS && size <= LARGEST_FINALIZERS) return { finalizers, incomplete: false }
  return { finalizers: wanted.filter((name) => finalizers.includes(name)), incomplete: true }
}

function pickAnnotations(
  annotations: ObjectMeta['annotations'],
  names: readonly string[],
  long: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (annotations === undefined) return undefined
  let picked: Record<string, string> | undefined
  for (const name of names) {
    const value = annotations[name]
    if (value === undefined) continue
    picked ??= {}
    picked[name] = value.length <= (long.includes(name) ? LONGEST_LONG_ANNOTATION : LONGEST_ANNOTATION) ? value : shortened(value)
  }
  return picked
}

const shortened = (value: string): string => `${value.slice(0, 64)}…sha256:${createHash('sha256').update(value).digest('hex')}`

function boundedLabels(labels: ObjectMeta['labels']): ObjectMeta['labels'] {
  if (labels === undefined) return undefined
  let size = 0
  for (const name in labels) {
    size += name.length + (labels[name]?.length ?? 0)
    if (size > LARGEST_LABELS) return undefined
  }
  return labels
}
