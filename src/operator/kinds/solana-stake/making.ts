import { signedFor } from '../../../resources/signed-for.ts'
import type { TransactionAttempt } from '../../../resources/staking-transaction.ts'
import { stall, wait } from '../../engine/verdict.ts'
import type { Visit } from '../../engine/visit.ts'
import { isSameOwner } from '../../transactions/noted-owner.ts'
import { LOOK_AGAIN_MS, pending } from '../../transactions/owner.ts'
import { plannedOnly } from '../../transactions/plan-only.ts'
import type { TransactionRecord } from '../../transactions/protocol.ts'
import { awaitingApproval } from '../../transactions/shown-plan.ts'
import { handedOver } from '../../transactions/solana/authorities.ts'
import { historyMissing } from '../../transactions/solana/conclusions.ts'
import type { SolanaTransactionKind } from '../../transactions/solana/kind.ts'
import { NOT_CLOSED } from '../../transactions/solana/rules.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { stepPlan } from './plan.ts'
import { isBegun, isLive, mirrored, ownSteps, stepName, stepSpec } from './records.ts'
import type { SolanaRequests, SolanaStakeDeps } from './request.ts'
import { signersOf } from './signing.ts'
import type { FollowPlan } from './steps.ts'

/** From a verified step of a stake to its record, or to its plan alone. */
export function createMaking(
  deps: Pick<SolanaStakeDeps, 'log' | 'assertMayAct'>,
  { networkOf, networkOn, partiesOf, ownTerms, amountOf, feeCapOf }: SolanaRequests,
  { proves }: Pick<SolanaTransactionKind, 'proves'>,
) {
  const { log } = deps

  /** What is to be written down of a step, with all that asks for it verified. */
  async function verified(plan: FollowPlan, visit: Visit, signal: AbortSignal) {
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
    const name = stepName(network.config.genesisHash, terms.stakeAccount, kind)
    return { name, spec: stepSpec(plan, terms, network, parties.payer.metadata.name), parties, terms }
  }

  /** Makes the record of a step, or takes it over. */
  async function ensured(plan: FollowPlan, visit: Visit, signal: AbortSignal): Promise<RecordObject> {
    const { name, spec } = await verified(plan, visit, signal)
    deps.assertMayAct()
    return log.ensure(name, spec, signal)
  }

  /** Nothing of it can land, and its stake authority was handed over since: it goes on under the new key. */
  const isOfOldKey = (record: RecordObject): boolean => {
    const { stake } = handedOver(log.ofSubject(record.spec.subject))
    return record.status?.outcome === undefined && !isLive(record) && stake !== undefined && stake.address !== record.spec.from
  }

  /** Makes the step's record, or only plans it, and follows it. */
  async function followed(plan: FollowPlan, visit: Visit, signal: AbortSignal) {
    let record = ownSteps(log, plan.request.origin)[plan.kind]
    if (plan.mayMake && (record === undefined || !isBegun(record) || isOfOldKey(record))) {
      if (plan.plannedAs !== undefined) {
        const { kind } = plan
        const { spec, parties, terms } = await verified(plan, visit, signal)
        const given = { uid: plan.plannedAs, amountLamports: amountOf(plan.request), feeCap: feeCapOf(plan.request, parties) }
        throw plannedOnly(stepPlan(spec, { ...given, parties, terms }), signersOf(kind, parties), { transaction: undefined })
      }
      record = await ensured(plan, visit, signal)
    }
    if (record === undefined) throw wait('Suspended', 'Nothing was ever signed for it.', LOOK_AGAIN_MS).with({ transaction: undefined })
    const evidence = { transaction: mirrored(log, record, plan.shown), ...awaitingApproval(log, record) }
    if (record.status?.outcome === undefined) throw pending(log.standing(record.metadata.name), 'The transaction').with(evidence)
    await assertOwnDestination(record, signal)
    return evidence
  }

  /**
   * ▸ What other resources have withdrawn before this one took the stake over went to where this one says: all of it, for lamports that come in time keep an
   * account open whose money is out. @throws Halt (WithdrawnElsewhere, HistoryMissing)
   */
  async function assertOwnDestination(record: RecordObject, signal: AbortSignal): Promise<void> {
    const { purpose, owner, subject, genesisHash, network } = record.spec
    if (purpose !== 'SolanaWithdrawal') return
    let unknown: string | undefined
    for (const attempt of succeeded(recordOf(record))) {
      const before = signedFor(record.spec, attempt).owner
      if (isSameOwner(before, owner)) continue
      const done = `Transaction ${attempt.hash} has withdrawn the money of ${subject} for ${before.kind} ${before.namespace}/${before.name}, which had it before`
      const isOwn = await proves(record, attempt, signal)
      if (isOwn === false)
        throw stall(
          'WithdrawnElsewhere',
          `${done}, and not to where this resource says. Nothing is signed. Look where that went; then delete this resource.`,
        )
      if (isOwn === undefined) unknown = done
    }
    if (unknown === undefined) return
    const { config } = networkOn(genesisHash, network)
    throw historyMissing(
      config,
      `${unknown}, and no RPC node of ${config.name} has it in its history: whether that went to where this resource says cannot be told. Nothing is signed.`,
    )
  }

  return { ensured, followed }
}

/** The attempts that moved money: the one that is the outcome, and those that landed while lamports which came meanwhile kept the account open. */
function succeeded({ status }: TransactionRecord): readonly TransactionAttempt[] {
  const { attempts = [], closed = [], outcome } = status
  const isSpent = (index: number): boolean => closed.some(({ nonce, failure }) => nonce === index && failure === NOT_CLOSED)
  return attempts.filter(({ hash }, index) => hash === outcome?.hash || isSpent(index))
}
