import { formatEth, formatWeiAsEth, formatWeiAsGwei, gwei, wei } from '../lib/amounts.ts'
import type { Plan } from '../resources/plan.ts'
import type { TransactionPurpose } from '../resources/staking-transaction.ts'

const does: Readonly<Record<TransactionPurpose, string>> = {
  Deposit: 'deposit for a new validator',
  Exit: 'exit of a validator: all that it holds goes to its withdrawal address',
  Withdrawal: 'withdrawal from a validator',
  SolanaStake: 'make and delegate a stake',
  SolanaDeactivation: 'deactivate a stake: it stops to earn, and can be withdrawn later',
  SolanaWithdrawal: 'withdraw all that a stake account holds',
  SolanaAuthorization: 'hand the authorities of a stake account over: whoever has the withdraw authority owns the money',
}

/** A plan as lines of a name and a value, for a person who has to decide about it. */
export function planInWords(plan: Plan): readonly (readonly [string, string])[] {
  const { resource, purpose, chainId, genesisHash } = plan
  const isSolana = genesisHash !== undefined
  const line = (name: string, value: string | undefined) => (value === undefined ? [] : [[name, value] as const])
  const coins = (amount: string | undefined) => amount && `${formatEth(gwei(BigInt(amount)))} ${isSolana ? 'SOL' : 'ETH'}`
  const inGwei = (text: string | undefined) => text && `${formatWeiAsGwei(wei(BigInt(text)))} gwei`
  return [
    ...line('resource', `${resource.kind} ${resource.namespace}/${resource.name} (uid ${resource.uid})`),
    ...line('does', does[purpose]),
    ...line('network', `${plan.network} (${isSolana ? `genesis ${genesisHash}` : `chain id ${chainId}`})`),
    ...line('amount', coins(plan.amount) ?? 'all that is there'),
    ...line('signed by', `StakingSigner ${plan.signer}, ${plan.from}`),
    ...line('and by', plan.withdrawSigner && `StakingSigner ${plan.withdrawSigner}, ${plan.withdrawAuthority ?? ''}`),
    ...line(isSolana ? 'stake account' : 'validator', plan.subject),
    ...line('delegated to', plan.voteAccount),
    ...line('new stake authority', plan.newStakeAuthority),
    ...line('new withdraw authority', plan.newWithdrawAuthority),
    ...line('contract', plan.to),
    ...line('value', plan.valueWei && `${formatWeiAsEth(wei(BigInt(plan.valueWei)))} ETH`),
    ...line('calldata hash', plan.dataHash),
    ...line('withdrawal address', plan.withdrawalAddress && `${plan.withdrawalAddress} (${plan.credentialsType ?? ''})`),
    ...line('money goes to', plan.destination),
    ...line('fee per gas', inGwei(plan.maxFeePerGasWei) && `at most ${inGwei(plan.maxFeePerGasWei)}`),
    ...line('request fee', inGwei(plan.maxRequestFeeWei) && `at most ${inGwei(plan.maxRequestFeeWei)}`),
    ...line('priority fee', plan.maxPriorityFeeLamports && `at most ${plan.maxPriorityFeeLamports} lamports`),
  ]
}
