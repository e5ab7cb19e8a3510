import { type Wei, wei } from '../../lib/amounts.ts'

/** What a unit of gas costs now, in wei. */
export interface FeeMarket {
  readonly baseFeePerGas: Wei
  /** The tip that nodes suggest. */
  readonly priorityFeePerGas: Wei
}

/** The two fields of an EIP-1559 transaction, in wei per gas. */
export interface Fees {
  readonly maxFeePerGas: Wei
  readonly maxPriorityFeePerGas: Wei
}

/** The cap does not pay for the base fee and the smallest tip: the price may fall, or a person raises the cap. */
export interface FeesWait {
  readonly kind: 'wait'
  readonly baseFeePerGas: Wei
  readonly cap: Wei
}

/**
 * Prices a new transaction. `maxFeePerGas` is twice the base fee plus the tip (six full blocks in a row can pass before the base fee
 * doubles: EIP-1559 raises it by at most an eighth a block), within the cap, so that it lands without another look at the price.
 * A cap above the base fee but below base fee and tip lowers the tip: it may land, only later.
 */
export function priceTransaction({
  market,
  cap,
}: {
  readonly market: FeeMarket
  readonly cap: Wei
}): ({ readonly kind: 'fees' } & Fees) | FeesWait {
  const { baseFeePerGas, priorityFeePerGas } = market
  if (cap <= baseFeePerGas) return { kind: 'wait', baseFeePerGas, cap }
  // At least one wei: the least that geth's pool takes (its --txpool.pricelimit).
  const tip = min(max(priorityFeePerGas, 1n), cap - baseFeePerGas)
  return { kind: 'fees', maxFeePerGas: wei(min(2n * baseFeePerGas + tip, cap)), maxPriorityFeePerGas: wei(tip) }
}

/**
 * Prices a replacement under the same nonce: an eighth more in *both* fields, rounded up, and what the market asks for now. Pools refuse less than 10 %
 * more (geth's --txpool.pricebump; Nethermind, Erigon, reth and Besu have the same).
 * `capped`: the cap does not allow an eighth more. `wait`: it would be allowed, and yet not pay for the base fee.
 */
export function bumpFees({
  previous,
  market,
  cap,
}: {
  readonly previous: Fees
  readonly market: FeeMarket
  readonly cap: Wei
}): ({ readonly kind: 'fees' } & Fees) | FeesWait | { readonly kind: 'capped'; readonly needed: Fees; readonly cap: Wei } {
  const needed = {
    maxFeePerGas: wei(anEighthMore(previous.maxFeePerGas)),
    maxPriorityFeePerGas: wei(anEighthMore(previous.maxPriorityFeePerGas)),
  }
  if (needed.maxFeePerGas > cap || needed.maxPriorityFeePerGas > cap) return { kind: 'capped', needed, cap }
  const now = priceTransaction({ market, cap })
  if (now.kind === 'wait') return now
  const maxPriorityFeePerGas = max(needed.maxPriorityFeePerGas, now.maxPriorityFeePerGas)
  // A tip above the whole fee makes the transaction invalid.
  const maxFeePerGas = max(max(needed.maxFeePerGas, now.maxFeePerGas), maxPriorityFeePerGas)
  return { kind: 'fees', maxFeePerGas: wei(maxFeePerGas), maxPriorityFeePerGas: wei(maxPriorityFeePerGas) }
}

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)
const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)
/** Rounded up; from 0 it is 1, since a replacement must pay more. */
const anEighthMore = (fee: bigint): bigint => max((fee * 9n + 7n) / 8n, fee + 1n)
