/** Told before and after each call of a port, and at each point of the engine: it may throw (the call fails) or end the operator. */
export type Around = (point: string, operator: { kill(): void }) => void | Promise<void>
/** How an operator that was ended answers: not at all. Its visits end with this. */
export const KILLED = Symbol('killed')

/** An operator's life, in memory: it can be ended at any call of a port and at any point of the engine, and does nothing after that. */
export function createMortal(around: Around) {
  let killed = false
  const death = Promise.withResolvers<typeof KILLED>()
  const never = new Promise<never>(() => {})
  const self = {
    kill() {
      killed = true
      death.resolve(KILLED)
    },
  }
  const tick = async (point: string): Promise<void> => {
    if (killed) await never
    await around(point, self)
    if (killed) await never
  }
  return {
    ...self,
    isKilled: () => killed,
    /** Every call of a port, told before and after. */
    instrument: <T extends object>(name: string, port: T): T =>
      new Proxy(port, {
        get(target, method, receiver) {
          const member = Reflect.get(target, method, receiver) as unknown
          if (typeof member !== 'function') return member
          return async (...args: unknown[]) => {
            await tick(`before ${name}.${String(method)}`)
            const result = (await (member as (...given: unknown[]) => unknown).apply(target, args)) as unknown
            await tick(`after ${name}.${String(method)}`)
            return result
          }
        },
      }),
    onPoint(point: string, key: string): void {
      if (killed) throw new Error('it was ended')
      const told = around(`${point} ${key}`, self)
      if (told instanceof Promise) throw new Error('a point of the engine cannot wait')
      if (killed) throw new Error('it was ended')
    },
    /** What a visit comes to, or that it was cut off. */
    untilDeath: <T>(visit: Promise<T>): Promise<T | typeof KILLED> => Promise.race([visit, death.promise]),
  }
}
