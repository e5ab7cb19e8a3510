import type { Wei } from '../../../lib/amounts.ts'
import type { Plan } from '../../../resources/plan.ts'
import type { StakingTransactionSpec } from '../../../resources/staking-transaction.ts'
import { planOf } from '../../transactions/plan.ts'

/** What an exit or a withdrawal asks for, as it was verified. `spec`: what its record says, or would say. */
export const requestPlan = (
  spec: StakingTransactionSpec,
  { uid, feeCap, requestFeeCap }: { readonly uid: string; readonly feeCap: Wei; readonly requestFeeCap: Wei },
): Plan => planOf(spec, { uid, maxFeePerGasWei: feeCap, maxRequestFeeWei: requestFeeCap })
