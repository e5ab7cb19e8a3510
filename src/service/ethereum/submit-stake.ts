import { ChainError, type EthereumChain, type Hex } from '../../chains/ethereum/chain.ts'
import { routes } from '../../contract/routes.ts'
import type { Clock } from '../../lib/clock.ts'
import { chainUnavailable, ProblemError } from '../errors.ts'
import { answer, type Handled, type Input } from '../http/contract-route.ts'
import type { Idempotency } from '../idempotency.ts'
import type { Metrics } from '../metrics.ts'
import type { Store } from '../store/database.ts'
import { addHash, findStake, type HashRow, hashesOf, type StakeRow } from '../store/stakes.ts'
import type { EthereumNetworks } from './networks.ts'
import { stakeBody } from './stake-body.ts'
import { maySupersede } from './supersede.ts'

const route = routes.submitEthereumStake
type Route = typeof route

export interface SubmitStakeDeps {
  readonly store: Store
  readonly idempotency: Idempotency
  readonly networks: EthereumNetworks
  readonly clock: Clock
  readonly metrics: Metrics
}

/** Others reported hashes meanwhile: what was concluded from those before doesn't hold. */
class Stale extends Error {}
const attempts = 5

/** Records the hash of a stake's transaction. Idempotent by nature; the tracker finds out what became of it. */
export function submitStake({
  store,
  idempotency,
  networks,
  clock,
  metrics,
}: SubmitStakeDeps): (input: Input<Route>) => Promise<Handled<Route>> {
  const { db } = store

  async function mayAdd(stake: StakeRow, hashes: readonly HashRow[], hash: Hex, signal: AbortSignal): Promise<void> {
    if (hashes.length === 0 || hashes.some((one) => one.hash === hash)) return
    if (stake.status === 'confirmed' || stake.status === 'failed') {
      throw new ProblemError('already-submitted', `the stake's transaction ${stake.hash} is final (${stake.status})`)
    }
    const chain = networks.get(stake.network)?.chain
    if (chain === undefined) {
      throw new ProblemError('chain-unavailable', `the network ${stake.network} is not configured any more`, { retryAfterSeconds: 60 })
    }
    const verdict = await judge(chain, hashes, hash, signal).catch((error: unknown) => {
      throw error instanceof ChainError ? chainUnavailable(chain.network, error) : error
    })
    if (verdict === 'wait') {
      throw new ProblemError(
        'transaction-not-visible',
        `${stake.hash} was reported before and is waiting; ${hash} isn't visible yet, so it can't be told whether it replaces it`,
        { retryAfterSeconds: 5 },
      )
    }
    if (verdict === 'refuse') {
      throw new ProblemError(
        'already-submitted',
        `${stake.hash} was reported before, and both transactions could land: the stake would be paid twice`,
      )
    }
  }

  return async ({ caller, params, body, idempotent, signal }) => {
    const { stakeId } = params
    const { transactionHash: hash } = body
    const answered = await idempotency.run(idempotent, async (commit) => {
      for (let attempt = 1; ; attempt++) {
        const stake = await findStake(db, caller.account, stakeId)
        if (stake === undefined) throw new ProblemError('not-found', `there is no stake ${stakeId}`)
        const hashes = await hashesOf(db, [stakeId])
        await mayAdd(stake, hashes, hash, signal)
        try {
          return await commit(async (transaction) => {
            const current = await transaction
              .selectFrom('ethereum_stakes')
              .selectAll()
              .where('id', '=', stakeId)
              .forUpdate()
              .executeTakeFirstOrThrow()
            const now = await hashesOf(transaction, [stakeId])
            if (now.some((one) => one.hash === hash)) return answer(route, 200, stakeBody(current))
            if (now.length !== hashes.length || (current.status !== stake.status && current.status !== 'submitted')) throw new Stale()
            return answer(route, 200, stakeBody(await addHash(transaction, stakeId, hash, clock.now())))
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

async function judge(chain: EthereumChain, hashes: readonly HashRow[], hash: Hex, signal: AbortSignal) {
  const next = await chain.transaction(hash, signal)
  const earlier = await Promise.all(
    hashes.map(async (row) => {
      const found = await chain.transaction(row.hash, signal)
      const sentBy =
        found !== undefined
          ? { sender: found.from, nonce: found.nonce }
          : row.sender !== null && row.nonce !== null
            ? { sender: row.sender, nonce: Number(row.nonce) }
            : undefined
      return { visible: found !== undefined, mined: found?.blockNumber !== undefined, sentBy }
    }),
  )
  return maySupersede(earlier, next === undefined ? undefined : { sender: next.from, nonce: next.nonce })
}
