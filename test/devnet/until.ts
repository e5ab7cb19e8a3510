import { setTimeout as delay } from 'node:timers/promises'

/** Looks every half second until there is something. @throws after `seconds`. */
export async function until<T>(what: string, seconds: number, look: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + seconds * 1_000
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > deadline) throw new Error(`not ${what} within ${seconds} s`)
    await delay(500)
  }
}
