import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import type { Reconcile } from './compose.ts'
import { Halt } from './engine/verdict.ts'
import type { Collection } from './kube/collections.ts'
import { type ControllerOptions, createController } from './kube/controller.ts'
import { refOf } from './kube/objects.ts'
import { createQueue, type Queue, type QueueStats, type Turns } from './kube/queue.ts'
import type { OperatorMetrics } from './metrics.ts'

/** Collections by name. */
type Kinds<Name extends string> = { readonly [Key in Name]: { readonly client: Pick<Collection<never>['client'], 'definition'> } }

/** What traces say of the keys of a kind. */
export type Traces<Name extends string> = (name: Name) => Pick<ControllerOptions<string>, 'spanOf' | 'spanEnd'>

export interface Controllers<Name extends string> {
  /** One for each kind; every instance has them, so that whoever comes to lead knows what is to be done. */
  readonly queues: Readonly<Record<Name, Queue<string>>>
  stats(): readonly (QueueStats & { readonly kind: string })[]
  /** Reconciles what is queued until aborted: what only the leader does. */
  run(reconcile: Readonly<Record<Name, Reconcile>>, signal: AbortSignal): Promise<void>
}

/** A wait or a stall says why, in the words that status has. */
const saysOf = (error: unknown): { readonly reason: string; readonly message: string } | undefined =>
  error instanceof Halt && error.verdict.kind !== 'conflict' ? error.verdict : undefined

/** A queue and a controller for each kind. */
export function createControllers<Name extends string>(
  kinds: Kinds<Name>,
  deps: {
    readonly clock: Clock
    readonly log: Logger
    readonly metrics: Pick<OperatorMetrics, 'queuePicked' | 'reconcile'>
    readonly workers: (name: Name) => number
    /** Whose turn the keys of a kind without namespaces take, and how many of one are processed at a time. Without it all are one. */
    readonly turns?: Partial<Readonly<Record<Name, Turns>>>
    /** What traces say of a key. */
    readonly traces?: Traces<Name>
  },
): Controllers<Name> {
  const { clock, log, metrics } = deps
  const names = Object.keys(kinds) as Name[]
  const kindOf = (name: Name): string => kinds[name].client.definition.kind
  const turnsOf = (name: Name): Partial<Turns> =>
    deps.turns?.[name] ?? (kinds[name].client.definition.namespaced ? { mostOfOneNamespace: mostOfOneNamespace(deps.workers(name)) } : {})
  const queueFor = (name: Name) =>
    createQueue<string>({
      clock,
      baseDelayMs: 500,
      maxDelayMs: 60_000,
      ...turnsOf(name),
      onPicked: (waitedMs) => metrics.queuePicked(kindOf(name), waitedMs),
    })
  const queues = Object.fromEntries(names.map((name) => [name, queueFor(name)])) as Record<Name, Queue<string>>

  return {
    queues,
    stats: () => names.map((name) => ({ kind: kindOf(name), ...queues[name].stats() })),
    async run(reconcile, signal) {
      const controllers = names.map((name) => {
        const kind = kindOf(name)
        return createController<string>({
          saysOf,
          name: kind,
          queue: queues[name],
          workers: deps.workers(name),
          reconcile: reconcile[name],
          clock,
          log,
          logFields: (key) => ({ kind, ...refOf(key) }),
          ...(deps.traces === undefined ? {} : deps.traces(name)),
          onResult: (_key, outcome, ms) => metrics.reconcile(kind, outcome, ms),
        })
      })
      await Promise.all(controllers.map((controller) => controller.run(signal)))
    },
  }
}

/** Slow reconciles of one namespace leave an eighth of the workers, at least one, to the others. */
const mostOfOneNamespace = (workers: number): number => Math.max(1, workers - Math.max(1, Math.floor(workers / 8)))
