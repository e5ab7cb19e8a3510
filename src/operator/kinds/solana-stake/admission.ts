import type { ObjectMeta } from '../../../resources/meta.ts'
import type { SolanaStake } from '../../../resources/solana-stake.ts'
import { type Halt, stall, wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import type { Approvable } from '../../transactions/approvals.ts'
import { assertOwnerAsks, doneInstead } from '../../transactions/owner.ts'
import { handedOver } from '../../transactions/solana/authorities.ts'
import type { SolanaTransactionKind } from '../../transactions/solana/kind.ts'
import type { RecordObject } from '../../transactions/store.ts'
import type { Parties } from './parties.ts'
import { stepPlan } from './plan.ts'
import { actionOf, isBegun, isLive } from './records.ts'
import type { SolanaRequests, SolanaStakeDeps } from './request.ts'
import { authoritiesFor } from './required-keys.ts'
import { signersOf } from './signing.ts'
import { isWitness, type SolanaPlan, type StakeTerms, solanaRequestOf, transactionOf } from './steps.ts'

/** What a step is made and signed by. */
export interface Admission {
  readonly plan: SolanaPlan
  readonly parties: Parties
  readonly terms: StakeTerms
  readonly network: SolanaNetwork
  readonly approvable: Approvable
}

/** How often it is looked whether a step is wanted after all, in ms; a change of the resource wakes it. */
const NOT_WANTED_MS = 60_000
/** How often it is looked whether a hand-over is over, in ms; its end wakes what waits. */
const HAND_OVER_MS = 10_000

const waitsForHandOver = ({ metadata, spec: { owner } }: RecordObject): Halt =>
  wait(
    'WaitingForHandOver',
    `${owner.kind} ${owner.name} hands the authorities of this stake over (StakingTransaction ${metadata.name}), and may have landed: it goes on once that is certain, with whichever key has them then.`,
    HAND_OVER_MS,
  )

/** The resource that a record is for, as it stands now. */
export async function ownerOf(
  deps: Pick<SolanaStakeDeps, 'stake'>,
  { spec }: RecordObject,
  fresh: boolean,
  signal: AbortSignal,
): Promise<SolanaStake | undefined> {
  const { kind, namespace, name } = spec.owner
  return kind === 'SolanaStake' ? deps.stake({ namespace, name }, fresh, signal) : undefined
}

/**
 * ▸ That no other stake was begun for the resource: a staking API that has lost its data makes another for the same request, and may have the first again
 * later. @throws Halt
 */
async function assertIsThePaidOne(record: RecordObject, log: SolanaStakeDeps['log'], fresh: boolean, signal: AbortSignal): Promise<void> {
  const before = await doneInstead(log, record, fresh, signal)
  if (before === undefined) return
  throw stall(
    'VerificationFailed',
    `StakingTransaction ${before.metadata.name} is this resource's stake (account ${before.spec.subject}). A resource pays one: ${record.metadata.name} is not signed.`,
  )
}

/** Whether a step may be signed now, by whom and by which terms. */
export function createStepAdmission(
  deps: Pick<SolanaStakeDeps, 'stake' | 'log'>,
  { networkOf, partiesFor, termsFor, assertAdmitted, amountOf, feeCapOf }: SolanaRequests,
): Pick<SolanaTransactionKind<Admission>, 'mayBeSigned'> {
  async function requestOf(
    record: RecordObject,
    fresh: boolean,
    signal: AbortSignal,
  ): Promise<{ readonly plan: SolanaPlan; readonly metadata: ObjectMeta }> {
    const kind = actionOf(record)
    const stake = await ownerOf(deps, record, fresh, signal)
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
    if (stake === undefined) throw new Error('the owner asks and is not there')
    return { plan: { kind, request: solanaRequestOf({ origin, spec: stake.spec }) }, metadata: stake.metadata }
  }

  return {
    async mayBeSigned(record, fresh, visit, signal) {
      const { plan, metadata } = await requestOf(record, fresh, signal)
      const { request, kind } = plan
      if (kind === 'stake') await assertIsThePaidOne(record, deps.log, fresh, signal)
      const { open } = handedOver(deps.log.ofSubject(record.spec.subject))
      // What may land already is followed; another one would be signed by who may have no authority any more.
      if (open !== undefined && !isLive(record)) throw waitsForHandOver(open)
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
          `The staking API has stake ${terms.stakeId} for this resource, and StakingTransaction ${record.metadata.name} was made for ${record.spec.apiId}. Nothing was signed. If the staking API has lost its data, have that brought back: ${record.spec.subject} may hold the money.`,
        )
      // The service's own choice of a vote account is asked of the policy too.
      assertAdmitted(request, parties, kind === 'stake' ? { voteAccount: terms.voteAccount } : undefined)
      const planned = stepPlan(record.spec, {
        uid: metadata.uid,
        amountLamports: amountOf(request),
        parties,
        terms,
        feeCap: feeCapOf(request, parties),
      })
      return { plan, parties, terms, network, approvable: { plan: planned, signers: signersOf(kind, parties), metadata } }
    },
  }
}
