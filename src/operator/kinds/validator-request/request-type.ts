import type { Address, Hash, Hex } from '../../../chains/ethereum/chain.ts'
import { encodeRequestCalldata, type ValidatorRequest, withdrawalRequestContract } from '../../../chains/ethereum/requests.ts'
import type { ExitRequestBody, WithdrawalRequestBody } from '../../../contract/schemas/ethereum-requests.ts'
import { AmountError, type Gwei, gwei, parseInteger } from '../../../lib/amounts.ts'
import type { Pubkey } from '../../../lib/chain-types.ts'
import { stall } from '../../engine/verdict.ts'
import type { SentBy, ValidatorRequestsApi } from '../../ports.ts'
import { type RequestKind, type RequestKindName, type RequestTerms, requestKinds } from './request-kind.ts'

export type RequestBody = ExitRequestBody | WithdrawalRequestBody

/** A type of request to the consensus layer: everything in which one differs from another. */
export interface RequestType extends RequestKind {
  /** The contract that takes it. */
  readonly contract: Address
  /** @throws Halt where the terms are not ones that it can carry */
  requestOf(terms: RequestTerms, pubkey: Pubkey): ValidatorRequest
  /** Whether the staking API's answer has these terms. */
  hasTerms(body: RequestBody, terms: RequestTerms): boolean
  create(
    api: ValidatorRequestsApi,
    given: {
      readonly idempotencyKey: string
      readonly externalReference: string
      readonly pubkey: Pubkey
      readonly terms: RequestTerms
    },
    signal: AbortSignal,
  ): Promise<RequestBody>
  read(api: ValidatorRequestsApi, pubkey: Pubkey, id: string, signal: AbortSignal): Promise<RequestBody>
  /** Those that were made under an external reference. None where the API does not list them. */
  named(api: ValidatorRequestsApi, pubkey: Pubkey, externalReference: string, signal: AbortSignal): Promise<readonly RequestBody[]>
  /** Reports the hash of its transaction. @returns ms after which to report it again, where the API does not see the transaction yet */
  submit(
    api: ValidatorRequestsApi,
    pubkey: Pubkey,
    id: string,
    hash: Hash,
    signal: AbortSignal,
    sentBy: SentBy | undefined,
  ): Promise<number | undefined>
  /** Takes it back before it is submitted. An API of the bare interface knows no such thing for withdrawals. */
  cancel(api: ValidatorRequestsApi, pubkey: Pubkey, id: string, signal: AbortSignal): Promise<unknown>
}

const exit: RequestType = {
  ...requestKinds.ValidatorExit,
  contract: withdrawalRequestContract,
  requestOf: (_terms, pubkey) => ({ kind: 'exit', pubkey }),
  hasTerms: (body) => !('amountGwei' in body),
  create: (api, { idempotencyKey, externalReference, pubkey }, signal) =>
    api.createExitRequest({ idempotencyKey, externalReference, pubkey }, signal),
  read: (api, pubkey, id, signal) => api.exitRequest(pubkey, id, signal),
  named: async (api, pubkey, reference, signal) => (await api.exitRequestsNamed?.(pubkey, reference, signal)) ?? [],
  submit: async (api, pubkey, id, hash, signal, sentBy) => {
    await api.submitExitRequest(pubkey, id, hash, signal, sentBy)
    return undefined
  },
  cancel: (api, pubkey, id, signal) => api.cancelExitRequest(pubkey, id, signal),
}

/** More than 0, which would be a full exit. @throws Halt */
function amountOf({ amountGwei }: RequestTerms): Gwei {
  try {
    const amount = parseInteger(amountGwei ?? '', 'an amount in gwei')
    if (amount === 0n) throw new AmountError('0 gwei would be a full exit: create a ValidatorExit for that')
    return gwei(amount)
  } catch (error) {
    if (error instanceof AmountError) throw stall('InvalidSpec', `spec.amountEth or spec.amountGwei: ${error.message}.`, false)
    throw error
  }
}

const withdrawal: RequestType = {
  ...requestKinds.ValidatorWithdrawal,
  contract: withdrawalRequestContract,
  requestOf: (terms, pubkey) => ({ kind: 'withdrawal', pubkey, amountGwei: amountOf(terms) }),
  hasTerms: (body, terms) => 'amountGwei' in body && body.amountGwei === amountOf(terms),
  create: (api, { idempotencyKey, externalReference, pubkey, terms }, signal) =>
    api.createWithdrawalRequest({ idempotencyKey, externalReference, pubkey, amountGwei: amountOf(terms) }, signal),
  read: (api, pubkey, id, signal) => api.withdrawalRequest(pubkey, id, signal),
  named: async (api, pubkey, reference, signal) => (await api.withdrawalRequestsNamed?.(pubkey, reference, signal)) ?? [],
  submit: async (api, pubkey, id, hash, signal, sentBy) =>
    (await api.submitWithdrawalRequest(pubkey, id, hash, signal, sentBy)).retryAfterMs,
  cancel: (api, pubkey, id, signal) => api.cancelWithdrawalRequest(pubkey, id, signal),
}

export const requestTypes: Readonly<Record<RequestKindName, RequestType>> = { ValidatorExit: exit, ValidatorWithdrawal: withdrawal }

export const typeOf = ({ origin }: { readonly origin: { readonly kind: RequestKindName } }): RequestType => requestTypes[origin.kind]

/** The type that a resource of this kind asks for. */
export const requestTypeOf = (kind: string): RequestType | undefined => Object.values(requestTypes).find((type) => type.kind === kind)

export const calldataOf = (type: RequestType, terms: RequestTerms, pubkey: Pubkey): Hex =>
  encodeRequestCalldata(type.requestOf(terms, pubkey))
