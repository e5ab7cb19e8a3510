import { createInterface } from 'node:readline/promises'

interface Terminal {
  readonly input: NodeJS.ReadableStream
  readonly output: NodeJS.WritableStream
  /** Left out: as the output is. */
  readonly terminal?: boolean
}

/** Whether a person says yes. Ctrl-C, Ctrl-D, a signal and everything else are a no. */
export async function agreed(question: string, { input, output, terminal }: Terminal, signal: AbortSignal): Promise<boolean> {
  const asking = createInterface({ input, output, ...(terminal === undefined ? {} : { terminal }) })
  try {
    return /^y(es)?$/i.test((await asking.question(question, { signal })).trim())
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error
    output.write('\n')
    return false
  } finally {
    asking.close()
  }
}
