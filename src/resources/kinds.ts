import { ethereumStake } from './ethereum-stake.ts'
import type { KindDefinition } from './meta.ts'
import { signerNonce } from './signer-nonce.ts'
import { solanaStake } from './solana-stake.ts'
import { solanaStakeAuthorization } from './solana-stake-authorization.ts'
import { stakingApproval } from './staking-approval.ts'
import { stakingSigner } from './staking-signer.ts'
import { stakingTransaction } from './staking-transaction.ts'
import { validatorExit } from './validator-exit.ts'
import { validatorWithdrawal } from './validator-withdrawal.ts'

/** Every kind of the group, in the order of the reference. */
export const kinds: readonly KindDefinition[] = [
  ethereumStake,
  validatorExit,
  validatorWithdrawal,
  solanaStakeAuthorization,
  solanaStake,
  stakingApproval,
  stakingSigner,
  stakingTransaction,
  signerNonce,
]
