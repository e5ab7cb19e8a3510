import type { FeeMarket } from '../chains/ethereum/fees.ts'
import { parseGweiAsWei } from '../lib/amounts.ts'
import type { Clock } from '../lib/clock.ts'
import type { StakingSigner } from '../resources/staking-signer.ts'
import type { Caches, SagaName } from './caches.ts'
import { createClaims } from './owners.ts'
import { isCancelling } from './transactions/protocol.ts'
import { isOpen as isOpenOnSolana } from './transactions/solana/holders.ts'
import { type RecordObject, recordOf } from './transactions/store.ts'
import type { Wait, Waits } from './waits.ts'

/** Resources whose conditions are exported at most: those that need a person first, then those that have waited longest. */
export const CONDITIONS_AT_MOST = 500
/** A price that was read longer ago is no price, in ms. */
const PRICE_HOLDS_MS = 600_000

/** What is read at scrape time of what isn't settled, and of what is at stake. */
export interface FleetReadings {
  readonly conditions: () => {
    readonly shown: Iterable<{
      readonly namespace: string
      readonly name: string
      readonly kind: string
      readonly type: string
      readonly reason: string
      readonly ageSeconds: number
    }>
    /** Resources beyond the bound. */
    readonly omitted: number
  }
  readonly waits: () => Iterable<{ readonly kind: string; readonly reason: string; readonly count: number; readonly oldestSeconds: number }>
  /** Transactions without an outcome, by lane and state: `waiting` for a place, `open`, `cancelling`. */
  readonly transactions: () => Iterable<{
    readonly signer: string
    readonly network: string
    readonly purpose: string
    readonly state: 'waiting' | 'open' | 'cancelling'
    readonly count: number
    readonly oldestSeconds: number
  }>
  /** In ETH or SOL. */
  readonly amounts: () => Iterable<{
    readonly unit: 'eth' | 'sol'
    readonly kind: string
    readonly network: string
    readonly phase: string
    readonly amount: number
  }>
  readonly slashed: () => Iterable<{ readonly network: string; readonly count: number }>
  readonly prices: () => Iterable<{ readonly network: string; readonly baseFeeGwei: number; readonly priorityFeeGwei: number }>
  readonly feeCaps: () => Iterable<{ readonly signer: string; readonly gwei: number }>
}

/** What gas costs on each network. */
export interface Prices {
  readonly all: () => Iterable<{ readonly network: string; readonly baseFeeGwei: number; readonly priorityFeeGwei: number }>
}

/** What gas costs, as it was last asked for. */
export function createPrices(clock: Clock) {
  const prices = new Map<string, { readonly market: FeeMarket; readonly at: number }>()
  return {
    set: (network: string, market: FeeMarket) => void prices.set(network, { market, at: clock.monotonicMs() }),
    *all() {
      for (const [network, { market, at }] of prices)
        if (clock.monotonicMs() - at < PRICE_HOLDS_MS)
          yield {
            network,
            baseFeeGwei: Number(market.baseFeePerGas) / 1e9,
            priorityFeeGwei: Number(market.priorityFeePerGas) / 1e9,
          }
    },
  }
}

export function createFleetReadings(deps: {
  readonly caches: Pick<Caches, SagaName | 'records' | 'signers'>
  readonly waits: Pick<Waits, 'all'>
  readonly prices: Prices
  readonly clock: Clock
}): FleetReadings {
  const { caches, waits, clock } = deps
  const isClaimed = createClaims(caches)
  const ageOf = ({ sinceMs }: Wait): number => Math.max(0, clock.monotonicMs() - sinceMs) / 1000

  return {
    conditions() {
      const all = Map.groupBy(waits.all(), ({ of }) => of)
      const isStalled = (group: readonly Wait[]): number => (group.some(({ type }) => type === 'Stalled') ? 1 : 0)
      const oldest = (group: readonly Wait[]): number => Math.min(...group.map(({ sinceMs }) => sinceMs))
      const groups = [...all.values()]
      if (groups.length > CONDITIONS_AT_MOST) groups.sort((a, b) => isStalled(b) - isStalled(a) || oldest(a) - oldest(b))
      const shown = groups.slice(0, CONDITIONS_AT_MOST).flatMap((group) =>
        group.map((one) => ({
          namespace: one.of.namespace,
          name: one.of.name,
          kind: one.of.kind,
          type: one.type,
          reason: one.reason,
          ageSeconds: ageOf(one),
        })),
      )
      return { shown, omitted: Math.max(0, groups.length - CONDITIONS_AT_MOST) }
    },

    waits() {
      const groups = new Map<string, { kind: string; reason: string; count: number; oldestSeconds: number }>()
      const counted = new Set<string>()
      for (const one of waits.all()) {
        const { kind, uid } = one.of
        const key = `${kind}/${one.reason}`
        // A stall says the same by two conditions.
        const isKnown = counted.has(`${key}/${uid}`)
        counted.add(`${key}/${uid}`)
        const entry = groups.get(key) ?? { kind, reason: one.reason, count: 0, oldestSeconds: 0 }
        groups.set(key, {
          ...entry,
          count: entry.count + (isKnown ? 0 : 1),
          oldestSeconds: Math.max(entry.oldestSeconds, ageOf(one)),
        })
      }
      return groups.values()
    },

    transactions() {
      const groups = new Map<string, ReturnType<typeof laneOf> & { count: number; oldestSeconds: number }>()
      for (const record of caches.records.cache.unsettled()) {
        if (record.status?.outcome !== undefined) continue
        const lane = laneOf(record)
        // It stays when its resource goes, and waits for nothing then.
        if (lane.state === 'waiting' && !isClaimed(record)) continue
        const key = Object.values(lane).join('/')
        const entry = groups.get(key) ?? { ...lane, count: 0, oldestSeconds: 0 }
        const age = Math.max(0, clock.now().getTime() - Date.parse(sinceWhen(record))) / 1000
        groups.set(key, {
          ...entry,
          count: entry.count + 1,
          oldestSeconds: Math.max(entry.oldestSeconds, Number.isFinite(age) ? age : 0),
        })
      }
      return groups.values()
    },

    *amounts() {
      const { stakes, withdrawals, solanaStakes } = caches
      for (const saga of [stakes, withdrawals, solanaStakes])
        for (const { network, phase, amount } of saga.amounts())
          yield { unit: saga === solanaStakes ? 'sol' : 'eth', kind: saga.kind, network, phase, amount: amount / 1e9 }
    },
    slashed: () => caches.stakes.slashed(),
    prices: () => deps.prices.all(),
    *feeCaps() {
      for (const { metadata, spec } of caches.signers.cache.list()) {
        const gwei = feeCapOf(spec)
        if (gwei !== undefined) yield { signer: metadata.name, gwei }
      }
    },
  }
}

/** The lane of a record, and how far it has come there. */
export function laneOf(record: RecordObject): {
  readonly signer: string
  readonly network: string
  readonly purpose: string
  readonly state: 'waiting' | 'open' | 'cancelling'
} {
  const { signer, network, purpose, chain } = record.spec
  const isOpen = chain === 'Solana' ? isOpenOnSolana(record) : record.status?.place !== undefined
  return { signer, network, purpose, state: !isOpen ? 'waiting' : isCancelling(recordOf(record)) ? 'cancelling' : 'open' }
}

/** When it came to where it is: its first version under the nonce in use was written down, or it was made; RFC 3339, or an empty text where nothing says. */
export function sinceWhen({ metadata, status }: RecordObject): string {
  const { attempts = [], place } = status ?? {}
  const first = place === undefined ? attempts.at(-1) : attempts.find(({ nonce }) => nonce === place)
  return first?.at ?? metadata.creationTimestamp ?? ''
}

function feeCapOf({ chain, policy }: StakingSigner['spec']): number | undefined {
  if (chain !== 'Ethereum' || policy?.maxFeePerGasGwei === undefined) return undefined
  try {
    return Number(parseGweiAsWei(policy.maxFeePerGasGwei)) / 1e9
  } catch {
    return undefined
  }
}
