import { stakeAccountSpace } from '../../chains/solana/programs.ts'
import { stakeAccountAddress } from '../../chains/solana/stake.ts'
import { routes } from '../../contract/routes.ts'
import type { SolanaStakeBody } from '../../contract/schemas/solana.ts'
import { type ProblemError, validationFailed } from '../errors.ts'
import { answer, type Handled, type Input } from '../http/contract-route.ts'
import type { Commit, Worked } from '../idempotency.ts'
import { newId } from '../ids.ts'
import { orMadeBefore, refuseReused } from '../made-before.ts'
import { insertSolanaStake, lockSolanaStake, solanaStakeOfRequest } from '../store/solana-stakes.ts'
import { transactionsOf } from '../store/solana-transactions.ts'
import { holderOf, referenceExists } from '../store/stakes.ts'
import { stakeBody } from './bodies.ts'
import { issueChallenge } from './challenge.ts'
import { challengeDomain, type SolanaDeps } from './deps.ts'
import { networkOf, type SolanaNetwork } from './networks.ts'
import { lookAtStake } from './protocol.ts'
import { brokenAddressRules, brokenAmountRules, brokenVoteRules } from './rules.ts'

const route = routes.createSolanaStake
type Route = typeof route

/**
 * Creates a stake: the rules, of which some are the cluster's, then stake, challenge, reference and answer in one database transaction. The
 * stake account's address is made of the stake's id, so that no two transactions can fund the same stake twice.
 */
export function createStake(deps: SolanaDeps): (input: Input<Route>) => Promise<Handled<Route>> {
  const { store, idempotency, networks, clock, log, metrics, policy } = deps

  /** The stake that this very request has made before. @throws ProblemError `idempotency-key-reused` */
  async function madeBefore({ caller, body, idempotent, signal }: Input<Route>, commit: Commit): Promise<Worked | undefined> {
    const there = idempotent === undefined ? undefined : await solanaStakeOfRequest(store.db, caller.account, idempotent.key)
    if (there === undefined) return undefined
    refuseReused(
      there.network === body.network &&
        there.amount_lamports === body.amountLamports &&
        there.stake_authority === body.stakeAuthority &&
        there.withdraw_authority === body.withdrawAuthority &&
        there.fee_payer === (body.feePayer ?? body.stakeAuthority) &&
        (body.voteAccount === undefined || there.vote_account === body.voteAccount) &&
        there.external_reference === (body.externalReference ?? null),
    )
    const { protocol } = await lookAtStake(deps, networkOf(networks, there.network), there, signal)
    const made = await commit(async (transaction) => {
      const row = await lockSolanaStake(transaction, there.id)
      return answer(route, 201, stakeBody(row, protocol, await transactionsOf(transaction, there.id)))
    })
    log.warn(
      { stakeId: there.id, account: caller.account },
      'a Solana stake is there of a request whose record is lost: were some tables restored without others?',
    )
    return { ...made, replayed: true }
  }

  return async (input) => {
    const { caller, body, idempotent, host, signal } = input
    const { amountLamports: amount, stakeAuthority, withdrawAuthority, feePayer = stakeAuthority, externalReference: reference } = body

    const make = async (commit: Commit): Promise<Worked> => {
      const network = networks.get(body.network)
      if (network === undefined) throw unknownNetwork(body.network)
      const voteAccount = body.voteAccount ?? network.defaultVoteAccount
      const broken = brokenAddressRules({ stakeAuthority, withdrawAuthority, feePayer, voteAccount })
      if (voteAccount === undefined || broken.length > 0) throw validationFailed(broken)
      if (reference !== undefined) {
        const holder = await holderOf(store.db, caller.account, reference)
        if (holder !== undefined) throw referenceExists(reference, holder)
      }
      const validator = await askTheCluster(network, amount, voteAccount, signal)

      const now = clock.now()
      const id = newId(now)
      const named = {
        id,
        account: caller.account,
        network: network.config.name,
        amount_lamports: amount,
        stake_account: stakeAccountAddress(feePayer, id),
        stake_authority: stakeAuthority,
        withdraw_authority: withdrawAuthority,
        vote_account: voteAccount,
        fee_payer: feePayer,
        withdrawal_fee_payer: body.feePayer ?? withdrawAuthority,
        external_reference: reference ?? null,
        seen_slot: null,
        cancelled_at: null,
        created_at: now,
        idempotency_key: idempotent?.key ?? null,
      }
      const { protocol } = await lookAtStake(deps, network, named, signal)
      const stored = await commit(async (transaction) => {
        const row = await insertSolanaStake(transaction, { ...named, ...issueChallenge(named, challengeDomain(policy, host), now) })
        return answer(route, 201, stakeBody(row, protocol, [], validator))
      })
      log.info(
        {
          stakeId: id,
          account: caller.account,
          network: named.network,
          stakeAccount: named.stake_account,
          voteAccount,
          commission: validator?.commissionPercent,
        },
        'a Solana stake was created',
      )
      return stored
    }
    const answered = await idempotency.run(idempotent, (commit) =>
      orMadeBefore(
        () => make(commit),
        () => madeBefore(input, commit),
      ),
    )
    if (answered.replayed) metrics.replayed()
    else metrics.stakeCreated(body.network)
    return answered
  }
}

/** What the validator keeps and is. @throws ProblemError `validation-failed` with all rules that are broken */
async function askTheCluster(
  { chain }: SolanaNetwork,
  amount: bigint,
  voteAccount: string,
  signal: AbortSignal,
): Promise<SolanaStakeBody['validator']> {
  const [rent, minimumDelegation, vote] = await Promise.all([
    chain.rentExemption(stakeAccountSpace, signal),
    chain.minimumDelegation(signal),
    chain.voteAccount(voteAccount, signal),
  ])
  const broken = [...brokenAmountRules(amount, rent, minimumDelegation), ...brokenVoteRules(vote)]
  if (broken.length > 0) throw validationFailed(broken)
  if (vote.kind !== 'vote-account') return undefined
  const { node, commission, blockRevenueCommission, blsKey } = vote.account
  return {
    node,
    ...(commission === undefined ? {} : { commissionPercent: commission }),
    ...(blockRevenueCommission === undefined ? {} : { blockRevenueCommissionPercent: blockRevenueCommission }),
    ...(blsKey === undefined ? {} : { blsKey }),
  }
}

const unknownNetwork = (name: string): ProblemError =>
  validationFailed([
    {
      pointer: '/body/network',
      code: 'unknown-network',
      detail: `"${name}" is not a Solana network of this service: see GET /v1/networks`,
    },
  ])
