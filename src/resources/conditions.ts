import { z } from 'zod'
import { listMap, time, wholeNumber } from './schema.ts'

export type ConditionStatus = 'True' | 'False' | 'Unknown'

/** The API server refuses a whole status for one message that is longer, in characters. */
const MESSAGE_MAX = 32_768

/** metav1.Condition. */
export const condition = z.object({
  type: z
    .string()
    .max(316)
    .regex(/^[A-Z][A-Za-z]*$/)
    .describe('Name of the condition.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('True, False or Unknown.'),
  observedGeneration: wholeNumber().optional().describe('Generation of the spec that this was said of.'),
  lastTransitionTime: time().describe('When the status last changed.'),
  reason: z
    .string()
    .min(1)
    .max(1024)
    .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/)
    .describe('One word for programs.'),
  message: z.string().max(MESSAGE_MAX).describe('What happened and what a person can do.'),
})
export type Condition = z.output<typeof condition>

export const conditions = z.array(condition).max(16).meta(listMap('type')).optional().describe('The state of this resource, by type.')

/** The condition of what is settled that says whether it still can be looked at. */
export const OBSERVED = 'Observed'

/** What a condition says, before it has a time. */
export interface Statement {
  readonly status: ConditionStatus
  readonly reason: string
  readonly message: string
}

/**
 * The list with one condition set. Its time moves only when its status does (the Kubernetes API conventions); where nothing changes, the very
 * same list comes back, so that callers can tell by identity that there is nothing to write. A message that is too long is cut.
 */
export function withCondition(
  list: readonly Condition[],
  type: string,
  next: Statement,
  observedGeneration: number,
  now: Date,
): readonly Condition[] {
  const message = cut(next.message)
  const index = list.findIndex((entry) => entry.type === type)
  const old = list[index]
  if (
    old &&
    old.status === next.status &&
    old.reason === next.reason &&
    old.message === message &&
    old.observedGeneration === observedGeneration
  )
    return list
  const lastTransitionTime = old?.status === next.status ? old.lastTransitionTime : timestamp(now)
  const entry: Condition = { type, status: next.status, observedGeneration, lastTransitionTime, reason: next.reason, message }
  return old ? list.map((existing, at) => (at === index ? entry : existing)) : [...list, entry]
}

/** Between two characters: half of one would come back from the API server as another. */
const cut = (message: string): string =>
  message.length <= MESSAGE_MAX ? message : `${message.slice(0, MESSAGE_MAX - 1).replace(/[\uD800-\uDBFF]$/, '')}…`

/** So many names stand in a message. */
const NAMED = 10
/** Names for a message, which is no list. */
export const someOf = (names: readonly string[]): string =>
  `${names.slice(0, NAMED).join(', ')}${names.length > NAMED ? ` and ${names.length - NAMED} more` : ''}`

export const findCondition = (list: readonly Condition[] | undefined, type: string): Condition | undefined =>
  list?.find((entry) => entry.type === type)
export const isTrue = (list: readonly Condition[] | undefined, type: string): boolean => findCondition(list, type)?.status === 'True'

/** RFC 3339 in UTC with whole seconds, as Kubernetes writes times. */
export const timestamp = (date: Date): string => `${date.toISOString().slice(0, 19)}Z`
/** Unix ms of such a text; NaN where it is none. */
export const timeMs = (text: string): number => Date.parse(text)
