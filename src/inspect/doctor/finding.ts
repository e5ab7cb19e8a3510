import { ZodError } from 'zod'

/** What the doctor has found. `skipped`: it could not be looked at from here; `message` says why, and where it can. */
export interface Finding {
  readonly area: 'configuration' | 'node' | 'staking API' | 'key' | 'cluster' | 'permission'
  /** What was looked at, such as `hoodi, node 1`. Never a URL: it is often a key. */
  readonly about: string
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped'
  /** What is there, and what to do where that is wrong. */
  readonly message: string
}

export const ok = (area: Finding['area'], about: string, message: string): Finding => ({ area, about, state: 'ok', message })
export const warning = (area: Finding['area'], about: string, message: string): Finding => ({ area, about, state: 'warning', message })
export const failed = (area: Finding['area'], about: string, message: string): Finding => ({ area, about, state: 'failed', message })
export const skipped = (area: Finding['area'], about: string, message: string): Finding => ({ area, about, state: 'skipped', message })

/** An error of a node, an API or a cluster as one line: none of them holds a URL. */
export function saying(error: unknown): string {
  // Its own message is a list in JSON, for programs.
  if (error instanceof ZodError) return 'its answer has another shape than it should'
  return error instanceof Error ? error.message : String(error)
}
