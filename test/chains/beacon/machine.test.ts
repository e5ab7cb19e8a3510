import { describe, expect, test } from 'vitest'
import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import { signDepositMessage, withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import { gwei } from '../../../src/lib/amounts.ts'
import { statusOf } from './api.ts'
import { addValidator } from './epoch.ts'
import { createMachine } from './machine.ts'
import { defaultSpec, FAR_FUTURE, type SimulatorSpec } from './spec.ts'
import { genesisState, type SimulatedState, type SimulatedValidator } from './state.ts'

/** The rules of the simulator without a chain: what is told here by hand from consensus-specs, test/devnet shows on a real network. */
const eth = 1_000_000_000n
const owner: Hex = `0x${'11'.repeat(20)}`
const credentials = { '0x01': withdrawalCredentials('0x01', owner), '0x02': withdrawalCredentials('0x02', owner) }
const key = (byte: number): Hex => `0x${byte.toString(16).padStart(2, '0').repeat(48)}`

function machineWith(
  validators: readonly { readonly amount: bigint; readonly type?: '0x01' | '0x02' }[],
  spec: Partial<SimulatorSpec> = {},
) {
  const full = { ...defaultSpec, ...spec }
  const genesis = genesisState({ number: -1, hash: '0x' })
  for (const [index, { amount, type = '0x02' }] of validators.entries()) {
    const added = addValidator(genesis, full, { pubkey: key(index + 1), withdrawalCredentials: credentials[type], amount })
    added.activationEligibilityEpoch = 0
    added.activationEpoch = 0
  }
  const machine = createMachine(full, genesis)
  let number = 0
  return {
    machine,
    spec: full,
    toEpoch: (epoch: number) => machine.advanceTo(epoch * full.SLOTS_PER_EPOCH),
    /** A block in the next slot. */
    ask: (...requests: { readonly key: number; readonly amount?: bigint; readonly from?: Hex }[]) => {
      number += 1
      const withdrawalRequests = requests.map(({ key: byte, amount = 0n, from = owner }) => ({
        sourceAddress: from,
        validatorPubkey: key(byte),
        amount,
      }))
      machine.execute({ number, hash: '0x', timestamp: 0, deposits: [], withdrawalRequests }, machine.state().slot + 1)
      return machine.requests.slice(-requests.length).map((each) => (each.accepted ? 'accepted' : each.reason))
    },
    deposit: (secret: number, amount: bigint, forkVersion: Hex = defaultSpec.GENESIS_FORK_VERSION) => {
      number += 1
      const signed = signDepositMessage(new Uint8Array(32).fill(secret), {
        withdrawalCredentials: credentials['0x02'],
        amountGwei: gwei(amount),
        genesisForkVersion: forkVersion,
      })
      const deposit = { ...signed, amount }
      machine.execute({ number, hash: '0x', timestamp: 0, deposits: [deposit], withdrawalRequests: [] }, machine.state().slot + 1)
      return signed.pubkey
    },
  }
}

describe('requests in one block', () => {
  test('are taken in their order: a withdrawal bars the exit behind it, and an exit the withdrawal', () => {
    const { ask, toEpoch } = machineWith([{ amount: 40n * eth }, { amount: 40n * eth }])
    toEpoch(4)
    expect(ask({ key: 1, amount: eth }, { key: 1 }, { key: 2 }, { key: 2, amount: eth })).toEqual([
      'accepted',
      'pending partial withdrawals',
      'accepted',
      'exit already initiated',
    ])
  })

  test('beyond 16 wait for the next slot', () => {
    const { ask, machine, toEpoch } = machineWith(Array.from({ length: 20 }, () => ({ amount: 32n * eth })))
    toEpoch(4)
    ask(...Array.from({ length: 20 }, (_, index) => ({ key: index + 1 })))
    const { slot } = machine.state()
    expect(machine.requests).toHaveLength(16)
    machine.advanceTo(slot + 1)
    expect(machine.requests.map((each) => each.slot)).toEqual([...Array(16).fill(slot), ...Array(4).fill(slot + 1)])
  })

  test('meet a full queue of partial withdrawals, which exits pass', () => {
    const { ask, toEpoch } = machineWith([{ amount: 40n * eth }, { amount: 40n * eth }], { PENDING_PARTIAL_WITHDRAWALS_LIMIT: 1 })
    toEpoch(4)
    expect(ask({ key: 1, amount: 1n }, { key: 2, amount: 1n }, { key: 2 })).toEqual(['accepted', 'queue is full', 'accepted'])
  })
})

describe('the exit queue', () => {
  test.each([
    { balances: [32n, 32n, 32n, 32n], epochs: [6, 6, 6, 6] },
    { balances: [32n, 32n, 32n, 32n, 32n], epochs: [6, 6, 6, 6, 7] },
    { balances: [128n, 1n + 128n], epochs: [6, 8] },
    // Larger than the churn of an epoch: it takes several, and what is left of the last one is used.
    { balances: [300n, 84n, 1n + 31n], epochs: [8, 8, 9] },
  ])('lets $balances ETH out in epochs $epochs', ({ balances, epochs }) => {
    const { ask, machine, toEpoch } = machineWith(balances.map((amount) => ({ amount: amount * eth })))
    toEpoch(4)
    for (const [index] of balances.entries()) expect(ask({ key: index + 1 })).toEqual(['accepted'])
    expect(machine.state().validators.map(({ exitEpoch }) => exitEpoch)).toEqual(epochs)
    expect(machine.state().validators.map(({ withdrawableEpoch }) => withdrawableEpoch)).toEqual(epochs.map((epoch) => epoch + 2))
  })

  test('is shared by partial withdrawals', () => {
    const { ask, machine, toEpoch } = machineWith([{ amount: 232n * eth }, { amount: 32n * eth }])
    toEpoch(4)
    ask({ key: 1, amount: 200n * eth }, { key: 2 })
    expect(machine.state().pendingPartialWithdrawals).toEqual([{ validatorIndex: 0, amount: 200n * eth, withdrawableEpoch: 9 }])
    expect(machine.state().validators[1]?.exitEpoch).toBe(7)
  })
})

describe('what is paid', () => {
  test('of a partial withdrawal is cut to what is over 32 ETH when its time comes, and nothing when that is gone', () => {
    const { ask, machine, toEpoch } = machineWith([{ amount: 40n * eth }, { amount: 40n * eth }])
    toEpoch(4)
    ask({ key: 1, amount: 5n * eth }, { key: 2, amount: 5n * eth })
    machine.change((state) => {
      state.balances = [34n * eth, 32n * eth]
    })
    toEpoch(9)
    expect(machine.withdrawals).toEqual([{ validatorIndex: 0, address: owner, amount: 2n * eth, slot: 8 * 8 }])
    expect(machine.state().pendingPartialWithdrawals).toEqual([])
  })

  test('in a slot is at most 8 of the queue', () => {
    const { ask, machine, toEpoch } = machineWith(Array.from({ length: 10 }, () => ({ amount: 33n * eth })))
    toEpoch(4)
    ask(...Array.from({ length: 10 }, (_, index) => ({ key: index + 1, amount: eth })))
    toEpoch(9)
    expect(machine.withdrawals.map(({ slot }) => slot)).toEqual([...Array(8).fill(64), 65, 65])
  })

  test.each([
    { type: '0x01', over: 32n * eth, paid: eth },
    { type: '0x02', over: 2048n * eth, paid: eth },
    { type: '0x02', over: 100n * eth, paid: 0n },
  ] as const)('without a request to a $type validator with 1 ETH over $over gwei: $paid gwei', ({ type, over, paid }) => {
    const { machine } = machineWith([{ amount: over, type }])
    machine.change((state) => {
      state.balances = [over + eth]
    })
    machine.advanceTo(3)
    expect(machine.withdrawals.reduce((sum, { amount }) => sum + amount, 0n)).toBe(paid)
  })

  test('is never more than there was', () => {
    const { ask, machine, toEpoch } = machineWith([{ amount: 40n * eth }])
    toEpoch(4)
    ask({ key: 1, amount: 8n * eth }, { key: 1, amount: 8n * eth })
    toEpoch(12)
    expect(ask({ key: 1 })).toEqual(['accepted'])
    toEpoch(24)
    expect(machine.withdrawals.map(({ amount }) => amount)).toEqual([8n * eth, 32n * eth])
    expect(machine.state().balances).toEqual([0n])
  })
})

describe('deposits', () => {
  test('wait for finality, and then become active by their steps', () => {
    const { deposit, machine, toEpoch } = machineWith([{ amount: 32n * eth }])
    toEpoch(4)
    const pubkey = deposit(7, 32n * eth)
    const statuses: string[] = []
    for (let epoch = 4; epoch <= 12; epoch += 1) {
      toEpoch(epoch)
      const validator = machine.state().validators.find((each) => each.pubkey === pubkey)
      statuses.push(`${epoch}: ${validator === undefined ? 'unknown' : statusOf(validator, epoch)}`)
    }
    // Deposited in slot 33: epoch 5 (slot 40) is final at the end of 6. Eligible from 8 on, which is final at the end of 9; active two epochs later.
    expect(statuses).toEqual([
      '4: unknown',
      '5: unknown',
      '6: unknown',
      '7: pending_initialized',
      '8: pending_queued',
      '9: pending_queued',
      '10: pending_queued',
      '11: active_ongoing',
      '12: active_ongoing',
    ])
  })

  test('under 32 ETH are in the registry and never active, until a top-up', () => {
    const { deposit, machine, toEpoch } = machineWith([{ amount: 32n * eth }])
    deposit(7, 31n * eth)
    toEpoch(12)
    expect(machine.state().validators[1]).toMatchObject({ effectiveBalance: 31n * eth, activationEpoch: FAR_FUTURE })
    deposit(7, 2n * eth)
    toEpoch(24)
    expect(machine.state().validators[1]).toMatchObject({ effectiveBalance: 33n * eth })
    expect(machine.state().validators[1]?.activationEpoch).toBeLessThan(24)
  })

  test('for a key that exits wait until it has', () => {
    const { ask, deposit, machine, toEpoch } = machineWith([{ amount: 32n * eth }])
    const pubkey = deposit(7, 32n * eth)
    toEpoch(20)
    const index = machine.state().validators.findIndex((each) => each.pubkey === pubkey)
    machine.change((state) => {
      const validator = state.validators[index]
      if (validator !== undefined) Object.assign(validator, { exitEpoch: 30, withdrawableEpoch: 32 })
    })
    deposit(7, eth)
    toEpoch(31)
    expect(machine.state().pendingDeposits).toHaveLength(1)
    toEpoch(36)
    expect(machine.state().pendingDeposits).toEqual([])
    expect(ask({ key: 1 })).toEqual(['accepted'])
  })

  test('with another network’s signature are lost', () => {
    const { deposit, machine, toEpoch } = machineWith([{ amount: 32n * eth }])
    deposit(7, 32n * eth, '0x00000000')
    toEpoch(8)
    expect(machine.state().validators).toHaveLength(1)
    expect(machine.lostDeposits.map(({ reason }) => reason)).toEqual(['invalid signature'])
  })
})

describe('an effective balance', () => {
  test.each([
    { name: 'stays when the balance is a little less', balance: 39n * eth + 750_000_000n, effective: 40n * eth },
    { name: 'falls when it is less than that', balance: 39n * eth + 749_999_999n, effective: 39n * eth },
    { name: 'stays when the balance is a little more', balance: 41n * eth + 250_000_000n, effective: 40n * eth },
    { name: 'rises when it is more than that', balance: 41n * eth + 250_000_001n, effective: 41n * eth },
  ])('$name', ({ balance, effective }) => {
    const { machine, toEpoch } = machineWith([{ amount: 40n * eth }])
    machine.change((state) => {
      state.balances = [balance]
    })
    toEpoch(1)
    expect(machine.state().validators[0]?.effectiveBalance).toBe(effective)
  })
})

test('a validator with 16 ETH is ejected', () => {
  const { machine, toEpoch } = machineWith([{ amount: 40n * eth }])
  machine.change((state) => {
    state.balances = [16n * eth]
  })
  toEpoch(3)
  expect(machine.state().validators[0]?.exitEpoch).toBeLessThan(FAR_FUTURE)
})

describe('the states that were', () => {
  test('are kept as they were, and the future is not known', () => {
    const { ask, machine, toEpoch } = machineWith([{ amount: 32n * eth }])
    toEpoch(4)
    const before = machine.state().slot
    ask({ key: 1 })
    toEpoch(9)
    const exitAt = (slot: number) => machine.stateAt(slot)?.validators[0]?.exitEpoch
    expect([exitAt(before), exitAt(before + 1)]).toEqual([FAR_FUTURE, 6])
    expect(machine.stateAt(before + 3)?.slot).toBe(before + 3)
    expect(machine.stateAt(machine.state().slot + 1)).toBeUndefined()
  })

  test('that are too old are gone', () => {
    const genesis: SimulatedState = genesisState({ number: -1, hash: '0x' })
    const machine = createMachine(defaultSpec, genesis, 2)
    machine.advanceTo(80)
    expect(machine.stateAt(0)).toBeUndefined()
    expect(machine.stateAt(79)).toBeDefined()
  })
})

describe('a status', () => {
  const base: SimulatedValidator = {
    pubkey: key(1),
    withdrawalCredentials: credentials['0x02'],
    effectiveBalance: 32n * eth,
    slashed: false,
    activationEligibilityEpoch: 1,
    activationEpoch: 5,
    exitEpoch: FAR_FUTURE,
    withdrawableEpoch: FAR_FUTURE,
  }
  test.each<{ change: Partial<SimulatedValidator>; epoch: number; status: string }>([
    { change: { activationEligibilityEpoch: FAR_FUTURE, activationEpoch: FAR_FUTURE }, epoch: 9, status: 'pending_initialized' },
    { change: { activationEpoch: FAR_FUTURE }, epoch: 9, status: 'pending_queued' },
    { change: {}, epoch: 4, status: 'pending_queued' },
    { change: {}, epoch: 5, status: 'active_ongoing' },
    { change: { exitEpoch: 9 }, epoch: 8, status: 'active_exiting' },
    { change: { exitEpoch: 9, slashed: true }, epoch: 8, status: 'active_slashed' },
    { change: { exitEpoch: 9, withdrawableEpoch: 11 }, epoch: 9, status: 'exited_unslashed' },
    { change: { exitEpoch: 9, withdrawableEpoch: 11, slashed: true }, epoch: 10, status: 'exited_slashed' },
    { change: { exitEpoch: 9, withdrawableEpoch: 11 }, epoch: 11, status: 'withdrawal_possible' },
    { change: { exitEpoch: 9, withdrawableEpoch: 11, effectiveBalance: 0n }, epoch: 11, status: 'withdrawal_done' },
  ])('in epoch $epoch is $status', ({ change, epoch, status }) => {
    expect(statusOf({ ...base, ...change }, epoch)).toBe(status)
  })
})
