/**
 * Many callers at the same time share one call. It is not bound to one caller's signal, since others wait for it too; each leaves with the
 * reason of its own signal when that aborts.
 */
export function shareCall<T>(call: () => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let running: Promise<T> | undefined
  return async (signal) => {
    signal.throwIfAborted()
    if (running === undefined) {
      const started = call().finally(() => {
        if (running === started) running = undefined
      })
      // All callers may have left when it fails.
      started.catch(() => {})
      running = started
    }
    return abortable(running, signal)
  }
}

/**
 * For what must not be older than the question: callers never share a call that had begun before they came. Those that come while one runs share the next.
 * As with `shareCall`, the call is bound to no caller's signal.
 */
export function shareNextCall<T>(call: () => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let running: Promise<unknown> | undefined
  let next: Promise<T> | undefined
  const start = (): Promise<T> => {
    const started = call()
    running = started
    started
      .catch(() => {})
      .finally(() => {
        if (running === started) running = undefined
      })
    return started
  }
  return async (signal) => {
    signal.throwIfAborted()
    if (running === undefined) return abortable(start(), signal)
    if (next === undefined) {
      const waiting = running.then(
        () => {},
        () => {},
      )
      next = waiting.then(() => {
        next = undefined
        return start()
      })
      next.catch(() => {})
    }
    return abortable(next, signal)
  }
}

/** `shareNextCall` for each key apart. What nobody waits for is not kept. */
export function shareNextCallBy<K, T>(call: (key: K) => Promise<T>): (key: K, signal: AbortSignal) => Promise<T> {
  const shared = new Map<K, { readonly ask: (signal: AbortSignal) => Promise<T>; askers: number }>()
  return async (key, signal) => {
    const one = shared.get(key) ?? { ask: shareNextCall(() => call(key)), askers: 0 }
    shared.set(key, one)
    one.askers += 1
    try {
      return await one.ask(signal)
    } finally {
      one.askers -= 1
      if (one.askers === 0 && shared.get(key) === one) shared.delete(key)
    }
  }
}

/** A promise's result, or the signal's reason if that comes first. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
