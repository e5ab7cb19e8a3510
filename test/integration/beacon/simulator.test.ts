import { setTimeout as sleep } from 'node:timers/promises'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { BeaconChain } from '../../../src/chains/ethereum/beacon.ts'
import { createBeaconChain } from '../../../src/chains/ethereum/beacon-chain.ts'
import { requestOutcome } from '../../../src/chains/ethereum/beacon-outcome.ts'
import { validatorPhase } from '../../../src/chains/ethereum/beacon-phase.ts'
import { slotAt } from '../../../src/chains/ethereum/beacon-time.ts'
import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import { ethereumNetworkConfig } from '../../../src/chains/ethereum/networks.ts'
import { feeAtExcess, readRequestFee, withFeeHeadroom } from '../../../src/chains/ethereum/requests.ts'
import { createEthereumChain } from '../../../src/chains/ethereum/rpc-chain.ts'
import { exitBroken, withdrawalBroken, withdrawalCapacity } from '../../../src/chains/ethereum/withdrawal-rules.ts'
import { gwei } from '../../../src/lib/amounts.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import { createSender, exitOf, type Sender, type SentRequest, withdrawalOf } from '../../chains/beacon/sender.ts'
import { type BeaconSimulator, startBeaconSimulator } from '../../chains/beacon/simulator.ts'

/** The simulator, looked at through our own Beacon API client, with the real contracts in front. */
const never = new AbortController().signal
const GENESIS_FORK_VERSION = '0x10000038'
const eth = 1_000_000_000n
let anvil: Anvil
let simulator: BeaconSimulator
let beacon: BeaconChain
let sender: Sender
let next = 0

beforeAll(async () => {
  anvil = await startAnvil({ accounts: 3 })
  simulator = await startBeaconSimulator({ anvil })
  const network = ethereumNetworkConfig.parse({
    name: 'local',
    chain: 'Ethereum',
    rpcUrls: [anvil.url],
    chainId: anvil.chainId,
    depositContractAddress: anvil.depositContract,
    genesisForkVersion: GENESIS_FORK_VERSION,
  })
  beacon = createBeaconChain({ network, urls: [simulator.url], clock: systemClock })
  sender = createSender({ ...anvil, genesisForkVersion: GENESIS_FORK_VERSION })
})
afterAll(async () => {
  await simulator?.stop()
  await anvil?.stop()
})

const account = (index = 0) => privateKeyToAccount(anvil.accounts[index]?.privateKey ?? '0x')
const secret = () => {
  next += 1
  return new Uint8Array(32).fill(next)
}
const validatorOf = async (pubkey: Hex) => (await beacon.validators([pubkey], 'head', never)).validators.get(pubkey)
async function activeValidator(options: Parameters<Sender['deposit']>[2] = {}): Promise<Hex> {
  const { pubkey } = await sender.deposit(account(), secret(), options)
  await simulator.advanceUntil(pubkey, ['active_ongoing'])
  return pubkey
}
const grownUp = () => simulator.advanceEpochs(simulator.spec.SHARD_COMMITTEE_PERIOD)
async function outcomeOf({ logged, timestamp }: SentRequest) {
  const [genesis, spec] = [await beacon.genesis(never), await beacon.spec(never)]
  const slot = slotAt(genesis, spec, timestamp)
  const [before, after] = [
    await beacon.withdrawalView(logged.request.pubkey, slot - 1, never),
    await beacon.withdrawalView(logged.request.pubkey, slot, never),
  ]
  const outcome = requestOutcome({ logged, spec, before, after })
  return outcome.status === 'dropped' ? { status: outcome.status, codes: outcome.broken.map(({ code }) => code) } : outcome
}
async function rules(pubkey: Hex) {
  const view = await beacon.withdrawalView(pubkey, 'head', never)
  return { ...view, spec: await beacon.spec(never), sender: account().address }
}

test('it says that it is a simulator', async () => {
  const { data } = (await (await fetch(`${simulator.url}/eth/v1/node/version`)).json()) as { data: { version: string } }
  expect(data.version).toMatch(/simulator.*not a beacon node/)
})

describe('a deposit', () => {
  test('is pending, then in the registry, queued, and active', async () => {
    const { pubkey } = await sender.deposit(account(), secret())
    expect(await validatorOf(pubkey)).toBeUndefined()
    expect((await beacon.pendingDeposits('head', never)).map((deposit) => deposit.pubkey)).toContain(pubkey)
    const seen: string[] = []
    for (let epochs = 0; epochs < 12 && seen.at(-1) !== 'active_ongoing'; epochs += 1) {
      await simulator.advanceEpochs(1)
      const validator = await validatorOf(pubkey)
      if (validator !== undefined && seen.at(-1) !== validator.status) seen.push(validator.status)
    }
    expect(seen).toEqual(['pending_initialized', 'pending_queued', 'active_ongoing'])
    expect((await beacon.pendingDeposits('head', never)).map((deposit) => deposit.pubkey)).not.toContain(pubkey)
    expect(await validatorOf(pubkey)).toMatchObject({ balanceGwei: 32n * eth, effectiveBalanceGwei: 32n * eth })
  })

  test('with a signature for another network is lost', async () => {
    const { pubkey } = await sender.deposit(account(), secret(), { forkVersion: '0x00000000' })
    await simulator.advanceEpochs(8)
    expect(await validatorOf(pubkey)).toBeUndefined()
    expect(await simulator.lostDeposits()).toContain(pubkey)
  })

  test('waits for finality', async () => {
    simulator.setFinality(false)
    const { pubkey } = await sender.deposit(account(), secret())
    await simulator.advanceEpochs(8)
    expect(await validatorOf(pubkey)).toBeUndefined()
    simulator.setFinality(true)
    await simulator.advanceUntil(pubkey, ['active_ongoing'])
  })

  test('for a key that is there tops it up, whatever its credentials', async () => {
    const key = secret()
    const { pubkey, withdrawalCredentials } = await sender.deposit(account(), key)
    await simulator.advanceUntil(pubkey, ['active_ongoing'])
    await sender.deposit(account(1), key, { amountGwei: 3n * eth })
    await simulator.advanceEpochs(6)
    expect(await validatorOf(pubkey)).toMatchObject({ balanceGwei: 35n * eth, effectiveBalanceGwei: 35n * eth, withdrawalCredentials })
  })

  test('over the churn of an epoch takes several', async () => {
    const { pubkey } = await sender.deposit(account(), secret(), { amountGwei: 640n * eth })
    await simulator.advanceEpochs(5)
    expect(await validatorOf(pubkey)).toBeUndefined()
    await simulator.advanceEpochs(6)
    expect(await validatorOf(pubkey)).toMatchObject({ balanceGwei: 640n * eth })
  })
})

describe('a partial withdrawal', () => {
  let pubkey: Hex
  beforeAll(async () => {
    pubkey = await activeValidator({ amountGwei: 40n * eth, to: account(2).address })
  })

  test('is dropped while the validator is young, as the rules said', async () => {
    const state = await rules(pubkey)
    const validator = state.validator
    expect(withdrawalBroken({ ...state, sender: account(2).address }, gwei(1n)).map(({ code }) => code)).toEqual(['too-young'])
    expect(await outcomeOf(await sender.request(account(2), withdrawalOf(pubkey, eth)))).toEqual({
      status: 'dropped',
      codes: ['too-young'],
    })
    expect((await simulator.requests()).at(-1)).toMatchObject({ accepted: false, reason: 'active for less than SHARD_COMMITTEE_PERIOD' })
    expect(validator?.status).toBe('active_ongoing')
    await grownUp()
  })

  test('from another address is dropped', async () => {
    expect(await outcomeOf(await sender.request(account(1), withdrawalOf(pubkey, eth)))).toEqual({
      status: 'dropped',
      codes: ['sender-not-withdrawal-address'],
    })
  })

  test('is accepted, pending, and paid when its epoch has come', async () => {
    const before = await sender.balance(account(2).address)
    const sent = await sender.request(account(2), withdrawalOf(pubkey, 5n * eth))
    const outcome = await outcomeOf(sent)
    expect(outcome).toMatchObject({ status: 'accepted', kind: 'withdrawal', amountGwei: 5n * eth })
    expect(withdrawalCapacity(await rules(pubkey))).toMatchObject({ pendingWithdrawalsGwei: 5n * eth, availableGwei: 3n * eth })
    const afterFees = await sender.balance(account(2).address)
    expect(afterFees).toBeLessThan(before)
    await simulator.advanceEpochs(8)
    expect(await sender.balance(account(2).address)).toBe(afterFees + 5n * 10n ** 18n)
    expect(await validatorOf(pubkey)).toMatchObject({ balanceGwei: 35n * eth, effectiveBalanceGwei: 35n * eth })
    // What became of it can be told later, too, as long as the state is kept.
    expect(await outcomeOf(sent)).toEqual(outcome)
  })

  test('of more than there is gets what there is', async () => {
    expect(withdrawalBroken(await rules(pubkey), gwei(100n * eth)).map(({ code }) => code)).toContain('amount-over-available')
    expect(await outcomeOf(await sender.request(account(2), withdrawalOf(pubkey, 100n * eth)))).toMatchObject({ amountGwei: 3n * eth })
  })

  test('bars an exit until it is paid', async () => {
    expect(exitBroken(await rules(pubkey)).map(({ code }) => code)).toContain('pending-withdrawals')
    expect(await outcomeOf(await sender.request(account(2), exitOf(pubkey)))).toEqual({ status: 'dropped', codes: ['pending-withdrawals'] })
    await simulator.advanceEpochs(8)
    expect(await outcomeOf(await sender.request(account(2), withdrawalOf(pubkey, eth)))).toEqual({
      status: 'dropped',
      codes: ['nothing-available'],
    })
  })
})

describe('an exit', () => {
  test.each(['0x01', '0x02'] as const)('of a %s validator goes through its phases and pays everything', async (type) => {
    const to = account(2).address
    const pubkey = await activeValidator({ type, to })
    await grownUp()
    const sent = await sender.request(account(2), exitOf(pubkey))
    expect(await outcomeOf(sent)).toMatchObject({ status: 'accepted', kind: 'exit' })
    expect(await outcomeOf(await sender.request(account(2), exitOf(pubkey)))).toEqual({ status: 'dropped', codes: ['already-exiting'] })
    const before = await sender.balance(to)
    const phases: string[] = []
    for (let epochs = 0; epochs < 12 && phases.at(-1) !== 'done'; epochs += 1) {
      const validator = await validatorOf(pubkey)
      const phase = validator === undefined ? 'unknown' : validatorPhase(validator)
      if (phases.at(-1) !== phase) phases.push(phase)
      await simulator.advanceEpochs(1)
    }
    expect(phases).toEqual(['exiting', 'done'])
    expect(await sender.balance(to)).toBe(before + 32n * 10n ** 18n)
    expect((await validatorOf(pubkey))?.status).toBe('withdrawal_done')
  })

  test('for a key that nobody deposited is dropped', async () => {
    const pubkey: Hex = `0x${'99'.repeat(48)}`
    expect(await outcomeOf(await sender.request(account(), exitOf(pubkey)))).toEqual({ status: 'dropped', codes: ['unknown-validator'] })
  })

  test('of many takes its turn: the queue has a churn', async () => {
    const keys: Hex[] = []
    for (let count = 0; count < 3; count += 1) keys.push(await activeValidator({ amountGwei: 100n * eth }))
    await grownUp()
    for (const key of keys) await sender.request(account(), exitOf(key))
    const epochs = await Promise.all(keys.map(async (key) => (await validatorOf(key))?.exitEpoch ?? 0))
    // 100 + 100 + 100 ETH at 128 an epoch.
    expect(epochs.map((epoch) => epoch - (epochs[0] ?? 0))).toEqual([0, 1, 2])
  })
})

describe('the hand of a test', () => {
  test('slashes: no request moves it any more', async () => {
    const pubkey = await activeValidator()
    await grownUp()
    await simulator.slash(pubkey)
    const validator = await validatorOf(pubkey)
    expect(validator).toMatchObject({ status: 'active_slashed', slashed: true })
    expect(exitBroken(await rules(pubkey)).map(({ code }) => code)).toEqual(['slashed'])
    expect(await outcomeOf(await sender.request(account(), exitOf(pubkey)))).toEqual({ status: 'dropped', codes: ['slashed'] })
  })

  test('gives rewards, which a 0x01 validator is paid without a request', async () => {
    const to = account(1).address
    const pubkey = await activeValidator({ type: '0x01', to })
    const before = await sender.balance(to)
    await simulator.setBalance(pubkey, 33n * eth)
    await simulator.advanceSlots(1)
    expect(await sender.balance(to)).toBe(before + 10n ** 18n)
    await grownUp()
    expect(withdrawalBroken(await rules(pubkey), gwei(1n)).map(({ code }) => code)).toEqual([
      'sender-not-withdrawal-address',
      'credentials-not-compounding',
    ])
  })

  test('sets it behind: nobody believes it then', async () => {
    simulator.setBehind(4)
    await expect(beacon.head(never)).rejects.toMatchObject({ code: 'behind' })
    simulator.setBehind(0)
    expect((await beacon.head(never)).slot).toBe(await simulator.slot())
  })

  test.each([0n, 50n, 200n])('sets the excess to %s, and the contract asks for its fee', async (excess) => {
    await simulator.setRequestExcess(excess)
    const network = ethereumNetworkConfig.parse({
      name: 'local',
      chain: 'Ethereum',
      rpcUrls: [anvil.url],
      chainId: anvil.chainId,
      depositContractAddress: anvil.depositContract,
      genesisForkVersion: GENESIS_FORK_VERSION,
    })
    const chain = createEthereumChain({ config: network, clock: systemClock })
    const { feeWei, quotedAtBlock } = await readRequestFee(chain, never)
    expect(feeWei).toBe(feeAtExcess(excess))
    expect(quotedAtBlock).toBe(BigInt(await anvil.blockNumber()))
    const sent = await sender.request(account(), exitOf(`0x${'98'.repeat(48)}`), withFeeHeadroom(feeWei))
    expect(await chain.blockTime(sent.blockNumber, never)).toBe(sent.timestamp)
    if (feeWei > 1n) await expect(sender.request(account(), exitOf(`0x${'98'.repeat(48)}`), feeWei - 1n)).rejects.toThrow('reverted')
  })
})

describe('a reorganisation of the execution layer', () => {
  beforeEach(() => simulator.setRequestExcess(0n))
  test('takes a request back, and with it what the consensus layer had made of it', async () => {
    const pubkey = await activeValidator()
    await grownUp()
    await sender.request(account(), exitOf(pubkey))
    expect((await validatorOf(pubkey))?.status).toBe('active_exiting')
    await anvil.reorg(1)
    expect((await validatorOf(pubkey))?.status).toBe('active_ongoing')
    expect((await simulator.requests()).filter(({ validatorPubkey }) => validatorPubkey === pubkey)).toEqual([])
  })
})

describe('by the clock', () => {
  test("a block has its slot's time, though anvil's clock loses what it throws away", async () => {
    const chain = await startAnvil({ accounts: 1, mining: 1 })
    const ticking = await startBeaconSimulator({ anvil: chain, time: 'clock', spec: { SECONDS_PER_SLOT: 1, SLOTS_PER_EPOCH: 4 } })
    try {
      const lag = async () => {
        const { timestamp } = await chain.rpc<{ timestamp: Hex }>('eth_getBlockByNumber', ['latest', false])
        return (await ticking.slot()) - (Number(timestamp) - ticking.genesisTime)
      }
      for (let block = 0; block < 3; block++) {
        await chain.mine()
        await ticking.sync()
      }
      for (let time = 0; time < 8; time++) {
        await chain.reorg(1).catch(() => {})
        await sleep(600)
      }
      await expect.poll(lag, { timeout: 30_000 }).toBeLessThanOrEqual(2)
    } finally {
      await ticking.stop()
      await chain.stop()
    }
  })

  test('slots pass by the time of day, jumps go ahead of it, and our client takes neither for a lag', async () => {
    const chain = await startAnvil({ accounts: 1 })
    const ticking = await startBeaconSimulator({ anvil: chain, time: 'clock', spec: { SECONDS_PER_SLOT: 1, SLOTS_PER_EPOCH: 4 } })
    try {
      const own = createSender({ ...chain, genesisForkVersion: GENESIS_FORK_VERSION })
      const payer = privateKeyToAccount(chain.accounts[0]?.privateKey ?? '0x')
      const client = createBeaconChain({
        network: ethereumNetworkConfig.parse({
          name: 'local',
          chain: 'Ethereum',
          rpcUrls: [chain.url],
          chainId: chain.chainId,
          depositContractAddress: chain.depositContract,
          genesisForkVersion: GENESIS_FORK_VERSION,
        }),
        urls: [ticking.url],
        clock: systemClock,
      })
      const first = (await client.head(never)).slot
      await expect.poll(async () => (await client.head(never)).slot, { timeout: 30_000 }).toBeGreaterThan(first)
      const { pubkey } = await own.deposit(payer, new Uint8Array(32).fill(1))
      const atDeposit = (await client.pendingDeposits('head', never))[0]?.slot ?? 0
      expect(Math.abs(atDeposit - (await ticking.slot()))).toBeLessThanOrEqual(3)
      await ticking.advanceUntil(pubkey, ['active_ongoing'])
      expect((await client.validators([pubkey], 'head', never)).validators.get(pubkey)).toMatchObject({ status: 'active_ongoing' })
    } finally {
      await ticking.stop()
      await chain.stop()
    }
  })
})
