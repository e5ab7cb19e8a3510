/**
 * Runs the parts of a pass in order. One that fails, as over a single transaction that no node tells of, holds up none of the others; afterwards the first error is
 * thrown. @throws the signal's reason when it aborts
 */
export async function eachPart(signal: AbortSignal, parts: readonly (() => Promise<void>)[]): Promise<void> {
  const errors: unknown[] = []
  for (const part of parts) {
    await part().catch((error: unknown) => errors.push(error))
    signal.throwIfAborted()
  }
  if (errors.length > 0) throw errors[0]
}
