import type { ChainReceipt, Hex } from '../../../chains/ethereum/chain.ts'
import { decodeDepositLog, depositEventTopic, depositMessageRoot, encodeDepositCalldata } from '../../../chains/ethereum/deposit.ts'
import { verifyDeposit } from '../../../chains/ethereum/verify-deposit.ts'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import { type Gwei, gweiToWei } from '../../../lib/amounts.ts'
import { sameHex } from '../../../lib/hex.ts'
import { stall } from '../../engine/verdict.ts'
import type { EthereumNetwork } from '../../ports.ts'
import type { DepositRequests, EthereumStakeDeps } from './request.ts'
import type { DepositPlan } from './steps.ts'

export const evidenceOf = ({ stakeId, depositData }: EthereumStakeBody) => {
  const { pubkey, withdrawalCredentials, amountGwei, signature, depositDataRoot } = depositData
  return { stakeId, depositData: { pubkey, withdrawalCredentials, amountGwei: amountGwei.toString(), signature, depositDataRoot } }
}

export const fieldsOf = ({ depositData }: { depositData: DepositPlan['depositData'] }) => ({
  pubkey: depositData.pubkey as Hex,
  withdrawalCredentials: depositData.withdrawalCredentials as Hex,
  amountGwei: BigInt(depositData.amountGwei) as Gwei,
  signature: depositData.signature as Hex,
  depositDataRoot: depositData.depositDataRoot as Hex,
})

export const calldataOf = (plan: DepositPlan): Hex => encodeDepositCalldata(fieldsOf(plan))

/** Whether a receipt holds the DepositEvent of this very deposit. */
export function paysDeposit(receipt: ChainReceipt, plan: DepositPlan, network: EthereumNetwork): boolean {
  const fields = fieldsOf(plan)
  return receipt.logs
    .filter((log) => sameHex(log.address, network.config.depositContractAddress) && log.topics[0] === depositEventTopic)
    .map(decodeDepositLog)
    .some(
      (log) =>
        sameHex(log.pubkey, fields.pubkey) &&
        log.amountGwei === fields.amountGwei &&
        sameHex(log.withdrawalCredentials, fields.withdrawalCredentials) &&
        sameHex(log.signature, fields.signature),
    )
}

/** What is known of a deposit, from its data and from the chain. */
export type DepositEvidence = ReturnType<typeof createDepositEvidence>

export function createDepositEvidence(deps: EthereumStakeDeps, { expectedOf }: DepositRequests) {
  function refuse(
    mismatches: readonly { readonly code: string; readonly message: string }[],
    whose: string,
    reason: 'VerificationFailed' | 'AdoptionMismatch' = 'VerificationFailed',
  ): void {
    if (mismatches.length === 0) return
    deps.onRefusal?.('VerificationFailed')
    throw stall(
      reason,
      `${whose} does not match this resource's spec: ${mismatches.map((mismatch) => mismatch.message).join('; ')}. Nothing was signed. ${reason === 'AdoptionMismatch' ? 'Name a stake that matches, or leave spec.adopt out.' : 'Do not work around this: find out why the staking API answers so.'}`,
    )
  }

  /** Everything that must hold of a deposit at every signature, from the spec and the network's constants; status is checked, not trusted. */
  function verifyFields(plan: DepositPlan, { config }: Pick<EthereumNetwork, 'config'>): void {
    const fields = fieldsOf(plan)
    const { chainId, depositContractAddress, genesisForkVersion } = config
    const depositData = {
      ...fields,
      depositMessageRoot: depositMessageRoot(fields),
      forkVersion: genesisForkVersion,
      depositContractAddress,
      chainId,
    }
    const unsignedTransaction = { chainId, to: depositContractAddress, data: calldataOf(plan), valueWei: gweiToWei(fields.amountGwei) }
    refuse(
      verifyDeposit({ expected: expectedOf(plan.request, { config }), depositData, unsignedTransaction }),
      'The deposit data in status',
    )
  }

  /** Deposits of this key on the chain. Any that this resource's own transaction didn't make means that the key must not be paid. */
  async function ownDeposit(plan: DepositPlan, network: EthereumNetwork, known: ReadonlySet<string>, signer: string, signal: AbortSignal) {
    const deposits = await network.chain.depositsFor(plan.depositData.pubkey as Hex, signal)
    if (deposits.length === 0) return undefined
    const [first, ...more] = deposits
    const fields = fieldsOf(plan)
    if (
      first !== undefined &&
      more.length === 0 &&
      first.amountGwei === fields.amountGwei &&
      sameHex(first.withdrawalCredentials, fields.withdrawalCredentials) &&
      sameHex(first.signature, fields.signature)
    ) {
      const transaction = await network.chain.transaction(first.transactionHash, signal)
      // Found by its hash, or by its content: the very deposit of this stake, paid by this very signer.
      if (
        transaction &&
        (known.has(first.transactionHash.toLowerCase()) ||
          (sameHex(transaction.from, signer) && sameHex(transaction.data, calldataOf(plan))))
      )
        return transaction
    }
    deps.onRefusal?.('PubkeyAlreadyDeposited')
    throw stall(
      'PubkeyAlreadyDeposited',
      `The deposit contract has ${deposits.length === 1 ? 'a deposit' : `${deposits.length} deposits`} for this public key that this resource did not make (transaction ${first?.transactionHash}). Paying it again would top up a validator whose withdrawal address others may have fixed. Nothing was signed. Find out who made that deposit; to stake, delete this resource and create one under another name: it gets a key of its own.`,
    )
  }

  return { refuse, verifyFields, ownDeposit }
}
