import { BeaconError } from '../chains/ethereum/beacon.ts'
import { ChainError } from '../chains/ethereum/chain.ts'
import type { Clock } from '../lib/clock.ts'
import { ProblemError } from './errors.ts'
import type { EthereumNetworks } from './ethereum/networks.ts'
import type { SolanaNetworks } from './solana/networks.ts'

/** `ok`, or why a network can't be used: the code of the chain's error. */
export type NetworkHealth = Readonly<Record<string, { readonly chain: string; readonly beacon?: string }>>

/** A node that has said nothing by then is of no use. */
const timeoutMs = 2_000
/** Whoever asks more often gets the same answer. */
const keptMs = 5_000

/** Asks each network's nodes whether they can be used. Never throws. */
export function createNetworkHealth(deps: {
  readonly networks: EthereumNetworks
  readonly solanaNetworks: SolanaNetworks
  readonly clock: Clock
}): () => Promise<NetworkHealth> {
  const { networks, solanaNetworks, clock } = deps
  let last: { readonly at: number; readonly health: Promise<NetworkHealth> } | undefined

  async function look(): Promise<NetworkHealth> {
    const ethereum = [...networks].map(async ([name, { chain, validators }]) => {
      const [chainCode, beaconCode] = await Promise.all([
        codeOf((signal) => chain.head(signal)),
        validators && codeOf((signal) => validators.beacon.head(signal)),
      ])
      return [name, { chain: chainCode, ...(beaconCode === undefined ? {} : { beacon: beaconCode }) }] as const
    })
    const solana = [...solanaNetworks].map(
      async ([name, { chain }]) => [name, { chain: await codeOf((signal) => chain.epochInfo('finalized', signal)) }] as const,
    )
    return Object.fromEntries(await Promise.all([...ethereum, ...solana]))
  }

  return () => {
    const now = clock.monotonicMs()
    if (last === undefined || now - last.at > keptMs) last = { at: now, health: look() }
    return last.health
  }
}

async function codeOf(ask: (signal: AbortSignal) => Promise<unknown>): Promise<string> {
  const late = Promise.withResolvers<never>()
  const signal = AbortSignal.timeout(timeoutMs)
  signal.addEventListener('abort', () => late.reject(signal.reason), { once: true })
  late.promise.catch(() => undefined)
  try {
    await Promise.race([ask(signal), late.promise])
    return 'ok'
  } catch (error) {
    return error instanceof ChainError || error instanceof BeaconError || error instanceof ProblemError ? error.code : 'unavailable'
  }
}
