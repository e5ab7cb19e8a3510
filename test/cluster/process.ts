import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, writeSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { forgetProcess, recordProcess } from './reaper.ts'

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface ProcessOptions {
  /** For messages: "kube-apiserver". */
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  /** Added to this process's environment; `undefined` takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  /** stdout and stderr are appended here too. */
  readonly logFile?: string
  /** Polled every 50 ms until true. A rejection counts as "not yet", and is quoted when the time is over. */
  readonly readyWhen?: (probe: { readonly output: () => string; readonly signal: AbortSignal }) => boolean | Promise<boolean>
  /** Default 30,000 ms. */
  readonly readyTimeoutMs?: number
  /** Numeric user and group to run as, where a program refuses to run as root. */
  readonly user?: { readonly uid: number; readonly gid: number }
  /** What `stop` sends first. Default SIGTERM. */
  readonly stopSignal?: NodeJS.Signals
  /** What the kernel sends when the test process dies without a word (Linux). Default SIGKILL. */
  readonly deathSignal?: NodeJS.Signals
  /** Its temporary folder, `<tmpdir>/staking-…`: `controlplane --stop` removes it when nobody else could. */
  readonly scratch?: string
}

export interface RunningProcess {
  readonly name: string
  readonly pid: number
  /** Resolves once, never rejects. */
  readonly exited: Promise<Exit>
  alive(): boolean
  /** Sends a signal; nothing when it is gone. SIGSTOP and SIGCONT freeze and wake it. */
  kill(signal: NodeJS.Signals): void
  /** The stop signal, then SIGKILL after `graceMs` (default 30,000). */
  stop(graceMs?: number): Promise<Exit>
  /** stdout and stderr in the order they came; of very much output, the last 8 MB. */
  output(): string
  /** Resolves with the match. @throws when the process ends or `timeoutMs` (default 30,000) pass first; the message holds the last lines. */
  waitForOutput(pattern: RegExp, timeoutMs?: number): Promise<RegExpMatchArray>
}

const OUTPUT_LIMIT = 8 * 1024 * 1024

/**
 * Starts a program and waits until it is ready. It does not outlive this process: the kernel ends it when this one dies (Linux), an exit handler
 * does elsewhere, and its pid is on record for `controlplane --stop`.
 * @throws with the last lines of its output when it can't be started, ends early, or isn't ready in time (it is then ended).
 */
export async function startProcess(options: ProcessOptions): Promise<RunningProcess> {
  const { name } = options
  const child = spawnTied(options)
  const chunks: string[] = []
  let size = 0
  const log = options.logFile === undefined ? undefined : openSync(options.logFile, 'a', 0o600)
  const keep = (chunk: string): void => {
    chunks.push(chunk)
    size += chunk.length
    while (size > OUTPUT_LIMIT && chunks.length > 1) size -= chunks.shift()?.length ?? 0
    if (log !== undefined) writeSync(log, chunk)
  }
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', keep)
  const output = (): string => chunks.join('')
  const lastLines = (): string => output().trimEnd().split('\n').slice(-25).join('\n') || '(no output)'

  const killAtExit = (): void => void child.kill('SIGKILL')
  let exit: Exit | undefined
  const exited = new Promise<Exit>((resolve) => {
    // `close` comes after the last output, `exit` may come before it.
    child.once('close', (code, signal) => {
      exit = { code, signal }
      exitHandlers.delete(killAtExit)
      if (log !== undefined) closeSync(log)
      if (child.pid !== undefined) forgetProcess(child.pid)
      resolve(exit)
    })
  })
  const failed = await Promise.race([
    once(child, 'spawn').then(() => undefined),
    once(child, 'error').then(([error]) => error as Error),
  ]).catch((error: Error) => error)
  const { pid } = child
  if (failed !== undefined || pid === undefined) throw new Error(`${name} could not be started: ${failed?.message ?? 'no pid'}`)
  child.on('error', () => {}) // a signal that could not be delivered; `exited` tells the rest
  atExit(killAtExit)
  recordProcess(pid, name, options.scratch)

  const alive = (): boolean => child.exitCode === null && child.signalCode === null
  const describe = (end: Exit): string => (end.signal === null ? `ended with code ${end.code}` : `was ended by ${end.signal}`)

  const poll = async <T>(what: string, timeoutMs: number, probe: (signal: AbortSignal) => Promise<T | undefined>): Promise<T> => {
    const deadline = performance.now() + timeoutMs
    const signal = AbortSignal.timeout(timeoutMs)
    let lastError = ''
    for (;;) {
      const found = await Promise.race([
        probe(signal).catch((error: unknown) => {
          lastError = ` (last answer: ${error instanceof Error ? error.message : String(error)})`
          return undefined
        }),
        exited.then(() => undefined),
      ])
      if (found !== undefined) return found
      if (exit !== undefined) throw new Error(`${name} ${describe(exit)} before ${what}:\n${lastLines()}`)
      if (performance.now() > deadline) throw new Error(`${name}: not ${what} within ${timeoutMs} ms${lastError}:\n${lastLines()}`)
      await Promise.race([delay(50), exited])
    }
  }

  const running: RunningProcess = {
    name,
    pid,
    exited,
    alive,
    output,
    kill: (signal) => {
      if (alive()) child.kill(signal)
    },
    stop: async (graceMs = 30_000) => {
      if (!alive()) return exited
      child.kill(options.stopSignal ?? 'SIGTERM')
      child.kill('SIGCONT') // a frozen one takes no other signal
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs)
      return exited.finally(() => clearTimeout(timer))
    },
    waitForOutput: (pattern, timeoutMs = 30_000) =>
      poll(`seen to print ${String(pattern)}`, timeoutMs, async () => output().match(pattern) ?? undefined),
  }
  const { readyWhen } = options
  if (readyWhen !== undefined) {
    try {
      await poll('ready', options.readyTimeoutMs ?? 30_000, async (signal) => ((await readyWhen({ output, signal })) ? true : undefined))
    } catch (error) {
      child.kill('SIGKILL')
      await exited
      throw error
    }
  }
  return running
}

/** Spawns the program so that the kernel ends it with us, where `setpriv` (util-linux) is there to ask the kernel for that. It keeps its pid: setpriv execs. */
function spawnTied(options: ProcessOptions): ChildProcess {
  const program = options.command.includes('/') ? options.command : findOnPath(options.command, process.env.PATH ?? '')
  if (program === undefined || !existsSync(program))
    throw new Error(`${options.name} could not be started: ${options.command} is not there`)
  const env = Object.fromEntries(Object.entries({ ...process.env, ...options.env }).filter(([, value]) => value !== undefined))
  const setpriv = process.platform === 'linux' ? findOnPath('setpriv', process.env.PATH ?? '') : undefined
  const [command, args] =
    setpriv === undefined
      ? [program, options.args]
      : [setpriv, ['--pdeathsig', (options.deathSignal ?? 'SIGKILL').replace('SIG', ''), '--', program, ...options.args]]
  return spawn(command, [...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.user ?? {}),
  })
}

/** The file that a shell would run for this name. */
export function findOnPath(name: string, path: string): string | undefined {
  return path
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file))
}

// One listener for all: Node warns from the eleventh on.
const exitHandlers = new Set<() => void>()
function atExit(handler: () => void): void {
  if (!process.listeners('exit').includes(endAll)) process.on('exit', endAll)
  exitHandlers.add(handler)
}
function endAll(): void {
  for (const handler of exitHandlers) handler()
}
