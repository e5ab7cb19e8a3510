import { isPlanOnly } from '../../../resources/mode.ts'
import type { ShownPlan } from '../../../resources/plan.ts'
import type { SolanaTransaction } from '../../../resources/solana-stake.ts'
import type { SolanaStakeAuthorizationSpec, SolanaStakeAuthorizationStatus } from '../../../resources/solana-stake-authorization.ts'
import type { Origin } from '../../engine/origin.ts'
import { defineSteps, type Step } from '../../engine/step.ts'
import { isFinal, isInFlight } from './steps.ts'

export interface AuthorizationView {
  readonly origin: Origin
  readonly spec: SolanaStakeAuthorizationSpec
  readonly status: SolanaStakeAuthorizationStatus
  readonly deleting: boolean
  /** The resource's own, as the API server gave it. */
  readonly uid: string
}

/** What was found of the stake and its authorities. */
export type Verified = Pick<SolanaStakeAuthorizationStatus, 'network' | 'stakeAccount' | 'from' | 'to'>

export type AuthorizationEffects = {
  readonly verifyHandOver: { args: { origin: Origin; spec: SolanaStakeAuthorizationSpec }; result: Verified }
  readonly followTransaction: {
    args: {
      origin: Origin
      spec: SolanaStakeAuthorizationSpec
      mayMake: boolean
      shown: SolanaTransaction | undefined
      /** Of one that is only planned: the resource's own UID, which its plan names. */
      plannedAs?: string
    }
    result: { transaction: SolanaTransaction | undefined; plan?: ShownPlan }
  }
}

const step = defineSteps<AuthorizationView, SolanaStakeAuthorizationStatus, AuthorizationEffects>()

/**
 * SolanaStakeAuthorization: VerifyHandOver ─▶ Transaction. What is signed is asked of stake, log and policies again at every signature; the first step is for
 * people.
 */
export const authorizationSteps: readonly Step<AuthorizationView, SolanaStakeAuthorizationStatus, AuthorizationEffects>[] = [
  step({
    name: 'VerifyHandOver',
    done: (status) => status.stakeAccount !== undefined && status.to !== undefined,
    effect: 'verifyHandOver',
    args: ({ origin, spec }) => ({ origin, spec }),
    absorb: (status, verified) => ({ ...status, ...verified }),
  }),
  step({
    name: 'Transaction',
    // Status is a mirror of the log, put right before anything is read from it.
    done: (status) => isFinal(status.transaction),
    effect: 'followTransaction',
    args: ({ origin, spec, status, deleting, uid }) => ({
      origin,
      spec,
      mayMake: spec.suspend !== true && !deleting,
      shown: status.transaction,
      ...(isPlanOnly(spec) ? { plannedAs: uid } : {}),
    }),
    absorb: ({ transaction: _before, plan: _planned, ...status }, { transaction, plan }) => ({
      ...status,
      ...(transaction === undefined ? {} : { transaction }),
      ...(plan === undefined ? {} : { plan }),
    }),
    watches: (status) => isInFlight(status.transaction),
  }),
]
