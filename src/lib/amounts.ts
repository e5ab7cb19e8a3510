/**
 * Amounts of money, each in a type of its own: a `Gwei` is not a `Wei`. All are bigints; the brand exists for the compiler only.
 * Parsing is strict (no empty string, sign, exponent, white space, leading zeros): what a person typed is either an amount or an error.
 */
declare const unit: unique symbol
export type Wei = bigint & { readonly [unit]: 'wei' }
export type Gwei = bigint & { readonly [unit]: 'gwei' }
export type Lamports = bigint & { readonly [unit]: 'lamports' }

export const wei = (value: bigint): Wei => value as Wei
export const gwei = (value: bigint): Gwei => value as Gwei
export const lamports = (value: bigint): Lamports => value as Lamports

const GWEI_PER_ETH = 1_000_000_000n
const WEI_PER_GWEI = 1_000_000_000n

export const gweiToWei = (amount: Gwei): Wei => wei(amount * WEI_PER_GWEI)

/** An amount that isn't one. The message quotes the text: amounts are no secrets. */
export class AmountError extends Error {
  override readonly name = 'AmountError'
}

const decimal = /^(0|[1-9][0-9]{0,18})(?:\.([0-9]{1,18}))?$/

/**
 * Parses ETH as a person writes it (`32`, `32.5`) to gwei, exactly.
 * @throws AmountError unless it is a plain decimal number with at most 9 decimals (a gwei is the beacon chain's smallest unit).
 */
export function parseEth(text: string): Gwei {
  const match = decimal.exec(text)
  if (!match) throw new AmountError(`"${text.slice(0, 40)}" is not an amount in ETH: write a plain decimal number such as 32 or 32.5`)
  const [, whole = '0', fraction = ''] = match
  const significant = fraction.replace(/0+$/, '')
  if (significant.length > 9)
    throw new AmountError(`"${text}" has more than 9 decimals: the smallest unit of a deposit is 1 gwei (0.000000001 ETH)`)
  return gwei(BigInt(whole) * GWEI_PER_ETH + BigInt(significant.padEnd(9, '0')))
}

/** Gwei as ETH, without trailing zeros: 32000000000n → "32". */
export function formatEth(amount: Gwei): string {
  const whole = amount / GWEI_PER_ETH
  const fraction = (amount % GWEI_PER_ETH).toString().padStart(9, '0').replace(/0+$/, '')
  return fraction === '' ? whole.toString() : `${whole}.${fraction}`
}

/** Lamports as SOL, without trailing zeros: 5000000000n → "5". */
export const formatSol = (amount: Lamports): string => formatEth(gwei(amount))

/** Lamports, as a text of digits, in SOL for people; the text itself where it is none. */
export const solOf = (amount: string): string => (/^[0-9]{1,20}$/.test(amount) ? formatSol(lamports(BigInt(amount))) : amount)

/** Lamports, as a text of digits, for messages: `5 SOL`. */
export const inSol = (amount = '0'): string => `${solOf(amount)} SOL`

/** Wei as ETH for messages, exact: 1500000000000000000n → "1.5". */
export function formatWeiAsEth(amount: Wei): string {
  const negative = amount < 0n
  const digits = (negative ? -amount : amount).toString().padStart(19, '0')
  const fraction = digits.slice(-18).replace(/0+$/, '')
  return `${negative ? '-' : ''}${digits.slice(0, -18)}${fraction === '' ? '' : `.${fraction}`}`
}

const integer = /^(0|[1-9][0-9]{0,77})$/

/**
 * Parses a non-negative integer in decimal.
 * @throws AmountError on an empty string, sign, exponent, decimals, white space, leading zeros, or anything over `max`.
 */
export function parseInteger(text: string, what: string, max: bigint = (1n << 64n) - 1n): bigint {
  if (!integer.test(text)) throw new AmountError(`"${text.slice(0, 40)}" is not ${what}: write a whole number in plain digits`)
  const value = BigInt(text)
  if (value > max) throw new AmountError(`"${text}" is too large for ${what}: at most ${max}`)
  return value
}

/** Parses lamports, at most a u64. @throws AmountError */
export const parseLamports = (text: string): Lamports => lamports(parseInteger(text, 'an amount in lamports'))

/** Parses gwei given with decimals (fees are written so: `2.5`) to wei, exactly. @throws AmountError */
export function parseGweiAsWei(text: string): Wei {
  const match = decimal.exec(text)
  if (!match) throw new AmountError(`"${text.slice(0, 40)}" is not an amount in gwei: write a plain decimal number such as 30 or 2.5`)
  const [, whole = '0', fraction = ''] = match
  const significant = fraction.replace(/0+$/, '')
  if (significant.length > 9) throw new AmountError(`"${text}" has more than 9 decimals: the smallest unit is 1 wei (0.000000001 gwei)`)
  return wei(BigInt(whole) * WEI_PER_GWEI + BigInt(significant.padEnd(9, '0')))
}

/** Wei as gwei for messages: 2500000000n → "2.5". */
export const formatWeiAsGwei = (amount: Wei): string => formatEth(gwei(amount))
