import { ChallengeError, challengeText } from '../../chains/solana/challenge.ts'
import { routes } from '../../contract/routes.ts'
import { lamports } from '../../lib/amounts.ts'
import { ProblemError } from '../errors.ts'
import { answer, type Handled, type Input } from '../http/contract-route.ts'
import { newId } from '../ids.ts'
import { type ChallengeColumns, findSolanaStake, lockSolanaStake, type SolanaStakeRow, setChallenge } from '../store/solana-stakes.ts'
import { transactionsOf } from '../store/solana-transactions.ts'
import { challengeBody } from './bodies.ts'
import { challengeDomain, type SolanaDeps } from './deps.ts'

const lifetimeMs = 5 * 60_000

type Named = Pick<SolanaStakeRow, 'id' | 'network' | 'amount_lamports' | 'stake_account' | 'stake_authority' | 'withdraw_authority'>

/** A new challenge for a stake. @throws ProblemError when the host that the client asked for is none that a challenge can name */
export function issueChallenge(
  stake: Named,
  domain: string,
  now: Date,
): { readonly [K in keyof ChallengeColumns]: NonNullable<ChallengeColumns[K]> } {
  const id = newId(now)
  const expiresAt = new Date(now.getTime() + lifetimeMs)
  try {
    const text = challengeText({
      domain: domain.toLowerCase(),
      stakeId: stake.id,
      challengeId: id,
      network: stake.network,
      amount: lamports(stake.amount_lamports),
      stakeAccount: stake.stake_account,
      stakeAuthority: stake.stake_authority,
      withdrawAuthority: stake.withdraw_authority,
      issuedAt: now,
      expiresAt,
    })
    return { challenge_id: id, challenge_message: text, challenge_issued_at: now, challenge_expires_at: expiresAt }
  } catch (error) {
    if (!(error instanceof ChallengeError)) throw error
    throw new ProblemError('invalid-request', `no challenge can be made: ${error.message}`)
  }
}

const route = routes.renewSolanaChallenge
type Route = typeof route

/** Makes a new challenge, which voids the older one; until the stake has a stake transaction. */
export function renewChallenge(deps: SolanaDeps): (input: Input<Route>) => Promise<Handled<Route>> {
  const { store, idempotency, clock, metrics, policy } = deps
  return async ({ caller, params, idempotent, host }) => {
    const { stakeId } = params
    const answered = await idempotency.run(idempotent, async (commit) => {
      const stake = await findSolanaStake(store.db, caller.account, stakeId)
      if (stake === undefined) throw new ProblemError('not-found', `there is no stake ${stakeId}`)
      return commit(async (transaction) => {
        const current = await lockSolanaStake(transaction, stakeId)
        refuseCancelled(current)
        refuseSecondStakeTransaction(await transactionsOf(transaction, stakeId))
        const challenge = issueChallenge(current, challengeDomain(policy, host), clock.now())
        await setChallenge(transaction, stakeId, challenge)
        const body = challengeBody(challenge)
        if (body === undefined) throw new Error('a new challenge is not whole')
        return answer(route, 200, body)
      })
    })
    if (answered.replayed) metrics.replayed()
    return answered
  }
}

/** Nothing is handed out for a stake that was cancelled. @throws ProblemError `invalid-state` */
export function refuseCancelled({ cancelled_at: at }: Pick<SolanaStakeRow, 'cancelled_at'>): void {
  if (at !== null) throw new ProblemError('invalid-state', `the stake was cancelled (${at.toISOString()}): create another`)
}

/** One that failed on chain moved nothing, and may be followed by another. @throws ProblemError `invalid-state` */
export function refuseSecondStakeTransaction(transactions: Awaited<ReturnType<typeof transactionsOf>>): void {
  const one = transactions.find(({ kind, status }) => kind === 'stake' && status !== 'failed')
  if (one === undefined) return
  const hint = one.status === 'expired' ? ': refresh it' : ''
  throw new ProblemError('invalid-state', `the stake has its stake transaction ${one.id} (${one.status})${hint}`)
}
