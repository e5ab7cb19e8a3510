import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { type ObjectMeta, ORIGIN_ANNOTATION } from '../../resources/meta.ts'

/**
 * Who a resource is, for idempotency: its UID at first sight, with the kind, namespace and name it had then. It stands in the annotation
 * `staking.dev/origin`, so that an object restored from a backup under its own name resumes the same stake instead of buying another.
 */
export interface Origin extends Place {
  readonly uid: string
}
/** Where a resource stands, whichever it is. */
export interface Place {
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

const uidPattern = /^[A-Za-z0-9]([A-Za-z0-9-]{0,62}[A-Za-z0-9])?$/

export const originAnnotation = (meta: Pick<ObjectMeta, 'uid' | 'namespace' | 'name'>): string =>
  `${meta.uid}/${meta.namespace ?? ''}/${meta.name}`

export type OriginReading =
  | { readonly is: 'absent' }
  | { readonly is: 'own'; readonly origin: Origin }
  /** The annotation names another resource, or can't be read. `says`: which, as a sentence. */
  | { readonly is: 'foreign'; readonly says: string }

const unreadable = {
  is: 'foreign',
  says: `The annotation ${ORIGIN_ANNOTATION} was edited, and can't be read: UID/NAMESPACE/NAME is what the operator writes.`,
} as const

/** Reads the origin annotation. One that names another namespace or name marks a copy; it never reaches the other resource's stake. */
export function readOrigin(kind: string, meta: ObjectMeta): OriginReading {
  const text = meta.annotations?.[ORIGIN_ANNOTATION]
  if (text === undefined) return { is: 'absent' }
  const [uid = '', namespace, name, ...rest] = text.split('/')
  if (namespace === undefined || name === undefined || rest.length > 0 || !uidPattern.test(uid)) return unreadable
  if (namespace !== (meta.namespace ?? '') || name !== meta.name)
    return {
      is: 'foreign',
      says: `The annotation ${ORIGIN_ANNOTATION} says that this is a copy of ${namespace.slice(0, 63)}/${name.slice(0, 253)}.`,
    }
  return { is: 'own', origin: { uid, kind, namespace, name } }
}

/**
 * `<origin uid>/<12 hex of sha256(kind/namespace/name)>/<step>[/<attempt>]`, at most 255 characters. Never from time, generation or random: the
 * same logical operation has the same key for ever. The hash keeps a forged UID from reaching another resource's stake.
 */
export function idempotencyKey(origin: Origin, step: string, attempt?: number): string {
  const place = bytesToHex(sha256(utf8ToBytes(`${origin.kind}/${origin.namespace}/${origin.name}`))).slice(0, 12)
  return [origin.uid, place, step, ...(attempt === undefined ? [] : [String(attempt)])].join('/')
}

/** The reference that the staking API keeps unique per account. At most 255 characters: a longer name is cut and told apart by its hash. */
export function externalReference({ kind, namespace, name }: Place): string {
  const full = `${kind}/${namespace}/${name}`
  if (full.length <= 255) return full
  return `${full.slice(0, 255 - 33)}-${bytesToHex(sha256(utf8ToBytes(full))).slice(0, 32)}`
}

/** Whether a namespace may adopt what has this external reference: no resource of that kind has made it, or one of the namespace has. */
export const mayAdopt = (kind: string, reference: string | undefined, namespace: string): boolean =>
  reference === undefined || !reference.startsWith(`${kind}/`) || reference.startsWith(`${kind}/${namespace}/`)
