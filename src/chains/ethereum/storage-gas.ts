import type { Hex } from './chain.ts'

/** What a new storage slot costs on top of one that is there already, in gas. A limit has to cover it where the estimate met old slots and the block finds new ones. */
export interface StorageGas {
  readonly newSlot: bigint
}

/** EIP-2929, EIP-2200: 22,100 for a new slot, 5,000 for one that is there. In force up to Osaka. */
export const beforeAmsterdam: StorageGas = { newSlot: 17_100n }
/**
 * EIP-8037 and EIP-8038: about 103,000 for a new slot (ethpandaops/dora#857, ethpandaops/spamoor#269: a deposit of 84,726 gas takes 246,366). Gas that isn't used
 * isn't paid, so this is what counts as long as nobody has measured.
 */
export const fromAmsterdam: StorageGas = { newSlot: 103_000n }

const slots = 8
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
  return { newSlot }
}
