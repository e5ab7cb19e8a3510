import type { SolanaRequiredKey, SolanaStake, SolanaStakeStatus } from '../../../resources/solana-stake.ts'
import { type ActionKind, isFinal, isFunded, isNothingStaked, isWithdrawn, transactionOf } from './steps.ts'

export type Authority = SolanaRequiredKey['authority']

/**
 * Whose keys a transaction can't go without. `isApproved`: the staking API has had the withdraw authority's signature for a stake transaction that it has
 * made. A withdrawal is paid by the stake authority where its key is mounted, and else by the withdraw authority, which then signs alone.
 */
export function authoritiesFor(kind: ActionKind, { isApproved }: { readonly isApproved: boolean }): readonly Authority[] {
  switch (kind) {
    case 'stake':
      return isApproved ? ['Stake'] : ['Withdraw', 'Stake']
    case 'deactivation':
      return ['Stake']
    case 'withdrawal':
      return ['Withdraw']
  }
}

const steps = { stake: 'Stake', deactivation: 'Deactivation', withdrawal: 'Withdrawal' } as const

/** The transaction that is signed next on the way to the desired state; undefined where nothing is left to sign. */
function nextOf({ spec, metadata }: SolanaStake, status: SolanaStakeStatus): ActionKind | undefined {
  const { desiredState } = spec
  const is = status.protocol?.status
  if (desiredState === 'Active') return isFunded(status) || metadata.deletionTimestamp !== undefined ? undefined : 'stake'
  if (!isFunded(status) || isNothingStaked(status) || isWithdrawn(status)) return undefined
  if (!isFinal(transactionOf(status, 'deactivation')) && is !== 'Inactive' && is !== 'Withdrawn') return 'deactivation'
  return desiredState === 'Withdrawn' && !isFinal(transactionOf(status, 'withdrawal')) ? 'withdrawal' : undefined
}

/**
 * The keys that the next step needs, for who keeps them offline. Pure. `keyNameOf`: the folder of a signer's mounted key; undefined for a signer that isn't
 * there.
 */
export function requiredKeys(
  resource: SolanaStake,
  status: SolanaStakeStatus,
  keyNameOf: (signer: string) => string | undefined,
): readonly SolanaRequiredKey[] {
  const kind = nextOf(resource, status)
  if (kind === undefined) return []
  const shown = transactionOf(status, kind)
  const { stakeAuthority, withdrawAuthority } = resource.spec
  const holders = {
    Stake: status.handOver?.stakeSigner ?? stakeAuthority.signer,
    Withdraw: status.handOver?.withdrawSigner ?? withdrawAuthority.signer,
  }
  // Where no StakingSigner has one, nothing is signed here.
  if (Object.values(holders).includes('')) return []
  return authoritiesFor(kind, { isApproved: shown !== undefined && shown.state !== 'Failed' }).map((authority) => {
    const signer = holders[authority]
    const keyName = keyNameOf(signer)
    return { step: steps[kind], authority, signer, ...(keyName === undefined ? {} : { keyName }) }
  })
}
