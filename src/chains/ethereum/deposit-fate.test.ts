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
const registeredWith = (withdrawalCredentials: Hex) =>
  view({ validators: new Map([[right.pubkey, { index: 7, withdrawalCredentials } as BeaconValidator]]) })
const registered = registeredWith(right.withdrawalCredentials)

test.each([
  { what: 'in the registry', deposit: right, seen: registered, is: 'credited' },
  {
    what: 'in the registry by somebody else’s valid deposit, its own signature wrong',
    deposit: wrong,
    seen: registered,
    is: 'credited',
  },
  {
    what: 'in the registry, its credentials of another type by now (EIP-7251)',
    deposit: right,
    seen: registeredWith(`0x01${right.withdrawalCredentials.slice(4)}`),
    is: 'credited',
  },
  {
    what: 'in the registry by somebody else’s deposit, with another address',
    deposit: right,
    seen: registeredWith(`0x02${'00'.repeat(11)}${'22'.repeat(20)}`),
    is: 'dropped',
  },
  {
    what: 'in the registry by somebody else’s deposit, with a key of BLS in its credentials',
    deposit: right,
    seen: registeredWith(`0x00${'33'.repeat(31)}`),
    is: 'dropped',
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
  const theirs = registeredWith(`0x01${'00'.repeat(11)}${'22'.repeat(20)}`)
  expect(depositFate({ deposit: right, view: theirs, queuedAt: 95, genesisForkVersion: fork })).toEqual({
    is: 'dropped',
    reason: expect.stringMatching(/^other-credentials: validator 7 .*0x0100.*2222.*somebody else's deposit came first/),
  })
})
