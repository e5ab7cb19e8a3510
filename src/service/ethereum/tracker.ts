import { ChainError, type ChainHead } from '../../chains/ethereum/chain.ts'
import { type Clock, jitter } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import { again } from '../again.ts'
import type { Metrics } from '../metrics.ts'
import { isOutage, type Store } from '../store/database.ts'
import {
  type HashRow,
  hashesOf,
  recordInFlight,
  recordOutcome,
  rememberSender,
  type SeenInFlight,
  type StakeRow,
  takeDue,
} from '../store/stakes.ts'
import type { DepositFates } from './deposit-fates.ts'
import { eachPart } from './each-part.ts'
import type { MissingStakes } from './missing-stakes.ts'
import type { EthereumNetwork, EthereumNetworks } from './networks.ts'
import { hasNewSender, mismatchOf, observe } from './observe.ts'
import { type Observed, type Outcome, outcomeOf } from './outcome.ts'
import { inParallelOrLater } from './parallel.ts'
import type { RequestTracker } from './requests/tracker.ts'
import type { UnreportedPayments } from './unreported-payments.ts'

export interface TrackerDeps {
  readonly store: Store
  readonly networks: EthereumNetworks
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  /** How often each network is gone through, in ms. */
  readonly intervalMs: number
  /** Goes through the validators' requests on a network after its stakes. */
  readonly requests: RequestTracker
  /** Looks for payments that nobody has reported. */
  readonly unreported: UnreportedPayments
  /** Looks for stakes that the database lacks. */
  readonly missing: MissingStakes
  /** Looks for what became of deposits, last. */
  readonly fates: DepositFates
}

/** Stakes taken at once, looked at side by side, and batches of one pass: a pass ends, whatever is due. */
const batchSize = 500
const concurrency = 8
const maxBatches = 20

export interface Tracker {
  /** Goes through what is due, again and again, until aborted. Never throws. */
  run(signal: AbortSignal): Promise<void>
  /** Goes once through what is due on a network. @throws ChainError, or the database's error */
  pass(network: EthereumNetwork, signal: AbortSignal): Promise<void>
}

/**
 * Follows the reported transactions to their end. All its state is in the database, so it goes on after a restart, and several instances
 * share the work: each takes what is due, and writes what it saw only if nothing was reported meanwhile.
 */
export function createTracker(deps: TrackerDeps): Tracker {
  const { store, networks, clock, log, metrics, intervalMs, requests, unreported, missing, fates } = deps
  const { db } = store

  /** @returns what is to be written of one that goes on being in flight */
  async function look(
    network: EthereumNetwork,
    head: ChainHead,
    stake: StakeRow,
    hashes: readonly HashRow[],
    signal: AbortSignal,
  ): Promise<SeenInFlight | undefined> {
    const observed = await observe({ chain: network.chain, head }, hashes, mismatchOf(stake), signal)
    const [first, ...rest] = observed
    if (first === undefined) return undefined
    await rememberSenders(stake, hashes, observed)
    const outcome = outcomeOf([first, ...rest], head)
    if (outcome.status === 'submitted') return { stake, hashCount: hashes.length, seen: columnsOf(outcome) }
    const recorded = await recordOutcome(db, stake, hashes.length, { ...columnsOf(outcome), checked_head: head.latest })
    if (!recorded) return undefined
    metrics.stakeSettled(network.config.name, outcome.status)
    const line = { stakeId: stake.id, network: stake.network, hash: outcome.hash, blockNumber: outcome.blockNumber.toString() }
    if (outcome.status === 'confirmed') log.info(line, "a stake's deposit is confirmed")
    else log.warn({ ...line, reason: outcome.reason }, "a stake's transaction has failed")
    return undefined
  }

  const rememberSenders = (stake: StakeRow, hashes: readonly HashRow[], observed: readonly Observed[]) =>
    Promise.all(
      observed.map(async ({ hash, sentBy }) => {
        if (sentBy !== undefined && hasNewSender(hashes, hash, sentBy)) await rememberSender(db, stake.id, hash, sentBy)
      }),
    )

  async function followStakes(network: EthereumNetwork, head: ChainHead, signal: AbortSignal): Promise<void> {
    const { name, pollIntervalMs } = network.config
    for (let batch = 0; batch < maxBatches; batch++) {
      const stakes = await takeDue(db, { network: name, head: head.latest, limit: batchSize, intervalMs: pollIntervalMs })
      const hashes = hashesByStake(
        await hashesOf(
          db,
          stakes.map((stake) => stake.id),
        ),
      )
      const inFlight: SeenInFlight[] = []
      const all = inParallelOrLater(concurrency, stakes, async (stake) => {
        const seen = await look(network, head, stake, hashes.get(stake.id) ?? [], signal)
        if (seen !== undefined) inFlight.push(seen)
      })
      // What was seen of the others is written, whoever failed.
      const [err] = await all.finally(() => recordInFlight(db, head.latest, inFlight))
      if (err !== undefined) log.debug({ err, network: name }, 'the nodes do not tell of some stakes now; they are looked at again')
      if (stakes.length < batchSize) break
    }
  }

  async function pass(network: EthereumNetwork, signal: AbortSignal): Promise<void> {
    const head = await network.chain.head(signal)
    await eachPart(signal, [
      () => followStakes(network, head, signal),
      () => requests.pass(network, head, signal),
      () => unreported.pass(network, head, signal),
      () => missing.pass(network, signal),
      () => fates.pass(network, signal),
    ])
    metrics.trackerPass(network.config.name, clock.now())
  }

  const follow = (network: EthereumNetwork, signal: AbortSignal): Promise<void> =>
    again(clock, signal, {
      work: () => pass(network, signal),
      failed(error, failures) {
        // An outage is said once, not at every pass.
        const level = failures === 1 || !(error instanceof ChainError || isOutage(error)) ? 'warn' : 'debug'
        log[level]({ err: error, network: network.config.name }, 'the tracker could not look; it tries again')
      },
      waitMs: (failures) => jitter(Math.min(intervalMs * 2 ** Math.min(failures, 5), Math.max(60_000, intervalMs))),
    })

  return {
    pass,
    run: async (signal) => {
      // One that never gets through is behind as well: a series that is not there tells nobody.
      for (const name of networks.keys()) metrics.trackerPass(name, clock.now())
      await Promise.all([...networks.values()].map((network) => follow(network, signal)))
    },
  }
}

/** Of many stakes: each is looked up once, not found among all. */
const hashesByStake = (hashes: readonly HashRow[]): ReadonlyMap<string, readonly HashRow[]> =>
  Map.groupBy(hashes, ({ stake_id }) => stake_id)

const columnsOf = (outcome: Outcome) => ({
  status: outcome.status,
  hash: outcome.hash,
  block_number: outcome.blockNumber ?? null,
  block_hash: outcome.blockHash ?? null,
  failure_reason: outcome.status === 'failed' ? outcome.reason : null,
})
