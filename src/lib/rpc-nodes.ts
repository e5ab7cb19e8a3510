import type { Clock } from './clock.ts'
import type { RpcCall } from './json-rpc.ts'

export interface ChainLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/** One node of a network. `latest` is the highest block that it is known to have. */
export interface RpcNode {
  readonly call: RpcCall
  latest: bigint
}

export interface NodeChoice<T> {
  /** Leaves out the nodes that failed a moment ago, unless all did. */
  readonly awakeOnly: boolean
  /** Once a value is enough, the other nodes are not waited for. */
  readonly enough: (value: T) => boolean
}
export type NodeAnswer<T, E> = { readonly value: T } | { readonly error: E }

/**
 * The nodes of one network, in the order of the configuration, those that failed a moment ago last. A node is used only when it serves the
 * right chain; that is asked once, and again after a failure.
 */
export interface RpcNodes<E extends Error> {
  /**
   * Does something on the first node that can. Goes on to the next when a node gives no answer, or says that it can't now; what else a node
   * refuses is final. @throws E
   */
  first<T>(use: (node: RpcNode) => Promise<T>, signal: AbortSignal): Promise<T>
  /** Does something on many nodes at once; each gives a value or an error. */
  all<T>(use: (node: RpcNode) => Promise<T>, choice: NodeChoice<T>, signal: AbortSignal): Promise<readonly NodeAnswer<T, E>[]>
}

/** What a chain makes of failures. */
export interface NodeRules<E extends Error> {
  /** Throws unless the node serves the right chain. `number` counts from 1, for messages. The call has its own time-out. */
  verify(call: RpcCall, number: number): Promise<void>
  /** A failed call as the chain's error; throws what is none, a defect, as it is. */
  toError(error: unknown): E
  /** Another node may know better; this one rests, and is verified again. */
  passesOn(error: E): boolean
  retryAfterMs(error: E): number | undefined
  /** The one that says most, when no node could; none when there is no node. */
  worst(errors: readonly E[]): E
  /** For the log. */
  code(error: E): string
}

/** How long a node that gave no answer is asked last. */
const restMs = 10_000

export function createRpcNodes<E extends Error>(options: {
  readonly calls: readonly RpcCall[]
  readonly network: string
  readonly clock: Clock
  readonly log?: ChainLog | undefined
  readonly rules: NodeRules<E>
}): RpcNodes<E> {
  const { clock, network, log, rules } = options
  const nodes = options.calls.map((call, index) => ({
    call,
    latest: 0n,
    index,
    verified: undefined as Promise<void> | undefined,
    restsUntil: 0,
  }))
  type Node = (typeof nodes)[number]
  type Attempt<T> = NodeAnswer<T, E>

  const attempt = async <T>(node: Node, use: (node: RpcNode) => Promise<T>, signal: AbortSignal): Promise<Attempt<T>> => {
    try {
      // Not the caller's signal: others may wait for the same check.
      node.verified ??= rules.verify(node.call, node.index + 1)
      await node.verified
      signal.throwIfAborted()
      return { value: await use(node) }
    } catch (caught) {
      signal.throwIfAborted()
      const error = rules.toError(caught)
      if (rules.passesOn(error)) {
        node.verified = undefined
        node.restsUntil = clock.monotonicMs() + Math.max(restMs, rules.retryAfterMs(error) ?? 0)
        log?.warn({ network, node: node.index + 1, code: rules.code(error) }, error.message)
      }
      return { error }
    }
  }

  const inOrder = (): readonly Node[] => {
    const now = clock.monotonicMs()
    return nodes.toSorted((a, b) => Number(a.restsUntil > now) - Number(b.restsUntil > now) || a.index - b.index)
  }

  return {
    first: async (use, signal) => {
      const failures: E[] = []
      for (const node of inOrder()) {
        const answer = await attempt(node, use, signal)
        if ('value' in answer) return answer.value
        if (!rules.passesOn(answer.error)) throw answer.error
        failures.push(answer.error)
      }
      throw rules.worst(failures)
    },
    all: <T>(use: (node: RpcNode) => Promise<T>, { awakeOnly, enough }: NodeChoice<T>, signal: AbortSignal) => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly Attempt<T>[]>()
      const answers: Attempt<T>[] = []
      const ordered = inOrder()
      const awake = ordered.filter(({ restsUntil }) => restsUntil <= clock.monotonicMs())
      const chosen = awakeOnly && awake.length > 0 ? awake : ordered
      const take = (answer: Attempt<T>) => {
        answers.push(answer)
        if (answers.length === chosen.length || ('value' in answer && enough(answer.value))) resolve([...answers])
      }
      for (const node of chosen) attempt(node, use, signal).then(take, reject)
      return promise
    },
  }
}
