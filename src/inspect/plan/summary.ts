import { formatEth, gwei } from '../../lib/amounts.ts'
import type { Plan, PlannedResource, Summary } from './planned.ts'

export function summaryOf(resources: readonly PlannedResource[]): Summary {
  const count = (action: PlannedResource['action']): number => resources.filter((one) => one.action === action).length
  const standing = resources.filter(({ action }) => action !== 'refused' && action !== 'skipped')
  const sums = new Map<string, bigint>()
  for (const { moves, waits } of standing) {
    // What somebody has to ask for first is not paid by applying it.
    if (waits.some(({ reason }) => asked.has(reason ?? ''))) continue
    if (moves?.is !== 'pays' || moves.units === undefined) continue
    const coin = `${moves.amount.split(' ').at(-1)} on ${moves.network}`
    sums.set(coin, (sums.get(coin) ?? 0n) + BigInt(moves.units))
  }
  return {
    create: count('create'),
    change: count('change'),
    unchanged: count('unchanged'),
    refused: count('refused'),
    skipped: count('skipped'),
    waiting: standing.filter(({ waits }) => waits.length > 0).length,
    notAllKnown: standing.filter(({ unknown }) => unknown.length > 0).length,
    pays: [...sums].map(([coin, units]) => `${formatEth(gwei(units))} ${coin}`),
  }
}

const asked: ReadonlySet<string> = new Set(['Suspended', 'Planned', 'Deleting'])

/** 0: nothing would be refused; 2: something would be. `strict`: or would wait, or is not known. */
export function exitCodeOf({ summary }: Plan, { strict }: { readonly strict: boolean }): 0 | 2 {
  if (summary.refused > 0) return 2
  return strict && (summary.waiting > 0 || summary.notAllKnown > 0) ? 2 : 0
}
