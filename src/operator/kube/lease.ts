import type { Clock } from '../../lib/clock.ts'
import { isConflict, isNotFound } from './errors.ts'
import { microTime } from './micro-time.ts'
import { compareResourceVersions, type KubeObject, type Ref } from './objects.ts'
import type { ResourceClient, ResourceDefinition } from './resource-client.ts'
import { EtcdSetBack } from './revisions.ts'

export interface Lease extends KubeObject {
  readonly spec?: {
    readonly holderIdentity?: string
    readonly leaseDurationSeconds?: number
    readonly acquireTime?: string
    readonly renewTime?: string
    readonly leaseTransitions?: number
  }
}

export const leases: ResourceDefinition = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease', namespaced: true }

/** The lease as this process sees it, and holds it by its own clock. */
export interface HeldLease {
  /** When the last renewal that succeeded was begun, monotonic ms; undefined while this process does not hold it. */
  readonly renewedAt: number | undefined
  /** How often the lease has passed to another holder, as it was seen last; undefined before that. */
  readonly transitions: number | undefined
  /** The identity of its holder, as it was seen last; undefined while it has none, or before that. */
  readonly seenHolder: string | undefined
  /** Its annotations, as they were seen last. */
  readonly annotations: Readonly<Record<string, string>>
  /** A new term: what was held before does not count. */
  reset(): void
  /** One attempt to take or renew it. True when it is ours. */
  attempt(signal: AbortSignal): Promise<boolean>
  /** The identity of its holder, read now. */
  holder(signal: AbortSignal): Promise<string | undefined>
  /** Gives it up for others to take at once. */
  release(signal: AbortSignal): Promise<void>
}

export interface HeldLeaseOptions {
  readonly client: ResourceClient<Lease>
  readonly ref: Ref
  readonly identity: string
  /** How long others wait, after they last saw a renewal, before they take over, ms. */
  readonly durationMs: number
  readonly clock: Clock
  /** A lease that goes back is an etcd that was set back: every holder writes it every few seconds, and it is read past all caches. @returns what is thrown */
  readonly onSetBack: (why: EtcdSetBack) => Error
}

/**
 * Takes and renews a lease by client-go's rules: a holder counts as alive as long as its record keeps changing *as seen by our own clock*; the times in the
 * record, which are of other machines' clocks, are never compared. All writes are fenced by resourceVersion.
 */
export function createHeldLease({ client, ref, identity, durationMs, clock, onSetBack }: HeldLeaseOptions): HeldLease {
  let observed: { readonly lease: Lease; readonly at: number } | undefined
  let renewedAt: number | undefined

  /** @throws what `onSetBack` gives */
  const observe = (lease: Lease): void => {
    const [seen = '', now] = [observed?.lease.metadata.resourceVersion, lease.metadata.resourceVersion]
    if (compareResourceVersions(now, seen) < 0) throw onSetBack(new EtcdSetBack('the lease', seen, now))
    if (observed?.lease.metadata.resourceVersion !== lease.metadata.resourceVersion || observed.lease.metadata.uid !== lease.metadata.uid)
      observed = { lease, at: clock.monotonicMs() }
  }

  async function attempt(signal: AbortSignal): Promise<boolean> {
    const startedAt = clock.monotonicMs()
    const renewTime = microTime(clock.now())
    const fresh = { holderIdentity: identity, leaseDurationSeconds: Math.ceil(durationMs / 1000), renewTime }
    if (renewedAt === undefined || observed === undefined) {
      const lease = await client.get(ref, signal).catch((error: unknown) => {
        if (isNotFound(error)) return undefined
        throw error
      })
      if (lease === undefined) {
        const { apiVersion, definition } = client
        observe(
          await client.create(
            { apiVersion, kind: definition.kind, metadata: ref, spec: { ...fresh, acquireTime: renewTime, leaseTransitions: 0 } },
            signal,
          ),
        )
        renewedAt = startedAt
        return true
      }
      observe(lease)
    }
    if (observed === undefined) return false
    const { lease, at } = observed
    const { holderIdentity: holder = '', leaseDurationSeconds = 0, leaseTransitions = 0 } = lease.spec ?? {}
    const isOurs = holder === identity
    if (!isOurs && holder !== '' && clock.monotonicMs() - at < leaseDurationSeconds * 1000) return false
    const spec = isOurs ? fresh : { ...fresh, acquireTime: renewTime, leaseTransitions: leaseTransitions + 1 }
    observe(await client.mergePatch(ref, { spec }, { resourceVersion: lease.metadata.resourceVersion }, signal))
    renewedAt = startedAt
    return true
  }

  return {
    get renewedAt() {
      return renewedAt
    },
    get transitions() {
      return observed?.lease.spec?.leaseTransitions
    },
    get seenHolder() {
      return observed?.lease.spec?.holderIdentity || undefined
    },
    get annotations() {
      return observed?.lease.metadata.annotations ?? {}
    },
    reset() {
      renewedAt = undefined
    },
    attempt,

    async holder(signal) {
      const lease = await client.get(ref, signal)
      observe(lease)
      return lease.spec?.holderIdentity
    },

    async release(signal) {
      if (observed === undefined) return
      renewedAt = undefined
      const give = ({ metadata }: Lease): Promise<Lease> => {
        const spec = { holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(clock.now()) }
        return client.mergePatch(ref, { spec }, { resourceVersion: metadata.resourceVersion }, signal)
      }
      await give(observed.lease).catch(async (error: unknown) => {
        // A renewal that was cut off on the way may have taken place all the same.
        if (!isConflict(error)) throw error
        const lease = await client.get(ref, signal)
        if (lease.spec?.holderIdentity === identity) await give(lease)
      })
    },
  }
}
