import { createHash } from 'node:crypto'
import type { Address, Hex } from '../../src/chains/ethereum/chain.ts'
import { type CredentialsType, type SignedDeposit, signDepositMessage, withdrawalCredentials } from '../../src/chains/ethereum/deposit.ts'
import { gwei } from '../../src/lib/amounts.ts'

/** Order of the BLS12-381 scalar field. */
const curveOrder = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001n

/**
 * The well-known key of validator `index` (eth2.0-pm, interop/mocked_start): the little-endian sha256 of the index as 32 little-endian bytes, modulo
 * the curve's order. 32 bytes, the most significant first.
 */
export function interopSecretKey(index: number): Uint8Array {
  const preimage = Buffer.alloc(32)
  preimage.writeUInt32LE(index)
  const digest = createHash('sha256').update(preimage).digest().reverse()
  const scalar = BigInt(`0x${digest.toString('hex')}`) % curveOrder
  return Uint8Array.from(Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex'))
}

export interface GenesisValidator {
  readonly index: number
  readonly type: CredentialsType
  readonly withdrawalAddress: Address
  readonly amountGwei: bigint
}

export const signGenesisDeposit = (validator: GenesisValidator, genesisForkVersion: Hex): SignedDeposit =>
  signDepositMessage(interopSecretKey(validator.index), {
    withdrawalCredentials: withdrawalCredentials(validator.type, validator.withdrawalAddress),
    amountGwei: gwei(validator.amountGwei),
    genesisForkVersion,
  })

/** As `prysmctl testnet generate-genesis --deposit-json-file` reads it: hex without 0x, amounts as numbers. */
export const depositFile = (deposits: readonly SignedDeposit[]): string =>
  JSON.stringify(
    deposits.map(({ pubkey, withdrawalCredentials: credentials, amountGwei, signature, depositDataRoot }) => ({
      pubkey: pubkey.slice(2),
      withdrawal_credentials: credentials.slice(2),
      amount: Number(amountGwei),
      signature: signature.slice(2),
      deposit_data_root: depositDataRoot.slice(2),
    })),
  )
