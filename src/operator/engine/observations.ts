/**
 * When settled resources were looked at last, in whole monotonic ms, by key. One made anew under its name is at most looked at too soon. Lost on a restart: the
 * fleet is then spread anew. For each resource of a fleet it holds a number and no object.
 */
export function createObservations() {
  const known = new Map<string, number>()
  /** Since when a look fails. */
  const failing = new Map<string, number>()
  return {
    of: (key: string): number | undefined => known.get(key),
    note(key: string, at: number): void {
      known.set(key, at)
    },
    succeeded(key: string): void {
      failing.delete(key)
    },
    /** @returns for how long it has failed now, in ms */
    failed(key: string, at: number): number {
      const since = failing.get(key) ?? at
      failing.set(key, since)
      return at - since
    },
    forget(key: string): void {
      known.delete(key)
      failing.delete(key)
    },
  }
}
