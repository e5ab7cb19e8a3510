import type { ChainReceipt } from '../../../chains/ethereum/chain.ts'
import {
  decodeRequestLog,
  type LoggedRequest,
  RequestEncodingError,
  type ValidatorRequest,
  withdrawalRequestContract,
} from '../../../chains/ethereum/requests.ts'
import { gwei } from '../../../lib/amounts.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { RequestRow } from '../../store/requests.ts'
import type { Mismatch } from '../observe.ts'

/** What a stored request asks for. */
export const requestOf = (row: Pick<RequestRow, 'pubkey' | 'amount_gwei'>): ValidatorRequest =>
  row.amount_gwei === null
    ? { kind: 'exit', pubkey: row.pubkey }
    : { kind: 'withdrawal', pubkey: row.pubkey, amountGwei: gwei(row.amount_gwei) }

/**
 * What a mined transaction asked the consensus layer for. The contract's own logs tell it, so that a request by way of another contract (a wallet
 * of several signers) counts as well; who sent it is for the consensus layer to judge. One that makes it several times has made it: the first is this one.
 */
export function madeRequest(
  receipt: Pick<ChainReceipt, 'logs'>,
  wanted: ValidatorRequest,
): (LoggedRequest & { readonly times: number }) | { readonly mismatch: string } {
  const made = receipt.logs.filter(({ address }) => sameHex(address, withdrawalRequestContract)).flatMap(decoded)
  if (made.length === 0) return { mismatch: 'the transaction makes no request to the EIP-7002 contract' }
  const [match, ...more] = made.filter(({ request }) => isSame(request, wanted))
  if (match === undefined) return { mismatch: 'the transaction makes another request than this one' }
  return { ...match, times: more.length + 1 }
}

/** Why a mined transaction is not what a stored request asks for. */
export function requestMismatch(row: Pick<RequestRow, 'pubkey' | 'amount_gwei'>): Mismatch {
  const wanted = requestOf(row)
  return (receipt) => {
    const made = madeRequest(receipt, wanted)
    return 'mismatch' in made ? made.mismatch : undefined
  }
}

function decoded(log: Parameters<typeof decodeRequestLog>[0]): LoggedRequest[] {
  try {
    return [decodeRequestLog(log)]
  } catch (error) {
    if (error instanceof RequestEncodingError) return []
    throw error
  }
}

const amountOf = (request: ValidatorRequest): bigint => (request.kind === 'exit' ? 0n : request.amountGwei)
const isSame = (a: ValidatorRequest, b: ValidatorRequest): boolean => sameHex(a.pubkey, b.pubkey) && amountOf(a) === amountOf(b)
