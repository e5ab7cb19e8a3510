import type { Instant } from '../../lib/clock.ts'
import { type Condition, type Statement, withCondition } from '../../resources/conditions.ts'
import type { Reason } from '../../resources/reasons.ts'
import type { Verdict } from './verdict.ts'

/** How a visit ended, for the conditions. */
export type Progress =
  /** The step that is next. */
  | { readonly at: 'step'; readonly step: string }
  | { readonly at: 'halted'; readonly step: string; readonly verdict: Exclude<Verdict, { kind: 'conflict' }> }
  | { readonly at: 'suspended' }
  | { readonly at: 'deleting'; readonly message: string }
  /** Nothing is left to do. */
  | { readonly at: 'settled' }

export const say = (status: Statement['status'], reason: Reason, message: string): Statement => ({ status, reason, message })
export const pending = say('Unknown', 'Pending', 'Not reached yet.')
export const notStalled = say('False', 'InProgress', 'Nothing needs a person.')
const notStalledAtRest = say('False', 'Settled', 'Nothing needs a person.')
export const idle = say('False', 'Settled', 'Nothing is under way.')

/** The three that tell how it goes, in the terms of kstatus. */
export type Readiness = Readonly<Record<'Ready' | 'Reconciling' | 'Stalled', Statement>>

/** It is where it should be, and nothing is under way. */
export const reached = (Ready: Statement): Readiness => ({ Ready, Reconciling: idle, Stalled: notStalledAtRest })
/** It has come to an end that it should not: nothing is under way, and a person should know. */
export const ended = (reason: Reason, message: string): Readiness => ({
  Ready: say('False', reason, message),
  Reconciling: idle,
  Stalled: say('True', reason, message),
})

/** All conditions of a kind as they are stated now; the very same list where nothing is new, so that nothing is written that doesn't change. */
export function stated<Type extends string>(
  before: readonly Condition[] | undefined,
  types: readonly Type[],
  statements: Readonly<Record<Type, Statement>>,
  generation: number,
  now: Instant,
): Condition[] {
  let conditions = before ?? []
  for (const type of types) conditions = withCondition(conditions, type, statements[type], generation, now)
  return conditions as Condition[]
}

/** What a kind says of a resource. `conditionOf`: which condition a step's trouble is shown on; `phase`: one word for people. */
export interface Said<Domain extends string> {
  readonly types: readonly (Domain | keyof Readiness)[]
  readonly evidence: Readonly<Record<Domain, Statement>>
  readonly conditionOf: (step: string) => Domain | undefined
  readonly readiness: Readiness
  readonly phase: string
}

/**
 * The whole status for what has been seen: evidence, conditions, phase, observedGeneration. The same inputs give the same list of conditions by identity, so
 * that nothing is written that doesn't change.
 */
export function wholeStatus<Status extends { readonly conditions?: readonly Condition[] | undefined }, Domain extends string>(
  { generation = 0 }: { readonly generation?: number | undefined },
  status: Status,
  { types, evidence, conditionOf, readiness, phase }: Said<Domain>,
  progress: Progress,
  now: Instant,
): Status & { readonly observedGeneration: number; readonly phase: string; readonly conditions: Condition[] } {
  const statements = { ...withTrouble(evidence, progress, conditionOf), ...readiness } as Record<Domain | keyof Readiness, Statement>
  const conditions = stated(status.conditions, types, statements, generation, now)
  return { ...status, observedGeneration: generation, phase, conditions }
}

/** What the evidence says, with a step's trouble shown on the condition that the step is for, unless that was reached before. */
function withTrouble<Domain extends string>(
  evidence: Readonly<Record<Domain, Statement>>,
  progress: Progress,
  conditionOf: (step: string) => Domain | undefined,
): Record<Domain, Statement> {
  const troubled = progress.at === 'halted' ? conditionOf(progress.step) : undefined
  if (progress.at !== 'halted' || troubled === undefined || evidence[troubled].status === 'True') return evidence
  const { kind, reason, message } = progress.verdict
  return { ...evidence, [troubled]: say(kind === 'stall' ? 'False' : 'Unknown', reason, message) }
}

/**
 * How it goes with a resource that is not settled. `reached`: it is where it should be all the same, whatever is under way besides;
 * `stepMessage`: what is done in the step that is next; `isNew`: nothing was ever said of it; `mayLand`: what was signed and may still land, as a sentence.
 */
export function underWay(
  progress: Exclude<Progress, { at: 'settled' }>,
  {
    reached,
    stepMessage,
    isNew,
    mayLand,
  }: {
    readonly reached?: Statement | undefined
    readonly stepMessage: string
    readonly isNew: boolean
    readonly mayLand?: string | undefined
  },
): Readiness {
  switch (progress.at) {
    case 'step':
      return {
        Ready: reached ?? (isNew ? say('Unknown', 'Pending', 'Just seen; work begins.') : say('False', 'InProgress', stepMessage)),
        Reconciling: say('True', 'InProgress', stepMessage),
        Stalled: notStalled,
      }
    case 'suspended': {
      const message =
        mayLand === undefined
          ? 'spec.suspend is true: nothing is created, signed or sent.'
          : `spec.suspend is true: nothing more is signed or sent. ${mayLand}`
      const suspended = say('False', 'Suspended', message)
      return { Ready: reached ?? suspended, Reconciling: suspended, Stalled: notStalled }
    }
    case 'deleting':
      return {
        Ready: say('False', 'Deleting', progress.message),
        Reconciling: say('True', 'Deleting', progress.message),
        Stalled: notStalled,
      }
    case 'halted': {
      const { kind, reason, message } = progress.verdict
      const Ready = reached ?? say('False', reason, message)
      // Nobody works on it, and nobody has to do anything: as one that is suspended.
      if (reason === 'Planned') return { Ready, Reconciling: say('False', reason, message), Stalled: notStalled }
      return kind === 'stall'
        ? { Ready, Reconciling: waitsForPerson(reason), Stalled: say('True', reason, message) }
        : { Ready, Reconciling: say('True', reason, message), Stalled: notStalled }
    }
  }
}

/** Everything was verified, and its resource asks for nothing more (spec.mode: Plan). */
export const isPlanned = (progress: Progress): boolean => progress.at === 'halted' && progress.verdict.reason === 'Planned'

export const waitsForPerson = (reason: Reason): Statement => say('False', reason, 'It waits for a person: see Stalled.')
