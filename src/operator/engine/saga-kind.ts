import type { Condition } from '../../resources/conditions.ts'
import type { Reason } from '../../resources/reasons.ts'
import type { KubeObject } from '../kube/objects.ts'
import type { Deletion } from './deletion.ts'
import type { Origin } from './origin.ts'
import type { Progress } from './progress.ts'
import type { EffectTable, Step } from './step.ts'
import type { Verdict } from './verdict.ts'

/** A status as every kind has it. */
export interface AnyStatus {
  readonly phase?: string | undefined
  readonly conditions?: readonly Condition[] | undefined
  readonly observedAt?: string | undefined
  readonly lastHandledReconcileAt?: string | undefined
}
export type Halted = Exclude<Verdict, { kind: 'conflict' }>
/** What is particular to a kind: its saga, its status, its deletion, what is watched once it is settled. */
export interface SagaKind<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable> {
  readonly kind: string
  /** The steps to where the spec wants the resource to be. */
  readonly steps: (resource: R) => readonly Step<View, S, Effects>[]
  /** What gets a deleted resource's money out before it goes, where its deletion says `withdraw`. They run in place of the steps. */
  readonly withdraw?: readonly Step<View, S, Effects>[]
  /** The same where it says `cancel`. */
  readonly cancel?: readonly Step<View, S, Effects>[]
  readonly statusOf: (resource: R) => S | undefined
  readonly isSuspended: (resource: R) => boolean
  readonly view: (resource: R, origin: Origin, status: S) => View
  readonly say: (resource: R, status: S, progress: Progress, now: Date) => S
  /** Whether something of it was signed before, as far as a status that was put right by the log tells: what a refusal says depends on it. */
  readonly hasSigned: (status: S) => boolean
  /** Phases that a resource only passes through: nobody acts on them or waits for them, and no event tells of them. */
  readonly passing: readonly string[]
  /** Reasons of conditions that stop nothing and that somebody should know of all the same: each is told once, when it comes up. */
  readonly warnings?: readonly Reason[]
  /**
   * Takes what versions before the log have left in status into the log, before status is put right by it and before anything is decided. @returns what
   * was taken in, in words for people, mostly nothing. @throws Halt while it can't be told: then nothing else is done
   */
  readonly takeIn?: (resource: R, origin: Origin, signal: AbortSignal) => Promise<readonly string[]>
  /**
   * Status is a mirror: what it shows of the log is put right before anything is read from it, whoever wrote it. The very same object comes back where
   * nothing differs. `origin` is undefined for a copy.
   */
  readonly mirror?: (resource: R, status: S, origin: Origin | undefined) => S
  readonly decideDeletion: (resource: R, status: S, origin: Origin | undefined, signal: AbortSignal) => Deletion | Promise<Deletion>
  /** How often a settled resource is looked at, in ms; undefined when there is nothing left to see. */
  readonly observeEvery: (status: S) => number | undefined
  readonly observe: (resource: R, status: S, signal: AbortSignal) => Promise<S>
}

/** How often a settled resource is looked at. */
export interface ObservationIntervals {
  /** While it becomes active, or leaves, in ms. */
  readonly activatingMs: number
  /** Once it is active, in ms. */
  readonly settledMs: number
}
