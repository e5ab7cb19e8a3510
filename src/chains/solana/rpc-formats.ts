import { parse } from 'lossless-json'
import { z } from 'zod'
import { type Lamports, lamports } from '../../lib/amounts.ts'
import { RpcFailure } from '../../lib/json-rpc.ts'
import { isAddress, isSignature } from './addresses.ts'
import type { ChainAccount } from './chain.ts'
import type { SignatureStatus } from './expiry.ts'
import { readTransactionError } from './transaction-error.ts'

/** The answers of the Solana JSON-RPC API, as far as they are used. */

/**
 * Parses JSON in which lamports beyond 2^53 keep their digits: integers that a double can't hold become bigints.
 * @throws SyntaxError
 */
export const parseExact = (text: string): unknown =>
  parse(text, undefined, {
    parseNumber: (digits) => {
      const number = Number(digits)
      return /^-?[0-9]+$/.test(digits) && !Number.isSafeInteger(number) ? BigInt(digits) : number
    },
  })

export const u64 = z
  .union([z.bigint(), z.int()])
  .transform((value) => BigInt(value))
  .refine((value) => value >= 0n && value < 1n << 64n)
export const lamportsValue = u64.transform((value): Lamports => lamports(value))
export const address = z.string().refine(isAddress)
const context = z.object({ slot: u64 })

/** Most answers come with the slot that they are of. */
export const withContext = <T extends z.ZodType>(value: T) => z.object({ context, value })

export const epochInfo = z.object({ epoch: u64, absoluteSlot: u64, slotIndex: u64, slotsInEpoch: u64, blockHeight: u64 })
export const latestBlockhash = withContext(z.object({ blockhash: address, lastValidBlockHeight: u64 }))

export const account = z
  .object({
    lamports: lamportsValue,
    owner: address,
    data: z.tuple([z.base64(), z.literal('base64')]),
    executable: z.boolean(),
  })
  .transform(({ data: [text], ...rest }): ChainAccount => ({ ...rest, data: new Uint8Array(Buffer.from(text, 'base64')) }))
  .nullable()

const transactionError = z.unknown().transform(readTransactionError)

export const signatureStatuses = withContext(
  z.array(
    z
      .object({
        slot: u64,
        err: transactionError.optional(),
        confirmationStatus: z.enum(['processed', 'confirmed', 'finalized']).nullish(),
        confirmations: u64.nullable(),
      })
      .transform(
        ({ slot, err, confirmationStatus, confirmations }): SignatureStatus => ({
          slot,
          // Old nodes tell only the number of confirmations: null means rooted.
          commitment: confirmationStatus ?? (confirmations === null ? 'finalized' : 'processed'),
          ...(err === undefined ? {} : { failure: err }),
        }),
      )
      .nullable(),
  ),
)

export const pastTransactions = z.array(
  z
    .object({ signature: z.string().refine(isSignature), slot: u64, err: transactionError.optional() })
    .transform(({ signature, slot, err }) => ({
      signature,
      slot,
      failed: err !== undefined,
    })),
)
export const pastTransaction = z.object({ transaction: z.tuple([z.base64(), z.literal('base64')]) }).nullable()

export const simulation = withContext(
  z.object({
    err: transactionError.optional(),
    unitsConsumed: u64.nullish(),
    accounts: z.array(account).nullish(),
  }),
)

const voteAccount = z.object({
  votePubkey: address,
  nodePubkey: address,
  activatedStake: lamportsValue,
  // A later node may leave it out, or tell more than 100: the account's own data count.
  commission: z.number().optional(),
})
export const voteAccounts = z.object({ current: z.array(voteAccount), delinquent: z.array(voteAccount) })

export const priorityFees = z.array(z.object({ prioritizationFee: u64 }))

/** Reads an answer by its schema; another shape is no answer. */
export function read<T>(schema: z.ZodType<T>, answer: unknown, method: string): T {
  const result = schema.safeParse(answer)
  if (result.success) return result.data
  throw new RpcFailure('no-answer', `the node's answer to ${method} has another shape than Solana's JSON-RPC API`)
}
