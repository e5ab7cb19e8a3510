import { readdir, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../lib/clock.ts'

/**
 * Looks at the key folders every `intervalMs` and tells which keys appeared, changed or went, so that what waits for a key can be woken.
 * Looking is enough: Kubernetes swaps a mounted Secret by a symbolic link, which file watchers miss on some file systems. Contents are not
 * read. Ends, without an error, when the signal aborts.
 */
export async function watchKeys(options: {
  readonly dir: string
  readonly clock: Clock
  readonly intervalMs: number
  readonly onChange: (keyNames: readonly string[]) => void
  readonly signal: AbortSignal
}): Promise<void> {
  const { dir, clock, intervalMs, onChange, signal } = options
  let before = await look(dir)
  while (!signal.aborted) {
    try {
      await clock.sleep(intervalMs, signal)
    } catch (error) {
      if (signal.aborted) return
      throw error
    }
    const now = await look(dir)
    const changed = [...new Set([...before.keys(), ...now.keys()])].filter((name) => before.get(name) !== now.get(name))
    before = now
    if (changed.length > 0) onChange(changed.sort())
  }
}

/** Key name → what changes when its files do. */
async function look(dir: string): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(dir).catch(() => [])).filter((name) => !name.startsWith('.'))
  const folders = await Promise.all(names.map(async (name) => [name, await fingerprint(join(dir, name))] as const))
  return new Map(folders)
}

async function fingerprint(folder: string): Promise<string> {
  const data = await readlink(join(folder, '..data')).catch(() => '')
  const names = (await readdir(folder).catch(() => [])).filter((name) => !name.startsWith('..')).sort()
  const files = await Promise.all(
    names.map(async (name) => {
      // Follows links: of what is there now.
      const found = await stat(join(folder, name)).catch(() => undefined)
      return found === undefined ? `${name}:gone` : `${name}:${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs}`
    }),
  )
  return [data, ...files].join('\n')
}
