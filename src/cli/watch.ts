import { setTimeout as sleep } from 'node:timers/promises'
import { Option } from 'commander'
import { InspectError } from '../inspect/error.ts'
import { oneLine } from '../inspect/output.ts'

export const watchOption = () => new Option('-w, --watch', 'go on, and print what is new, until Ctrl-C')

/** How often a watch looks, in ms. */
const WATCH_MS = 2_000

/**
 * Looks once; watching, again and again until the program is told to end. An API server that is away for a while doesn't end a watch: that is said once on standard
 * error.
 * @param once @throws InspectError; the first one, and one that does not pass by itself, ends it
 */
export async function look(
  { watch, signal, everyMs = WATCH_MS }: { readonly watch: boolean; readonly signal: AbortSignal; readonly everyMs?: number },
  once: (isFirst: boolean) => Promise<void>,
): Promise<void> {
  let isFirst = true
  let trouble = ''
  while (!signal.aborted) {
    try {
      await once(isFirst)
      isFirst = false
      trouble = ''
    } catch (error) {
      // Whoever ends a watch has not failed.
      if (watch && signal.aborted) return
      // A watch is there for what happens at night.
      if (!watch || isFirst || !(error instanceof InspectError && error.passes)) throw error
      if (error.message !== trouble) process.stderr.write(`${oneLine(error.message)}. It is asked again.\n`)
      trouble = error.message
    }
    if (!watch) return
    await sleep(everyMs, undefined, { signal }).catch(() => undefined)
  }
}
