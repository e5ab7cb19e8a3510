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

/** What is in the maps of a fake database now, as in a backup. @returns what makes it so again */
export function copyOf(...maps: readonly Map<unknown, unknown>[]): () => void {
  const kept = structuredClone(maps.map((map) => [...map]))
  return () => {
    for (const [index, entries] of structuredClone(kept).entries()) {
      const map = maps[index]
      map?.clear()
      for (const [key, value] of entries) map?.set(key, value)
    }
  }
}
