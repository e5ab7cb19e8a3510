import type { ChainReceipt, DepositLog, Hex, Pubkey } from '../../../chains/ethereum/chain.ts'
import { decodeDepositLog, depositEventTopic, depositMessageRoot, encodeDepositCalldata } from '../../../chains/ethereum/deposit.ts'
import { rememberingSignatures, verifyDeposit } from '../../../chains/ethereum/verify-deposit.ts'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import { type Gwei, gweiToWei } from '../../../lib/amounts.ts'
import { sameHex } from '../../../lib/hex.ts'
import { stall } from '../../engine/verdict.ts'
import type { EthereumNetwork } from '../../ports.ts'
import type { DepositRequests } from './request.ts'
import type { DepositPlan, StakeRequest } from './steps.ts'

export const evidenceOf = ({ stakeId, depositData }: EthereumStakeBody) => {
  const { pubkey, withdrawalCredentials, amountGwei, signature, depositDataRoot } = depositData
  return { stakeId, depositData: { pubkey, withdrawalCredentials, amountGwei: amountGwei.toString(), signature, depositDataRoot } }
}

export const fieldsOf = ({ depositData }: { depositData: DepositPlan['depositData'] }) => ({
  pubkey: depositData.pubkey,
  withdrawalCredentials: depositData.withdrawalCredentials,
  amountGwei: BigInt(depositData.amountGwei) as Gwei,
  signature: depositData.signature,
  depositDataRoot: depositData.depositDataRoot,
})

export const calldataOf = (plan: Pick<DepositPlan, 'depositData'>): Hex => encodeDepositCalldata(fieldsOf(plan))

/** Whether a receipt holds the DepositEvent of this very deposit. */
export function paysDeposit(receipt: ChainReceipt, fields: DepositFieldsRead, { config }: Pick<EthereumNetwork, 'config'>): boolean {
  return receipt.logs
    .filter((log) => sameHex(log.address, config.depositContractAddress) && log.topics[0] === depositEventTopic)
    .map(decodeDepositLog)
    .some(
      (log) =>
        sameHex(log.pubkey, fields.pubkey) &&
        log.amountGwei === fields.amountGwei &&
        sameHex(log.withdrawalCredentials, fields.withdrawalCredentials) &&
        sameHex(log.signature, fields.signature),
    )
}
export type DepositFieldsRead = ReturnType<typeof fieldsOf>

/** The first deposit that the chain has with a public key and these credentials: others' under other credentials are no payment of it. @throws ChainError */
export const depositOnChain = async (
  { chain }: Pick<EthereumNetwork, 'chain'>,
  { pubkey, withdrawalCredentials }: { readonly pubkey: Pubkey; readonly withdrawalCredentials: string },
  signal: AbortSignal,
): Promise<DepositLog | undefined> =>
  (await chain.depositsFor(pubkey, signal)).find((one) => sameHex(one.withdrawalCredentials, withdrawalCredentials))

/** What is known of a deposit, from its data and from the chain. */
export type DepositEvidence = ReturnType<typeof createDepositEvidence>

export function createDepositEvidence({ expectedOf }: DepositRequests) {
  function refuse(
    mismatches: readonly { readonly code: string; readonly message: string }[],
    whose: string,
    reason: 'VerificationFailed' | 'AdoptionMismatch' = 'VerificationFailed',
  ): void {
    if (mismatches.length === 0) return
    throw stall(
      reason,
      `${whose} does not match this resource's spec: ${mismatches.map((mismatch) => mismatch.message).join('; ')}. Nothing was signed. ${reason === 'AdoptionMismatch' ? 'Name a stake that matches, or leave spec.adopt out.' : 'Do not work around this: find out why the staking API answers so.'}`,
    )
  }

  const isSigned = rememberingSignatures()

  /** Everything that must hold of a deposit at every signature, from the spec and the network's constants. What is to be signed is checked, not trusted. */
  function verifyFields(request: StakeRequest, fields: DepositFieldsRead, { config }: Pick<EthereumNetwork, 'config'>): void {
    const { chainId, depositContractAddress, genesisForkVersion } = config
    const depositData = {
      ...fields,
      depositMessageRoot: depositMessageRoot(fields),
      forkVersion: genesisForkVersion,
      depositContractAddress,
      chainId,
    }
    const unsignedTransaction = {
      chainId,
      to: depositContractAddress,
      data: encodeDepositCalldata(fields),
      valueWei: gweiToWei(fields.amountGwei),
    }
    refuse(verifyDeposit({ expected: expectedOf(request, { config }), depositData, unsignedTransaction }, isSigned), 'The deposit data')
  }

  return { refuse, verifyFields, isSigned }
}
