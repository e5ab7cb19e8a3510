import type { Address, UnsignedTransaction } from '../../chains/ethereum/chain.ts'
import type { Fees } from '../../chains/ethereum/fees.ts'
import { parseSignature, SignatureError } from '../../chains/ethereum/signature.ts'
import { type SignedTransaction, withSignature } from '../../chains/ethereum/signed-transaction.ts'
import { type Wei, wei } from '../../lib/amounts.ts'
import type { TransactionAttempt } from '../../resources/staking-transaction.ts'
import { senderOf } from './ethereum-texts.ts'
import { CANCEL_GAS } from './price.ts'
import type { RecordObject } from './store.ts'

/** The transaction of a version, of its record alone. */
export function unsigned(
  record: RecordObject,
  kind: TransactionAttempt['kind'],
  nonce: number,
  gas: bigint,
  fees: Fees,
  valueWei: Wei,
): UnsignedTransaction {
  const { chainId, call } = record.spec
  if (chainId === undefined || call === undefined) throw new Error(`StakingTransaction ${record.metadata.name} has no call`)
  return kind === 'Cancel'
    ? { chainId, to: senderOf(record), data: '0x', valueWei: wei(0n), nonce, gas: CANCEL_GAS, ...fees }
    : { chainId, to: call.to, data: call.data, valueWei, nonce, gas, ...fees }
}

/** ▸ The very transaction that a record names, of its fields and its signature: nothing is signed. Undefined where they do not belong together. */
export async function joined(transaction: UnsignedTransaction, signer: Address, text: string): Promise<SignedTransaction | undefined> {
  const signature = parseSignature(text)
  if (signature === undefined) return undefined
  try {
    return await withSignature(transaction, signer, signature)
  } catch (error) {
    if (error instanceof SignatureError) return undefined
    throw error
  }
}
