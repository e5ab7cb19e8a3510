import { describe, expect, test } from 'vitest'
import { gwei } from '../../lib/amounts.ts'
import type { BeaconSpec, BeaconValidator, PendingPartialWithdrawal, WithdrawalView } from './beacon.ts'
import { type RequestOutcome, requestOutcome } from './beacon-outcome.ts'
import type { Hex } from './chain.ts'
import type { ValidatorRequest } from './requests.ts'

const source: Hex = '0x52908400098527886e0f7030069857d2e4169ee7'
const pubkey: Hex = `0x${'ab'.repeat(48)}`
const spec: BeaconSpec = {
  slotDurationMs: 12_000,
  slotsPerEpoch: 32,
  shardCommitteePeriod: 256,
  minValidatorWithdrawabilityDelay: 256,
  maxSeedLookahead: 4,
  minActivationBalanceGwei: gwei(32_000_000_000n),
  maxEffectiveBalanceElectraGwei: gwei(2_048_000_000_000n),
  pendingPartialWithdrawalsLimit: 1_000,
  depositChainId: 1,
  depositContractAddress: source,
}
const validator: BeaconValidator = {
  index: 7,
  pubkey,
  status: 'active_ongoing',
  balanceGwei: gwei(40_000_000_000n),
  effectiveBalanceGwei: gwei(40_000_000_000n),
  withdrawalCredentials: `0x02${'00'.repeat(11)}${source.slice(2)}`,
  slashed: false,
  activationEligibilityEpoch: 1,
  activationEpoch: 5,
  exitEpoch: undefined,
  withdrawableEpoch: undefined,
}
const view = (
  more: { validator?: Partial<BeaconValidator> | null; queue?: PendingPartialWithdrawal[]; epoch?: number } = {},
): WithdrawalView => ({
  slot: 0,
  block: { slot: 0, root: '0x' },
  epoch: more.epoch ?? 1_000,
  validator: more.validator === null ? undefined : { ...validator, ...more.validator },
  pendingPartialWithdrawals: more.queue ?? [],
  pendingConsolidations: [],
})
const entry = (amount: bigint, validatorIndex = 7, withdrawableEpoch = 1_300): PendingPartialWithdrawal => ({
  validatorIndex,
  amountGwei: gwei(amount),
  withdrawableEpoch,
})
const exit: ValidatorRequest = { kind: 'exit', pubkey }
const withdrawal = (amount: bigint): ValidatorRequest => ({ kind: 'withdrawal', pubkey, amountGwei: gwei(amount) })
const shown = (outcome: RequestOutcome) =>
  outcome.status === 'dropped' ? { status: outcome.status, codes: outcome.broken.map(({ code }) => code) } : outcome
const judge = (request: ValidatorRequest, before: WithdrawalView, after: WithdrawalView, sender = source) =>
  shown(requestOutcome({ logged: { source: sender, request }, spec, before, after }))

describe('an exit request', () => {
  test('that has set the exit epoch is accepted', () => {
    const after = view({ validator: { status: 'active_exiting', exitEpoch: 1_005, withdrawableEpoch: 1_261 } })
    expect(judge(exit, view(), after)).toEqual({ status: 'accepted', kind: 'exit', exitEpoch: 1_005, withdrawableEpoch: 1_261 })
  })
  test.each<{ name: string; before: WithdrawalView; after: WithdrawalView; sender?: Hex; codes: string[] }>([
    {
      name: 'from another sender',
      before: view(),
      after: view(),
      sender: `0x${'11'.repeat(20)}`,
      codes: ['sender-not-withdrawal-address'],
    },
    { name: 'too early', before: view({ epoch: 260 }), after: view({ epoch: 260 }), codes: ['too-young'] },
    {
      name: 'for a key that is not known',
      before: view({ validator: null }),
      after: view({ validator: null }),
      codes: ['unknown-validator'],
    },
    {
      name: 'while a withdrawal is pending',
      before: view({ queue: [entry(1n)] }),
      after: view({ queue: [entry(1n)] }),
      codes: ['pending-withdrawals'],
    },
    {
      name: 'after another exit',
      before: view({ validator: { exitEpoch: 1_005 } }),
      after: view({ validator: { exitEpoch: 1_005 } }),
      codes: ['already-exiting'],
    },
    {
      name: 'while a withdrawal was pending that the same block paid',
      before: view({ queue: [entry(1n, 7, 1_000)] }),
      after: view(),
      codes: ['pending-withdrawals'],
    },
    {
      name: 'of a validator that was slashed in the same block',
      before: view(),
      after: view({ validator: { slashed: true, exitEpoch: 1_005 } }),
      codes: ['slashed'],
    },
  ])('$name is dropped', ({ before, after, sender, codes }) => {
    expect(judge(exit, before, after, sender)).toEqual({ status: 'dropped', codes })
  })
  test('that breaks no rule and has no effect is not dropped: these states do not show what became of it', () => {
    expect(judge(exit, view(), view())).toEqual({ status: 'not shown' })
  })
  test('that was too young in the epoch before is taken in the epoch of the block that processes it', () => {
    const after = view({ epoch: 261, validator: { exitEpoch: 266 } })
    expect(judge(exit, view({ epoch: 260 }), after)).toMatchObject({ status: 'accepted', exitEpoch: 266 })
  })
})

describe('a withdrawal request', () => {
  test.each<{ name: string; before: PendingPartialWithdrawal[]; after: PendingPartialWithdrawal[]; amount: bigint; paid: bigint }>([
    { name: 'in the queue', before: [], after: [entry(5n)], amount: 5n, paid: 5n },
    { name: 'cut to what was available', before: [], after: [entry(3n)], amount: 5n, paid: 3n },
    { name: 'beside the same one of before', before: [entry(5n)], after: [entry(5n), entry(5n)], amount: 5n, paid: 5n },
    {
      name: 'that comes as the same one of before is paid',
      before: [entry(5n, 7, 1_000)],
      after: [entry(5n, 7, 1_300)],
      amount: 5n,
      paid: 5n,
    },
    { name: 'behind others', before: [entry(1n, 1), entry(2n, 2)], after: [entry(2n, 2), entry(9n, 3), entry(5n)], amount: 5n, paid: 5n },
  ])('$name is accepted', ({ before, after, amount, paid }) => {
    expect(judge(withdrawal(amount), view({ queue: before }), view({ queue: after }))).toEqual({
      status: 'accepted',
      kind: 'withdrawal',
      amountGwei: paid,
      withdrawableEpoch: 1_300,
    })
  })
  test.each<{ name: string; before: WithdrawalView; after: WithdrawalView; codes: string[] }>([
    {
      name: 'of a balance that only a reward of the same block lifts over 32 ETH',
      before: view({ validator: { balanceGwei: gwei(32_000_000_000n) } }),
      after: view({ validator: { balanceGwei: gwei(32_000_000_500n) } }),
      codes: ['nothing-available'],
    },
    {
      name: 'of a validator with 32 ETH',
      before: view({ validator: { balanceGwei: gwei(32_000_000_000n) } }),
      after: view({ validator: { balanceGwei: gwei(32_000_000_000n) } }),
      codes: ['nothing-available'],
    },
  ])('$name is dropped', ({ before, after, codes }) => {
    expect(judge(withdrawal(5n), before, after)).toEqual({ status: 'dropped', codes })
  })
  test.each<{ name: string; amount: bigint; before: WithdrawalView; after: WithdrawalView }>([
    { name: 'that is not in the queue', amount: 5n, before: view(), after: view() },
    { name: 'whose like was there before', amount: 5n, before: view({ queue: [entry(5n)] }), after: view({ queue: [entry(5n)] }) },
    { name: 'beside one of another validator', amount: 5n, before: view(), after: view({ queue: [entry(5n, 8)] }) },
    { name: 'over what is available', amount: 9_000_000_000n, before: view(), after: view() },
    { name: 'of less than what was queued', amount: 5n, before: view(), after: view({ queue: [entry(6n)] }) },
  ])('$name, against no rule, is not dropped: these states do not show what became of it', ({ amount, before, after }) => {
    expect(judge(withdrawal(amount), before, after)).toEqual({ status: 'not shown' })
  })
})

describe('of several requests of one validator in a block', () => {
  const batch = (...requests: readonly (ValidatorRequest | { request: ValidatorRequest; source: Hex })[]) =>
    requests.map((one) => ('request' in one ? one : { request: one, source }))
  const outcomes = (requests: ReturnType<typeof batch>, before: WithdrawalView, after: WithdrawalView) =>
    requests.map((logged, index) => shown(requestOutcome({ logged, spec, before, after, batch: requests, index })))
  const taken = (amountGwei: bigint) => ({ status: 'accepted', kind: 'withdrawal', amountGwei, withdrawableEpoch: 1_300 })
  const emptied = { balanceGwei: gwei(32_000_000_005n) }

  test('each withdrawal is told its own amount, though another of its size is beside it', () => {
    const requests = batch(withdrawal(5n), withdrawal(3n), withdrawal(5n))
    expect(outcomes(requests, view(), view({ queue: [entry(5n), entry(3n), entry(5n)] }))).toEqual([taken(5n), taken(3n), taken(5n)])
  })
  test('what was cut belongs to the one that was cut, and leaves nothing for the next', () => {
    const after = view({ validator: emptied, queue: [entry(5n)] })
    expect(outcomes(batch(withdrawal(9n), withdrawal(5n)), view({ validator: emptied }), after)).toEqual([
      taken(5n),
      { status: 'dropped', codes: ['nothing-available'] },
    ])
  })
  test("a stranger's request takes nothing of the owner's", () => {
    const stranger: Hex = `0x${'11'.repeat(20)}`
    const requests = batch({ request: withdrawal(5n), source: stranger }, withdrawal(5n))
    expect(outcomes(requests, view(), view({ queue: [entry(5n)] }))).toEqual([
      { status: 'dropped', codes: ['sender-not-withdrawal-address'] },
      taken(5n),
    ])
  })
  test('an exit after a withdrawal waits for it, and a second exit is one too many', () => {
    expect(outcomes(batch(withdrawal(5n), exit), view(), view({ queue: [entry(5n)] }))).toEqual([
      taken(5n),
      { status: 'dropped', codes: ['pending-withdrawals'] },
    ])
    expect(outcomes(batch(exit, exit, withdrawal(5n)), view(), view({ validator: { exitEpoch: 1_005 } }))).toEqual([
      { status: 'accepted', kind: 'exit', exitEpoch: 1_005, withdrawableEpoch: undefined },
      { status: 'dropped', codes: ['already-exiting'] },
      { status: 'dropped', codes: ['already-exiting'] },
    ])
  })
})
