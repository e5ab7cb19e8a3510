import type { Wei } from '../../../lib/amounts.ts'
import type { Plan } from '../../../resources/plan.ts'
import type { StakingTransactionSpec } from '../../../resources/staking-transaction.ts'
import { planOf } from '../../transactions/plan.ts'
import type { StakeRequest } from './steps.ts'

/** What a deposit pays and to whom, as it was verified. `spec`: what its record says, or would say. */
export const depositPlan = (
  spec: StakingTransactionSpec,
  { request, uid, feeCap }: { readonly request: StakeRequest; readonly uid: string; readonly feeCap: Wei },
): Plan =>
  planOf(spec, {
    uid,
    maxFeePerGasWei: feeCap,
    withdrawalAddress: request.withdrawalAddress,
    credentialsType: request.credentialsType,
  })
