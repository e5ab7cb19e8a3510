import { describe, expect, test } from 'vitest'
import { gwei } from '../../lib/amounts.ts'
import type { BeaconSpec, BeaconValidator, PendingPartialWithdrawal, WithdrawalView } from './beacon.ts'
import { requestOutcome } from './beacon-outcome.ts'
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
const judge = (request: ValidatorRequest, before: WithdrawalView, after: WithdrawalView, sender = source) => {
  const outcome = requestOutcome({ logged: { source: sender, request }, spec, before, after })
  return outcome.status === 'accepted' ? outcome : { status: outcome.status, codes: outcome.broken.map(({ code }) => code) }
}

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
    { name: 'for no reason that the state shows', before: view(), after: view(), codes: [] },
  ])('$name is dropped', ({ before, after, sender, codes }) => {
    expect(judge(exit, before, after, sender)).toEqual({ status: 'dropped', codes })
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
    { name: 'not in the queue', before: view(), after: view(), codes: [] },
    { name: 'whose like was there before', before: view({ queue: [entry(5n)] }), after: view({ queue: [entry(5n)] }), codes: [] },
    { name: 'beside one of another validator', before: view(), after: view({ queue: [entry(5n, 8)] }), codes: [] },
    {
      name: 'of a validator with 32 ETH',
      before: view({ validator: { balanceGwei: gwei(32_000_000_000n) } }),
      after: view({ validator: { balanceGwei: gwei(32_000_000_000n) } }),
      codes: ['nothing-available'],
    },
  ])('$name is dropped', ({ before, after, codes }) => {
    expect(judge(withdrawal(5n), before, after)).toEqual({ status: 'dropped', codes })
  })
  test('over what is available is no reason to drop it', () => {
    expect(judge(withdrawal(9_000_000_000n), view(), view())).toEqual({ status: 'dropped', codes: [] })
  })
})
