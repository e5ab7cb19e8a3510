import {
  formatTransaction,
  keccak256,
  type RpcTransaction,
  recoverTransactionAddress,
  serializeTransaction,
  type TransactionSerializable,
} from 'viem'
import { sameHex } from '../../lib/hex.ts'
import type { ChainTransaction } from './chain.ts'

/**
 * ▸ Whether a transaction, as a node shows it, is proven to be that of its hash: its fields and signature, serialized, have that hash (EIP-2718), and the
 * signature is of the address that the node names as its sender. Then no node's word is needed for what it does, who sent it and under which nonce.
 * False for a type that is not known here, and for a transaction that has no true signature, as those of an account that a test node impersonates.
 */
export async function isProven(answer: unknown, { hash, from, nonce, to, data, valueWei }: ChainTransaction): Promise<boolean> {
  try {
    const { input, r, s, v, yParity, ...fields } = formatTransaction(answer as RpcTransaction)
    const transaction = { ...fields, data: input } as TransactionSerializable
    const signature = { r, s, ...(v === undefined ? {} : { v }), ...(yParity === undefined ? {} : { yParity }) }
    const serialized = serializeTransaction(transaction, signature as Parameters<typeof serializeTransaction>[1])
    // What is read of the answer is what was serialized, and nothing beside it.
    const isRead =
      transaction.nonce === nonce &&
      sameHex(input, data) &&
      (transaction.value ?? 0n) === valueWei &&
      sameHex(transaction.to ?? '0x', to ?? '0x')
    return (
      isRead &&
      sameHex(keccak256(serialized), hash) &&
      sameHex(await recoverTransactionAddress({ serializedTransaction: serialized as `0x02${string}` }), from)
    )
  } catch {
    return false
  }
}
