import { randomUUID } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import { jitter } from '../../lib/clock.ts'
import type { Condition } from '../../resources/conditions.ts'
import { FINALIZER, ORIGIN_ANNOTATION, RECONCILE_ANNOTATION } from '../../resources/meta.ts'
import type { Result } from '../kube/controller.ts'
import { isConflict, isNotFound } from '../kube/errors.ts'
import type { EventRecorder } from '../kube/events.ts'
import { changeMetadata } from '../kube/finalizers.ts'
import type { Informer } from '../kube/informer.ts'
import { diffMergePatch } from '../kube/merge-patch.ts'
import { type KubeObject, refOf } from '../kube/objects.ts'
import { Priority } from '../kube/queue.ts'
import type { ResourceClient } from '../kube/resource-client.ts'
import { classify } from './classify.ts'
import { createObservations } from './observations.ts'
import { type Origin, type OriginReading, originAnnotation, readOrigin } from './origin.ts'
import type { Progress } from './progress.ts'
import { type EffectTable, nextStep, type Step } from './step.ts'
import { Halt, stall, type Verdict } from './verdict.ts'
import { type Visit, WATCH_ONLY } from './visit.ts'

/** A status as every kind has it. */
interface AnyStatus {
  readonly phase?: string | undefined
  readonly conditions?: readonly Condition[] | undefined
}
type Halted = Exclude<Verdict, { kind: 'conflict' }>
type AnyDeletion =
  | { readonly do: 'release'; readonly because: string }
  | { readonly do: 'watch' | 'hold' | 'undo'; readonly message: string }

/** What is particular to a kind: its saga, its status, its deletion, what is watched once it is settled. */
export interface SagaKind<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable> {
  readonly kind: string
  /** The steps to where the spec wants the resource to be. */
  readonly steps: (resource: R) => readonly Step<View, S, Effects>[]
  /** What is to be taken back before a deleted resource goes, where its deletion says `undo`. They run in place of the steps. */
  readonly undo?: readonly Step<View, S, Effects>[]
  readonly statusOf: (resource: R) => S | undefined
  readonly isSuspended: (resource: R) => boolean
  readonly view: (resource: R, origin: Origin, status: S) => View
  readonly say: (resource: R, status: S, progress: Progress, now: Date) => S
  /** Phases that a resource only passes through: nobody acts on them or waits for them, and no event tells of them. */
  readonly passing: readonly string[]
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
  readonly decideDeletion: (resource: R, status: S, origin: Origin | undefined, signal: AbortSignal) => AnyDeletion | Promise<AnyDeletion>
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
  /** The log of one resource, with its kind, namespace, name and uid as fixed keys. */
  readonly logFor: (key: string) => VisitLog
}

export interface VisitLog {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  child(fields: object): VisitLog
}

type PerformAny = { readonly [name: string]: (args: never, visit: Visit, signal: AbortSignal) => Promise<unknown> }
/** More steps than any saga has, with some remade: a visit ends. */
const MAX_STEPS = 24

/**
 * The one interpreter: fresh object → next step → effect → evidence into status → …, until there is nothing to do now. Evidence is carried in
 * memory from step to step and written before anything that can't be taken back, and when the visit ends: steps that can be repeated cost no write.
 */
export function createReconciler<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  kind: SagaKind<R, S, View, Effects>,
  perform: PerformAny,
  deps: ReconcilerDeps<R>,
): (key: string, signal: AbortSignal) => Promise<Result> {
  const { client, informer, events, clock, fieldManager } = deps
  const random = deps.random ?? Math.random
  const point = (name: string, key: string) => deps.onPoint?.(name, key)
  const observations = createObservations()
  /** What a visit found out before a brief wait, for the next one: by key, with the version of the resource that it was found out for. */
  const unwritten = new Map<string, { readonly resourceVersion: string; readonly status: S }>()

  return async function reconcile(key, signal): Promise<Result> {
    const cached = informer.get(key)
    if (cached === undefined) {
      observations.forget(key)
      unwritten.delete(key)
      return { kind: 'done' }
    }
    try {
      return await visitResource(key, cached, signal)
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error) && !(error instanceof Halt && error.verdict.kind === 'conflict')) throw error
      // Stale: drop what was computed, read again, go on.
      try {
        informer.put(await client.get(refOf(key), signal))
      } catch (gone) {
        if (!isNotFound(gone)) throw gone
        return { kind: 'done' }
      }
      return { kind: 'wait', afterMs: jitter(50, random, 0.5), priority: Priority.high }
    }
  }

  async function visitResource(key: string, cached: R, signal: AbortSignal): Promise<Result> {
    let resource = cached
    let status = (kind.statusOf(resource) ?? {}) as S
    /** There is evidence that the API server doesn't have. */
    let unsaved = false
    const visit: Visit = new Map()
    const log = deps.logFor(key).child({ reconcileId: randomUUID().slice(0, 8) })

    /** Writes what differs, fenced, and goes on with the object that comes back. */
    async function flush(progress: Progress): Promise<void> {
      const before = kind.statusOf(resource)
      const next = kind.say(resource, status, progress, clock.now())
      const patch = diffMergePatch(before as Record<string, unknown> | undefined, next as Record<string, unknown>)
      unsaved = false
      if (patch === undefined) return
      deps.assertHeld()
      point('before status write', key)
      const { name, namespace, resourceVersion } = resource.metadata
      const written = await client.mergePatch(
        namespace === undefined ? { name } : { name, namespace },
        { status: patch },
        { resourceVersion, subresource: 'status', fieldManager },
        signal,
      )
      point('after status write', key)
      deps.onStatusWrite?.()
      informer.put(written)
      tell(written, before, next, progress, log)
      resource = written
      status = (kind.statusOf(written) ?? next) as S
    }

    const carried = unwritten.get(key)
    unwritten.delete(key)
    if (carried !== undefined && carried.resourceVersion === resource.metadata.resourceVersion) {
      status = carried.status
      unsaved = true
    }
    const origin = readOrigin(kind.kind, resource.metadata)
    const deleting = resource.metadata.deletionTimestamp !== undefined
    const finalized = resource.metadata.finalizers?.includes(FINALIZER) === true
    if (deleting && !finalized) return { kind: 'done' }
    const halted = await takeIn()
    if (halted !== undefined) return halted
    const mirrored = kind.mirror?.(resource, status, originIn(kind.kind, resource, origin)) ?? status
    unsaved ||= mirrored !== status
    status = mirrored

    if (origin.is === 'foreign') {
      // By its evidence, like any other: an annotation that somebody changed doesn't let a stake that holds money go.
      const decision = deleting ? await kind.decideDeletion(resource, status, undefined, signal) : undefined
      if (decision?.do === 'release') return release(resource, decision.because, signal)
      const halt = stall(
        'CopiedResource',
        `The annotation ${ORIGIN_ANNOTATION} says that this is a copy of ${origin.of}. To start afresh, remove it: kubectl annotate ${kind.kind.toLowerCase()} ${resource.metadata.name} -n ${resource.metadata.namespace ?? ''} ${ORIGIN_ANNOTATION}- ; to take over an existing stake, remove it and set spec.adopt.stakeId.`,
        false,
      )
      await flush({ at: 'halted', step: kind.steps(resource)[0]?.name ?? '', verdict: halt.verdict as Halted })
      return { kind: 'done' }
    }

    if (deleting) {
      const decision = await kind.decideDeletion(resource, status, origin.is === 'own' ? origin.origin : undefined, signal)
      if (decision.do === 'release') return release(resource, decision.because, signal)
      visit.set(WATCH_ONLY, true)
      if (decision.do === 'hold' || origin.is !== 'own') return hold(decision.message)
      return run(origin.origin, decision.message, decision.do === 'undo' ? kind.undo : undefined)
    }

    if (origin.is === 'absent' || !finalized) {
      deps.assertHeld()
      point('before marking', key)
      const marked = await changeMetadata(
        client,
        resource,
        {
          addFinalizer: FINALIZER,
          ...(origin.is === 'absent' ? { annotations: { [ORIGIN_ANNOTATION]: originAnnotation(resource.metadata) } } : {}),
        },
        signal,
        { fieldManager },
      )
      point('after marking', key)
      if (marked === undefined) return { kind: 'done' }
      informer.put(marked)
      resource = marked
    }
    const own = readOrigin(kind.kind, resource.metadata)
    if (own.is !== 'own') return { kind: 'again' }
    return run(own.origin, undefined, undefined)

    /** @returns how the visit ends where what is in status can't be taken in yet */
    async function takeIn(): Promise<Result | undefined> {
      if (origin.is !== 'own' || kind.takeIn === undefined) return undefined
      try {
        for (const text of await kind.takeIn(resource, origin.origin, signal)) {
          log.info({}, text)
          events.event(resource, { type: 'Normal', reason: 'Imported', action: 'Import', note: text })
        }
        return undefined
      } catch (error) {
        signal.throwIfAborted()
        const halt = asHalt(error)
        if (halt.verdict.kind === 'conflict') throw halt
        const { verdict } = halt
        await flush({ at: 'halted', step: 'Import', verdict })
        if (verdict.kind === 'retry') throw halt
        if (verdict.kind === 'wait') return { kind: 'wait', afterMs: jitter(verdict.afterMs, random), priority: Priority.high }
        return verdict.recheck
          ? { kind: 'wait', afterMs: jitter(verdict.recheckAfterMs ?? deps.stallRecheckMs, random), priority: Priority.low }
          : { kind: 'done' }
      }
    }

    async function run(
      by: Origin,
      deletionMessage: string | undefined,
      undo: readonly Step<View, S, Effects>[] | undefined,
    ): Promise<Result> {
      const steps = undo ?? kind.steps(resource)
      const watchOnly = deletionMessage !== undefined || kind.isSuspended(resource)
      if (watchOnly) visit.set(WATCH_ONLY, true)
      const idle = (): Progress => (deletionMessage !== undefined ? { at: 'deleting', message: deletionMessage } : { at: 'suspended' })
      const failed = new Map<string, Halt>()
      let advanced = false
      for (let count = 0; count < MAX_STEPS; count++) {
        const step = steps.find(
          (candidate) =>
            !candidate.done(status) && !failed.has(candidate.name) && (!watchOnly || undo !== undefined || candidate.watches(status)),
        )
        if (step === undefined) break
        // Evidence only: that a stalled or failing step is tried once more is no news, and would be taken back a moment later.
        if (step.writeAhead && unsaved) await flush({ at: 'step', step: step.name })
        deps.assertHeld()
        point(`before ${step.effect}`, key)
        const startedAt = clock.monotonicMs()
        try {
          const effect = perform[step.effect]
          if (effect === undefined) throw new Error(`no effect ${step.effect}`)
          const result = await effect(step.args(kind.view(resource, by, status)) as never, visit, signal)
          point(`after ${step.effect}`, key)
          deps.onStep?.(step.name, 'done', clock.monotonicMs() - startedAt)
          status = step.absorb(status, result as never)
          advanced = true
          unsaved = true
          log.debug({ step: step.name }, 'step done')
        } catch (error) {
          signal.throwIfAborted()
          const halt = asHalt(error)
          deps.onStep?.(step.name, halt.verdict.kind === 'conflict' ? 'conflict' : halt.verdict.reason, clock.monotonicMs() - startedAt)
          if (halt.verdict.kind === 'conflict') throw halt
          if (halt.evidence !== undefined) {
            status = step.absorb(status, halt.evidence as never)
            unsaved = true
          }
          failed.set(step.name, halt)
          if (!step.independent) break
        }
      }
      return conclude(steps, failed, advanced, watchOnly, idle)
    }

    async function conclude(
      steps: readonly Step<View, S, Effects>[],
      failed: ReadonlyMap<string, Halt>,
      advanced: boolean,
      watchOnly: boolean,
      idle: () => Progress,
    ): Promise<Result> {
      const [name, halt] = worst(failed) ?? []
      if (halt !== undefined && name !== undefined) {
        const verdict = undeletable(halt.verdict as Halted, idle())
        if (verdict.kind === 'wait' && verdict.isBrief === true && !watchOnly) {
          if (unsaved) unwritten.set(key, { resourceVersion: resource.metadata.resourceVersion ?? '', status })
          return { kind: 'wait', afterMs: verdict.afterMs, priority: Priority.high }
        }
        await flush(watchOnly && verdict.kind !== 'stall' ? idle() : { at: 'halted', step: name, verdict })
        const soonest = Math.min(
          ...[...failed.values()].map(({ verdict }) => (verdict.kind === 'wait' ? verdict.afterMs : Number.POSITIVE_INFINITY)),
        )
        switch (verdict.kind) {
          case 'wait':
            return { kind: 'wait', afterMs: jitter(verdict.afterMs, random), priority: Priority.high }
          case 'stall':
            return verdict.recheck
              ? {
                  kind: 'wait',
                  afterMs: jitter(Math.min(verdict.recheckAfterMs ?? deps.stallRecheckMs, soonest), random),
                  priority: Priority.low,
                }
              : { kind: 'done' }
          case 'retry':
            if (Number.isFinite(soonest)) return { kind: 'wait', afterMs: jitter(soonest, random), priority: Priority.high }
            throw halt
        }
      }
      const step = nextStep(steps, status)
      if (watchOnly && (step !== undefined || advanced)) {
        await flush(idle())
        // What was seen may decide anew: whether the resource may go, or is settled.
        if (advanced) return { kind: 'again' }
        // What it waits for may be settled where no watch sees it.
        return idle().at === 'deleting'
          ? { kind: 'wait', afterMs: jitter(deps.stallRecheckMs, random), priority: Priority.low }
          : { kind: 'done' }
      }
      if (step !== undefined) {
        await flush({ at: 'step', step: step.name })
        return { kind: 'again' }
      }
      return observe(advanced, watchOnly ? idle() : { at: 'settled' })
    }

    async function hold(message: string): Promise<Result> {
      return observe(false, { at: 'deleting', message })
    }

    /** A settled resource is looked at now and then; the first time after a start at a random moment, so that a fleet doesn't ask all at once. */
    async function observe(advanced: boolean, progress: Progress): Promise<Result> {
      const every = kind.observeEvery(status)
      const poke = resource.metadata.annotations?.[RECONCILE_ANNOTATION]
      const known = observations.of(key)
      // Whole: a fraction would take a box of its own, for each resource of a fleet.
      const now = Math.round(clock.monotonicMs())
      if (every === undefined) {
        await flush(progress)
        // What it is held for may be settled where no watch sees it: on the chain.
        if (progress.at === 'deleting') return { kind: 'wait', afterMs: jitter(deps.stallRecheckMs, random), priority: Priority.low }
        return { kind: 'done' }
      }
      const due = advanced || (known !== undefined && (now - known.at >= every * 0.85 || known.poke !== poke))
      if (!due) {
        const at = known?.at ?? Math.round(now - every + every * random())
        if (known === undefined) observations.note(key, { at, poke })
        await flush(progress)
        return { kind: 'wait', afterMs: Math.max(at + every - now, 10), priority: Priority.low }
      }
      observations.note(key, { at: now, poke })
      try {
        status = await kind.observe(resource, status, signal)
      } catch (error) {
        signal.throwIfAborted()
        // What is settled stays so; the look is taken again next time.
        log.warn({ err: error }, 'a settled resource could not be looked at')
      }
      const step = progress.at === 'settled' ? nextStep(kind.steps(resource), status) : undefined
      if (step !== undefined) {
        // What had been reached is not there any more.
        await flush({ at: 'step', step: step.name })
        return { kind: 'again' }
      }
      await flush(progress)
      return { kind: 'wait', afterMs: jitter(kind.observeEvery(status) ?? every, random), priority: Priority.low }
    }

    async function release(object: R, because: string, abort: AbortSignal): Promise<Result> {
      deps.assertHeld()
      point('before release', key)
      events.event(object, { type: 'Normal', reason: 'Released', action: 'Delete', note: `The finalizer is removed: ${because}.` })
      const left = await changeMetadata(client, object, { removeFinalizer: FINALIZER }, abort, { fieldManager })
      point('after release', key)
      if (left !== undefined) informer.put(left)
      return { kind: 'done' }
    }
  }

  /** Events: one per change to a phase that somebody waits for or acts on, and a warning when a resource comes to need a person. */
  function tell(resource: R, before: S | undefined, after: S, progress: Progress, log: VisitLog): void {
    const stalled = (status: AnyStatus | undefined) => status?.conditions?.find(({ type }) => type === 'Stalled')
    const now = stalled(after)
    const was = stalled(before)
    if (now?.status === 'True' && (was?.status !== 'True' || was.message !== now.message)) {
      events.event(resource, {
        type: 'Warning',
        reason: now.reason,
        action: progress.at === 'halted' && progress.step !== '' ? progress.step : 'Reconcile',
        note: now.message,
      })
      log.warn({ reason: now.reason, step: progress.at === 'halted' ? progress.step : undefined }, `stalled: ${now.message}`)
    } else if (after.phase !== before?.phase && after.phase !== undefined) {
      const ready = after.conditions?.find(({ type }) => type === 'Ready')
      if (!kind.passing.includes(after.phase))
        events.event(resource, {
          type: 'Normal',
          reason: after.phase,
          action: progress.at === 'step' || progress.at === 'halted' ? progress.step || 'Reconcile' : 'Reconcile',
          note: ready?.message ?? after.phase,
        })
      log.info({ phase: after.phase }, `now ${after.phase}`)
    }
  }
}

/** What keeps a deleted resource from going needs a person, who is told besides how to have it forgotten. */
const undeletable = (verdict: Halted, progress: Progress): Halted =>
  progress.at === 'deleting' && verdict.kind === 'stall' ? { ...verdict, message: `${verdict.message} ${progress.message}` } : verdict

/** Whose records a resource may show: its own. One that was never marked has none but those of its own UID; a copy shows what stands at its place. */
function originIn(kind: string, { metadata: { uid, namespace = '', name } }: KubeObject, reading: OriginReading): Origin | undefined {
  if (reading.is === 'own') return reading.origin
  return reading.is === 'absent' ? { uid, kind, namespace, name } : undefined
}

function asHalt(error: unknown): Halt {
  if (error instanceof Halt) return error
  return new Halt(classify(error), { cause: error })
}

const weight = { conflict: 4, stall: 3, retry: 2, wait: 1 } as const
/** Of several that halted, the one that a person should see first. */
function worst(failed: ReadonlyMap<string, Halt>): [string, Halt] | undefined {
  return [...failed].sort(([, a], [, b]) => weight[b.verdict.kind] - weight[a.verdict.kind])[0]
}
