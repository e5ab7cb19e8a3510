import type { Clock } from '../../lib/clock.ts'
import { type RpcCall, RpcFailure } from '../../lib/json-rpc.ts'
import { type ChainLog, createRpcNodes as createNodes, type RpcNodes as Nodes } from '../../lib/rpc-nodes.ts'
import { ChainError, type ChainErrorCode } from './chain.ts'
import { classifyNodeError, plainMessages } from './rpc-errors.ts'

export type { ChainLog, RpcNode } from '../../lib/rpc-nodes.ts'

/** The nodes of one Ethereum network; a node is used only when it serves the right chain id. All throw `ChainError`. */
export type RpcNodes = Nodes<ChainError>

export function createRpcNodes(options: {
  readonly calls: readonly RpcCall[]
  readonly chainId: number
  readonly network: string
  readonly clock: Clock
  readonly log?: ChainLog | undefined
}): RpcNodes {
  const { calls, chainId, network, clock, log } = options
  return createNodes({
    calls,
    network,
    clock,
    log,
    rules: {
      verify: async (call, number) => {
        const answer = await call('eth_chainId', [], new AbortController().signal)
        if (typeof answer !== 'string' || !/^0x[0-9a-fA-F]{1,16}$/.test(answer))
          throw new RpcFailure('no-answer', 'the node gave no chain id')
        if (BigInt(answer) === BigInt(chainId)) return
        log?.warn({ network, node: number, chainId }, 'a node serves another chain id: it is not used')
        throw new ChainError('wrong-chain', `node ${number} of ${network} does not serve chain id ${chainId}`)
      },
      toError: toChainError,
      passesOn: ({ code }) => passesOn(code),
      retryAfterMs: (error) => error.retryAfterMs,
      worst: (errors) =>
        errors.find(({ code }) => code === 'wrong-chain') ?? errors[0] ?? new ChainError('unavailable', `${network} has no node`),
      code: (error) => error.code,
    },
  })
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
