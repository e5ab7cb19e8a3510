import { type Call, type Fault, type FaultyProxy, startFaultyHttp } from './faulty-http.ts'

/**
 * A JSON-RPC proxy in front of a node: rules and counters go by method (`eth_sendRawTransaction`), also within batches. A fault
 * strikes the whole HTTP request, with all calls of its batch.
 */
export const startFaultyRpc = (target: string): Promise<FaultyProxy> =>
  startFaultyHttp({ target, names: ({ body }) => requests(body).map(({ method }) => method) })

/** The node answers with an error. With `afterPassing`, it did the work all the same. */
export const rpcError = (message: string, { code = -32000, afterPassing = false } = {}): Fault => ({
  kind: 'answer',
  afterPassing,
  answer: (call) => rpcAnswer(call, { error: { code, message } }),
})

/** The node answers with another result than its own. */
export const rpcResult = (result: unknown): Fault => ({ kind: 'answer', answer: (call) => rpcAnswer(call, { result }) })

/** Answers of real nodes, in geth's words; anvil says "transaction already imported" for the first. */
export const nodeSays = {
  alreadyKnown: rpcError('already known'),
  alreadyImported: rpcError('transaction already imported', { code: -32003 }),
  nonceTooLow: rpcError('nonce too low: next nonce 5, tx nonce 4'),
  replacementUnderpriced: rpcError('replacement transaction underpriced'),
  underpriced: rpcError('transaction underpriced'),
  feeCapTooLow: rpcError(
    'max fee per gas less than block base fee: address 0x0000000000000000000000000000000000000000, maxFeePerGas: 1, baseFee: 7',
  ),
  insufficientFunds: rpcError(
    'insufficient funds for gas * price + value: address 0x0000000000000000000000000000000000000000 have 0 want 1',
  ),
  reverted: rpcError('execution reverted', { code: 3 }),
  rateLimited: rpcError('Too Many Requests', { code: -32005 }),
} as const satisfies Record<string, Fault>

/** `eth_chainId` of another chain (default mainnet's): what a mistyped URL gives. */
export const wrongChainId = (chainId = 1): Fault => rpcResult(`0x${chainId.toString(16)}`)

interface RpcRequest {
  readonly id: unknown
  readonly method: string
}

function requests(body: string): readonly RpcRequest[] {
  try {
    const parsed = JSON.parse(body) as RpcRequest | readonly RpcRequest[]
    return Array.isArray(parsed) ? parsed : [parsed as RpcRequest]
  } catch {
    return []
  }
}

function rpcAnswer(call: Call, content: object): { status: number; headers: Record<string, string>; body: string } {
  const answers = requests(call.body).map(({ id }) => ({ jsonrpc: '2.0', id, ...content }))
  const isBatch = call.body.trimStart().startsWith('[')
  return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(isBatch ? answers : answers[0]) }
}
