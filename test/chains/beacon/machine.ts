import { type LostDeposit, processEpoch } from './epoch.ts'
import type { ExecutionBlock } from './execution.ts'
import { processWithdrawalRequest, type RequestResult } from './requests.ts'
import type { SimulatorSpec } from './spec.ts'
import type { SimulatedState, WithdrawalRequest } from './state.ts'
import { processWithdrawals, type Withdrawal } from './withdrawals.ts'

/** What became of a request, and where. */
export type RequestRecord = WithdrawalRequest & RequestResult & { readonly slot: number }

export interface BeaconMachine {
  state(): SimulatedState
  /** The state at a slot; undefined before genesis, ahead of the head, and when it is not kept any more. */
  stateAt(slot: number): SimulatedState | undefined
  /** Goes on to a slot without a block. */
  advanceTo(slot: number): void
  /** Takes a block of the execution layer, at its slot or at the head when that is later. */
  execute(block: ExecutionBlock, slot: number): void
  /** Changes the state at the head by hand. */
  change(how: (state: SimulatedState) => void): void
  /** Goes back to the newest state whose execution block `keeps`. */
  rollBack(keeps: (executed: SimulatedState['executed']) => boolean): void
  /** What is to be paid since the last call. */
  takePayments(): readonly Withdrawal[]
  setFinality(on: boolean): void
  readonly withdrawals: readonly Withdrawal[]
  readonly requests: readonly RequestRecord[]
  readonly lostDeposits: readonly (LostDeposit & { readonly epoch: number })[]
}

/** The state transition over slots, and the states that it went through. No clock, no I/O. */
export function createMachine(spec: SimulatorSpec, genesis: SimulatedState, keptStates = 4_096): BeaconMachine {
  let state = genesis
  /** With how many withdrawals and requests there were. */
  let history = [{ state: structuredClone(genesis), withdrawn: 0, asked: 0 }]
  let unpaid: Withdrawal[] = []
  let finality = true
  const withdrawals: Withdrawal[] = []
  const requests: RequestRecord[] = []
  const lostDeposits: (LostDeposit & { epoch: number })[] = []

  const keep = (): void => {
    const last = history.at(-1)
    // Two blocks of anvil may have one second; each can be gone back to.
    if (last?.state.slot === state.slot && last.state.executed.hash === state.executed.hash) history.pop()
    history.push({ state: structuredClone(state), withdrawn: withdrawals.length, asked: requests.length })
    if (history.length > keptStates) history = history.slice(-keptStates)
  }

  const nextSlot = (): void => {
    const boundary = (state.slot + 1) % spec.SLOTS_PER_EPOCH === 0
    if (boundary) {
      const lost = processEpoch(state, spec, finality)
      lostDeposits.push(...lost.map((each) => ({ ...each, epoch: (state.slot + 1) / spec.SLOTS_PER_EPOCH })))
    }
    state.slot += 1
    // On a real chain a block does this; here every slot does, so that jumps over many slots need no blocks.
    const paid = processWithdrawals(state, spec)
    withdrawals.push(...paid)
    unpaid.push(...paid)
    takeRequests()
    if (boundary || paid.length > 0) keep()
  }

  /** The contract's queue gives a payload so many at most. */
  const takeRequests = (): void => {
    const taken = state.requestQueue.slice(0, spec.MAX_WITHDRAWAL_REQUESTS_PER_PAYLOAD)
    state.requestQueue = state.requestQueue.slice(taken.length)
    for (const request of taken) requests.push({ ...request, ...processWithdrawalRequest(state, spec, request), slot: state.slot })
  }

  const machine: BeaconMachine = {
    state: () => state,
    stateAt: (slot) => {
      if (slot > state.slot) return undefined
      const found = history.findLast((each) => each.state.slot <= slot)
      return found === undefined ? undefined : { ...structuredClone(found.state), slot }
    },
    advanceTo: (slot) => {
      while (state.slot < slot) nextSlot()
      keep()
    },
    execute: (block, slot) => {
      machine.advanceTo(slot)
      state.pendingDeposits.push(...block.deposits.map((deposit) => ({ ...deposit, slot: state.slot })))
      state.requestQueue.push(...block.withdrawalRequests)
      takeRequests()
      state.executed = { number: block.number, hash: block.hash }
      keep()
    },
    change: (how) => {
      how(state)
      keep()
    },
    rollBack: (keeps) => {
      const index = history.findLastIndex((each) => keeps(each.state.executed))
      const found = history[index]
      if (found === undefined) throw new Error('the execution layer was reorganised deeper than the simulator remembers')
      history = history.slice(0, index + 1)
      state = structuredClone(found.state)
      // What was paid after it is no longer in the execution layer's state either, and is paid again.
      const undone = withdrawals.splice(found.withdrawn)
      requests.splice(found.asked)
      unpaid = unpaid.filter((each) => !undone.includes(each))
    },
    takePayments: () => {
      const payments = unpaid
      unpaid = []
      return payments
    },
    setFinality: (on) => {
      finality = on
    },
    withdrawals,
    requests,
    lostDeposits,
  }
  return machine
}
