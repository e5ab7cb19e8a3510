import { decodeAbiParameters, decodeFunctionData, encodeFunctionData, parseAbi } from 'viem'
import { type Gwei, gwei } from '../../lib/amounts.ts'
import type { Hex, Pubkey } from './chain.ts'
import type { DepositData } from './deposit.ts'

/** The deposit contract's interface (consensus-specs, solidity_deposit_contract/deposit_contract.sol). */
export const depositContractAbi = parseAbi([
  'function deposit(bytes pubkey, bytes withdrawal_credentials, bytes signature, bytes32 deposit_data_root) payable',
  'function get_deposit_count() view returns (bytes)',
  'function get_deposit_root() view returns (bytes32)',
  'event DepositEvent(bytes pubkey, bytes withdrawal_credentials, bytes amount, bytes signature, bytes index)',
])

/** keccak256 of `DepositEvent(bytes,bytes,bytes,bytes,bytes)`. */
export const depositEventTopic: Hex = '0x649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5'
export const depositSelector: Hex = '0x22895118'

/** What a call of `deposit` carries; the amount is the transaction's value. */
export interface DepositCall {
  readonly pubkey: Pubkey
  readonly withdrawalCredentials: Hex
  readonly signature: Hex
  readonly depositDataRoot: Hex
}

/** Data that is not a deposit in its one canonical encoding. */
export class DepositEncodingError extends Error {
  override readonly name = 'DepositEncodingError'
}

const byteLength = (hex: Hex): number => (hex.length - 2) / 2

/** @throws DepositEncodingError unless pubkey, credentials and signature have 48, 32 and 96 bytes. */
export function encodeDepositCalldata({ pubkey, withdrawalCredentials, signature, depositDataRoot }: DepositCall): Hex {
  if (
    byteLength(pubkey) !== 48 ||
    byteLength(withdrawalCredentials) !== 32 ||
    byteLength(signature) !== 96 ||
    byteLength(depositDataRoot) !== 32
  ) {
    throw new DepositEncodingError('a deposit has a public key of 48 bytes, credentials of 32, a signature of 96 and a root of 32')
  }
  return encodeFunctionData({
    abi: depositContractAbi,
    functionName: 'deposit',
    args: [pubkey, withdrawalCredentials, signature, depositDataRoot],
  })
}

/**
 * Reads the calldata of a deposit. ABI decoders accept many encodings of one call (offsets that overlap or point elsewhere, trailing bytes,
 * dirty padding); only the canonical one is accepted here, so that nothing can hide in the difference.
 * @throws DepositEncodingError
 */
export function decodeDepositCalldata(data: Hex): DepositCall {
  let call: DepositCall
  try {
    const decoded = decodeFunctionData({ abi: depositContractAbi, data })
    if (decoded.functionName !== 'deposit') throw new DepositEncodingError('not a call of deposit')
    const [pubkey, withdrawalCredentials, signature, depositDataRoot] = decoded.args
    call = { pubkey, withdrawalCredentials, signature, depositDataRoot }
  } catch (error) {
    if (error instanceof DepositEncodingError) throw error
    throw new DepositEncodingError('not the calldata of a deposit')
  }
  if (encodeDepositCalldata(call) !== data.toLowerCase())
    throw new DepositEncodingError('the calldata of the deposit is not in its canonical encoding')
  return call
}

const bytesFields = [{ type: 'bytes' }, { type: 'bytes' }, { type: 'bytes' }, { type: 'bytes' }, { type: 'bytes' }] as const

/**
 * Reads a DepositEvent. Amount (gwei) and index are eight bytes, the least significant first.
 * @throws DepositEncodingError
 */
export function decodeDepositLog(log: { readonly topics: readonly Hex[]; readonly data: Hex }): DepositData & { readonly index: bigint } {
  if (log.topics.length !== 1 || log.topics[0]?.toLowerCase() !== depositEventTopic) throw new DepositEncodingError('not a DepositEvent')
  let fields: readonly [Hex, Hex, Hex, Hex, Hex]
  try {
    fields = decodeAbiParameters(bytesFields, log.data)
  } catch {
    throw new DepositEncodingError('a DepositEvent whose data cannot be decoded')
  }
  const [pubkey, withdrawalCredentials, amount, signature, index] = fields
  if ([pubkey, withdrawalCredentials, amount, signature, index].map(byteLength).join() !== '48,32,8,96,8') {
    throw new DepositEncodingError('a DepositEvent whose fields have the wrong lengths')
  }
  return { pubkey, withdrawalCredentials, amountGwei: littleEndian(amount) as Gwei, signature, index: littleEndian(index) }
}

const littleEndian = (bytes: Hex): bigint => gwei(Buffer.from(bytes.slice(2), 'hex').readBigUInt64LE())
