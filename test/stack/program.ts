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
}

export function createProgram(options: ProgramOptions): Program {
  const { name, command, args, env = {}, logFile, readyUrl } = options
  let running: RunningProcess | undefined
  const current = (): RunningProcess => {
    if (running === undefined) throw new Error(`${name} was never started`)
    return running
  }
  return {
    command: [command, ...args],
    env,
    process: current,
    async start() {
      if (running?.alive() === true) return
      running = await startProcess({
        name,
        command,
        args,
        env: { ...COMPILE_CACHE, ...env },
        logFile,
        readyTimeoutMs: 60_000,
        readyWhen: async ({ signal }) => (await fetch(readyUrl, { signal })).ok,
      })
    },
    async stop() {
      return running?.alive() === true ? running.stop() : undefined
    },
    async kill() {
      running?.kill('SIGKILL')
      await running?.exited
    },
  }
}
