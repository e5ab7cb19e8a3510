import { keccak256 } from 'viem'
import { decodeRequestCalldata } from '../../chains/ethereum/requests.ts'
import type { Plan } from '../../resources/plan.ts'
import type { StakingTransactionSpec } from '../../resources/staking-transaction.ts'

/** What a kind knows of a transaction besides what its record says: verified, and as it stands now. */
export interface PlanTerms extends Partial<PlannedTerms> {
  /** The resource's own UID, as the API server gave it: not the one that an annotation keeps over a restore. */
  readonly uid: string
  /** Of a Solana stake. */
  readonly amountLamports?: bigint
  /** Caps as they hold: the lower of the resource's and the policy's. */
  readonly maxFeePerGasWei?: bigint
  readonly maxRequestFeeWei?: bigint
  readonly maxPriorityFeeLamports?: bigint
}
type PlannedTerms = Pick<
  Plan,
  'withdrawSigner' | 'withdrawAuthority' | 'withdrawalAddress' | 'credentialsType' | 'voteAccount' | 'destination'
>

/** The plan of a transaction: what its record says, or would say, with the terms that its kind has verified. */
export function planOf(spec: StakingTransactionSpec, terms: PlanTerms): Plan {
  const { uid, amountLamports, maxFeePerGasWei, maxRequestFeeWei, maxPriorityFeeLamports, ...named } = terms
  const { owner, purpose, network, chainId, genesisHash, signer, from, subject, call } = spec
  return {
    resource: { kind: owner.kind, namespace: owner.namespace, name: owner.name, uid },
    purpose,
    network,
    chainId,
    genesisHash,
    signer,
    from,
    subject,
    amount: amountOf(spec, amountLamports)?.toString(),
    ...(call === undefined ? {} : { to: call.to, dataHash: keccak256(call.data), valueWei: call.valueWei }),
    newStakeAuthority: spec.handOver?.to.stakeAuthority?.address,
    newWithdrawAuthority: spec.handOver?.to.withdrawAuthority?.address,
    ...named,
    maxFeePerGasWei: maxFeePerGasWei?.toString(),
    maxRequestFeeWei: maxRequestFeeWei?.toString(),
    maxPriorityFeeLamports: maxPriorityFeeLamports?.toString(),
  }
}

/** Gwei or lamports; undefined where all that is there moves. */
function amountOf({ purpose, call }: StakingTransactionSpec, amountLamports: bigint | undefined): bigint | undefined {
  switch (purpose) {
    case 'Deposit':
      return BigInt(call?.valueWei ?? '0') / 1_000_000_000n
    case 'Withdrawal': {
      const request = decodeRequestCalldata(call?.data ?? '0x')
      return request.kind === 'withdrawal' ? request.amountGwei : undefined
    }
    case 'SolanaStake':
      return amountLamports
    case 'Exit':
    case 'SolanaDeactivation':
    case 'SolanaWithdrawal':
    case 'SolanaAuthorization':
      return undefined
  }
}
