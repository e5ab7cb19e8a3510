import { bumpFees, type FeeMarket, type Fees, priceTransaction } from '../../chains/ethereum/fees.ts'
import { type Wei, wei } from '../../lib/amounts.ts'
import type { TransactionAttempt } from '../../resources/staking-transaction.ts'

/** A transfer of 0 wei without calldata (yellow paper, Appendix G: Gtransaction). */
export const CANCEL_GAS = 21_000n
/** A cancel may cost more than a call: nobody else gets on before it lands. */
export const cancelCap = (policyCap: Wei): Wei => wei(policyCap * 2n)

export const feesOf = (attempt: Pick<TransactionAttempt, 'maxFeePerGasWei' | 'maxPriorityFeePerGasWei'>): Fees => ({
  maxFeePerGas: wei(BigInt(attempt.maxFeePerGasWei ?? '0')),
  maxPriorityFeePerGas: wei(BigInt(attempt.maxPriorityFeePerGasWei ?? '0')),
})

/** The highest fees of several versions under one nonce: what the next one must outbid. */
export function highestFees(attempts: readonly TransactionAttempt[]): Fees | undefined {
  if (attempts.length === 0) return undefined
  const all = attempts.map(feesOf)
  const most = (field: keyof Fees): Wei => all.map((fees) => fees[field]).reduce((a, b) => (a > b ? a : b))
  return { maxFeePerGas: most('maxFeePerGas'), maxPriorityFeePerGas: most('maxPriorityFeePerGas') }
}

/** It can't be mined at this base fee. */
export const isBelowBaseFee = (fees: Fees, market: FeeMarket): boolean => fees.maxFeePerGas < market.baseFeePerGas
/** It pays less than its whole tip at this base fee: it may wait for long. */
export const isTooCheap = (fees: Fees, market: FeeMarket): boolean => fees.maxFeePerGas < market.baseFeePerGas + fees.maxPriorityFeePerGas

/**
 * Fees for a version under a nonce, within the cap: the market's where nothing stands under it yet, otherwise what outbids the earlier versions too.
 * @returns undefined where the cap does not allow it
 */
export function feesFor(market: FeeMarket, cap: Wei, previous: Fees | undefined): Fees | undefined {
  const priced = previous === undefined ? priceTransaction({ market, cap }) : bumpFees({ previous, market, cap })
  if (priced.kind !== 'fees') return undefined
  return { maxFeePerGas: priced.maxFeePerGas, maxPriorityFeePerGas: priced.maxPriorityFeePerGas }
}

/**
 * Whether a new call should take a place at this price: it must stand a rise of the base fee by a quarter (two full blocks: EIP-1559 raises it by at most
 * an eighth a block), or the lane would be held by it, and cancelled, as soon as the price rises.
 */
export const standsARise = (fees: Fees, market: FeeMarket): boolean => fees.maxFeePerGas * 4n >= market.baseFeePerGas * 5n
