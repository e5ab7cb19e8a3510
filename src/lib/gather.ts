import { abortable } from './shared-call.ts'

/**
 * Questions that come at the same time are asked together. One call runs at a time for each of `atOnce`; what comes meanwhile goes with the next, so that
 * an answer is never older than its question, and a single one never waits.
 * `ask` gets at most `atMost` keys of at least one caller, whose keys stay together. It is bound to no caller's signal: others wait for it too.
 */
export function createGathering<K, T>(
  ask: (keys: readonly K[]) => Promise<T>,
  { atMost, atOnce }: { readonly atMost: number; readonly atOnce: number },
): (keys: readonly K[], signal?: AbortSignal) => Promise<T> {
  const waiting: { readonly keys: readonly K[]; readonly answer: PromiseWithResolvers<T> }[] = []
  let running = 0

  function next(): void {
    const taken = new Set<K>()
    const callers: PromiseWithResolvers<T>[] = []
    for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
      const { keys, answer } = first
      if (callers.length > 0 && taken.size + keys.length > atMost) break
      waiting.shift()
      for (const key of keys) taken.add(key)
      callers.push(answer)
    }
    if (callers.length === 0) return
    running++
    ask([...taken])
      .then(
        (answer) => {
          for (const { resolve } of callers) resolve(answer)
        },
        (error: unknown) => {
          for (const { reject } of callers) reject(error)
        },
      )
      .finally(() => {
        running--
        if (waiting.length > 0) next()
      })
  }

  return (keys, signal) => {
    const answer = Promise.withResolvers<T>()
    // All callers may have left when it fails.
    answer.promise.catch(() => {})
    waiting.push({ keys, answer })
    // Whoever else asks within this turn comes along.
    queueMicrotask(() => {
      if (running < atOnce && waiting.length > 0) next()
    })
    return signal === undefined ? answer.promise : abortable(answer.promise, signal)
  }
}
