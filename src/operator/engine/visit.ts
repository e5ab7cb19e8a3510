/** What one reconcile remembers: it lives as long as the visit and is never written anywhere. Read and written by notes, each of its own type. */
export type Visit = Map<string, unknown>
/** Set when nothing may be signed: the resource is suspended or being deleted. */
export const WATCH_ONLY = 'watchOnly'

/** One thing that a visit remembers, by its name. */
export interface Note<T> {
  of(visit: Visit): T | undefined
  /** @returns the value */
  write(visit: Visit, value: T): T
  erase(visit: Visit): void
}
export const visitNote = <T>(name: string): Note<T> => ({
  of: (visit) => visit.get(name) as T | undefined,
  write(visit, value) {
    visit.set(name, value)
    return value
  },
  erase: (visit) => void visit.delete(name),
})
