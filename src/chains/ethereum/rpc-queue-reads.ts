import { z } from 'zod'
import { sameHex } from '../../lib/hex.ts'
import { isLastingRefusal, RpcFailure } from '../../lib/json-rpc.ts'
import { ChainError } from './chain.ts'
import { createLogReader } from './log-reader.ts'
import type { BlockWitness, QueueReads } from './request-queue.ts'
import { blockRef, chainBlock, quantity, rawLog, read, toHex } from './rpc-formats.ts'
import type { RpcNode, RpcNodes } from './rpc-nodes.ts'

/** `QueueReads` by JSON-RPC. A node may lack what another has, an old state above all, so every node is asked until one answers. */
export function createQueueReads(nodes: Pick<RpcNodes, 'first' | 'race' | 'each' | 'isOut'>): QueueReads & BlockWitness {
  const found = async <T>(ask: (node: RpcNode) => Promise<T | undefined>, signal: AbortSignal): Promise<T | undefined> => {
    const answers = await nodes.race(ask, (value) => value !== undefined, signal)
    for (const answer of answers) if ('value' in answer && answer.value !== undefined) return answer.value
    const [failed] = answers.flatMap((answer) => ('error' in answer ? [answer.error] : []))
    // One that answered "none" does not outweigh one that could not answer.
    if (failed !== undefined) throw new ChainError('unavailable', failed.message, failed.retryAfterMs)
    return undefined
  }

  return {
    blockAt: async (at, signal) => {
      if (typeof at !== 'bigint') {
        return found(async (node) => {
          const answer = await node.call('eth_getBlockByHash', [at, false], signal)
          return answer === null ? undefined : read(chainBlock, answer, 'eth_getBlock')
        }, signal)
      }
      // Which block is canonical, a node that is behind the others is asked last: it may be on a fork, and be the fastest to answer.
      const canonical = async (node: RpcNode) => {
        const answer = await node.call('eth_getBlockByNumber', [toHex(at), false], signal)
        return answer === null ? undefined : read(chainBlock, answer, 'eth_getBlock')
      }
      return (await nodes.first(canonical, signal)) ?? found(canonical, signal)
    },

    standing: async ({ number, hash }, signal) => {
      const answers = await nodes.each((node) => blockBy(node, number, signal), signal)
      const known = answers.flatMap((answer, index) => {
        const has = answer !== undefined && 'value' in answer ? answer.value?.hash : undefined
        return [{ has, isOut: nodes.isOut(index) }]
      })
      const healthy = known.filter(({ has, isOut }) => has !== undefined && !isOut)
      const counted = healthy.length > 0 ? healthy : known.filter(({ has }) => has !== undefined)
      const having = counted.filter(({ has }) => has !== undefined && sameHex(has, hash))
      if (counted.length === 0) return 'unknown'
      if (having.length > 0) return having.length === counted.length ? 'stands' : 'disputed'
      return known.some(({ has, isOut }) => has === undefined && !isOut) ? 'unknown' : 'left'
    },

    storageAt: (address, slots, blockHash, signal) =>
      found(async (node) => {
        try {
          const at = { blockHash, requireCanonical: true }
          return await Promise.all(
            slots.map(async (slot) =>
              read(quantity, await node.call('eth_getStorageAt', [address, toHex(slot), at], signal), 'eth_getStorageAt'),
            ),
          )
        } catch (error) {
          if (error instanceof RpcFailure && isNotKept(error)) return undefined
          throw error
        }
      }, signal),

    logsIn: async (address, blockHash, signal) => {
      const logs = await found(
        async (node) => read(z.array(rawLog), await node.call('eth_getLogs', [{ address, blockHash }], signal), 'eth_getLogs'),
        signal,
      )
      return logs ?? []
    },

    countLogs: async (address, from, to, signal) => {
      const counted = await found(async (node) => {
        // Two days of a full queue are more than a node gives at once.
        const logs = async (first: bigint, last: bigint) =>
          read(
            z.array(rawLog),
            await node.call('eth_getLogs', [{ address, fromBlock: toHex(first), toBlock: toHex(last) }], signal),
            'eth_getLogs',
          )
        let count = 0
        for await (const chunk of createLogReader().read({ logs }, from, to, to)) count += chunk.logs.length
        return count
      }, signal)
      return counted ?? 0
    },
  }
}

/**
 * A node's word that it has no state of then, or serves none of a block by its hash (EIP-1898), or not to us. Sources: geth and its forks (missing trie node,
 * "state … is not available", historical state), Erigon and reth (pruned), Nethermind ("No state available"), Besu ("World state unavailable").
 */
const isNotKept = (failure: RpcFailure): boolean =>
  isLastingRefusal(failure) ||
  /missing trie node|state.{0,80}(not |un)available|no state available|historical state|prun|archive/i.test(failure.node?.message ?? '')

const blockBy = async (node: RpcNode, number: bigint, signal: AbortSignal) => {
  const answer = await node.call('eth_getBlockByNumber', [toHex(number), false], signal)
  return answer === null ? undefined : read(blockRef, answer, 'eth_getBlockByNumber')
}
