import { type Condition, findCondition, OBSERVED } from '../../resources/conditions.ts'
import { reasons, warnAfterMs } from '../../resources/reasons.ts'

/** Where a resource stands, in the order in which people want to see them: what needs somebody comes first. */
export const states = ['Slashed', 'Stalled', 'Waiting', 'Deleting', 'InProgress', 'NotSeen', 'Suspended', 'Ready'] as const
export type State = (typeof states)[number]

export const stateLabels: Readonly<Record<State, string>> = {
  Slashed: 'Slashed',
  Stalled: 'Stalled',
  Waiting: 'Waiting',
  Deleting: 'Deleting',
  InProgress: 'In progress',
  NotSeen: 'Not seen yet',
  Suspended: 'Suspended',
  Ready: 'Ready',
}

/** What each state means, for the page's own help. */
export const stateMeanings: Readonly<Record<State, string>> = {
  Slashed: 'The validator was slashed.',
  Stalled: 'A person must act: the message says what to do.',
  Waiting: 'It waits for something that may need a person if it lasts, such as funds or a node.',
  Deleting: 'It is being deleted, and stays as long as money or a transaction is held by it.',
  InProgress: 'The operator works on it, or waits for the chain.',
  NotSeen: 'The operator has not looked at it yet.',
  Suspended: 'It is suspended, or only planned: nothing is signed or sent for it.',
  Ready: 'It is where it should be.',
}

/** A resource as far as its standing goes. */
export interface Standable {
  readonly metadata: { readonly deletionTimestamp?: string }
  readonly spec?: unknown
  readonly status?: { readonly conditions?: readonly Condition[] | undefined } | undefined
}

export interface StandingAt {
  readonly state: State
  /** Of the condition that decides it; '' where there is none. */
  readonly reason: string
  readonly message: string
}

const suspensions: ReadonlySet<string> = new Set(['Suspended', 'Planned', 'SignerSuspended', 'OperatorSuspended'])
const mayNeedSomebody = (reason: string): boolean =>
  Object.hasOwn(reasons, reason) && warnAfterMs(reason as keyof typeof reasons) !== undefined

/** Where a resource of any kind stands, by its conditions, and in the words of the condition that decides. */
export function standingOf({ metadata, status }: Standable): StandingAt {
  const conditions = status?.conditions ?? []
  const trueOne = (type: string) => conditions.find((one) => one.type === type && one.status === 'True')
  const at = (state: State, condition?: Condition): StandingAt => ({
    state,
    reason: condition?.reason ?? '',
    message: condition?.message ?? '',
  })
  const ready = findCondition(conditions, 'Ready')
  const slashed = trueOne('Slashed')
  if (slashed !== undefined) return at('Slashed', slashed)
  const stalled = trueOne('Stalled') ?? trueOne('KeyUsedElsewhere')
  if (stalled !== undefined) return at('Stalled', stalled)
  if (metadata.deletionTimestamp !== undefined) return at('Deleting', ready)
  if (ready === undefined) return at('NotSeen')
  // Of what is ready otherwise: it can't be looked at any more, or a signer can't pay what waits.
  const doubts = [findCondition(conditions, OBSERVED), findCondition(conditions, 'Funded')].find(
    (one) => one !== undefined && one.status !== 'True',
  )
  if (ready.status === 'True') return doubts === undefined ? at('Ready', ready) : at('Waiting', doubts)
  if (suspensions.has(ready.reason)) return at('Suspended', ready)
  return at(mayNeedSomebody(ready.reason) ? 'Waiting' : 'InProgress', ready)
}
