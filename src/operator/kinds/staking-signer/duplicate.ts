import { sameHex } from '../../../lib/hex.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'

/**
 * The older signer with the same address, if there is one. Ties go by name, so that of two exactly one stands. Ethereum only: what makes two of
 * them dangerous is one nonce sequence, which Solana doesn't have.
 */
export function duplicateOf(signer: StakingSigner, all: Iterable<StakingSigner>): string | undefined {
  if (signer.spec.chain !== 'Ethereum') return undefined
  const age = ({ metadata }: StakingSigner) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`
  for (const other of all) {
    if (
      other.metadata.uid === signer.metadata.uid ||
      other.spec.chain !== signer.spec.chain ||
      !sameHex(other.spec.address, signer.spec.address)
    )
      continue
    if (age(other) < age(signer)) return other.metadata.name
  }
  return undefined
}
