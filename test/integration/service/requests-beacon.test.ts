import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { BeaconChain } from '../../../src/chains/ethereum/beacon.ts'
import { withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import { parseEth } from '../../../src/lib/amounts.ts'
import { keyIndexOf } from '../../../src/service/key-index.ts'
import { createValidatorKeys, parseSeed } from '../../../src/service/seed.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { freePort } from '../../cluster/ports.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { createFakeChain } from './fake-chain.ts'
import { startService, type TestService } from './harness.ts'
import { createPayer } from './payer.ts'
import { eventually, startTracked, startValidatorChain, type TrackedService, type ValidatorChain } from './validators.ts'

/** The beacon chain as a stake's owner meets it: late, away, of another network, or not there at all. */
let chain: ValidatorChain
let store: Store
let running: TrackedService
let key: string
const others: TrackedService[] = []

beforeAll(async () => {
  chain = await startValidatorChain()
  store = await openStore(await memoryDatabase())
  running = await startTracked(store, chain)
  key = await running.service.key()
})
afterEach(() => chain.simulator.setBehind(0))
afterAll(async () => {
  for (const other of others) await other.stop()
  await running?.stop()
  await store?.close()
  await chain?.stop()
})

const fresh = () => randomBytes(8).toString('hex')
const final = () => chain.anvil.mine(3)
const validatorPath = (pubkey: string) => `/v1/ethereum/validators/${pubkey}`
const askFor = (service: TestService, pubkey: string, kind: 'exit' | 'withdrawal', by = key) =>
  service.call('POST', `${validatorPath(pubkey)}/${kind}-requests`, {
    key: by,
    idempotencyKey: fresh(),
    body: kind === 'exit' ? {} : { amountGwei: '1000000000' },
  })
const read = async (path: string) => (await running.service.call('GET', path, { key })).body
async function another(more: Parameters<typeof startTracked>[2]): Promise<TestService> {
  const other = await startTracked(store, chain, more)
  others.push(other)
  return other.service
}

test('a stake shows its validator from the deposit to the exit, and its rules tell the epoch', async () => {
  const stake = (await running.service.stake(key, { amountEth: 40, withdrawalAddress: chain.account(0).address })).body
  const { pubkey } = stake.depositData
  const path = `/v1/ethereum/stakes/${stake.stakeId}`
  expect(stake.validator).toEqual({ pubkey, status: 'unknown' })
  expect(await read(`${validatorPath(pubkey)}/withdrawal-capacity`)).toMatchObject({
    eligible: false,
    credentialsType: '0x02',
    validatorStatus: 'unknown',
    balanceGwei: '0',
    reasons: [expect.stringContaining('unknown-validator')],
  })

  const hash = await createPayer(chain.anvil).pay(stake.unsignedTransaction, undefined, undefined, 400_000n)
  await running.service.call('PUT', `${path}/submission`, { key, body: { transactionHash: hash } })
  await final()
  await eventually(() => read(path), { transaction: { status: 'confirmed' } })
  await chain.simulator.advanceUntil(pubkey, ['active_ongoing'])
  const active = await eventually(() => read(path), { validator: { status: 'active_ongoing', balanceGwei: '40000000000' } })
  expect(active.validator).toMatchObject({ pubkey, index: expect.any(Number), activationEpoch: expect.any(Number) })
  const listed = await running.service.call('GET', '/v1/ethereum/stakes', { key })
  expect(listed.body.items[0].validator).toEqual(active.validator)

  const oldEnough = active.validator.activationEpoch + chain.simulator.spec.SHARD_COMMITTEE_PERIOD
  for (const kind of ['exit', 'withdrawal'] as const) {
    const refused = await askFor(running.service, pubkey, kind)
    expect(refused).toMatchObject({ status: 422, body: { code: 'validation-failed', errors: [{ code: 'too-young' }] } })
    expect(refused.body.detail).toContain(`from epoch ${oldEnough} on`)
  }
  expect(await read(`${validatorPath(pubkey)}/withdrawal-capacity`)).toMatchObject({ eligible: false, earliestEligibleEpoch: oldEnough })

  // Nobody else's, though the beacon chain shows it to everybody.
  const other = await running.service.key({ account: 'other' })
  for (const kind of ['exit', 'withdrawal'] as const) {
    expect((await askFor(running.service, pubkey, kind, other)).status).toBe(404)
    expect((await running.service.call('GET', `${validatorPath(pubkey)}/${kind}-requests`, { key: other })).status).toBe(404)
  }
  expect((await running.service.call('GET', `${validatorPath(pubkey)}/withdrawal-capacity`, { key: other })).status).toBe(404)

  await chain.simulator.advanceEpochs(chain.simulator.spec.SHARD_COMMITTEE_PERIOD)
  const exit = (await askFor(running.service, pubkey, 'exit')).body
  const exitHash = await createPayer(chain.anvil).pay(exit.unsignedTransaction)
  const exitPath = `${validatorPath(pubkey)}/exit-requests/${exit.requestId}`
  await running.service.call('PUT', `${exitPath}/submission`, { key, body: { transactionHash: exitHash } })
  await final()
  await eventually(() => read(exitPath), { status: 'confirmed', consensus: { status: 'accepted' } })
  const leaving = await eventually(() => read(path), { validator: { exitEpoch: expect.any(Number) } })
  expect(leaving.validator.status).toMatch(/^(active_exiting|exited_unslashed)$/)
})

test('a new key that the beacon chain knows is skipped, though the deposit contract has no log of it', async () => {
  const seed = randomBytes(32).toString('hex')
  const keys = createValidatorKeys(parseSeed(seed, 'the seed'))
  const [idempotencyKey, mine] = [randomBytes(8).toString('hex'), '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359'] as const
  const order = {
    account: 'acme',
    idempotencyKey,
    network: 'devnet',
    withdrawalCredentials: withdrawalCredentials('0x02', mine),
    amountGwei: parseEth('32'),
  }
  const first = keys.derive(keyIndexOf(keys, order, 0)).publicKey
  const { validators } = running.service.networks.get('devnet') ?? {}
  if (validators === undefined) throw new Error('the service has no beacon chain')
  const known = (await validators.beacon.validators([chain.fresh()], 'head', new AbortController().signal)).validators.values().next().value
  const beacon: BeaconChain = {
    ...validators.beacon,
    validators: async (pubkeys) => ({
      slot: 1,
      epoch: 0,
      validators: new Map(known === undefined || !pubkeys.includes(first) ? [] : [[first, { ...known, pubkey: first }]]),
    }),
  }
  const config = chain.config()
  const ownStore = await openStore(await memoryDatabase())
  const network = { config, chain: createFakeChain('devnet'), validators: { beacon, reads: validators.reads } }
  const service = await startService(ownStore, { seed, networks: new Map([['devnet', network]]) })
  try {
    const body = { network: 'devnet', amountEth: 32, withdrawalAddress: mine }
    const made = await service.call('POST', '/v1/ethereum/stakes', { key: await service.key(), idempotencyKey, body })
    expect(made.status).toBe(201)
    expect(made.body.depositData.pubkey).not.toBe(first)
    expect(service.logs()).toContain('has another deposit already and is skipped')
  } finally {
    await service.close()
    await ownStore.close()
  }
})

describe('without an answer of the beacon chain', () => {
  const unavailable = (why: RegExp) => ({
    status: 503,
    body: { code: 'chain-unavailable', detail: expect.stringMatching(why) },
  })
  async function refusesEverything(service: TestService, pubkey: string, why: RegExp) {
    for (const kind of ['exit', 'withdrawal'] as const) expect(await askFor(service, pubkey, kind)).toMatchObject(unavailable(why))
    expect(await service.call('GET', `${validatorPath(pubkey)}/withdrawal-capacity`, { key })).toMatchObject(unavailable(why))
  }

  test('as it is behind, nothing is promised, and an accepted request is told once it caught up', async () => {
    const pubkey = chain.fresh()
    const request = (await askFor(running.service, pubkey, 'exit')).body
    chain.simulator.setBehind(40)
    await refusesEverything(running.service, pubkey, /behind/)
    const path = `${validatorPath(pubkey)}/exit-requests/${request.requestId}`
    const hash = await createPayer(chain.anvil).pay(request.unsignedTransaction)
    await running.service.call('PUT', `${path}/submission`, { key, body: { transactionHash: hash } })
    await final()
    await eventually(() => read(path), { status: 'confirmed', consensus: { status: 'pending' } })
    chain.simulator.setBehind(0)
    await eventually(() => read(path), { status: 'confirmed', consensus: { status: 'accepted' } })
  })

  test('as it is down, nothing is promised, and stakes are shown all the same', async () => {
    const service = await another({ beaconUrls: [`http://127.0.0.1:${await freePort()}`] })
    await refusesEverything(service, chain.fresh(), /does not answer/)
    const listed = await service.call('GET', '/v1/ethereum/stakes', { key })
    expect(listed.status).toBe(200)
    for (const { validator } of listed.body.items) expect(validator.status).toBe('unknown')
    expect((await service.stake(key)).status).toBe(503)
  })

  test('as it is of another network, nothing is promised', async () => {
    const service = await another({ config: { genesisForkVersion: '0x10000999' } })
    await refusesEverything(service, chain.fresh(), /another network/)
  })

  test('as none is configured, that is said, and stakes are made all the same', async () => {
    const service = await another({ beaconUrls: [] })
    await refusesEverything(service, chain.fresh(), /beaconApiUrls/)
    expect((await service.stake(key)).status).toBe(201)
  })
})
