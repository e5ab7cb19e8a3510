/**
 * Texts of a chain, each in a type of its own: a transaction's hash is no validator's key, though both are hex. The name exists for the compiler only, and a
 * literal may stand for any of them.
 */
declare const what: unique symbol
type Named<T extends string, Name extends string> = T & { readonly [what]?: Name }

/** Bytes in hex with `0x`. */
export type Hex = `0x${string}`
/** Of Ethereum: 20 bytes in hex. */
export type Address = Named<Hex, 'address'>
/** Of an Ethereum transaction: 32 bytes in hex. */
export type Hash = Named<Hex, 'transaction hash'>
/** Of an Ethereum block: 32 bytes in hex. */
export type BlockHash = Named<Hex, 'block hash'>
/** Of a validator: 48 bytes in hex (BLS12-381, compressed). */
export type Pubkey = Named<Hex, 'validator public key'>
/** Of Solana: 32 bytes in base58. */
export type SolanaAddress = Named<string, 'Solana address'>
/** Of a Solana transaction, which is known by it: 64 bytes in base58. */
export type Signature = Named<string, 'Solana signature'>
/** Of Solana: 32 bytes in base58. */
export type Blockhash = Named<string, 'Solana blockhash'>

/** A text of a chain in lower case: hex is compared and keyed by in lower case. */
export const lowerCase = <T extends Hex>(text: T): T => text.toLowerCase() as T
