import { join } from 'node:path'
import { ensureGoPrograms } from './go-program.ts'
import { runToEnd } from './run.ts'

export interface ScriptRun {
  /** The text of a Lua script. */
  readonly script: string
  /** What it finds as `obj`. */
  readonly object: object
}
export type ScriptOutcome = { readonly result: unknown } | { readonly error: string }

/** Runs scripts as Argo CD does: by the interpreter that it embeds, with the libraries that it opens for them. Built with Go into the user's cache once. */
export async function runAsArgoCd(runs: readonly ScriptRun[], signal: AbortSignal): Promise<readonly ScriptOutcome[]> {
  const folder = await ensureGoPrograms({ module: 'argolua', programs: { argolua: '.' }, isComplete: true, signal })
  const { code, stdout, stderr } = await runToEnd({ command: join(folder, 'argolua'), args: [], input: JSON.stringify(runs), signal })
  if (code !== 0) throw new Error(`argolua: ${stderr}`)
  return JSON.parse(stdout) as ScriptOutcome[]
}
