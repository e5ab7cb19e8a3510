import { dearer, fromAmsterdam, type StorageGas } from './storage-gas.ts'

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
 * @param storage As the chain measures it (`EthereumChain.storageGas`); by default the dearest fork that is known.
 */
export const depositGasLimit = (estimate: bigint, storage: StorageGas = fromAmsterdam): bigint =>
  (estimate * 12n) / 10n + LEVELS * GAS_PER_LEVEL + NEW_SLOTS * storage.newSlot

/** A request writes three slots of the contract's queue, the queue's end and the count of its block (EIP-7002). */
const QUEUE_SLOTS = 5n

/** Gas limit of an EIP-7002 request, wherever the queue stands when it is mined: beyond its high-water mark every slot is a new one. */
export const requestGasLimit = (estimate: bigint, storage: StorageGas = fromAmsterdam): bigint =>
  (estimate * 12n) / 10n + QUEUE_SLOTS * storage.newSlot

/**
 * Above these the contract called is not what it should be. The dearest that were seen, with all slots new after Amsterdam, have limits of some 620,000 and
 * 1,250,000; a chain where a new slot costs more than that raises both.
 */
export const maxDepositGas = (storage: StorageGas): bigint => 1_000_000n + 2n * NEW_SLOTS * dearer(storage).newSlot
export const maxRequestGas = (storage: StorageGas): bigint => 1_000_000n + 2n * QUEUE_SLOTS * dearer(storage).newSlot
