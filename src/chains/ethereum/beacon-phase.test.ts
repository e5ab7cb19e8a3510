import { describe, expect, test } from 'vitest'
import { gwei } from '../../lib/amounts.ts'
import { type BeaconStatus, beaconStatuses } from './beacon.ts'
import { type ValidatorPhase, validatorPhase } from './beacon-phase.ts'

describe('a validator that is', () => {
  test.each<{ status: BeaconStatus; slashed?: boolean; balance?: bigint; phase: ValidatorPhase }>([
    { status: 'pending_initialized', phase: 'pending' },
    { status: 'pending_queued', phase: 'pending' },
    { status: 'active_ongoing', phase: 'active' },
    { status: 'active_exiting', phase: 'exiting' },
    { status: 'active_slashed', slashed: true, phase: 'slashed' },
    { status: 'exited_unslashed', phase: 'exiting' },
    { status: 'exited_slashed', slashed: true, phase: 'slashed' },
    { status: 'withdrawal_possible', phase: 'withdrawal possible' },
    { status: 'withdrawal_possible', slashed: true, phase: 'slashed' },
    { status: 'withdrawal_possible', balance: 0n, phase: 'done' },
    { status: 'withdrawal_possible', slashed: true, balance: 0n, phase: 'done' },
    { status: 'withdrawal_done', balance: 0n, phase: 'done' },
    { status: 'withdrawal_done', slashed: true, balance: 0n, phase: 'done' },
  ])('$status (slashed: $slashed, balance: $balance) is $phase', ({ status, slashed = false, balance = 32_000_000_000n, phase }) => {
    expect(validatorPhase({ status, slashed, balanceGwei: gwei(balance) })).toBe(phase)
  })

  test('in any status has a phase', () => {
    for (const status of beaconStatuses) expect(validatorPhase({ status, slashed: false, balanceGwei: gwei(1n) })).toBeTruthy()
  })
})
