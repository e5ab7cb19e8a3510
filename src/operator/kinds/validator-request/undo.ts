import { isGone, StakingApiError } from '../../../contract/client-error.ts'
import type { Perform } from '../../engine/step.ts'
import { Halt, stall, wait } from '../../engine/verdict.ts'
import type { Visit } from '../../engine/visit.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { mayBeHandedOver } from '../../transactions/protocol.ts'
import { recordOf } from '../../transactions/store.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import { foundBy, knowsOf, ownRequest } from './evidence.ts'
import { type RequestBody, typeOf } from './request-type.ts'
import type { RequestService } from './service.ts'
import type { FoundValidator, RequestOrder, ValidatorRequestEffects } from './steps.ts'
import type { RequestTargets } from './target.ts'

/** Takes a deleted resource's request back at the staking API, as long as nothing of it was submitted. */
export function createUndo(
  deps: ValidatorRequestDeps,
  { networkOf, targetOf }: RequestTargets,
  service: RequestService,
  nameOf: (order: RequestOrder, validator: FoundValidator) => string,
): Perform<ValidatorRequestEffects>['undoRequest'] {
  const { log } = deps

  /** The API has a hash for it: nothing of it may land any more, or what the log has of it is watched. @throws Halt */
  async function afterSubmission(
    body: RequestBody | undefined,
    order: RequestOrder,
    validator: FoundValidator,
    signal: AbortSignal,
  ): Promise<{ cancelled: true }> {
    const hash = body?.transaction.hash
    if (body?.status === 'awaiting_submission')
      throw stall(
        'UnknownSubmission',
        `The staking API does not cancel request ${body.requestId}: by the chain, the validator's owner has asked for the same in a transaction that nobody has reported. Look for it before you let this resource go.`,
      )
    if (body === undefined || hash === undefined || body.status === 'cancelled' || body.status === 'failed') return { cancelled: true }
    const record = await log.read(nameOf(order, validator), signal)
    if (record === undefined || !knowsOf(record, hash))
      throw stall(
        'UnknownSubmission',
        `The staking API was told of transaction ${hash} for this request, and the log knows nothing of it: it may still land. Look for it before you let this resource go.`,
      )
    if (!mayBeHandedOver(recordOf(record)))
      throw wait('AwaitingFinality', `Transaction ${hash} of this request was reported and may still land: it is watched.`, 2_000)
    return { cancelled: true }
  }

  /**
   * The visit that made the request may have ended before it was written down, or status was wiped. It is looked for by its name; of an API that doesn't list,
   * and where status or the log tell that one may be there, it is made once more, and is the same, or made to be cancelled.
   * @param isSeen status names its validator
   */
  async function madeBefore(
    order: RequestOrder,
    validator: FoundValidator,
    isSeen: boolean,
    network: EthereumNetwork,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const mayBeThere = isSeen || ownRequest(log, order.origin) !== undefined
    const named = await typeOf(order).named(network.requests, validator.pubkey, order.externalReference, signal)
    const found = named.find(({ status }) => status === 'awaiting_submission')
    if (found !== undefined || !mayBeThere) return found?.requestId
    try {
      deps.assertMayAct()
      return (await service.post(order, validator, network, signal)).requestId
    } catch (error) {
      if (!(error instanceof StakingApiError)) throw error
      if (error.code === 'reference-exists') return error.existingId
      if (error.code === 'validation-failed' || error.code === 'invalid-request' || isGone(error)) return undefined
      throw error
    }
  }

  /** The validator of a resource whose status names none: where there is none (yet), nothing was asked for. */
  async function targetNow(order: RequestOrder, visit: Visit, signal: AbortSignal): Promise<FoundValidator | undefined> {
    try {
      return foundBy(await targetOf(order, visit, signal))
    } catch (error) {
      if (!(error instanceof Halt) || (error.verdict.kind !== 'stall' && error.verdict.kind !== 'wait')) throw error
      return undefined
    }
  }

  return async ({ order, validator: seen, requestId: given }, visit, signal) => {
    const undone = { cancelled: true } as const
    const type = typeOf(order)
    const validator = seen ?? (await targetNow(order, visit, signal))
    if (validator === undefined) return undone
    const network = networkOf(validator.network)
    const look = (requestId: string) =>
      service.read(order, validator, requestId, network, signal).catch((error: unknown) => {
        if (isGone(error)) return undefined
        throw error
      })
    const isOwn = async (requestId: string) => (await look(requestId))?.externalReference === order.externalReference
    // Where status names another's, somebody changed it: that one is left alone, and its own is looked for.
    const named = given !== undefined && (await isOwn(given)) ? given : undefined
    const requestId = named ?? (await madeBefore(order, validator, seen !== undefined, network, signal))
    if (requestId === undefined || (named === undefined && !(await isOwn(requestId)))) return undone
    try {
      await type.cancel(network.requests, validator.pubkey, requestId, signal)
      return undone
    } catch (error) {
      if (isGone(error)) return undone
      if (!(error instanceof StakingApiError)) throw error
      // An API that knows no such thing, or sees it sent: what the log has of it is watched, and it has nothing.
      if (!type.staysUntilCancelled && (error.code === 'invalid-state' || error.status === 405 || error.status === 501)) return undone
      if (error.code !== 'invalid-state') throw error
    }
    return afterSubmission(await look(requestId), order, validator, signal)
  }
}
