import type { Plan } from '../../../resources/plan.ts'
import type { StakingTransactionSpec } from '../../../resources/staking-transaction.ts'
import { planOf } from '../../transactions/plan.ts'
import type { Parties } from './parties.ts'
import type { StakeTerms } from './steps.ts'

/** What a step of a stake does, as it was verified. `spec`: what its record says, or would say. */
export const stepPlan = (
  spec: StakingTransactionSpec,
  {
    uid,
    amountLamports,
    parties,
    terms,
    feeCap,
  }: {
    readonly uid: string
    readonly amountLamports: bigint
    readonly parties: Parties
    readonly terms: StakeTerms
    readonly feeCap: bigint
  },
): Plan =>
  planOf(spec, {
    uid,
    amountLamports,
    withdrawSigner: parties.withdrawer.metadata.name,
    withdrawAuthority: terms.withdrawAuthority,
    voteAccount: terms.voteAccount,
    destination: parties.destination,
    maxPriorityFeeLamports: feeCap,
  })
