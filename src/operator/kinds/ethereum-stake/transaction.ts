import { depositGasLimit, maxDepositGas } from '../../../chains/ethereum/deposit-gas.ts'
import { gweiToWei } from '../../../lib/amounts.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { EthereumStake, EthereumStakeSpec } from '../../../resources/ethereum-stake.ts'
import { stall } from '../../engine/verdict.ts'
import type { Admission, TransactionKind } from '../../transactions/kind.ts'
import { assertOwnerAsks } from '../../transactions/owner.ts'
import type { RecordObject } from '../../transactions/store.ts'
import type { DepositEvidence } from './evidence.ts'
import { depositIn } from './records.ts'
import type { DepositRequests, EthereumStakeDeps } from './request.ts'
import { type StakeRequest, stakeRequestOf } from './steps.ts'
import { createDepositWitnesses } from './witnesses.ts'

/** What the log asks of deposits before it signs, sends and concludes. */
export function createDepositKind(
  deps: EthereumStakeDeps,
  { admittedSigner, capOf, networkOf, networkOfRecord }: DepositRequests,
  { verifyFields }: DepositEvidence,
): TransactionKind {
  async function requestOf(
    record: RecordObject,
    fresh: boolean,
    signal: AbortSignal,
  ): Promise<{ request: StakeRequest; spec: EthereumStakeSpec }> {
    const { kind, namespace, name } = record.spec.owner
    const stake = kind === 'EthereumStake' ? await deps.stake({ namespace, name }, fresh, signal) : undefined
    const origin = assertOwnerAsks(record, stake)
    const { spec } = stake as EthereumStake
    return { request: stakeRequestOf({ origin, spec }), spec }
  }

  async function mayBeSigned(record: RecordObject, fresh: boolean, signal: AbortSignal): Promise<Admission> {
    const { request, spec } = await requestOf(record, fresh, signal)
    const network = networkOf(request.network)
    if (network.config.chainId !== record.spec.chainId)
      throw stall(
        'WrongChain',
        `The deposit's transaction was made for chain id ${record.spec.chainId}, and network ${request.network} has chain id ${network.config.chainId} now. It is followed where it was made; nothing is signed.`,
      )
    const signer = await admittedSigner(request, signal, fresh)
    if (!sameHex(signer.spec.address, record.spec.from))
      throw stall(
        'SignerChanged',
        `StakingSigner ${signer.metadata.name} has address ${signer.spec.address} now, and the transaction was made for ${record.spec.from}. It is followed to its end; nothing is signed with another key before.`,
      )
    const fields = depositIn(record)
    verifyFields(request, fields, network)
    const { call } = record.spec
    if (
      call === undefined ||
      !sameHex(call.to, network.config.depositContractAddress) ||
      call.valueWei !== gweiToWei(fields.amountGwei).toString()
    )
      throw stall('VerificationFailed', `StakingTransaction ${record.metadata.name} does not pay the deposit contract. Nothing was signed.`)
    return { signer, feeCap: capOf(signer, spec.maxFeePerGasGwei) }
  }

  return {
    purposes: ['Deposit'],
    what: 'The deposit',
    gasLimit: depositGasLimit,
    maxGas: maxDepositGas,
    remakeAfterRevert: false,
    // The audit trail of what was staked, and what keeps a validator from being paid twice.
    keepsRecords: true,
    mayBeSigned,
    ...createDepositWitnesses(deps, networkOfRecord),

    async value(record) {
      const value = gweiToWei(depositIn(record).amountGwei)
      return { value, least: value }
    },
  }
}
