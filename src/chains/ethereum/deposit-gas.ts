/**
 * The deposit contract walks up its Merkle tree for as many levels as the deposit's number (from 1) has zero bits at its end, and writes one node
 * there. Which number a deposit gets is decided when it is mined, not when its gas is estimated: others come in between. A level costs some
 * 3,000 gas (a cold SLOAD and a SHA-256), there are at most 31, and the node of a level that was never reached is a new storage slot
 * (EIP-2929: 17,100 more than an old one).
 */
const LEVELS = 31n
const GAS_PER_LEVEL = 3_000n
const NEW_SLOT = 17_100n

/**
 * Gas limit of a deposit that can't run out of gas, whichever number it gets: a deposit that does is reverted. Gas that isn't used isn't paid.
 * A fifth is for the estimate's own margin.
 */
export const depositGasLimit = (estimate: bigint): bigint => (estimate * 12n) / 10n + LEVELS * GAS_PER_LEVEL + NEW_SLOT
