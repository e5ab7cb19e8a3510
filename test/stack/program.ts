import { setTimeout as delay } from 'node:timers/promises'
import { type Exit, type RunningProcess, startProcess } from '../cluster/process.ts'
import { COMPILE_CACHE } from './compile-cache.ts'

/** One of the two programs under test: it can be ended in any way and started again with the same command. */
export interface Program {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** The process that runs, or ran last. */
  process(): RunningProcess
  start(): Promise<void>
  /** As the end of a pod: SIGTERM. */
  stop(): Promise<Exit | undefined>
  /** SIGKILL: nothing is finished, nothing is flushed. */
  kill(): Promise<void>
}

export interface ProgramOptions {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly logFile: string
  /** Answers 200 when it is ready. */
  readonly readyUrl: string
  /** Started again where it ends by itself, as a kubelet does: told of each time. Default: it stays ended, as most tests want it. */
  readonly onRestart?: (exit: Exit) => void
}

/** Restarts of a program that ends by itself; a kubelet would wait longer and longer. */
const MOST_RESTARTS = 10
const RESTART_MS = 1_000

export function createProgram(options: ProgramOptions): Program {
  const { name, command, args, env = {}, logFile, readyUrl, onRestart } = options
  let running: RunningProcess | undefined
  let isWanted = false
  let restarts = 0
  const current = (): RunningProcess => {
    if (running === undefined) throw new Error(`${name} was never started`)
    return running
  }
  let starting: Promise<void> | undefined
  /** Whoever asks for a start that is under way waits for that one. */
  function start(): Promise<void> {
    if (running?.alive() === true) return Promise.resolve()
    isWanted = true
    starting ??= begin().finally(() => {
      starting = undefined
    })
    return starting
  }
  async function begin(): Promise<void> {
    const started = await startProcess({
      name,
      command,
      args,
      env: { ...COMPILE_CACHE, ...env },
      logFile,
      readyTimeoutMs: 60_000,
      readyWhen: async ({ signal }) => (await fetch(readyUrl, { signal })).ok,
    })
    running = started
    if (onRestart !== undefined) void started.exited.then((exit) => restart(exit))
  }
  async function restart(exit: Exit): Promise<void> {
    if (!isWanted || restarts >= MOST_RESTARTS) return
    restarts++
    onRestart?.(exit)
    await delay(RESTART_MS)
    if (isWanted) await start().catch(() => {})
  }
  return {
    command: [command, ...args],
    env,
    process: current,
    start,
    async stop() {
      isWanted = false
      await starting?.catch(() => {})
      return running?.alive() === true ? running.stop() : undefined
    },
    async kill() {
      isWanted = false
      await starting?.catch(() => {})
      running?.kill('SIGKILL')
      await running?.exited
    },
  }
}
