import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { cacheDir } from './cache-dir.ts'

/** A process that a harness started: enough to know later that the pid is still that process, and whether the one who started it lives. */
interface ProcessRecord {
  readonly name: string
  readonly pid: number
  readonly birth: string
  readonly starter: number
  readonly starterBirth: string
  /** Its temporary folder, which goes with it. */
  readonly scratch?: string
}

/** Where the records lie: one small file a process, in the user's own cache, where nobody else can write what we then believe. */
const recordsDir = (): string => join(cacheDir(process.env), 'processes')

/** When the process began, as the system tells it: pids are used again, this pair isn't. Undefined when there is no such process. */
export function birthOf(pid: number): string | undefined {
  try {
    if (process.platform === 'linux') {
      // proc(5): the name (field 2) may hold blanks and brackets; starttime is field 22, the 20th after the last bracket.
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return fields[0] === 'Z' ? undefined : fields[19]
    }
    const started = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    return started.trim() || undefined
  } catch {
    return undefined
  }
}

export function recordProcess(pid: number, name: string, scratch?: string): void {
  const birth = birthOf(pid)
  const starterBirth = birthOf(process.pid)
  if (birth === undefined || starterBirth === undefined) return
  mkdirSync(recordsDir(), { recursive: true, mode: 0o700 })
  const record: ProcessRecord = { name, pid, birth, starter: process.pid, starterBirth, ...(scratch === undefined ? {} : { scratch }) }
  writeFileSync(join(recordsDir(), `${pid}.json`), JSON.stringify(record), { mode: 0o600 })
}

export function forgetProcess(pid: number): void {
  rmSync(join(recordsDir(), `${pid}.json`), { force: true })
}

/**
 * Ends processes that harnesses left behind, and removes their temporary folders: those on record, still the same process (pid and time of birth),
 * whose starter is gone; with `all`, also those of a starter that lives. Returns what it ended.
 */
export function reap({ all = false } = {}): readonly { readonly name: string; readonly pid: number }[] {
  const ended: { name: string; pid: number }[] = []
  for (const { name, pid, birth, starter, starterBirth, scratch } of records()) {
    if (!all && birthOf(starter) === starterBirth) continue
    if (birthOf(pid) === birth && endProcess(pid)) ended.push({ name, pid })
    if (scratch !== undefined && dirname(scratch) === tmpdir() && basename(scratch).startsWith('staking-')) {
      rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
    }
    forgetProcess(pid)
  }
  return ended
}

function endProcess(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL')
    return true
  } catch {
    return false // ended meanwhile, or no longer ours to end
  }
}

function records(): readonly ProcessRecord[] {
  let files: string[]
  try {
    files = readdirSync(recordsDir())
  } catch {
    return []
  }
  return files.flatMap((file) => {
    try {
      const record = JSON.parse(readFileSync(join(recordsDir(), file), 'utf8')) as Partial<ProcessRecord>
      const { name, pid, birth, starter, starterBirth, scratch } = record
      if (typeof name !== 'string' || typeof pid !== 'number' || pid < 2 || typeof birth !== 'string') return []
      return [
        {
          name,
          pid,
          birth,
          starter: Number(starter),
          starterBirth: String(starterBirth),
          ...(typeof scratch === 'string' ? { scratch } : {}),
        },
      ]
    } catch {
      return []
    }
  })
}
