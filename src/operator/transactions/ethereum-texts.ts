import type { Address, BlockHash, Hash, Pubkey } from '../../lib/chain-types.ts'

/**
 * A StakingTransaction may belong to either chain, so its kind has plain strings where the two differ, and so has a StakingSigner's address. Code that knows the
 * record to be Ethereum's reads them through these functions, the only place that casts them. Nothing is checked here: only the operator writes records, and a
 * signer's address is compared with its key at every signature.
 */
interface OfRecord<Field extends string> {
  readonly spec: { readonly [key in Field]: string }
}

/** The validator that it is about. */
export const pubkeyOf = ({ spec }: OfRecord<'subject'>): Pubkey => spec.subject as Pubkey
/** The address whose lane it takes its places in. */
export const senderOf = ({ spec }: OfRecord<'from'>): Address => spec.from as Address
/** Of a StakingSigner of Ethereum. */
export const addressOf = ({ spec }: OfRecord<'address'>): Address => spec.address as Address
/** Of an attempt, a closed place, an outcome or a claim. */
export const hashIn = ({ hash }: { readonly hash: string }): Hash => hash as Hash
/** Of a landing. */
export const blockHashIn = (text: string): BlockHash => text as BlockHash
