import type { Clock } from '../../lib/clock.ts'
import { ChainError, type ChainErrorCode } from './chain.ts'
import { type RpcCall, RpcFailure } from './json-rpc.ts'
import { classifyNodeError, plainMessages } from './rpc-errors.ts'

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
export type NodeAnswer<T> = { readonly value: T } | { readonly error: ChainError }

/**
 * The nodes of one network, in the order of the configuration, those that failed a moment ago last. A node is used only when it serves the
 * right chain id; that is asked once, and again after a failure.
 */
export interface RpcNodes {
  /**
   * Does something on the first node that can. Goes on to the next when a node gives no answer, or says that it can't now; what else a node
   * refuses is final. @throws ChainError
   */
  first<T>(use: (node: RpcNode) => Promise<T>, signal: AbortSignal): Promise<T>
  /** Does something on many nodes at once; each gives a value or a ChainError. */
  all<T>(use: (node: RpcNode) => Promise<T>, choice: NodeChoice<T>, signal: AbortSignal): Promise<readonly NodeAnswer<T>[]>
}

/** How long a node that gave no answer is asked last. */
const restMs = 10_000

export function createRpcNodes(options: {
  readonly calls: readonly RpcCall[]
  readonly chainId: number
  readonly network: string
  readonly clock: Clock
  readonly log?: ChainLog | undefined
}): RpcNodes {
  const { clock, chainId, network, log } = options
  const nodes = options.calls.map((call, index) => ({
    call,
    latest: 0n,
    index,
    verified: undefined as Promise<void> | undefined,
    restsUntil: 0,
  }))
  type Node = (typeof nodes)[number]

  const verify = async (node: Node): Promise<void> => {
    // Not the caller's signal: others may wait for the same check. The call has its own time-out.
    const answer = await node.call('eth_chainId', [], new AbortController().signal)
    if (typeof answer !== 'string' || !/^0x[0-9a-fA-F]{1,16}$/.test(answer)) throw new RpcFailure('no-answer', 'the node gave no chain id')
    if (BigInt(answer) === BigInt(chainId)) return
    log?.warn({ network, node: node.index + 1, chainId }, 'a node serves another chain id: it is not used')
    throw new ChainError('wrong-chain', `node ${node.index + 1} of ${network} does not serve chain id ${chainId}`)
  }

  const attempt = async <T>(node: Node, use: (node: RpcNode) => Promise<T>, signal: AbortSignal): Promise<T> => {
    try {
      node.verified ??= verify(node)
      await node.verified
      signal.throwIfAborted()
      return await use(node)
    } catch (error) {
      signal.throwIfAborted()
      const failure = toChainError(error)
      if (failure.code === 'unavailable' || failure.code === 'wrong-chain') {
        node.verified = undefined
        node.restsUntil = clock.monotonicMs() + Math.max(restMs, failure.retryAfterMs ?? 0)
        log?.warn({ network, node: node.index + 1, code: failure.code }, failure.message)
      }
      throw failure
    }
  }

  const inOrder = (): readonly Node[] => {
    const now = clock.monotonicMs()
    return nodes.toSorted((a, b) => Number(a.restsUntil > now) - Number(b.restsUntil > now) || a.index - b.index)
  }

  return {
    first: async (use, signal) => {
      const failures: ChainError[] = []
      for (const node of inOrder()) {
        try {
          return await attempt(node, use, signal)
        } catch (error) {
          if (!(error instanceof ChainError) || !passesOn(error.code)) throw error
          failures.push(error)
        }
      }
      throw failures.find(({ code }) => code === 'wrong-chain') ?? failures[0] ?? new ChainError('unavailable', `${network} has no node`)
    },
    all: <T>(use: (node: RpcNode) => Promise<T>, { awakeOnly, enough }: NodeChoice<T>, signal: AbortSignal) => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly NodeAnswer<T>[]>()
      const answers: NodeAnswer<T>[] = []
      const ordered = inOrder()
      const awake = ordered.filter(({ restsUntil }) => restsUntil <= clock.monotonicMs())
      const chosen = awakeOnly && awake.length > 0 ? awake : ordered
      const take = (answer: NodeAnswer<T>) => {
        answers.push(answer)
        if (answers.length === chosen.length || ('value' in answer && enough(answer.value))) resolve([...answers])
      }
      for (const node of chosen) {
        attempt(node, use, signal).then(
          (value) => take({ value }),
          (error) => (error instanceof ChainError ? take({ error }) : reject(error)),
        )
      }
      return promise
    },
  }
}

/** Another node may know better. */
const passesOn = (code: ChainErrorCode): boolean => code === 'unavailable' || code === 'wrong-chain'

/** A failed call as the chain's error; what is not one is a defect and stays as it is. */
function toChainError(error: unknown): ChainError {
  if (error instanceof ChainError) return error
  if (!(error instanceof RpcFailure)) throw error
  if (error.node === undefined) return new ChainError('unavailable', error.message, error.retryAfterMs)
  const code = classifyNodeError(error.node)
  return new ChainError(code, plainMessages[code], error.retryAfterMs)
}
