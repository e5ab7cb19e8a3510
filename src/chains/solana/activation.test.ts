import { describe, expect, test } from 'vitest'
import { activationAt, type StakeArithmetic, stakePosition } from './activation.ts'
import { noEpoch } from './programs.ts'
import type { Delegation, StakeState } from './stake-account.ts'
import type { StakeHistory } from './sysvars.ts'
import { testAddress } from './testing.ts'

const delegation = (stake: bigint, activationEpoch: bigint, deactivationEpoch = noEpoch): Delegation => ({
  voter: testAddress(3),
  stake,
  activationEpoch,
  deactivationEpoch,
})
/** Entries from an epoch on: effective, activating, deactivating. */
const history = (from: bigint, ...entries: readonly (readonly [bigint, bigint, bigint])[]): StakeHistory =>
  new Map(entries.map(([effective, activating, deactivating], index) => [from + BigInt(index), { effective, activating, deactivating }]))

describe('a delegation', () => {
  const plenty = history(10n, [1_000_000n, 1000n, 0n], [1_001_000n, 0n, 0n], [1_001_000n, 0n, 1000n])
  const narrow = history(10n, [1000n, 1000n, 0n], [1090n, 910n, 0n], [1188n, 812n, 0n], [1000n, 0n, 500n], [910n, 0n, 410n])
  test.each<{ name: string; delegation: Delegation; epoch: bigint; history: StakeHistory; expected: [bigint, bigint, bigint] }>([
    { name: 'before its epoch does not count', delegation: delegation(1000n, 10n), epoch: 9n, history: plenty, expected: [0n, 0n, 0n] },
    { name: 'in its epoch is activating', delegation: delegation(1000n, 10n), epoch: 10n, history: plenty, expected: [0n, 1000n, 0n] },
    {
      name: 'is active an epoch later where the cluster is large',
      delegation: delegation(1000n, 10n),
      epoch: 11n,
      history: plenty,
      expected: [1000n, 0n, 0n],
    },
    {
      name: 'warms up by its share of 9 %',
      delegation: delegation(500n, 10n),
      epoch: 11n,
      history: narrow,
      // 500/1000 of 9 % of 1000.
      expected: [45n, 455n, 0n],
    },
    {
      name: 'warms up by its share of 9 % again, truncated',
      delegation: delegation(500n, 10n),
      epoch: 12n,
      history: narrow,
      // 455/910 of 98.1, which is 49.05.
      expected: [94n, 406n, 0n],
    },
    {
      name: 'warms up by at least one lamport an epoch',
      delegation: delegation(5n, 10n),
      epoch: 11n,
      history: history(10n, [1n, 1_000_000n, 0n]),
      expected: [1n, 4n, 0n],
    },
    {
      name: 'stays as it is where the history ends',
      delegation: delegation(500n, 10n),
      epoch: 20n,
      history: history(10n, [1000n, 1000n, 0n]),
      expected: [45n, 455n, 0n],
    },
    {
      name: 'is wholly active when its epoch is older than the history',
      delegation: delegation(500n, 3n),
      epoch: 12n,
      history: narrow,
      expected: [500n, 0n, 0n],
    },
    {
      name: 'of the first epochs of all needs no history',
      delegation: delegation(500n, noEpoch),
      epoch: 12n,
      history: history(0n),
      expected: [500n, 0n, 0n],
    },
    {
      name: 'deactivated in its own epoch was never effective',
      delegation: delegation(500n, 10n, 10n),
      epoch: 10n,
      history: narrow,
      expected: [0n, 0n, 0n],
    },
    {
      name: 'deactivated while warming up cools down from where it was',
      delegation: delegation(500n, 10n, 12n),
      epoch: 12n,
      history: narrow,
      expected: [94n, 0n, 94n],
    },
    {
      name: 'is still wholly effective in its deactivation epoch',
      delegation: delegation(500n, 3n, 13n),
      epoch: 13n,
      history: narrow,
      expected: [500n, 0n, 500n],
    },
    {
      name: 'cools down by its share of 9 %',
      delegation: delegation(500n, 3n, 13n),
      epoch: 14n,
      history: narrow,
      // 500/500 of 9 % of 1000.
      expected: [410n, 0n, 410n],
    },
    {
      name: 'cools down by its share of 9 % again',
      delegation: delegation(500n, 3n, 13n),
      epoch: 15n,
      history: narrow,
      // 410/410 of 81.9.
      expected: [329n, 0n, 329n],
    },
    {
      name: 'is inactive when its deactivation is older than the history',
      delegation: delegation(500n, 3n, 5n),
      epoch: 15n,
      history: narrow,
      expected: [0n, 0n, 0n],
    },
    {
      name: 'is inactive an epoch later where the cluster is large',
      delegation: delegation(1000n, 3n, 12n),
      epoch: 13n,
      history: plenty,
      expected: [0n, 0n, 0n],
    },
  ])('$name', ({ delegation: given, epoch, history: past, expected: [effective, activating, deactivating] }) => {
    for (const arithmetic of ['float', 'fixed-point'] satisfies StakeArithmetic[])
      expect(activationAt(given, epoch, past, arithmetic)).toEqual({ effective, activating, deactivating })
  })

  // Read off the real stake program, by what it lets be withdrawn of such an account.
  test.each([
    { stake: 123_456_789_013_987_651n, effective: 9_096_716_360_814_074n },
    { stake: 123_456_790_013_987_658n, effective: 9_096_716_429_936_729n },
    { stake: 123_456_791_013_987_665n, effective: 9_096_716_499_059_382n },
    { stake: 123_456_792_013_987_672n, effective: 9_096_716_568_182_036n },
  ])('of $stake lamports is rounded as the program rounds it', ({ stake, effective }) => {
    const past = history(
      10n,
      [387_654_321_987_123_456n, 777_777_777_777_777_777n + stake, 0n],
      [387_654_321_987_123_457n, 777_777_777_777_777_779n, 3n],
      [387_654_321_987_123_451n, 77n, 350_333_777_777_773_111n],
    )
    expect(activationAt(delegation(stake, 10n, 12n), 13n, past, 'float')).toEqual({ effective, activating: 0n, deactivating: effective })
    const fixed = activationAt(delegation(stake, 10n, 12n), 13n, past, 'fixed-point').effective
    expect(effective - fixed >= -2n && effective - fixed <= 2n).toBe(true)
  })
})

describe('the position of', () => {
  const meta = {
    rentExemptReserve: 2_282_880n,
    staker: testAddress(1),
    withdrawer: testAddress(2),
    lockup: { unixTimestamp: 0n, epoch: 0n, custodian: testAddress(9) },
  }
  const staked = (given: Delegation): StakeState => ({ kind: 'stake', meta, delegation: given })
  const past = history(10n, [1000n, 1000n, 0n], [1090n, 910n, 0n], [1000n, 0n, 500n])
  test.each<{ name: string; state: StakeState; epoch: bigint; expected: object }>([
    {
      name: 'an account that is not delegated is INACTIVE',
      state: { kind: 'initialized', meta },
      epoch: 10n,
      expected: { phase: 'INACTIVE', effective: 0n, inactive: 2_283_380n, activationEpoch: undefined },
    },
    {
      name: 'a new stake is ACTIVATING',
      state: staked(delegation(500n, 10n)),
      epoch: 10n,
      expected: { phase: 'ACTIVATING', effective: 0n, activating: 500n, activationEpoch: 10n, deactivationEpoch: undefined },
    },
    {
      name: 'a stake of which a part is active is ACTIVATING still',
      state: staked(delegation(500n, 10n)),
      epoch: 11n,
      expected: { phase: 'ACTIVATING', effective: 45n, inactive: 2_283_380n - 45n },
    },
    {
      name: 'an old stake is ACTIVE',
      state: staked(delegation(500n, 3n)),
      epoch: 11n,
      expected: { phase: 'ACTIVE', effective: 500n, inactive: 2_282_880n },
    },
    {
      name: 'a stake that cools down is DEACTIVATING',
      state: staked(delegation(500n, 3n, 12n)),
      epoch: 13n,
      expected: { phase: 'DEACTIVATING', effective: 410n, deactivationEpoch: 12n },
    },
    {
      name: 'a stake deactivated in its own epoch is INACTIVE at once',
      state: staked(delegation(500n, 10n, 10n)),
      epoch: 10n,
      expected: { phase: 'INACTIVE', effective: 0n, inactive: 2_283_380n },
    },
  ])('$name', ({ state, epoch, expected }) => {
    expect(stakePosition({ state, lamports: 2_283_380n, epoch, history: past, arithmetic: 'float' })).toMatchObject(expected)
  })
})
