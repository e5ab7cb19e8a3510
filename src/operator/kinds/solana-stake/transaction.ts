import { SolanaError } from '../../../chains/solana/chain.ts'
import { lockupInForce } from '../../../chains/solana/stake-account.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import type { SolanaStake } from '../../../resources/solana-stake.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { type Halt, stall, wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import { assertOwnerAsks } from '../../transactions/owner.ts'
import { attemptsOf, closedOf } from '../../transactions/protocol.ts'
import type { SolanaTransactionKind } from '../../transactions/solana/kind.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { alteration, isReached, lookAt, metaOf, protocolOf, type StakeLook, stakeStateOf } from './chain.ts'
import { createSolanaStakeRules } from './chain-rules.ts'
import { createStakeHistory } from './history.ts'
import type { Parties } from './parties.ts'
import { actionOf, isBegun, purposes, stepName } from './records.ts'
import type { SolanaRequests, SolanaStakeDeps } from './request.ts'
import { authoritiesFor } from './required-keys.ts'
import { createServiceTransactions } from './service-transaction.ts'
import { type ActionKind, isWitness, type SolanaPlan, type StakeTerms, solanaRequestOf, transactionOf } from './steps.ts'
import { createSolanaVerification, feePayerOf, messageOf } from './verification.ts'

/** A blockhash lives 150 blocks; with two slots of three skipped, it is at most so many slots old. */
const BLOCKHASH_SLOTS = 450n

/** What a step is made and signed by. */
interface Admission {
  readonly plan: SolanaPlan
  readonly parties: Parties
  readonly terms: StakeTerms
  readonly network: SolanaNetwork
}

/** What the log asks of a stake's steps before it signs, sends and concludes. */
export function createSolanaStepKind(deps: SolanaStakeDeps, requests: SolanaRequests): SolanaTransactionKind<Admission> {
  const { networkOf, networkOn, partiesFor, termsFor, assertAdmitted } = requests
  const verification = createSolanaVerification(deps, requests)
  const service = createServiceTransactions(deps, requests)
  const rules = createSolanaStakeRules(requests)
  const history = createStakeHistory()
  const { verifiedNow, simulate, sign, assertFunds } = verification

  const networkOfRecord = ({ spec }: RecordObject): SolanaNetwork => networkOn(spec.genesisHash, spec.network)
  /** A slot at which the account was there, 0 if it never was: seen at an earlier one, it doesn't count that it isn't. */
  const madeAtSlot = ({ spec }: RecordObject): number =>
    deps.log.find(stepName(spec.genesisHash ?? '', spec.subject, 'stake'))?.status?.outcome?.blockNumber ?? 0

  async function ownerOf({ spec }: RecordObject, fresh: boolean, signal: AbortSignal): Promise<SolanaStake | undefined> {
    const { kind, namespace, name } = spec.owner
    return kind === 'SolanaStake' ? deps.stake({ namespace, name }, fresh, signal) : undefined
  }

  /** Where the resource wants the money; undefined where it, or its signer, is gone. */
  async function destinationFor(record: RecordObject, signal: AbortSignal): Promise<string | undefined> {
    const stake = await ownerOf(record, false, signal)
    const withdrawer = stake === undefined ? undefined : deps.signers.get(stake.spec.withdrawAuthority.signer)
    return stake?.spec.destination ?? withdrawer?.spec.address
  }

  async function requestOf(record: RecordObject, fresh: boolean, signal: AbortSignal): Promise<SolanaPlan> {
    const kind = actionOf(record)
    const stake = await ownerOf(record, fresh, signal)
    const wanted = stake?.spec.desiredState
    // A resource that is deleted with desiredState Withdrawn still gets its money out.
    const origin = assertOwnerAsks(record, stake, { deleting: kind !== 'stake' && wanted === 'Withdrawn' })
    // What a version before the log has signed stands in status: it is followed before anything else is signed.
    if (!isBegun(record) && isWitness(transactionOf(stake?.status, kind)))
      throw wait(
        'InProgress',
        `What status shows of the ${kind} transaction is being taken into StakingTransaction ${record.metadata.name}.`,
        NOT_WANTED_MS,
      )
    const asks = kind === 'stake' ? wanted === 'Active' : kind === 'deactivation' ? wanted !== 'Active' : wanted === 'Withdrawn'
    if (!asks) throw wait('InProgress', `spec.desiredState is ${wanted}: nothing more of the ${kind} is signed or sent.`, NOT_WANTED_MS)
    return { kind, request: solanaRequestOf({ origin, spec: (stake as SolanaStake).spec }) }
  }

  const mayBeSigned: SolanaTransactionKind<Admission>['mayBeSigned'] = async (record, fresh, visit, signal) => {
    const plan = await requestOf(record, fresh, signal)
    const { request, kind } = plan
    const network = networkOf(request.network)
    if (network.config.genesisHash !== record.spec.genesisHash)
      throw stall(
        'WrongChain',
        `The ${kind} was begun on the cluster with genesis ${record.spec.genesisHash}, and network ${request.network} is another now. It is followed where it was begun; nothing is signed.`,
      )
    const signing = authoritiesFor(kind, { isApproved: isBegun(record) })
    const parties = await partiesFor(request, kind, signal, { fresh, signing })
    if (parties.stakeAuthority !== record.spec.from)
      throw stall(
        'SignerChanged',
        `StakingSigner ${request.stakeSigner} has the key of ${parties.stakeAuthority} now, and the ${kind} was begun with ${record.spec.from}. Bring back the signer with the old key: nobody else can sign for this stake.`,
      )
    const terms = await termsFor(request, parties, visit, signal)
    if (terms.stakeAccount !== record.spec.subject || terms.stakeId !== record.spec.apiId)
      throw stall(
        'VerificationFailed',
        `The staking API has stake ${terms.stakeId} for this resource, and StakingTransaction ${record.metadata.name} was made for ${record.spec.apiId}. Nothing was signed. If the staking API has lost its data, ${record.spec.subject} may hold the money, and the data must be brought back.`,
      )
    // The service's own choice of a vote account is asked of the policy too.
    assertAdmitted(request, parties, kind === 'stake' ? { voteAccount: terms.voteAccount } : undefined)
    return { plan, parties, terms, network }
  }

  /** Whether the chain lets this transaction do its work now, by the operator's own reading of it. */
  function assertPossible(record: RecordObject, { plan, terms, network }: Admission, look: StakeLook): void {
    const { kind } = plan
    const poll = network.config.pollIntervalMs
    const made = madeAtSlot(record)
    if (kind !== 'stake' && look.state === undefined)
      throw wait(
        'ChainUnavailable',
        `The node does not show the stake account ${terms.stakeAccount} that was there in slot ${made}: it lags. It is asked again.`,
        poll,
      )
    if (look.rewardsActive)
      throw wait(
        'EpochRewards',
        'Rewards are being distributed at the beginning of the epoch: stakes cannot change until that is over.',
        poll,
      )
    if (kind === 'stake' && look.state !== undefined && look.state.kind !== 'stake')
      throw stall(
        'DelegationChanged',
        `The stake account ${terms.stakeAccount} is there with ${look.account?.lamports ?? 0n} lamports, ${look.state.kind === 'initialized' ? 'initialised and not delegated' : 'and not initialised'}: somebody has made it with this stake's keys, and not by this resource's transaction. Nothing was signed, and nothing is paid into it. Find out who did; delegate it to ${terms.voteAccount} (solana delegate-stake), or withdraw it and create another resource.`,
      )
    if (kind !== 'withdrawal') return
    const { status, activeLamports } = protocolOf(look, made, undefined)
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

  /** The last attempt, which is dead. */
  function previousOf(record: RecordObject) {
    const attempts = attemptsOf(recordOf(record))
    const last = attempts.at(-1)
    if (last?.message === undefined) return undefined
    const failed = closedOf(recordOf(record)).some(({ nonce, by }) => nonce === attempts.length - 1 && by === 'Revert')
    return { message: last.message, signature: last.hash, failed }
  }

  return {
    purposes: Object.values(purposes),
    what: (record) => `The ${actionOf(record)} transaction`,
    step: (record) => ({ landedIsDone: actionOf(record) !== 'withdrawal', leavesNoTrace: actionOf(record) === 'stake' }),
    isDone: (record, { account, slot }) => isReached(actionOf(record), { state: stakeStateOf(account), slot }, madeAtSlot(record)),
    mayBeSigned,

    async seek(record, atSlot, signal) {
      const { chain } = networkOfRecord(record)
      const { subject } = record.spec
      const kind = actionOf(record)
      if (kind !== 'withdrawal') return history.doerOf(chain, { account: subject, kind, atSlot }, signal)
      return history.withdrawalOf(chain, { account: subject, destination: await destinationFor(record, signal), atSlot }, signal)
    },

    async proves(record, attempt, signal) {
      const kind = actionOf(record)
      const destination = kind === 'withdrawal' ? await destinationFor(record, signal) : undefined
      return history.proofOf(networkOfRecord(record).chain, attempt, { account: record.spec.subject, kind, destination }, signal)
    },

    async obtain(record, admission, heights, _visit, signal) {
      const { plan, parties, terms, network } = admission
      const { kind, request } = plan
      assertStays(signersOf(kind, parties))
      const look = await lookAt(network.chain, terms.stakeAccount, signal)
      const altered = alteration(look.state, terms)
      if (altered !== undefined) throw authorityChanged(terms, altered)
      assertPossible(record, admission, look)
      if (kind !== 'deactivation') await rules.assertCanReceive(plan, network, parties, terms, signal)
      // Before a transaction is made, whose life is short.
      if (kind === 'stake') await assertFunds(network, plan, parties.stakeAuthority, 5_000n, signal)

      const made = await service.obtain({ plan, terms, parties, network, heights, previous: previousOf(record) }, signal)
      const message = messageOf({ message: made.messageBase64 })
      if (message === undefined) {
        deps.onRefusal?.('VerificationFailed')
        throw stall('VerificationFailed', `The ${kind} transaction that the staking API has made is no message. Nothing was signed.`)
      }
      const source = 'that the staking API has made'
      await verifiedNow(plan, terms, parties, network, message, { blockhash: made.recentBlockhash, source }, signal)
      if (kind === 'stake') await rules.assertVotes(network, terms.voteAccount, parties.payer, signal)
      const fee = await network.chain.feeFor(message, signal)
      if (fee === undefined) throw outOfStep(network)
      await assertFunds(network, plan, feePayerOf(kind, terms, message), fee, signal)
      await simulate(network, kind, { terms, message, atSlot: look.slot }, signal).catch(async (error: unknown) => {
        const isTooLittle = error instanceof SolanaError && error.code === 'insufficient-delegation'
        throw (isTooLittle ? await rules.amountProblem(request, signal) : undefined) ?? explained(error, kind, network)
      })
      const sinceSlot = look.slot > BLOCKHASH_SLOTS ? look.slot - BLOCKHASH_SLOTS : 0n
      return { apiId: made.txId, message, lastValidBlockHeight: made.lastValidBlockHeight, sinceSlot: Number(sinceSlot) }
    },

    sign: (_record, { parties }, message, signal) => sign(parties, message, signal),

    async signAgain(record, { plan, terms, parties, network }, attempt, signal) {
      const message = messageOf(attempt)
      const source = `of StakingTransaction ${record.metadata.name}`
      if (message === undefined && attempt.found === true)
        throw wait(
          'AwaitingFinality',
          `Transaction ${attempt.hash} is only watched: its message is not known here.`,
          network.config.pollIntervalMs,
        )
      if (message === undefined) throw notOurs(record)
      await verifiedNow(plan, terms, parties, network, message, { blockhash: undefined, source }, signal)
      const signed = await sign(parties, message, signal)
      if (signed.signature !== attempt.hash) throw notOurs(record)
      return signed
    },

    async tell(record, { apiId, hash }, signal) {
      if (apiId === undefined || record.spec.apiId === undefined) return 'taken'
      const { api, config } = networkOfRecord(record)
      try {
        await api.submitTransaction(record.spec.apiId, apiId, hash, signal)
        return 'taken'
      } catch (error) {
        if (!(error instanceof StakingApiError)) throw error
        // It is looked for from now on; whoever wants to see it first is told again.
        if (error.code === 'transaction-not-visible') return 'later'
        if (error.status !== 409 && error.status !== 422) throw error
        throw wait(
          'AwaitingFinality',
          `The staking API does not take the signature ${hash}: for it, the transaction has expired or was made anew. It is not sent; what becomes of it, the chain tells.`,
          config.pollIntervalMs,
        )
      }
    },

    explain: (record, error) => explained(error, actionOf(record), networkOfRecord(record)),
  }
}

/** Who signs a transaction that is made now. */
function signersOf(kind: ActionKind, { payer, withdrawer, feePayer, stakeAuthority }: Parties): readonly StakingSigner[] {
  if (kind === 'deactivation') return [payer]
  return feePayer === stakeAuthority ? [payer, withdrawer] : [withdrawer]
}

/** Nothing new is signed for a signer that is being deleted: it goes once what is open is settled. @throws Halt */
function assertStays(signers: readonly StakingSigner[]): void {
  const leaving = signers.find(({ metadata }) => metadata.deletionTimestamp !== undefined)
  if (leaving !== undefined)
    throw stall('SignerNotFound', `StakingSigner ${leaving.metadata.name} is being deleted: nothing more is signed with its key.`)
}

/** How often it is looked whether a step is wanted after all, in ms; a change of the resource wakes it. */
const NOT_WANTED_MS = 60_000

const notOurs = ({ metadata }: RecordObject): Halt =>
  stall(
    'VerificationFailed',
    `The attempt in StakingTransaction ${metadata.name} is not what was signed for it: somebody changed it. Nothing was sent.`,
  )

/** A failure that a simulation tells, where more can be said of it than the table of errors does. */
function explained(error: unknown, kind: ActionKind, network: SolanaNetwork): unknown {
  if (!(error instanceof SolanaError)) return error
  if (error.code === 'blockhash-not-found') return outOfStep(network)
  if (error.code !== 'account-in-use' || kind !== 'stake') return error
  return wait(
    'AwaitingFinality',
    'The stake’s address holds lamports already: it has just been made, or a stranger has sent some. If so, the transaction is made anew in another form once this one can no longer land.',
    network.config.pollIntervalMs,
  )
}

const outOfStep = ({ config }: SolanaNetwork): Halt =>
  wait(
    'ChainUnavailable',
    "The node does not know the transaction's blockhash: it lags, or the transaction has expired and is made anew once that is certain.",
    config.pollIntervalMs,
  )

export const authorityChanged = ({ stakeAccount }: StakeTerms, how: string): Halt =>
  stall(
    'AuthorityChanged',
    `Somebody has changed the stake account ${stakeAccount} on the chain: ${how}. Nothing was signed. Whoever holds these keys must be asked at once: a new withdraw authority can take the money.`,
  )
