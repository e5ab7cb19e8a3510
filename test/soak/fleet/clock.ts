import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The wall clock of one program, which can be set wrong while it runs. */
export interface Clock {
  /** For the program. */
  readonly env: Readonly<Record<string, string>>
  /** So many ms ahead of the real time from now on; behind it where negative. */
  set(ms: number): void
}

export function createClock(dir: string, name: string): Clock {
  const file = join(dir, `${name}.clock`)
  const set = (ms: number): void => {
    writeFileSync(`${file}.new`, String(ms))
    renameSync(`${file}.new`, file)
  }
  set(0)
  const preload = new URL('shifted-clock.ts', import.meta.url).href
  return { env: { STAKING_TEST_CLOCK_FILE: file, NODE_OPTIONS: `--import=${preload}` }, set }
}
