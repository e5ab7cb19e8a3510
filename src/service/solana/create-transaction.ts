import { isAddress } from '../../chains/solana/addresses.ts'
import { verifyChallengeSignature } from '../../chains/solana/challenge.ts'
import { lockText, lockupInForce } from '../../chains/solana/stake-account.ts'
import { routes } from '../../contract/routes.ts'
import { ProblemError, validationFailed } from '../errors.ts'
import { answer, type Handled, type Input } from '../http/contract-route.ts'
import type { Commit } from '../idempotency.ts'
import { newId } from '../ids.ts'
import { findSolanaStake, lockSolanaStake, type SolanaStakeRow, setChallenge } from '../store/solana-stakes.ts'
import { insertTransaction, refusingSecond, type SolanaTransactionRow, transactionsOf } from '../store/solana-transactions.ts'
import { transactionBody } from './bodies.ts'
import { refuseCancelled, refuseSecondStakeTransaction } from './challenge.ts'
import type { SolanaDeps } from './deps.ts'
import { isLive, upToDate } from './landing.ts'
import { networkOf, type SolanaNetwork } from './networks.ts'
import { type Action, prepare } from './prepare.ts'
import { lookAtStake, type Protocol, type StakeLook } from './protocol.ts'
import { brokenDestinationRules, brokenFeePayerRules, brokenVoteRules } from './rules.ts'

const stakeRoute = routes.createStakeTransaction
const deactivationRoute = routes.createDeactivationTransaction
const withdrawalRoute = routes.createWithdrawalTransaction
type StakeRoute = typeof stakeRoute
type DeactivationRoute = typeof deactivationRoute
type WithdrawalRoute = typeof withdrawalRoute

/** In which states of the stake each transaction has a meaning. */
const allowedIn: Readonly<Record<Action['kind'], readonly Protocol['status'][]>> = {
  stake: ['CREATED'],
  deactivation: ['ACTIVATING', 'ACTIVE'],
  withdrawal: ['INACTIVE'],
}

/** @throws ProblemError `invalid-state` */
export function refuseInState(kind: Action['kind'], { status }: Protocol): void {
  if (allowedIn[kind].includes(status)) return
  throw new ProblemError('invalid-state', `the stake is ${status}: a ${kind} transaction needs it to be ${allowedIn[kind].join(' or ')}`)
}

/**
 * Somebody who holds the withdraw authority may have changed what the account says. A transaction that its present authorities don't allow is not handed out.
 * @throws ProblemError `invalid-state`
 */
export function refuseOthers(kind: Action['kind'], stake: SolanaStakeRow, { account, clock }: StakeLook): void {
  if (kind === 'stake' || account === undefined || (account.kind !== 'stake' && account.kind !== 'initialized')) return
  const { meta } = account
  const [what, expected, found] =
    kind === 'deactivation'
      ? ['stake authority', stake.stake_authority, meta.staker]
      : ['withdraw authority', stake.withdraw_authority, meta.withdrawer]
  if (found !== expected) {
    throw new ProblemError(
      'invalid-state',
      `the stake account's ${what} is ${found} and no longer ${expected}: who holds that key has changed it`,
    )
  }
  if (kind === 'withdrawal' && lockupInForce(meta, clock)) {
    const { custodian } = meta.lockup
    throw new ProblemError(
      'invalid-state',
      `the stake account is locked until ${lockText(meta, clock)}: only its custodian ${custodian} could lift that`,
    )
  }
}

interface Made {
  readonly stake: SolanaStakeRow
  readonly network: SolanaNetwork
  readonly action: Action
  /** The most that the client lets the transaction offer on top of its base fee, in lamports. */
  readonly feeCap: bigint | undefined
  readonly signal: AbortSignal
  /** Checked again with the stake locked. */
  readonly stillAllowed: (current: SolanaStakeRow, transactions: readonly SolanaTransactionRow[]) => void
  readonly route: StakeRoute | DeactivationRoute | WithdrawalRoute
}

/** The three operations that make a transaction to be signed. */
export function createTransactions(deps: SolanaDeps) {
  const { store, idempotency, networks, clock, log, metrics, policy } = deps

  async function find(account: string, stakeId: string) {
    const stake = await findSolanaStake(store.db, account, stakeId)
    if (stake === undefined) throw new ProblemError('not-found', `there is no stake ${stakeId}`)
    return { stake, network: networkOf(networks, stake.network) }
  }

  /** The stake's transactions, after the cluster was asked for those that may be over. */
  const transactionsNow = async (network: SolanaNetwork, stakeId: string, signal: AbortSignal): Promise<SolanaTransactionRow[]> => {
    const rows = await transactionsOf(store.db, stakeId)
    return Promise.all(rows.map((row) => upToDate(store, network.chain, row, signal)))
  }

  async function make(commit: Commit, { stake, network, action, feeCap, signal, stillAllowed, route }: Made) {
    const prepared = await prepare(network, policy, stake, action, { attempt: 1, maxPriorityFeeLamports: feeCap }, signal)
    const now = clock.now()
    const stored = commit(async (transaction) => {
      const current = await lockSolanaStake(transaction, stake.id)
      refuseCancelled(current)
      stillAllowed(current, await transactionsOf(transaction, stake.id))
      const row = await insertTransaction(transaction, {
        ...prepared,
        id: newId(now),
        stake_id: stake.id,
        kind: action.kind,
        destination: action.kind === 'withdrawal' ? action.destination : null,
        created_at: now,
      })
      // A challenge is good for one transaction.
      if (action.kind === 'stake') await setChallenge(transaction, stake.id, noChallenge)
      return answer(route, 201, transactionBody(row, stake.network))
    })
    const made = await refusingSecond(stored)
    log.info({ stakeId: stake.id, network: stake.network, kind: action.kind }, 'a Solana transaction was made')
    return made
  }

  async function counted<T extends { readonly replayed: boolean }>(answered: Promise<T>): Promise<T> {
    const result = await answered
    if (result.replayed) metrics.replayed()
    return result
  }

  const stake = ({ caller, params, body, idempotent, signal }: Input<StakeRoute>): Promise<Handled<StakeRoute>> =>
    counted(
      idempotency.run(idempotent, async (commit) => {
        const { stake, network } = await find(caller.account, params.stakeId)
        refuseCancelled(stake)
        refuseSecondStakeTransaction(await transactionsNow(network, stake.id, signal))
        const mayUse = (current: SolanaStakeRow) => refuseChallenge(current, body.challengeId, clock.now())
        mayUse(stake)
        if (
          stake.challenge_message === null ||
          !verifyChallengeSignature(stake.withdraw_authority, stake.challenge_message, body.signature)
        )
          throw wrongSignature("the signature is not the withdraw authority's of the challenge as an off-chain message")
        const [{ protocol }, vote] = await Promise.all([
          lookAtStake(deps, network, stake, signal, { past: true }),
          network.chain.voteAccount(stake.vote_account, signal),
        ])
        refuseInState('stake', protocol)
        const broken = brokenVoteRules(vote)
        if (broken.length > 0) throw validationFailed(broken)
        return make(commit, {
          stake,
          network,
          action: { kind: 'stake' },
          feeCap: body.maxPriorityFeeLamports,
          signal,
          route: stakeRoute,
          stillAllowed: (current, transactions) => {
            refuseSecondStakeTransaction([...transactions])
            mayUse(current)
          },
        })
      }),
    )

  /** Deactivation and withdrawal, which the state of the stake alone permits. */
  async function change(commit: Commit, given: Pick<Made, 'stake' | 'network' | 'action' | 'feeCap' | 'signal' | 'route'>) {
    const { stake, network, action, signal } = given
    const refuseLive = (transactions: readonly SolanaTransactionRow[]) => {
      const live = transactions.find((row) => row.kind === action.kind && isLive(row))
      if (live !== undefined)
        throw new ProblemError('invalid-state', `the stake has the ${action.kind} transaction ${live.id} (${live.status})`)
    }
    refuseLive(await transactionsNow(network, stake.id, signal))
    const look = await lookAtStake(deps, network, stake, signal)
    refuseInState(action.kind, look.protocol)
    refuseOthers(action.kind, stake, look)
    return make(commit, { ...given, stillAllowed: (_, transactions) => refuseLive(transactions) })
  }

  const deactivation = ({ caller, params, body, idempotent, signal }: Input<DeactivationRoute>): Promise<Handled<DeactivationRoute>> =>
    counted(
      idempotency.run(idempotent, async (commit) => {
        const found = await find(caller.account, params.stakeId)
        const feeCap = body?.maxPriorityFeeLamports
        return change(commit, { ...found, action: { kind: 'deactivation' }, feeCap, signal, route: deactivationRoute })
      }),
    )

  const withdrawal = ({ caller, params, body, idempotent, signal }: Input<WithdrawalRoute>): Promise<Handled<WithdrawalRoute>> =>
    counted(
      idempotency.run(idempotent, async (commit) => {
        const found = await find(caller.account, params.stakeId)
        const destination = body?.destination ?? found.stake.withdraw_authority
        const feePayer = body?.feePayer ?? found.stake.withdrawal_fee_payer
        const broken = [
          ...brokenFeePayerRules(feePayer),
          ...brokenDestinationRules({
            destination,
            stakeAccount: found.stake.stake_account,
            account: isAddress(destination) ? await found.network.chain.account(destination, 'confirmed', signal) : undefined,
            exception: body?.destinationException === true,
          }),
        ]
        if (broken.length > 0) throw validationFailed(broken)
        const feeCap = body?.maxPriorityFeeLamports
        return change(commit, { ...found, action: { kind: 'withdrawal', destination, feePayer }, feeCap, signal, route: withdrawalRoute })
      }),
    )

  return { stake, deactivation, withdrawal }
}

const noChallenge = { challenge_id: null, challenge_message: null, challenge_issued_at: null, challenge_expires_at: null }

/** Void ones (a newer one was made) and unknown ones are as good as expired: a new one is needed. @throws ProblemError `challenge-expired` */
function refuseChallenge(stake: SolanaStakeRow, challengeId: string, now: Date): void {
  if (stake.challenge_id !== challengeId || stake.challenge_expires_at === null)
    throw new ProblemError('challenge-expired', `${challengeId} is not the stake's present challenge: get a new one`)
  if (stake.challenge_expires_at <= now) throw new ProblemError('challenge-expired', 'the challenge has expired: get a new one')
}

export const wrongSignature = (detail: string): ProblemError =>
  validationFailed([{ pointer: '/body/signature', code: 'wrong-signature', detail }])
