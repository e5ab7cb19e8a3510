import { type Gwei, gwei, type Wei, wei } from '../../lib/amounts.ts'
import { lowerCase } from '../../lib/chain-types.ts'
import { type Address, ChainError, type ContractReads, type EthereumChain, type Hex, type Pubkey } from './chain.ts'

/** EIP-7002, Constants: WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS. The same on every network. */
export const withdrawalRequestContract: Address = '0x00000961Ef480Eb55e80D19ad83579A64c007002'
/** EIP-7002, Constants: MIN_WITHDRAWAL_REQUEST_FEE, in wei. */
export const minRequestFee: Wei = wei(1n)
/** EIP-7002, Constants: WITHDRAWAL_REQUEST_FEE_UPDATE_FRACTION. */
export const feeUpdateFraction = 17n
/** EIP-7002, Constants: what a block takes off the queue, and how many requests a block may have before the fee rises. */
export const maxRequestsPerBlock = 16
export const targetRequestsPerBlock = 2
/** EIP-7002, Constants: FULL_EXIT_REQUEST_AMOUNT. It is why a partial withdrawal may never have it. */
const fullExitAmount = 0n
const maxUint64 = (1n << 64n) - 1n

/** A request to the consensus layer. An exit has no amount, and a withdrawal never has the amount 0. */
export type ValidatorRequest =
  | { readonly kind: 'exit'; readonly pubkey: Pubkey }
  | { readonly kind: 'withdrawal'; readonly pubkey: Pubkey; readonly amountGwei: Gwei }

/** Data that is not an EIP-7002 request, or an amount that none may carry. */
export class RequestEncodingError extends Error {
  override readonly name = 'RequestEncodingError'
}

/**
 * Calldata of an EIP-7002 request: public key (48 bytes), amount in gwei (uint64, the most significant byte first); 56 bytes without a selector.
 * @throws RequestEncodingError for a key of another length; for a withdrawal of 0, which would be a full exit, or of more than a uint64 holds.
 */
export function encodeRequestCalldata(request: ValidatorRequest): Hex {
  if (!/^0x[0-9a-fA-F]{96}$/.test(request.pubkey)) throw new RequestEncodingError('a public key has 48 bytes, in hex with 0x')
  if (request.kind === 'withdrawal' && (request.amountGwei <= fullExitAmount || request.amountGwei > maxUint64)) {
    throw new RequestEncodingError(
      `a withdrawal of ${request.amountGwei} gwei can't be asked for: 0 would be a full exit, and the amount is at most ${maxUint64}`,
    )
  }
  const amount = request.kind === 'exit' ? fullExitAmount : request.amountGwei
  const pubkey: Hex = lowerCase(request.pubkey)
  return `${pubkey}${amount.toString(16).padStart(16, '0')}`
}

/** Reads calldata. @throws RequestEncodingError unless it has exactly 56 bytes. */
export function decodeRequestCalldata(data: Hex): ValidatorRequest {
  if (!/^0x[0-9a-fA-F]{112}$/.test(data)) throw new RequestEncodingError('the calldata of an EIP-7002 request has exactly 56 bytes')
  const pubkey = data.slice(0, 98).toLowerCase() as Pubkey
  const amount = BigInt(`0x${data.slice(98)}`)
  return amount === fullExitAmount ? { kind: 'exit', pubkey } : { kind: 'withdrawal', pubkey, amountGwei: gwei(amount) }
}

/** What the contract logs for each request that it takes: the caller, which the consensus layer compares, and the calldata. */
export interface LoggedRequest {
  /** In lower case. */
  readonly source: Address
  readonly request: ValidatorRequest
}

/** Reads a log of the contract: no topics; caller (20 bytes), calldata (56 bytes). @throws RequestEncodingError */
export function decodeRequestLog(log: { readonly topics: readonly Hex[]; readonly data: Hex }): LoggedRequest {
  if (log.topics.length !== 0 || !/^0x[0-9a-fA-F]{152}$/.test(log.data)) {
    throw new RequestEncodingError('not a log of the EIP-7002 contract: it has no topics and 76 bytes')
  }
  const source = log.data.slice(0, 42).toLowerCase() as Address
  return { source, request: decodeRequestCalldata(`0x${log.data.slice(42)}`) }
}

/** EIP-7002, Fee calculation: an integer approximation of factor · e^(numerator/denominator). */
export function fakeExponential(factor: bigint, numerator: bigint, denominator: bigint): bigint {
  let output = 0n
  let term = factor * denominator
  for (let i = 1n; term > 0n; i += 1n) {
    output += term
    term = (term * numerator) / (denominator * i)
  }
  return output / denominator
}

/** The fee for each request in a block that begins with this excess. */
export const feeAtExcess = (excess: bigint): Wei => wei(fakeExponential(minRequestFee, excess, feeUpdateFraction))

/** Below this, headroom is too little money to save on. */
const headroomFloor = 100n

/**
 * What to send with a request whose fee was just asked for. Too little is reverted and costs the gas; too much is not given back, so this adds a
 * quarter (an excess of 3 to 4 more, that is, one block with a few requests over the target) and at least 100 wei, which at the usual fee of 1 wei
 * covers an excess of 78.
 */
export const withFeeHeadroom = (fee: Wei): Wei => {
  const quarter = (fee + 3n) / 4n
  return wei(fee + (quarter > headroomFloor ? quarter : headroomFloor))
}

/** The EIP-7002 contract takes no requests yet: wait, for the fork comes in its own time. */
export class NotSwitchedOnError extends ChainError {
  constructor(block: bigint) {
    super(
      'unavailable',
      `the EIP-7002 contract is not switched on at block ${block}: requests are possible from the first block of the Prague fork on`,
      60_000,
    )
  }
}

export interface RequestFee {
  readonly feeWei: Wei
  readonly quotedAtBlock: bigint
}

/**
 * The fee that the contract asks for in the block after the latest one: a call with empty data. Read it again right before signing.
 * @throws ChainError: `rejected` when this chain has no such contract; `NotSwitchedOnError` (`unavailable`) while the contract is not switched on yet: before the
 * fork's first block its excess is an inhibitor (EIP-7002, EXCESS_INHIBITOR), and every call reverts.
 */
export async function readRequestFee(
  chain: Pick<EthereumChain, 'head'> & Pick<ContractReads, 'call'>,
  signal: AbortSignal,
): Promise<RequestFee> {
  const { latest } = await chain.head(signal)
  const answer = await chain.call({ to: withdrawalRequestContract, data: '0x', blockNumber: latest }, signal).catch((error: unknown) => {
    if (!(error instanceof ChainError) || error.code !== 'reverted') throw error
    throw new NotSwitchedOnError(latest)
  })
  // An account without code answers nothing; the fee is never 0.
  if (!/^0x[0-9a-f]{64}$/i.test(answer) || BigInt(answer) < minRequestFee) {
    throw new ChainError('rejected', `there is no EIP-7002 contract at ${withdrawalRequestContract} of this chain`)
  }
  return { feeWei: wei(BigInt(answer)), quotedAtBlock: latest }
}
