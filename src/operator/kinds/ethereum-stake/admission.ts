import { gweiToWei } from '../../../lib/amounts.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { EthereumStake } from '../../../resources/ethereum-stake.ts'
import { stall } from '../../engine/verdict.ts'
import type { EthereumNetwork } from '../../ports.ts'
import type { TransactionKind } from '../../transactions/kind.ts'
import { assertOwnerAsks, doneInstead, isBegun, isSigned, otherPayments } from '../../transactions/owner.ts'
import type { RecordObject } from '../../transactions/store.ts'
import type { DepositEvidence } from './evidence.ts'
import { depositPlan } from './plan.ts'
import { depositIn } from './records.ts'
import type { DepositRequests, EthereumStakeDeps } from './request.ts'
import { type StakeRequest, stakeRequestOf } from './steps.ts'

/** Whether a deposit may be signed now, by whom, and at which price at most. */
export function createDepositAdmission(
  deps: Pick<EthereumStakeDeps, 'stake' | 'log'>,
  { admittedSigner, capOf, networkOf }: DepositRequests,
  { verifyFields }: DepositEvidence,
): Pick<TransactionKind, 'mayBeSigned'> {
  async function requestOf(
    record: RecordObject,
    fresh: boolean,
    signal: AbortSignal,
  ): Promise<{ request: StakeRequest; stake: EthereumStake }> {
    const { kind, namespace, name } = record.spec.owner
    const stake = kind === 'EthereumStake' ? await deps.stake({ namespace, name }, fresh, signal) : undefined
    const origin = assertOwnerAsks(record, stake)
    if (stake === undefined) throw new Error('the owner asks and is not there')
    return { request: stakeRequestOf({ origin, spec: stake.spec }), stake }
  }

  /**
   * That the record is of the one stake that its resource pays: one that has begun; before that, the stake that spec.adopt names now, or that was made for the
   * resource. What spec.adopt named before, or what was made before it named anything, is not paid too. @throws Halt
   */
  async function assertIsThePaidOne(
    record: RecordObject,
    request: StakeRequest,
    network: EthereumNetwork,
    fresh: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { apiId } = record.spec
    const before = await doneInstead(deps.log, record, fresh, signal)
    if (before !== undefined)
      throw stall(
        'AdoptionMismatch',
        `StakingTransaction ${before.metadata.name} is this resource's deposit. A resource pays one: ${record.metadata.name} is not signed.`,
      )
    if (isBegun(record) || apiId === undefined) return
    if (request.adoptStakeId !== undefined && request.adoptStakeId !== apiId)
      throw stall(
        'AdoptionMismatch',
        `spec.adopt.stakeId is ${request.adoptStakeId} now, and StakingTransaction ${record.metadata.name} was made for stake ${apiId}. It is not signed.`,
      )
    if (request.adoptStakeId !== undefined || otherPayments(deps.log, record).length === 0) return
    const { externalReference } = await network.api.ethereumStake(apiId, signal)
    if (externalReference !== undefined && externalReference !== request.externalReference)
      throw stall(
        'AdoptionMismatch',
        `spec.adopt does not name stake ${apiId} any more, for which StakingTransaction ${record.metadata.name} was made. It is not signed.`,
      )
  }

  return {
    async mayBeSigned(record, fresh, signal) {
      const { request, stake } = await requestOf(record, fresh, signal)
      const network = networkOf(request.network)
      if (network.config.chainId !== record.spec.chainId)
        throw stall(
          'WrongChain',
          `The deposit's transaction was made for chain id ${record.spec.chainId}, and network ${request.network} has chain id ${network.config.chainId} now. It is followed where it was made; nothing is signed.`,
        )
      await assertIsThePaidOne(record, request, network, fresh, signal)
      const signer = await admittedSigner(request, signal, { fresh, isSigned: isSigned(record) })
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
      const feeCap = capOf(signer, stake.spec.maxFeePerGasGwei)
      const plan = depositPlan(record.spec, { request, uid: stake.metadata.uid, feeCap })
      return { signer, feeCap, approvable: { plan, signers: [signer], metadata: stake.metadata } }
    },
  }
}
