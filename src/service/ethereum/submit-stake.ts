import { routes } from '../../contract/routes.ts'
import type { Clock } from '../../lib/clock.ts'
import { ProblemError } from '../errors.ts'
import { answer, type Handled, type Input } from '../http/contract-route.ts'
import type { Idempotency } from '../idempotency.ts'
import type { Metrics } from '../metrics.ts'
import type { Store } from '../store/database.ts'
import { addHash, findStake, hashesOf, rememberSender } from '../store/stakes.ts'
import { attempts, mayReport, Stale, toldOf } from './may-report.ts'
import type { EthereumNetworks } from './networks.ts'
import { mismatchOf } from './observe.ts'
import { stakeBody } from './stake-body.ts'
import type { ValidatorStatuses } from './validator-statuses.ts'

const route = routes.submitEthereumStake
type Route = typeof route

export interface SubmitStakeDeps {
  readonly store: Store
  readonly idempotency: Idempotency
  readonly networks: EthereumNetworks
  readonly clock: Clock
  readonly metrics: Metrics
  readonly validators: ValidatorStatuses
}

/**
 * Records the hash of a stake's transaction, which may not have been sent yet. Idempotent by nature; the tracker finds out what became of it. A hash that
 * was recorded is never dropped by itself.
 */
export function submitStake({
  store,
  idempotency,
  networks,
  clock,
  metrics,
  validators,
}: SubmitStakeDeps): (input: Input<Route>) => Promise<Handled<Route>> {
  const { db } = store

  return async ({ caller, params, body, idempotent, signal }) => {
    const { stakeId } = params
    const { transactionHash: hash } = body
    const answered = await idempotency.run(idempotent, async (commit) => {
      const told = toldOf(body)
      for (let attempt = 1; ; attempt++) {
        const stake = await findStake(db, caller.account, stakeId)
        if (stake === undefined) throw new ProblemError('not-found', `there is no stake ${stakeId}`)
        if (stake.status === 'cancelled') {
          throw new ProblemError('invalid-state', `the stake ${stakeId} is cancelled: nothing must be paid for it`)
        }
        const hashes = await hashesOf(db, [stakeId])
        const sentBy = await mayReport(
          { subject: stake, what: 'the stake', network: networks.get(stake.network), hashes, hash, told, mismatchIn: mismatchOf(stake) },
          signal,
        )
        try {
          return await commit(async (transaction) => {
            const current = await transaction
              .selectFrom('ethereum_stakes')
              .selectAll()
              .where('id', '=', stakeId)
              .forUpdate()
              .executeTakeFirstOrThrow()
            const now = await hashesOf(transaction, [stakeId])
            const same = now.find((one) => one.hash === hash)
            if (same !== undefined) {
              if (same.sender === null && sentBy !== undefined) await rememberSender(transaction, stakeId, hash, sentBy)
              return answer(route, 200, stakeBody(current, validators.known(current)))
            }
            if (now.length !== hashes.length || (current.status !== stake.status && current.status !== 'submitted')) throw new Stale()
            const next = await addHash(transaction, current, { hash, sentBy, now: clock.now() })
            return answer(route, 200, stakeBody(next, validators.known(current)))
          })
        } catch (error) {
          if (!(error instanceof Stale) || attempt >= attempts) throw error
        }
      }
    })
    if (answered.replayed) metrics.replayed()
    return answered
  }
}
