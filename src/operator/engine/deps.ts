import type { Clock } from '../../lib/clock.ts'
import type { EventRecorder } from '../kube/events.ts'
import type { Informer } from '../kube/informer.ts'
import type { KubeObject } from '../kube/objects.ts'
import type { ResourceClient } from '../kube/resource-client.ts'

export interface ReconcilerDeps<R extends KubeObject> {
  readonly client: ResourceClient<R>
  readonly informer: Pick<Informer<R>, 'get' | 'put'>
  readonly events: Pick<EventRecorder, 'event'>
  readonly clock: Clock
  readonly fieldManager: string
  /** Throws when this process may not write any more. */
  readonly assertHeld: () => void
  /** How often a stalled resource whose cause no watch can see is looked at again, in ms. */
  readonly stallRecheckMs: number
  readonly random?: () => number
  /** Before and after each effect and each write: crash tests end the process here. */
  readonly onPoint?: (point: string, key: string) => void
  readonly onStatusWrite?: () => void
  readonly onStep?: (step: string, outcome: string, ms: number) => void
  /** A condition has become True, of a resource whose spec is the one it was created with: so long after that, in ms. */
  readonly onCondition?: (type: string, sinceCreatedMs: number) => void
  /** The resource came to need a person, or for another reason than before. */
  readonly onStall?: (reason: string) => void
  /** The log of one resource, with its kind, namespace, name and uid as fixed keys. */
  readonly logFor: (key: string) => VisitLog
}

export interface VisitLog {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  child(fields: object): VisitLog
}
