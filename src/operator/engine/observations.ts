/** When a settled resource was looked at last, in whole monotonic ms, and the poke that was seen then. */
export interface Observation {
  readonly at: number
  readonly poke: string | undefined
}

/**
 * By the resource's key. One made anew under its name is at most looked at too soon. Lost on a restart: the fleet is then spread anew. For each resource of a
 * fleet without a poke it holds a number and no object.
 */
export function createObservations() {
  const known = new Map<string, number | Observation>()
  return {
    of(key: string): Observation | undefined {
      const found = known.get(key)
      return typeof found === 'number' ? { at: found, poke: undefined } : found
    },
    note(key: string, observation: Observation): void {
      known.set(key, observation.poke === undefined ? observation.at : observation)
    },
    forget(key: string): void {
      known.delete(key)
    },
  }
}
