import type { Halt } from '../engine/verdict.ts'
import type { LaneDeps } from './moment.ts'
import type { RecordObject } from './store.ts'

/** A look at what others did to the same validator or key holds so long, ms: a third of a slot. */
const HOLDS_MS = 4_000

/** Looks whether somebody else has done what a call is for, and knows when that was seen last not to be so. */
export function createRivals({ kindOf, memory, clock }: Pick<LaneDeps, 'kindOf' | 'memory' | 'clock'>) {
  /** @returns why it must not land any more; undefined as long as nothing is known against it */
  async function look(record: RecordObject, signal: AbortSignal): Promise<Halt | undefined> {
    const asked = clock.monotonicMs()
    const overtaken = await kindOf(record).overtaken(record, signal)
    if (overtaken === undefined) memory.of(record).rivalsAt = asked
    return overtaken
  }

  /** ▸ Before it is sent for the first time: a slow machine, a remote key, a node that refused it or a long row of others may have taken long since the look. @throws Halt */
  async function assertStillNone(record: RecordObject, signal: AbortSignal): Promise<void> {
    const { rivalsAt } = memory.of(record)
    if (rivalsAt !== undefined && clock.monotonicMs() - rivalsAt <= HOLDS_MS) return
    const overtaken = await look(record, signal)
    if (overtaken !== undefined) throw overtaken
  }

  return { look, assertStillNone }
}
