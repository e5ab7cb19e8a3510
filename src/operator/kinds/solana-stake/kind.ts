import type { SolanaStake, SolanaStakeStatus } from '../../../resources/solana-stake.ts'
import type { ObservationIntervals, SagaKind } from '../../engine/reconcile.ts'
import type { Networks } from '../../ports.ts'
import { lookAt, protocolOf } from './chain.ts'
import { decideSolanaDeletion } from './deletion.ts'
import { isWhereWanted, solanaStakeStatus } from './status.ts'
import {
  isFunded,
  isWithdrawn,
  madeAtSlot,
  type SolanaStakeEffects,
  type SolanaStakeView,
  settleBeforeDeletion,
  solanaStakeSteps,
  withdrawBeforeDeletion,
} from './steps.ts'

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
    passing: ['Pending', 'Created', 'Prepared', 'Confirming'],
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
