/** The oldest major version that the program runs on, as in `engines` of package.json. */
export const OLDEST_NODE = 24

/** Commands that run until a signal ends them: who started them must reach the process itself. */
const lasting = ['operator', 'service']

type Step = { readonly do: 'go on' } | { readonly do: 'hand over'; readonly to: string } | { readonly do: 'refuse'; readonly says: string }

/** What a program does about the Node that it was started with. `own`: the one beside the program, where there is one. Pure. */
export function laterNodeFor({
  version,
  own,
  command,
}: {
  readonly version: string
  readonly own: string | undefined
  readonly command: string | undefined
}): Step {
  if (Number.parseInt(version, 10) >= OLDEST_NODE) return { do: 'go on' }
  if (own !== undefined && !lasting.includes(command ?? '')) return { do: 'hand over', to: own }
  const how = own === undefined ? '' : `: start it with ${own}`
  return { do: 'refuse', says: `error: this needs Node ${OLDEST_NODE} or later, and was started with Node ${version}${how}` }
}
