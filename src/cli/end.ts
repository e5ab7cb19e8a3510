/** A signal has ended the program: said by its exit code (128 and the signal's number) and by nothing else. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly exitCode: 130 | 143
  constructor(signal: 'SIGINT' | 'SIGTERM') {
    super(`${signal} received`)
    this.exitCode = signal === 'SIGINT' ? 130 : 143
  }
}

/** Decides the exit code, before anything is printed: whoever reads may be gone, and then the program ends at the first write. */
export const decide = (code: number): void => {
  process.exitCode = code
}

/**
 * Ends the program once all that it has written is with whoever reads it: a pipe takes 64 KiB at a time, and what it has not taken when a process exits is lost
 * without a word.
 * @param signal where it was aborted meanwhile, the program ends as one that was interrupted: what was found is not whole
 */
export async function endWith(code: number, signal?: AbortSignal): Promise<never> {
  const exitCode = signal?.reason instanceof Interrupted ? signal.reason.exitCode : code
  decide(exitCode)
  await Promise.all(
    [process.stdout, process.stderr].map((stream) => new Promise<void>((resolve) => void stream.write('', () => resolve()))),
  )
  process.exit(exitCode)
}
