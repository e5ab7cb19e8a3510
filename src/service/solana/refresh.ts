import { routes } from '../../contract/routes.ts'
import { ProblemError, validationFailed } from '../errors.ts'
import { answer, type Handled, type Input } from '../http/contract-route.ts'
import { findSolanaStake, lockSolanaStake, type SolanaStakeRow } from '../store/solana-stakes.ts'
import { findTransaction, refusingSecond, replaceMessage } from '../store/solana-transactions.ts'
import { transactionBody } from './bodies.ts'
import { refuseCancelled } from './challenge.ts'
import { refuseInState, refuseOthers } from './create-transaction.ts'
import type { SolanaDeps } from './deps.ts'
import { lookForTransaction, recordLanding } from './landing.ts'
import { networkOf, type SolanaNetwork } from './networks.ts'
import { type Action, actionOf, prepare } from './prepare.ts'
import { lookAtStake } from './protocol.ts'
import { brokenDestinationRules, brokenVoteRules } from './rules.ts'

const route = routes.refreshSolanaTransaction
type Route = typeof route

/**
 * Gives an expired transaction a new blockhash under the same id. The older message must be dead for certain: the finalized height is beyond its
 * last valid one, none of its signatures is in the history, and the stake is, at a slot no earlier than that height's, as it was before: a
 * transaction that landed unreported shows there.
 */
export function refreshTransaction(deps: SolanaDeps): (input: Input<Route>) => Promise<Handled<Route>> {
  const { store, idempotency, networks, log, metrics, policy } = deps
  return async ({ caller, params, body, idempotent, signal }) => {
    const { stakeId, txId } = params
    const answered = await idempotency.run(idempotent, async (commit) => {
      const stake = await findSolanaStake(store.db, caller.account, stakeId)
      const found = stake === undefined ? undefined : await findTransaction(store.db, stakeId, txId)
      if (stake === undefined || found === undefined)
        throw new ProblemError('not-found', `there is no transaction ${txId} of a stake ${stakeId}`)
      const network = networkOf(networks, stake.network)
      if (found.status === 'confirmed' || found.status === 'failed') throw landed(found.status)

      const landing = await lookForTransaction(network.chain, found, signal)
      const row = await recordLanding(store.db, found, landing)
      if (row === undefined) throw meanwhile()
      if (landing.kind === 'landed') throw landed(row.status)
      // A stake that was made, withdrawn and forgotten looks as if it never was: then only the history can tell.
      if (landing.kind === 'unknown' && row.kind === 'stake')
        throw new ProblemError(
          'chain-unavailable',
          `the history of the service's nodes for ${stake.network} does not reach back far enough`,
          {
            retryAfterSeconds: 60,
          },
        )
      const { blockHeight, slot } = await network.chain.epochInfo('finalized', signal)
      if (blockHeight <= row.last_valid_block_height) {
        const left = row.last_valid_block_height - blockHeight + 1n
        throw new ProblemError(
          'invalid-state',
          `the transaction could still land: ${left} blocks are to be final before it has expired for certain`,
        )
      }
      // Another one may be made only when no node's final blocks can hold the first any more.
      const heights = await network.chain.landingFacts([], signal)
      if (heights.some((fact) => fact === undefined || fact.finalizedBlockHeight <= row.last_valid_block_height))
        throw new ProblemError(
          'invalid-state',
          `the transaction could still land: not every node of the service for ${stake.network} shows its end as final`,
        )
      if (row.kind === 'stake') refuseCancelled(stake)
      const look = await lookAtStake(deps, network, stake, signal, { past: row.kind === 'stake' })
      if (look.slot < slot)
        throw new ProblemError('chain-unavailable', `the service's nodes for ${stake.network} are not at the same height`, {
          retryAfterSeconds: 2,
        })
      refuseInState(row.kind, look.protocol)
      const options = { attempt: row.attempt + 1, maxPriorityFeeLamports: body?.maxPriorityFeeLamports }
      refuseOthers(row.kind, stake, look)
      await refuseUnfit(network, stake, actionOf(row), signal)
      const prepared = await prepare(network, policy, stake, actionOf(row), options, signal)

      const refreshed = await refusingSecond(
        commit(async (transaction) => {
          refuseCancelled(await lockSolanaStake(transaction, stakeId))
          const next = await replaceMessage(transaction, row, prepared)
          if (next === undefined) throw meanwhile()
          return answer(route, 200, transactionBody(next, stake.network))
        }),
      )
      log.info({ stakeId, txId, network: stake.network, kind: row.kind }, 'an expired Solana transaction was made anew')
      return refreshed
    })
    if (answered.replayed) metrics.replayed()
    return answered
  }
}

/**
 * What was right when it was made first may not be any more: the validator may have stopped, or an account of a program stand where the money goes. An
 * exception that was named then still counts. @throws ProblemError `validation-failed`
 */
async function refuseUnfit({ chain }: SolanaNetwork, stake: SolanaStakeRow, action: Action, signal: AbortSignal): Promise<void> {
  const broken =
    action.kind === 'stake'
      ? brokenVoteRules(await chain.voteAccount(stake.vote_account, signal))
      : action.kind === 'withdrawal'
        ? brokenDestinationRules({
            destination: action.destination,
            stakeAccount: stake.stake_account,
            account: await chain.account(action.destination, 'confirmed', signal),
            exception: true,
          })
        : []
  if (broken.length > 0) throw validationFailed(broken)
}

const landed = (status: string) => new ProblemError('invalid-state', `the transaction is in a block (${status}): it can't be made anew`)
const meanwhile = () => new ProblemError('invalid-state', 'the transaction was changed meanwhile: read the stake again')
