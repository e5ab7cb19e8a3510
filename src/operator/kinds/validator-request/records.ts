import { decodeRequestCalldata, type ValidatorRequest } from '../../../chains/ethereum/requests.ts'
import type { ObjectMeta } from '../../../resources/meta.ts'
import type { StakingTransactionSpec } from '../../../resources/staking-transaction.ts'
import { stall } from '../../engine/verdict.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { pubkeyOf } from '../../transactions/ethereum-texts.ts'
import type { LegacySigner } from '../../transactions/legacy/kind.ts'
import { assertOwnerAsks } from '../../transactions/owner.ts'
import { openAttempts } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import { calldataOf, type RequestBody, type RequestType, requestTypeOf, typeOf } from './request-type.ts'
import { type FoundValidator, orderOf, type RequestOrder } from './steps.ts'
import type { RequestTargets } from './target.ts'

/** What is to be written down before a request is signed. The value is left open: the contract's fee moves. */
export const requestSpec = (
  order: RequestOrder,
  validator: FoundValidator,
  body: RequestBody,
  network: EthereumNetwork,
  signer: LegacySigner,
  sinceBlock: bigint,
): StakingTransactionSpec => ({
  ...unaskedSpec(order, validator, network, signer),
  apiId: body.requestId,
  // Nothing of it was sent before it was asked for, nor before the staking API had the request.
  madeAtBlock: Math.max(0, Math.min(Number(sinceBlock), body.fee.quotedAtBlock)),
})

/** The same of one that the staking API was not asked for yet. */
export function unaskedSpec(
  order: RequestOrder,
  validator: FoundValidator,
  network: EthereumNetwork,
  signer: LegacySigner,
): StakingTransactionSpec {
  const type = typeOf(order)
  const { kind, namespace, name, uid } = order.origin
  return {
    chain: 'Ethereum',
    network: network.config.name,
    chainId: network.config.chainId,
    purpose: type.purpose,
    subject: validator.pubkey.toLowerCase(),
    amount: type.amount(order),
    owner: { kind, namespace, name, originUid: uid },
    generation: 0,
    signer: signer.metadata.name,
    from: signer.spec.address,
    call: { to: type.contract, data: calldataOf(type, order, validator.pubkey) },
  }
}

/** What stands behind a record: its network, its resource, its request at the staking API. */
export type RequestRecords = ReturnType<typeof createRequestRecords>

/** The request that a record's own call makes, by its calldata. */
export const requestIn = ({ spec }: RecordObject): ValidatorRequest => decodeRequestCalldata(spec.call?.data ?? '0x')

/** The newest version that was made from the record, under the nonce in use. */
export const newestCall = (record: RecordObject) =>
  openAttempts(recordOf(record)).findLast(({ kind, found }) => kind === 'Call' && found !== true)

export function createRequestRecords(deps: ValidatorRequestDeps, { networkOfRecord }: RequestTargets) {
  function typeOfRecord({ metadata, spec }: RecordObject): RequestType {
    const type = requestTypeOf(spec.owner.kind)
    if (type === undefined || type.purpose !== spec.purpose)
      throw stall('VerificationFailed', `StakingTransaction ${metadata.name} is not for what its resource asks for. Nothing is signed.`)
    return type
  }
  /** Its resource, and what that asks for now. @throws Halt where it is gone, or asks no more */
  async function askedBy(
    record: RecordObject,
    fresh: boolean,
    signal: AbortSignal,
  ): Promise<{ readonly order: RequestOrder; readonly metadata: ObjectMeta }> {
    const { owner } = record.spec
    const { kind } = typeOfRecord(record)
    const resource = await deps.resource(kind, owner, fresh, signal)
    const origin = assertOwnerAsks(record, resource)
    if (resource === undefined) throw new Error('the owner asks and is not there')
    return { order: orderOf({ origin: { ...origin, kind }, spec: resource.spec }), metadata: resource.metadata }
  }
  const orderOfRecord = async (record: RecordObject, fresh: boolean, signal: AbortSignal): Promise<RequestOrder> =>
    (await askedBy(record, fresh, signal)).order

  /** Its request as the staking API has it; undefined where it was made without one. */
  async function requestOfRecord(record: RecordObject, signal: AbortSignal): Promise<RequestBody | undefined> {
    const { apiId } = record.spec
    if (apiId === undefined) return undefined
    return typeOfRecord(record).read(networkOfRecord(record).requests, pubkeyOf(record), apiId, signal)
  }

  return { networkOfRecord, typeOfRecord, askedBy, orderOfRecord, requestOfRecord }
}
