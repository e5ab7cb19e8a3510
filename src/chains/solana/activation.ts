import { noEpoch } from './programs.ts'
import type { Delegation, StakeState } from './stake-account.ts'
import type { StakeHistory } from './sysvars.ts'

/**
 * Part of the cluster's effective stake that may warm up or cool down in an epoch. It was 25 % until `reduce_stake_warmup_cooldown`; the stake
 * program itself reckons with 9 % for all epochs (PERPETUAL_NEW_WARMUP_COOLDOWN_RATE_EPOCH = Some(0)), and so does this.
 */
export type StakeArithmetic =
  /** IEEE doubles, truncated: what the stake program does before its version 5.1. */
  | 'float'
  /** 128-bit integers in basis points: what it does once SIMD-0391's feature is on. Differs by few lamports, and only for huge stakes. */
  | 'fixed-point'

export interface Activation {
  /** Lamports that earn and that can't be withdrawn. */
  readonly effective: bigint
  readonly activating: bigint
  /** Part of `effective` that is on its way out. */
  readonly deactivating: bigint
}

/**
 * What of a delegation counts at an epoch. Source: solana-stake-interface, Delegation::stake_activating_and_deactivating, step for step.
 * An epoch that the history doesn't hold any more is long over: then the stake is wholly active, or wholly inactive.
 */
export function activationAt(delegation: Delegation, epoch: bigint, history: StakeHistory, arithmetic: StakeArithmetic): Activation {
  const allowed = allowances[arithmetic]
  const [effective, activating] = warmUp(delegation, epoch, history, allowed)
  const { deactivationEpoch } = delegation
  if (epoch < deactivationEpoch) return { effective, activating, deactivating: 0n }
  if (epoch === deactivationEpoch) return { effective, activating: 0n, deactivating: effective }
  const left = coolDown(effective, deactivationEpoch, epoch, history, allowed)
  return { effective: left, activating: 0n, deactivating: left }
}

/** Effective and activating, as if it were never deactivated later than its deactivation epoch. */
function warmUp(delegation: Delegation, epoch: bigint, history: StakeHistory, allowed: Allowance): readonly [bigint, bigint] {
  const { stake, activationEpoch, deactivationEpoch } = delegation
  if (activationEpoch === noEpoch) return [stake, 0n]
  // Deactivated before it was ever active.
  if (activationEpoch === deactivationEpoch) return [0n, 0n]
  if (epoch === activationEpoch) return [0n, stake]
  if (epoch < activationEpoch) return [0n, 0n]
  let cluster = history.get(activationEpoch)
  if (cluster === undefined) return [stake, 0n]
  let effective = 0n
  for (let current = activationEpoch + 1n; cluster.activating > 0n; current++) {
    effective += atLeastOne(allowed(stake - effective, cluster.activating, cluster.effective))
    if (effective >= stake) return [stake, 0n]
    if (current >= epoch || current >= deactivationEpoch) break
    const next = history.get(current)
    if (next === undefined) break
    cluster = next
  }
  return [effective, stake - effective]
}

function coolDown(from: bigint, deactivationEpoch: bigint, epoch: bigint, history: StakeHistory, allowed: Allowance): bigint {
  let cluster = history.get(deactivationEpoch)
  if (cluster === undefined) return 0n
  let effective = from
  for (let current = deactivationEpoch + 1n; cluster.deactivating > 0n; current++) {
    effective -= atLeastOne(allowed(effective, cluster.deactivating, cluster.effective))
    if (effective <= 0n) return 0n
    if (current >= epoch) break
    const next = history.get(current)
    if (next === undefined) break
    cluster = next
  }
  return effective
}

/** An account's share of what the cluster may move in an epoch: own part, the cluster's moving part, the cluster's effective stake. */
type Allowance = (own: bigint, moving: bigint, effective: bigint) => bigint

const allowances: Readonly<Record<StakeArithmetic, Allowance>> = {
  float: (own, moving, effective) => BigInt(Math.trunc((Number(own) / Number(moving)) * (Number(effective) * 0.09))),
  'fixed-point': (own, moving, effective) => {
    const share = (own * effective * 900n) / (moving * 10_000n)
    return share < own ? share : own
  },
}

const atLeastOne = (value: bigint): bigint => (value > 1n ? value : 1n)

/** The staking API's word for where a stake is. `CREATED` and `WITHDRAWN` are told apart by who knows its past. */
export type StakePhase = 'ACTIVATING' | 'ACTIVE' | 'DEACTIVATING' | 'INACTIVE'

export interface StakePosition extends Activation {
  readonly phase: StakePhase
  /** All lamports that do not earn: the rent reserve, what still warms up, what was sent on top. When INACTIVE, all can be withdrawn. */
  readonly inactive: bigint
  readonly activationEpoch: bigint | undefined
  readonly deactivationEpoch: bigint | undefined
}

/**
 * Where a stake account stands. A stake of which only a part has warmed up is ACTIVATING; one with any effective lamport left is
 * DEACTIVATING; an account that is initialised and not delegated is INACTIVE.
 */
export function stakePosition(given: {
  readonly state: StakeState
  readonly lamports: bigint
  readonly epoch: bigint
  readonly history: StakeHistory
  readonly arithmetic: StakeArithmetic
}): StakePosition {
  const { state, lamports, epoch, history, arithmetic } = given
  if (state.kind !== 'stake') {
    return {
      phase: 'INACTIVE',
      effective: 0n,
      activating: 0n,
      deactivating: 0n,
      inactive: lamports,
      activationEpoch: undefined,
      deactivationEpoch: undefined,
    }
  }
  const { delegation } = state
  const activation = activationAt(delegation, epoch, history, arithmetic)
  const deactivated = delegation.deactivationEpoch !== noEpoch && epoch >= delegation.deactivationEpoch
  const phase = deactivated
    ? activation.effective > 0n
      ? 'DEACTIVATING'
      : 'INACTIVE'
    : activation.activating > 0n
      ? 'ACTIVATING'
      : 'ACTIVE'
  return {
    ...activation,
    phase,
    inactive: lamports - activation.effective,
    activationEpoch: delegation.activationEpoch === noEpoch ? undefined : delegation.activationEpoch,
    deactivationEpoch: delegation.deactivationEpoch === noEpoch ? undefined : delegation.deactivationEpoch,
  }
}
