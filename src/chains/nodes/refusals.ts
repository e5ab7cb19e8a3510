import { type RpcClient, RpcFailure, refusalOf } from '../../lib/json-rpc.ts'

/** How long a method that a node refused is not asked of it, while another node serves it. */
export const refusedMs = 300_000

/** The methods that one node refuses, for some minutes each. */
export interface Refusals {
  /** Whether the method is passed over now. */
  has(method: string): boolean
  add(method: string): void
  list(): readonly string[]
}

export function createRefusals(now: () => number, onNew: (method: string) => void): Refusals {
  const until = new Map<string, number>()
  const has = (method: string): boolean => (until.get(method) ?? 0) > now()
  return {
    has,
    add: (method) => {
      if (!has(method)) onNew(method)
      until.set(method, now() + refusedMs)
    },
    list: () => [...until.keys()].filter(has),
  }
}

/** A client that remembers what its node refuses, and asks for it or not. `onSkip` is told of what it doesn't ask. */
export function withRefusals(client: RpcClient, refusals: Refusals, skip: { readonly onSkip: () => void } | undefined): RpcClient {
  const passOver = (methods: readonly string[]): void => {
    const refused = skip === undefined ? undefined : methods.find((method) => refusals.has(method))
    if (refused === undefined) return
    skip?.onSkip()
    throw refusalOf(refused)
  }
  const note = (error: unknown): void => {
    if (error instanceof RpcFailure && error.kind === 'refused' && error.method !== undefined) refusals.add(error.method)
  }
  return {
    call: async (method, params, signal) => {
      passOver([method])
      try {
        return await client.call(method, params, signal)
      } catch (error) {
        note(error)
        throw error
      }
    },
    batch: async (requests, signal) => {
      passOver(requests.map(({ method }) => method))
      const results = await client.batch(requests, signal)
      for (const result of results) if ('failure' in result) note(result.failure)
      return results
    },
  }
}
