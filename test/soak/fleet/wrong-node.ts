import { keccak256 } from 'viem'
import type { Call, Fault } from '../../chains/faulty-http.ts'

interface RpcCall {
  readonly id: unknown
  readonly method: string
  readonly params?: readonly unknown[]
}
interface RpcAnswer {
  readonly id: unknown
  readonly result?: unknown
}

const hex = (number: number): string => `0x${number.toString(16)}`
const callsOf = (body: string): readonly RpcCall[] => [JSON.parse(body) as RpcCall | readonly RpcCall[]].flat()

const eachCall = (body: string, change: (call: RpcCall) => RpcCall): string => {
  const parsed = JSON.parse(body) as RpcCall | RpcCall[]
  return JSON.stringify(Array.isArray(parsed) ? parsed.map(change) : change(parsed))
}

/** Changes the answer to each call of a request, batches included. */
function eachAnswer(body: unknown, { body: asked }: Call, change: (result: unknown, method: string) => unknown): unknown {
  const methods = new Map(callsOf(asked).map(({ id, method }) => [id, method]))
  const changed = (answer: RpcAnswer): RpcAnswer =>
    answer.result === undefined ? answer : { ...answer, result: change(answer.result, methods.get(answer.id) ?? '') }
  return Array.isArray(body) ? (body as RpcAnswer[]).map(changed) : changed(body as RpcAnswer)
}

const numberOf = (result: unknown, field: 'number' | 'blockNumber'): number | undefined => {
  const value = (result as Readonly<Record<string, unknown>> | null)?.[field]
  return typeof value === 'string' ? Number(value) : undefined
}

/** It stands still at a block: it shows that one as its newest, and knows of nothing later. What it is sent it passes on. */
export function standingStill(head: number): Fault {
  const tags: Readonly<Record<string, number>> = {
    latest: head,
    pending: head,
    safe: Math.max(0, head - 1),
    finalized: Math.max(0, head - 2),
  }
  const pinned = (value: unknown): unknown => {
    if (typeof value === 'string' && Object.hasOwn(tags, value)) return hex(tags[value] ?? head)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const filter = value as Readonly<Record<string, unknown>>
    if (!('toBlock' in filter || 'fromBlock' in filter)) return value
    const bound = (at: unknown): unknown => {
      const tag = pinned(at)
      return typeof tag === 'string' && Number(tag) > head ? hex(head) : tag
    }
    return { ...filter, fromBlock: bound(filter.fromBlock ?? 'latest'), toBlock: bound(filter.toBlock ?? 'latest') }
  }
  return {
    kind: 'ask',
    body: ({ body }) => eachCall(body, (call) => ({ ...call, params: (call.params ?? []).map(pinned) })),
    rewrite: (answer, call) =>
      eachAnswer(answer, call, (result, method) => {
        if (method === 'eth_blockNumber') return hex(head)
        if ((numberOf(result, 'number') ?? 0) > head) return null
        if ((numberOf(result, 'blockNumber') ?? 0) <= head) return result
        return method === 'eth_getTransactionByHash'
          ? { ...(result as object), blockNumber: null, blockHash: null, transactionIndex: null }
          : null
      }),
  }
}

/** It answers for every block as for its pool. */
export const poolAsFinal: Fault = {
  kind: 'ask',
  body: ({ body }) =>
    eachCall(body, (call) => (call.method === 'eth_getTransactionCount' ? { ...call, params: [call.params?.[0], 'pending'] } : call)),
}

const lie = (method: string, result: (true_: unknown) => unknown): Fault => ({
  kind: 'rewrite',
  rewrite: (body, call) => eachAnswer(body, call, (value, asked) => (asked === method ? result(value) : value)),
})

export const hidesReceipts = lie('eth_getTransactionReceipt', () => null)
export const hidesLogs = lie('eth_getLogs', () => [])
/** Its receipts are of blocks that are in no chain. */
export const orphanedReceipts = lie('eth_getTransactionReceipt', (receipt) =>
  receipt === null ? null : { ...(receipt as object), blockHash: `0x${'ab'.repeat(32)}` },
)
export const otherChain = lie('eth_chainId', () => '0x1')

/** It takes the bytes, says their hash, and tells nobody. */
export const keepsToItself: Fault = {
  kind: 'answer',
  answer: ({ body }) => {
    const answers = callsOf(body).map(({ id, params }) => ({
      jsonrpc: '2.0',
      id,
      result: keccak256((params?.[0] ?? '0x') as `0x${string}`),
    }))
    return {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body.trimStart().startsWith('[') ? answers : answers[0]),
    }
  },
}
