import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/log.ts'
import { type ApiKeys, createApiKeys, type NewApiKey } from '../../../src/service/api-keys.ts'
import { createAudit, defaultAuditSettings } from '../../../src/service/audit.ts'
import { fingerprint } from '../../../src/service/fingerprint.ts'
import { openStore } from '../../../src/service/store/database.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { createFakeChain } from './fake-chain.ts'
import { databases, networkConfig, startService, type TestService, withdrawalAddress } from './harness.ts'

/** What an API key may do, for how long, from where; and what is written down of it. */
const stakes = '/v1/ethereum/stakes'
const name = () => randomBytes(8).toString('hex')
const body = (network = 'devnet') => ({ network, amountEth: 32, withdrawalAddress })

const { both, stop } = databases('access')
afterAll(stop)

describe.each(both)('an API key on $database', ({ open }) => {
  let service: TestService
  let apiKeys: ApiKeys
  beforeAll(async () => {
    const networks = new Map(
      ['devnet', 'othernet'].map((network) => [network, { config: networkConfig(network), chain: createFakeChain(network) }]),
    )
    service = await startService(await open(), { networks, trustProxy: ['127.0.0.1'] })
    apiKeys = createApiKeys({ store: service.store, clock: systemClock })
  })
  afterAll(() => service?.close())

  const make = async (more: Partial<NewApiKey> = {}) => {
    const { info, key } = await apiKeys.create({ account: 'acme', label: 'test', scopes: ['read', 'write'], ...more })
    return { keyId: info.keyId, key: key.reveal() }
  }
  const create = (key: string, network?: string, headers = {}) =>
    service.call('POST', stakes, { key, idempotencyKey: name(), body: body(network), headers })
  const infoOf = async (keyId: string) => (await apiKeys.list()).find((info) => info.keyId === keyId)
  const forbidden = { status: 403, body: { code: 'forbidden' } }

  test('for some networks creates, reads and lists what is on those, and nothing else', async () => {
    const account = name()
    const all = await make({ account })
    const one = await make({ account, networks: ['devnet'] })
    const [here, there] = [await create(all.key, 'devnet'), await create(all.key, 'othernet')]
    expect((await create(one.key, 'devnet')).status).toBe(201)
    expect(await create(one.key, 'othernet')).toMatchObject(forbidden)
    expect((await service.call('GET', `${stakes}/${here.body.stakeId}`, { key: one.key })).status).toBe(200)
    const hash = { transactionHash: `0x${'a'.repeat(64)}` }
    for (const [method, path, sent] of [
      ['GET', `${stakes}/${there.body.stakeId}`, undefined],
      ['PUT', `${stakes}/${there.body.stakeId}/submission`, hash],
      ['DELETE', `${stakes}/${there.body.stakeId}`, undefined],
      ['GET', `${stakes}?network=othernet`, undefined],
      ['GET', `/v1/ethereum/validators/${there.body.validator.pubkey}/exit-requests`, undefined],
      ['GET', `/v1/ethereum/validators/${there.body.validator.pubkey}/withdrawal-capacity`, undefined],
      ['GET', '/v1/audit-log', undefined],
    ] as const) {
      expect([path, await service.call(method, path, { key: one.key, body: sent })]).toMatchObject([path, forbidden])
    }
    expect((await service.call('GET', stakes, { key: all.key })).body.items).toHaveLength(3)
    const listed = (await service.call('GET', stakes, { key: one.key })).body.items as { network: string }[]
    expect(listed.map(({ network }) => network)).toEqual(['devnet', 'devnet'])
    expect((await service.call('GET', '/v1/networks', { key: one.key })).body.networks).toHaveLength(1)
  })

  test('for some networks does nothing to what the account has for all of them, whatever network it names', async () => {
    const one = await make({ account: name(), networks: ['devnet'] })
    const endpoints = '/v1/webhook-endpoints'
    const endpoint = `${endpoints}/${'0'.repeat(32)}`
    for (const [method, path, sent] of [
      ['POST', endpoints, { url: 'https://receiver.example/' }],
      ['GET', endpoints, undefined],
      ['GET', endpoint, undefined],
      ['DELETE', endpoint, undefined],
      ['POST', `${endpoint}/enable`, undefined],
      ['POST', `${endpoint}/secret-rotations`, {}],
      ['GET', '/v1/audit-log', undefined],
    ] as const)
      for (const query of ['', '?network=devnet'])
        expect([path, await service.call(method, `${path}${query}`, { key: one.key, body: sent, idempotencyKey: name() })]).toMatchObject([
          path,
          path === '/v1/audit-log' && query !== '' ? { status: 400 } : forbidden,
        ])
  })

  test('for some networks does not get the stored answer of a request on another, though the request is not valid any more', async () => {
    const account = name()
    const [all, one] = [await make({ account }), await make({ account, networks: ['devnet'] })]
    const idempotencyKey = name()
    await service.call('POST', stakes, { key: all.key, idempotencyKey, body: body('othernet') })
    const odd = { ...body('othernet'), amountEth: 'much' }
    for (const sent of [body('othernet'), odd]) {
      expect(await service.call('POST', stakes, { key: one.key, idempotencyKey, body: sent })).toMatchObject(forbidden)
    }
  })

  test('for some operations does those alone', async () => {
    const { key } = await make({ operations: ['createEthereumStake', 'getEthereumStake'] })
    const { status, body: stake } = await create(key)
    expect(status).toBe(201)
    expect((await service.call('GET', `${stakes}/${stake.stakeId}`, { key })).status).toBe(200)
    expect(await service.call('GET', stakes, { key })).toMatchObject(forbidden)
    expect(await service.call('DELETE', `${stakes}/${stake.stakeId}`, { key })).toMatchObject(forbidden)
  })

  test('for some addresses is refused from others, by the address that a trusted proxy tells', async () => {
    const { key } = await make({ addressRanges: ['10.1.0.0/16', '2001:db8::7'] })
    const from = (address: string) => create(key, 'devnet', { 'x-forwarded-for': address })
    for (const address of ['10.1.2.3', '2001:db8::7', '::ffff:10.1.2.3'])
      expect([address, (await from(address)).status]).toEqual([address, 201])
    for (const address of ['10.2.2.3', '2001:db8::8', '127.0.0.1'])
      expect([address, await from(address)]).toMatchObject([address, forbidden])
    expect(await create(key)).toMatchObject(forbidden)
  })

  test('for some addresses does not have its limit used up from others, who have one of their own', async () => {
    const { keyId, key } = await make({ addressRanges: ['10.1.0.0/16'] })
    const rateLimit = { max: 3, windowMs: 60_000, maxUnauthenticated: 5 }
    const strict = await startService(service.store, { trustProxy: ['127.0.0.1'], rateLimit })
    try {
      const from = async (address: string) => (await strict.call('GET', stakes, { key, headers: { 'x-forwarded-for': address } })).status
      for (let count = 0; count < 5; count++) expect(await from('10.2.2.3')).toBe(403)
      expect(await from('10.2.2.3')).toBe(429)
      for (let count = 0; count < 3; count++) expect(await from('10.1.2.3')).toBe(200)
      expect(await from('10.1.2.3')).toBe(429)
      await strict.close()
      const entries = await service.store.db.selectFrom('audit_log').select(['status', 'address']).where('key_id', '=', keyId).execute()
      expect(entries).toEqual(Array.from({ length: 5 }, () => ({ status: 403, address: '10.2.2.3' })))
    } finally {
      await strict.close()
    }
  })

  test('is rotated: both are good until the overlap ends, and the new one may do the same and lasts as long', async () => {
    const lifetimeMs = 90 * 86_400_000
    const old = await make({ operations: ['listEthereumStakes'], expiresAt: new Date(Date.now() + lifetimeMs) })
    const made = await apiKeys.rotate(old.keyId, 3_600_000)
    const list = (key: string) => service.call('GET', stakes, { key })
    expect((await list(old.key)).status).toBe(200)
    expect((await list(made?.key.reveal() ?? '')).status).toBe(200)
    expect(await create(made?.key.reveal() ?? '')).toMatchObject(forbidden)
    expect(made?.info.expiresAt?.getTime()).toBeGreaterThan(Date.now() + lifetimeMs - 60_000)
    const info = await infoOf(old.keyId)
    expect(info?.rotatedTo).toBe(made?.info.keyId)
    expect(info?.expiresAt?.getTime()).toBeLessThanOrEqual(Date.now() + 3_600_000)
    // Without an overlap, the old one ends at once; and what has ended is not rotated.
    const next = await apiKeys.rotate(made?.info.keyId ?? '', 0)
    expect((await list(made?.key.reveal() ?? '')).status).toBe(401)
    expect((await list(next?.key.reveal() ?? '')).status).toBe(200)
    expect(await apiKeys.rotate(made?.info.keyId ?? '', 0)).toBeUndefined()
    expect(await apiKeys.rotate('key_none', 0)).toBeUndefined()
  })

  test('is rotated again, when the answer to the first time was lost, and the next one lasts as long as it was made for', async () => {
    const lifetimeMs = 90 * 86_400_000
    const [endless, bounded] = [await make(), await make({ expiresAt: new Date(Date.now() + lifetimeMs) })]
    for (const { keyId } of [endless, bounded]) await apiKeys.rotate(keyId, 3_600_000)
    expect((await apiKeys.rotate(endless.keyId, 3_600_000))?.info.expiresAt).toBeUndefined()
    const next = await apiKeys.rotate(bounded.keyId, 3_600_000)
    expect(next?.info.expiresAt?.getTime()).toBeGreaterThan(Date.now() + lifetimeMs - 60_000)
    expect((await infoOf(bounded.keyId))?.expiresAt?.getTime()).toBeLessThanOrEqual(Date.now() + 3_600_000)
  })

  test('for some networks gets its own answer again, though nothing can be asked of the validator any more', async () => {
    const account = name()
    const one = await make({ account, networks: ['devnet'] })
    const { pubkey } = (await create(one.key)).body.validator
    const path = `/v1/ethereum/validators/${pubkey}/exit-requests`
    const [idempotencyKey, sent] = [name(), { externalReference: name() }]
    const text = JSON.stringify({
      ...{ requestId: '0'.repeat(32), pubkey, status: 'awaiting_submission', transaction: {}, consensus: { status: 'pending' } },
      unsignedTransaction: { chainId: 31337, from: withdrawalAddress, to: withdrawalAddress, data: '0x', valueWei: '1' },
      ...{ fee: { feeWei: '1', quotedAtBlock: 1 }, createdAt: new Date().toISOString() },
    })
    const answered = {
      account,
      key: idempotencyKey,
      fingerprint: fingerprint('POST', path, sent),
      owner: 'somebody',
      status: 201,
      body: text,
    }
    await service.store.db.insertInto('idempotency_keys').values(answered).execute()
    const post = (key: string, body: object = sent) => service.call('POST', path, { key, idempotencyKey, body })
    expect(await post(one.key)).toMatchObject({ status: 201, text })
    expect(await post(one.key, {})).toMatchObject({ status: 409, body: { code: 'idempotency-key-reused' } })
    // Nothing of a stake on another network.
    expect(await post((await make({ account, networks: ['othernet'] })).key)).toMatchObject(forbidden)
  })

  test('has an audit log that can be read whatever a proxy tells of addresses, and whatever time is named', async () => {
    const { key } = await make({ account: name() })
    await create(key, 'devnet', { 'x-forwarded-for': 'x'.repeat(5_000) })
    const read = (query = '') => service.call('GET', `/v1/audit-log${query}`, { key })
    expect((await read()).body.items[0]).toMatchObject({ operation: 'createEthereumStake', address: 'x'.repeat(64) })
    expect((await read('?since=0000-01-01T00:00:00Z&until=9999-12-31T23:59:59Z')).body.items).toHaveLength(2)
    expect((await read('?until=0000-01-01T00:00:00Z')).body.items).toEqual([])
  })

  test('has what it asks written down though the client has left, and Node tells no address of it', async () => {
    const { keyId } = await make()
    const log = createLogger({ program: 'service', level: 'error' })
    const audit = createAudit({ store: service.store, clock: systemClock, log, settings: defaultAuditSettings })
    const asked = { account: 'acme', keyId, operation: 'createEthereumStake', method: 'POST', path: stakes, requestId: name() }
    const id = await audit.begin({ ...asked, idempotencyKey: undefined, address: undefined })
    const row = service.store.db
      .selectFrom('audit_log')
      .select('address')
      .where('id', '=', id ?? '')
    expect(await row.executeTakeFirst()).toEqual({ address: null })
  })

  test('takes nothing into effect once it is revoked, though it is remembered', async () => {
    const { key, keyId } = await make()
    expect((await create(key)).status).toBe(201)
    // Past the revocation's own way, as if its notice were still under way.
    await service.store.db.updateTable('api_keys').set({ revoked_at: new Date() }).where('id', '=', keyId).execute()
    expect((await create(key)).status).toBe(401)
  })

  test('gets another label, and tells when it was last used', async () => {
    const { key, keyId } = await make()
    expect((await infoOf(keyId))?.lastUsedAt).toBeUndefined()
    expect(await apiKeys.rename(keyId, 'for the operator')).toBe(true)
    expect(await apiKeys.rename('key_none', 'x')).toBe(false)
    const before = new Date()
    await service.call('GET', stakes, { key })
    await expect
      .poll(async () => (await infoOf(keyId))?.lastUsedAt?.getTime(), { timeout: 20_000 })
      .toBeGreaterThanOrEqual(before.getTime())
    expect((await infoOf(keyId))?.label).toBe('for the operator')
  })

  test('has its account’s audit log say who asked what, when, and what became of it', async () => {
    const account = name()
    const { key, keyId } = await make({ account })
    const reader = await make({ account, scopes: ['read'] })
    const stake = await create(key)
    await create(reader.key)
    await service.call('PUT', `${stakes}/${stake.body.stakeId}/submission`, { key, body: { transactionHash: 'none' } })
    await apiKeys.revoke(reader.keyId)
    const read = async (query = '') => (await service.call('GET', `/v1/audit-log${query}`, { key })).body
    const expected = [
      { operation: 'api-keys revoke', resourceId: reader.keyId },
      { operation: 'submitEthereumStake', keyId, status: 400, method: 'PUT', path: `${stakes}/${stake.body.stakeId}/submission` },
      { operation: 'createEthereumStake', keyId: reader.keyId, status: 403 },
      { operation: 'createEthereumStake', keyId, status: 201, resourceId: stake.body.stakeId, address: '127.0.0.1' },
      { operation: 'api-keys create', resourceId: reader.keyId },
      { operation: 'api-keys create', resourceId: keyId },
    ]
    await expect.poll(async () => (await read()).items.map((one: object) => one), { timeout: 20_000 }).toMatchObject(expected)
    const { items } = await read()
    expect(items[3].requestId).toBe(stake.headers.get('x-request-id'))
    expect(items[3].idempotencyKey).toMatch(/^[0-9a-f]{16}$/)
    // By pages, by key, by time.
    const first = await read('?limit=2')
    expect(first.items).toEqual(items.slice(0, 2))
    expect((await read(`?limit=100&cursor=${first.nextCursor}`)).items).toEqual(items.slice(2))
    expect((await read(`?keyId=${reader.keyId}`)).items).toEqual([items[2]])
    expect((await read(`?until=${items[3].at}`)).items).toEqual(items.slice(4))
    expect((await read('?since=2100-01-01T00:00:00Z')).items).toEqual([])
    // Another account sees nothing of it.
    const stranger = await make({ account: name() })
    expect((await service.call('GET', '/v1/audit-log', { key: stranger.key })).body.items).toHaveLength(1)
    expect(JSON.stringify(items)).not.toContain(key)
  })

  test('changes nothing while what it asks cannot be written down', async () => {
    const { key } = await make()
    await service.store.db.schema.alterTable('audit_log').renameTo('audit_log_away').execute()
    try {
      const externalReference = name()
      expect((await service.call('POST', stakes, { key, idempotencyKey: name(), body: { ...body(), externalReference } })).status).toBe(500)
      expect((await service.call('GET', `${stakes}?externalReference=${externalReference}`, { key })).body.items).toEqual([])
    } finally {
      await service.store.db.schema.alterTable('audit_log_away').renameTo('audit_log').execute()
    }
  })
})

test('entries of the audit log that are too old are forgotten, and reads are in it if that is wanted', async () => {
  const store = await openStore(await memoryDatabase())
  const at = new Date(Date.now() - 3 * 86_400_000)
  // More than one statement takes away: a busy service writes more in an hour.
  await sql`
    insert into audit_log (id, at, account, operation)
      select lpad(to_hex(n), 32, '0'), ${at}, 'acme', 'api-keys create' from generate_series(1, 11000) n`.execute(store.db)
  const service = await startService(store, { audit: { reads: true, keepDays: 2 } })
  try {
    const key = await service.key()
    await service.call('GET', '/v1/networks', { key })
    const read = async () => (await service.call('GET', '/v1/audit-log', { key })).body.items as { operation: string; status?: number }[]
    const ofRead = async () => (await read()).find(({ operation }) => operation === 'listNetworks')
    await expect.poll(async () => (await ofRead())?.status, { timeout: 20_000 }).toBe(200)
    const old = () => store.db.selectFrom('audit_log').select('id').where('at', '<=', at).execute()
    await expect.poll(async () => (await old()).length, { timeout: 20_000 }).toBe(0)
  } finally {
    await service.close()
    await store.close()
  }
})
