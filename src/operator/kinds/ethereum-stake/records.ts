import { decodeDepositCalldata } from '../../../chains/ethereum/deposit.ts'
import { formatEth, gwei, gweiToWei } from '../../../lib/amounts.ts'
import type { Pubkey } from '../../../lib/chain-types.ts'
import type { StakingTransactionSpec } from '../../../resources/staking-transaction.ts'
import type { EthereumNetwork } from '../../ports.ts'
import type { LegacySigner } from '../../transactions/legacy/kind.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { transactionName } from '../../transactions/names.ts'
import { isBegun } from '../../transactions/owner.ts'
import { isOpen } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { calldataOf, fieldsOf } from './evidence.ts'
import type { DepositPlan } from './steps.ts'

/** One deposit for a validator on a chain: whoever else wants to pay for it finds this name taken. */
export const depositName = (chainId: number, pubkey: Pubkey): string => transactionName({ purpose: 'Deposit', chainId, pubkey })

/** What is to be written down before a deposit is signed. */
export const depositSpec = (
  plan: Pick<DepositPlan, 'request' | 'stakeId' | 'depositData'>,
  { config }: EthereumNetwork,
  signer: LegacySigner,
): StakingTransactionSpec => {
  const { origin } = plan.request
  const fields = fieldsOf(plan)
  return {
    chain: 'Ethereum',
    network: config.name,
    chainId: config.chainId,
    purpose: 'Deposit',
    subject: fields.pubkey.toLowerCase(),
    amount: `${formatEth(fields.amountGwei)} ETH`,
    apiId: plan.stakeId,
    owner: { kind: origin.kind, namespace: origin.namespace, name: origin.name, originUid: origin.uid },
    generation: 0,
    signer: signer.metadata.name,
    from: signer.spec.address,
    call: { to: config.depositContractAddress, data: calldataOf(plan), valueWei: gweiToWei(fields.amountGwei).toString() },
  }
}

/** What holds money, before what may land, before what has come to nothing, before what was only made. */
const rank = (record: RecordObject): number =>
  record.status?.outcome?.is === 'Landed' ? 3 : isOpen(recordOf(record)) ? 2 : isBegun(record) ? 1 : 0

/** The record that a resource's deposit stands in: the one that has come furthest. */
export function ownDeposit(
  log: Pick<TransactionLog, 'ofOwner'>,
  owner: { readonly kind: string; readonly namespace: string; readonly name: string; readonly uid: string | undefined },
): RecordObject | undefined {
  return log
    .ofOwner(owner)
    .filter(({ spec }) => spec.purpose === 'Deposit' && (owner.uid === undefined || spec.owner.originUid === owner.uid))
    .toSorted((a, b) => rank(b) - rank(a))[0]
}

/** The deposit that a record's call makes. The calldata does not carry the amount: the value does. */
export const depositIn = ({ spec }: RecordObject) => ({
  ...decodeDepositCalldata(spec.call?.data ?? '0x'),
  amountGwei: gwei(BigInt(spec.call?.valueWei ?? '0') / 1_000_000_000n),
})
