import { statfsSync } from 'node:fs'
import type { LogEvent } from 'kysely'

/** What a database says that answers, and takes no writes. */
const saysNo: Readonly<Record<string, string>> = {
  '25006': "the service's database takes no writes: it is a standby",
  '53100': "the disk of the service's database is full",
}
/** What a database says that does answer, and can't serve, by SQLSTATE: it takes another mend than one that is away. */
const cannotServe: Readonly<Record<string, string>> = {
  ...saysNo,
  '53200': "the service's database is out of memory",
  '53300': "the service's database takes no more connections",
}

/** SQLSTATE of an error, or of one that it is caused by. */
export function sqlStateOf(error: unknown): string | undefined {
  for (let current = error, depth = 0; current instanceof Error && depth < 5; current = current.cause, depth++) {
    if ('code' in current && typeof current.code === 'string' && /^[0-9A-Z]{5}$/.test(current.code)) return current.code
  }
  return undefined
}

/** Why a database can't serve, in words, where it answers and says so itself. */
export const wordsOf = (error: unknown): string | undefined => cannotServe[sqlStateOf(error) ?? '']

/** So long a statement that was refused is taken for how it stands: somebody writes more often than that. */
const REMEMBERED_MS = 60_000

export interface Refusals {
  /** Hears of every statement, as Kysely tells of them. */
  readonly heard: (event: Pick<LogEvent, 'level'> & { readonly error?: unknown }) => void
  /** Why the database has lately refused to write. */
  lately(): string | undefined
}

/** Remembers that a database answers and takes no writes. @param now in ms, monotonic */
export function rememberRefusals(now: () => number = () => performance.now()): Refusals {
  let last: { readonly words: string; readonly at: number } | undefined
  return {
    heard: ({ level, error }) => {
      const words = level === 'error' ? saysNo[sqlStateOf(error) ?? ''] : undefined
      if (words !== undefined) last = { words, at: now() }
    },
    lately: () => (last !== undefined && now() - last.at < REMEMBERED_MS ? last.words : undefined),
  }
}

/** PostgreSQL's log grows by pieces of 16 MiB: with less than one and something beside it, it may find no room for the next, and then it stops for good. */
const LEAST_ROOM_MIB = 24

/** Whether the disk of the folder has no room left for a database; undefined while it has, or can't say. */
export function noRoom(
  folder: string,
  read: (folder: string) => { readonly bavail: number; readonly bsize: number } = statfsSync,
): string | undefined {
  try {
    const { bavail, bsize } = read(folder)
    const mib = Math.floor((bavail * bsize) / 1_048_576)
    return mib < LEAST_ROOM_MIB
      ? `the disk of the service's database is full: ${mib} MiB are free, and it needs ${LEAST_ROOM_MIB}`
      : undefined
  } catch {
    return undefined
  }
}
