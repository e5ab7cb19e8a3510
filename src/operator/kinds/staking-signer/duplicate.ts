import { sameHex } from '../../../lib/hex.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'

/** Whether a signer declares this address. Base58 has no second spelling. */
export const isAddressOf = ({ spec }: Pick<StakingSigner, 'spec'>, address: string): boolean =>
  spec.chain === 'Solana' ? address === spec.address : sameHex(address, spec.address)

/** Whether another signer declares the same key. */
const sharesKey = (signer: StakingSigner, other: StakingSigner): boolean =>
  other.metadata.uid !== signer.metadata.uid && other.spec.chain === signer.spec.chain && isAddressOf(signer, other.spec.address)

/** Another signer of the same key that is not being deleted. */
export function twinOf(signer: StakingSigner, all: Iterable<StakingSigner>): StakingSigner | undefined {
  for (const other of all) if (other.metadata.deletionTimestamp === undefined && sharesKey(signer, other)) return other
  return undefined
}

/**
 * The older signer with the same address, if there is one. Ties go by name, so that of two exactly one stands. Ethereum only: what makes two of
 * them dangerous is one nonce sequence, which Solana doesn't have.
 */
export function duplicateOf(signer: StakingSigner, all: Iterable<StakingSigner>): string | undefined {
  if (signer.spec.chain !== 'Ethereum') return undefined
  const age = ({ metadata }: StakingSigner) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`
  for (const other of all) if (sharesKey(signer, other) && age(other) < age(signer)) return other.metadata.name
  return undefined
}
