import type { Result } from '../kube/controller.ts'
import type { KubeObject } from '../kube/objects.ts'
import { Priority } from '../kube/queue.ts'
import type { Context } from './context.ts'
import { observe } from './observe.ts'
import { afterStall, later, soon } from './outcome.ts'
import type { Progress } from './progress.ts'
import type { AnyStatus, Halted } from './saga-kind.ts'
import { type EffectTable, nextStep, type Step } from './step.ts'
import type { Halt } from './verdict.ts'
import type { Walked } from './walk.ts'

/** How a resource stands of which nothing may be signed now: it is suspended, or was deleted. */
export type Standing = Extract<Progress, { at: 'suspended' | 'deleting' }>

/** Ends a visit after its walk: writes what was found out, and says when the next one comes. @throws Halt where it is tried again with growing delays */
export async function conclude<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  context: Context<R, S, View, Effects>,
  steps: readonly Step<View, S, Effects>[],
  { failed, advanced }: Walked,
  standing: Standing | undefined,
): Promise<Result> {
  const { deps, draft } = context
  const [name, halt] = worst(failed) ?? []
  if (halt !== undefined && name !== undefined) return concludeHalt(context, name, halt, failed, standing)
  const step = nextStep(steps, draft.status)
  if (standing !== undefined && (step !== undefined || advanced)) {
    await draft.flush(standing)
    // What was seen may decide anew: whether the resource may go, or is settled.
    if (advanced) return { kind: 'again' }
    // What it waits for may be settled where no watch sees it.
    return standing.at === 'deleting' ? later(deps, deps.stallRecheckMs) : { kind: 'done' }
  }
  if (step !== undefined) {
    await draft.flush({ at: 'step', step: step.name })
    return { kind: 'again' }
  }
  return observe(context, advanced, standing ?? { at: 'settled' })
}

async function concludeHalt<R extends KubeObject, S extends AnyStatus, View, Effects extends EffectTable>(
  { deps, draft, carry }: Context<R, S, View, Effects>,
  name: string,
  halt: Halt,
  failed: ReadonlyMap<string, Halt>,
  standing: Standing | undefined,
): Promise<Result> {
  const verdict = undeletable(halt.verdict as Halted, standing)
  if (verdict.kind === 'wait' && verdict.isBrief === true && standing === undefined) {
    if (draft.unsaved) carry()
    return { kind: 'wait', afterMs: verdict.afterMs, priority: Priority.high }
  }
  await draft.flush(standing !== undefined && verdict.kind !== 'stall' ? standing : { at: 'halted', step: name, verdict })
  const waits = [...failed.values()].flatMap(({ verdict: one }) => (one.kind === 'wait' ? [one.afterMs] : []))
  const soonest = Math.min(...waits)
  if (verdict.kind === 'wait') return soon(deps, verdict.afterMs)
  if (verdict.kind === 'stall') return afterStall(deps, verdict, soonest)
  if (Number.isFinite(soonest)) return soon(deps, soonest)
  throw halt
}

/** What keeps a deleted resource from going needs a person, who is told besides how to have it forgotten. */
const undeletable = (verdict: Halted, standing: Standing | undefined): Halted =>
  standing?.at === 'deleting' && verdict.kind === 'stall' ? { ...verdict, message: `${verdict.message} ${standing.message}` } : verdict

const weight = { conflict: 4, stall: 3, retry: 2, wait: 1 } as const
/** Of several that halted, the one that a person should see first. */
function worst(failed: ReadonlyMap<string, Halt>): [string, Halt] | undefined {
  return [...failed].sort(([, a], [, b]) => weight[b.verdict.kind] - weight[a.verdict.kind])[0]
}
