import { gweiToWei } from '../../../lib/amounts.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { EthereumStake, EthereumStakeSpec } from '../../../resources/ethereum-stake.ts'
import { stall } from '../../engine/verdict.ts'
import type { TransactionKind } from '../../transactions/kind.ts'
import { assertOwnerAsks } from '../../transactions/owner.ts'
import type { RecordObject } from '../../transactions/store.ts'
import type { DepositEvidence } from './evidence.ts'
import { depositIn } from './records.ts'
import type { DepositRequests, EthereumStakeDeps } from './request.ts'
import { type StakeRequest, stakeRequestOf } from './steps.ts'

/** Whether a deposit may be signed now, by whom, and at which price at most. */
export function createDepositAdmission(
  deps: Pick<EthereumStakeDeps, 'stake'>,
  { admittedSigner, capOf, networkOf }: DepositRequests,
  { verifyFields }: DepositEvidence,
): Pick<TransactionKind, 'mayBeSigned'> {
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

  return {
    async mayBeSigned(record, fresh, signal) {
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
        throw stall(
          'VerificationFailed',
          `StakingTransaction ${record.metadata.name} does not pay the deposit contract. Nothing was signed.`,
        )
      return { signer, feeCap: capOf(signer, spec.maxFeePerGasGwei) }
    },
  }
}
