import type { ChainReceipt, ChainTransaction, DepositLog, Hex } from '../../chains/ethereum/chain.ts'
import { decodeDepositLog, depositEventTopic } from '../../chains/ethereum/deposit.ts'
import { sameHex } from '../../lib/hex.ts'

export interface ExpectedPayment {
  readonly depositContractAddress: Hex
  readonly data: Hex
  readonly valueWei: bigint
  readonly pubkey: Hex
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
 * Why a mined transaction does not pay a stake; undefined when it does. It must be the very call that the stake asked for, and the deposit
 * contract must have said so: exactly one DepositEvent, of this key, credentials, amount and signature.
 */
export function paymentMismatch(
  expected: ExpectedPayment,
  transaction: Pick<ChainTransaction, 'to' | 'data' | 'valueWei'>,
  deposits: readonly RecordedDeposit[],
): string | undefined {
  if (transaction.to === undefined || !sameHex(transaction.to, expected.depositContractAddress))
    return 'the transaction does not call the deposit contract'
  if (transaction.valueWei !== expected.valueWei) {
    return `the transaction pays ${transaction.valueWei} wei, and this stake takes ${expected.valueWei} wei`
  }
  if (!sameHex(transaction.data, expected.data)) return 'the transaction makes another deposit: its data is not the data of this stake'
  const [deposit, ...more] = deposits
  if (
    deposit === undefined ||
    more.length > 0 ||
    !sameHex(deposit.pubkey, expected.pubkey) ||
    !sameHex(deposit.withdrawalCredentials, expected.withdrawalCredentials) ||
    deposit.amountGwei !== expected.amountGwei ||
    !sameHex(deposit.signature, expected.signature)
  ) {
    return 'the deposit contract did not record this deposit'
  }
  return undefined
}
