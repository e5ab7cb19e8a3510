import { z } from 'zod'

/** Longer waits end after this: proxies cut connections that are idle for a minute. */
export const maxWaitMs = 60_000

/**
 * The query of what can be waited for. The caller names the state that it knows by `If-None-Match`; without it, or when that is another state, the answer
 * comes at once.
 */
export const waitQuery = z.object({
  wait: z
    .codec(
      z
        .string()
        .regex(/^[0-9]{1,4}s$/, 'must be a number of seconds such as 30s')
        .meta({
          description:
            'An addition to the staking service interface. While the state is the one that If-None-Match names, the answer waits for a change, for so long and at most 60 s; then it is 304. Where the wait counted, Preference-Applied says so: without it, wait before asking again. The header `Prefer: wait=30` (RFC 7240) asks for the same.',
          'x-addition': true,
        }),
      z.int().min(0).max(maxWaitMs),
      { decode: (text) => Math.min(Number(text.slice(0, -1)) * 1000, maxWaitMs), encode: (ms) => `${Math.floor(ms / 1000)}s` },
    )
    .optional(),
})

/** What `Prefer` (RFC 7240, 4.3) asks to wait, in ms; undefined when it doesn't say. A preference that can't be read doesn't count. */
export function preferredWaitMs(header: string | readonly string[] | undefined): number | undefined {
  for (const preference of [header ?? []].flat().join(',').split(',')) {
    const seconds = /^\s*wait\s*=\s*"?([0-9]{1,9})"?\s*(;|$)/i.exec(preference)?.[1]
    // Of several, the first counts.
    if (seconds !== undefined) return Math.min(Number(seconds) * 1000, maxWaitMs)
  }
  return undefined
}

/** The seconds that a service says it waits for, in ms; undefined for one that knows no waits. */
export const appliedWaitMs = (header: string | string[] | undefined): number | undefined => preferredWaitMs(header)
