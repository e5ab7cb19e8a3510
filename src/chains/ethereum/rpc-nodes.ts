import { lowerCase } from '../../lib/chain-types.ts'
import type { Clock } from '../../lib/clock.ts'
import { isLastingRefusal, type RpcClient, RpcFailure, type RpcResult } from '../../lib/json-rpc.ts'
import { accessDenied } from '../nodes/access.ts'
import { type ChainLog, createNodes, type NodeHandle, type Nodes } from '../nodes/nodes.ts'
import { withRefusals } from '../nodes/refusals.ts'
import { ChainError, type ChainErrorCode, type Hex } from './chain.ts'
import type { EthereumNetworkConfig } from './networks.ts'
import { classifyNodeError, plainMessages, quoted } from './rpc-errors.ts'
import { block, blockRef, read, resultOf } from './rpc-formats.ts'
import { createWorst } from './worst.ts'

export type { ChainLog } from '../nodes/nodes.ts'

/** What a node is: its chain id is the configuration's, and its genesis block that of the network's other nodes. */
export interface EthereumIdentity {
  readonly genesisHash?: Hex
}
export type RpcNode = RpcClient & NodeHandle<EthereumIdentity>
/** The nodes of one Ethereum network. All throw `ChainError`. */
export type RpcNodes = Nodes<RpcClient, EthereumIdentity, ChainError>

/** JSON-RPC 2.0, section 5.1: internal error. */
const internalError = -32603
/** Mainnet's slot; heads have timestamps, so that this is asked of none. */
const blockMs = 12_000

export function createRpcNodes(options: {
  readonly clients: readonly RpcClient[]
  readonly config: Pick<EthereumNetworkConfig, 'name' | 'chainId' | 'genesisHash' | 'pollIntervalMs'>
  readonly clock: Clock
  readonly log?: ChainLog | undefined
}): RpcNodes {
  const { clients, clock, log, config } = options
  const { name: network, chainId, pollIntervalMs } = config
  /** Of a network whose configuration does not give it, the first that was seen: its nodes must agree. */
  let genesisHash = config.genesisHash === undefined ? undefined : lowerCase(config.genesisHash)

  const refuse = (number: number, what: string, served: bigint | number = chainId): never => {
    log?.warn({ network, node: number, chainId: served.toString(), configured: chainId }, `a node does not serve ${what}: it is not used`)
    throw new ChainError('wrong-chain', `node ${number} of ${network} does not serve ${what}`)
  }

  const chain = { method: 'eth_chainId', params: [] }
  const notLetIn = (error: unknown, node: number): unknown => {
    const denied = accessDenied(error, `node ${node} of ${network}`, chain.method)
    return denied === undefined ? error : new ChainError('access-denied', denied)
  }
  const chainIdOf = (result: RpcResult | undefined, node: number): unknown => {
    try {
      return resultOf(result)
    } catch (error) {
      throw notLetIn(error, node)
    }
  }

  const verify = async (client: RpcClient, number: number): Promise<EthereumIdentity> => {
    const { signal } = new AbortController()
    const first = { method: 'eth_getBlockByNumber', params: ['0x0', false] }
    // Of one node there is nothing to compare with.
    const compared = config.genesisHash !== undefined || clients.length > 1
    const results = await client.batch(compared ? [chain, first] : [chain], signal).catch((error: unknown) => {
      throw notLetIn(error, number)
    })
    const answer = chainIdOf(results[0], number)
    if (typeof answer !== 'string' || !/^0x[0-9a-fA-F]{1,16}$/.test(answer)) throw new RpcFailure('no-answer', 'the node gave no chain id')
    if (BigInt(answer) !== BigInt(chainId)) refuse(number, `chain id ${chainId}`, BigInt(answer))
    if (!compared) return {}
    const { hash } = read(blockRef, resultOf(results[1]), 'eth_getBlockByNumber')
    genesisHash ??= hash
    if (hash !== genesisHash) refuse(number, `the genesis ${genesisHash}`)
    return { genesisHash }
  }

  return createNodes({
    clients,
    network,
    clock,
    log,
    pollMs: pollIntervalMs,
    blockMs,
    fewBlocks: 3n,
    rules: {
      verify,
      head: async (node) => {
        const answer = await node.call('eth_getBlockByNumber', ['latest', false], new AbortController().signal)
        const { number, timestamp } = read(block, answer, 'eth_getBlockByNumber')
        return { height: number, timestamp }
      },
      guard: withRefusals,
      toError: toChainError,
      passesOn: ({ code }) => code === 'unavailable' || code === 'wrong-chain' || code === 'access-denied' || code === 'rejected',
      rests: ({ code }, cause) => code === 'wrong-chain' || code === 'access-denied' || (code === 'unavailable' && isNodesOwn(cause)),
      unknownRefusal: ({ code }, cause) =>
        cause instanceof RpcFailure && (code === 'rejected' || cause.node?.code === internalError) ? cause.method : undefined,
      retryAfterMs: (error) => error.retryAfterMs,
      worst: createWorst(network),
      code: (error) => error.code,
    },
  })
}

/** The node itself is not well, or wants fewer calls; that it lacks a block or a state says nothing of what else it can. */
function isNodesOwn(cause: unknown): boolean {
  if (!(cause instanceof RpcFailure)) return false
  return (
    cause.kind !== 'node' || cause.retryAfterMs !== undefined || /rate|too many|limit|capacity|syncing/i.test(cause.node?.message ?? '')
  )
}

/** A failed call as the chain's error; what is not one is a defect and stays as it is. */
export function toChainError(error: unknown): ChainError {
  if (error instanceof ChainError) return error
  if (!(error instanceof RpcFailure)) throw error
  if (error.kind === 'refused') return new ChainError('rejected', error.message, error.retryAfterMs, true)
  if (error.node === undefined) return new ChainError('unavailable', error.message, error.retryAfterMs)
  const code: ChainErrorCode = classifyNodeError(error.node)
  const message =
    code === 'rejected' && error.method !== undefined
      ? `the node refused ${error.method} for a reason that is not known here (${quoted(error.node)})`
      : plainMessages[code]
  return new ChainError(code, message, error.retryAfterMs, code === 'rejected' && isLastingRefusal(error))
}
