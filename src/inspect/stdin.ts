import { addAbortSignal } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { InspectError } from './error.ts'

/** All of standard input, while signals are heard. @throws InspectError, or the signal's reason where that is aborted first */
export async function readStdin(signal: AbortSignal): Promise<Buffer> {
  try {
    return await buffer(addAbortSignal(signal, process.stdin))
  } catch (error) {
    signal.throwIfAborted()
    throw new InspectError(`standard input cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'})`)
  }
}
