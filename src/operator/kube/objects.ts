/** What the API server adds to every object. Times are RFC 3339. */
export interface ObjectMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid: string
  /** Opaque to most, but comparable: decimal digits that only grow (Kubernetes API concepts, "Resource versions"; KEP-5504). */
  readonly resourceVersion: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
  readonly managedFields?: readonly unknown[] | undefined
  /** Never the server's: a cache has left out finalizers. Who writes that list reads the object first. */
  readonly incomplete?: true
}

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export interface KubeObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
}

/** Where an object is; a cluster-scoped one has no namespace. */
export interface Ref {
  readonly name: string
  readonly namespace?: string
}

/** What an object to be created must say: the server gives the rest. */
export type NewObject<T extends KubeObject> = Omit<T, 'metadata'> & {
  readonly metadata: Partial<ObjectMeta> & ({ readonly name: string } | { readonly generateName: string })
}

/** The key of an object in caches and queues: `namespace/name`, or `name` for a cluster-scoped one. */
export const cacheKey = ({ namespace, name }: Ref): string => (namespace === undefined ? name : `${namespace}/${name}`)

/** The other way round. Names hold no slash, so it is exact. */
export function refOf(key: string): Ref {
  const slash = key.indexOf('/')
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

/** Negative when `a` is older than `b`, 0 when they are the same. Both are decimal without leading zeros, so length comes first; '' is before all. */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length
  return a < b ? -1 : a > b ? 1 : 0
}
