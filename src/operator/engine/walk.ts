import type { KubeObject } from '../kube/objects.ts'
import { classify } from './classify.ts'
import type { Context } from './context.ts'
import type { Origin } from './origin.ts'
import type { AnyStatus } from './saga-kind.ts'
import type { EffectTable, Step } from './step.ts'
import { Halt } from './verdict.ts'

/** More steps than any saga has, with some remade: a visit ends. */
const MAX_STEPS = 24

/** How far a walk came. */
export interface Walked {
  /** By the step's name. */
  readonly failed: ReadonlyMap<string, Halt>
  /** Some step was done. */
  readonly advanced: boolean
}

export function asHalt(error: unknown): Halt {
  if (error instanceof Halt) return error
  return new Halt(classify(error), { cause: error })
}

/**
 * Takes one step after another: those that `may` be taken and whose evidence is missing, until one halts or none is left. Evidence is carried in memory from
 * step to step and written before anything that can't be taken back.
 */
export async function walk<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  context: Context<R, S, View, Effects>,
  by: Origin,
  steps: readonly Step<View, S, Effects>[],
  may: (step: Step<View, S, Effects>) => boolean,
): Promise<Walked> {
  const { draft } = context
  const failed = new Map<string, Halt>()
  let advanced = false
  for (let count = 0; count < MAX_STEPS; count++) {
    const step = steps.find((one) => !one.done(draft.status) && !failed.has(one.name) && may(one))
    if (step === undefined) break
    // Evidence only: that a stalled or failing step is tried once more is no news, and would be taken back a moment later.
    if (step.writeAhead && draft.unsaved) await draft.flush({ at: 'step', step: step.name })
    const halt = await take(context, by, step)
    if (halt === undefined) advanced = true
    else {
      failed.set(step.name, halt)
      if (!step.independent) break
    }
  }
  return { failed, advanced }
}

/** @returns why it isn't done @throws Halt (conflict) where what was read is stale */
async function take<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  { kind, perform, deps, key, draft, visit, log, signal }: Context<R, S, View, Effects>,
  by: Origin,
  step: Step<View, S, Effects>,
): Promise<Halt | undefined> {
  deps.assertHeld()
  deps.onPoint?.(`before ${step.effect}`, key)
  const startedAt = deps.clock.monotonicMs()
  const told = (outcome: string): void => deps.onStep?.(step.name, outcome, deps.clock.monotonicMs() - startedAt)
  try {
    const absorbed = await step.take(perform, kind.view(draft.resource, by, draft.status), visit, signal)
    deps.onPoint?.(`after ${step.effect}`, key)
    told('done')
    draft.learn(absorbed(draft.status))
    log.debug({ step: step.name }, 'step done')
    return undefined
  } catch (error) {
    signal.throwIfAborted()
    const halt = asHalt(error)
    told(halt.verdict.kind === 'conflict' ? 'conflict' : halt.verdict.reason)
    if (halt.verdict.kind === 'conflict') throw halt
    if (halt.evidence !== undefined) draft.learn(step.learn(draft.status, halt.evidence))
    return halt
  }
}
