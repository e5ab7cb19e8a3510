import { isLastingRefusal, type NodeError, RpcFailure } from '../../lib/json-rpc.ts'
import { quoted } from '../nodes/quoted.ts'
import { SolanaError, type SolanaErrorCode } from './chain.ts'
import { describeFailure, meaningOf, readTransactionError } from './transaction-error.ts'

/** JSON-RPC error codes of Agave's RPC server (rpc-client-api, custom_error.rs). */
const codes: Readonly<Record<number, SolanaErrorCode>> = {
  /** SendTransactionPreflightFailure: its data say why; see below. */
  [-32002]: 'failed',
  [-32003]: 'signature-failure',
  [-32004]: 'unavailable',
  /** NodeUnhealthy. */
  [-32005]: 'node-behind',
  [-32007]: 'unavailable',
  [-32009]: 'unavailable',
  [-32010]: 'rejected',
  /** TransactionHistoryNotAvailable. */
  [-32011]: 'no-history',
  [-32014]: 'unavailable',
  /** MinContextSlotNotReached. */
  [-32016]: 'node-behind',
  [-32603]: 'unavailable',
}

/** Refusals that the same call would meet again: the account is left out of an index, a signature's length, a transaction's version. */
const lasting: ReadonlySet<number> = new Set([-32010, -32013, -32015])
/** What a node needs to serve a method, by Agave's options. Source: agave, validator/src/cli.rs. */
const fullApi = '--full-rpc-api'
const withHistory = '--full-rpc-api and --enable-rpc-transaction-history'
const historical: ReadonlySet<string> = new Set([
  'getSignatureStatuses',
  'getSignaturesForAddress',
  'getTransaction',
  'getFirstAvailableBlock',
  'getBlocks',
])
const needed = (method: string): string => `a node of one's own serves it with ${historical.has(method) ? withHistory : fullApi}`

/** Where a provider's proxy answers instead of the node. */
const busy = /rate.?limit|too many requests|timed? ?out|timeout|overloaded|behind|unhealthy|internal error|service unavailable/i

/** A plain message for each meaning: a node's own text may hold what must not be shown. */
const plainMessages: Readonly<Record<SolanaErrorCode, string>> = {
  'blockhash-not-found': 'the blockhash has expired, or the node has not seen it yet',
  'already-processed': 'the transaction is in a block already',
  'insufficient-funds': 'an account does not hold enough for amount, fees and rent',
  'account-in-use': 'the address of the new account is in use already',
  'epoch-rewards': 'rewards are being distributed: stakes cannot change until that is over',
  'lockup-in-force': "the stake account's lockup is in force",
  'already-deactivated': 'the stake is deactivated already',
  'too-soon-to-redelegate': 'the stake cannot be delegated again in this epoch',
  'insufficient-delegation': "the amount is under the cluster's minimum delegation",
  'wrong-authority': 'the signers are not the authorities that the account names',
  'signature-failure': 'a signature is missing or does not fit the message',
  busy: 'an account is in use by another transaction, or the block is full',
  failed: 'the transaction would fail',
  unreadable: 'an account has a layout that is not known here',
  'no-history': 'the node keeps no history of transactions (--enable-rpc-transaction-history)',
  'node-behind': 'the node lags behind the cluster',
  unavailable: 'the node cannot answer now',
  'wrong-cluster': 'the node serves another cluster',
  'access-denied': 'the node does not let us in',
  rejected: 'the node refused for a reason that is not known here',
}

/**
 * A failed call as the chain's error; what is not one is a defect and is thrown as it is.
 * @param programs of the message that was sent, by instruction.
 */
export function toSolanaError(error: unknown, programs: readonly string[] = []): SolanaError {
  if (error instanceof SolanaError) return error
  if (!(error instanceof RpcFailure)) throw error
  const { node, retryAfterMs, method } = error
  if (error.kind === 'refused')
    return new SolanaError('rejected', `${error.message}${method === undefined ? '' : `; ${needed(method)}`}`, {
      retryAfterMs,
      isLasting: true,
    })
  if (node === undefined) return new SolanaError('unavailable', error.message, { retryAfterMs })
  const failure = failureIn(node)
  if (failure === undefined) {
    const code = codes[node.code] ?? (node.code === 429 || busy.test(node.message) ? 'unavailable' : 'rejected')
    const isLasting = code === 'rejected' && isLastingRefusal(error, lasting)
    const why = isLasting
      ? `refused ${method ?? 'a call'} with code ${node.code}: it does not serve it as it was asked, and would not again`
      : `refused ${method ?? 'a call'} for a reason that is not known here (${quoted(node)})`
    const hint = isLasting && method !== undefined ? `; ${needed(method)}` : ''
    const message = code === 'rejected' ? `the node ${why}${hint}` : plainMessages[code]
    return new SolanaError(code, message, { retryAfterMs, isLasting })
  }
  const code = meaningOf(failure, programs)
  return new SolanaError(code, `${plainMessages[code]} (${describeFailure(failure)})`, { retryAfterMs, failure })
}

export const plainMessage = (code: SolanaErrorCode): string => plainMessages[code]

function failureIn({ code, data }: NodeError) {
  if (code !== -32002 || data === null || typeof data !== 'object') return undefined
  return 'err' in data ? readTransactionError(data.err) : undefined
}
