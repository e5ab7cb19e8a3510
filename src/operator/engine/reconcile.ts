import { randomUUID } from 'node:crypto'
import { jitter } from '../../lib/clock.ts'
import { FINALIZER, ORIGIN_ANNOTATION } from '../../resources/meta.ts'
import type { Result } from '../kube/controller.ts'
import { isConflict, isNotFound } from '../kube/errors.ts'
import { type KubeObject, refOf } from '../kube/objects.ts'
import { Priority } from '../kube/queue.ts'
import { readThrough } from '../kube/read-through.ts'
import { conclude, type Standing } from './conclude.ts'
import type { Context } from './context.ts'
import type { Deletion } from './deletion.ts'
import type { ReconcilerDeps } from './deps.ts'
import { createDraft } from './draft.ts'
import { createObservations } from './observations.ts'
import { observe } from './observe.ts'
import { type Origin, type OriginReading, readOrigin } from './origin.ts'
import { afterStall, soon } from './outcome.ts'
import { createReminders } from './reminders.ts'
import type { AnyStatus, Halted, SagaKind } from './saga-kind.ts'
import { type EffectTable, nextStep, type Perform, type Step } from './step.ts'
import { Halt, stall } from './verdict.ts'
import { WATCH_ONLY } from './visit.ts'
import { asHalt, walk } from './walk.ts'

/** What looks after the resources of one kind. */
export interface Reconciler<R> {
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<Result>
  /**
   * The resource as the API server has it at this moment, past the cache, with what is known of it in its status: a write that the API server takes for the
   * version in hand proves that there is no newer one, and where nothing is to be written it is read. Undefined where it is gone.
   */
  readonly show: (key: string, signal: AbortSignal) => Promise<R | undefined>
}

/**
 * The one interpreter: fresh object → next step → effect → evidence into status → …, until there is nothing to do now. Evidence is carried in
 * memory from step to step and written before anything that can't be taken back, and when the visit ends: steps that can be repeated cost no write.
 */
export function createReconciler<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  kind: SagaKind<R, S, View, Effects>,
  perform: Perform<Effects>,
  deps: ReconcilerDeps<R>,
): Reconciler<R> {
  const { client, informer } = deps
  const observations = createObservations()
  const reminders = createReminders()
  const lettingGo = new Map<string, number>()
  /** What a visit found out before a brief wait, for the next one: by key, with the version of the resource that it was found out for. */
  const unwritten = new Map<string, { readonly resourceVersion: string | undefined; readonly status: S }>()

  function begin(key: string, cached: R, signal: AbortSignal): Context<R, S, View, Effects> {
    const log = deps.logFor(key).child({ reconcileId: randomUUID().slice(0, 8) })
    const draft = createDraft(kind, deps, { key, resource: cached, log, signal, reminders })
    const carried = unwritten.get(key)
    unwritten.delete(key)
    if (carried !== undefined && carried.resourceVersion === cached.metadata.resourceVersion) draft.learn(carried.status)
    const carry = () => unwritten.set(key, { resourceVersion: draft.resource.metadata.resourceVersion, status: draft.status })
    return { kind, perform, deps, key, draft, visit: new Map(), log, signal, observations, lettingGo, carry }
  }

  const read = (key: string, signal: AbortSignal): Promise<R | undefined> => readThrough({ client, cache: informer }, refOf(key), signal)

  return {
    async reconcile(key, signal) {
      const cached = informer.get(key)
      if (cached === undefined) {
        observations.forget(key)
        reminders.forget(key)
        lettingGo.delete(key)
        unwritten.delete(key)
        return { kind: 'done' }
      }
      try {
        return await visitResource(begin(key, cached, signal))
      } catch (error) {
        if (!isConflict(error) && !isNotFound(error) && !(error instanceof Halt && error.verdict.kind === 'conflict')) throw error
        // Stale: drop what was computed, read again, go on.
        if ((await read(key, signal)) === undefined) return { kind: 'done' }
        return { kind: 'wait', afterMs: jitter(50, deps.random, 0.5), priority: Priority.high }
      }
    },

    async show(key, signal) {
      const cached = informer.get(key)
      const origin = cached && readOrigin(kind.kind, cached.metadata)
      if (cached === undefined || origin?.is !== 'own' || cached.metadata.deletionTimestamp !== undefined) return read(key, signal)
      const { draft, carry } = begin(key, cached, signal)
      draft.learn(kind.mirror?.(cached, draft.status, origin.origin) ?? draft.status)
      if (!draft.unsaved) return read(key, signal)
      // What it has been waiting for is its next visit's to take back.
      if (!isUnderWay(kind.statusOf(cached))) {
        carry()
        return read(key, signal)
      }
      try {
        const step = nextStep(kind.steps(cached), draft.status)?.name ?? ''
        // ▸ Only what the API server has answered is known to be there now.
        if (await draft.flush({ at: 'step', step })) return draft.resource
      } catch (error) {
        if (!isConflict(error) && !isNotFound(error)) throw error
      }
      return read(key, signal)
    },
  }
}

/** Nothing is told of it but that it is under way. */
const isUnderWay = (status: AnyStatus | undefined): boolean => {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  return ready === undefined || ready.reason === 'Pending' || ready.reason === 'InProgress'
}

async function visitResource<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  context: Context<R, S, View, Effects>,
): Promise<Result> {
  const { kind, draft } = context
  const { metadata } = draft.resource
  const origin = readOrigin(kind.kind, metadata)
  const isDeleted = metadata.deletionTimestamp !== undefined
  const isFinalized = metadata.finalizers?.includes(FINALIZER) === true
  if (isDeleted && !isFinalized) return { kind: 'done' }
  const halted = origin.is === 'own' ? await takeIn(context, origin.origin) : undefined
  if (halted !== undefined) return halted
  draft.learn(kind.mirror?.(draft.resource, draft.status, originIn(kind.kind, draft.resource, origin)) ?? draft.status)

  if (origin.is === 'foreign') return visitCopy(context, origin.says, isDeleted)
  if (isDeleted) return visitDeleted(context, origin.is === 'own' ? origin.origin : undefined)
  if ((origin.is === 'absent' || !isFinalized) && !(await draft.mark())) return { kind: 'done' }
  const own = readOrigin(kind.kind, draft.resource.metadata)
  if (own.is !== 'own') return { kind: 'again' }
  return run(context, own.origin, kind.isSuspended(draft.resource) ? { at: 'suspended' } : undefined)
}

/** What versions before the log have left. @returns how the visit ends where it can't be taken in yet */
async function takeIn<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  { kind, deps, draft, log, signal }: Context<R, S, View, Effects>,
  origin: Origin,
): Promise<Result | undefined> {
  if (kind.takeIn === undefined) return undefined
  try {
    for (const text of await kind.takeIn(draft.resource, origin, signal)) {
      log.info({}, text)
      deps.events.event(draft.resource, { type: 'Normal', reason: 'Imported', action: 'Import', note: text })
    }
    return undefined
  } catch (error) {
    signal.throwIfAborted()
    const halt = asHalt(error)
    const { verdict } = halt
    if (verdict.kind === 'conflict') throw halt
    await draft.flush({ at: 'halted', step: 'Import', verdict })
    if (verdict.kind === 'retry') throw halt
    return verdict.kind === 'wait' ? soon(deps, verdict.afterMs) : afterStall(deps, verdict)
  }
}

/** One whose annotation names another resource: it goes by its evidence, like any other, and does nothing. */
async function visitCopy<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  context: Context<R, S, View, Effects>,
  says: string,
  isDeleted: boolean,
): Promise<Result> {
  const { kind, draft, signal } = context
  // An annotation that somebody changed doesn't let a stake that holds money go.
  const decision = isDeleted ? await kind.decideDeletion(draft.resource, draft.status, undefined, signal) : undefined
  if (decision?.do === 'release' || decision?.do === 'cancel') {
    await draft.release(becauseOf(decision))
    return { kind: 'done' }
  }
  const { name, namespace = '' } = draft.resource.metadata
  return standStill(
    context,
    stall(
      'CopiedResource',
      `${says} To start afresh, remove it: kubectl annotate ${kind.kind.toLowerCase()} ${name} -n ${namespace} ${ORIGIN_ANNOTATION}- ; to take over an existing stake, remove it and set spec.adopt.stakeId.`,
      false,
    ),
  )
}

/** No step is done, and a person is told why. */
async function standStill<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  { kind, deps, draft }: Context<R, S, View, Effects>,
  why: Halt,
): Promise<Result> {
  const verdict = why.verdict as Halted & { readonly kind: 'stall' }
  await draft.flush({ at: 'halted', step: kind.steps(draft.resource)[0]?.name ?? '', verdict })
  return afterStall(deps, verdict)
}

/** Why one goes that cancels nothing: what a copy asks for at the staking API is another's. */
const becauseOf = (decision: Extract<Deletion, { do: 'release' | 'cancel' }>): string =>
  decision.do === 'release' ? decision.because : (decision.orRelease ?? 'nothing of it can land, and it has no origin of its own')

async function visitDeleted<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  context: Context<R, S, View, Effects>,
  origin: Origin | undefined,
): Promise<Result> {
  const { kind, draft, visit, signal } = context
  const decision = await kind.decideDeletion(draft.resource, draft.status, origin, signal)
  if (decision.do === 'release' || (decision.do === 'cancel' && origin === undefined)) {
    await draft.release(becauseOf(decision))
    return { kind: 'done' }
  }
  if (decision.do === 'ask') return standStill(context, stall(decision.reason, decision.message))
  visit.set(WATCH_ONLY, true)
  const standing = { at: 'deleting', message: decision.message } as const
  if (decision.do === 'hold' || origin === undefined) return observe(context, false, standing)
  if (decision.do === 'cancel' && decision.orRelease !== undefined) return cancelOrRelease(context, origin, decision.orRelease)
  return run(context, origin, standing, decision.do === 'watch' ? undefined : kind[decision.do])
}

/** So long what passes may keep one that a person has let go, in ms: the staking API or a node is away for a moment. */
const CANCEL_PATIENCE_MS = 60_000

/** What it has asked for is cancelled first, at the least once; then it goes, whatever came of that. */
async function cancelOrRelease<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  context: Context<R, S, View, Effects>,
  origin: Origin,
  because: string,
): Promise<Result> {
  const { kind, deps, key, draft, lettingGo } = context
  const now = deps.clock.monotonicMs()
  const since = lettingGo.get(key) ?? now
  lettingGo.set(key, since)
  const steps = kind.cancel ?? []
  const walked = await walk(context, origin, steps, () => true)
  const standing = {
    at: 'deleting',
    message:
      'Deleted, as was confirmed: what it has asked for is being cancelled at the staking API. It goes soon, whatever comes of that.',
  } as const
  const verdict = [...walked.failed.values()].at(-1)?.verdict
  if (verdict === undefined || verdict.kind === 'conflict') {
    await draft.release(because)
    return { kind: 'done' }
  }
  if (verdict.kind !== 'stall' && now - since < CANCEL_PATIENCE_MS) return conclude(context, steps, walked, standing)
  await draft.release(because, `What it has asked for could not be cancelled at the staking API, and stays there (${verdict.reason})`)
  return { kind: 'done' }
}

/** Its steps, or what is taken back before it goes. Where it stands, only what watches is done. */
async function run<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  context: Context<R, S, View, Effects>,
  by: Origin,
  standing: Standing | undefined,
  undo?: readonly Step<View, S, Effects>[],
): Promise<Result> {
  const { kind, draft, visit } = context
  const steps = undo ?? kind.steps(draft.resource)
  if (standing !== undefined) visit.set(WATCH_ONLY, true)
  const mayStep = (step: Step<View, S, Effects>): boolean => standing === undefined || undo !== undefined || step.watches(draft.status)
  return conclude(context, steps, await walk(context, by, steps, mayStep), standing)
}

/** Whose records a resource may show: its own. One that was never marked has none but those of its own UID; a copy shows what stands at its place. */
function originIn(kind: string, { metadata: { uid, namespace = '', name } }: KubeObject, reading: OriginReading): Origin | undefined {
  if (reading.is === 'own') return reading.origin
  return reading.is === 'absent' ? { uid, kind, namespace, name } : undefined
}
