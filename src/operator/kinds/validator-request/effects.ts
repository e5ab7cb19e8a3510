import { sameHex } from '../../../lib/hex.ts'
import { classify } from '../../engine/classify.ts'
import type { Perform } from '../../engine/step.ts'
import { stall, wait } from '../../engine/verdict.ts'
import { type Visit, WATCH_ONLY } from '../../engine/visit.ts'
import type { TransactionKind } from '../../transactions/kind.ts'
import type { LegacyKind } from '../../transactions/legacy/kind.ts'
import { mirrored } from '../../transactions/mirrored.ts'
import { isBegun, LOOK_AGAIN_MS, pending } from '../../transactions/owner.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import { asSeenBy, foundBy, ownRequest } from './evidence.ts'
import { createLegacyRequests } from './legacy.ts'
import { createLostRequests } from './lost.ts'
import { createMaking } from './making.ts'
import { requestKindNames } from './request-kind.ts'
import { typeOf } from './request-type.ts'
import { isKnownRule } from './rules.ts'
import { acceptedOf, createRequestService, isGone, saidOf } from './service.ts'
import type { RequestOrder, ValidatorRequestEffects } from './steps.ts'
import { createRequestTargets } from './target.ts'
import { createRequestKind } from './transaction.ts'
import { createTurns } from './turn.ts'
import { createUndo } from './undo.ts'

/** What the staking API tells by itself is asked for less often, in ms. */
const FOLLOWED_POLL_MS = 60_000

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
  const { networkOf, admittedSigner, targetOf, assertOwned, assertMaySend } = targets
  const service = createRequestService(deps, targets)
  const turns = createTurns(deps, targets)
  const kind = createRequestKind(deps, targets, service, turns)
  const lost = createLostRequests(deps, service)
  const { nameOf, checked, made } = createMaking(deps, targets, service, kind, lost)

  const effects: Perform<ValidatorRequestEffects> = {
    async resolveValidator(order, visit, signal) {
      typeOf(order).requestOf(order, '0x')
      return foundBy(await targetOf(order, visit, signal))
    },

    async createRequest({ order }, visit, signal) {
      // By the spec, whatever status says: nothing was made of that yet.
      const { withdrawalAddress, ...validator } = await targetOf(order, visit, signal)
      const network = networkOf(validator.network)
      const signer = await admittedSigner(order, signal)
      await assertOwned(order, signer, validator, visit, signal)
      if (withdrawalAddress !== undefined) assertMaySend(signer, withdrawalAddress)
      if (ownRequest(log, order.origin) === undefined) await turns.assertTurn(order, validator, undefined, nameOf(order, validator), signal)
      deps.assertMayAct()
      const { requestId } = await service.create(order, validator, network, signal)
      return { requestId, validator }
    },

    async verifyRequest(plan, visit, signal) {
      const { calldata } = await checked(plan, visit, signal)
      return { verifiedCalldata: calldata }
    },

    async followRequest(plan, visit, signal) {
      const { order, shown } = plan
      const own = ownRequest(log, order.origin)
      const watchOnly = visit.get(WATCH_ONLY) === true
      const isFollowed = own !== undefined && isBegun(asSeenBy(own, order.origin.uid))
      const record = isFollowed || watchOnly ? own : await made(plan, visit, signal)
      if (record === undefined) throw wait('Suspended', 'Nothing was ever signed for it.', 60_000).with({ transaction: undefined })
      const outcome = asSeenBy(record, order.origin.uid).status?.outcome
      const seen = { transaction: mirrored(log, asSeenBy(record, order.origin.uid), shown) }
      if (outcome === undefined) {
        const standing = log.standing(record.metadata.name)
        // That its owner does not ask for it is what the owner says itself.
        const isOwn = watchOnly && standing?.reason === 'Deleting'
        throw (isOwn ? wait('Deleting', standing.message, LOOK_AGAIN_MS) : pending(standing, 'The transaction')).with(seen)
      }
      return seen
    },

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
        throw await lost.madeAgain(order, validator, { requestId, hash: outcome.hash }, network, signal)
      }
      if (retryAfterMs !== undefined)
        throw wait(
          'AwaitingFinality',
          `Transaction ${hash} is final and reported; the staking API does not see it yet, and is told again.`,
          retryAfterMs,
        )
      return { reportedHash: hash }
    },

    async awaitConsensus(plan, visit, signal) {
      const { order, validator, requestId } = plan
      const network = networkOf(validator.network)
      const { config } = network
      const own = ownRequest(log, order.origin)
      const outcome = own && asSeenBy(own, order.origin.uid).status?.outcome
      if (own === undefined || outcome === undefined)
        throw wait('AwaitingFinality', 'The log shows no final transaction of it any more: it is followed anew.', config.pollIntervalMs)
      // What landed beyond a depth in blocks may be gone again.
      if (own.spec.owner.originUid === order.origin.uid && (await log.recheck(own, network.chain, signal)).status?.outcome === undefined)
        throw wait(
          'AwaitingFinality',
          `Transaction ${outcome.hash} is not in the chain any more: it is followed anew.`,
          config.pollIntervalMs,
        )
      saidOf.erase(visit)
      const body = await service.look(order, validator, requestId, network, visit, signal)
      if (body === undefined) throw await lost.madeAgain(order, validator, { requestId, hash: outcome.hash }, network, signal)
      const { status, consensus } = body
      const undecided = (why: string) => {
        const { leading, onNews } = deps
        const isFollowed = leading !== undefined && network.requests.follow?.(requestId, () => onNews?.(order.origin), leading) === true
        const afterMs = isFollowed ? Math.max(FOLLOWED_POLL_MS, config.pollIntervalMs) : config.pollIntervalMs
        return wait('AwaitingConsensus', `The request is in final block ${outcome.blockNumber}. ${why}`, afterMs)
      }
      if (body.requestId !== requestId || body.externalReference !== order.externalReference || !sameHex(body.pubkey, validator.pubkey))
        throw stall(
          'VerificationFailed',
          'What the staking API has as this request is for another resource or validator: what became of this one is not known.',
        )
      if (status === 'cancelled' || status === 'failed')
        throw stall(
          status === 'cancelled' ? 'RequestCancelled' : 'RequestMissing',
          `The staking API has request ${requestId} as ${status}, but transaction ${outcome.hash} has made it, and is final. What the consensus layer makes of it is not told; look at the validator.`,
        )
      if (status !== 'confirmed' || body.transaction.hash === undefined || !sameHex(body.transaction.hash, outcome.hash))
        throw undecided('The staking API has not seen it there yet.')
      if (consensus.status === 'pending') throw undecided(pendingText(requestId, consensus.reason))
      if (consensus.status === 'accepted') return { consensus: acceptedOf(body) }
      const [rule, ...others] = new Set(
        [...(consensus.reason ?? '').matchAll(/(?:^|; )([a-z][a-z0-9-]{0,63}): /g)].map(([, code = '']) => code).filter(isKnownRule),
      )
      if (rule === undefined)
        throw undecided(
          'The staking API says that the consensus layer has dropped it, and names no rule that this operator knows: that proves nothing, as a request may still wait in its contract’s queue. Look at the validator before anything is asked again.',
        )
      return { consensus: { status: 'Dropped', rules: [rule, ...others.slice(0, 15)] } }
    },

    undoRequest: createUndo(deps, targets, service, nameOf),
  }

  const legacy = requestKindNames.map((name) => createLegacyRequests(name, deps, targets, service))
  return { effects: noting(effects, turns.note), requests: kind, legacy }
}

/** The staking API's own words are not copied: they are read there. */
const pendingText = (requestId: string, reason: string | undefined): string =>
  reason === undefined
    ? 'The consensus layer has not decided on it yet.'
    : `The consensus layer has not decided on it yet, or it can't be told: the staking API gives its reason with request ${requestId}.`

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
