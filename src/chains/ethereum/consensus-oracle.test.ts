import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type Gwei, gwei } from '../../lib/amounts.ts'
import type { BeaconSpec, BeaconValidator, PendingPartialWithdrawal, WithdrawalView } from './beacon.ts'
import { requestOutcome } from './beacon-outcome.ts'
import { epochOf } from './beacon-time.ts'
import type { Hex } from './chain.ts'
import { verifyDepositSignature } from './deposit.ts'
import type { LoggedRequest, ValidatorRequest } from './requests.ts'
import { queuedPayment } from './withdrawal-payment.ts'
import { exitBroken, payableGwei, type RuleState, withdrawalBroken } from './withdrawal-rules.ts'

/**
 * Our rules beside the executable consensus specification, fork by fork: the table was made by scripts/consensus-oracle.py, which says how it is run.
 */
type Entry = readonly [validatorIndex: number, amount: number, withdrawableEpoch: number]
interface State {
  readonly credentials: '00' | '01' | '02'
  readonly activationEpoch: number
  readonly exitEpoch: number | null
  readonly slashed: boolean
  readonly balance: number
  readonly effective: number
  readonly queue: readonly Entry[]
  readonly full: boolean
  readonly known: boolean
}
type Outcome = 'dropped' | { readonly exitEpoch: number } | { readonly withdrawal: number; readonly withdrawableEpoch: number }
type ByFork<T> = Readonly<Record<string, T>>
interface Table {
  readonly forks: readonly string[]
  readonly constants: {
    readonly slotsPerEpoch: number
    readonly shardCommitteePeriod: number
    readonly minActivationBalance: number
    readonly pendingPartialWithdrawalsLimit: number
    readonly epoch: number
    readonly validatorIndex: number
    readonly owner: Hex
    readonly other: Hex
  }
  readonly requests: readonly {
    readonly name: string
    readonly state: State
    readonly requests: readonly (readonly ['owner' | 'other', number])[]
    readonly forks: ByFork<{ readonly outcomes: readonly Outcome[]; readonly exitEpoch: number | null; readonly added: readonly Entry[] }>
  }[]
  readonly timing: readonly {
    readonly payloadSlot: number
    readonly missed: number
    readonly processedAt: number
    readonly activationEpoch: number
    readonly accepted: boolean
  }[]
  readonly payments: readonly {
    readonly name: string
    readonly state: State
    readonly forks: ByFork<{ readonly leavesQueue: boolean; readonly pays: number }>
  }[]
  readonly deposits: readonly {
    readonly name: string
    readonly deposit: { pubkey: Hex; withdrawalCredentials: Hex; amount: number; signature: Hex; genesisForkVersion: Hex }
    readonly forks: ByFork<'validator' | 'lost'>
  }[]
}

const table = JSON.parse(readFileSync(new URL('./consensus-oracle.json', import.meta.url), 'utf8')) as Table
const { constants, forks } = table
const perFork = <T>(by: ByFork<T>, fork: string): T => {
  const found = by[fork] ?? by.all
  if (found === undefined) throw new Error(`the table says nothing of ${fork}`)
  return found
}
const pubkey: Hex = `0x${'ab'.repeat(48)}`
const spec: BeaconSpec = {
  slotDurationMs: 6_000,
  slotsPerEpoch: constants.slotsPerEpoch,
  shardCommitteePeriod: constants.shardCommitteePeriod,
  minValidatorWithdrawabilityDelay: 256,
  maxSeedLookahead: 4,
  minActivationBalanceGwei: gwei(BigInt(constants.minActivationBalance)),
  maxEffectiveBalanceElectraGwei: gwei(2_048_000_000_000n),
  pendingPartialWithdrawalsLimit: constants.pendingPartialWithdrawalsLimit,
  depositChainId: 1,
  depositContractAddress: constants.owner,
}

const entryOf = ([validatorIndex, amount, withdrawableEpoch]: Entry): PendingPartialWithdrawal => ({
  validatorIndex,
  amountGwei: gwei(BigInt(amount)),
  withdrawableEpoch,
})
function viewOf(state: State, change: { readonly exitEpoch: number | null; readonly added: readonly Entry[] }): WithdrawalView {
  const exitEpoch = change.exitEpoch ?? undefined
  const validator: BeaconValidator = {
    index: constants.validatorIndex,
    pubkey,
    status: 'active_ongoing',
    balanceGwei: gwei(BigInt(state.balance)),
    effectiveBalanceGwei: gwei(BigInt(state.effective)),
    withdrawalCredentials: `0x${state.credentials}${'00'.repeat(11)}${constants.owner.slice(2)}`,
    slashed: state.slashed,
    activationEligibilityEpoch: 0,
    activationEpoch: state.activationEpoch,
    exitEpoch,
    withdrawableEpoch: exitEpoch === undefined ? undefined : exitEpoch + 256,
  }
  const filler: Entry = [constants.validatorIndex + 1, 1, constants.epoch + 9]
  const missing = state.full ? constants.pendingPartialWithdrawalsLimit - state.queue.length : 0
  return {
    slot: constants.epoch * constants.slotsPerEpoch + 2,
    epoch: constants.epoch,
    block: { slot: constants.epoch * constants.slotsPerEpoch + 2, root: '0x' },
    validator: state.known ? validator : undefined,
    pendingPartialWithdrawals: [...state.queue, ...Array.from({ length: missing }, () => filler), ...change.added].map(entryOf),
    pendingConsolidations: [],
  }
}
/** A withdrawal of more than JSON's integers hold is the largest of all. */
const amountOf = (amount: number): Gwei => gwei(Number.isSafeInteger(amount) ? BigInt(amount) : (1n << 64n) - 1n)
const requestOf = ([source, amount]: readonly ['owner' | 'other', number]): LoggedRequest => {
  const request: ValidatorRequest = amount === 0 ? { kind: 'exit', pubkey } : { kind: 'withdrawal', pubkey, amountGwei: amountOf(amount) }
  return { source: constants[source], request }
}

describe.each(forks)('by the specification of %s', (fork) => {
  test.each(table.requests)('the states around a block tell what became of $name', ({ state, requests, forks: by }) => {
    const after = perFork(by, fork)
    const batch = requests.map(requestOf)
    const views = { before: viewOf(state, { exitEpoch: state.exitEpoch, added: [] }), after: viewOf(state, after) }
    const told = batch.map((logged, index): Outcome => {
      const outcome = requestOutcome({ logged, spec, ...views, batch, index })
      if (outcome.status === 'dropped') return outcome.broken.length > 0 ? 'dropped' : expect.fail('dropped without a rule')
      if (outcome.status === 'not shown') return expect.fail('the states tell nothing')
      return outcome.kind === 'exit'
        ? { exitEpoch: outcome.exitEpoch }
        : { withdrawal: Number(outcome.amountGwei), withdrawableEpoch: outcome.withdrawableEpoch }
    })
    expect(told).toEqual(after.outcomes)
  })

  test.each(table.requests)('the rules foresee what becomes of the first of $name', ({ state, requests: [first], forks: by }) => {
    if (first === undefined) throw new Error('no request')
    const { source, request } = requestOf(first)
    const rules: RuleState = { ...viewOf(state, { exitEpoch: state.exitEpoch, added: [] }), spec, sender: source }
    const broken = request.kind === 'exit' ? exitBroken(rules) : withdrawalBroken(rules, request.amountGwei)
    const [outcome] = perFork(by, fork).outcomes
    expect(broken.some(({ drops }) => drops)).toBe(outcome === 'dropped')
    if (request.kind === 'withdrawal' && typeof outcome === 'object' && 'withdrawal' in outcome) {
      expect(payableGwei(rules, request.amountGwei)).toBe(BigInt(outcome.withdrawal))
    }
  })

  test.each(table.payments)('a queued withdrawal $name', ({ state, forks: by }) => {
    const { leavesQueue, pays } = perFork(by, fork)
    const [entry] = state.queue
    if (entry === undefined) throw new Error('nothing is queued')
    const accepted = entryOf(entry)
    const before = queuedPayment(viewOf(state, { exitEpoch: state.exitEpoch, added: [] }), accepted)
    // Void is said only of what pays nothing, and always of what an exit voids.
    expect(before.is).toBe(leavesQueue && pays === 0 && state.exitEpoch !== null ? 'void' : 'waiting')
    if (leavesQueue)
      expect(queuedPayment(viewOf({ ...state, queue: [] }, { exitEpoch: state.exitEpoch, added: [] }), accepted)).toEqual({ is: 'gone' })
  })

  test.each(table.deposits)('a deposit $name', ({ deposit: { amount, genesisForkVersion, ...deposit }, forks: by }) => {
    const valid = verifyDepositSignature({ ...deposit, amountGwei: gwei(BigInt(amount)) }, genesisForkVersion)
    expect(valid ? 'validator' : 'lost').toBe(perFork(by, fork))
  })
})

test.each(table.timing)(
  'from Gloas on, age is judged at slot $processedAt, where the next block processes the payload of slot $payloadSlot',
  (row) => {
    const state = {
      credentials: '02',
      exitEpoch: null,
      slashed: false,
      balance: 40e9,
      effective: 40e9,
      queue: [],
      full: false,
      known: true,
    } as const
    const view = viewOf({ ...state, activationEpoch: row.activationEpoch }, { exitEpoch: null, added: [] })
    const brokenAt = (slot: number) =>
      exitBroken({ ...view, epoch: epochOf(slot, spec), spec, sender: constants.owner }).map(({ code }) => code)
    expect(brokenAt(row.payloadSlot)).toEqual(['too-young'])
    expect(brokenAt(row.processedAt)).toEqual([])
    expect(row.accepted).toBe(true)
  },
)
