import { randomBytes } from 'node:crypto'
import { keccak256 } from 'viem'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createEthereumChain } from '../../../src/chains/ethereum/rpc-chain.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { Secret } from '../../../src/lib/secret.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { networkConfig, startService, type TestService } from './harness.ts'
import { createPayer } from './payer.ts'
import { eventually } from './validators.ts'

/** Stakes that are paid in ways that nobody reports, and stakes that are cancelled before they are paid. Blocks are mined by the test alone. */
type Hex = `0x${string}`
let anvil: Anvil
let postgres: Postgres
const stores: Store[] = []
const running: { stop(): Promise<void> }[] = []

/**
 * A wallet contract: it calls the address in the first 20 bytes of its calldata with the rest of it and the value that it got, and reverts when that does.
 * CALLDATACOPY(0, 20, size − 20); CALL(gas, shr(96, calldata[0]), value, 0, size − 20, 0, 0); JUMPI; REVERT; STOP.
 */
const wallet: Hex = '0x5afe00000000000000000000000000000000beef'
const walletCode = '0x6014360380601460003760006000916000346000356060' + '1c5af160225760006000fd5b00'

beforeAll(async () => {
  ;[anvil, postgres] = await Promise.all([startAnvil({ mining: 'manual' }), startPostgres()])
  await anvil.rpc('anvil_setCode', [wallet, walletCode])
  await anvil.mine()
})
afterAll(async () => {
  for (const one of running) await one.stop()
  for (const store of stores) await store.close()
  await postgres?.stop()
  await anvil?.stop()
})

/** One service for each database, with its tracker; started when it is first asked for. */
const started = new Map<string, ReturnType<typeof startOn>>()
const start = (database: 'PGlite' | 'PostgreSQL') => {
  const one = started.get(database) ?? startOn(database)
  started.set(database, one)
  return one
}
async function startOn(database: 'PGlite' | 'PostgreSQL') {
  const store =
    database === 'PGlite'
      ? await openStore(await memoryDatabase())
      : await openStore({ kind: 'postgres', url: new Secret(await postgres.createDatabase('unreported')), poolSize: 5 })
  stores.push(store)
  const ending = new AbortController()
  const config = networkConfig('devnet', { rpcUrls: [anvil.url] })
  const chain = createEthereumChain({ config, clock: systemClock, timeoutMs: 5_000, signal: ending.signal })
  const service = await startService(store, { networks: new Map([['devnet', { config, chain }]]) })
  const tracking = service.service.tracker.run(ending.signal)
  running.push({
    stop: async () => {
      ending.abort()
      await tracking
      await service.close()
    },
  })
  return { service, key: await service.key(), payer: createPayer(anvil) }
}
const pathOf = (stake: { stakeId: string }) => `/v1/ethereum/stakes/${stake.stakeId}`
const statusOf = async (service: TestService, key: string, stake: { stakeId: string }) =>
  (await service.call('GET', pathOf(stake), { key })).body.transaction
/** The call of a stake by way of the wallet contract. */
const throughWallet = ({ to, data, valueWei }: { to: Hex; data: Hex; valueWei: string }) => ({
  to: wallet,
  data: `0x${to.slice(2)}${data.slice(2)}` as Hex,
  valueWei,
})

describe.each(['PGlite', 'PostgreSQL'] as const)('a stake (on %s)', (database) => {
  test('that is paid through a wallet contract is confirmed, by the event of the deposit contract', async () => {
    const { service, key, payer } = await start(database)
    const stake = (await service.stake(key)).body
    const hash = await payer.pay(throughWallet(stake.unsignedTransaction), undefined, undefined, 400_000n)
    expect((await service.call('PUT', `${pathOf(stake)}/submission`, { key, body: { transactionHash: hash } })).status).toBe(200)
    await anvil.mine(3)
    await eventually(() => statusOf(service, key, stake), { status: 'confirmed', hash })
    const deposits = (await anvil.deposits()).filter(({ pubkey }) => pubkey === stake.depositData.pubkey)
    expect(deposits).toHaveLength(1)
  })

  test('whose payment nobody reports is seen in the logs once it is final, and not before', async () => {
    const { service, key, payer } = await start(database)
    const stake = (await service.stake(key)).body
    const hash = await payer.pay(stake.unsignedTransaction)
    await anvil.mine(1)
    await new Promise((done) => setTimeout(done, 1_500))
    expect(await statusOf(service, key, stake)).toEqual({ status: 'awaiting_submission' })
    await anvil.mine(2)
    await eventually(() => statusOf(service, key, stake), { status: 'confirmed', hash })
    expect(service.logs()).toContain('a stake was paid by a transaction that nobody has reported')
  })

  test('whose reported hash is wrong is mended by the payment that is in the logs', async () => {
    const { service, key, payer } = await start(database)
    const stake = (await service.stake(key)).body
    const wrong = `0x${randomBytes(32).toString('hex')}`
    await service.call('PUT', `${pathOf(stake)}/submission`, { key, body: { transactionHash: wrong } })
    const hash = await payer.pay(stake.unsignedTransaction)
    await anvil.mine(3)
    await eventually(() => statusOf(service, key, stake), { status: 'confirmed', hash })
  })

  test('that has failed and is paid later counts again, and holds its reference again', async () => {
    const { service, key, payer } = await start(database)
    const externalReference = `EthereumStake/a/${randomBytes(4).toString('hex')}`
    const stake = (await service.stake(key, { externalReference })).body
    const reverted = await payer.pay(stake.unsignedTransaction, undefined, 20, 40_000n)
    await service.call('PUT', `${pathOf(stake)}/submission`, { key, body: { transactionHash: reverted } })
    await anvil.mine(3)
    await eventually(() => statusOf(service, key, stake), { status: 'failed' })
    const hash = await payer.pay(stake.unsignedTransaction)
    await anvil.mine(3)
    await eventually(() => statusOf(service, key, stake), { status: 'confirmed', hash })
    expect(await service.stake(key, { externalReference })).toMatchObject({
      status: 409,
      body: { code: 'reference-exists', existingId: stake.stakeId },
    })
  })
})

describe.each(['PGlite', 'PostgreSQL'] as const)('a stake that was never paid (on %s)', (database) => {
  test('can be cancelled, which frees its name and not its key, and is not to be paid any more', async () => {
    const { service, key } = await start(database)
    const externalReference = `EthereumStake/b/${randomBytes(4).toString('hex')}`
    const stake = (await service.stake(key, { externalReference })).body
    for (const _ of ['first', 'again']) {
      const cancelled = await service.call('DELETE', pathOf(stake), { key })
      expect(cancelled).toMatchObject({ status: 200, body: { stakeId: stake.stakeId, transaction: { status: 'cancelled' } } })
    }
    const told = await service.call('PUT', `${pathOf(stake)}/submission`, { key, body: { transactionHash: `0x${'ab'.repeat(32)}` } })
    expect(told).toMatchObject({ status: 409, body: { code: 'invalid-state' } })
    const next = await service.stake(key, { externalReference })
    expect(next.status).toBe(201)
    expect(next.body.depositData.pubkey).not.toBe(stake.depositData.pubkey)
    const other = await service.key({ account: 'other' })
    expect((await service.call('DELETE', pathOf(next.body), { key: other })).status).toBe(404)
  })

  test('can no longer be cancelled once a hash was told or a payment is in a block', async () => {
    const { service, key, payer } = await start(database)
    const told = (await service.stake(key)).body
    await service.call('PUT', `${pathOf(told)}/submission`, { key, body: { transactionHash: `0x${randomBytes(32).toString('hex')}` } })
    expect(await service.call('DELETE', pathOf(told), { key })).toMatchObject({ status: 409, body: { code: 'invalid-state' } })
    const paid = (await service.stake(key)).body
    const hash = await payer.pay(paid.unsignedTransaction)
    await anvil.mine(1)
    const refused = await service.call('DELETE', pathOf(paid), { key })
    expect(refused).toMatchObject({ status: 409, body: { code: 'invalid-state', detail: expect.stringContaining(hash) } })
  })

  test('whose hash was told and never sent can be cancelled once another transaction has used its nonce, for good', async () => {
    const { service, key, payer } = await start(database)
    const externalReference = `EthereumStake/d/${randomBytes(4).toString('hex')}`
    const stake = (await service.stake(key, { externalReference })).body
    const nonce = await payer.nonce()
    const hash = keccak256(await payer.sign(stake.unsignedTransaction, nonce))
    const told = { transactionHash: hash, from: payer.address, nonce }
    expect((await service.call('PUT', `${pathOf(stake)}/submission`, { key, body: told })).status).toBe(200)
    const cancel = () => service.call('DELETE', pathOf(stake), { key })
    const refused = { status: 409, body: { code: 'invalid-state' } }
    expect(await cancel(), 'it may land').toMatchObject(refused)
    await payer.pay({ to: payer.address, data: '0x', valueWei: 0n }, nonce)
    await anvil.mine(1)
    expect(await cancel(), 'the other is not final').toMatchObject(refused)
    await anvil.mine(3)
    await eventually(cancel, { status: 200, body: { transaction: { status: 'cancelled' } } })
    expect((await service.stake(key, { externalReference })).status).toBe(201)
  })

  test('is seen and told when it is paid after it was cancelled, with who has its name now', async () => {
    const { service, key, payer } = await start(database)
    const externalReference = `EthereumStake/c/${randomBytes(4).toString('hex')}`
    const stake = (await service.stake(key, { externalReference })).body
    await service.call('DELETE', pathOf(stake), { key })
    const next = (await service.stake(key, { externalReference })).body
    const hash = await payer.pay(stake.unsignedTransaction)
    await anvil.mine(3)
    await eventually(() => statusOf(service, key, stake), { status: 'confirmed', hash })
    expect(service.logs()).toContain('a stake that counted as cancelled was paid')
    expect(service.logs()).toContain(next.stakeId)
    expect(await statusOf(service, key, next)).toEqual({ status: 'awaiting_submission' })
  })
})
