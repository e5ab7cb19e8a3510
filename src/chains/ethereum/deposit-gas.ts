import { fromAmsterdam, type StorageGas } from './storage-gas.ts'

/**
 * The deposit contract walks up its Merkle tree for as many levels as the deposit's number (from 1) has zero bits at its end, and writes one node
 * there. Which number a deposit gets is decided when it is mined, not when its gas is estimated: others come in between. A level costs some
 * 3,000 gas (a cold SLOAD and a SHA-256), there are at most 31, and the node of a level that was never reached is a new storage slot.
 */
const LEVELS = 31n
const GAS_PER_LEVEL = 3_000n
/** The node, and the count of a contract that has no deposit yet. */
const NEW_SLOTS = 2n

/**
 * Gas limit of a deposit that can't run out of gas, whichever number it gets: a deposit that does is reverted. Gas that isn't used isn't paid.
 * A fifth is for the estimate's own margin.
 * @param storage As measured (`measureStorageGas`); by default the dearest fork that is known.
 */
export const depositGasLimit = (estimate: bigint, storage: StorageGas = fromAmsterdam): bigint =>
  (estimate * 12n) / 10n + LEVELS * GAS_PER_LEVEL + NEW_SLOTS * storage.newSlot

/** A request writes three slots of the contract's queue and its counters. */
const QUEUE_SLOTS = 4n

/** Gas limit of an EIP-7002 request, wherever the queue stands when it is mined: beyond its high-water mark every slot is a new one. */
export const requestGasLimit = (estimate: bigint, storage: StorageGas = fromAmsterdam): bigint =>
  (estimate * 12n) / 10n + QUEUE_SLOTS * storage.newSlot
