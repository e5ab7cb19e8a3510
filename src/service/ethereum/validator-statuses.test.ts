import { expect, test } from 'vitest'
import { type BeaconChain, BeaconError, type BeaconStatus, type BeaconValidator } from '../../chains/ethereum/beacon.ts'
import type { Hex } from '../../chains/ethereum/chain.ts'
import { gwei } from '../../lib/amounts.ts'
import type { Clock } from '../../lib/clock.ts'
import { createLogger } from '../../lib/log.ts'
import type { EthereumNetworks } from './networks.ts'
import { createValidatorStatuses } from './validator-statuses.ts'

const never = new AbortController().signal
const pubkey = (digit: string): Hex => `0x${digit.repeat(96)}`
const stake = (digit: string, status = 'confirmed') => ({ network: 'devnet', pubkey: pubkey(digit), status })
const validator = (key: Hex, status: BeaconStatus): BeaconValidator => ({
  index: 7,
  pubkey: key,
  status,
  balanceGwei: gwei(32n),
  effectiveBalanceGwei: gwei(32n),
  withdrawalCredentials: '0x01',
  slashed: false,
  activationEligibilityEpoch: 1,
  activationEpoch: 2,
  exitEpoch: undefined,
  withdrawableEpoch: undefined,
})

/** Time that the test moves; a sleep ends when it is asked to, or at once when `impatient`. */
function setUp() {
  let ms = 0
  const world = {
    asked: [] as (readonly Hex[])[],
    status: 'active_ongoing' as BeaconStatus | undefined,
    failing: false,
    hold: Promise.resolve(),
    impatient: false,
    pass: (by: number) => {
      ms += by
    },
  }
  const clock: Clock = {
    now: () => new Date(ms),
    monotonicMs: () => ms,
    sleep: (_ms, signal) =>
      world.impatient
        ? Promise.resolve()
        : new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })),
  }
  const unused = () => Promise.reject(new Error('not called'))
  const beacon: BeaconChain = {
    network: 'devnet',
    spec: unused,
    genesis: unused,
    head: unused,
    withdrawalView: unused,
    executionOf: unused,
    blockAt: unused,
    standing: unused,
    depositView: unused,
    pendingDeposits: unused,
    validators: async (pubkeys) => {
      world.asked.push(pubkeys)
      await world.hold
      if (world.failing) throw new BeaconError('unavailable', 'no answer')
      const { status } = world
      return { slot: 1, epoch: 0, validators: new Map(status === undefined ? [] : pubkeys.map((key) => [key, validator(key, status)])) }
    },
  }
  const networks = new Map([['devnet', { validators: { beacon } }]]) as unknown as EthereumNetworks
  const log = createLogger({ program: 'test', level: 'error', destination: { write: () => undefined } })
  return { world, statuses: createValidatorStatuses({ networks, clock, log }) }
}

test('the validators of many stakes are one question, and for a while none', async () => {
  const { world, statuses } = setUp()
  const stakes = [stake('a'), stake('b', 'submitted'), stake('c', 'awaiting_submission'), stake('d', 'failed')]
  await statuses.refresh(stakes, never)
  expect(world.asked).toEqual([[pubkey('a'), pubkey('b')]])
  expect(statuses.known(stake('a'))?.status).toBe('active_ongoing')
  expect(statuses.known(stake('c'))).toBeUndefined()
  await statuses.refresh(stakes, never)
  expect(world.asked).toHaveLength(1)
  world.pass(3_000)
  world.status = 'active_exiting'
  await statuses.refresh(stakes, never)
  expect(statuses.known(stake('a'))?.status).toBe('active_exiting')
})

test('two that ask at once share a question', async () => {
  const { world, statuses } = setUp()
  await Promise.all([statuses.refresh([stake('a')], never), statuses.refresh([stake('a')], never)])
  expect(world.asked).toHaveLength(1)
})

test('without an answer the last known status is shown, and the node is left alone for a while', async () => {
  const { world, statuses } = setUp()
  await statuses.refresh([stake('a')], never)
  world.failing = true
  world.pass(3_000)
  await statuses.refresh([stake('a')], never)
  expect(statuses.known(stake('a'))?.status).toBe('active_ongoing')
  world.pass(4_000)
  await statuses.refresh([stake('a')], never)
  expect(world.asked).toHaveLength(2)
  world.failing = false
  world.status = undefined
  world.pass(1_000)
  await statuses.refresh([stake('a')], never)
  expect(world.asked).toHaveLength(3)
  // A validator is never gone again.
  expect(statuses.known(stake('a'))?.status).toBe('active_ongoing')
})

test('a slow beacon chain holds no answer up, and fills in later', async () => {
  const { world, statuses } = setUp()
  let release = () => {}
  world.hold = new Promise((resolve) => {
    release = resolve
  })
  world.impatient = true
  await statuses.refresh([stake('a')], never)
  expect(statuses.known(stake('a'))).toBeUndefined()
  world.impatient = false
  const later = statuses.refresh([stake('a')], never)
  release()
  await later
  expect(world.asked).toHaveLength(1)
  expect(statuses.known(stake('a'))?.status).toBe('active_ongoing')
})
