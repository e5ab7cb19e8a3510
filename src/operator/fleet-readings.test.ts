import { expect, test } from 'vitest'
import { wei } from '../lib/amounts.ts'
import { ethereumStake } from '../resources/ethereum-stake.ts'
import type { KindDefinition } from '../resources/meta.ts'
import { solanaStake } from '../resources/solana-stake.ts'
import { stakingSigner } from '../resources/staking-signer.ts'
import { stakingTransaction } from '../resources/staking-transaction.ts'
import { validatorWithdrawal } from '../resources/validator-withdrawal.ts'
import { createCaches } from './caches.ts'
import { CONDITIONS_AT_MOST, createFleetReadings, createPrices } from './fleet-readings.ts'
import type { Readings } from './gauges.ts'
import type { CacheOptions } from './kube/collections.ts'
import type { KubeObject } from './kube/objects.ts'
import { createOperatorMetrics } from './metrics.ts'
import { createFakeKube } from './testing/fake-kube.ts'
import { createTestClock } from './testing/test-clock.ts'
import { followWaits, type Wait } from './waits.ts'

const none = () => []
const bare: Omit<Readings, 'fleet'> = {
  leader: () => true,
  knowsFleet: () => true,
  leaseTransitions: () => 3,
  suspended: () => false,
  suspendedSigners: none,
  queues: none,
  informers: none,
  resources: none,
  signers: none,
  limits: none,
  balances: none,
  nodes: none,
}

function world() {
  const clock = createTestClock()
  const kube = createFakeKube(clock)
  const caches = createCaches(<R extends KubeObject>(definition: KindDefinition, options?: CacheOptions<R>) =>
    kube.follow<R>(definition, options),
  )
  const waits = followWaits(caches, clock)
  const prices = createPrices(clock)
  const fleet = createFleetReadings({ caches, waits, prices, clock })
  const create = (kind: KindDefinition, name: string, spec: object, status?: object, annotations = {}) =>
    kube
      .collection<KubeObject>(kind)
      .create({ metadata: { name, annotations, ...(kind.scope === 'Cluster' ? {} : { namespace: 'team-a' }) }, spec, status })
  return { clock, caches, fleet, prices, create }
}

/** The lines of a scrape that are of one metric. */
async function scraped(fleet: Readings['fleet'], name: string, leader = true): Promise<string[]> {
  const metrics = createOperatorMetrics({ version: '0' })
  metrics.read({ ...bare, fleet, knowsFleet: () => leader })
  const text = await metrics.registry.metrics()
  return text.split('\n').filter((line) => line.startsWith(`staking_operator_${name}{`) || line.startsWith(`staking_operator_${name} `))
}

const condition = (type: string, status: string, reason: string) => ({
  type,
  status,
  reason,
  message: reason,
  lastTransitionTime: '2030-01-01T00:00:00Z',
})
const wait = (index: number, type: string, sinceMs: number): Wait => ({
  type,
  reason: type === 'Stalled' ? 'KeyMissing' : 'FeeTooHigh',
  sinceMs,
  of: { kind: 'EthereumStake', namespace: 'team-a', name: `stake-${index}`, uid: `uid-${index}` },
})

test('ten thousand resources that wait make at most five hundred series of each metric, and all are counted', async () => {
  const { caches, prices, clock } = world()
  const all = [
    ...Array.from({ length: 9_990 }, (_, index) => wait(index, 'Ready', index)),
    ...Array.from({ length: 10 }, (_, index) => wait(9_990 + index, 'Stalled', 9_990 + index)),
  ]
  clock.advance(20_000)
  const fleet = createFleetReadings({ caches, waits: { all: () => all }, prices, clock })
  expect(await scraped(fleet, 'resource_condition')).toHaveLength(CONDITIONS_AT_MOST)
  expect(await scraped(fleet, 'resource_condition_age_seconds')).toHaveLength(CONDITIONS_AT_MOST)
  expect(await scraped(fleet, 'resource_conditions_omitted')).toEqual(['staking_operator_resource_conditions_omitted 9500'])
  expect(await scraped(fleet, 'waiting_resources')).toEqual([
    'staking_operator_waiting_resources{kind="EthereumStake",reason="FeeTooHigh"} 9990',
    'staking_operator_waiting_resources{kind="EthereumStake",reason="KeyMissing"} 10',
  ])
  expect(await scraped(fleet, 'oldest_wait_seconds')).toContain(
    'staking_operator_oldest_wait_seconds{kind="EthereumStake",reason="FeeTooHigh"} 20',
  )
  const shown = (await scraped(fleet, 'resource_condition')).join('\n')
  expect(shown, 'what needs a person comes first').toContain('name="stake-9999",kind="EthereumStake",type="Stalled",reason="KeyMissing"')
  expect(shown, 'then what has waited longest').toContain('name="stake-0"')
})

test('a resource that is not settled is shown by name, with its reason and the age of that', async () => {
  const { clock, create, fleet } = world()
  create(
    ethereumStake,
    'stuck',
    { network: 'hoodi', amountEth: '32', signer: 'treasury' },
    {
      phase: 'Created',
      conditions: [condition('Ready', 'False', 'InsufficientFunds'), condition('Reconciling', 'True', 'InsufficientFunds')],
    },
  )
  create(
    ethereumStake,
    'fine',
    { network: 'hoodi', amountEth: '32', signer: 'treasury' },
    {
      phase: 'Active',
      conditions: [condition('Ready', 'True', 'Succeeded'), condition('Reconciling', 'False', 'Settled')],
      transaction: { state: 'Confirmed' },
    },
  )
  clock.advance(90_000)
  const labels = 'namespace="team-a",name="stuck",kind="EthereumStake",type="Ready",reason="InsufficientFunds"'
  expect(await scraped(fleet, 'resource_condition')).toEqual([`staking_operator_resource_condition{${labels}} 1`])
  expect(await scraped(fleet, 'resource_condition_age_seconds')).toEqual([`staking_operator_resource_condition_age_seconds{${labels}} 90`])
})

test('a standby exports nothing of the fleet', async () => {
  const { create, fleet } = world()
  create(ethereumStake, 'stuck', { network: 'hoodi', amountEth: '32', signer: 'treasury' })
  expect(await scraped(fleet, 'resource_condition', false)).toEqual([])
  expect(await scraped(fleet, 'amount_eth', false)).toEqual([])
  expect(await scraped(fleet, 'lease_transitions_total', false)).toEqual(['staking_operator_lease_transitions_total 3'])
})

test('amounts are summed by kind, network and phase, and what can’t be read spoils no sum', async () => {
  const { create, fleet } = world()
  for (const [name, amountEth, phase] of [
    ['a', '32', 'Active'],
    ['b', '32.5', 'Active'],
    ['c', '40', 'Slashed'],
    ['d', 'x', 'Active'],
  ] as const)
    create(ethereumStake, name, { network: 'hoodi', amountEth, signer: 'treasury' }, { phase, validator: { slashed: phase === 'Slashed' } })
  // A withdrawal's amount is written in ETH or in gwei.
  for (const [name, amount] of [
    ['w', { amountEth: '1.5' }],
    ['v', { amountGwei: '500000000' }],
  ] as const)
    create(validatorWithdrawal, name, { validator: { network: 'hoodi', pubkey: '0x' }, signer: 'treasury', ...amount })
  create(solanaStake, 'e', {
    network: 'devnet',
    amountLamports: '1500000000',
    stakeAuthority: { signer: 's' },
    withdrawAuthority: { signer: 's' },
    desiredState: 'Active',
  })
  expect(await scraped(fleet, 'amount_eth')).toEqual([
    'staking_operator_amount_eth{kind="EthereumStake",network="hoodi",phase="Active"} 64.5',
    'staking_operator_amount_eth{kind="EthereumStake",network="hoodi",phase="Slashed"} 40',
    'staking_operator_amount_eth{kind="ValidatorWithdrawal",network="hoodi",phase="Pending"} 2',
  ])
  expect(await scraped(fleet, 'amount_sol')).toEqual([
    'staking_operator_amount_sol{kind="SolanaStake",network="devnet",phase="Pending"} 1.5',
  ])
  expect(await scraped(fleet, 'slashed_validators')).toEqual(['staking_operator_slashed_validators{network="hoodi"} 1'])
})

test('transactions without an outcome are counted by lane and state, with the age of the oldest', async () => {
  const { clock, create, fleet } = world()
  const originUid = 'aaaaaaaa-0000-4000-8000-000000000001'
  const spec = { network: 'hoodi', amountEth: '32', signer: 'treasury' }
  create(ethereumStake, 'asks', spec, undefined, { 'staking.dev/origin': `${originUid}/team-a/asks` })
  // Of the same name as one that was deleted.
  create(ethereumStake, 'again', spec, undefined, { 'staking.dev/origin': 'aaaaaaaa-0000-4000-8000-000000000002/team-a/again' })
  const record = (name: string, status?: object, owner = 'asks') =>
    create(
      stakingTransaction,
      name,
      {
        chain: 'Ethereum',
        chainId: 1,
        network: 'hoodi',
        purpose: 'Deposit',
        subject: '0x',
        signer: 'treasury',
        from: '0x1',
        generation: 0,
        owner: { kind: 'EthereumStake', namespace: 'team-a', name: owner, originUid },
      },
      status,
    )
  record('waits')
  for (const owner of ['gone', 'again']) record(`of-${owner}`, undefined, owner)
  const attempt = { hash: '0x1', kind: 'Call', nonce: 4, at: '2030-01-01T00:00:20Z' }
  // What may land is told, whoever asked for it.
  record('sent', { place: 4, attempts: [attempt] }, 'gone')
  record('cancelled', {
    place: 5,
    attempts: [
      { ...attempt, nonce: 5 },
      { ...attempt, nonce: 5, kind: 'Cancel', at: '2030-01-01T00:00:40Z' },
    ],
  })
  record('landed', { place: 3, outcome: { is: 'Landed', hash: '0x1', blockNumber: 1 } })
  clock.advance(60_000)
  const lines = await scraped(fleet, 'transactions_open')
  const of = (state: string, count: number) =>
    `staking_operator_transactions_open{signer="treasury",network="hoodi",purpose="Deposit",state="${state}"} ${count}`
  expect(lines.toSorted()).toEqual([of('cancelling', 1), of('open', 1), of('waiting', 1)])
  expect(await scraped(fleet, 'transactions_open_oldest_seconds')).toContain(
    'staking_operator_transactions_open_oldest_seconds{signer="treasury",network="hoodi",purpose="Deposit",state="open"} 40',
  )
})

test('the price of gas is shown beside the cap, as long as it is news', async () => {
  const { clock, create, fleet, prices } = world()
  create(stakingSigner, 'treasury', { chain: 'Ethereum', address: '0x1', policy: { maxFeePerGasGwei: '30' } })
  prices.set('hoodi', { baseFeePerGas: wei(20_000_000_000n), priorityFeePerGas: wei(1_500_000_000n) })
  expect(await scraped(fleet, 'network_base_fee_gwei')).toEqual(['staking_operator_network_base_fee_gwei{network="hoodi"} 20'])
  expect(await scraped(fleet, 'network_priority_fee_gwei')).toEqual(['staking_operator_network_priority_fee_gwei{network="hoodi"} 1.5'])
  expect(await scraped(fleet, 'signer_fee_cap_gwei')).toEqual(['staking_operator_signer_fee_cap_gwei{signer="treasury"} 30'])
  clock.advance(600_001)
  expect(await scraped(fleet, 'network_base_fee_gwei')).toEqual([])
})
