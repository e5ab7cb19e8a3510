import { maxRequestGas, requestGasLimit } from '../../../chains/ethereum/deposit-gas.ts'
import type { StakingTransactionSpec } from '../../../resources/staking-transaction.ts'
import type { EthereumNetwork } from '../../ports.ts'
import type { TransactionKind } from '../../transactions/kind.ts'
import type { LegacySigner } from '../../transactions/legacy/kind.ts'
import { createRequestAdmission } from './admission.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import { createRequestRecords } from './records.ts'
import { calldataOf, type RequestBody, requestTypes, typeOf } from './request-type.ts'
import type { RequestService } from './service.ts'
import type { FoundValidator, RequestOrder } from './steps.ts'
import type { RequestTargets } from './target.ts'
import type { Turns } from './turn.ts'
import { createRequestWitnesses } from './witnesses.ts'

/** What is to be written down before a request is signed. The value is left open: the contract's fee moves. */
export function requestSpec(
  order: RequestOrder,
  validator: FoundValidator,
  body: RequestBody,
  network: EthereumNetwork,
  signer: LegacySigner,
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
    maxGas: maxRequestGas,
    // A request is reverted when the fee has risen in its block: nothing was made.
    remakeAfterRevert: true,
    keepsRecords: false,
    ...createRequestAdmission(targets, records, service, turns),
    ...createRequestWitnesses(deps.log, records),
  }
}
