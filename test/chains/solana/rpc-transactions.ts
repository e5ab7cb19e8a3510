import { VersionedMessage, VersionedTransaction } from '@solana/web3.js'
import { decodeBase58, encodeBase58 } from '../../../src/chains/solana/base58.ts'
import { verifySignature } from '../../../src/chains/solana/message.ts'
import { computeBudgetProgram, maxTransactionBytes } from '../../../src/chains/solana/programs.ts'
import { invalidParams, RpcFault } from './rpc-json.ts'

/** The bytes of a transaction that came as base58 (the old default) or base64. */
export function decodeTransaction(text: unknown, encoding: unknown): Uint8Array {
  if (typeof text !== 'string') throw invalidParams('Invalid params: invalid type: expected a string.')
  const bytes = encoding === 'base64' ? new Uint8Array(Buffer.from(text, 'base64')) : decodeBase58(text, 2 * maxTransactionBytes)
  if (bytes === undefined) throw invalidParams('invalid base58 encoding')
  if (bytes.length > maxTransactionBytes)
    throw invalidParams(
      `decoded solana_transaction::versioned::VersionedTransaction too large: ${bytes.length} bytes (max: ${maxTransactionBytes} bytes)`,
    )
  try {
    const transaction = VersionedTransaction.deserialize(bytes)
    if (Buffer.from(transaction.serialize()).equals(bytes)) return bytes
  } catch {
    // Falls through: not a transaction.
  }
  throw invalidParams('failed to deserialize solana_transaction::versioned::VersionedTransaction: io error: failed to fill whole buffer')
}

/** @throws RpcFault -32003 unless every signature is its signer's. */
export function requireSignatures(bytes: Uint8Array): void {
  const { message, signatures } = VersionedTransaction.deserialize(bytes)
  const raw = message.serialize()
  const holds = signatures.every((signature, index) => {
    const signer = message.staticAccountKeys[index]
    return signer !== undefined && verifySignature(signer.toBase58(), raw, signature)
  })
  if (!holds) throw new RpcFault(-32003, 'Transaction signature verification failure')
}

/** The same transaction with another blockhash; its signatures then are void. */
export function withBlockhash(bytes: Uint8Array, blockhash: string): Uint8Array {
  const transaction = VersionedTransaction.deserialize(bytes)
  transaction.message.recentBlockhash = blockhash
  return transaction.serialize()
}

/** Base fee and priority fee, in lamports. */
export function feeOf(message: Uint8Array): bigint {
  const { header, staticAccountKeys, compiledInstructions } = VersionedMessage.deserialize(message)
  const budget = compiledInstructions.filter(({ programIdIndex }) => staticAccountKeys[programIdIndex]?.toBase58() === computeBudgetProgram)
  const value = (tag: number, read: (data: Buffer) => bigint): bigint | undefined =>
    budget.map(({ data }) => Buffer.from(data)).flatMap((data) => (data[0] === tag ? [read(data)] : []))[0]
  const units = value(2, (data) => BigInt(data.readUInt32LE(1))) ?? 200_000n * BigInt(compiledInstructions.length - budget.length)
  const price = value(3, (data) => data.readBigUInt64LE(1)) ?? 0n
  return 5000n * BigInt(header.numRequiredSignatures) + (units * price + 999_999n) / 1_000_000n
}

/** A message as `getTransaction` shows it with encoding `json`. */
export function messageJson(bytes: Uint8Array): object {
  const { message, signatures } = VersionedTransaction.deserialize(bytes)
  return {
    signatures: signatures.map(encodeBase58),
    message: {
      accountKeys: message.staticAccountKeys.map((key) => key.toBase58()),
      header: message.header,
      recentBlockhash: message.recentBlockhash,
      instructions: message.compiledInstructions.map(({ programIdIndex, accountKeyIndexes, data }) => ({
        programIdIndex,
        accounts: [...accountKeyIndexes],
        data: encodeBase58(data),
        stackHeight: 1,
      })),
    },
  }
}
