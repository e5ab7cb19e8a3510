import { readdir, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../lib/clock.ts'

/**
 * Looks at the keys' files every `intervalMs` and tells which keys appeared, changed or went, so that what waits for a key can be woken.
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

/** Key name → what changes when its files do. A key is a folder, or files beside those of others: `<keyName>.<file>`. */
async function look(dir: string): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(dir).catch(() => [])).filter((name) => !name.startsWith('.')).sort()
  // Of a volume that holds all keys.
  const data = await linkOf(dir)
  const found = new Map<string, string>()
  for (const [keyName, print] of await Promise.all(names.map(async (name) => [keyNameOf(name), await fingerprint(dir, name)] as const)))
    found.set(keyName, [found.get(keyName) ?? data, print].join('\n'))
  return found
}

const keyNameOf = (name: string): string => name.split('.', 1)[0] ?? name
const linkOf = (folder: string): Promise<string> => readlink(join(folder, '..data')).catch(() => '')

async function fingerprint(dir: string, name: string): Promise<string> {
  if (name.includes('.')) return fileFingerprint(dir, name)
  const folder = join(dir, name)
  const names = (await readdir(folder).catch(() => [])).filter((file) => !file.startsWith('..')).sort()
  return [await linkOf(folder), ...(await Promise.all(names.map((file) => fileFingerprint(folder, file))))].join('\n')
}

async function fileFingerprint(folder: string, name: string): Promise<string> {
  // Follows links: of what is there now.
  const found = await stat(join(folder, name)).catch(() => undefined)
  return found === undefined ? `${name}:gone` : `${name}:${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs}`
}
