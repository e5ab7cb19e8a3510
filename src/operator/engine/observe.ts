import type { Result } from '../kube/controller.ts'
import type { KubeObject } from '../kube/objects.ts'
import { Priority } from '../kube/queue.ts'
import { pokeOf } from './acknowledge.ts'
import type { Context } from './context.ts'
import { observed, unobserved } from './observed.ts'
import { later } from './outcome.ts'
import type { Progress } from './progress.ts'
import type { AnyStatus, Halted } from './saga-kind.ts'
import { type EffectTable, nextStep } from './step.ts'
import { asHalt } from './walk.ts'

/** Why a look has failed; undefined of a conflict, and of what nobody knows: it is in the log. */
function verdictOf(error: unknown): Halted | undefined {
  try {
    const { verdict } = asHalt(error)
    return verdict.kind === 'conflict' ? undefined : verdict
  } catch {
    return undefined
  }
}

/** A settled resource is looked at now and then; the first time after a start at a random moment, so that a fleet doesn't ask all at once. */
export async function observe<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  { kind, deps, key, draft, log, signal, observations }: Context<R, S, View, Effects>,
  advanced: boolean,
  progress: Progress,
): Promise<Result> {
  const every = kind.observeEvery(draft.status)
  if (every === undefined) {
    await draft.flush(progress)
    // What it is held for may be settled where no watch sees it: on the chain.
    return progress.at === 'deleting' ? later(deps, deps.stallRecheckMs) : { kind: 'done' }
  }
  const poke = pokeOf(draft.resource)
  const isPoked = poke !== undefined && poke !== draft.status.lastHandledReconcileAt
  const known = observations.of(key)
  // Whole: a fraction would take a box of its own, for each resource of a fleet.
  const now = Math.round(deps.clock.monotonicMs())
  const due = advanced || isPoked || (known !== undefined && now - known >= every * 0.85)
  if (!due) {
    const at = known ?? Math.round(now - every + every * (deps.random ?? Math.random)())
    if (known === undefined) observations.note(key, at)
    await draft.flush(progress)
    return { kind: 'wait', afterMs: Math.max(at + every - now, 10), priority: Priority.low }
  }
  observations.note(key, now)
  const generation = draft.resource.metadata.generation ?? 0
  try {
    const before = draft.status
    draft.learn(observed(before, await kind.observe(draft.resource, before, signal), generation, deps.clock.now()))
    observations.succeeded(key)
  } catch (error) {
    signal.throwIfAborted()
    // What is settled stays so; the look is taken again next time.
    log.warn({ err: error }, 'a settled resource could not be looked at')
    const verdict = verdictOf(error)
    // One look that fails is no news, unless it takes a person for the next to succeed.
    const lasts = observations.failed(key, now) >= every * 0.8
    if (verdict?.kind === 'stall' || (verdict !== undefined && lasts))
      draft.learn(unobserved(draft.status, verdict, generation, deps.clock.now()))
  }
  const step = progress.at === 'settled' ? nextStep(kind.steps(draft.resource), draft.status) : undefined
  if (step !== undefined) {
    // What had been reached is not there any more.
    await draft.flush({ at: 'step', step: step.name })
    return { kind: 'again' }
  }
  await draft.flush(progress)
  return later(deps, kind.observeEvery(draft.status) ?? every)
}
