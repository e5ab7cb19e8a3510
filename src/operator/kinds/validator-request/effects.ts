import { isGone } from '../../../contract/client-error.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { classify } from '../../engine/classify.ts'
import type { Perform } from '../../engine/step.ts'
import { Halt, wait } from '../../engine/verdict.ts'
import { type Visit, WATCH_ONLY } from '../../engine/visit.ts'
import type { EthereumNetwork } from '../../ports.ts'
import type { TransactionKind } from '../../transactions/kind.ts'
import type { LegacyKind } from '../../transactions/legacy/kind.ts'
import { mirrored } from '../../transactions/mirrored.ts'
import { isBegun, LOOK_AGAIN_MS, pending } from '../../transactions/owner.ts'
import { forgettingPlan, plannedOnly } from '../../transactions/plan-only.ts'
import { awaitingApproval } from '../../transactions/shown-plan.ts'
import { createAwaitConsensus } from './consensus.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import { asSeenBy, foundBy, ownRequest } from './evidence.ts'
import { createLegacyRequests } from './legacy.ts'
import { createLostRequests } from './lost.ts'
import { createMaking } from './making.ts'
import { requestPlan } from './plan.ts'
import { unaskedSpec } from './records.ts'
import { requestKindNames } from './request-kind.ts'
import { typeOf } from './request-type.ts'
import { createRequestService } from './service.ts'
import type { FoundValidator, RequestOrder, RequestPlan, ValidatorRequestEffects } from './steps.ts'
import { createRequestTargets } from './target.ts'
import { createRequestKind } from './transaction.ts'
import { createTurns } from './turn.ts'
import { createUndo } from './undo.ts'

/**
 * The effects of the saga of ValidatorExit and ValidatorWithdrawal, and what the log asks of their transactions. Both kinds share them: who goes first on a
 * validator is decided for both together.
 */
export function createValidatorRequestEffects(deps: ValidatorRequestDeps): {
  readonly effects: Perform<ValidatorRequestEffects>
  readonly requests: TransactionKind
  readonly legacy: readonly LegacyKind[]
} {
  const { log } = deps
  const targets = createRequestTargets(deps)
  const { networkOf, admittedSigner, targetOf, assertOwned, assertMaySend, capOf, feeCapOf } = targets
  const service = createRequestService(deps, targets)
  const turns = createTurns(deps, targets)
  const kind = createRequestKind(deps, targets, service, turns)
  const lost = createLostRequests(deps, service)
  const { nameOf, checked, made } = createMaking(deps, targets, service, kind, lost, turns)

  const effects: Perform<ValidatorRequestEffects> = {
    async resolveValidator(order, visit, signal) {
      typeOf(order).requestOf(order, '0x')
      return foundBy(await targetOf(order, visit, signal))
    },

    createRequest: (args, visit, signal) => forgettingPlan({}, () => created(args, visit, signal)),

    async verifyRequest(plan, visit, signal) {
      const { calldata } = await checked(plan, visit, signal)
      return { verifiedCalldata: calldata }
    },

    followRequest: (plan, visit, signal) => forgettingPlan({ transaction: plan.shown }, () => followed(plan, visit, signal)),

    async reportRequest({ order, validator, requestId, hash }, _visit, signal) {
      const network = networkOf(validator.network)
      let retryAfterMs: number | undefined
      try {
        retryAfterMs = await service.submit(order, validator, requestId, hash, network, signal)
      } catch (error) {
        const own = ownRequest(log, order.origin)
        const outcome = own && asSeenBy(own, order.origin.uid).status?.outcome
        if (!isGone(error) || outcome === undefined) throw error
        // Of what was reverted there is nothing to learn.
        if (outcome.is === 'Reverted') return { reportedHash: hash }
        const again = await lost.madeAgain(order, validator, { requestId, hash: outcome.hash }, network, signal)
        if (again === 'fulfilled') return { reportedHash: hash }
        throw again
      }
      if (retryAfterMs !== undefined)
        throw wait(
          'AwaitingFinality',
          `Transaction ${hash} is final and reported; the staking API does not see it yet, and is told again.`,
          retryAfterMs,
        )
      return { reportedHash: hash }
    },

    awaitConsensus: createAwaitConsensus(deps, targets, service, lost),
    undoRequest: createUndo(deps, targets, service, nameOf),
  }

  const legacy = requestKindNames.map((name) => createLegacyRequests(name, deps, targets, service))
  return { effects: noting(effects, turns.note), requests: kind, legacy }

  /** Asks the staking API for the request, or only plans it: a request that is there holds what others may ask for. */
  async function created({ order, plannedAs }: ValidatorRequestEffects['createRequest']['args'], visit: Visit, signal: AbortSignal) {
    // By the spec, whatever status says: nothing was made of that yet.
    const { withdrawalAddress, ...validator } = await targetOf(order, visit, signal)
    const network = networkOf(validator.network)
    const signer = await admittedSigner(order, signal)
    await assertOwned(order, signer, validator, visit, signal)
    if (withdrawalAddress !== undefined) assertMaySend(signer, withdrawalAddress)
    if (plannedAs !== undefined) throw plannedOnly(planFor(plannedAs, order, validator, network, signer), [signer], { validator })
    if (ownRequest(log, order.origin) === undefined)
      await turns.assertTurn(order, validator, undefined, nameOf(order, validator), signal).catch(async (error: unknown) => {
        // The answer to it was lost: it is had again, and keeps what an exit would wait for.
        if (!(error instanceof Halt) || !(await service.isAsked(order, validator, network, signal))) throw error
      })
    deps.assertMayAct()
    const { requestId } = await service.create(order, validator, network, signal)
    return { requestId, validator }
  }

  /** Makes the request's record, or only plans it, and follows it. */
  async function followed(plan: RequestPlan, visit: Visit, signal: AbortSignal) {
    const { order, shown } = plan
    const own = ownRequest(log, order.origin)
    const watchOnly = visit.get(WATCH_ONLY) === true
    const isFollowed = own !== undefined && isBegun(asSeenBy(own, order.origin.uid))
    if (!isFollowed && !watchOnly && plan.plannedAs !== undefined) {
      const { network, signer } = await checked(plan, visit, signal)
      throw plannedOnly(planFor(plan.plannedAs, order, plan.validator, network, signer), [signer], { transaction: undefined })
    }
    const record = isFollowed || watchOnly ? own : await made(plan, visit, signal)
    if (record === undefined) throw wait('Suspended', 'Nothing was ever signed for it.', 60_000).with({ transaction: undefined })
    const outcome = asSeenBy(record, order.origin.uid).status?.outcome
    const seen = { transaction: mirrored(log, asSeenBy(record, order.origin.uid), shown), ...awaitingApproval(log, record) }
    if (outcome === undefined) {
      const standing = log.standing(record.metadata.name)
      // That its owner does not ask for it is what the owner says itself.
      const isOwn = watchOnly && standing?.reason === 'Deleting'
      throw (isOwn ? wait('Deleting', standing.message, LOOK_AGAIN_MS) : pending(standing, 'The transaction')).with(seen)
    }
    return seen
  }

  /** What would be signed for a resource of this UID. */
  function planFor(uid: string, order: RequestOrder, validator: FoundValidator, network: EthereumNetwork, signer: StakingSigner) {
    const caps = { feeCap: capOf(signer, undefined), requestFeeCap: feeCapOf(signer, order.maxRequestFeeGwei) }
    return requestPlan(unaskedSpec(order, validator, network, signer), { uid, ...caps })
  }
}

/** Every effect that has an order leaves word how it ended: whose turn it is does not hang on what a tenant can write. */
function noting(
  effects: Perform<ValidatorRequestEffects>,
  note: (uid: string, verdict: ReturnType<typeof classify> | undefined) => void,
): Perform<ValidatorRequestEffects> {
  const wrapped = Object.entries(effects).map(([name, perform]) => [
    name,
    async (args: RequestOrder | { readonly order: RequestOrder }, visit: Visit, signal: AbortSignal) => {
      const { uid } = ('order' in args ? args.order : args).origin
      try {
        const result = await (perform as (args: unknown, visit: Visit, signal: AbortSignal) => Promise<unknown>)(args, visit, signal)
        note(uid, undefined)
        return result
      } catch (error) {
        signal.throwIfAborted()
        note(uid, classify(error))
        throw error
      }
    },
  ])
  return Object.fromEntries(wrapped) as Perform<ValidatorRequestEffects>
}
