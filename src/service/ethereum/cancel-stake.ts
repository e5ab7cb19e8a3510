import { getAddress } from 'viem'
import { ChainError } from '../../chains/ethereum/chain.ts'
import { routes } from '../../contract/routes.ts'
import type { Logger } from '../../lib/log.ts'
import { chainUnavailable, ProblemError } from '../errors.ts'
import { answer, type Handled, type Input } from '../http/contract-route.ts'
import type { Idempotency } from '../idempotency.ts'
import type { Metrics } from '../metrics.ts'
import type { Store } from '../store/database.ts'
import { cancelStake as cancelRow, findStake, type HashRow, hashesOf, lockStake, type StakeRow } from '../store/stakes.ts'
import { usedOtherwise } from './may-report.ts'
import type { EthereumNetworks } from './networks.ts'
import { mismatchOf } from './observe.ts'
import { stakeBody } from './stake-body.ts'

const route = routes.cancelEthereumStake
type Route = typeof route

export interface CancelStakeDeps {
  readonly store: Store
  readonly idempotency: Idempotency
  readonly networks: EthereumNetworks
  readonly log: Logger
  readonly metrics: Metrics
}

/**
 * Cancels a stake that was never paid: the deposit contract has no deposit for its key, and no hash was reported, or none of those that were can land any more.
 * Its external reference is free again; its key is never handed out again. Should it be paid all the same, the tracker sees that.
 */
export function cancelStake(deps: CancelStakeDeps): (input: Input<Route>) => Promise<Handled<Route>> {
  const { store, idempotency, networks, log, metrics } = deps
  const { db } = store
  return async ({ caller, params: { stakeId }, idempotent, signal }) => {
    const answered = await idempotency.run(idempotent, async (commit) => {
      const stake = await findStake(db, caller.account, stakeId)
      if (stake === undefined) throw new ProblemError('not-found', `there is no stake ${stakeId}`)
      if (stake.status === 'awaiting_submission' || stake.status === 'submitted') await refusePaid(networks, stake, signal)
      const dead =
        stake.status === 'submitted' ? await deadHashes(networks, stake, await hashesOf(db, [stakeId]), signal) : new Set<string>()
      return commit(async (transaction) => {
        const current = await lockStake(transaction, stakeId)
        const told = current.status === 'submitted' ? await hashesOf(transaction, [stakeId]) : []
        const isDead = told.length > 0 && told.every(({ hash }) => dead.has(hash))
        if ((current.status === 'submitted' && !isDead) || current.status === 'confirmed') {
          const detail = `the stake's transaction was reported (${current.hash}) and it can't be cancelled any more: it is ${current.status}`
          throw new ProblemError('invalid-state', detail)
        }
        // One that has failed holds no reference, and its key was paid for once: there is nothing to cancel.
        if (current.status !== 'awaiting_submission' && !isDead) return answer(route, 200, stakeBody(current, undefined))
        const row = await cancelRow(transaction, stakeId)
        log.info({ stakeId, account: caller.account, network: row.network, pubkey: row.pubkey }, 'a stake that was not paid was cancelled')
        return answer(route, 200, stakeBody(row, undefined))
      })
    })
    if (answered.replayed) metrics.replayed()
    return answered
  }
}

/**
 * Of the hashes that were reported, those that can't land any more: no node shows the transaction, and every node shows another one as final that has used its
 * sender's nonce and pays nothing.
 */
async function deadHashes(
  networks: EthereumNetworks,
  stake: StakeRow,
  hashes: readonly HashRow[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const chain = networks.get(stake.network)?.chain
  if (chain === undefined) return new Set()
  const isDead = async ({ hash, sender, nonce }: HashRow): Promise<boolean> => {
    if (sender === null || nonce === null || (await chain.transaction(hash, signal)) !== undefined) return false
    return usedOtherwise(chain, { sender: getAddress(sender), nonce: Number(nonce) }, mismatchOf(stake), signal)
  }
  const found = await Promise.all(hashes.map(async (row) => ((await isDead(row)) ? [row.hash] : []))).catch((error: unknown) => {
    throw error instanceof ChainError ? chainUnavailable(stake.network, error) : error
  })
  return new Set(found.flat())
}

/** @throws ProblemError `invalid-state` when a deposit for the key is there, in whatever block; `chain-unavailable` */
async function refusePaid(
  networks: EthereumNetworks,
  stake: { network: string; pubkey: `0x${string}` },
  signal: AbortSignal,
): Promise<void> {
  const network = networks.get(stake.network)
  if (network === undefined) {
    throw new ProblemError('chain-unavailable', `the network ${stake.network} is not configured any more`, { retryAfterSeconds: 60 })
  }
  const [deposit] = await network.chain.depositsFor(stake.pubkey, signal).catch((error: unknown) => {
    throw error instanceof ChainError ? chainUnavailable(stake.network, error) : error
  })
  if (deposit === undefined) return
  throw new ProblemError(
    'invalid-state',
    `the stake is paid by ${deposit.transactionHash}, which nobody has reported: it can't be cancelled`,
  )
}
