import type { FastifyInstance } from 'fastify'
import { routes } from '../../contract/routes.ts'
import type { SolanaStakeBody } from '../../contract/schemas/solana.ts'
import { ProblemError } from '../errors.ts'
import { decodeCursor, defaultLimit, pageOf } from '../ethereum/cursor.ts'
import { inParallel } from '../ethereum/parallel.ts'
import { serve } from '../http/contract-route.ts'
import { findSolanaStake, listSolanaStakes, type SolanaStakeRow } from '../store/solana-stakes.ts'
import { transactionsOf } from '../store/solana-transactions.ts'
import { stakeBody } from './bodies.ts'
import { cancelStake } from './cancel-stake.ts'
import { renewChallenge } from './challenge.ts'
import { createStake } from './create-stake.ts'
import { createTransactions } from './create-transaction.ts'
import type { SolanaDeps } from './deps.ts'
import { upToDate } from './landing.ts'
import { networkOf } from './networks.ts'
import { lookAtStake } from './protocol.ts'
import { refreshTransaction } from './refresh.ts'
import { submitTransaction } from './submit.ts'

/** Stakes of a list that are asked for at once. */
const concurrency = 8

/** The operations on Solana stakes. An account sees its own stakes only: all others don't exist for it. */
export function solanaStakeRoutes(app: FastifyInstance, deps: SolanaDeps): void {
  const { store, networks } = deps
  const { db } = store
  const transactions = createTransactions(deps)

  /** The stake as the cluster shows it now. @throws ProblemError `chain-unavailable` */
  async function bodyNow(row: SolanaStakeRow, signal: AbortSignal): Promise<SolanaStakeBody> {
    const network = networkOf(networks, row.network)
    const stored = await transactionsOf(db, row.id)
    const current = await Promise.all(stored.map((one) => upToDate(store, network.chain, one, signal)))
    // Afterwards: a stake transaction that is final now says that the account was there.
    const stake = (await findSolanaStake(db, row.account, row.id)) ?? row
    const { protocol } = await lookAtStake(deps, network, stake, signal)
    // The look may have shown that a cancelled stake was paid.
    const shown = stake.cancelled_at === null ? stake : ((await findSolanaStake(db, row.account, row.id)) ?? stake)
    return stakeBody(shown, protocol, current)
  }

  serve(app, routes.createSolanaStake, createStake(deps))
  serve(app, routes.cancelSolanaStake, cancelStake(deps))
  serve(app, routes.renewSolanaChallenge, renewChallenge(deps))
  serve(app, routes.createStakeTransaction, transactions.stake)
  serve(app, routes.createDeactivationTransaction, transactions.deactivation)
  serve(app, routes.createWithdrawalTransaction, transactions.withdrawal)
  serve(app, routes.refreshSolanaTransaction, refreshTransaction(deps))
  serve(app, routes.submitSolanaTransaction, submitTransaction(deps))

  serve(app, routes.getSolanaStake, async ({ caller, params, signal }) => {
    const stake = await findSolanaStake(db, caller.account, params.stakeId)
    if (stake === undefined) throw new ProblemError('not-found', `there is no stake ${params.stakeId}`)
    return { status: 200, body: await bodyNow(stake, signal) }
  })

  serve(app, routes.listSolanaStakes, async ({ caller, query, signal }) => {
    const limit = query.limit ?? defaultLimit
    const rows = await listSolanaStakes(db, {
      account: caller.account,
      limit,
      before: query.cursor === undefined ? undefined : decodeCursor(query.cursor),
      network: query.network,
      networks: caller.networks,
      externalReference: query.externalReference,
    })
    const bodies = new Map<string, SolanaStakeBody>()
    await inParallel(concurrency, rows.slice(0, limit), async (row) => {
      bodies.set(row.id, await bodyNow(row, signal))
    })
    const { items, ...more } = pageOf(rows, limit, (row) => bodies.get(row.id))
    return { status: 200, body: { items: items.filter((item) => item !== undefined), ...more } }
  })
}
