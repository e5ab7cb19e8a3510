/** A Kubernetes object as JSON, as far as it is looked into. */
export interface KubernetesObject {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly deletionTimestamp?: string
  }
  readonly spec?: Readonly<Record<string, unknown>>
  readonly status?: Readonly<Record<string, unknown>>
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

export const conditionOf = (object: KubernetesObject, type: string): Condition | undefined =>
  ((object.status?.conditions ?? []) as readonly Condition[]).find((condition) => condition.type === type)

export const isReady = (object: KubernetesObject): boolean => conditionOf(object, 'Ready')?.status === 'True'

/** `Kind/namespace/name`, or `Kind/name` of what has no namespace. */
export const nameOf = ({ kind, metadata: { namespace, name } }: KubernetesObject): string =>
  [kind, ...(namespace === undefined ? [] : [namespace]), name].join('/')

/** The value at a path of fields; undefined where there is none. */
export const at = (object: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((value, field) => (value as Readonly<Record<string, unknown>> | undefined | null)?.[field], object)

/** Whether something that would pay was written down for a resource: it may be on its way. */
export const isInFlight = (objects: readonly KubernetesObject[], kind: string, namespace: string, name: string): boolean =>
  objects.some((object) => {
    const owner = at(object, 'spec', 'owner')
    const attempts = (at(object, 'status', 'attempts') ?? []) as readonly { readonly kind: string }[]
    const isOwned = at(owner, 'kind') === kind && at(owner, 'namespace') === namespace && at(owner, 'name') === name
    return object.kind === 'StakingTransaction' && isOwned && attempts.some((attempt) => attempt.kind === 'Call')
  })
