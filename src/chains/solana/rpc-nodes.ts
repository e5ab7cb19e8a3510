import type { Clock } from '../../lib/clock.ts'
import { type RpcClient, RpcFailure } from '../../lib/json-rpc.ts'
import { accessDenied } from '../nodes/access.ts'
import { type ChainLog, createNodes, type NodeHandle, type Nodes } from '../nodes/nodes.ts'
import { withRefusals } from '../nodes/refusals.ts'
import { SolanaError, type SolanaErrorCode } from './chain.ts'
import type { SolanaNetworkConfig } from './networks.ts'
import { clockSysvar } from './programs.ts'
import { toSolanaError } from './rpc-errors.ts'
import { account, read, withContext } from './rpc-formats.ts'
import { decodeClock } from './sysvars.ts'
import { createWorst } from './worst.ts'

export type RpcNode = RpcClient & NodeHandle<string>
/** The nodes of one cluster; a node is used only when it serves the right genesis. All throw `SolanaError`. */
export type RpcNodes = Nodes<RpcClient, string, SolanaError>

/** One call on the first node that can, its answer read by a schema. */
export type Ask = <T>(method: string, params: readonly unknown[], schema: Parameters<typeof read<T>>[0], signal: AbortSignal) => Promise<T>

/** JSON-RPC 2.0, section 5.1: internal error. */
const internalError = -32603
/** A slot's time, in ms. Source: Solana documentation, "Terminology": about 400 ms. */
const blockMs = 400

/** What another node may know better. */
const passedOn: ReadonlySet<SolanaErrorCode> = new Set([
  'unavailable',
  'wrong-cluster',
  'access-denied',
  'node-behind',
  'no-history',
  'rejected',
])

export function createRpcNodes(options: {
  readonly clients: readonly RpcClient[]
  readonly config: SolanaNetworkConfig
  readonly clock: Clock
  readonly log?: ChainLog | undefined
}): RpcNodes {
  const { clients, config, clock, log } = options
  return createNodes({
    clients,
    network: config.name,
    clock,
    log,
    pollMs: config.pollIntervalMs,
    blockMs,
    // Ten seconds: nodes differ by a few slots as a matter of course.
    fewBlocks: 25n,
    rules: {
      verify: async (client, number) => {
        const genesis = await client.call('getGenesisHash', [], new AbortController().signal).catch((error: unknown) => {
          const denied = accessDenied(error, `node ${number} of ${config.name}`, 'getGenesisHash')
          throw denied === undefined ? error : new SolanaError('access-denied', denied)
        })
        if (genesis === config.genesisHash) return config.genesisHash
        if (typeof genesis !== 'string') throw new RpcFailure('no-answer', 'the node gave no genesis hash')
        log?.warn({ network: config.name, node: number }, 'a node serves another genesis: it is not used')
        throw new SolanaError('wrong-cluster', `node ${number} of ${config.name} does not serve the genesis ${config.genesisHash}`)
      },
      // The clock's account comes with the slot that it is of, and holds the time of day.
      head: async (node) => {
        const params = [clockSysvar, { commitment: 'confirmed', encoding: 'base64' }]
        const answer = await node.call('getAccountInfo', params, new AbortController().signal)
        const { context, value } = read(withContext(account), answer, 'getAccountInfo')
        return { height: context.slot, timestamp: value === null ? undefined : Number(decodeClock(value.data).unixTimestamp) }
      },
      guard: withRefusals,
      toError: (error) => toSolanaError(error),
      passesOn: ({ code }) => passedOn.has(code),
      rests: ({ code }, cause) =>
        code === 'wrong-cluster' ||
        code === 'access-denied' ||
        code === 'node-behind' ||
        (code === 'unavailable' && cause instanceof RpcFailure),
      unknownRefusal: ({ code }, cause) =>
        cause instanceof RpcFailure && (code === 'rejected' || cause.node?.code === internalError) ? cause.method : undefined,
      retryAfterMs: (error) => error.retryAfterMs,
      worst: createWorst(config.name),
      code: ({ code }) => code,
    },
  })
}
