/** Empties the maps of a fake database, as if it was set back to an empty copy. @returns what brings back all that they held */
export function setBack(...maps: readonly Map<unknown, unknown>[]): () => void {
  const before = maps.map((map) => new Map(map))
  for (const map of maps) map.clear()
  return () => {
    for (const [index, map] of maps.entries()) {
      map.clear()
      for (const [key, value] of before[index] ?? []) map.set(key, value)
    }
  }
}
