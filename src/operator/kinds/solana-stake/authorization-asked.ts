import type { StakeMeta, StakeState } from '../../../chains/solana/stake-account.ts'
import { alteration, authorityChanged, metaOf } from './chain.ts'
import type { StakeTerms } from './steps.ts'

/** Addresses that SolanaStakeAuthorizations of a stake name as successors. */
export interface AddressesAsked {
  readonly stake: readonly string[]
  readonly withdraw: readonly string[]
}

/** Whether resources ask for every authority that is another than by the terms. */
const isAskedFor = ({ staker, withdrawer }: StakeMeta, terms: StakeTerms, { stake, withdraw }: AddressesAsked): boolean =>
  (staker === terms.stakeAuthority || stake.includes(staker)) && (withdrawer === terms.withdrawAuthority || withdraw.includes(withdrawer))

/**
 * Of a stake that the log knows nothing of yet, such as one that is adopted: that its account has the authorities that it was made with. One that was handed
 * over before the log was lost, as where a cluster is made anew from Git, is taken in by its SolanaStakeAuthorization; until then nothing is signed. @throws Halt
 */
export function assertUnaltered(state: StakeState | undefined, terms: StakeTerms, asked: AddressesAsked): void {
  const altered = alteration(state, terms)
  const meta = metaOf(state)
  if (altered !== undefined && !(meta !== undefined && isAskedFor(meta, terms, asked))) throw authorityChanged(terms, altered)
}
