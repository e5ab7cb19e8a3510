import { randomUUID } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { birthOf } from './reaper.ts'

export interface LockOptions {
  readonly file: string
  readonly signal: AbortSignal
  /** Called once a second while another process holds the lock. */
  readonly onWait: (holder: number) => void
}

/**
 * Holds a lock file while `work` runs: one process at a time. The file names its holder (pid and time of birth), so that a lock whose holder was
 * killed is taken over, also when its pid is used again. Ends by the signal only.
 */
export async function withLock<T>({ file, signal, onWait }: LockOptions, work: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(file), { recursive: true })
  const mine = JSON.stringify({ pid: process.pid, birth: birthOf(process.pid) })
  const draft = `${file}.${process.pid}-${randomUUID()}`
  writeFileSync(draft, mine)
  try {
    while (!take(draft, file)) {
      const holder = read(file)
      if (holder !== undefined && birthOf(holder.pid) !== holder.birth) {
        breakStale(file, holder.text)
        continue
      }
      if (holder !== undefined) onWait(holder.pid)
      await delay(1_000, undefined, { signal })
    }
  } finally {
    rmSync(draft, { force: true })
  }
  try {
    return await work()
  } finally {
    rmSync(file, { force: true })
  }
}

/** A hard link appears whole or not at all: nobody ever reads a half-written lock. */
function take(draft: string, file: string): boolean {
  try {
    linkSync(draft, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function read(file: string): { readonly pid: number; readonly birth: string; readonly text: string } | undefined {
  try {
    const text = readFileSync(file, 'utf8')
    const { pid, birth } = JSON.parse(text) as { pid: number; birth: string }
    return { pid, birth, text }
  } catch {
    return undefined // given back meanwhile
  }
}

/** Takes a dead holder's lock away; if another process did so first and holds it now, puts theirs back. */
function breakStale(file: string, stale: string): void {
  const aside = `${file}.${randomUUID()}.stale`
  try {
    renameSync(file, aside)
    if (readFileSync(aside, 'utf8') !== stale) linkSync(aside, file)
    unlinkSync(aside)
  } catch {
    // another process broke it: the next round sees what is there now
  }
}
