import { StakingApiError } from '../../../contract/client-error.ts'
import type { SolanaStakeBody, SolanaTransactionBody } from '../../../contract/schemas/solana.ts'
import { lamports } from '../../../lib/amounts.ts'
import { type Halt, stall, wait } from '../../engine/verdict.ts'
import type { SolanaFeeCap, SolanaNetwork } from '../../ports.ts'
import type { Heights } from '../../transactions/solana/kind.ts'
import { createApproval } from './approval.ts'
import { isException } from './chain-rules.ts'
import { destinationOf, feePayerOf, frameProblem, messageOf } from './message.ts'
import type { Parties } from './parties.ts'
import type { SolanaRequests, SolanaStakeDeps } from './request.ts'
import { type SolanaPlan, type StakeTerms, transactionKey } from './steps.ts'

export interface Wanted {
  readonly plan: SolanaPlan
  readonly terms: StakeTerms
  readonly parties: Parties
  readonly network: SolanaNetwork
  /** The last attempt, which is proven dead. */
  readonly previous: { readonly message: string; readonly signature: string; readonly failed: boolean } | undefined
  readonly heights: Heights
}

/** Gets a transaction to sign from the staking API: the one that it has, refreshed where it has expired, or a new one. */
export function createServiceTransactions(deps: SolanaStakeDeps, requests: SolanaRequests) {
  const { feeCapOf, refuse } = requests
  const approve = createApproval(deps, requests)

  /**
   * A transaction that can still land. What a service says of its states is taken only in the safe direction: a stake that it says was made is not
   * made again. @throws Halt, StakingApiError, SolanaError
   */
  async function obtain(wanted: Wanted, signal: AbortSignal): Promise<SolanaTransactionBody> {
    const { plan, terms, network, previous, heights } = wanted
    const { kind } = plan
    let stake = await network.api.solanaStake(terms.stakeId, signal)
    let newest = unfinished(stake, kind)
    if (newest !== undefined && newest.messageBase64 === previous?.message && previous.failed) {
      // It landed and failed, which the service doesn't know yet: told so, it makes another.
      await network.api.submitTransaction(terms.stakeId, newest.txId, previous.signature, signal)
      stake = await network.api.solanaStake(terms.stakeId, signal)
      newest = unfinished(stake, kind)
    }
    if (kind === 'stake') {
      refuseMadeBefore(stake, network)
      refuseCancelled(stake)
    }
    const now = await network.chain.blockHeight('confirmed', signal)
    const height = now > heights.highest ? now : heights.highest
    const made =
      newest === undefined || isAnothers(newest, wanted) ? await create(wanted, stake, signal) : await alive(newest, wanted, height, signal)
    const problem = frameProblem(made, height)
    if (problem !== undefined || made.kind !== kind)
      refuse(
        'VerificationFailed',
        `The ${kind} transaction that the staking API has made is not one: ${problem ?? 'it is of another kind'}. No transaction was signed.`,
      )
    if (BigInt(made.lastValidBlockHeight) < height)
      throw wait(
        'ServiceUnavailable',
        `The ${kind} transaction that the staking API has made is valid up to block height ${made.lastValidBlockHeight}, and the cluster is at ${height}: the API's own node stands still, or lags. No transaction was signed; it is asked again.`,
        network.config.pollIntervalMs,
      )
    return made
  }

  /** What is offered above it would not be signed. */
  const capOf = ({ plan, parties }: Wanted): SolanaFeeCap => ({ maxPriorityFeeLamports: lamports(feeCapOf(plan.request, parties)) })

  async function alive(
    transaction: SolanaTransactionBody,
    wanted: Wanted,
    height: bigint,
    signal: AbortSignal,
  ): Promise<SolanaTransactionBody> {
    const { plan, terms, network, previous, heights } = wanted
    const { lastValidBlockHeight, status, txId, messageBase64 } = transaction
    // Who made it anew must be certain that it is dead: every node is beyond it, whatever the service says.
    const isOver = messageBase64 === previous?.message || isPast(transaction, heights)
    if (!isOver && status !== 'expired' && height <= BigInt(lastValidBlockHeight)) return transaction
    const notYet = wait(
      'AwaitingFinality',
      `The ${plan.kind} transaction has expired; it is made anew once that is final on every configured RPC node, beyond block height ${lastValidBlockHeight}.`,
      network.config.pollIntervalMs,
    )
    if (!isOver) throw notYet
    return network.api.refreshTransaction(terms.stakeId, txId, capOf(wanted), signal).catch((error: unknown) => {
      throw isRefusedForNow(error) ? notYet : error
    })
  }

  async function create(wanted: Wanted, stake: SolanaStakeBody, signal: AbortSignal): Promise<SolanaTransactionBody> {
    const { plan, terms, parties, network } = wanted
    const { api } = network
    const number = stake.transactions.filter(({ kind }) => kind === plan.kind).length + 1
    const idempotencyKey = transactionKey(plan.request.origin, plan.kind, number)
    const { destination, withdrawer, feePayer, stakeAuthority } = parties
    try {
      switch (plan.kind) {
        case 'stake':
          return await approve(wanted, stake.challenge, { idempotencyKey, ...capOf(wanted) }, signal)
        case 'deactivation':
          return await api.createDeactivationTransaction(terms.stakeId, { idempotencyKey, ...capOf(wanted) }, signal)
        case 'withdrawal':
          return await api.createWithdrawalTransaction(
            terms.stakeId,
            {
              idempotencyKey,
              destination,
              ...(isException(withdrawer, destination) ? { destinationException: true } : {}),
              ...(feePayer === stakeAuthority ? {} : { feePayer }),
              ...capOf(wanted),
            },
            signal,
          )
      }
    } catch (error) {
      if (isRefusedForNow(error)) throw readAgain(network)
      throw error
    }
  }

  return { obtain }
}

/** A stake that was cancelled is paid by nobody, though the resource is there again, as after a restore. @throws Halt */
export function refuseCancelled({ stakeId, cancelledAt }: Pick<SolanaStakeBody, 'stakeId' | 'cancelledAt'>): void {
  if (cancelledAt === undefined) return
  throw stall(
    'RequestCancelled',
    `Stake ${stakeId} was cancelled at the staking API (${cancelledAt}), as it is when its resource is deleted before it was paid. Nothing is paid for it. To stake, delete this resource and create it anew: then another stake is made.`,
  )
}

/** The transaction of this kind that is not over for the service; `expired` ones wait to be refreshed. */
const unfinished = ({ transactions }: SolanaStakeBody, kind: string): SolanaTransactionBody | undefined =>
  transactions.findLast((one) => one.kind === kind && one.status !== 'failed' && one.status !== 'confirmed')

/**
 * A withdrawal that is over, and that would come out the same made anew: to elsewhere, by another client of an adopted stake; or paid by the key that isn't
 * mounted any more.
 */
function isAnothers(transaction: SolanaTransactionBody, { plan, parties, terms, heights }: Wanted): boolean {
  if (plan.kind !== 'withdrawal' || !isPast(transaction, heights)) return false
  const message = messageOf({ message: transaction.messageBase64 }) ?? new Uint8Array()
  const isPayable = parties.feePayer === parties.stakeAuthority || feePayerOf(plan.kind, terms, message) === parties.feePayer
  return destinationOf(message) !== parties.destination || !isPayable
}

function refuseMadeBefore({ protocol, transactions }: SolanaStakeBody, network: SolanaNetwork): void {
  if (protocol.status === 'WITHDRAWN')
    throw stall(
      'AlreadyWithdrawn',
      'The staking API says that this stake was made and withdrawn before. Nothing was paid again. To stake once more, create another resource under another name.',
    )
  if (protocol.status !== 'CREATED' || transactions.some(({ kind, status }) => kind === 'stake' && status === 'confirmed'))
    throw wait(
      'ChainUnavailable',
      'The staking API sees the stake on the chain, and the operator’s nodes do not yet: they are asked again.',
      network.config.pollIntervalMs,
    )
}

/** Every configured node has a final block beyond its last valid height. */
const isPast = ({ lastValidBlockHeight }: SolanaTransactionBody, { everywhere }: Heights): boolean =>
  everywhere !== undefined && everywhere > BigInt(lastValidBlockHeight)

/** Something changed between reading and asking: another look shows what. */
const isRefusedForNow = (error: unknown): boolean =>
  error instanceof StakingApiError && (error.code === 'invalid-state' || error.code === 'idempotency-key-reused')

const readAgain = ({ config }: SolanaNetwork): Halt =>
  wait(
    'ServiceUnavailable',
    'The staking API has another transaction of this kind, or sees the stake elsewhere: it is read again.',
    config.pollIntervalMs,
  )
