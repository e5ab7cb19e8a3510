import { lockText, lockupInForce } from '../../../chains/solana/stake-account.ts'
import { isGone, StakingApiError } from '../../../contract/client-error.ts'
import type { SolanaStakeBody } from '../../../contract/schemas/solana.ts'
import type { Perform } from '../../engine/step.ts'
import { retry, stall } from '../../engine/verdict.ts'
import { forgettingPlan } from '../../transactions/plan-only.ts'
import type { SolanaTransactionKind } from '../../transactions/solana/kind.ts'
import { assertUnaltered } from './authorization-asked.ts'
import { createAuthorizationEffects } from './authorization-effects.ts'
import type { AuthorizationEffects } from './authorization-steps.ts'
import { type AuthorizationDeps, createAuthorizationKind } from './authorization-transaction.ts'
import { createWanted } from './authorization-wanted.ts'
import { lookAt, metaOf } from './chain.ts'
import { createSolanaStakeRules } from './chain-rules.ts'
import { createMaking } from './making.ts'
import { createSolanaMigration } from './migration.ts'
import { createObservation } from './observation.ts'
import { createSolanaRequests, type SolanaRequests } from './request.ts'
import { createSeenStakes, type SeenStakes } from './seen.ts'
import { refuseCancelled } from './service-transaction.ts'
import { createSettlement } from './settlement.ts'
import type { SolanaStakeEffects, SolanaStakeRequest, StakeTerms } from './steps.ts'
import { createSolanaStepKind } from './transaction.ts'
import { createUndo } from './undo.ts'

/** The effects of a SolanaStake's saga, and what the log asks of its steps. */
export function createSolanaStakeEffects(deps: AuthorizationDeps): {
  readonly effects: Perform<SolanaStakeEffects>
  readonly steps: SolanaTransactionKind
  /** What a SolanaStakeAuthorization does, and what the log asks of it. */
  readonly authorization: { readonly effects: Perform<AuthorizationEffects>; readonly handOvers: SolanaTransactionKind }
  /** What this process has seen of stakes: the mirror compares status with it. */
  readonly seen: SeenStakes
  readonly networkOn: SolanaRequests['networkOn']
  readonly keyNameOf: (signer: string) => string | undefined
  readonly takeIn: ReturnType<typeof createSolanaMigration>
} {
  const requests = createSolanaRequests(deps)
  const wantedOf = createWanted(deps, requests)
  const seen = createSeenStakes()
  const { networkOf, networkOn, partiesToBegin, serviceStake, verifiedTerms, ownTerms, loggedTerms, lostTerms, assertAdmitted } = requests
  const steps = createSolanaStepKind(deps, requests) as SolanaTransactionKind
  const { ensured, followed } = createMaking(deps, requests, steps)

  return {
    seen,
    networkOn,
    keyNameOf: (signer) => deps.signers.get(signer)?.spec.keyName,
    takeIn: createSolanaMigration(deps, requests),
    steps,
    authorization: {
      effects: createAuthorizationEffects(deps, wantedOf),
      handOvers: createAuthorizationKind(deps, requests, wantedOf) as SolanaTransactionKind,
    },
    effects: {
      async createStake(request, visit, signal) {
        networkOf(request.network)
        const parties = await partiesToBegin(request, request.voteAccount, signal)
        const logged = loggedTerms(request, parties)
        if (logged !== undefined) return withVoteAccount(request, logged, signal)
        deps.assertMayAct()
        let body: SolanaStakeBody
        try {
          body = await serviceStake(request, parties, visit, signal)
        } catch (error) {
          const isAmount = error instanceof StakingApiError && error.rules?.includes('amount-out-of-range') === true
          const problem = isAmount ? await createSolanaStakeRules(requests).amountProblem(request, signal) : undefined
          if (problem !== undefined) throw problem
          return withVoteAccount(request, lostTerms(error, request, parties), signal)
        }
        const { stakeId, stakeAccount, stakeAuthority, withdrawAuthority, voteAccount } = body
        return { stakeId, stakeAccount, stakeAuthority, withdrawAuthority, voteAccount }
      },

      async verifyStake({ request, terms, tentative }, visit, signal) {
        networkOf(request.network)
        const parties = await partiesToBegin(request, terms.voteAccount, signal)
        const logged = loggedTerms(request, parties)
        if (logged !== undefined) return { ...logged, voteAccount: terms.voteAccount }
        let body: SolanaStakeBody
        try {
          body = await serviceStake(request, parties, visit, signal)
        } catch (error) {
          lostTerms(error, request, parties)
          return ownTerms({ request, terms }, parties, visit, signal)
        }
        const own = verifiedTerms(request, body, parties)
        if (request.wanted) refuseCancelled(body)
        if (request.adoptStakeId !== undefined) await assertAdoptable(request, own, signal)
        // Of a service that lied before and now tells the truth, the truth is taken: nothing stands on the lie yet.
        if (!tentative) await ownTerms({ request, terms }, parties, visit, signal)
        // The service's own choice of a vote account is asked of the policy too.
        assertAdmitted(request, parties, { voteAccount: own.voteAccount })
        return own
      },

      followTransaction: (plan, visit, signal) => forgettingPlan({ transaction: plan.shown }, () => followed(plan, visit, signal)),

      settleStake: createSettlement(deps, requests, seen, ensured),
      observeStake: createObservation(deps, requests, seen),
      undoStake: createUndo(deps, requests),

      async reportTransaction({ network, stakeId, txId, signature }, _visit, signal) {
        const { api } = networkOf(network)
        try {
          await api.submitTransaction(stakeId, txId, signature, signal)
        } catch (error) {
          if (!(error instanceof StakingApiError)) throw error
          if (error.code === 'transaction-not-visible')
            throw retry(
              'ServiceUnavailable',
              `The staking API does not see transaction ${signature} yet, which is final: it is told again.`,
            )
          // It has expired for the service, or was made anew there, or the service has lost the stake: the chain tells what became of it, not the service.
          if (error.status !== 409 && error.status !== 422 && !isGone(error)) throw error
        }
        return { reportedSignature: signature }
      },
    },
  }

  /** Terms that the log has, with the vote account that the chain shows, or the staking API. */
  async function withVoteAccount({ network: name }: SolanaStakeRequest, terms: StakeTerms, signal: AbortSignal): Promise<StakeTerms> {
    if (terms.voteAccount !== '') return terms
    const { api, chain } = networkOf(name)
    const { state } = await lookAt(chain, terms.stakeAccount, signal)
    const voteAccount = state?.kind === 'stake' ? state.delegation.voter : (await api.solanaStake(terms.stakeId, signal)).voteAccount
    return { ...terms, voteAccount }
  }

  /** A stake that is taken over must be this resource's to withdraw. */
  async function assertAdoptable(
    { network, adoptStakeId, origin }: SolanaStakeRequest,
    terms: StakeTerms,
    signal: AbortSignal,
  ): Promise<void> {
    const { state, clock } = await lookAt(networkOf(network).chain, terms.stakeAccount, signal)
    const meta = metaOf(state)
    assertUnaltered(state, terms, deps.successorsOf(`${origin.namespace}/${origin.name}`))
    if (meta === undefined || !lockupInForce(meta, clock)) return
    throw stall(
      'LockupInForce',
      `Stake ${adoptStakeId} is not adopted: its account ${terms.stakeAccount} is locked until ${lockText(meta, clock)}, and only its custodian ${meta.lockup.custodian} can lift that. Nothing was signed.`,
    )
  }
}
