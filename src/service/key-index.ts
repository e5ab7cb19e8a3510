import type { Hex } from '../chains/ethereum/chain.ts'
import type { Gwei } from '../lib/amounts.ts'
import type { ValidatorKeys } from './seed.ts'

/** What a validator key is for: what a client sends again when it asks for the same stake again, also after the database was restored. */
export interface KeyOrder {
  readonly account: string
  readonly idempotencyKey: string
  readonly network: string
  readonly withdrawalCredentials: Hex
  readonly amountGwei: Gwei
}

/** EIP-2333 takes indices below 2^32. */
const endOfIndices = 1n << 32n
/**
 * Earlier versions counted from 0: which of those they handed out, a restored database doesn't know. The indices below 2^24 are therefore theirs for good.
 */
export const firstHashedIndex = 1n << 24n
/** So many indices are tried for one order: with a million stakes, two taken in a row come once in ten million orders. */
export const maxProbes = 16

/**
 * The account number of EIP-2334 for an order: a function of the seed and of the order, and of nothing that a restored database could have forgotten. The
 * same order gets the same key, another order another one: no key is ever signed for two withdrawal addresses, amounts or networks.
 * It is keyed by the seed, so that no client can look for an order that meets another account's key.
 * @param probe 0, and one more for each index that was found taken.
 * @param floor The first index that may be given, when it is above 2^24.
 */
export function keyIndexOf(keys: Pick<ValidatorKeys, 'mac'>, order: KeyOrder, probe: number, floor = 0n): bigint {
  const { account, idempotencyKey, network, withdrawalCredentials, amountGwei } = order
  const text = JSON.stringify([account, idempotencyKey, network, withdrawalCredentials.toLowerCase(), amountGwei.toString(), probe])
  const first = floor > firstHashedIndex ? floor : firstHashedIndex
  const mac = keys.mac(`key index\n${text}`)
  // 128 bits over less than 2^32 indices: none is likelier than another by more than one in 2^96.
  return first + (BigInt(`0x${mac.subarray(0, 16).toString('hex')}`) % (endOfIndices - first))
}
