const TICK_MS = 20

/**
 * How long, in milliseconds, this process has not come to its timers since the call. Client and service are one process in most tests: what a busy machine takes
 * from both is no part of the time in which the service has to answer.
 */
export function countStalls(): () => number {
  let [last, stalled] = [performance.now(), 0]
  const look = (): void => {
    const now = performance.now()
    stalled += Math.max(0, now - last - TICK_MS)
    last = now
  }
  setInterval(look, TICK_MS).unref()
  return () => {
    look()
    return stalled
  }
}
