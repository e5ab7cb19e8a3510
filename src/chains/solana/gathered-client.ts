import type { Clock } from '../../lib/clock.ts'
import { createGathering } from '../../lib/gather.ts'
import { isLastingRefusal, type RpcClient, RpcFailure } from '../../lib/json-rpc.ts'

/** Accounts of one getMultipleAccounts, and signatures of one getSignatureStatuses. Source: agave, rpc-client-api, request.rs. */
export const ACCOUNTS_AT_ONCE = 100
export const SIGNATURES_AT_ONCE = 256
/** How long a node that does not take lists so long is asked one by one. */
const APART_MS = 300_000
/** Questions of different words that are remembered. */
const MOST_QUESTIONS = 500

/** All who ask at the same time share one answer. */
const ALL = Number.MAX_SAFE_INTEGER
/** Questions without a list whose answer is the same for all who ask now. */
const common: ReadonlySet<string> = new Set(['getEpochInfo', 'getBlockHeight', 'getFirstAvailableBlock', 'getVoteAccounts'])

type Params = readonly unknown[]
type Options = Readonly<Record<string, unknown>>
interface Listed {
  readonly context: unknown
  readonly of: ReadonlyMap<string, unknown>
}

/**
 * A node's client for many stakes that are looked at at the same time: accounts are asked for together, and so are signatures; what all ask alike is asked
 * once. No answer is older than its question. A node that refuses the lists, or lists so long, is asked as if this were not here.
 */
export function gathered(client: RpcClient, clock: Pick<Clock, 'monotonicMs'>): RpcClient {
  const never = new AbortController().signal
  const questions = new Map<string, (keys: readonly string[], signal: AbortSignal) => Promise<unknown>>()
  /** How many keys a call had that failed: of one's own alone, another call would fail as well. */
  const askedFor = new WeakMap<RpcFailure, number>()
  let apartUntil = Number.NEGATIVE_INFINITY

  const asked = <T>(words: string, atMost: number, ask: (keys: readonly string[]) => Promise<T>) => {
    const known = questions.get(words)
    if (known !== undefined) return known as (keys: readonly string[], signal: AbortSignal) => Promise<T>
    if (questions.size >= MOST_QUESTIONS) questions.clear()
    const counted = (keys: readonly string[]) =>
      ask(keys).catch((error: unknown) => {
        if (error instanceof RpcFailure) askedFor.set(error, keys.length)
        throw error
      })
    const made = createGathering(counted, { atMost, atOnce: atMost === ALL ? 1 : 4 })
    questions.set(words, made)
    return made
  }

  /** `keys` in one list, with the context that they all have. */
  async function list(method: string, keys: readonly string[], options: Options): Promise<Listed> {
    const answer = await client.call(method, [keys, options], never)
    const { context, value } = (answer ?? {}) as { context?: unknown; value?: unknown }
    if (!Array.isArray(value) || value.length !== keys.length) throw new RpcFailure('no-answer', `the node left out some of ${method}`)
    return { context, of: new Map(keys.map((key, index) => [key, value[index]])) }
  }

  /** A key with the slot that its answer must not be before: of many, the latest holds for all. */
  const withSlot = (key: string, { minContextSlot }: Options): string => `${key} ${Number(minContextSlot ?? 0)}`
  async function listAccounts(keys: readonly string[], options: Options): Promise<Listed> {
    const parts = keys.map((key) => key.split(' ') as [string, string])
    const slot = Math.max(...parts.map(([, at]) => Number(at)))
    const addresses = [...new Set(parts.map(([key]) => key))]
    const exact = { ...options, ...(slot === 0 ? {} : { minContextSlot: slot }) }
    const [only] = addresses
    if (only === undefined || addresses.length > 1) return list('getMultipleAccounts', addresses, exact)
    const { context, value } = ((await client.call('getAccountInfo', [only, exact], never)) ?? {}) as { context?: unknown; value?: unknown }
    return { context, of: new Map([[only, value]]) }
  }

  async function accounts(addresses: readonly string[], options: Options, signal: AbortSignal): Promise<Listed> {
    const { minContextSlot: _own, ...others } = options
    const ask = asked(`accounts ${JSON.stringify(others)}`, ACCOUNTS_AT_ONCE, (keys) => listAccounts(keys, others))
    return ask(
      addresses.map((address) => withSlot(address, options)),
      signal,
    )
  }

  /** Undefined for a call that is none of these. */
  function together(method: string, params: Params, signal: AbortSignal): Promise<unknown> | undefined {
    const [first, options = {}] = params as readonly [unknown, Options | undefined]
    if (method === 'getAccountInfo' && typeof first === 'string')
      return accounts([first], options, signal).then(({ context, of }) => ({ context, value: of.get(first) }))
    if (!Array.isArray(first)) return undefined
    const keys = first as readonly string[]
    if (method === 'getMultipleAccounts' && keys.length <= ACCOUNTS_AT_ONCE)
      return accounts(keys, options, signal).then(({ context, of }) => ({ context, value: keys.map((key) => of.get(key)) }))
    if (method !== 'getSignatureStatuses' || keys.length > SIGNATURES_AT_ONCE) return undefined
    const ask = asked(`${method} ${JSON.stringify(options)}`, SIGNATURES_AT_ONCE, (all) => list(method, all, options))
    return ask(keys, signal).then(({ context, of }) => ({ context, value: keys.map((key) => of.get(key)) }))
  }

  return {
    batch: client.batch,
    async call(method, params, signal) {
      if (common.has(method))
        return asked(`${method} ${JSON.stringify(params)}`, ALL, () => client.call(method, params, never))(['all'], signal)
      if (clock.monotonicMs() < apartUntil) return client.call(method, params, signal)
      try {
        return await (together(method, params, signal) ?? client.call(method, params, signal))
      } catch (error) {
        if (!(error instanceof RpcFailure) || !(isLastingRefusal(error) || error.kind === 'too-large')) throw error
        const own = Array.isArray(params[0]) ? params[0].length : 1
        if ((askedFor.get(error) ?? 0) <= own) throw error
        apartUntil = clock.monotonicMs() + APART_MS
        return client.call(method, params, signal)
      }
    },
  }
}
