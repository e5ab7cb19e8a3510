import { z } from 'zod'
import { AmountError, formatEth, type Gwei, type Lamports, parseEth, parseInteger, type Wei } from '../../lib/amounts.ts'
import { type ExactNumber, exactNumber, isExactNumber, plainDigits } from '../json.ts'

/*
 * Amounts are codecs: on the wire the text of the interface, in code a branded bigint. `z.decode` reads the wire, `z.encode` writes it;
 * both the service's routes and the client go through them, so nobody converts by hand.
 */

import type { Address, BlockHash, Blockhash, Hash, Hex, Pubkey, Signature, SolanaAddress } from '../../lib/chain-types.ts'

export type { Hex } from '../../lib/chain-types.ts'

/** Hex of so many bytes; read in any case, handed on in lower case. */
export const hex = <T extends Hex = Hex>(bytes: number): z.ZodType<T, T> =>
  z
    .string()
    .regex(new RegExp(`^0x[0-9a-fA-F]{${bytes * 2}}$`), `must be ${bytes} bytes in hex with 0x`)
    .toLowerCase() as unknown as z.ZodType<T, T>
/** The public key of a validator. */
export const pubkey = hex<Pubkey>(48)
/** The hash of an Ethereum transaction. */
export const transactionHash = hex<Hash>(32)
/** The hash of an Ethereum block. */
export const blockHash = hex<BlockHash>(32)

/** Hex of any whole number of bytes up to `maxBytes`. */
export const hexData = (maxBytes: number): z.ZodType<Hex, Hex> =>
  z
    .string()
    .max(2 + maxBytes * 2)
    .regex(/^0x([0-9a-fA-F]{2})*$/, 'must be bytes in hex with 0x')
    .toLowerCase() as unknown as z.ZodType<Hex, Hex>

/** An Ethereum address. Its case is kept: mixed case is an EIP-55 checksum, which the service checks. */
export const ethereumAddress = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, 'must be an Ethereum address: 20 bytes in hex with 0x') as unknown as z.ZodType<Address, Address>

const base58 = <T extends string>(min: number, max: number, message: string): z.ZodType<T, T> =>
  z.string().regex(new RegExp(`^[1-9A-HJ-NP-Za-km-z]{${min},${max}}$`), message) as unknown as z.ZodType<T, T>
/** A public key of Solana in base58 (32 bytes). That it decodes to 32 bytes is checked by who uses it. */
export const solanaAddress = base58<SolanaAddress>(32, 44, 'must be a Solana address in base58')
/** An ed25519 signature in base58 (64 bytes). */
export const solanaSignature = base58<Signature>(64, 88, 'must be a signature in base58')
/** A blockhash in base58 (32 bytes). */
export const solanaBlockhash = base58<Blockhash>(32, 44, 'must be a blockhash in base58')

/** `stakeId`, `requestId`, `txId`, `challengeId`: 32 lower-case hex characters. */
export const id = z.string().regex(/^[0-9a-f]{32}$/, 'must be 32 lower-case hex characters')

export const network = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'must be the name of a network')

/** RFC 3339 in UTC. */
export const time = z.iso.datetime()

/** What no text of this service may hold: U+0000, which databases refuse, and halves of surrogate pairs, which are no characters. */
const isText = (value: string): boolean => !value.includes('\0') && value.isWellFormed()

/** Text of any characters. */
export const text = (maxLength: number) =>
  z
    .string()
    .min(1)
    .max(maxLength)
    .refine(isText, 'must be text: without U+0000 and without halves of surrogate pairs')
    // JSON that can be written as UTF-8 holds no half of a surrogate pair.
    .meta({ pattern: '^[^\\u0000]*$' })

/** A caller's own name for what is created; unique per account among resources that are not cancelled or failed. */
export const externalReference = text(255)

/** An epoch, slot, block number or index: an integer that a double holds. */
export const count = z.int().nonnegative()

const maxUint64 = (1n << 64n) - 1n
const maxUint256 = (1n << 256n) - 1n

const decimal = <T extends bigint>(what: string, max: bigint, min = 0n) =>
  z.codec(
    z
      .string()
      .regex(/^(0|[1-9][0-9]{0,77})$/, `must be ${what}: a whole number in plain digits, as a string`)
      .meta({ description: `${what[0]?.toUpperCase()}${what.slice(1)}, as a decimal string.` }),
    z.custom<T>((value) => typeof value === 'bigint'),
    {
      decode: (text, context) => {
        try {
          const value = parseInteger(text, what, max)
          if (value >= min) return value as T
          context.issues.push({ code: 'custom', input: text, message: `must be at least ${min}` })
        } catch (error) {
          if (!(error instanceof AmountError)) throw error
          context.issues.push({ code: 'custom', input: text, message: error.message })
        }
        return z.NEVER
      },
      encode: (value) => value.toString(),
    },
  )

export const gweiAmount = decimal<Gwei>('an amount in gwei', maxUint64)
export const positiveGweiAmount = decimal<Gwei>('an amount in gwei', maxUint64, 1n)
export const weiAmount = decimal<Wei>('an amount in wei', maxUint256)
export const lamportsAmount = decimal<Lamports>('an amount in lamports', maxUint64)
export const positiveLamportsAmount = decimal<Lamports>('an amount in lamports', maxUint64, 1n)

const textOf = (value: number | ExactNumber): string => (typeof value === 'number' ? String(value) : plainDigits(value.rawJSON))

/**
 * ETH as a JSON number, in code gwei. A fraction must come from {@link parseJson}: a double with decimals has lost its digits already and
 * is refused, rather than rounded.
 */
export const ethNumber = z.codec(
  z
    .custom<number | ExactNumber>((value) => Number.isSafeInteger(value) || isExactNumber(value), 'must be a number')
    .meta({
      type: 'number',
      exclusiveMinimum: 0,
      // 2^64 - 1 gwei, in whole ETH.
      maximum: 18_446_744_073,
      description: 'An amount in ETH, with at most 9 decimals.',
    }),
  z.custom<Gwei>((value) => typeof value === 'bigint'),
  {
    decode: (number, context) => {
      try {
        const amount = parseEth(textOf(number))
        if (amount > 0n && amount <= maxUint64) return amount
        context.issues.push({ code: 'custom', input: number, message: amount === 0n ? 'must be more than 0' : 'is too large' })
      } catch (error) {
        if (!(error instanceof AmountError)) throw error
        context.issues.push({ code: 'custom', input: number, message: error.message })
      }
      return z.NEVER
    },
    encode: (amount) => exactNumber(formatEth(amount)),
  },
)

/** The query of every list. `limit` is text on the wire, as all of a query is. */
export const pageQuery = z.strictObject({
  /** Where to go on: the `nextCursor` of the page before. */
  cursor: text(512).optional(),
  limit: z
    .codec(
      z
        .string()
        .regex(/^[1-9][0-9]{0,2}$/, 'must be a number from 1 to 200')
        .meta({ description: 'At most so many items, 1 to 200; default 50.' }),
      z.int().min(1).max(200),
      { decode: (text) => Number(text), encode: (value) => String(value) },
    )
    .optional(),
})

/** A page of a list, the newest first. Without `nextCursor` it is the last. */
export const page = <T extends z.ZodType>(item: T) =>
  z.object({ items: z.array(item).max(200), nextCursor: z.string().max(512).optional() })
