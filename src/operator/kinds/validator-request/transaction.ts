import { maxRequestGas, requestGasLimit } from '../../../chains/ethereum/deposit-gas.ts'
import type { TransactionKind } from '../../transactions/kind.ts'
import { createRequestAdmission } from './admission.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import { createRequestRecords } from './records.ts'
import { requestTypes } from './request-type.ts'
import type { RequestService } from './service.ts'
import type { RequestTargets } from './target.ts'
import type { Turns } from './turn.ts'
import { createRequestWitnesses } from './witnesses.ts'

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
    ...createRequestAdmission(deps.log, targets, records, service, turns),
    ...createRequestWitnesses(deps.log, records),
  }
}
