import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import { type Condition, findCondition } from '../resources/conditions.ts'
import { GROUP, type KindDefinition, VERSION } from '../resources/meta.ts'
import type { InFlight } from '../resources/staking-signer.ts'
import { KEPT } from './engine/kept.ts'
import { readOrigin } from './engine/origin.ts'
import type { ReconcilerDeps, SagaKind } from './engine/reconcile.ts'
import { createReconciler } from './engine/reconcile.ts'
import type { EffectTable } from './engine/step.ts'
import type { Visit } from './engine/visit.ts'
import type { KubeApi } from './kube/api.ts'
import { createCompact } from './kube/compact.ts'
import { createController } from './kube/controller.ts'
import type { EventRecorder } from './kube/events.ts'
import { createInformer, type Informer } from './kube/informer.ts'
import { type KubeObject, refOf } from './kube/objects.ts'
import { createQueue, Priority, type Queue } from './kube/queue.ts'
import type { ResourceClient, ResourceDefinition } from './kube/resource-client.ts'
import type { Indexer } from './kube/store.ts'
import type { OperatorMetrics } from './metrics.ts'

export const definitionOf = ({ plural, kind, scope }: KindDefinition): ResourceDefinition => ({
  group: GROUP,
  version: VERSION,
  plural,
  kind,
  namespaced: scope === 'Namespaced',
})

/** A resource that a saga reconciles, as far as its cache and queue look into it. */
export type SagaResource = KubeObject & {
  readonly status?: { readonly phase?: string | undefined; readonly conditions?: readonly Condition[] | undefined }
}

/** What all kinds are run with. */
export interface RuntimeDeps {
  readonly api: KubeApi
  readonly clock: Clock
  readonly log: Logger
  readonly fieldManager: string
  readonly workers: number
  readonly stallRecheckMs: number
  readonly events: Pick<EventRecorder, 'event'>
  readonly assertHeld: () => void
  readonly onPoint?: (point: string, key: string) => void
  /** There from when the first key is queued. */
  readonly metrics: () => OperatorMetrics | undefined
}

export interface KindOptions<R extends SagaResource> {
  readonly definition: KindDefinition
  /** Names of the signers that it is signed with. */
  readonly signersOf: (resource: R) => readonly string[]
  /** Nothing of it is to be signed any more: looked at after all others, and not woken by what concerns signatures. */
  readonly isSettled: (resource: R) => boolean
  readonly transform?: (resource: R) => R
  readonly indexers?: Readonly<Record<string, Indexer<R>>>
  /** Told of each change, beside the resource's own queue. */
  readonly onChange?: (now: R | undefined, before: R | undefined) => void
}

/** A kind that a saga reconciles, without its type: what the operator asks of all. */
export interface AnySagaRuntime {
  readonly kind: string
  readonly plural: string
  readonly queue: Queue<string>
  readonly cache: Pick<Informer<never>, 'run' | 'hasSynced' | 'whenSynced' | 'size' | 'lastEventAt'>
  wakeAll(): void
  /** Those that may have to sign yet. */
  wakeUnsettled(by: 'signer' | 'namespace', value: string): void
  /** Whether the resource of a ledger's entry still exists and is the same. */
  owns(entry: Pick<InFlight, 'namespace' | 'name' | 'origin'>): boolean
  /** Phase, and reason where stalled ('' where not), of each resource. */
  states(): Iterable<{ readonly phase: string; readonly stalled: string }>
}

export interface SagaRuntime<R extends SagaResource> extends AnySagaRuntime {
  readonly informer: Informer<R>
  readonly client: ResourceClient<R>
  /** Wakes one of them soon. */
  wake(key: string): void
  /** Reconciles until aborted: what only the leader does. */
  lead<S extends { phase?: string | undefined; conditions?: readonly Condition[] | undefined }, View, Effects extends EffectTable>(
    saga: SagaKind<R, S, View, Effects>,
    perform: { readonly [name: string]: (args: never, visit: Visit, signal: AbortSignal) => Promise<unknown> },
    leading: AbortSignal,
  ): Promise<void>
}

/** The cache and the queue of one kind, which every instance has, and its controller, which the leader runs. */
export function createSagaRuntime<R extends SagaResource>(deps: RuntimeDeps, options: KindOptions<R>): SagaRuntime<R> {
  const { clock, log } = deps
  const { definition, isSettled } = options
  const { kind, plural } = definition
  const client = deps.api.resource<R>(definitionOf(definition))
  const queue = createQueue<string>({
    clock,
    baseDelayMs: 500,
    maxDelayMs: 60_000,
    onPicked: (waitedMs) => deps.metrics()?.queuePicked(kind, waitedMs),
  })
  const keyOf = ({ metadata }: KubeObject) => `${metadata.namespace}/${metadata.name}`
  const priorityOf = (resource: R | undefined) => (resource !== undefined && isSettled(resource) ? Priority.low : Priority.high)
  const informer = createInformer<R>({
    client,
    clock,
    log,
    transform: options.transform ?? createCompact(KEPT),
    indexers: {
      ...options.indexers,
      signer: options.signersOf,
      namespace: ({ metadata }) => [metadata.namespace ?? ''],
    },
    onChange: (key, change) => {
      const now = change.type === 'deleted' ? undefined : change.new
      if (!change.own) queue.add(key, { priority: priorityOf(now) })
      options.onChange?.(now, change.type === 'added' ? undefined : change.old)
    },
  })
  const wakeThese = (which: Iterable<R>) => {
    for (const resource of which) queue.add(keyOf(resource), { priority: priorityOf(resource) })
  }
  return {
    kind,
    plural,
    queue,
    client,
    informer,
    cache: informer,
    wake: (key) => queue.add(key, { priority: priorityOf(informer.get(key)) }),
    wakeAll: () => wakeThese(informer.list()),
    wakeUnsettled: (by, value) => wakeThese(informer.byIndex(by, value).filter((resource) => !isSettled(resource))),
    owns({ namespace, name, origin }) {
      const resource = informer.get(`${namespace}/${name}`)
      if (resource === undefined) return false
      const own = readOrigin(kind, resource.metadata)
      return own.is === 'own' && own.origin.uid === origin
    },
    *states() {
      for (const { status } of informer.list()) {
        const stalled = findCondition(status?.conditions, 'Stalled')
        yield { phase: status?.phase ?? 'Pending', stalled: stalled?.status === 'True' ? stalled.reason : '' }
      }
    },
    async lead(saga, perform, leading) {
      const reconciler: ReconcilerDeps<R> = {
        client,
        informer,
        events: deps.events,
        clock,
        fieldManager: deps.fieldManager,
        assertHeld: deps.assertHeld,
        stallRecheckMs: deps.stallRecheckMs,
        ...(deps.onPoint === undefined ? {} : { onPoint: deps.onPoint }),
        onStatusWrite: () => deps.metrics()?.statusWrite(kind),
        onStep: (step, outcome, ms) => deps.metrics()?.step(kind, step, outcome, ms),
        logFor: (key) => log.child({ kind, ...refOf(key), uid: informer.get(key)?.metadata.uid }),
      }
      await createController<string>({
        name: kind,
        queue,
        workers: deps.workers,
        reconcile: createReconciler(saga, perform, reconciler),
        clock,
        log,
        logFields: (key) => ({ kind, ...refOf(key) }),
        onResult: (_key, outcome, ms) => deps.metrics()?.reconcile(kind, outcome, ms),
      }).run(leading)
    },
  }
}
