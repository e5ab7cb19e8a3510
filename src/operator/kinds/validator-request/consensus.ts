import { sameHex } from '../../../lib/hex.ts'
import type { Perform } from '../../engine/step.ts'
import { stall, wait } from '../../engine/verdict.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import { asSeenBy, ownRequest } from './evidence.ts'
import type { LostRequests } from './lost.ts'
import { rulesIn } from './rules.ts'
import { acceptedOf, paysTooMuch, type RequestService, saidOf } from './service.ts'
import type { ValidatorRequestEffects } from './steps.ts'
import type { RequestTargets } from './target.ts'

/** What the staking API tells by itself is asked for less often, in ms. */
const FOLLOWED_POLL_MS = 60_000

/** Waits until the consensus layer has decided on a request that is final, by the staking API's word. */
export function createAwaitConsensus(
  deps: ValidatorRequestDeps,
  { networkOf }: Pick<RequestTargets, 'networkOf'>,
  service: Pick<RequestService, 'look'>,
  lost: Pick<LostRequests, 'madeAgain'>,
): Perform<ValidatorRequestEffects>['awaitConsensus'] {
  const { log } = deps

  return async (plan, visit, signal) => {
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
    if (body === undefined) {
      const again = await lost.madeAgain(order, validator, { requestId, hash: outcome.hash }, network, signal)
      if (again === 'fulfilled') return { consensus: { status: 'Accepted' } }
      throw again
    }
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
    if (paysTooMuch(body, order))
      throw stall(
        'VerificationFailed',
        `The staking API says that the consensus layer pays more for request ${requestId} than it asks for, which it never does: what became of it is not known. Look at the validator.`,
      )
    if (consensus.status === 'accepted') return { consensus: acceptedOf(body) }
    const [rule, ...others] = rulesIn(order.origin.kind, consensus.reason)
    if (rule === undefined)
      throw undecided(
        'The staking API says that the consensus layer has dropped it, and names no rule that this operator knows to drop such a request: that proves nothing, as a request may still wait in its contract’s queue. Look at the validator before anything is asked again.',
      )
    return { consensus: { status: 'Dropped', rules: [rule, ...others.slice(0, 15)] } }
  }
}

/** The staking API's own words are not copied: they are read there. */
const pendingText = (requestId: string, reason: string | undefined): string =>
  reason === undefined
    ? 'The consensus layer has not decided on it yet.'
    : `The consensus layer has not decided on it yet, or it can't be told: the staking API gives its reason with request ${requestId}.`
