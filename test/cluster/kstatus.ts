import { join } from 'node:path'
import { ensureGoPrograms } from './go-program.ts'
import { runToEnd } from './run.ts'

export interface Computed {
  readonly status: 'InProgress' | 'Current' | 'Failed' | 'Terminating' | 'NotFound' | 'Unknown'
  readonly message: string
}

/** What kstatus makes of objects: its own Go library, built once. */
export async function kstatus(objects: readonly object[], signal: AbortSignal): Promise<readonly Computed[]> {
  const folder = await ensureGoPrograms({ module: 'kstatus', programs: { kstatus: '.' }, isComplete: true, signal })
  const { code, stdout, stderr } = await runToEnd({ command: join(folder, 'kstatus'), args: [], input: JSON.stringify(objects), signal })
  if (code !== 0) throw new Error(`kstatus: ${stderr}`)
  return JSON.parse(stdout) as Computed[]
}
