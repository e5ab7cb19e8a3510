import { SolanaError } from '../../../chains/solana/chain.ts'
import { lockupInForce } from '../../../chains/solana/stake-account.ts'
import { describeFailure } from '../../../chains/solana/transaction-error.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import type { SolanaTransactionBody } from '../../../contract/schemas/solana.ts'
import { timestamp } from '../../../resources/conditions.ts'
import type { SolanaTransaction } from '../../../resources/solana-stake.ts'
import type { Perform } from '../../engine/step.ts'
import { Halt, retry, stall, wait } from '../../engine/verdict.ts'
import type { Visit } from '../../engine/visit.ts'
import { KeyError, type SolanaNetwork } from '../../ports.ts'
import { alteration, isReached, lookAt, metaOf, protocolOf, type StakeLook } from './chain.ts'
import { createSolanaStakeRules } from './chain-rules.ts'
import { createSolanaRequests, type SolanaStakeDeps } from './request.ts'
import { createServiceTransactions } from './service-transaction.ts'
import {
  type ActionKind,
  earlierOf,
  type InFlightSolana,
  NOT_CLOSED,
  type SolanaOutcome,
  type SolanaPlan,
  type SolanaStakeEffects,
  type StakeTerms,
} from './steps.ts'
import { createSolanaTransactions, feePayerOf, MAX_BLOCKS_AHEAD, messageOf } from './transaction.ts'

/** Attempts that landed and failed, after which a person should look: each has cost a fee, though its simulation succeeded. */
const MAX_FAILURES = 5
/** The transaction that this very visit has sent: it need not be sent twice at once. */
const SENT = 'sent'
/** A blockhash lives 150 blocks; with two slots of three skipped, it is at most so many slots old. */
const BLOCKHASH_SLOTS = 450n

/** The effects of a SolanaStake's saga: everything that it does to the world. */
export function createSolanaStakeEffects(deps: SolanaStakeDeps): Perform<SolanaStakeEffects> {
  const { clock } = deps
  const requests = createSolanaRequests(deps)
  const transactions = createSolanaTransactions(deps, requests)
  const service = createServiceTransactions(deps, requests)
  const { assertCanReceive, assertVotes, amountProblem } = createSolanaStakeRules(requests)
  const { networkOf, partiesFor, serviceStake, verifiedTerms, ownTerms, assertUnclaimed, refuse } = requests
  const { verifiedNow, simulate, sign, assertFunds, landingOf, isProven, signedAgain, forged } = transactions

  return {
    async createStake(request, visit, signal) {
      networkOf(request.network)
      const parties = await partiesFor(request, 'stake', request.voteAccount, signal)
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
      const parties = await partiesFor(request, 'stake', terms.voteAccount, signal)
      const body = await serviceStake(request, parties, visit, signal)
      const own = verifiedTerms(request, body, parties)
      assertUnclaimed(request, body)
      // Of a service that lied before and now tells the truth, the truth is taken: nothing stands on the lie yet.
      if (!tentative) await ownTerms({ request, terms }, parties, visit, signal)
      // The service's own choice of a vote account is asked of the policy too.
      await partiesFor(request, 'stake', own.voteAccount, signal)
      return own
    },

    // It only looks. Neither an admission nor a key is needed for that: a resource that was refused before anything was signed must be able to go.
    async findStake({ request, stakeId, stakeAccount, tentative }, _visit, signal) {
      const network = networkOf(request.network)
      const stake = await network.api.solanaStake(stakeId, signal)
      const isOwn = requests.isMadeFor(request, stake)
      // Of another's stake, or one that was to be taken over, nothing is this resource's unless it was verified.
      if (tentative && (!isOwn || request.adoptStakeId !== undefined)) return undefined
      if (!isOwn)
        refuse(
          'VerificationFailed',
          `status.stakeId is ${stakeId}, which the staking API has for another resource: whether anything was staked for this one cannot be told. If somebody changed status, put it back as it was.`,
        )
      const accounts = [...new Set([...(stakeAccount === undefined ? [] : [stakeAccount]), ...requests.accountsOf(request, stake)])]
      const look = async () => {
        const looks = await Promise.all(accounts.map((account) => lookAt(network.chain, account, signal)))
        return looks.find((one) => isReached('stake', one, 0))
      }
      const there = await look()
      if (there !== undefined) return found({}, there)
      const made = stake.transactions.filter(({ kind, status }) => kind === 'stake' && status !== 'failed')
      const [final, confirmed] = await Promise.all([
        network.chain.blockHeight('finalized', signal),
        network.chain.blockHeight('confirmed', signal),
      ])
      // One that claims to live longer than any can was never signed.
      const ends = made.map((one) => one.lastValidBlockHeight).filter((last) => BigInt(last) <= confirmed + MAX_BLOCKS_AHEAD)
      const last = Math.max(0, ...ends)
      if (final <= BigInt(last))
        throw wait(
          'AwaitingFinality',
          `A stake transaction of this resource may have been sent; whether it landed is certain once block height ${last + 1} is final.`,
          network.config.pollIntervalMs,
        )
      // Read again, after the height was: what landed up to that height is seen here.
      const since = await look()
      if (since !== undefined) return found({}, since)
      const landed = made.find(({ status }) => status === 'confirmed')
      // It was made, and is gone: withdrawn before its status was lost.
      if (stake.protocol.status === 'WITHDRAWN' || landed !== undefined) return found({}, { slot: final })
      if (stake.protocol.status !== 'CREATED')
        throw wait(
          'ChainUnavailable',
          'The staking API sees this stake on the chain, and the operator’s nodes do not: they are asked again.',
          network.config.pollIntervalMs,
        )
      return undefined
    },

    async prepareTransaction(plan, visit, signal) {
      const { network, terms, parties, look } = await lookFor(plan, visit, signal)
      if (isReached(plan.kind, look, plan.madeAtSlot)) return found(plan, look)
      assertPossible(plan, terms, look, network)
      if (plan.kind !== 'deactivation') await assertCanReceive(plan, network, parties, terms, signal)
      const failures = earlierOf(plan.previous).filter(({ outcome }) => outcome === 'Failed').length
      if (failures >= MAX_FAILURES)
        throw stall(
          'TransactionReverted',
          `The ${plan.kind} transaction has landed ${failures} times without doing its work, the last with ${plan.previous?.failure ?? 'an unknown error'}: each has cost a fee. Find out why, then remove status.transactions.${plan.kind}: it is tried again.`,
        )
      // Before a transaction is made, whose life is short.
      if (plan.kind === 'stake') await assertFunds(network, plan, parties.stakeAuthority, 5_000n, signal)

      const made = await service.obtain({ plan, terms, parties, network }, signal)
      const message = messageOf({ message: made.messageBase64 })
      if (message === undefined) throw forged(plan.kind)
      await verifiedNow(
        plan,
        terms,
        parties,
        network,
        message,
        { blockhash: made.recentBlockhash, source: 'that the staking API has made' },
        signal,
      )
      if (plan.kind === 'stake') await assertVotes(network, terms.voteAccount, signal)
      const fee = await network.chain.feeFor(message, signal)
      if (fee === undefined) throw outOfStep(network)
      await assertFunds(network, plan, feePayerOf(plan, terms, message), fee, signal)
      await simulate(network, plan.kind, terms, message, signal).catch(async (error: unknown) => {
        const isTooLittle = error instanceof SolanaError && error.code === 'insufficient-delegation'
        throw (isTooLittle ? await amountProblem(plan.request, signal) : undefined) ?? sayWhatItMeans(error, plan, network)
      })
      // Asked once more: the admission may have been taken back while the service was waited for.
      const { signature } = await sign(await partiesFor(plan.request, plan.kind, terms.voteAccount, signal), message, signal)
      return recordOf(plan, made, signature, look)
    },

    async broadcastTransaction(inFlight, visit, signal) {
      const { kind, transaction, request } = inFlight
      visit.set(SENT, transaction.signature)
      const network = networkOf(request.network)
      // It was sent before, and how that went was never written down. Also where it failed: Confirm says so.
      const { landing } = await landingOf(network, transaction, signal)
      if (landing.kind === 'landed') return { is: 'sent' }
      if (landing.kind === 'expired' || landing.kind === 'unknown') return expiredOf(inFlight, landing.kind, network)
      const parties = await partiesFor(request, kind, inFlight.terms.voteAccount, signal)
      const terms = await ownTerms(inFlight, parties, visit, signal)
      const { raw } = await signedAgain(inFlight, terms, parties, network, signal)
      deps.assertMayAct()
      try {
        await network.chain.sendTransaction(raw, { skipPreflight: false }, signal)
      } catch (error) {
        if (!(error instanceof SolanaError) || error.failure === undefined) throw error
        // The nodes run it before they take it. Ours may be in a block by now: then it is refused because it has done its work.
        const { landing: now } = await landingOf(network, transaction, signal)
        if (now.kind === 'landed') return { is: 'sent' }
        throw sayWhatItMeans(error, inFlight, network)
      }
      return { is: 'sent' }
    },

    async reportTransaction({ network, stakeId, txId, signature, isFinal }, _visit, signal) {
      const { api, config } = networkOf(network)
      try {
        await api.submitTransaction(stakeId, txId, signature, signal)
      } catch (error) {
        if (!(error instanceof StakingApiError)) throw error
        if (error.code === 'transaction-not-visible')
          throw isFinal
            ? retry('ServiceUnavailable', `The staking API does not see transaction ${signature} yet, which is final: it is told again.`)
            : wait(
                'AwaitingFinality',
                `Transaction ${signature} was sent; the cluster does not show it yet.`,
                error.retryAfterMs ?? config.pollIntervalMs,
              )
        // It has expired for the service, or was made anew there: the chain tells what became of it, not the service.
        if (error.status !== 409 && error.status !== 422) throw error
        if (!isFinal)
          throw wait(
            'AwaitingFinality',
            `The staking API does not take the signature ${signature}: for it, the transaction has expired or was made anew.`,
            config.pollIntervalMs,
          )
      }
      return { reportedSignature: signature }
    },

    async confirmTransaction(inFlight, visit, signal): Promise<SolanaOutcome> {
      const { kind, transaction, request, madeAtSlot } = inFlight
      const network = networkOf(request.network)
      const { landing, signature } = await landingOf(network, transaction, signal)
      const look = await lookAt(network.chain, inFlight.terms.stakeAccount, signal)
      const isOurs = await isOwn(inFlight, signature, visit, signal)
      if (isReached(kind, look, madeAtSlot)) {
        if (kind === 'withdrawal') requests.forget(request)
        return {
          is: 'confirmed',
          ...(landing.kind === 'landed' && signature !== undefined ? { landedSignature: signature } : {}),
          slot: Number(landing.kind === 'landed' && landing.final ? landing.status.slot : look.slot),
        }
      }
      if (landing.kind === 'landed') {
        if (!landing.final)
          throw wait(
            'AwaitingFinality',
            `Transaction ${signature} is in slot ${landing.status.slot}; waiting until that is final.`,
            network.config.pollIntervalMs,
          )
        const { slot, failure } = landing.status
        const landed = { landedSignature: signature ?? '', slot: Number(slot) }
        if (!isOurs) throw forged(kind)
        if (failure !== undefined) return { is: 'failed', ...landed, failure: describeFailure(failure).slice(0, 128) }
        // All that it was made for went where it should; lamports that came meanwhile kept the account open, and are withdrawn by another.
        if (look.slot >= slot)
          return kind === 'withdrawal' ? { is: 'failed', ...landed, failure: NOT_CLOSED } : { is: 'confirmed', ...landed }
        throw wait(
          'AwaitingFinality',
          `Transaction ${signature} is final; a node that lags does not show what it did yet.`,
          network.config.pollIntervalMs,
        )
      }
      if (landing.kind !== 'may-land') return expiredOf(inFlight, landing.kind, network)
      if (inFlight.resend && visit.get(SENT) !== transaction.signature) await sendAgain(inFlight, network, visit, signal)
      throw wait(
        'AwaitingFinality',
        `Transaction ${transaction.signature ?? ''} was sent; waiting until it is in a final block. It can land up to block height ${transaction.lastValidBlockHeight ?? '?'}.`,
        network.config.pollIntervalMs,
      )
    },

    async observeStake({ request, terms, seen, awaited, madeAtSlot, since }, visit, signal) {
      if (visit.get('observed') !== awaited) {
        const look = await lookAt(networkOf(request.network).chain, terms.stakeAccount, signal)
        visit.set('observed', awaited)
        visit.set('observed slot', look.slot)
        return protocolOf(look, madeAtSlot, seen)
      }
      // Looked at in this visit, and not there yet.
      const wrong = seen === undefined ? undefined : changedAuthority(seen, terms)
      if (wrong !== undefined) throw authorityChanged(terms, wrong)
      // A node that lags shows what was before.
      const isLater = (visit.get('observed slot') as bigint) > BigInt(since)
      if (isLater && awaited === 'Inactive' && (seen?.status === 'Active' || seen?.status === 'Activating'))
        throw stall(
          'DelegationChanged',
          `The stake ${terms.stakeAccount} was deactivated (seen in slot ${since}) and is ${seen.status.toLowerCase()} in epoch ${seen.epoch}: somebody has delegated it again, to ${seen.voteAccount}. Find out who did; then remove status.transactions.deactivation: it is deactivated again.`,
        )
      if (isLater && awaited === 'Withdrawn' && seen !== undefined && seen.status !== 'Created')
        throw stall(
          'VerificationFailed',
          `status says that the withdrawal is final (slot ${since}), and the stake account ${terms.stakeAccount} is still there with ${BigInt(seen.activeLamports) + BigInt(seen.inactiveLamports)} lamports: somebody changed status. Remove status.transactions.withdrawal: what is left is withdrawn.`,
        )
      const reason = awaited === 'Active' ? 'AwaitingActivation' : 'AwaitingDeactivation'
      throw wait(
        reason,
        `The stake is ${seen?.status.toLowerCase() ?? 'not seen'} in epoch ${seen?.epoch ?? '?'}: ${seen?.activeLamports ?? '0'} lamports are active, ${seen?.inactiveLamports ?? '0'} are not. ${awaited === 'Active' ? 'It warms up' : 'It cools down'} at the end of an epoch (about two days on mainnet).`,
        deps.activatingMs,
      )
    },
  }

  /** What every transaction begins with: who may sign, whether the stake in status is ours, where it stands on the chain. */
  async function lookFor(plan: SolanaPlan, visit: Visit, signal: AbortSignal) {
    const network = networkOf(plan.request.network)
    const parties = await partiesFor(plan.request, plan.kind, plan.terms.voteAccount, signal)
    const terms = await ownTerms(plan, parties, visit, signal)
    const look = await lookAt(network.chain, terms.stakeAccount, signal)
    const altered = alteration(look.state, terms)
    if (altered !== undefined) throw authorityChanged(terms, altered)
    return { network, parties, terms, look }
  }

  /** Whether the chain lets this transaction do its work now, by the operator's own reading of it. */
  function assertPossible({ kind, madeAtSlot }: SolanaPlan, terms: StakeTerms, look: StakeLook, network: SolanaNetwork): void {
    const poll = network.config.pollIntervalMs
    if (kind !== 'stake' && look.state === undefined)
      throw wait(
        'ChainUnavailable',
        `The node does not show the stake account ${terms.stakeAccount} that was there in slot ${madeAtSlot}: it lags. It is asked again.`,
        poll,
      )
    if (look.rewardsActive)
      throw wait(
        'EpochRewards',
        'Rewards are being distributed at the beginning of the epoch: stakes cannot change until that is over.',
        poll,
      )
    if (kind !== 'withdrawal') return
    const { status, activeLamports } = protocolOf(look, madeAtSlot, undefined)
    if (status !== 'Inactive')
      throw wait(
        'AwaitingDeactivation',
        `The stake is ${status.toLowerCase()}: ${activeLamports} lamports are active still, and only an inactive stake can be withdrawn. It cools down at the end of an epoch.`,
        deps.activatingMs,
      )
    const meta = metaOf(look.state)
    if (meta !== undefined && lockupInForce(meta, look.clock))
      throw stall(
        'LockupInForce',
        `The stake account ${terms.stakeAccount} has a lockup in force (until unix time ${meta.lockup.unixTimestamp}, epoch ${meta.lockup.epoch}; custodian ${meta.lockup.custodian}), which this resource did not make. Nothing was signed. It goes on when the lockup is over or lifted by its custodian.`,
      )
  }

  /** The work is done on the chain already: by a transaction that status has lost, or by somebody else. */
  function found({ previous }: Pick<SolanaPlan, 'previous'>, look: Pick<StakeLook, 'slot'>): SolanaTransaction {
    const { signature, txId, attempt = 0, earlier } = previous ?? {}
    return {
      attempt,
      ...(txId === undefined ? {} : { txId }),
      ...(signature === undefined ? {} : { signature, broadcastSignature: signature, reportedSignature: signature }),
      ...(earlier === undefined ? {} : { earlier }),
      state: 'Confirmed',
      slot: Number(look.slot),
    }
  }

  function recordOf({ previous }: SolanaPlan, made: SolanaTransactionBody, signature: string, look: StakeLook): SolanaTransaction {
    const earlier = earlierOf(previous)
    const since = look.slot > BLOCKHASH_SLOTS ? look.slot - BLOCKHASH_SLOTS : 0n
    return {
      txId: made.txId,
      attempt: (previous?.attempt ?? 0) + 1,
      message: made.messageBase64,
      signature,
      blockhash: made.recentBlockhash,
      lastValidBlockHeight: made.lastValidBlockHeight,
      preparedAtSlot: Number(since),
      preparedAt: timestamp(clock.now()),
      ...(earlier.length === 0 ? {} : { earlier: [...earlier] }),
      state: 'Prepared',
    }
  }

  /**
   * Whether the signature that landed is the payer's, of a message that the spec asks for. That the stake is this resource's own is asked besides; but
   * a signer, a policy or a service that is gone doesn't keep anybody from looking at what was sent: then status is only compared with itself.
   */
  async function isOwn(inFlight: InFlightSolana, landed: string | undefined, visit: Visit, signal: AbortSignal): Promise<boolean> {
    try {
      await ownTerms(inFlight, await partiesFor(inFlight.request, 'deactivation', undefined, signal), visit, signal)
    } catch (error) {
      signal.throwIfAborted()
      const isForged = error instanceof Halt && error.verdict.kind === 'stall' && forgeries.has(error.verdict.reason)
      if (isForged || !(error instanceof Halt || error instanceof StakingApiError || error instanceof KeyError)) throw error
    }
    const destination = inFlight.request.destination ?? inFlight.terms.withdrawAuthority
    return landed !== undefined && landed === inFlight.transaction.signature && isProven(inFlight, destination)
  }

  /** Sends the same bytes once more. Nodes and leaders drop transactions; that costs nothing but another try. */
  async function sendAgain(inFlight: InFlightSolana, network: SolanaNetwork, visit: Visit, signal: AbortSignal): Promise<void> {
    try {
      const parties = await partiesFor(inFlight.request, inFlight.kind, inFlight.terms.voteAccount, signal)
      const terms = await ownTerms(inFlight, parties, visit, signal)
      const { raw } = await signedAgain(inFlight, terms, parties, network, signal)
      deps.assertMayAct()
      await network.chain.sendTransaction(raw, { skipPreflight: true }, signal)
    } catch (error) {
      // What keeps it from being sent again doesn't keep it from landing: the watch goes on as often as before.
      if (error instanceof Halt && error.verdict.kind === 'stall')
        throw new Halt({ ...error.verdict, recheck: true, recheckAfterMs: network.config.pollIntervalMs })
      if (!(error instanceof SolanaError)) throw error
      if (error.code === 'wrong-cluster' || error.code === 'unavailable') throw error
    }
  }

  function expiredOf({ kind, transaction }: InFlightSolana, landing: 'expired' | 'unknown', network: SolanaNetwork): { is: 'expired' } {
    // What was deactivated or withdrawn shows at the account itself; a stake that was made and withdrawn looks as if it never was.
    if (landing === 'expired' || kind !== 'stake') return { is: 'expired' }
    throw new Halt({
      kind: 'stall',
      reason: 'HistoryMissing',
      message: `Transaction ${transaction.signature ?? ''} can no longer land, but no RPC node of ${network.config.name} has the history since slot ${transaction.preparedAtSlot ?? '?'}: whether it landed cannot be told, so it is not made anew. Add an RPC URL whose history reaches back far enough.`,
      recheck: true,
      recheckAfterMs: Math.max(network.config.pollIntervalMs, 30_000),
    })
  }

  /** A failure that a simulation tells, where more can be said of it than the table of errors does. */
  function sayWhatItMeans(error: unknown, { kind }: { readonly kind: ActionKind }, network: SolanaNetwork): unknown {
    if (!(error instanceof SolanaError)) return error
    switch (error.code) {
      case 'blockhash-not-found':
        return outOfStep(network)
      case 'account-in-use':
        return kind === 'stake'
          ? wait(
              'AwaitingFinality',
              'The stake’s address holds lamports already: it has just been made, or a stranger has sent some. If so, the transaction is made anew in another form once this one can no longer land.',
              network.config.pollIntervalMs,
            )
          : error
      default:
        return error
    }
  }
}

const outOfStep = ({ config }: SolanaNetwork): Halt =>
  wait(
    'ChainUnavailable',
    "The node does not know the transaction's blockhash: it lags, or the transaction has expired and is made anew once that is certain.",
    config.pollIntervalMs,
  )

const forgeries: ReadonlySet<string> = new Set(['VerificationFailed', 'AdoptionMismatch'])

const changedAuthority = (
  { stakeAuthority, withdrawAuthority }: { readonly stakeAuthority?: string | undefined; readonly withdrawAuthority?: string | undefined },
  terms: StakeTerms,
): string | undefined =>
  stakeAuthority !== undefined && stakeAuthority !== terms.stakeAuthority
    ? `its stake authority is ${stakeAuthority}, not ${terms.stakeAuthority}`
    : withdrawAuthority !== undefined && withdrawAuthority !== terms.withdrawAuthority
      ? `its withdraw authority is ${withdrawAuthority}, not ${terms.withdrawAuthority}`
      : undefined

const authorityChanged = ({ stakeAccount }: StakeTerms, how: string): Halt =>
  stall(
    'AuthorityChanged',
    `Somebody has changed the stake account ${stakeAccount} on the chain: ${how}. Nothing was signed. Whoever holds these keys must be asked at once: a new withdraw authority can take the money.`,
  )
