import type { BeaconStatus, BeaconValidator } from './beacon.ts'

/** A validator's life, as far as its owner is concerned. */
export type ValidatorPhase = 'pending' | 'active' | 'exiting' | 'withdrawal possible' | 'done' | 'slashed'

/**
 * The phase of a validator. `exiting` lasts until the balance can be withdrawn; `withdrawal possible` until it was: clients go on saying
 * withdrawal_possible for a while after the balance was paid. A slashed one is `slashed` until it is done.
 */
export function validatorPhase(validator: Pick<BeaconValidator, 'status' | 'slashed' | 'balanceGwei'>): ValidatorPhase {
  const { status, slashed, balanceGwei } = validator
  if (status === 'withdrawal_done' || (status === 'withdrawal_possible' && balanceGwei === 0n)) return 'done'
  return slashed ? 'slashed' : phases[status]
}

const phases: Readonly<Record<BeaconStatus, ValidatorPhase>> = {
  pending_initialized: 'pending',
  pending_queued: 'pending',
  active_ongoing: 'active',
  active_exiting: 'exiting',
  active_slashed: 'slashed',
  exited_unslashed: 'exiting',
  exited_slashed: 'slashed',
  withdrawal_possible: 'withdrawal possible',
  withdrawal_done: 'done',
}

/**
 * The status of a validator in an epoch, by its epochs (ethereum/beacon-APIs, ValidatorStatus): for a node whose word for it is not known here. A draft
 * (beacon-APIs#617) adds some; the epochs mean what they did.
 */
export function statusAt(validator: Omit<BeaconValidator, 'status'>, epoch: number): BeaconStatus {
  const { activationEpoch, activationEligibilityEpoch, exitEpoch, withdrawableEpoch, slashed, balanceGwei } = validator
  if (activationEpoch === undefined || epoch < activationEpoch) {
    return activationEligibilityEpoch === undefined ? 'pending_initialized' : 'pending_queued'
  }
  if (exitEpoch === undefined) return 'active_ongoing'
  if (epoch < exitEpoch) return slashed ? 'active_slashed' : 'active_exiting'
  if (withdrawableEpoch === undefined || epoch < withdrawableEpoch) return slashed ? 'exited_slashed' : 'exited_unslashed'
  return balanceGwei > 0n ? 'withdrawal_possible' : 'withdrawal_done'
}
