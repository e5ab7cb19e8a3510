import { expect, test } from 'vitest'
import { gwei } from '../../lib/amounts.ts'
import type { BeaconValidator, DepositView, PendingDeposit } from './beacon.ts'
import type { Hex } from './chain.ts'
import { signDepositMessage } from './deposit.ts'
import { depositFate } from './deposit-fate.ts'

const fork: Hex = '0x10000910'
const otherFork: Hex = '0x00000000'
const signed = (genesisForkVersion: Hex) =>
  signDepositMessage(new Uint8Array(32).fill(7), {
    withdrawalCredentials: `0x02${'00'.repeat(11)}${'11'.repeat(20)}`,
    amountGwei: gwei(32_000_000_000n),
    genesisForkVersion,
  })
const right = signed(fork)
const wrong = signed(otherFork)
const strangers: PendingDeposit = { ...right, pubkey: `0x${'cd'.repeat(48)}` as const, slot: 90 }
const view = (more: Partial<DepositView> = {}): DepositView => ({
  slot: 100,
  epoch: 3,
  validators: new Map(),
  pendingDeposits: [],
  ...more,
})
const registered = new Map([[right.pubkey, {} as BeaconValidator]])

test.each([
  { what: 'in the registry', deposit: right, seen: view({ validators: registered }), is: 'credited' },
  {
    what: 'in the registry by somebody else’s valid deposit, its own signature wrong',
    deposit: wrong,
    seen: view({ validators: registered }),
    is: 'credited',
  },
  { what: 'in the queue', deposit: right, seen: view({ pendingDeposits: [strangers, { ...right, slot: 95 }] }), is: 'queued' },
  {
    what: 'in the queue, its signature wrong: its turn has not come',
    deposit: wrong,
    seen: view({ pendingDeposits: [{ ...wrong, slot: 95 }] }),
    is: 'queued',
  },
  { what: 'nowhere, in a state before it was queued', deposit: wrong, seen: view({ slot: 94 }), is: 'unknown' },
  { what: 'nowhere, its signature valid: a node’s word alone proves nothing', deposit: right, seen: view(), is: 'unknown' },
  { what: 'nowhere, signed for another fork', deposit: wrong, seen: view(), is: 'dropped' },
  {
    what: 'nowhere, with a signature that is none',
    deposit: { ...right, signature: `0x${'00'.repeat(96)}` as Hex },
    seen: view(),
    is: 'dropped',
  },
  {
    what: 'nowhere, and another deposit for its key in the queue',
    deposit: wrong,
    seen: view({ pendingDeposits: [{ ...right, slot: 96 }] }),
    is: 'dropped',
  },
])('a deposit that is $what: $is', ({ deposit, seen, is }) => {
  expect(depositFate({ deposit, view: seen, queuedAt: 95, genesisForkVersion: fork }).is).toBe(is)
})

test('one that waits says behind how much, one that was dropped by which rule', () => {
  const queue = view({ pendingDeposits: [strangers, strangers, { ...right, slot: 95 }, strangers] })
  expect(depositFate({ deposit: right, view: queue, queuedAt: 95, genesisForkVersion: fork })).toEqual({
    is: 'queued',
    aheadGwei: 64_000_000_000n,
  })
  expect(depositFate({ deposit: wrong, view: view(), queuedAt: 95, genesisForkVersion: fork })).toEqual({
    is: 'dropped',
    reason: expect.stringMatching(/^invalid-signature: .*0x10000910.*slot 100/),
  })
})
