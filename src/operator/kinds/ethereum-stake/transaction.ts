import { depositGasLimit, maxDepositGas } from '../../../chains/ethereum/deposit-gas.ts'
import { gweiToWei } from '../../../lib/amounts.ts'
import type { TransactionKind } from '../../transactions/kind.ts'
import { createDepositAdmission } from './admission.ts'
import type { DepositEvidence } from './evidence.ts'
import { depositIn } from './records.ts'
import type { DepositRequests, EthereumStakeDeps } from './request.ts'
import { createDepositWitnesses } from './witnesses.ts'

/** What the log asks of deposits before it signs, sends and concludes. */
export function createDepositKind(deps: EthereumStakeDeps, requests: DepositRequests, evidence: DepositEvidence): TransactionKind {
  return {
    purposes: ['Deposit'],
    what: 'The deposit',
    gasLimit: depositGasLimit,
    maxGas: maxDepositGas,
    remakeAfterRevert: false,
    // The audit trail of what was staked, and what keeps a validator from being paid twice.
    keepsRecords: true,
    ...createDepositAdmission(deps, requests, evidence),
    ...createDepositWitnesses(requests.networkOfRecord),

    async value(record) {
      const value = gweiToWei(depositIn(record).amountGwei)
      return { value, least: value }
    },
  }
}
