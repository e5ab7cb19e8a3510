import { isGone, StakingApiError } from '../../../contract/client-error.ts'
import { formatEth } from '../../../lib/amounts.ts'
import type { Hash } from '../../../lib/chain-types.ts'
import { sameHex } from '../../../lib/hex.ts'
import { stall } from '../../engine/verdict.ts'
import { type Visit, visitNote } from '../../engine/visit.ts'
import type { EthereumNetwork, SentBy } from '../../ports.ts'
import { attemptsOf, mayBeHandedOver } from '../../transactions/protocol.ts'
import { recordOf } from '../../transactions/store.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import { createPromised } from './promised.ts'
import { refusalOf } from './refusal.ts'
import { type RequestBody, typeOf } from './request-type.ts'
import type { Consensus, FoundValidator, RequestOrder } from './steps.ts'
import type { RequestTargets } from './target.ts'
import { createRequestVerification } from './verification.ts'

export type RequestService = ReturnType<typeof createRequestService>

/** What the staking API has said of the request. */
export const saidOf = visitNote<RequestBody>('request')

const paymentStates = { waiting: 'Waiting', paid: 'Paid', void: 'Void', unknown: 'Unknown' } as const

/** What the staking API says of an accepted request: its numbers, and none of its text. */
export function acceptedOf(body: RequestBody): Consensus & { readonly status: 'Accepted' } {
  const { payment } = body.consensus
  const queued = 'queuedDeposits' in body ? body.queuedDeposits : undefined
  return {
    status: 'Accepted',
    ...(payment === undefined
      ? {}
      : {
          payment: {
            state: paymentStates[payment.status],
            amountEth: formatEth(payment.amountGwei),
            withdrawableEpoch: payment.withdrawableEpoch,
            ...(payment.blockNumber === undefined ? {} : { blockNumber: payment.blockNumber }),
          },
        }),
    ...(queued === undefined
      ? {}
      : {
          queuedDeposits: {
            amountEth: formatEth(queued.amountGwei),
            ...(queued.creditedAfterEpoch === undefined ? {} : { creditedAfterEpoch: queued.creditedAfterEpoch }),
          },
        }),
  }
}

/** Whether the staking API says that more is paid than was asked for, which the consensus layer never does. */
export const paysTooMuch = ({ consensus: { payment } }: RequestBody, { amountGwei = '' }: Pick<RequestOrder, 'amountGwei'>): boolean =>
  payment !== undefined && /^[0-9]{1,20}$/.test(amountGwei) && payment.amountGwei > BigInt(amountGwei)

const isCode = (error: unknown, code: StakingApiError['code']): error is StakingApiError =>
  error instanceof StakingApiError && error.code === code

const read = (
  order: RequestOrder,
  { pubkey }: FoundValidator,
  requestId: string,
  { requests }: EthereumNetwork,
  signal: AbortSignal,
): Promise<RequestBody> => typeOf(order).read(requests, pubkey, requestId, signal)

const post = (
  order: RequestOrder,
  { pubkey }: FoundValidator,
  { requests }: EthereumNetwork,
  signal: AbortSignal,
): Promise<RequestBody> => {
  const { idempotencyKey, externalReference } = order
  return typeOf(order).create(requests, { idempotencyKey, externalReference, pubkey, terms: order }, signal)
}

const isSame = (body: RequestBody, order: RequestOrder, { pubkey }: FoundValidator): boolean =>
  sameHex(body.pubkey, pubkey) && body.externalReference === order.externalReference && typeOf(order).hasTerms(body, order)

/** Requests at the staking API: made, found again, compared with the spec. */
export function createRequestService(deps: ValidatorRequestDeps, targets: RequestTargets) {
  const { log } = deps
  const tellWhatIsOver = createPromised(deps)

  /** Makes the request, or finds the one that this resource has made. The same resource always gets the same one. */
  async function create(
    order: RequestOrder,
    validator: FoundValidator,
    network: EthereumNetwork,
    signal: AbortSignal,
  ): Promise<RequestBody> {
    try {
      return await post(order, validator, network, signal)
    } catch (error) {
      if (isCode(error, 'reference-exists')) return resume(error.existingId, order, validator, network, signal)
      const refusal = await refusalOf(error, order, validator, network, signal)
      if (refusal === undefined) throw error
      if (refusal.isForUnseen) await tellWhatIsOver(validator, network, signal)
      throw refusal.halt
    }
  }

  /** A request of an earlier resource of this name: it is taken over where it is the same one and nobody has sent it. */
  async function resume(
    existingId: string | undefined,
    order: RequestOrder,
    validator: FoundValidator,
    network: EthereumNetwork,
    signal: AbortSignal,
  ): Promise<RequestBody> {
    const existing =
      existingId === undefined
        ? undefined
        : await read(order, validator, existingId, network, signal).catch((error: unknown) => {
            if (isGone(error)) return undefined
            throw error
          })
    const hash = existing?.transaction.hash
    if (existing !== undefined && isSame(existing, order, validator)) {
      if (existing.status === 'awaiting_submission') return existing
      // The log knows what was reported: it is this very resource's, or nothing of it can land.
      if (hash !== undefined && (await isAccountedFor(hash, order, validator, network, signal))) return existing
    }
    throw stall(
      'AlreadyRequested',
      `The staking API has ${existingId === undefined ? 'a request' : `request ${existingId}`} for this namespace and name already${existing === undefined ? ', of another validator' : isSame(existing, order, validator) ? ` (${existing.status}${hash === undefined ? '' : `, transaction ${hash}`})` : ', for something else'}. Nothing was asked again. To ask once more, create a resource with another name.`,
    )
  }

  /** Whether it was made before, and nobody has sent it. What can't be asked now, or isn't listed by the API, is taken for not made. */
  async function isAsked(order: RequestOrder, validator: FoundValidator, network: EthereumNetwork, signal: AbortSignal): Promise<boolean> {
    try {
      const named = await typeOf(order).named(network.requests, validator.pubkey, order.externalReference, signal)
      return named.some((body) => body.status === 'awaiting_submission' && isSame(body, order, validator))
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof StakingApiError) return false
      throw error
    }
  }

  async function isAccountedFor(
    hash: Hash,
    order: RequestOrder,
    { pubkey }: FoundValidator,
    { config }: EthereumNetwork,
    signal: AbortSignal,
  ): Promise<boolean> {
    const record = await log.read(typeOf(order).nameOf(order.origin, config.chainId, pubkey), signal)
    if (record === undefined) return false
    const isKnown = attemptsOf(recordOf(record)).some((attempt) => sameHex(attempt.hash, hash))
    return isKnown && (record.spec.owner.originUid === order.origin.uid || mayBeHandedOver(recordOf(record)))
  }

  /** What the service says of the request now; undefined where it has none of this id (404). Asked once in a reconcile. */
  async function look(
    order: RequestOrder,
    validator: FoundValidator,
    requestId: string,
    network: EthereumNetwork,
    visit: Visit,
    signal: AbortSignal,
  ): Promise<RequestBody | undefined> {
    const said = saidOf.of(visit)
    if (said !== undefined) return said
    try {
      return saidOf.write(visit, await read(order, validator, requestId, network, signal))
    } catch (error) {
      if (isGone(error)) return undefined
      throw error
    }
  }

  /** Reports the hash of its transaction. @returns ms after which to report it again, where the API does not see the transaction yet */
  const submit = (
    order: RequestOrder,
    { pubkey }: FoundValidator,
    requestId: string,
    hash: Hash,
    { requests }: EthereumNetwork,
    signal: AbortSignal,
    sentBy?: SentBy,
  ): Promise<number | undefined> => typeOf(order).submit(requests, pubkey, requestId, hash, signal, sentBy)

  return { read, post, create, isAsked, look, verify: createRequestVerification(targets), submit }
}
