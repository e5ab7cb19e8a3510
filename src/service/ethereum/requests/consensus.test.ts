import { describe, expect, test } from 'vitest'
import {
  type BeaconChain,
  BeaconError,
  type BeaconSpec,
  type BeaconValidator,
  type PendingPartialWithdrawal,
  type StateAt,
  type WithdrawalView,
} from '../../../chains/ethereum/beacon.ts'
import type { Hex } from '../../../chains/ethereum/chain.ts'
import type { ValidatorRequest } from '../../../chains/ethereum/requests.ts'
import { gwei } from '../../../lib/amounts.ts'
import { judgeRequest } from './consensus.ts'

const never = new AbortController().signal
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
const view = (more: { validator?: Partial<BeaconValidator>; queue?: PendingPartialWithdrawal[] } = {}): WithdrawalView => ({
  slot: 0,
  epoch: 1_000,
  validator: { ...validator, ...more.validator },
  pendingPartialWithdrawals: more.queue ?? [],
  pendingConsolidations: [],
})
const exiting = view({ validator: { status: 'active_exiting', exitEpoch: 1_005, withdrawableEpoch: 1_261 } })
const queued = (amount: bigint, withdrawableEpoch = 1_300) =>
  view({ queue: [{ validatorIndex: 7, amountGwei: gwei(amount), withdrawableEpoch }] })
const exit: ValidatorRequest = { kind: 'exit', pubkey }
const withdrawal: ValidatorRequest = { kind: 'withdrawal', pubkey, amountGwei: gwei(3_000_000_000n) }

/** The block is that of slot 32000, in epoch 1000. */
const slot = 32_000
function judge(request: ValidatorRequest, stateAt: (at: StateAt) => WithdrawalView, sender = source) {
  const asked: StateAt[] = []
  const unused = () => Promise.reject(new Error('not called'))
  const beacon: BeaconChain = {
    network: 'devnet',
    spec: async () => spec,
    genesis: async () => ({ genesisTime: 1_000, genesisValidatorsRoot: '0x', genesisForkVersion: '0x' }),
    head: unused,
    validators: unused,
    pendingDeposits: unused,
    withdrawalView: async (_pubkey, at) => {
      asked.push(at)
      return stateAt(at)
    },
  }
  const reads = { call: unused, blockTime: async () => 1_000 + slot * 12 }
  return judgeRequest({ beacon, reads }, { logged: { source: sender, request }, blockNumber: 9n }, never).then((verdict) => ({
    verdict,
    asked,
  }))
}
const changesAt = (from: number, after: WithdrawalView) => (at: StateAt) => (typeof at === 'number' && at >= from ? after : view())
const notKept = (head: WithdrawalView) => (at: StateAt) => {
  if (at === 'head') return head
  throw new BeaconError('state-not-kept', 'gone')
}

describe('a mined request', () => {
  test.each([
    { what: 'an exit', request: exit, after: exiting, reason: /epoch 1005.*1261/ },
    {
      what: 'a withdrawal',
      request: withdrawal,
      after: queued(3_000_000_000n),
      reason: /^3000000000 gwei can be paid from epoch 1300 on$/,
    },
    {
      what: 'a withdrawal of less',
      request: withdrawal,
      after: queued(2_000_000_000n),
      reason: /^2000000000 gwei of the 3000000000 gwei that were asked for/,
    },
  ])('is accepted when the state of its block shows it: $what', async ({ request, after, reason }) => {
    const { verdict, asked } = await judge(request, changesAt(slot, after))
    expect(verdict).toEqual({ status: 'accepted', reason: expect.stringMatching(reason) })
    expect(asked).toEqual([slot - 1, slot])
  })

  test('is dropped with the rule that it broke', async () => {
    const { verdict } = await judge(exit, () => view(), `0x${'11'.repeat(20)}`)
    expect(verdict).toEqual({ status: 'dropped', reason: expect.stringMatching(/^sender-not-withdrawal-address: .*0x1111/) })
  })

  test("that waits in the contract's queue is found some slots later", async () => {
    const { verdict, asked } = await judge(exit, changesAt(slot + 3, exiting))
    expect(verdict.status).toBe('accepted')
    expect(asked.at(-1)).toBe(slot + 3)
  })

  test('that nothing came of is dropped after a bounded look', async () => {
    const { verdict, asked } = await judge(exit, () => view())
    expect(verdict).toEqual({ status: 'dropped', reason: expect.stringContaining('8 slots') })
    expect(asked).toHaveLength(9)
  })

  test.each([
    { code: 'behind' as const, expected: { status: 'pending', askAgain: true } },
    { code: 'unavailable' as const, expected: { status: 'pending', askAgain: true, reason: expect.stringContaining('no answer') } },
    { code: 'wrong-network' as const, expected: { status: 'pending', askAgain: true, reason: expect.stringContaining('no answer') } },
  ])('is pending while the beacon chain is $code', async ({ code, expected }) => {
    const { verdict } = await judge(exit, () => {
      throw new BeaconError(code, 'no answer')
    })
    expect(verdict).toEqual(expected)
  })
})

describe('a mined request whose states are gone', () => {
  test.each([
    { what: 'an exit that is under way', request: exit, head: exiting, status: 'accepted' },
    { what: 'an exit that is not', request: exit, head: view(), status: 'dropped' },
    { what: 'a withdrawal that waits to be paid', request: withdrawal, head: queued(3_000_000_000n), status: 'accepted' },
    { what: 'a withdrawal that is not there any more', request: withdrawal, head: view(), status: 'pending' },
    { what: 'a withdrawal beside an older one', request: withdrawal, head: queued(3_000_000_000n, 1_200), status: 'pending' },
  ])('is told by the head, or not at all: $what', async ({ request, head, status }) => {
    const { verdict } = await judge(request, notKept(head))
    expect(verdict).toEqual({ status, reason: expect.stringContaining('any more') })
  })
})
