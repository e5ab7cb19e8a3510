import { spawn } from 'node:child_process'

export interface RunResult {
  /** Of the program; −1 when a signal ended it. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  readonly input?: string
  readonly onStderr?: (text: string) => void
  readonly user?: { readonly uid: number; readonly gid: number }
  readonly signal: AbortSignal
}

/** For a Go program that is over in a moment: it collects no garbage, unless it takes more memory than that. A fifth less processor time. */
export const BRIEF_GO = { GOGC: 'off', GOMEMLIMIT: '512MiB' } as const

/** Runs a program that ends by itself. Its exit code is an answer, not an error. @throws when it can't be started, or the signal's reason. */
export async function runToEnd(options: RunOptions): Promise<RunResult> {
  const { command, args, signal, onStderr, input } = options
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args], {
      env: Object.fromEntries(Object.entries({ ...process.env, ...options.env }).filter(([, value]) => value !== undefined)),
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(options.user ?? {}),
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
      onStderr?.(text)
    })
    child.stdin.on('error', () => {}) // it ended without reading its input
    child.stdin.end(input)
    const abort = (): void => void child.kill('SIGKILL')
    signal.addEventListener('abort', abort, { once: true })
    child.once('error', reject)
    child.once('close', (code) => {
      signal.removeEventListener('abort', abort)
      if (signal.aborted) reject(signal.reason)
      else resolve({ code: code ?? -1, stdout, stderr })
    })
  })
}
