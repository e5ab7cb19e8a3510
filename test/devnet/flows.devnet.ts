import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { BeaconChain, BeaconValidator } from '../../src/chains/ethereum/beacon.ts'
import { createBeaconChain } from '../../src/chains/ethereum/beacon-chain.ts'
import { type RequestOutcome, requestOutcome } from '../../src/chains/ethereum/beacon-outcome.ts'
import { validatorPhase } from '../../src/chains/ethereum/beacon-phase.ts'
import { epochOf, slotAt } from '../../src/chains/ethereum/beacon-time.ts'
import type { Hex } from '../../src/chains/ethereum/chain.ts'
import { ethereumNetworkConfig } from '../../src/chains/ethereum/networks.ts'
import { readRequestFee, withFeeHeadroom } from '../../src/chains/ethereum/requests.ts'
import { createEthereumChain } from '../../src/chains/ethereum/rpc-chain.ts'
import { exitBroken, withdrawalCapacity } from '../../src/chains/ethereum/withdrawal-rules.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { startAnvil } from '../chains/anvil.ts'
import { createSender, exitOf, type Sender, type SentRequest, withdrawalOf } from '../chains/beacon/sender.ts'
import { type Shape, shapeOf } from '../chains/beacon/shape.ts'
import { startBeaconSimulator } from '../chains/beacon/simulator.ts'
import { until } from './until.ts'

/**
 * The truth: our deposits, requests, rules and Beacon API client on a real proof-of-stake network, and the simulator's answers beside the real ones.
 * Epochs take 8 s; the flows run side by side.
 */
const never = new AbortController().signal
const eth = 1_000_000_000n
const devnet = inject('devnet')
/** The constants that config.yml shortens. */
const devnetConstants = {
  SECONDS_PER_SLOT: 2,
  SLOTS_PER_EPOCH: 4,
  SHARD_COMMITTEE_PERIOD: 2,
  MIN_VALIDATOR_WITHDRAWABILITY_DELAY: 1,
  MAX_SEED_LOOKAHEAD: 1,
}
let beacon: BeaconChain
let sender: Sender
const outcomes: Record<string, Promise<unknown>> = {}

beforeAll(() => {
  beacon = createBeaconChain({ network: config(), urls: [devnet.beaconUrl], clock: systemClock })
  sender = createSender(devnet)
  outcomes.deposited = depositedValidator()
  outcomes.plainExit = plainExit()
})
afterAll(async () => {
  await Promise.allSettled(Object.values(outcomes))
})

const config = () =>
  ethereumNetworkConfig.parse({
    name: 'devnet',
    chain: 'Ethereum',
    rpcUrls: [devnet.url],
    chainId: devnet.chainId,
    depositContractAddress: devnet.depositContract,
    genesisForkVersion: devnet.genesisForkVersion,
  })
const account = (index: number) => privateKeyToAccount(devnet.accounts[index]?.privateKey ?? '0x')
const validatorOf = async (pubkey: Hex): Promise<BeaconValidator | undefined> =>
  (await beacon.validators([pubkey], 'head', never)).validators.get(pubkey)

async function outcomeOf({ logged, timestamp }: SentRequest, chain = beacon): Promise<RequestOutcome> {
  const [genesis, spec] = [await chain.genesis(never), await chain.spec(never)]
  const slot = slotAt(genesis, spec, timestamp)
  await until(`at slot ${slot}`, 30, async () => ((await chain.head(never)).slot >= slot ? true : undefined))
  const before = await chain.withdrawalView(logged.request.pubkey, slot - 1, never)
  return requestOutcome({ logged, spec, before, after: await chain.withdrawalView(logged.request.pubkey, slot, never) })
}
/** How many epochs pass between a request's block and what it says of later epochs. */
async function epochsOf(chain: BeaconChain, { timestamp }: SentRequest, outcome: RequestOutcome) {
  if (outcome.status !== 'accepted') throw new Error('the request was dropped')
  const spec = await chain.spec(never)
  const epoch = epochOf(slotAt(await chain.genesis(never), spec, timestamp), spec)
  return {
    ...(outcome.kind === 'exit' ? { untilExit: outcome.exitEpoch - epoch } : {}),
    untilWithdrawable: (outcome.withdrawableEpoch ?? 0) - epoch,
  }
}
/**
 * Epochs from the one in which finality reached a validator's eligibility to its activation. Eligibility itself tells less: where attestations come
 * late, finality is late too, and every activation with it.
 */
async function activationDelay(url: string, { activationEpoch = 0, activationEligibilityEpoch = 0 }: BeaconValidator): Promise<number> {
  for (let epoch = activationEligibilityEpoch; epoch <= activationEpoch; epoch += 1) {
    const response = await fetch(`${url}/eth/v1/beacon/states/${epoch * devnetConstants.SLOTS_PER_EPOCH}/finality_checkpoints`)
    const { data } = (await response.json()) as { data: { finalized: { epoch: string } } }
    if (Number(data.finalized.epoch) >= activationEligibilityEpoch) return activationEpoch - epoch
  }
  throw new Error(`the validator's eligibility in epoch ${activationEligibilityEpoch} was not final when it was active`)
}
const codesOf = (outcome: RequestOutcome) => (outcome.status === 'dropped' ? outcome.broken.map(({ code }) => code) : outcome.status)

/** A deposit of our own becomes an active validator; too early a request is dropped; a withdrawal is paid; then it exits. */
async function depositedValidator() {
  const owner = account(2)
  const { pubkey } = await sender.deposit(owner, new Uint8Array(32).fill(42), { amountGwei: 40n * eth })
  const pending = await beacon.pendingDeposits('head', never)
  const statuses: string[] = []
  const active = await until('active', 240, async () => {
    const validator = await validatorOf(pubkey)
    const status = validator?.status ?? 'unknown'
    if (statuses.at(-1) !== status) statuses.push(status)
    return status === 'active_ongoing' ? validator : undefined
  })
  const young = await sender.request(owner, exitOf(pubkey))
  const tooEarly = codesOf(await outcomeOf(young))

  const spec = await beacon.spec(never)
  const look = async () => ({ ...(await beacon.withdrawalView(pubkey, 'head', never)), spec, sender: owner.address })
  await until('old enough', 60, async () => (exitBroken(await look()).length === 0 ? true : undefined))
  const capacity = withdrawalCapacity(await look())
  const wrongSender = codesOf(await outcomeOf(await sender.request(account(3), withdrawalOf(pubkey, eth))))
  const sent = await sender.request(owner, withdrawalOf(pubkey, 3n * eth))
  const withdrawal = await outcomeOf(sent)
  const pendingExit = codesOf(await outcomeOf(await sender.request(owner, exitOf(pubkey))))
  const before = await sender.balance(owner.address)
  await until('paid', 120, async () => ((await sender.balance(owner.address)) > before ? true : undefined))
  const paid = (await sender.balance(owner.address)) - before
  const leaving = await sender.request(owner, exitOf(pubkey))
  const exit = await outcomeOf(leaving)
  const epochs = {
    activation: await activationDelay(devnet.beaconUrl, active),
    withdrawal: await epochsOf(beacon, sent, withdrawal),
    exit: await epochsOf(beacon, leaving, exit),
  }
  return { pubkey, pending, statuses, active, tooEarly, capacity, wrongSender, withdrawal, pendingExit, paid, exit, epochs }
}

/** A 0x01 validator of genesis: a request from a stranger is dropped, its owner's exit is accepted and everything paid. */
async function plainExit() {
  const [, , , , , , , , , , , , validator] = devnet.genesisValidators
  if (validator === undefined) throw new Error('no such validator')
  const { pubkey } = validator
  const spec = await beacon.spec(never)
  const owner = account(1)
  await until('old enough', 60, async () => {
    const view = await beacon.withdrawalView(pubkey, 'head', never)
    return exitBroken({ ...view, spec }).length === 0 ? true : undefined
  })
  const wrongSender = codesOf(await outcomeOf(await sender.request(account(4), exitOf(pubkey))))
  const notCompounding = codesOf(await outcomeOf(await sender.request(owner, withdrawalOf(pubkey, eth))))
  const exit = await outcomeOf(await sender.request(owner, exitOf(pubkey)))
  const again = codesOf(await outcomeOf(await sender.request(owner, exitOf(pubkey))))
  const before = await sender.balance(owner.address)
  const phases: string[] = []
  await until('done', 180, async () => {
    const found = await validatorOf(pubkey)
    const phase = found === undefined ? 'unknown' : validatorPhase(found)
    if (phases.at(-1) !== phase) phases.push(phase)
    return phase === 'done' ? true : undefined
  })
  return { wrongSender, notCompounding, exit, again, phases, paid: (await sender.balance(owner.address)) - before }
}

describe('on a real network', () => {
  test('the fee is asked of the real contract, whose queue drains', async () => {
    const chain = createEthereumChain({ config: config(), clock: systemClock })
    const { feeWei, quotedAtBlock } = await readRequestFee(chain, never)
    expect(feeWei).toBe(1n)
    expect(withFeeHeadroom(feeWei)).toBe(101n)
    const [genesis, spec] = [await beacon.genesis(never), await beacon.spec(never)]
    // A block's time is the beginning of its slot.
    const seconds = await chain.blockTime(quotedAtBlock, never)
    expect((seconds - genesis.genesisTime) % (spec.slotDurationMs / 1000)).toBe(0)
  })

  test('constants, genesis and head are read and right', async () => {
    expect(await beacon.spec(never)).toMatchObject({
      slotDurationMs: 2_000,
      slotsPerEpoch: 4,
      shardCommitteePeriod: 2,
      minActivationBalanceGwei: 32n * eth,
      maxEffectiveBalanceElectraGwei: 2048n * eth,
      pendingPartialWithdrawalsLimit: 134_217_728,
      depositChainId: devnet.chainId,
    })
    const first = await beacon.head(never)
    await until('in a later slot', 20, async () => ((await beacon.head(never)).slot > first.slot ? true : undefined))
  })

  test('a beacon node of another network is refused', async () => {
    const other = createBeaconChain({ network: { ...config(), chainId: 1 }, urls: [devnet.beaconUrl], clock: systemClock })
    await expect(other.head(never)).rejects.toMatchObject({ code: 'wrong-network' })
  })

  test('a key that nobody deposited is unknown, and a request for it dropped', async () => {
    const pubkey: Hex = `0x${'99'.repeat(48)}`
    expect(await validatorOf(pubkey)).toBeUndefined()
    const { pubkey: signed } = devnet.genesisValidators[0] ?? { pubkey }
    expect((await beacon.validators([pubkey, signed], 'head', never)).validators.size).toBe(1)
    expect(codesOf(await outcomeOf(await sender.request(account(5), exitOf(pubkey))))).toEqual(['unknown-validator'])
  })

  test('our deposit is pending, then in the registry, and becomes active', async () => {
    const { pubkey, pending, statuses, active } = (await outcomes.deposited) as Awaited<ReturnType<typeof depositedValidator>>
    expect(pending.map((deposit) => deposit.pubkey)).toContain(pubkey)
    expect(statuses.filter((status) => status !== 'pending_initialized')).toEqual(['unknown', 'pending_queued', 'active_ongoing'])
    expect(active.effectiveBalanceGwei).toBe(40n * eth)
  })

  test('its exit is dropped as too early, a stranger’s request as from the wrong sender, an exit behind a withdrawal as barred', async () => {
    const { tooEarly, wrongSender, pendingExit } = (await outcomes.deposited) as Awaited<ReturnType<typeof depositedValidator>>
    expect(tooEarly).toEqual(['too-young'])
    expect(wrongSender).toEqual(['sender-not-withdrawal-address'])
    expect(pendingExit).toEqual(['pending-withdrawals'])
  })

  test('its partial withdrawal is accepted and paid to the gwei, and then its exit is accepted', async () => {
    const { capacity, withdrawal, paid, exit } = (await outcomes.deposited) as Awaited<ReturnType<typeof depositedValidator>>
    expect(capacity).toMatchObject({ eligible: true, broken: [] })
    expect(withdrawal).toMatchObject({ status: 'accepted', kind: 'withdrawal', amountGwei: 3n * eth })
    expect(paid).toBe(3n * 10n ** 18n)
    expect(exit).toMatchObject({ status: 'accepted', kind: 'exit' })
  })

  test('a 0x01 validator exits and is paid everything; what it may not do is dropped', async () => {
    const { wrongSender, notCompounding, exit, again, phases, paid } = (await outcomes.plainExit) as Awaited<ReturnType<typeof plainExit>>
    expect(wrongSender).toEqual(['sender-not-withdrawal-address'])
    expect(notCompounding).toEqual(['credentials-not-compounding'])
    expect(exit).toMatchObject({ status: 'accepted', kind: 'exit' })
    expect(again).toEqual(['already-exiting'])
    expect(phases.at(0)).toBe('exiting')
    expect(phases.at(-1)).toBe('done')
    expect(paid).toBeGreaterThan(31n * 10n ** 18n)
    expect(paid).toBeLessThan(33n * 10n ** 18n)
  })
})

describe('the simulator’s answers', () => {
  test('take as many epochs as the real ones, for the same deposit, withdrawal and exit', async () => {
    const { epochs } = (await outcomes.deposited) as Awaited<ReturnType<typeof depositedValidator>>
    const anvil = await startAnvil({ accounts: 4 })
    const simulator = await startBeaconSimulator({ anvil, spec: { ...devnetConstants, GENESIS_FORK_VERSION: devnet.genesisForkVersion } })
    try {
      const network = { ...config(), chainId: anvil.chainId }
      const chain = createBeaconChain({ network, urls: [simulator.url], clock: systemClock })
      const own = createSender({ ...anvil, genesisForkVersion: devnet.genesisForkVersion })
      const owner = privateKeyToAccount(anvil.accounts[2]?.privateKey ?? '0x')
      const { pubkey } = await own.deposit(owner, new Uint8Array(32).fill(42), { amountGwei: 40n * eth })
      await simulator.advanceUntil(pubkey, ['active_ongoing'])
      const active = (await chain.validators([pubkey], 'head', never)).validators.get(pubkey)
      await simulator.advanceEpochs(2)
      const sent = await own.request(owner, withdrawalOf(pubkey, 3n * eth))
      const withdrawal = await epochsOf(chain, sent, await outcomeOf(sent, chain))
      await simulator.advanceEpochs(4)
      const leaving = await own.request(owner, exitOf(pubkey))
      const exit = await epochsOf(chain, leaving, await outcomeOf(leaving, chain))
      if (active === undefined) throw new Error('the simulator shows no validator')
      expect({ activation: await activationDelay(simulator.url, active), withdrawal, exit }).toEqual(epochs)
    } finally {
      await simulator.stop()
      await anvil.stop()
    }
  })

  test('have the shapes of the real ones', async () => {
    const { pubkey } = (await outcomes.deposited) as Awaited<ReturnType<typeof depositedValidator>>
    const anvil = await startAnvil({ accounts: 4 })
    const simulator = await startBeaconSimulator({ anvil, spec: { GENESIS_FORK_VERSION: devnet.genesisForkVersion } })
    try {
      const own = createSender({ ...anvil, genesisForkVersion: devnet.genesisForkVersion })
      const payer = privateKeyToAccount(anvil.accounts[2]?.privateKey ?? '0x')
      const deposited = await own.deposit(payer, new Uint8Array(32).fill(42), { amountGwei: 40n * eth })
      expect(deposited.pubkey).toBe(pubkey)
      const known = [
        '/eth/v1/beacon/genesis',
        '/eth/v1/config/deposit_contract',
        '/eth/v1/node/syncing',
        '/eth/v1/node/version',
        '/eth/v1/beacon/headers/head',
        '/eth/v1/beacon/states/head/finality_checkpoints',
        '/eth/v1/beacon/states/head/pending_consolidations',
        `/eth/v1/beacon/states/head/validators?id=${pubkey}`,
        `/eth/v1/beacon/states/head/validators/${pubkey}`,
        `/eth/v1/beacon/states/head/validators?id=0x${'99'.repeat(48)}`,
        '/eth/v1/beacon/states/head/validators?status=active',
      ]
      const absent = [`/eth/v1/beacon/states/head/validators/0x${'99'.repeat(48)}`, '/eth/v1/beacon/states/99999999/validators']
      const differences: Record<string, { real: unknown; simulated: unknown }> = {}
      const compare = async (path: string, look: (url: string, path: string) => Promise<unknown> = shape): Promise<void> => {
        const [real, simulated] = [await look(devnet.beaconUrl, path), await look(simulator.url, path)]
        if (JSON.stringify(real) !== JSON.stringify(simulated)) differences[path] = { real, simulated }
      }
      // A list of deposits that is not empty, on both.
      await own.deposit(payer, new Uint8Array(32).fill(43))
      await sender.deposit(account(5), new Uint8Array(32).fill(43))
      await compare('/eth/v1/beacon/states/head/pending_deposits')
      await simulator.advanceUntil(pubkey, ['active_ongoing'])
      await simulator.advanceEpochs(simulator.spec.SHARD_COMMITTEE_PERIOD)
      await own.request(payer, withdrawalOf(pubkey, eth))
      // The real one has a 0x02 validator of genesis, with a little over 32 ETH by now.
      const [, , , , , , , , , , , , , , compounding] = devnet.genesisValidators
      await sender.request(account(1), withdrawalOf(compounding?.pubkey ?? '0x', 1n))
      await compare('/eth/v1/beacon/states/head/pending_partial_withdrawals')
      for (const path of known) await compare(path)
      for (const path of absent) await compare(path, async (url, at) => (await fetch(`${url}${at}`)).status)
      const [real, simulated] = await Promise.all([devnet.beaconUrl, simulator.url].map((url) => shape(url, '/eth/v1/config/spec')))
      const constants = (found: Shape | undefined) => (found as { data: Record<string, Shape> }).data
      const missing = Object.entries(constants(simulated)).filter(
        ([name, kind]) => JSON.stringify(constants(real)[name]) !== JSON.stringify(kind),
      )
      expect(missing).toEqual([])
      expect(differences).toEqual({})
    } finally {
      await simulator.stop()
      await anvil.stop()
    }
  })
})

const shape = async (url: string, path: string): Promise<Shape> => shapeOf(await (await fetch(`${url}${path}`)).json())
