import { type Clock, jitter } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import { again } from '../again.ts'
import { eachPart } from '../ethereum/each-part.ts'
import { inParallel } from '../ethereum/parallel.ts'
import { isOutage, type Store } from '../store/database.ts'
import { takeCancelled } from '../store/solana-stakes.ts'
import { takeFollowed } from '../store/solana-transactions.ts'
import { upToDate } from './landing.ts'
import type { SolanaNetwork, SolanaNetworks } from './networks.ts'
import { lookAtStake } from './protocol.ts'

export interface SolanaFollower {
  /** Looks again and again, until aborted. Never throws. */
  run(signal: AbortSignal): Promise<void>
  /** Looks once. @throws the chain's or the database's error */
  pass(network: SolanaNetwork, signal: AbortSignal): Promise<void>
}

const intervalMs = 10_000
const batchSize = 50
const concurrency = 4
const lookMs = 15_000
/** A payment of a stake that was cancelled is no hurry. */
const cancelledIntervalMs = 60_000

/**
 * Looks for the transactions of accounts that have webhooks: the state of all others is read from the chain when somebody asks for it; and for the accounts of
 * stakes that were cancelled, which may be paid all the same. Several instances share the work.
 */
export function createSolanaFollower(deps: { store: Store; networks: SolanaNetworks; clock: Clock; log: Logger }): SolanaFollower {
  const { store, networks, clock, log } = deps

  async function pass(network: SolanaNetwork, signal: AbortSignal): Promise<void> {
    const { config, chain } = network
    const one = () => AbortSignal.any([signal, AbortSignal.timeout(lookMs)])
    await eachPart(signal, [
      async () => {
        const due = await takeFollowed(store.db, { network: config.name, limit: batchSize, intervalMs })
        await inParallel(concurrency, due, async (row) => {
          await upToDate(store, chain, row, one())
        })
      },
      async () => {
        const cancelled = await takeCancelled(store.db, { network: config.name, limit: batchSize, intervalMs: cancelledIntervalMs })
        await inParallel(concurrency, cancelled, async (stake) => {
          await lookAtStake({ store, log }, network, stake, one(), { past: true })
        })
      },
    ])
  }

  const follow = (network: SolanaNetwork, signal: AbortSignal): Promise<void> =>
    again(clock, signal, {
      work: () => pass(network, signal),
      failed(error, failures) {
        const level = failures === 1 && !isOutage(error) ? 'warn' : 'debug'
        log[level](
          { err: error, network: network.config.name },
          'the transactions of Solana stakes could not be looked for; it tries again',
        )
      },
      waitMs: (failures) => jitter(intervalMs * 2 ** Math.min(failures, 4)),
    })

  return {
    pass,
    run: async (signal) => {
      await Promise.all([...networks.values()].map((network) => follow(network, signal)))
    },
  }
}
