import type { StakingSigner } from '../../../resources/staking-signer.ts'
import type { StakingTransactionSpec } from '../../../resources/staking-transaction.ts'
import type { EthereumNetwork } from '../../ports.ts'
import type { TransactionKind } from '../../transactions/kind.ts'
import { createRequestAdmission } from './admission.ts'
import { createRequestRecords } from './records.ts'
import { calldataOf, type RequestBody, requestTypes } from './request-type.ts'
import { type RequestService, typeOf } from './service.ts'
import type { FoundValidator, RequestOrder } from './steps.ts'
import type { RequestTargets, ValidatorRequestDeps } from './target.ts'
import type { Turns } from './turn.ts'
import { createRequestWitnesses } from './witnesses.ts'

/** A request costs some 100,000 gas: three slots of the contract's queue, its counters, a log. Far above that it is not one. */
const MAX_REQUEST_GAS = 1_000_000n
/** EIP-2929, EIP-2200: what a slot costs more when it is new. The node's estimate may have met slots that were used before, and the block finds new ones. */
const NEW_SLOT = 17_100n
const QUEUE_SLOTS = 4n
export const requestGasLimit = (estimate: bigint): bigint => (estimate * 12n) / 10n + QUEUE_SLOTS * NEW_SLOT

/** What is to be written down before a request is signed. The value is left open: the contract's fee moves. */
export function requestSpec(
  order: RequestOrder,
  validator: FoundValidator,
  body: RequestBody,
  network: EthereumNetwork,
  signer: StakingSigner,
  finalBlock: bigint,
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
    apiId: body.requestId,
    owner: { kind, namespace, name, originUid: uid },
    generation: 0,
    signer: signer.metadata.name,
    from: signer.spec.address,
    call: { to: type.contract, data: calldataOf(type, order, validator.pubkey) },
    // Nothing of it was sent before the staking API had the request, nor before what is final now.
    madeAtBlock: Math.max(0, Math.min(Number(finalBlock), body.fee.quotedAtBlock)),
  }
}

/** What the log asks of exits and withdrawals before it signs, sends and concludes. */
export function createRequestKind(
  deps: ValidatorRequestDeps,
  targets: RequestTargets,
  service: RequestService,
  turns: Turns,
): TransactionKind {
  const records = createRequestRecords(deps, targets)
  return {
    purposes: Object.values(requestTypes).map(({ purpose }) => purpose),
    what: 'The request',
    gasLimit: requestGasLimit,
    maxGas: MAX_REQUEST_GAS,
    // A request is reverted when the fee has risen in its block: nothing was made.
    remakeAfterRevert: true,
    keepsRecords: false,
    ...createRequestAdmission(targets, records, service, turns),
    ...createRequestWitnesses(deps.log, records),
  }
}
