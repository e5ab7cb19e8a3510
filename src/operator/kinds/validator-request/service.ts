import type { Hex } from '../../../chains/ethereum/chain.ts'
import { encodeRequestCalldata, withdrawalRequestContract } from '../../../chains/ethereum/requests.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import type { ExitRequestBody, WithdrawalRequestBody } from '../../../contract/schemas/ethereum-requests.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { stall, wait } from '../../engine/verdict.ts'
import type { Visit } from '../../engine/visit.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { refusalOf } from './refusal.ts'
import type { FoundValidator, RequestOrder } from './steps.ts'
import type { RequestTargets, ValidatorRequestDeps } from './target.ts'

export type RequestBody = ExitRequestBody | WithdrawalRequestBody
export type RequestService = ReturnType<typeof createRequestService>

const isExit = ({ origin }: RequestOrder): boolean => origin.kind === 'ValidatorExit'
const isCode = (error: unknown, code: StakingApiError['code']): error is StakingApiError =>
  error instanceof StakingApiError && error.code === code
export const isGone = (error: unknown): boolean => error instanceof StakingApiError && error.status === 404

/** Requests at the staking API: made, found again, compared with the spec, told of transactions. */
export function createRequestService(deps: ValidatorRequestDeps, { requestOf, assertMaySend }: RequestTargets) {
  const { ledger } = deps

  const read = (
    order: RequestOrder,
    { pubkey }: FoundValidator,
    requestId: string,
    { requests }: EthereumNetwork,
    signal: AbortSignal,
  ): Promise<RequestBody> =>
    isExit(order) ? requests.exitRequest(pubkey as Hex, requestId, signal) : requests.withdrawalRequest(pubkey as Hex, requestId, signal)

  async function post(
    order: RequestOrder,
    { pubkey }: FoundValidator,
    { requests }: EthereumNetwork,
    signal: AbortSignal,
  ): Promise<RequestBody> {
    const request = requestOf(order, pubkey)
    const { idempotencyKey, externalReference } = order
    return request.kind === 'exit'
      ? requests.createExitRequest({ idempotencyKey, externalReference, pubkey: request.pubkey }, signal)
      : requests.createWithdrawalRequest(
          { idempotencyKey, externalReference, pubkey: request.pubkey, amountGwei: request.amountGwei },
          signal,
        )
  }

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
      throw (await refusalOf(error, order, validator, network, signal)) ?? error
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
      const own = ledger.find(order.signer, network.config.name, order.origin, requestOf(order, validator.pubkey).kind)
      // This very resource's: the key of its creation is forgotten, its transaction is not.
      if (own !== undefined && hash !== undefined && [...(own.earlierHashes ?? []), own.hash].some((known) => sameHex(known, hash)))
        return existing
    }
    throw stall(
      'AlreadyRequested',
      `The staking API has ${existingId === undefined ? 'a request' : `request ${existingId}`} for this namespace and name already${existing === undefined ? ', of another validator' : isSame(existing, order, validator) ? ` (${existing.status}${hash === undefined ? '' : `, transaction ${hash}`})` : ', for something else'}. Nothing was asked again. To ask once more, create a resource with another name.`,
    )
  }

  const isSame = (body: RequestBody, order: RequestOrder, { pubkey }: FoundValidator): boolean => {
    const request = requestOf(order, pubkey)
    return (
      sameHex(body.pubkey, pubkey) &&
      body.externalReference === order.externalReference &&
      (request.kind === 'exit' ? !('amountGwei' in body) : 'amountGwei' in body && body.amountGwei === request.amountGwei)
    )
  }

  /** What the service says of the request now: the one of this resource and no other. */
  async function current(
    order: RequestOrder,
    validator: FoundValidator,
    requestId: string,
    network: EthereumNetwork,
    visit: Visit,
    signal: AbortSignal,
  ): Promise<RequestBody> {
    const said = visit.get('request') as RequestBody | undefined
    if (said !== undefined) return said
    const body = await read(order, validator, requestId, network, signal).catch((error: unknown) => {
      if (!isGone(error)) throw error
      deps.onRefusal?.('VerificationFailed')
      throw stall(
        'VerificationFailed',
        `status.requestId is no request that the staking API has for this validator (404): somebody changed it, or the API has another account or database. Nothing was signed. Remove status.requestId: it is looked up again.`,
      )
    })
    visit.set('request', body)
    return body
  }

  /** Everything that must hold of the service's answer, from spec, network and signer. @throws Halt */
  function verify(
    body: RequestBody,
    { order, validator, requestId }: { readonly order: RequestOrder; readonly validator: FoundValidator; readonly requestId: string },
    { config }: EthereumNetwork,
    signer: StakingSigner,
  ): Hex {
    const { unsignedTransaction: call, fee } = body
    const data = encodeRequestCalldata(requestOf(order, validator.pubkey))
    const wrong = [
      body.requestId === requestId ? [] : ['it is another request'],
      body.externalReference === order.externalReference ? [] : ['it belongs to another resource: its external reference is another'],
      sameHex(body.pubkey, validator.pubkey) ? [] : ['the public key is another'],
      isSame({ ...body, externalReference: order.externalReference, pubkey: validator.pubkey as Hex }, order, validator)
        ? []
        : ['the amount is another'],
      sameHex(call.data, data) ? [] : ["the calldata is not the spec's public key and amount, byte for byte"],
      sameHex(call.to, withdrawalRequestContract) ? [] : [`the call does not go to the EIP-7002 contract ${withdrawalRequestContract}`],
      call.chainId === config.chainId ? [] : [`the call is not for chain id ${config.chainId}`],
      fee.feeWei >= 1n && call.valueWei >= fee.feeWei && call.valueWei <= 2n * fee.feeWei + 1_000n
        ? []
        : ["the call's value is not the contract's fee with some headroom"],
    ].flat()
    if (wrong.length > 0) {
      deps.onRefusal?.('VerificationFailed')
      throw stall(
        'VerificationFailed',
        `What the staking API has as this request does not match this resource's spec: ${wrong.join('; ')}. Nothing was signed. Do not work around this: find out why the staking API answers so.`,
      )
    }
    assertMaySend(signer, call.from)
    return data
  }

  async function report(
    order: RequestOrder,
    { pubkey }: FoundValidator,
    requestId: string,
    hash: string,
    network: EthereumNetwork,
    signal: AbortSignal,
  ): Promise<void> {
    const { requests } = network
    if (isExit(order)) {
      await requests.submitExitRequest(pubkey as Hex, requestId, hash as Hex, signal)
      return
    }
    const { retryAfterMs } = await requests.submitWithdrawalRequest(pubkey as Hex, requestId, hash as Hex, signal)
    if (retryAfterMs !== undefined)
      throw wait(
        'AwaitingFinality',
        `Transaction ${hash} was sent and reported; the staking API does not see it yet, and is told again.`,
        retryAfterMs,
      )
  }

  return { read, post, create, current, verify, report }
}
