import { isAddress, type SolanaAddress } from '../../../chains/solana/addresses.ts'
import { decodeInstruction } from '../../../chains/solana/instructions.ts'
import { decodeMessage, MessageError } from '../../../chains/solana/message.ts'
import { type Halt, wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import type { ActionKind, StakeTerms } from './steps.ts'

/** Blocks that a blockhash may live from now, twice over: nodes differ in height. A block height far beyond would have the operator wait for good. */
const MAX_BLOCKS_AHEAD = 300n

/** The bytes of a message; undefined for what isn't the base64 of one. */
export function messageOf({ message }: { readonly message?: string | undefined }): Uint8Array | undefined {
  if (message === undefined) return undefined
  const bytes = new Uint8Array(Buffer.from(message, 'base64'))
  return Buffer.from(bytes).toString('base64') === message ? bytes : undefined
}

/**
 * Who pays the fees: the stake authority. A withdrawal may be paid by the withdraw authority as well, which is this resource's own: where the stake key is
 * lost, or kept away, or where the stake was created without a named fee payer.
 */
export function feePayerOf(kind: ActionKind, { stakeAuthority, withdrawAuthority }: StakeTerms, message: Uint8Array): SolanaAddress {
  if (kind !== 'withdrawal') return stakeAuthority
  try {
    return decodeMessage(message).feePayer === withdrawAuthority ? withdrawAuthority : stakeAuthority
  } catch (error) {
    if (error instanceof MessageError) return stakeAuthority
    throw error
  }
}

const instructionsOf = (message: Uint8Array) => {
  try {
    return decodeMessage(message).instructions.map(decodeInstruction)
  } catch (error) {
    if (error instanceof MessageError) return []
    throw error
  }
}
/** Whether it makes the account in the form for an address that holds lamports already. */
export const allocates = (message: Uint8Array): boolean => instructionsOf(message).some(({ kind }) => kind === 'allocate-with-seed')

/** Where the message itself says that the money goes; undefined where it goes nowhere, or to several. */
export const destinationOf = (message: Uint8Array): SolanaAddress | undefined => {
  const to = new Set(instructionsOf(message).flatMap((one) => (one.kind === 'withdraw' ? [one.to] : [])))
  return to.size === 1 ? [...to][0] : undefined
}

/** Compute units that the message asks for; 0 where it leaves that to the cluster. */
export const unitsAskedBy = (message: Uint8Array): bigint =>
  instructionsOf(message).reduce(
    (most, one) => (one.kind === 'compute-unit-limit' && BigInt(one.units) > most ? BigInt(one.units) : most),
    0n,
  )

/** What the message itself says that it withdraws. */
export const withdrawnBy = (message: Uint8Array): bigint =>
  instructionsOf(message).reduce((sum, one) => (one.kind === 'withdraw' ? sum + one.lamports : sum), 0n)

/** What of a transaction's frame must be right before it can be waited for. */
export function frameProblem(
  given: { readonly txId: string; readonly recentBlockhash: string; readonly lastValidBlockHeight: number },
  height: bigint,
): string | undefined {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(given.txId)) return 'its id is not one'
  if (!isAddress(given.recentBlockhash)) return 'its blockhash is not one'
  if (BigInt(given.lastValidBlockHeight) > height + MAX_BLOCKS_AHEAD)
    return `its last valid block height is far beyond the cluster's height of ${height}`
  return undefined
}

/** A blockhash lives 150 blocks; with two slots of three skipped, it is at most so many slots old. */
const BLOCKHASH_SLOTS = 450n
/** A slot before which a transaction that is made at this one can't have landed. */
export const sinceSlotOf = (slot: bigint): number => Number(slot > BLOCKHASH_SLOTS ? slot - BLOCKHASH_SLOTS : 0n)

export const outOfStep = ({ config }: SolanaNetwork): Halt =>
  wait(
    'ChainUnavailable',
    "The node does not know the transaction's blockhash: it lags, or the transaction has expired and is made anew once that is certain.",
    config.pollIntervalMs,
  )
