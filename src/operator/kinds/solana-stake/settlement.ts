import type { Perform } from '../../engine/step.ts'
import { type Halt, wait } from '../../engine/verdict.ts'
import type { Visit } from '../../engine/visit.ts'
import { LOOK_AGAIN_MS, pending } from '../../transactions/owner.ts'
import { liveAttempts } from '../../transactions/solana/rules.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { assertUnaltered } from './authorization-asked.ts'
import type { AuthorizationDeps } from './authorization-transaction.ts'
import { isReached, lookAt, stakeStateOf } from './chain.ts'
import { isBegun, isLive, mirrored, ownSteps } from './records.ts'
import type { SolanaRequests } from './request.ts'
import type { SeenStakes } from './seen.ts'
import type { FollowPlan, SolanaStakeEffects } from './steps.ts'

/** Finds out whether a stake that isn't wanted any more was made, or may still be, before its resource goes. */
export function createSettlement(
  { log, successorsOf }: Pick<AuthorizationDeps, 'log' | 'successorsOf'>,
  { networkOf, ownStake }: Pick<SolanaRequests, 'networkOf' | 'ownStake'>,
  seenStakes: SeenStakes,
  ensured: (plan: FollowPlan, visit: Visit, signal: AbortSignal) => Promise<RecordObject>,
): Perform<SolanaStakeEffects>['settleStake'] {
  /** Whether a stake that the log knows nothing of was made all the same: by another client, or before the log was lost. @throws Halt while it may be */
  async function wasMade({ request, terms: { stakeId } }: FollowPlan, signal: AbortSignal): Promise<boolean> {
    const network = networkOf(request.network)
    // By the staking API's word, and not by that of status. Nothing is signed by that, so that no policy is asked.
    const terms = await ownStake(request, stakeId, signal)
    const look = await lookAt(network.chain, terms.stakeAccount, signal)
    assertUnaltered(look.state, terms, successorsOf(`${request.origin.namespace}/${request.origin.name}`))
    if (isReached('stake', look, 0)) return true
    const stake = await network.api.solanaStake(terms.stakeId, signal)
    const made = stake.transactions.filter(({ kind, status }) => kind === 'stake' && status !== 'failed')
    const last = Math.max(0, ...made.map(({ lastValidBlockHeight }) => lastValidBlockHeight))
    const looks = await network.chain.looks(terms.stakeAccount, [], signal)
    if (looks.some((one) => one === undefined || one.finalizedBlockHeight <= BigInt(last)))
      throw wait(
        'AwaitingFinality',
        `A stake transaction of this resource may have been sent; whether it landed is certain once block height ${last + 1} is final on every configured RPC node.`,
        network.config.pollIntervalMs,
      )
    // Each node's own account, not older than its height: what landed up to there is seen in it.
    if (looks.some((one) => one !== undefined && isReached('stake', { state: stakeStateOf(one.account), slot: one.slot }, 0))) return true
    // It was made, and is gone: withdrawn before the log was lost.
    if (stake.protocol.status === 'WITHDRAWN' || made.some(({ status }) => status === 'confirmed')) return true
    if (stake.protocol.status !== 'CREATED')
      throw wait(
        'ChainUnavailable',
        'The staking API sees this stake on the chain, and the operator’s nodes do not: they are asked again.',
        network.config.pollIntervalMs,
      )
    return false
  }

  return async (plan, visit, signal) => {
    const record = ownSteps(log, plan.request.origin)[plan.kind]
    if (record !== undefined && isBegun(record)) {
      const transaction = mirrored(log, record, plan.shown)
      if (isLive(record)) throw mayStillLand(record).with({ transaction, nothing: false })
      return { transaction, nothing: record.status?.outcome === undefined }
    }
    if (!(await wasMade(plan, signal))) {
      seenStakes.noteNothing(plan.request.origin.uid)
      return { transaction: undefined, nothing: true }
    }
    // It was made by a transaction that the log doesn't have, as that of an adopted stake is: its record finds out, and signs nothing.
    const { metadata } = await ensured(plan, visit, signal)
    throw pending(log.standing(metadata.name), 'The transaction').with({ transaction: undefined, nothing: false })
  }
}

function mayStillLand(record: RecordObject): Halt {
  const { attempt } = liveAttempts(recordOf(record)).at(-1) ?? {}
  return wait(
    'AwaitingFinality',
    `The stake transaction ${attempt?.hash ?? ''} was signed before the stake was given up, and may still land: that is certain once every configured RPC node has a block beyond height ${attempt?.lastValidBlockHeight ?? '?'} as final. Nothing more of it is signed.`,
    LOOK_AGAIN_MS,
  )
}
