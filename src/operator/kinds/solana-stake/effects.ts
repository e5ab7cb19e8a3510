import { lockupInForce } from '../../../chains/solana/stake-account.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import { ALLOW_REMAKES_ANNOTATION } from '../../../resources/meta.ts'
import type { SolanaTransaction } from '../../../resources/solana-stake.ts'
import type { Perform } from '../../engine/step.ts'
import { type Halt, retry, stall, wait } from '../../engine/verdict.ts'
import type { Visit } from '../../engine/visit.ts'
import { LOOK_AGAIN_MS, pending } from '../../transactions/owner.ts'
import type { SolanaTransactionKind } from '../../transactions/solana/kind.ts'
import { solanaMirror } from '../../transactions/solana/mirror.ts'
import { liveAttempts } from '../../transactions/solana/rules.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { alteration, authorityChanged, isReached, lockText, lookAt, metaOf, protocolOf, stakeStateOf } from './chain.ts'
import { createSolanaStakeRules } from './chain-rules.ts'
import { createSolanaMigration } from './migration.ts'
import { isBegun, isLive, ownSteps, stepName, stepSpec } from './records.ts'
import { createSolanaRequests, type SolanaRequests, type SolanaStakeDeps } from './request.ts'
import { createSeenStakes, type SeenStakes } from './seen.ts'
import type { FollowPlan, SolanaStakeEffects, SolanaStakeRequest, StakeTerms } from './steps.ts'
import { createSolanaStepKind } from './transaction.ts'

/** The effects of a SolanaStake's saga, and what the log asks of its steps. */
export function createSolanaStakeEffects(deps: SolanaStakeDeps): {
  readonly effects: Perform<SolanaStakeEffects>
  readonly steps: SolanaTransactionKind
  /** What this process has seen of stakes: the mirror compares status with it. */
  readonly seen: SeenStakes
  readonly networkOn: SolanaRequests['networkOn']
  readonly keyNameOf: (signer: string) => string | undefined
  readonly takeIn: ReturnType<typeof createSolanaMigration>
} {
  const { log } = deps
  const requests = createSolanaRequests(deps)
  const { amountProblem } = createSolanaStakeRules(requests)
  const seenStakes = createSeenStakes()
  const { networkOf, networkOn, ownStake, partiesOf, partiesToBegin, serviceStake, verifiedTerms, ownTerms, assertAdmitted } = requests

  const mirrored = (record: RecordObject, shown: SolanaTransaction | undefined): SolanaTransaction | undefined =>
    solanaMirror({ record, wasSent: (hash) => log.wasSent(record, hash) }, shown)

  const ownOf = ({ request, kind }: FollowPlan): RecordObject | undefined => ownSteps(log, request.origin)[kind]

  /** Makes the record of a step, or takes it over; what asks for it was verified. */
  async function ensured(plan: FollowPlan, visit: Visit, signal: AbortSignal): Promise<RecordObject> {
    const { request, kind } = plan
    const network = networkOf(request.network)
    const { genesisHash } = ownSteps(log, request.origin).stake?.spec ?? {}
    if (genesisHash !== undefined && genesisHash !== network.config.genesisHash)
      throw stall(
        'WrongChain',
        `This stake is on the cluster with genesis ${genesisHash}, and network ${request.network} is another now. Nothing is signed. Give that cluster its name back in the operator's networks file.`,
      )
    const paying = kind === 'stake' ? { voteAccount: plan.terms.voteAccount } : undefined
    // Whoever signs it reads the keys.
    const parties = await partiesOf(request, paying, signal, { signing: [] })
    const terms = await ownTerms(plan, parties, visit, signal)
    deps.assertMayAct()
    const name = stepName(network.config.genesisHash, terms.stakeAccount, kind)
    return log.ensure(name, stepSpec(plan, terms, network), signal)
  }

  return {
    seen: seenStakes,
    networkOn,
    keyNameOf: (signer) => deps.signers.get(signer)?.spec.keyName,
    takeIn: createSolanaMigration(deps, requests),
    steps: createSolanaStepKind(deps, requests) as SolanaTransactionKind,
    effects: {
      async createStake(request, visit, signal) {
        networkOf(request.network)
        const parties = await partiesToBegin(request, request.voteAccount, signal)
        deps.assertMayAct()
        const body = await serviceStake(request, parties, visit, signal).catch(async (error: unknown) => {
          const isAmount = error instanceof StakingApiError && error.rules?.includes('amount-out-of-range') === true
          throw (isAmount ? await amountProblem(request, signal) : undefined) ?? error
        })
        const { stakeId, stakeAccount, stakeAuthority, withdrawAuthority, voteAccount } = body
        return { stakeId, stakeAccount, stakeAuthority, withdrawAuthority, voteAccount }
      },

      async verifyStake({ request, terms, tentative }, visit, signal) {
        networkOf(request.network)
        const parties = await partiesToBegin(request, terms.voteAccount, signal)
        const body = await serviceStake(request, parties, visit, signal)
        const own = verifiedTerms(request, body, parties)
        if (request.adoptStakeId !== undefined) await assertAdoptable(request, own, signal)
        // Of a service that lied before and now tells the truth, the truth is taken: nothing stands on the lie yet.
        if (!tentative) await ownTerms({ request, terms }, parties, visit, signal)
        // The service's own choice of a vote account is asked of the policy too.
        assertAdmitted(request, parties, { voteAccount: own.voteAccount })
        return own
      },

      async followTransaction(plan, visit, signal) {
        let record = ownOf(plan)
        if (plan.mayMake && (record === undefined || !isBegun(record))) record = await ensured(plan, visit, signal)
        if (record === undefined) throw wait('Suspended', 'Nothing was ever signed for it.', LOOK_AGAIN_MS).with({ transaction: undefined })
        const evidence = { transaction: mirrored(await log.whole(record, signal), plan.shown) }
        if (record.status?.outcome === undefined) throw pending(log.standing(record.metadata.name), 'The transaction').with(evidence)
        return evidence
      },

      async settleStake(plan, visit, signal) {
        const record = ownOf(plan)
        if (record !== undefined && isBegun(record)) {
          const transaction = mirrored(await log.whole(record, signal), plan.shown)
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
      },

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
          // It has expired for the service, or was made anew there: the chain tells what became of it, not the service.
          if (error.status !== 409 && error.status !== 422) throw error
        }
        return { reportedSignature: signature }
      },

      async observeStake({ request, terms, seen, awaited, madeAtSlot, since }, visit, signal) {
        const network = networkOn(ownSteps(log, request.origin).stake?.spec.genesisHash, request.network)
        if (visit.get('observed') !== awaited) {
          const look = await lookAt(network.chain, terms.stakeAccount, signal)
          visit.set('observed', awaited)
          visit.set('observed slot', look.slot)
          const protocol = protocolOf(look, madeAtSlot, seen)
          seenStakes.note(request.origin.uid, protocol)
          return protocol
        }
        // Looked at in this visit, and not there yet.
        const wrong = seen === undefined ? undefined : changedAuthority(seen, terms)
        if (wrong !== undefined) throw authorityChanged(terms, wrong)
        // A node that lags shows what was before.
        const isLater = (visit.get('observed slot') as bigint) > BigInt(since)
        if (isLater && awaited === 'Inactive' && (seen?.status === 'Active' || seen?.status === 'Activating')) {
          const name = stepName(network.config.genesisHash, terms.stakeAccount, 'deactivation')
          throw stall(
            'DelegationChanged',
            `The stake ${terms.stakeAccount} was deactivated (seen in slot ${since}) and is ${seen.status.toLowerCase()} in epoch ${seen.epoch}: somebody has delegated it again, to ${seen.voteAccount}. Find out who did; then kubectl annotate stx ${name} ${ALLOW_REMAKES_ANNOTATION}=1 has it deactivated again.`,
          )
        }
        const reason = awaited === 'Active' ? 'AwaitingActivation' : awaited === 'Inactive' ? 'AwaitingDeactivation' : 'AwaitingFinality'
        const { slotsInEpoch } = awaited === 'Withdrawn' ? { slotsInEpoch: 0n } : await network.chain.epochInfo('finalized', signal)
        const turn = {
          Active: `It warms up at the end of an epoch, which has ${slotsInEpoch} slots on this cluster.`,
          Inactive: `It cools down at the end of an epoch, which has ${slotsInEpoch} slots on this cluster.`,
          Withdrawn: 'It was withdrawn; a node that lags does not show that yet.',
        }
        throw wait(
          reason,
          `The stake is ${seen?.status.toLowerCase() ?? 'not seen'} in epoch ${seen?.epoch ?? '?'}: ${seen?.activeLamports ?? '0'} lamports are active, ${seen?.inactiveLamports ?? '0'} are not. ${turn[awaited]}`,
          deps.activatingMs,
        )
      },
    },
  }

  /** A stake that is taken over must be this resource's to withdraw. */
  async function assertAdoptable({ network, adoptStakeId }: SolanaStakeRequest, terms: StakeTerms, signal: AbortSignal): Promise<void> {
    const { state, clock } = await lookAt(networkOf(network).chain, terms.stakeAccount, signal)
    const altered = alteration(state, terms)
    if (altered !== undefined) throw authorityChanged(terms, altered)
    const meta = metaOf(state)
    if (meta === undefined || !lockupInForce(meta, clock)) return
    throw stall(
      'LockupInForce',
      `Stake ${adoptStakeId} is not adopted: its account ${terms.stakeAccount} is locked until ${lockText(meta)}, and only its custodian ${meta.lockup.custodian} can lift that. Nothing was signed.`,
    )
  }

  function mayStillLand(record: RecordObject): Halt {
    const { attempt } = liveAttempts(recordOf(record)).at(-1) ?? {}
    return wait(
      'AwaitingFinality',
      `The stake transaction ${attempt?.hash ?? ''} was signed before the stake was given up, and may still land: that is certain once every configured RPC node has a block beyond height ${attempt?.lastValidBlockHeight ?? '?'} as final. Nothing more of it is signed.`,
      LOOK_AGAIN_MS,
    )
  }

  /** Whether a stake that the log knows nothing of was made all the same: by another client, or before the log was lost. @throws Halt while it may be */
  async function wasMade({ request, terms: { stakeId } }: FollowPlan, signal: AbortSignal): Promise<boolean> {
    const network = networkOf(request.network)
    // By the staking API's word, and not by that of status. Nothing is signed by that, so that no policy is asked.
    const terms = await ownStake(request, stakeId, signal)
    const look = await lookAt(network.chain, terms.stakeAccount, signal)
    const altered = alteration(look.state, terms)
    if (altered !== undefined) throw authorityChanged(terms, altered)
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
}

const changedAuthority = (
  { stakeAuthority, withdrawAuthority }: { readonly stakeAuthority?: string | undefined; readonly withdrawAuthority?: string | undefined },
  terms: StakeTerms,
): string | undefined =>
  stakeAuthority !== undefined && stakeAuthority !== terms.stakeAuthority
    ? `its stake authority is ${stakeAuthority}, not ${terms.stakeAuthority}`
    : withdrawAuthority !== undefined && withdrawAuthority !== terms.withdrawAuthority
      ? `its withdraw authority is ${withdrawAuthority}, not ${terms.withdrawAuthority}`
      : undefined
