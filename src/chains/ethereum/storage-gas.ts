import type { Hex } from './chain.ts'

/** What a new storage slot costs on top of one that is there already, in gas. A limit has to cover it where the estimate met old slots and the block finds new ones. */
export interface StorageGas {
  readonly newSlot: bigint
}

/** EIP-2929, EIP-2200: 22,100 for a new slot, 5,000 for one that is there. In force up to Osaka. */
export const beforeAmsterdam: StorageGas = { newSlot: 17_100n }
/**
 * EIP-8037 and EIP-8038. Told to be about 103,000 (ethpandaops/dora#857, ethpandaops/spamoor#269: a deposit of 84,726 gas takes 246,366); measured on geth
 * 1.17.10 with Amsterdam on, on 28 November 2026: 108,788 by estimates, and the first deposit of a contract took 260,654, the first request of the EIP-7002
 * contract 575,545 (test/devnet/amsterdam.alone.ts). Gas that isn't used isn't paid, so this is what counts as long as nobody has measured.
 */
export const fromAmsterdam: StorageGas = { newSlot: 110_000n }

/**
 * What a limit has to cover: what was measured, and never less than the dearest fork that is known, since a transaction may be mined after the next fork. A
 * node that can't measure leaves that.
 */
export const dearer = (one: StorageGas, other: StorageGas = fromAmsterdam): StorageGas => (one.newSlot > other.newSlot ? one : other)

const slots = 8
/** Ten times what Amsterdam asks for. Beyond that the node is not believed. */
const mostGas = 1_000_000n
/** Creation code that stores a value in so many slots of its own; a 0 in a slot that holds 0 changes nothing. PUSH1 value, PUSH1 slot, SSTORE; STOP. */
const storing = (value: 0 | 1): Hex =>
  `0x${Array.from({ length: slots }, (_, slot) => `600${value}60${slot.toString(16).padStart(2, '0')}55`).join('')}00`

/**
 * Measures what a new slot costs under the fork in force, by two estimates of a contract that is never created. No list of forks is needed for it, and no
 * constant.
 * @param estimate The node's estimate of a creation with this code, in gas.
 */
export async function measureStorageGas(estimate: (initCode: Hex) => Promise<bigint>): Promise<StorageGas> {
  const [nothing, something] = [await estimate(storing(0)), await estimate(storing(1))]
  const newSlot = (something - nothing) / BigInt(slots)
  if (newSlot <= 0n) throw new RangeError('an estimate in which a new slot costs nothing')
  if (newSlot > mostGas) throw new RangeError('an estimate in which a new slot costs more than a block could pay for')
  return { newSlot }
}
