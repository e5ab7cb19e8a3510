import { routes } from '../../contract/routes.ts'
import type { Clock } from '../../lib/clock.ts'
import { ProblemError } from '../errors.ts'
import { answer, type Handled, type Input } from '../http/contract-route.ts'
import type { Idempotency } from '../idempotency.ts'
import type { Metrics } from '../metrics.ts'
import type { Store } from '../store/database.ts'
import { addHash, findStake, hashesOf } from '../store/stakes.ts'
import { attempts, mayReport, Stale } from './may-report.ts'
import type { EthereumNetworks } from './networks.ts'
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

/** Records the hash of a stake's transaction. Idempotent by nature; the tracker finds out what became of it. */
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
      for (let attempt = 1; ; attempt++) {
        const stake = await findStake(db, caller.account, stakeId)
        if (stake === undefined) throw new ProblemError('not-found', `there is no stake ${stakeId}`)
        const hashes = await hashesOf(db, [stakeId])
        await mayReport({ subject: stake, what: 'the stake', network: networks.get(stake.network), hashes, hash }, signal)
        try {
          return await commit(async (transaction) => {
            const current = await transaction
              .selectFrom('ethereum_stakes')
              .selectAll()
              .where('id', '=', stakeId)
              .forUpdate()
              .executeTakeFirstOrThrow()
            const now = await hashesOf(transaction, [stakeId])
            if (now.some((one) => one.hash === hash)) return answer(route, 200, stakeBody(current, validators.known(current)))
            if (now.length !== hashes.length || (current.status !== stake.status && current.status !== 'submitted')) throw new Stale()
            return answer(route, 200, stakeBody(await addHash(transaction, stakeId, hash, clock.now()), validators.known(current)))
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
