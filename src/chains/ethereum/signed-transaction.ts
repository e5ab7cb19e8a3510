import { keccak256, parseTransaction, serializeTransaction, type TransactionSerializableEIP1559 } from 'viem'
import type { Address, Hash, Hex, UnsignedTransaction } from './chain.ts'
import { type EthereumSignature, formatSignature, SignatureError, signerOf, word } from './signature.ts'

/** A transaction whose signature was looked at. */
export interface SignedTransaction {
  readonly raw: Hex
  readonly hash: Hash
  /** r, s and recovery id, 65 bytes. */
  readonly signature: Hex
}

/** A transaction as viem signs and serializes it (type 2, EIP-1559). */
export const toSerialize = ({ chainId, nonce, to, data, valueWei, gas, maxFeePerGas, maxPriorityFeePerGas }: UnsignedTransaction) =>
  ({
    type: 'eip1559',
    chainId,
    nonce,
    to,
    data,
    value: valueWei,
    gas,
    maxFeePerGas,
    maxPriorityFeePerGas,
  }) satisfies TransactionSerializableEIP1559

/** What is signed of a transaction: the hash of its bytes without a signature (EIP-1559). */
export const digestOf = (transaction: UnsignedTransaction): Hash => keccak256(serializeTransaction(toSerialize(transaction))) as Hash

/** The bytes of a transaction with its signature. @throws SignatureError unless that is of the signer's key, over this very transaction, with a low `s` */
export async function withSignature(
  transaction: UnsignedTransaction,
  signer: Address,
  signature: EthereumSignature,
): Promise<SignedTransaction> {
  const by = await signerOf(digestOf(transaction), signature)
  if (by?.toLowerCase() !== signer.toLowerCase())
    throw new SignatureError(`is not of the key of ${signer}, or not over what was to be signed`)
  const { r, s, yParity } = signature
  const raw = serializeTransaction(toSerialize(transaction), { r: word(r), s: word(s), yParity }) as Hex
  return { raw, hash: keccak256(raw) as Hash, signature: formatSignature(signature) }
}

/**
 * Looks at bytes that somebody else has signed: they must be this transaction and nothing else, byte for byte, with a signature of the signer's key.
 * @throws SignatureError that names what differs, and quotes nothing
 */
export async function checkSigned(raw: Hex, asked: UnsignedTransaction, signer: Address): Promise<SignedTransaction> {
  let parsed: ReturnType<typeof parseTransaction<`0x02${string}`>>
  try {
    if (!raw.startsWith('0x02')) throw new Error('of another type')
    parsed = parseTransaction(raw as `0x02${string}`)
  } catch {
    throw new SignatureError('is no signed EIP-1559 transaction')
  }
  const differs = differenceOf(parsed, asked)
  if (differs !== undefined) throw new SignatureError(`is another transaction than was asked for: ${differs} differs`)
  const { r, s, yParity } = parsed as { readonly r?: Hex; readonly s?: Hex; readonly yParity?: number }
  if (r === undefined || s === undefined || (yParity !== 0 && yParity !== 1)) throw new SignatureError('has no signature')
  const signed = await withSignature(asked, signer, { r: BigInt(r), s: BigInt(s), yParity })
  // What the parser passes over, or reads in two ways, must not be there either.
  if (signed.raw.toLowerCase() !== raw.toLowerCase()) throw new SignatureError('is another transaction than was asked for')
  return signed
}

type Parsed = ReturnType<typeof parseTransaction<`0x02${string}`>>

function differenceOf(parsed: Parsed, asked: UnsignedTransaction): string | undefined {
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ['chain id', parsed.chainId, asked.chainId],
    ['nonce', parsed.nonce ?? 0, asked.nonce],
    ['recipient', parsed.to?.toLowerCase(), asked.to.toLowerCase()],
    ['calldata', (parsed.data ?? '0x').toLowerCase(), asked.data.toLowerCase()],
    ['value', parsed.value ?? 0n, asked.valueWei],
    ['gas limit', parsed.gas ?? 0n, asked.gas],
    ['maxFeePerGas', parsed.maxFeePerGas ?? 0n, asked.maxFeePerGas],
    ['maxPriorityFeePerGas', parsed.maxPriorityFeePerGas ?? 0n, asked.maxPriorityFeePerGas],
    ['access list', parsed.accessList?.length ?? 0, 0],
  ]
  return pairs.find(([, found, wanted]) => found !== wanted)?.[0]
}
