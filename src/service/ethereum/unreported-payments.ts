import { ChainError, type ChainHead, type Hash } from '../../chains/ethereum/chain.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import type { Store } from '../store/database.ts'
import { hashesOf, lookSoon, type StakeRow, seePayment, takeUnpaid } from '../store/stakes.ts'
import type { EthereumNetwork } from './networks.ts'
import { expectedPayment } from './observe.ts'
import { inParallel } from './parallel.ts'
import { isPayment } from './payment.ts'
import { logSeen } from './seen.ts'

/** Stakes taken at once, batches of one pass; they are looked up in an index in memory, which is brought up to date once for all that ask together. */
const batchSize = 500
const maxBatches = 20
const concurrency = 100
/** A new stake is looked for at every so many-th poll: a payment that nobody reports is no hurry. */
const pollsBetween = 5
export const lookEveryMs = ({ pollIntervalMs }: { readonly pollIntervalMs: number }): number =>
  Math.max(pollIntervalMs * pollsBetween, 1_000)

export interface UnreportedPayments {
  /** Looks once at the stakes of a network that are due. What the chain can't tell now is looked for later. */
  pass(network: EthereumNetwork, head: ChainHead, signal: AbortSignal): Promise<void>
}

/**
 * Sees the service's own deposits in the logs of the deposit contract, which it reads anyway: a payment whose hash nobody has reported, or another one in its
 * place, or that of a stake which counts as failed or cancelled. The transaction is recorded as if it were reported, and followed as any other.
 */
export function createUnreportedPayments(deps: { store: Store; clock: Clock; log: Logger }): UnreportedPayments {
  const { clock, log } = deps
  const { db } = deps.store

  /** @returns whether it is settled for now; false where its deposit is in a block that may still be taken back, and is no payment yet */
  async function look({ chain }: EthereumNetwork, head: ChainHead, stake: StakeRow, known: ReadonlySet<string>, signal: AbortSignal) {
    const expected = expectedPayment(stake)
    const payments = (await chain.depositsFor(stake.pubkey, signal)).filter((deposit) => isPayment(expected, deposit))
    const payment = payments.find(({ blockNumber }) => blockNumber <= head.final)
    if (payment === undefined) return payments.length === 0
    await see(stake, payment.transactionHash, known)
    return true
  }

  async function see(stake: StakeRow, hash: Hash, known: ReadonlySet<string>): Promise<void> {
    if (stake.status === 'submitted' && known.has(hash)) return
    const seen = await db.transaction().execute((transaction) => seePayment(transaction, stake.id, hash, clock.now()))
    if (seen === undefined) return
    const line = { stakeId: stake.id, network: stake.network, pubkey: stake.pubkey, hash }
    logSeen(log, { what: 'stake', done: 'paid' }, line, { ...seen, reference: stake.external_reference })
  }

  return {
    async pass(network, head, signal) {
      const { name } = network.config
      const intervalMs = lookEveryMs(network.config)
      try {
        for (let batch = 0; batch < maxBatches; batch++) {
          const stakes = await takeUnpaid(db, { network: name, limit: batchSize, intervalMs })
          const hashes = await hashesOf(
            db,
            stakes.map(({ id }) => id),
          )
          const known = Map.groupBy(hashes, ({ stake_id }) => stake_id)
          const of = (stake: StakeRow) => new Set(known.get(stake.id)?.map((row) => row.hash as string))
          /** Whoever was not looked for to the end does not wait for its next turn. */
          const left = new Set(stakes.map(({ id }) => id))
          await inParallel(concurrency, stakes, async (stake) => {
            if (await look(network, head, stake, of(stake), signal)) left.delete(stake.id)
          }).finally(() => lookSoon(db, { by: 'id', of: [...left], withinMs: intervalMs }))
          if (stakes.length < batchSize) break
        }
      } catch (error) {
        if (!(error instanceof ChainError)) throw error
        log.debug({ err: error, network: name }, 'the deposits of stakes could not be looked for; it tries again')
      }
    },
  }
}
