import type { ChainReceipt, DepositLog, Hex, Pubkey } from '../../chains/ethereum/chain.ts'
import { decodeDepositLog, depositEventTopic } from '../../chains/ethereum/deposit.ts'
import { sameHex } from '../../lib/hex.ts'

export interface ExpectedPayment {
  readonly depositContractAddress: Hex
  readonly pubkey: Pubkey
  readonly withdrawalCredentials: Hex
  readonly amountGwei: bigint
  readonly signature: Hex
}

export type RecordedDeposit = Pick<DepositLog, 'pubkey' | 'withdrawalCredentials' | 'amountGwei' | 'signature'>

/** The deposits that the deposit contract recorded in a transaction. */
export const depositsIn = (receipt: ChainReceipt, depositContractAddress: Hex): readonly RecordedDeposit[] =>
  receipt.logs
    .filter(({ address, topics }) => address.toLowerCase() === depositContractAddress.toLowerCase() && topics[0] === depositEventTopic)
    .map(decodeDepositLog)

/**
 * Why a mined transaction does not pay a stake; undefined when it does. The deposit contract's own event tells it, as the EIP-7002 contract's log tells
 * requests: a Safe, a batch contract or another wallet calls the contract in a transaction of its own, with whatever else it does.
 */
export function paymentMismatch(expected: ExpectedPayment, deposits: readonly RecordedDeposit[]): string | undefined {
  if (deposits.some((deposit) => isPayment(expected, deposit))) return undefined
  if (deposits.length === 0) return 'the transaction makes no deposit: the deposit contract recorded none'
  return deposits.some(({ pubkey }) => sameHex(pubkey, expected.pubkey))
    ? "the transaction makes another deposit for this stake's key: its credentials, amount or signature are not this stake's"
    : 'the transaction makes another deposit than that of this stake'
}

/** Whether a recorded deposit is this stake's own: key, credentials, amount and signature. */
export const isPayment = (expected: ExpectedPayment, deposit: RecordedDeposit): boolean =>
  sameHex(deposit.pubkey, expected.pubkey) &&
  sameHex(deposit.withdrawalCredentials, expected.withdrawalCredentials) &&
  deposit.amountGwei === expected.amountGwei &&
  sameHex(deposit.signature, expected.signature)
