import { stakeProgram } from '../../chains/solana/programs.ts'
import { routes } from '../../contract/routes.ts'
import { ProblemError } from '../errors.ts'
import { answer, type Handled, type Input } from '../http/contract-route.ts'
import { cancelSolanaStake, findSolanaStake, lockSolanaStake, type SolanaStakeRow } from '../store/solana-stakes.ts'
import { type SolanaTransactionRow, transactionsOf } from '../store/solana-transactions.ts'
import { stakeBody } from './bodies.ts'
import type { SolanaDeps } from './deps.ts'
import { upToDate } from './landing.ts'
import { networkOf, type SolanaNetwork } from './networks.ts'
import { lookAtStake, type Protocol } from './protocol.ts'

const route = routes.cancelSolanaStake
type Route = typeof route

/**
 * Cancels a stake that was never paid: every transaction that was handed out for it has expired by the final block height of each node, and no node has the stake
 * account at a slot from there on. Its external reference is free again, and nothing more is handed out for it. Should it be paid all the same, by a transaction
 * of another make or one that a restored database has forgotten, the follower sees that.
 */
export function cancelStake(deps: SolanaDeps): (input: Input<Route>) => Promise<Handled<Route>> {
  const { store, idempotency, networks, clock, log, metrics } = deps
  return async ({ caller, params: { stakeId }, idempotent, signal }) => {
    const answered = await idempotency.run(idempotent, async (commit) => {
      const stake = await findSolanaStake(store.db, caller.account, stakeId)
      if (stake === undefined) throw new ProblemError('not-found', `there is no stake ${stakeId}`)
      const network = networkOf(networks, stake.network)
      const stored = await transactionsOf(store.db, stakeId)
      const rows = await Promise.all(stored.map((row) => upToDate(store, network.chain, row, signal)))
      const { protocol } = await lookAtStake(deps, network, stake, signal, { past: true })
      if (stake.cancelled_at === null) await refuseUnlessUnpaid(network, stake, protocol, rows, signal)
      return commit(async (transaction) => {
        const current = await lockSolanaStake(transaction, stakeId)
        const now = await transactionsOf(transaction, stakeId)
        if (current.cancelled_at !== null) return answer(route, 200, stakeBody(current, protocol, now))
        if (current.seen_slot !== null) throw paid(current, protocol)
        // What was made or renewed since they were looked at may land.
        if (versions(now) !== versions(rows)) throw later('a transaction of the stake was made meanwhile, which may land', 1)
        const row = await cancelSolanaStake(transaction, stakeId, clock.now())
        log.info(
          { stakeId, account: caller.account, network: row.network, stakeAccount: row.stake_account },
          'a Solana stake that was not paid was cancelled',
        )
        return answer(route, 200, stakeBody(row, protocol, now))
      })
    })
    if (answered.replayed) metrics.replayed()
    return answered
  }
}

const versions = (rows: readonly SolanaTransactionRow[]): string =>
  JSON.stringify(rows.map(({ id, attempt, status, signature }) => [id, attempt, status, signature]))

/** Of a block, at the pace that a cluster aims for. */
const msPerBlock = 400

/** @throws ProblemError `invalid-state` where it was paid, and with Retry-After where it may be paid yet; `chain-unavailable` */
async function refuseUnlessUnpaid(
  { chain, config }: SolanaNetwork,
  stake: SolanaStakeRow,
  protocol: Protocol,
  rows: readonly SolanaTransactionRow[],
  signal: AbortSignal,
): Promise<void> {
  const isPaid = protocol.status !== 'CREATED' || stake.seen_slot !== null || rows.some(({ status }) => status === 'confirmed')
  if (isPaid) throw paid(stake, protocol)
  const inBlock = rows.find(({ status }) => status === 'submitted')
  if (inBlock !== undefined)
    throw later(`its transaction ${inBlock.id} is in a block that is not final yet`, Math.ceil(config.pollIntervalMs / 1000))
  // Earlier attempts of a transaction were dead before it was renewed. One that has failed landed, and moved nothing.
  const last = rows
    .filter(({ status }) => status !== 'failed')
    .reduce((height, row) => (row.last_valid_block_height > height ? row.last_valid_block_height : height), -1n)
  const looks = await chain.looks(stake.stake_account, [], signal)
  if (looks.some((look) => look?.account?.owner === stakeProgram)) throw paid(stake, protocol)
  const seen = looks.filter((look) => look !== undefined)
  if (seen.length < looks.length)
    throw new ProblemError('chain-unavailable', `not every node of the service for ${stake.network} says that the stake was not paid`, {
      retryAfterSeconds: 5,
    })
  const lowest = seen.reduce<bigint | undefined>(
    (height, look) => (height === undefined || look.finalizedBlockHeight < height ? look.finalizedBlockHeight : height),
    undefined,
  )
  if (lowest === undefined || lowest <= last) {
    const left = Number(last - (lowest ?? 0n)) + 1
    throw later(
      `a transaction that was handed out could still land: ${left} blocks are to be final on every node before it has expired for certain`,
      Math.ceil((left * msPerBlock) / 1000),
    )
  }
}

const later = (why: string, seconds: number): ProblemError =>
  new ProblemError('invalid-state', `the stake can't be cancelled yet: ${why}`, { retryAfterSeconds: Math.min(120, Math.max(1, seconds)) })

const paid = ({ stake_account: account }: SolanaStakeRow, { status }: Protocol): ProblemError =>
  new ProblemError(
    'invalid-state',
    `the stake was paid${status === 'CREATED' ? '' : ` (it is ${status})`} into ${account}: it can't be cancelled${status === 'WITHDRAWN' ? '' : ', but deactivated and withdrawn'}`,
  )
