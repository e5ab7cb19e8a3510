import type { KubeObject } from '../kube/objects.ts'
import type { ReconcilerDeps, VisitLog } from './deps.ts'
import type { Draft } from './draft.ts'
import type { createObservations } from './observations.ts'
import type { AnyStatus, SagaKind } from './saga-kind.ts'
import type { EffectTable, Perform } from './step.ts'
import type { Visit } from './visit.ts'

/** Everything that one visit to a resource works with. */
export interface Context<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable> {
  readonly kind: SagaKind<R, S, View, Effects>
  readonly perform: Perform<Effects>
  readonly deps: ReconcilerDeps<R>
  readonly key: string
  readonly draft: Draft<R, S>
  readonly visit: Visit
  readonly log: VisitLog
  readonly signal: AbortSignal
  readonly observations: ReturnType<typeof createObservations>
  /** Since when what a person has let go is being cancelled, in monotonic ms, by key. Lost on a restart: it is tried for as long anew. */
  readonly lettingGo: Map<string, number>
  /** Keeps what was found out, unwritten, for the next visit, which comes at once. */
  readonly carry: () => void
}
