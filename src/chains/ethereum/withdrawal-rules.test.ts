import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { gwei } from '../../lib/amounts.ts'
import type { BeaconValidator, PendingPartialWithdrawal } from './beacon.ts'
import type { Hex } from './chain.ts'
import {
  type BrokenRule,
  exitBroken,
  payableGwei,
  type RuleState,
  withdrawalAddressOf,
  withdrawalBroken,
  withdrawalCapacity,
} from './withdrawal-rules.ts'

const eth = (amount: number) => gwei(BigInt(Math.round(amount * 1e9)))
const address: Hex = '0x52908400098527886e0f7030069857d2e4169ee7'
const compounding: Hex = `0x02${'00'.repeat(11)}${address.slice(2)}`
const plain: Hex = `0x01${'00'.repeat(11)}${address.slice(2)}`
const bls: Hex = `0x00${'ab'.repeat(31)}`

/** Active since epoch 100, with 8 ETH over the minimum; old enough from epoch 356 on. */
const good: BeaconValidator = {
  index: 7,
  pubkey: `0x${'ab'.repeat(48)}` as const,
  status: 'active_ongoing',
  balanceGwei: eth(40),
  effectiveBalanceGwei: eth(40),
  withdrawalCredentials: compounding,
  slashed: false,
  activationEligibilityEpoch: 90,
  activationEpoch: 100,
  exitEpoch: undefined,
  withdrawableEpoch: undefined,
}
const spec = { shardCommitteePeriod: 256, minActivationBalanceGwei: eth(32), pendingPartialWithdrawalsLimit: 3 }
const pending = (amount: number, validatorIndex = 7, withdrawableEpoch = 1_500): PendingPartialWithdrawal => ({
  validatorIndex,
  amountGwei: eth(amount),
  withdrawableEpoch,
})
const state = (validator: Partial<BeaconValidator> | undefined = {}, more: Partial<RuleState> = {}): RuleState => ({
  validator: { ...good, ...validator },
  pendingPartialWithdrawals: [],
  epoch: 1_000,
  spec,
  sender: address,
  ...more,
})
const codes = (broken: readonly BrokenRule[]) => broken.map(({ code }) => code)

interface Row {
  readonly given: string
  readonly state: RuleState
  readonly broken: readonly string[]
  readonly says?: RegExp
}

/** These hold for exits and for partial withdrawals. */
const common: readonly Row[] = [
  { given: 'a good validator', state: state(), broken: [] },
  { given: 'a key that nobody deposited', state: { ...state(), validator: undefined }, broken: ['unknown-validator'] },
  {
    given: 'another sender',
    state: state({}, { sender: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266' }),
    broken: ['sender-not-withdrawal-address'],
    says: /0xf39F.*0x52908400098527886e0f7030069857d2e4169ee7/,
  },
  { given: 'the sender in EIP-55 form', state: state({}, { sender: '0x52908400098527886E0F7030069857D2E4169EE7' }), broken: [] },
  {
    given: 'a sender that is not to be checked',
    state: { validator: good, pendingPartialWithdrawals: [], epoch: 1_000, spec },
    broken: [],
  },
  {
    given: 'a validator in the activation queue',
    state: state({ status: 'pending_queued', activationEpoch: undefined }),
    broken: ['not-active'],
    says: /not set yet; it is epoch 1000/,
  },
  {
    given: 'the last epoch before activation',
    state: state({ status: 'pending_queued', activationEpoch: 1_001 }),
    broken: ['not-active', 'too-young'],
    says: /active in epoch 1001; it is epoch 1000/,
  },
  {
    given: 'the epoch of activation',
    state: state({ activationEpoch: 1_000 }),
    broken: ['too-young'],
    says: /from epoch 1256 on \(256 epochs/,
  },
  {
    given: 'the last epoch of youth',
    state: state({}, { epoch: 355 }),
    broken: ['too-young'],
    says: /since epoch 100 .* from epoch 356 on/,
  },
  { given: 'the first epoch of age', state: state({}, { epoch: 356 }), broken: [] },
  {
    given: 'an exit under way',
    state: state({ status: 'active_exiting', exitEpoch: 1_001, withdrawableEpoch: 1_257 }),
    broken: ['already-exiting'],
    says: /is set to be in epoch 1001; it is epoch 1000/,
  },
  {
    given: 'an exit in this epoch',
    state: state({ status: 'exited_unslashed', exitEpoch: 1_000 }),
    broken: ['not-active', 'already-exiting'],
    says: /not active since epoch 1000/,
  },
  {
    given: 'a consolidation into another validator',
    state: state({ exitEpoch: 1_200 }, { pendingConsolidations: [{ sourceIndex: 7, targetIndex: 9 }] }),
    broken: ['already-exiting'],
    says: /consolidated into validator 9/,
  },
  {
    given: 'being the target of a consolidation',
    state: state({}, { pendingConsolidations: [{ sourceIndex: 9, targetIndex: 7 }] }),
    broken: [],
  },
  {
    given: 'a slashed validator',
    state: state({ status: 'active_slashed', slashed: true, exitEpoch: 1_300 }),
    broken: ['slashed'],
    says: /slashed.*1300/,
  },
  {
    given: 'a slashed validator that has left',
    state: state({ status: 'exited_slashed', slashed: true, exitEpoch: 900 }),
    broken: ['slashed', 'not-active'],
  },
]

describe('a full exit, given', () => {
  test.each<Row>([
    ...common,
    {
      given: 'BLS credentials',
      state: state({ withdrawalCredentials: bls }),
      broken: ['credentials-not-execution'],
      says: /begin with 0x00/,
    },
    { given: '0x01 credentials', state: state({ withdrawalCredentials: plain }), broken: [] },
    { given: 'less than 32 ETH', state: state({ balanceGwei: eth(20), effectiveBalanceGwei: eth(20) }), broken: [] },
    {
      given: 'a withdrawal still to be paid',
      state: state({}, { pendingPartialWithdrawals: [pending(1)] }),
      broken: ['pending-withdrawals'],
      says: /1 partial withdrawal of 1 ETH in all is still to be paid, the last in epoch 1500/,
    },
    {
      given: 'two of them among others',
      state: state({}, { pendingPartialWithdrawals: [pending(1), pending(5, 8, 9_999), pending(2.5, 7, 1_501)] }),
      broken: ['pending-withdrawals'],
      says: /2 partial withdrawals of 3.5 ETH in all are still to be paid, the last in epoch 1501/,
    },
    { given: 'a withdrawal of another validator', state: state({}, { pendingPartialWithdrawals: [pending(1, 8)] }), broken: [] },
    {
      given: 'a full queue of others',
      state: state({}, { pendingPartialWithdrawals: [pending(1, 1), pending(1, 2), pending(1, 3)] }),
      broken: [],
    },
  ])('$given: $broken', ({ state: given, broken, says }) => {
    const found = exitBroken(given)
    expect(codes(found)).toEqual(broken)
    expect(found.every(({ drops }) => drops)).toBe(true)
    if (says !== undefined) expect(found.map(({ message }) => message).join('; ')).toMatch(says)
  })
})

describe('a withdrawal of 1 ETH, given', () => {
  test.each<Row>([
    ...common,
    {
      given: 'BLS credentials',
      state: state({ withdrawalCredentials: bls }),
      broken: ['credentials-not-execution', 'credentials-not-compounding'],
    },
    {
      given: '0x01 credentials',
      state: state({ withdrawalCredentials: plain }),
      broken: ['credentials-not-compounding'],
      says: /need 0x02: what a 0x01 validator has over 32 ETH is paid without a request/,
    },
    {
      given: 'an effective balance of 31 ETH, whatever the balance',
      state: state({ balanceGwei: eth(40), effectiveBalanceGwei: eth(31) }),
      broken: ['effective-balance-too-low'],
      says: /is 31 ETH, and a partial withdrawal needs 32 ETH/,
    },
    { given: 'an effective balance of 32 ETH', state: state({ effectiveBalanceGwei: eth(32) }), broken: [] },
    {
      given: 'exactly 32 ETH',
      state: state({ balanceGwei: eth(32), effectiveBalanceGwei: eth(32) }),
      broken: ['nothing-available'],
      says: /balance is 32000000000 gwei, of which 32000000000 gwei must stay/,
    },
    {
      given: 'a balance under 32 ETH with an effective one of 32',
      state: state({ balanceGwei: eth(31.9), effectiveBalanceGwei: eth(32) }),
      broken: ['nothing-available'],
    },
    {
      given: 'withdrawals that take all',
      state: state({}, { pendingPartialWithdrawals: [pending(5), pending(3)] }),
      broken: ['nothing-available'],
      says: /8000000000 gwei are in withdrawals/,
    },
    { given: 'exactly 33 ETH', state: state({ balanceGwei: eth(33) }), broken: [] },
    { given: 'withdrawals that leave just 1 ETH', state: state({}, { pendingPartialWithdrawals: [pending(7)] }), broken: [] },
    {
      given: 'one gwei less than 33 ETH',
      state: state({ balanceGwei: gwei(eth(33) - 1n) }),
      broken: ['amount-over-available'],
      says: /1000000000 gwei are asked for, and 999999999 gwei \(0.999999999 ETH\) are available/,
    },
    {
      given: 'a queue that is full',
      state: state({}, { pendingPartialWithdrawals: [pending(1, 1), pending(1, 2), pending(1, 3)] }),
      broken: ['withdrawal-queue-full'],
      says: /holds 3/,
    },
    { given: 'a queue with one place', state: state({}, { pendingPartialWithdrawals: [pending(1, 1), pending(1, 2)] }), broken: [] },
  ])('$given: $broken', ({ state: given, broken, says }) => {
    const found = withdrawalBroken(given, eth(1))
    expect(codes(found)).toEqual(broken)
    expect(found.filter(({ drops }) => !drops).map(({ code }) => code)).toEqual(broken.filter((code) => code === 'amount-over-available'))
    if (says !== undefined) expect(found.map(({ message }) => message).join('; ')).toMatch(says)
  })
})

describe('the amount of a withdrawal', () => {
  test.each([
    { amount: 0n, broken: ['amount-not-positive'], payable: 0n },
    { amount: -1n, broken: ['amount-not-positive'], payable: -1n },
    { amount: 1n, broken: [], payable: 1n },
    { amount: 8_000_000_000n, broken: [], payable: 8_000_000_000n },
    { amount: 8_000_000_001n, broken: ['amount-over-available'], payable: 8_000_000_000n },
    { amount: 2n ** 64n - 1n, broken: ['amount-over-available'], payable: 8_000_000_000n },
  ])('of $amount gwei breaks $broken; the consensus layer would pay $payable', ({ amount, broken, payable }) => {
    expect(codes(withdrawalBroken(state(), gwei(amount)))).toEqual(broken)
    expect(payableGwei(state(), gwei(amount))).toBe(payable)
  })

  test('0 is refused for a key that is not known, too', () => {
    expect(codes(withdrawalBroken({ ...state(), validator: undefined }, gwei(0n)))).toEqual(['amount-not-positive', 'unknown-validator'])
  })
})

describe('the capacity', () => {
  test('of a good validator is its excess less what is pending', () => {
    expect(withdrawalCapacity(state({}, { pendingPartialWithdrawals: [pending(3), pending(100, 8)] }))).toEqual({
      eligible: true,
      broken: [],
      pendingWithdrawalsGwei: eth(3),
      availableGwei: eth(5),
      earliestEligibleEpoch: 356,
    })
  })
  test.each([
    { name: 'of a young one names the epoch', given: state({ activationEpoch: 990 }), eligible: false, available: eth(8), earliest: 1_246 },
    {
      name: 'before activation knows no epoch',
      given: state({ activationEpoch: undefined }),
      eligible: false,
      available: eth(8),
      earliest: undefined,
    },
    {
      name: 'of a 0x01 validator is nothing',
      given: state({ withdrawalCredentials: plain }),
      eligible: false,
      available: 0n,
      earliest: 356,
    },
    {
      name: 'is never negative',
      given: state({ balanceGwei: eth(32.5) }, { pendingPartialWithdrawals: [pending(2)] }),
      eligible: false,
      available: 0n,
      earliest: 356,
    },
    {
      name: 'of an unknown key is nothing',
      given: { ...state(), validator: undefined },
      eligible: false,
      available: 0n,
      earliest: undefined,
    },
  ])('$name', ({ given, eligible, available, earliest }) => {
    expect(withdrawalCapacity(given)).toMatchObject({ eligible, availableGwei: available, earliestEligibleEpoch: earliest })
  })

  test('is exactly what withdrawals may have, for any balance and queue', () => {
    const amounts = fc.bigInt({ min: 1n, max: 50_000_000_000n })
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 100_000_000_000n }), fc.array(amounts, { maxLength: 2 }), amounts, (balance, queue, amount) => {
        const given = state(
          { balanceGwei: gwei(balance) },
          {
            pendingPartialWithdrawals: queue.map((amountGwei) => ({
              validatorIndex: 7,
              amountGwei: gwei(amountGwei),
              withdrawableEpoch: 1,
            })),
          },
        )
        const { availableGwei, eligible } = withdrawalCapacity(given)
        const taken = withdrawalBroken(given, gwei(amount)).length === 0
        expect(taken).toBe(eligible && amount <= availableGwei)
        const paid = payableGwei(given, gwei(amount))
        if (eligible) expect(balance - queue.reduce((sum, each) => sum + each, 0n) - paid).toBeGreaterThanOrEqual(32_000_000_000n)
      }),
    )
  })
})

describe('the withdrawal address', () => {
  test.each<{ name: string; credentials: Hex; expected: Hex | undefined }>([
    { name: 'in 0x01 credentials', credentials: plain, expected: address },
    { name: 'in 0x02 credentials', credentials: compounding, expected: address },
    { name: 'of BLS credentials is none', credentials: bls, expected: undefined },
    { name: 'of a prefix that is not known is none', credentials: `0x03${compounding.slice(4)}`, expected: undefined },
    { name: 'is none when the padding is not zero', credentials: `0x02${'00'.repeat(10)}01${address.slice(2)}`, expected: undefined },
    { name: 'of too few bytes is none', credentials: compounding.slice(0, -2) as Hex, expected: undefined },
  ])('$name', ({ credentials, expected }) => {
    expect(withdrawalAddressOf(credentials)).toBe(expected)
  })
})
