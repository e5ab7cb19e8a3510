import type { SolanaStake, SolanaStakeStatus } from '../resources/solana-stake.ts'
import type { SagaKind } from './engine/reconcile.ts'
import { lookAt, protocolOf } from './engine/solana-stake-chain.ts'
import type { ObservationIntervals } from './ethereum-stake-kind.ts'
import type { Networks } from './ports.ts'
import {
  isFunded,
  isWithdrawn,
  madeAtSlot,
  type SolanaStakeEffects,
  type SolanaStakeView,
  settleBeforeDeletion,
  solanaStakeSteps,
  withdrawBeforeDeletion,
} from './sagas/solana-stake.ts'
import { decideSolanaDeletion } from './sagas/solana-stake-deletion.ts'
import { isWhereWanted, solanaStakeStatus } from './sagas/solana-stake-status.ts'

/** SolanaStake for the engine: the saga with what the engine must know besides. */
export function solanaStakeKind(deps: {
  readonly networks: Pick<Networks, 'solana'>
  readonly intervals: ObservationIntervals
}): SagaKind<SolanaStake, SolanaStakeStatus, SolanaStakeView, SolanaStakeEffects> {
  const { networks, intervals } = deps
  return {
    kind: 'SolanaStake',
    steps: ({ metadata, spec }) => (metadata.deletionTimestamp === undefined ? solanaStakeSteps[spec.desiredState] : settleBeforeDeletion),
    undo: withdrawBeforeDeletion,
    statusOf: (resource) => resource.status,
    isSuspended: (resource) => resource.spec.suspend === true,
    view: ({ spec, metadata }, origin, status) => ({ origin, spec, status, deleting: metadata.deletionTimestamp !== undefined }),
    say: solanaStakeStatus,
    decideDeletion: decideSolanaDeletion,
    observeEvery: (status) => {
      if (!isFunded(status) || isWithdrawn(status)) return undefined
      const is = status.protocol?.status
      return is === 'Active' || is === 'Inactive' ? intervals.settledMs : intervals.activatingMs
    },
    async observe(resource, status, signal) {
      const network = networks.solana(resource.spec.network)
      if (network === undefined || status.stakeAccount === undefined) return status
      const protocol = protocolOf(await lookAt(network.chain, status.stakeAccount, signal), madeAtSlot(status), status.protocol)
      return { ...status, protocol }
    },
  }
}

/** Nothing is under way: a change of a signer or a namespace need not wake it. */
export const isSettledSolanaStake = (stake: SolanaStake): boolean => stake.status !== undefined && isWhereWanted(stake, stake.status)
