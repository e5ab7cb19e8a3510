import { sameHex } from '../../../lib/hex.ts'
import type { Perform } from '../../engine/step.ts'
import { briefWait, stall, wait } from '../../engine/verdict.ts'
import { type Visit, WATCH_ONLY } from '../../engine/visit.ts'
import { pubkeyOf } from '../../transactions/ethereum-texts.ts'
import type { TransactionKind } from '../../transactions/kind.ts'
import type { LegacyKind } from '../../transactions/legacy/kind.ts'
import { mirrored } from '../../transactions/mirrored.ts'
import { isBegun, pending } from '../../transactions/owner.ts'
import { forgettingPlan, plannedOnly } from '../../transactions/plan-only.ts'
import { awaitingApproval } from '../../transactions/shown-plan.ts'
import { createDepositEvidence, evidenceOf, fieldsOf } from './evidence.ts'
import { createLegacyDeposits } from './legacy.ts'
import { createPaidStake } from './paid-stake.ts'
import { depositPlan } from './plan.ts'
import { depositName, depositSpec, ownDeposit } from './records.ts'
import { createDepositRequests, type EthereumStakeDeps } from './request.ts'
import type { DepositPlan, EthereumStakeEffects, StakeRequest } from './steps.ts'
import { createDepositKind } from './transaction.ts'
import { createUndo } from './undo.ts'
import { createVerification } from './verification.ts'

/** The effects of an EthereumStake's saga, and what the log asks of its deposits. */
export function createEthereumStakeEffects(deps: EthereumStakeDeps): {
  readonly effects: Perform<EthereumStakeEffects>
  readonly deposits: TransactionKind
  readonly legacy: LegacyKind
} {
  const { log } = deps
  const requests = createDepositRequests(deps)
  const evidence = createDepositEvidence(requests)
  const { networkOf, addressOf, admittedSigner, serviceStake, capOf } = requests
  const { paidStake, isPaid } = createPaidStake(log, requests)

  /** The stake of a resource that is watched only and has lost its status: nothing is created, the log's own is read again. */
  async function loggedStake({ origin, network }: StakeRequest, signal: AbortSignal) {
    const own = ownDeposit(log, origin)
    if (own?.spec.apiId === undefined) throw wait('Suspended', 'Nothing was ever signed for it.', 60_000)
    const body = await networkOf(network).api.ethereumStake(own.spec.apiId, signal)
    if (!sameHex(body.depositData.pubkey, own.spec.subject))
      throw stall('VerificationFailed', `The staking API has another validator as stake ${own.spec.apiId} than the log. Nothing is signed.`)
    return evidenceOf(body)
  }

  const effects: Perform<EthereumStakeEffects> = {
    async createStake(request, visit, signal) {
      if (visit.get(WATCH_ONLY) === true) return loggedStake(request, signal)
      networkOf(request.network)
      addressOf(request)
      await admittedSigner(request, signal)
      deps.assertMayAct()
      const body = await paidStake(request, visit, signal)
      return evidenceOf(body)
    },

    verifyDeposit: createVerification({ ...requests, serviceStake: paidStake, isPaid }, evidence, deps.clock),

    followDeposit: (plan, visit, signal) => forgettingPlan({ transaction: plan.shown }, () => followed(plan, visit, signal)),

    undoStake: createUndo(deps, requests),

    async reportDeposit({ network, stakeId, hash }, _visit, signal) {
      await networkOf(network).api.submitEthereumStake(stakeId, hash, signal)
      return { reportedHash: hash }
    },
  }
  return { effects, deposits: createDepositKind(deps, requests, evidence), legacy: createLegacyDeposits(requests, evidence) }

  /** Makes the deposit's record, or only plans it, and follows it. */
  async function followed(plan: DepositPlan, visit: Visit, signal: AbortSignal) {
    const own = ownDeposit(log, plan.request.origin)
    let record = own
    let found: ReturnType<typeof evidenceOf> | undefined
    if (visit.get(WATCH_ONLY) !== true && (own === undefined || !isBegun(own))) {
      const network = networkOf(plan.request.network)
      const signer = await admittedSigner(plan.request, signal)
      // By what the staking API says and the spec admits, whatever status says: that may have been written by anybody.
      found = evidenceOf(await serviceStake(plan.request, visit, signal))
      evidence.verifyFields(plan.request, fieldsOf(found), network)
      const spec = depositSpec({ request: plan.request, ...found }, network, signer)
      if (plan.plannedAs !== undefined) {
        const { uid, maxFeePerGasGwei } = plan.plannedAs
        const planned = depositPlan(spec, { request: plan.request, uid, feeCap: capOf(signer, maxFeePerGasGwei) })
        throw plannedOnly(planned, [signer], { transaction: undefined, found })
      }
      record = await log.ensure(depositName(network.config.chainId, pubkeyOf({ spec })), spec, signal)
    }
    if (record === undefined) throw wait('Suspended', 'Nothing was ever signed for it.', 60_000).with({ transaction: undefined })
    const outcome = record.status?.outcome
    const seen = {
      transaction: mirrored(log, record, plan.shown),
      ...(found === undefined ? {} : { found }),
      ...awaitingApproval(log, record),
    }
    if (outcome === undefined) {
      const standing = log.standing(record.metadata.name)
      const isNew = own === undefined && standing === undefined
      throw (isNew ? briefWait('InProgress', `${DEPOSIT} is about to be made.`, NEW_MS) : pending(standing, DEPOSIT)).with(seen)
    }
    return seen
  }
}

const DEPOSIT = 'The deposit transaction'
/** A new record is looked after by its lane at once, which shows what it is about to send: that it is to be made is shown only where that takes longer, in ms. */
const NEW_MS = 20_000
