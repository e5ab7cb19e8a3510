import type { Hex } from '../../../chains/ethereum/chain.ts'
import { decodeRequestCalldata, RequestEncodingError, type ValidatorRequest } from '../../../chains/ethereum/requests.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { EthereumNetwork } from '../../ports.ts'
import type { LegacyKind } from '../../transactions/legacy/kind.ts'
import type { ValidatorRequestDeps, ValidatorRequestResource } from './deps.ts'
import { requestSpec } from './records.ts'
import type { RequestKindName } from './request-kind.ts'
import { type RequestBody, requestTypes } from './request-type.ts'
import type { RequestService } from './service.ts'
import { type FoundValidator, orderOf, type RequestOrder } from './steps.ts'
import { type RequestTargets, validatorIn } from './target.ts'

/** Exits or withdrawals that the version before the log has asked for. */
export function createLegacyRequests(
  kind: RequestKindName,
  deps: Pick<ValidatorRequestDeps, 'stake'>,
  { networkOf }: Pick<RequestTargets, 'networkOf'>,
  service: Pick<RequestService, 'read' | 'post'>,
): LegacyKind {
  const type = requestTypes[kind]

  const named = ({ spec, status, metadata }: ValidatorRequestResource): FoundValidator | undefined =>
    status?.validator ?? validatorIn({ spec, namespace: metadata.namespace ?? '' }, deps.stake)

  /** The request of a resource at the staking API: the one that its status names, if it is its own, or the one that its creation gives. */
  async function requestOf(
    order: RequestOrder,
    validator: FoundValidator,
    requestId: string | undefined,
    network: EthereumNetwork,
    signal: AbortSignal,
  ): Promise<RequestBody | undefined> {
    const isOwn = (body: RequestBody): boolean =>
      body.externalReference === order.externalReference && sameHex(body.pubkey, validator.pubkey) && type.hasTerms(body, order)
    const orNone = (error: unknown): undefined => {
      // Refused by what it is: there is none that is this resource's. Whoever may not ask, or asks too often, has had no answer.
      if (!(error instanceof StakingApiError) || ![400, 404, 409, 422].includes(error.status ?? 0)) throw error
    }
    const body = requestId === undefined ? undefined : await service.read(order, validator, requestId, network, signal).catch(orNone)
    if (body !== undefined && isOwn(body)) return body
    const made = await service.post(order, validator, network, signal).catch(orNone)
    return made !== undefined && isOwn(made) ? made : undefined
  }

  return {
    kind,
    isNamedByOwner: type.purpose === 'Withdrawal',
    networkOf: (resource) => named(resource as ValidatorRequestResource)?.network,

    async find(resource, { uid, namespace, name }, signer, signal) {
      const request = resource as ValidatorRequestResource
      const validator = named(request)
      if (validator === undefined) return undefined
      const order = orderOf({ origin: { uid, namespace, name, kind }, spec: request.spec })
      const network = networkOf(validator.network)
      const body = await requestOf(order, validator, request.status?.requestId, network, signal)
      if (body === undefined) return undefined
      const spec = requestSpec(order, validator, body, network, signer, BigInt(body.fee.quotedAtBlock))
      return { name: type.nameOf(order.origin, network.config.chainId, validator.pubkey), spec }
    },

    ofCall(owner, { to, data }, { config }, signer) {
      if (to === undefined || !sameHex(to, type.contract)) return undefined
      let asked: ValidatorRequest
      try {
        asked = decodeRequestCalldata(data as Hex)
      } catch (error) {
        if (error instanceof RequestEncodingError) return undefined
        throw error
      }
      if ((asked.kind === 'exit') !== (type.purpose === 'Exit')) return undefined
      const terms = asked.kind === 'exit' ? {} : { amountGwei: asked.amountGwei.toString() }
      const spec = {
        chain: 'Ethereum' as const,
        network: config.name,
        chainId: config.chainId,
        purpose: type.purpose,
        subject: asked.pubkey,
        amount: type.amount(terms),
        owner,
        generation: 0,
        signer: signer.metadata.name,
        from: signer.spec.address,
        call: { to, data },
      }
      return { name: type.nameOf(owner, config.chainId, asked.pubkey), spec }
    },
  }
}
