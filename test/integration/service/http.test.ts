import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { sql } from 'kysely'
import { encodeAbiParameters, parseAbiParameters } from 'viem'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { computeDepositDomain, depositEventTopic, withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import { verifyDeposit } from '../../../src/chains/ethereum/verify-deposit.ts'
import { depositData, unsignedTransaction } from '../../../src/contract/schemas/ethereum-stake.ts'
import { type Gwei, parseEth } from '../../../src/lib/amounts.ts'
import { mostHashes } from '../../../src/service/ethereum/may-report.ts'
import { fingerprint } from '../../../src/service/fingerprint.ts'
import { keyIndexOf } from '../../../src/service/key-index.ts'
import { createValidatorKeys, parseSeed } from '../../../src/service/seed.ts'
import { createFakeChain } from './fake-chain.ts'
import { type Ask, databases, networkConfig, seedHex, startService, type TestService, withdrawalAddress } from './harness.ts'

/** Who sends what the chain shows. */
const payer = `0x${'1'.repeat(40)}` as const
const hash = () => `0x${randomBytes(32).toString('hex')}` as const

const stakes = '/v1/ethereum/stakes'
const body = { network: 'devnet', amountEth: 32, withdrawalAddress }

const { both, stop } = databases('http')
afterAll(stop)

describe.each(both)('the service on $database', ({ open }) => {
  let service: TestService
  let key: string
  let other: string
  const keysMade: string[] = []
  beforeAll(async () => {
    service = await startService(await open())
    key = await service.key()
    other = await service.key({ account: 'other' })
    keysMade.push(key, other)
  })
  afterAll(() => service?.close())
  beforeEach(() => {
    service.chain.failing = undefined
    service.chain.hold = Promise.resolve()
  })

  describe('creating a stake', () => {
    test.each([
      { credentialsType: '0x01', amountEth: '32' },
      { credentialsType: '0x02', amountEth: '2048' },
      { credentialsType: '0x02', amountEth: '33.000000001' },
    ] as const)('gives valid deposit data for $amountEth ETH with $credentialsType', async ({ credentialsType, amountEth }) => {
      const created = await service.call('POST', stakes, {
        key,
        idempotencyKey: hash(),
        text: `{"network":"devnet","amountEth":${amountEth},"withdrawalAddress":"${withdrawalAddress}","credentialsType":"${credentialsType}"}`,
      })
      expect(created.status).toBe(201)
      expect(created.text).toContain(`"amountEth":${amountEth}`)
      const claimed = {
        depositData: z.decode(depositData, created.body.depositData),
        unsignedTransaction: z.decode(unsignedTransaction, created.body.unsignedTransaction),
      }
      const expected = { withdrawalAddress, credentialsType, amountGwei: parseEth(amountEth) as Gwei, network: networkConfig() } as const
      expect(verifyDeposit({ expected, ...claimed })).toEqual([])
      expect(computeDepositDomain(networkConfig().genesisForkVersion)).toMatch(/^0x03000000/)
      expect(created.body).toMatchObject({
        transaction: { status: 'awaiting_submission' },
        validator: { pubkey: created.body.depositData.pubkey, status: 'unknown' },
      })
      expect((await service.call('GET', `${stakes}/${created.body.stakeId}`, { key })).body).toEqual(created.body)
    })

    test('says where it can be read, and whether it has changed since', async () => {
      const idempotencyKey = hash()
      const made = await service.call('POST', stakes, { key, idempotencyKey, body })
      const path = `${stakes}/${made.body.stakeId}`
      expect(made.headers.get('location')).toBe(path)
      expect((await service.call('POST', stakes, { key, idempotencyKey, body })).headers.get('location')).toBe(path)
      const etag = (await service.call('GET', path, { key })).headers.get('etag') ?? ''
      const unchanged = await fetch(service.url + path, { headers: { authorization: `Bearer ${key}`, 'if-none-match': `"x", W/${etag}` } })
      expect(unchanged.status).toBe(304)
      expect(await unchanged.text()).toBe('')
      expect(unchanged.headers.get('etag')).toBe(etag)
      await service.call('PUT', `${path}/submission`, { key, body: { transactionHash: hash() } })
      const changed = await service.call('GET', path, { key, headers: { 'if-none-match': etag } })
      expect(changed).toMatchObject({ status: 200, body: { transaction: { status: 'submitted' } } })
      expect(changed.headers.get('etag')).not.toBe(etag)
    })

    test('takes an amount however its number is written, and a reference in any script', async () => {
      const idempotencyKey = hash()
      const externalReference = `staking 鍵 🔑 ${hash()}`
      const text = JSON.stringify({ ...body, externalReference })
      const made = await service.call('POST', stakes, { key, idempotencyKey, text: text.replace(':32', ':3.2e1') })
      expect(made).toMatchObject({ status: 201, body: { amountEth: 32, externalReference } })
      const again = await service.call('POST', stakes, { key, idempotencyKey, text })
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      const found = await service.call('GET', `${stakes}?externalReference=${encodeURIComponent(externalReference)}`, { key })
      expect(found.body.items).toHaveLength(1)
    })

    test('takes compounding credentials where none are named', async () => {
      expect((await service.stake(key)).body).toMatchObject({ credentialsType: '0x02' })
    })

    test.each([
      { why: 'too little', change: { amountEth: 31 }, pointer: '/body/amountEth', code: 'amount-out-of-range' },
      { why: 'too much', change: { amountEth: 2049 }, pointer: '/body/amountEth', code: 'amount-out-of-range' },
      {
        why: 'not 32 for 0x01',
        change: { amountEth: 33, credentialsType: '0x01' },
        pointer: '/body/amountEth',
        code: 'amount-out-of-range',
      },
      { why: 'an unknown network', change: { network: 'nowhere' }, pointer: '/body/network', code: 'unknown-network' },
      {
        why: 'the zero address',
        change: { withdrawalAddress: `0x${'0'.repeat(40)}` },
        pointer: '/body/withdrawalAddress',
        code: 'zero-address',
      },
      {
        why: 'a wrong checksum',
        change: { withdrawalAddress: withdrawalAddress.replace('aA', 'Aa') },
        pointer: '/body/withdrawalAddress',
        code: 'address-checksum',
      },
    ])('is refused by the rules of the chain: $why', async ({ change, pointer, code }) => {
      const refused = await service.stake(key, change)
      expect(refused).toMatchObject({ status: 422, body: { code: 'validation-failed', errors: [{ pointer, code }] } })
    })

    test.each([
      { why: 'no amount', text: `{"network":"devnet","withdrawalAddress":"${withdrawalAddress}"}`, pointer: '/body/amountEth' },
      { why: 'amount as text', text: JSON.stringify({ ...body, amountEth: '32' }), pointer: '/body/amountEth' },
      { why: 'ten decimals', text: JSON.stringify(body).replace('32', '32.0000000001'), pointer: '/body/amountEth' },
      { why: 'U+0000', text: JSON.stringify({ ...body, externalReference: 'a\0b' }), pointer: '/body/externalReference' },
      { why: 'half a character', text: JSON.stringify({ ...body, externalReference: 'a\ud800' }), pointer: '/body/externalReference' },
      { why: 'the other half', text: JSON.stringify({ ...body, externalReference: '\udc00b' }), pointer: '/body/externalReference' },
      { why: 'a short address', text: JSON.stringify({ ...body, withdrawalAddress: '0x12' }), pointer: '/body/withdrawalAddress' },
      { why: 'an unknown field', text: JSON.stringify({ ...body, amount: 1 }), pointer: '/body' },
      { why: 'no JSON', text: '{"network"', pointer: '/body' },
      { why: 'a field twice', text: JSON.stringify(body).replace('32', '32,"amountEth":33'), pointer: '/body' },
      { why: 'an empty body', text: '', pointer: '/body' },
      { why: 'a list', text: '[]', pointer: '/body' },
    ])('is refused as malformed: $why', async ({ text, pointer }) => {
      const refused = await service.call('POST', stakes, { key, idempotencyKey: hash(), text })
      expect(refused).toMatchObject({ status: 400, body: { code: 'invalid-request', errors: [{ pointer }] } })
    })

    test.each([
      { why: 'a byte that no character has', bytes: [0xff] },
      { why: 'half of a surrogate pair', bytes: [0xed, 0xa0, 0x80] },
      { why: 'the other half', bytes: [0xed, 0xb0, 0x80] },
      { why: 'U+0000 in two bytes', bytes: [0xc0, 0x80] },
      { why: 'a character that was cut off', bytes: [0xf0, 0x9f, 0x94] },
    ])('is refused when its bytes are no UTF-8: $why', async ({ bytes }) => {
      const [before = '', after = ''] = JSON.stringify({ ...body, externalReference: '@' }).split('@')
      const sent = Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)])
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': hash() }
      const answer = await fetch(service.url + stakes, { method: 'POST', headers, body: sent })
      expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'invalid-request', errors: [{ pointer: '/body' }] }])
    })

    test('to a contract that is not known warns in the answer, and in each one after it', async () => {
      service.chain.contracts.add(withdrawalAddress.toLowerCase())
      const made = await service.stake(key)
      service.chain.contracts.clear()
      const warnings = [{ code: 'withdrawal-address-is-contract', detail: expect.stringContaining(withdrawalAddress) }]
      expect(made).toMatchObject({ status: 201, body: { warnings } })
      expect((await service.call('GET', `/v1/ethereum/stakes/${made.body.stakeId}`, { key })).body).toMatchObject({ warnings })
      expect((await service.stake(key)).body).not.toHaveProperty('warnings')
    })

    test('never gives a key that the chain knows, and goes on to the next one of the request', async () => {
      const keys = createValidatorKeys(parseSeed(seedHex, 'seed'))
      const idempotencyKey = hash()
      const order = {
        account: 'acme',
        idempotencyKey,
        network: 'devnet',
        withdrawalCredentials: withdrawalCredentials('0x02', withdrawalAddress),
        amountGwei: parseEth('32'),
      }
      const [first, second] = [0, 1].map((probe) => keys.derive(keyIndexOf(keys, order, probe)).publicKey)
      if (first === undefined || second === undefined) throw new Error('no keys')
      service.chain.deposited.add(first)
      const made = await service.call('POST', stakes, { key, idempotencyKey, body })
      expect(made.body.depositData.pubkey).toBe(second)
      expect(service.logs()).toContain('has another deposit already and is skipped')
      expect((await service.call('GET', '/metrics')).text).toContain('staking_service_known_keys_skipped_total{network="devnet"} 1')
    })

    test.each(['unavailable', 'history-syncing', 'wrong-chain'] as const)(
      'waits when the chain is %s, and stores nothing',
      async (code) => {
        const idempotencyKey = hash()
        service.chain.failing = code
        const before = (await service.call('GET', stakes, { key })).body.items.length
        const refused = await service.call('POST', stakes, { key, idempotencyKey, body })
        expect(refused).toMatchObject({ status: 503, body: { code: 'chain-unavailable' } })
        expect(refused.headers.get('retry-after')).toBe('2')
        expect((await service.call('GET', stakes, { key })).body.items.length).toBe(before)
        service.chain.failing = undefined
        const created = await service.call('POST', stakes, { key, idempotencyKey, body })
        expect(created.status).toBe(201)
        expect(created.headers.get('idempotency-replayed')).toBeNull()
      },
    )
  })

  describe('the Idempotency-Key', () => {
    test('gives the same answer to the same request, byte for byte, even after the stake has gone on', async () => {
      const idempotencyKey = hash()
      const first = await service.call('POST', stakes, { key, idempotencyKey, body })
      await service.call('PUT', `${stakes}/${first.body.stakeId}/submission`, { key, body: { transactionHash: hash() } })
      const again = await service.call('POST', stakes, {
        key,
        idempotencyKey,
        text: `{ "withdrawalAddress": "${withdrawalAddress}", "amountEth": 32.0, "network": "devnet" }`,
      })
      expect(again.status).toBe(201)
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      expect(again.text).toBe(first.text)
    })

    test.each([
      { why: 'another amount', change: { amountEth: 33 } },
      { why: 'one more field', change: { credentialsType: '0x02' } },
    ])('is refused for another request: $why', async ({ change }) => {
      const idempotencyKey = hash()
      await service.call('POST', stakes, { key, idempotencyKey, body })
      const refused = await service.call('POST', stakes, { key, idempotencyKey, body: { ...body, ...change } })
      expect(refused).toMatchObject({ status: 409, body: { code: 'idempotency-key-reused' } })
    })

    test('is refused for another path', async () => {
      const idempotencyKey = hash()
      const { stakeId } = (await service.call('POST', stakes, { key, idempotencyKey, body })).body
      const refused = await service.call('PUT', `${stakes}/${stakeId}/submission`, {
        key,
        idempotencyKey,
        body: { transactionHash: hash() },
      })
      expect(refused).toMatchObject({ status: 409, body: { code: 'idempotency-key-reused' } })
    })

    test.each([
      { why: 'breaks a rule of the chain', change: { amountEth: 1 } },
      { why: 'names no network of the service', change: { network: 'nowhere' } },
      { why: 'is malformed', change: { amountEth: '32' } },
      { why: 'has an unknown field', change: { amount: 1 } },
    ])('is refused for another request that $why: the key decides first', async ({ change }) => {
      const idempotencyKey = hash()
      const first = await service.call('POST', stakes, { key, idempotencyKey, body })
      const reused = { status: 409, body: { code: 'idempotency-key-reused' } }
      expect(await service.call('POST', stakes, { key, idempotencyKey, body: { ...body, ...change } })).toMatchObject(reused)
      expect((await service.call('POST', stakes, { key, idempotencyKey, body })).text).toBe(first.text)
    })

    test.each([
      { why: 'no JSON', ask: { text: '{"network"' } },
      { why: 'another media type', ask: { text: 'a=b', headers: { 'content-type': 'text/plain' } } },
      { why: 'too much', ask: { text: `"${'x'.repeat(70_000)}"` } },
    ])('is refused with a body that is $why', async ({ ask }) => {
      const idempotencyKey = hash()
      await service.call('POST', stakes, { key, idempotencyKey, body })
      expect(await service.call('POST', stakes, { key, idempotencyKey, ...ask })).toMatchObject({
        status: 409,
        body: { code: 'idempotency-key-reused' },
      })
    })

    test('replays though the network has left the configuration, and though the request is not valid any more', async () => {
      const [idempotencyKey, other] = [hash(), hash()]
      const first = await service.call('POST', stakes, { key, idempotencyKey, body })
      // As a version with other rules has stored it.
      const stored = await service.store.db
        .selectFrom('idempotency_keys')
        .selectAll()
        .where('key', '=', idempotencyKey)
        .executeTakeFirstOrThrow()
      const odd = { ...body, amountEth: '32' }
      await service.store.db
        .insertInto('idempotency_keys')
        .values({ ...stored, key: other, fingerprint: fingerprint('POST', stakes, odd) })
        .execute()
      const later = await startService(service.store, { networks: new Map() })
      try {
        const again = await later.call('POST', stakes, { key, idempotencyKey, body })
        expect(again).toMatchObject({ status: 201, text: first.text })
        expect(again.headers.get('idempotency-replayed')).toBe('true')
        expect((await later.call('POST', stakes, { key, idempotencyKey: hash(), body })).status).toBe(422)
        expect(await later.call('POST', stakes, { key, idempotencyKey: other, body: odd })).toMatchObject({ status: 201, text: first.text })
      } finally {
        await later.close()
      }
    })

    test('belongs to its account', async () => {
      const idempotencyKey = hash()
      const mine = await service.call('POST', stakes, { key, idempotencyKey, body })
      const theirs = await service.call('POST', stakes, { key: other, idempotencyKey, body })
      expect(theirs.status).toBe(201)
      expect(theirs.body.stakeId).not.toBe(mine.body.stakeId)
    })

    test('is not used up by a request that failed', async () => {
      const idempotencyKey = hash()
      expect((await service.call('POST', stakes, { key, idempotencyKey, body: { ...body, amountEth: 1 } })).status).toBe(422)
      expect((await service.call('POST', stakes, { key, idempotencyKey, body: {} })).status).toBe(400)
      expect((await service.call('POST', stakes, { key, idempotencyKey, body })).status).toBe(201)
    })

    test('is in progress while its request runs, and another request is told that it is reused', async () => {
      const idempotencyKey = hash()
      const { promise, resolve } = Promise.withResolvers<void>()
      service.chain.hold = promise
      const calls = service.chain.calls
      const running = service.call('POST', stakes, { key, idempotencyKey, body })
      while (service.chain.calls === calls) await new Promise((done) => setTimeout(done, 5))
      const same = await service.call('POST', stakes, { key, idempotencyKey, body })
      expect(same).toMatchObject({ status: 409, body: { code: 'idempotency-key-in-progress' } })
      const different = await service.call('POST', stakes, { key, idempotencyKey, body: { ...body, amountEth: 64 } })
      expect(different).toMatchObject({ status: 409, body: { code: 'idempotency-key-reused' } })
      resolve()
      expect((await running).status).toBe(201)
      expect((await service.call('POST', stakes, { key, idempotencyKey, body })).text).toBe((await running).text)
    })

    test('whose holder has died is free when its lease ends: Retry-After is what is left of that', async () => {
      const idempotencyKey = hash()
      const ask = () => service.call('POST', stakes, { key, idempotencyKey, body })
      const leaseUntil = (seconds: number) => sql<Date>`now() + make_interval(secs => ${seconds}::double precision)`
      await service.store.db
        .insertInto('idempotency_keys')
        .values({
          ...{ account: 'acme', key: idempotencyKey, fingerprint: fingerprint('POST', stakes, body), owner: 'who died' },
          ...{ lease_until: leaseUntil(25), status: null, body: null },
        })
        .execute()
      const refused = await ask()
      expect(refused).toMatchObject({ status: 409, body: { code: 'idempotency-key-in-progress' } })
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(5)
      expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(25)
      await service.store.db
        .updateTable('idempotency_keys')
        .set({ lease_until: leaseUntil(-1) })
        .where('key', '=', idempotencyKey)
        .execute()
      expect((await ask()).status).toBe(201)
    })

    test('whose holder has died is free, too, when the clock of the database has gone back since', async () => {
      const idempotencyKey = hash()
      await service.store.db
        .insertInto('idempotency_keys')
        .values({
          ...{ account: 'acme', key: idempotencyKey, fingerprint: fingerprint('POST', stakes, body), owner: 'who died' },
          ...{ lease_until: sql<Date>`now() + interval '1 hour'`, status: null, body: null },
        })
        .execute()
      expect((await service.call('POST', stakes, { key, idempotencyKey, body })).status).toBe(201)
    })

    test('makes one stake of 50 requests at once', async () => {
      const idempotencyKey = hash()
      const answers = await Promise.all(Array.from({ length: 50 }, () => service.call('POST', stakes, { key, idempotencyKey, body })))
      const created = answers.filter(({ status }) => status === 201)
      expect(created.length).toBeGreaterThan(0)
      expect(new Set(created.map(({ text }) => text)).size).toBe(1)
      expect(answers.filter(({ status }) => status !== 201).every((one) => one.body.code === 'idempotency-key-in-progress')).toBe(true)
      expect(answers.filter((one) => one.status === 201 && one.headers.get('idempotency-replayed') === null)).toHaveLength(1)
    })

    test.each([
      { value: undefined, code: 'idempotency-key-missing' },
      { value: '', code: 'idempotency-key-invalid' },
      { value: 'k'.repeat(256), code: 'idempotency-key-invalid' },
      { value: 'tab\tin it', code: 'idempotency-key-invalid' },
    ])('must be there and valid: $code', async ({ value, code }) => {
      expect(await service.call('POST', stakes, { key, idempotencyKey: value, body })).toMatchObject({ status: 400, body: { code } })
    })
    test.each([
      ['a', 'b'],
      ['a', 'a'],
    ])('is one: %s and %s are refused', async (...keys) => {
      const headers = [
        ...['host', new URL(service.url).host, 'authorization', `Bearer ${key}`, 'content-type', 'application/json'],
        ...keys.flatMap((one) => ['Idempotency-Key', one]),
      ]
      const answer = await sendRaw(service.url + stakes, headers, JSON.stringify(body))
      expect(answer).toMatchObject({ status: 400, body: { code: 'idempotency-key-invalid', errors: [{ code: 'several' }] } })
    })

    test('may have 255 characters', async () => {
      expect((await service.call('POST', stakes, { key, idempotencyKey: hash().padEnd(255, 'k'), body })).status).toBe(201)
    })
  })

  describe('the external reference', () => {
    test('is unique per account while its stake lives', async () => {
      const externalReference = `EthereumStake/ns/${hash()}`
      const first = await service.stake(key, { externalReference })
      expect(first.body).toMatchObject({ externalReference })
      const second = await service.stake(key, { externalReference })
      expect(second).toMatchObject({ status: 409, body: { code: 'reference-exists', existingId: first.body.stakeId } })
      expect((await service.stake(other, { externalReference })).status).toBe(201)
      const found = await service.call('GET', `${stakes}?externalReference=${encodeURIComponent(externalReference)}`, { key })
      expect(found.body.items).toEqual([first.body])
    })

    test('is given to one of many that ask at once', async () => {
      const externalReference = `EthereumStake/ns/${hash()}`
      const asked = service.chain.asked.length
      const answers = await Promise.all(Array.from({ length: 20 }, () => service.stake(key, { externalReference })))
      const created = answers.filter(({ status }) => status === 201)
      expect(created).toHaveLength(1)
      for (const one of answers.filter(({ status }) => status !== 201)) {
        expect(one.body).toMatchObject({ code: 'reference-exists', existingId: created[0]?.body.stakeId })
      }
      // The reference is taken before a key is: the others looked at none.
      expect(service.chain.asked.slice(asked)).toEqual([created[0]?.body.depositData.pubkey])
    })

    test('is free again once its stake has failed', async () => {
      const externalReference = `EthereumStake/ns/${hash()}`
      const { stakeId } = (await service.stake(key, { externalReference })).body
      const transactionHash = hash()
      await service.call('PUT', `${stakes}/${stakeId}/submission`, { key, body: { transactionHash } })
      land(service, transactionHash, { success: false })
      await pass(service)
      expect((await service.call('GET', `${stakes}/${stakeId}`, { key })).body.transaction).toMatchObject({ status: 'failed' })
      expect((await service.stake(key, { externalReference })).status).toBe(201)
    })
  })

  describe('reporting the transaction', () => {
    const submit = (stakeId: string, transactionHash: string, more: object = {}, ask: Ask = {}) =>
      service.call('PUT', `${stakes}/${stakeId}/submission`, { key, body: { transactionHash, ...more }, ...ask })
    const read = async (stakeId: string) => (await service.call('GET', `${stakes}/${stakeId}`, { key })).body
    const told = (nonce: number, from: string = payer) => ({ from, nonce })

    test('makes the stake submitted, and again changes nothing', async () => {
      const { stakeId } = (await service.stake(key)).body
      const one = hash()
      const first = await submit(stakeId, one)
      expect(first).toMatchObject({ status: 200, body: { transaction: { status: 'submitted', hash: one } } })
      expect((await submit(stakeId, one.toUpperCase().replace('0X', '0x'))).body).toEqual(first.body)
    })

    test('refuses another hash though the chain does not know the first: that proves nothing', async () => {
      const { stakeId } = (await service.stake(key)).body
      const [one, two] = [hash(), hash()]
      await submit(stakeId, one)
      expect(await submit(stakeId, two)).toMatchObject({ status: 409, body: { code: 'already-submitted' } })
      expect(await submit(stakeId, two, told(1))).toMatchObject({ status: 409, body: { code: 'already-submitted' } })
      expect((await read(stakeId)).transaction).toEqual({ status: 'submitted', hash: one })
    })

    describe('before it is sent', () => {
      test('remembers every attempt under one sender and nonce, whatever the case of the address, and refuses any other', async () => {
        const { stakeId } = (await service.stake(key)).body
        const [one, two, three] = [hash(), hash(), hash()]
        expect(await submit(stakeId, one, told(7))).toMatchObject({
          status: 200,
          body: { transaction: { status: 'submitted', hash: one } },
        })
        // Nothing of it is asked of the chain: it has not been sent.
        service.chain.failing = 'unavailable'
        expect((await submit(stakeId, two, told(7, payer.toLowerCase()))).body.transaction).toEqual({ status: 'submitted', hash: two })
        service.chain.failing = undefined
        for (const other of [told(8), told(7, `0x${'9'.repeat(40)}`), {}]) {
          expect(await submit(stakeId, three, other)).toMatchObject({ status: 409, body: { code: 'already-submitted' } })
        }
        expect((await submit(stakeId, one, told(7))).status).toBe(200)
        // Neither time nor the tracker drops what nobody knows.
        await pass(service)
        expect((await read(stakeId)).transaction).toEqual({ status: 'submitted', hash: two })
        const rows = await service.store.db.selectFrom('ethereum_stake_hashes').selectAll().where('stake_id', '=', stakeId).execute()
        expect(rows.map((row) => [row.hash, row.sender, row.nonce])).toEqual(
          [one, two]
            .sort((a, b) => rows.findIndex((row) => row.hash === a) - rows.findIndex((row) => row.hash === b))
            .map((h) => [h, payer, 7n]),
        )
      })

      test('follows all attempts of one nonce: whichever lands counts', async () => {
        const stake = (await service.stake(key)).body
        const [one, two] = [hash(), hash()]
        await submit(stake.stakeId, one, told(7))
        await submit(stake.stakeId, two, told(7))
        land(service, one, { success: true, pays: stake, nonce: 7 })
        await pass(service)
        expect((await read(stake.stakeId)).transaction).toMatchObject({ status: 'confirmed', hash: one })
        expect(await submit(stake.stakeId, hash(), told(8))).toMatchObject({ status: 409, body: { code: 'already-submitted' } })
      })

      test('takes an attempt under another nonce once the earlier nonce is final with something else, and not before', async () => {
        const externalReference = `EthereumStake/ns/${hash()}`
        const { stakeId } = (await service.stake(key, { externalReference })).body
        const [payment, cancel, next] = [hash(), hash(), hash()]
        await submit(stakeId, payment, told(7))
        await submit(stakeId, cancel, told(7))
        expect((await submit(stakeId, next, told(8))).status).toBe(409)
        land(service, cancel, { success: true, nonce: 7, at: 9n })
        expect((await submit(stakeId, next, told(8))).status).toBe(409)
        land(service, cancel, { success: true, nonce: 7 })
        await pass(service)
        expect((await read(stakeId)).transaction).toMatchObject({ status: 'failed', hash: cancel })
        expect((await submit(stakeId, next, {})).status).toBe(409)
        expect((await submit(stakeId, next, told(8))).body.transaction).toEqual({ status: 'submitted', hash: next })
        await pass(service)
        expect((await read(stakeId)).transaction).toEqual({ status: 'submitted', hash: next })
        // It holds its reference again.
        expect(await service.stake(key, { externalReference })).toMatchObject({ status: 409, body: { existingId: stakeId } })
      })

      test('takes an attempt under another nonce once a stranger has used the earlier one, in a final block, and not before', async () => {
        const { stakeId } = (await service.stake(key)).body
        const [payment, stranger, next] = [hash(), hash(), hash()]
        await submit(stakeId, payment, told(70))
        land(service, stranger, { success: true, nonce: 70, at: 9n })
        service.chain.usedBy.set(70, stranger)
        expect((await submit(stakeId, next, told(71))).status).toBe(409)
        land(service, stranger, { success: true, nonce: 70 })
        expect((await submit(stakeId, next, told(71))).body.transaction).toEqual({ status: 'submitted', hash: next })
      })

      test('takes it at once when the cancel is final, before the tracker has looked', async () => {
        const { stakeId } = (await service.stake(key)).body
        const [payment, cancel, next] = [hash(), hash(), hash()]
        await submit(stakeId, payment, told(7))
        await submit(stakeId, cancel, told(7))
        land(service, cancel, { success: true, nonce: 7 })
        expect((await submit(stakeId, next, told(8))).body.transaction).toEqual({ status: 'submitted', hash: next })
      })

      test('is not taken up again when another stake holds the reference meanwhile', async () => {
        const externalReference = `EthereumStake/ns/${hash()}`
        const { stakeId } = (await service.stake(key, { externalReference })).body
        const cancel = hash()
        await submit(stakeId, cancel, told(7))
        land(service, cancel, { success: true, nonce: 7 })
        await pass(service)
        const other = (await service.stake(key, { externalReference })).body
        expect(await submit(stakeId, hash(), told(8))).toMatchObject({
          status: 409,
          body: { code: 'reference-exists', existingId: other.stakeId },
        })
      })

      test('learns sender and nonce of a hash later, from the client or the chain, and the chain is right', async () => {
        const { stakeId } = (await service.stake(key)).body
        const [one, two] = [hash(), hash()]
        await submit(stakeId, one)
        expect((await submit(stakeId, two, told(7))).status).toBe(409)
        expect((await submit(stakeId, one, told(7))).status).toBe(200)
        expect((await submit(stakeId, two, told(7))).status).toBe(200)
        const wrong = {
          status: 422,
          body: { code: 'validation-failed', errors: [{ pointer: '/body/nonce', code: 'other-sender-or-nonce' }] },
        }
        expect(await submit(stakeId, one, told(8))).toMatchObject(wrong)
        const three = hash()
        show(service, three, { nonce: 9 })
        expect(await submit(stakeId, three, told(8))).toMatchObject(wrong)
      })

      test('takes the payment that was made after a hash that nobody has ever seen', async () => {
        const stake = (await service.stake(key)).body
        await submit(stake.stakeId, hash())
        const paid = hash()
        land(service, paid, { success: true, pays: stake, nonce: 3 })
        expect((await submit(stake.stakeId, paid)).status).toBe(200)
        await pass(service)
        expect((await read(stake.stakeId)).transaction).toMatchObject({ status: 'confirmed', hash: paid })
      })

      test('takes a bounded number of hashes that no node shows, and one that a node shows still', async () => {
        const { stakeId } = (await service.stake(key)).body
        const [first, last, more] = [hash(), hash(), hash()]
        await submit(stakeId, first, told(7))
        await service.store.db
          .insertInto('ethereum_stake_hashes')
          .values(
            Array.from({ length: mostHashes - 2 }, () => ({
              ...{ stake_id: stakeId, hash: hash(), submitted_at: new Date(0), sender: payer, nonce: 7n },
            })),
          )
          .execute()
        expect((await submit(stakeId, last, told(7))).status).toBe(200)
        const refused = await submit(stakeId, more, told(7))
        expect(refused).toMatchObject({ status: 409, body: { code: 'already-submitted' } })
        expect(refused.body.detail).toContain(`${mostHashes} transactions were reported for the stake, and no node shows ${more}`)
        for (const one of [first, last]) expect((await submit(stakeId, one, told(7))).status).toBe(200)
        const foreign = hash()
        show(service, foreign, { nonce: 9 })
        expect((await submit(stakeId, foreign, told(7))).status).toBe(422)
        expect((await submit(stakeId, foreign)).status).toBe(409)
        show(service, more, { nonce: 7 })
        expect((await submit(stakeId, more, told(7))).body.transaction).toEqual({ status: 'submitted', hash: more })
      })

      test.each([{ from: payer }, { nonce: 7 }, { from: payer, nonce: -1 }, { from: 'me', nonce: 7 }])('refuses %j', async (wrong) => {
        const { stakeId } = (await service.stake(key)).body
        expect(await submit(stakeId, hash(), wrong)).toMatchObject({ status: 400, body: { code: 'invalid-request' } })
      })
    })

    test('refuses the hash of no transaction', async () => {
      const { stakeId } = (await service.stake(key)).body
      expect(await submit(stakeId, `0x${'0'.repeat(64)}`)).toMatchObject({
        status: 422,
        body: { code: 'validation-failed', errors: [{ pointer: '/body/transactionHash', code: 'zero-hash' }] },
      })
    })

    test.each([
      { why: 'the fee was raised', first: { nonce: 1 }, second: { nonce: 1 }, status: 200 },
      { why: 'another nonce', first: { nonce: 1 }, second: { nonce: 2 }, status: 409, code: 'already-submitted' },
      {
        why: 'another sender',
        first: { nonce: 1 },
        second: { nonce: 1, from: `0x${'9'.repeat(40)}` as const },
        status: 409,
        code: 'already-submitted',
      },
      { why: 'the second is not visible yet', first: { nonce: 1 }, second: undefined, status: 503, code: 'transaction-not-visible' },
      { why: 'the first is mined', first: { nonce: 1, blockNumber: 9n }, second: undefined, status: 409, code: 'already-submitted' },
    ])('answers $status to another hash when $why', async ({ first, second, status, code }) => {
      const { stakeId } = (await service.stake(key)).body
      const [one, two] = [hash(), hash()]
      await submit(stakeId, one)
      show(service, one, first)
      if (second !== undefined) show(service, two, second)
      const answer = await submit(stakeId, two)
      expect(answer.status).toBe(status)
      expect(answer.body.code).toBe(code)
    })

    test('refuses another hash once the first is final', async () => {
      const { stakeId } = (await service.stake(key)).body
      const one = hash()
      await submit(stakeId, one)
      land(service, one, { success: false })
      await pass(service)
      service.chain.transactions.delete(one)
      expect(await submit(stakeId, hash())).toMatchObject({ status: 409, body: { code: 'already-submitted' } })
      expect(await submit(stakeId, one)).toMatchObject({ status: 200, body: { transaction: { status: 'failed' } } })
    })

    test('waits when the chain cannot say', async () => {
      const { stakeId } = (await service.stake(key)).body
      await submit(stakeId, hash())
      service.chain.failing = 'unavailable'
      expect(await submit(stakeId, hash())).toMatchObject({ status: 503, body: { code: 'chain-unavailable' } })
    })

    test('needs no chain for the first hash', async () => {
      const { stakeId } = (await service.stake(key)).body
      service.chain.failing = 'unavailable'
      expect((await submit(stakeId, hash())).status).toBe(200)
    })

    test('honours an Idempotency-Key', async () => {
      const { stakeId } = (await service.stake(key)).body
      const idempotencyKey = hash()
      const one = hash()
      const first = await submit(stakeId, one, {}, { idempotencyKey })
      const again = await submit(stakeId, one, {}, { idempotencyKey })
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      expect(again.text).toBe(first.text)
      expect(await submit(stakeId, hash(), {}, { idempotencyKey })).toMatchObject({ status: 409, body: { code: 'idempotency-key-reused' } })
    })

    test.each([{ transactionHash: '0x12' }, { transactionHash: 5 }, {}, { transactionHash: hash(), more: 1 }])(
      'refuses %j',
      async (wrong) => {
        const { stakeId } = (await service.stake(key)).body
        const refused = await service.call('PUT', `${stakes}/${stakeId}/submission`, { key, body: wrong })
        expect(refused).toMatchObject({ status: 400, body: { code: 'invalid-request' } })
      },
    )
  })

  describe('who may do what', () => {
    test.each([
      { what: 'no key', headers: {} },
      { what: 'an unknown key', headers: { authorization: `Bearer sop_${'a'.repeat(43)}` } },
      { what: 'no Bearer', headers: { authorization: 'Basic abc' } },
      { what: 'an empty key', headers: { authorization: 'Bearer ' } },
    ])('with $what nothing', async ({ headers }) => {
      for (const [method, path] of [
        ['GET', stakes],
        ['POST', stakes],
        ['GET', '/v1/networks'],
      ] as const) {
        const refused = await service.call(method, path, { headers })
        expect(refused).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
        expect(refused.headers.get('www-authenticate')).toMatch(/^Bearer/)
      }
    })

    test('an expired or revoked key is no key', async () => {
      const expired = await service.key({ expiresAt: new Date(Date.now() - 1) })
      expect((await service.call('GET', stakes, { key: expired })).status).toBe(401)
      const { createApiKeys } = await import('../../../src/service/api-keys.ts')
      const { systemClock } = await import('../../../src/lib/clock.ts')
      const apiKeys = createApiKeys({ store: service.store, clock: systemClock })
      const { info, key: revoked } = await apiKeys.create({ account: 'acme', label: 'r', scopes: ['read'] })
      expect((await service.call('GET', stakes, { key: revoked.reveal() })).status).toBe(200)
      expect(await apiKeys.revoke(info.keyId)).toBe(true)
      expect((await service.call('GET', stakes, { key: revoked.reveal() })).status).toBe(401)
      expect(await apiKeys.revoke('key_none')).toBe(false)
      expect((await apiKeys.list()).find(({ keyId }) => keyId === info.keyId)).toMatchObject({
        account: 'acme',
        scopes: ['read'],
        revokedAt: expect.any(Date),
      })
    })

    test('a scope permits its methods only', async () => {
      const read = await service.key({ scopes: ['read'] })
      const write = await service.key({ scopes: ['write'] })
      expect((await service.call('GET', stakes, { key: read })).status).toBe(200)
      expect(await service.call('POST', stakes, { key: read, idempotencyKey: hash(), body })).toMatchObject({
        status: 403,
        body: { code: 'forbidden' },
      })
      expect((await service.call('GET', stakes, { key: write })).status).toBe(403)
      expect((await service.call('POST', stakes, { key: write, idempotencyKey: hash(), body })).status).toBe(201)
    })

    test("another account's stake does not exist", async () => {
      const { stakeId } = (await service.stake(key)).body
      expect((await service.call('GET', `${stakes}/${stakeId}`, { key: other })).status).toBe(404)
      expect((await service.call('PUT', `${stakes}/${stakeId}/submission`, { key: other, body: { transactionHash: hash() } })).status).toBe(
        404,
      )
      const theirs = await service.call('GET', stakes, { key: other })
      expect(theirs.body.items.map((one: { stakeId: string }) => one.stakeId)).not.toContain(stakeId)
      expect((await service.call('GET', `${stakes}/${stakeId}`, { key })).body.transaction).toEqual({ status: 'awaiting_submission' })
    })

    test("another account's stake does not exist either for who names its tag, or waits for it", async () => {
      const path = `${stakes}/${(await service.stake(key)).body.stakeId}`
      // Its answer is at hand now.
      const tag = (await service.call('GET', path, { key })).headers.get('etag') ?? ''
      for (const known of [tag, '*', `"none"`])
        expect((await service.call('GET', path, { key: other, headers: { 'if-none-match': known } })).status).toBe(404)
      const begun = performance.now()
      expect((await service.call('GET', `${path}?wait=30s`, { key: other, headers: { 'if-none-match': tag } })).status).toBe(404)
      expect(performance.now() - begun).toBeLessThan(10_000)
    })
  })

  describe('lists', () => {
    test('go through all stakes of the account, the newest first, none twice', async () => {
      const account = hash()
      const mine = await service.key({ account })
      const made: string[] = []
      for (let count = 0; count < 7; count++) made.unshift((await service.stake(mine)).body.stakeId)
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const page = await service.call('GET', `${stakes}?limit=3${cursor === undefined ? '' : `&cursor=${cursor}`}`, { key: mine })
        seen.push(...page.body.items.map((one: { stakeId: string }) => one.stakeId))
        cursor = page.body.nextCursor
      } while (cursor !== undefined && seen.length < 100)
      expect(seen).toEqual(made)
      expect((await service.call('GET', `${stakes}?network=elsewhere`, { key: mine })).body).toEqual({ items: [] })
      expect((await service.call('GET', `${stakes}?network=devnet&limit=200`, { key: mine })).body.items).toHaveLength(7)
    })

    test('go on where they were while stakes are created, and show nothing of another account whose cursor is named', async () => {
      const [mine, theirs] = [await service.key({ account: hash() }), await service.key({ account: hash() })]
      const made: string[] = []
      for (let count = 0; count < 3; count++) {
        made.unshift((await service.stake(mine)).body.stakeId)
        await service.stake(theirs)
      }
      const page = async (who: string, query: string) => (await service.call('GET', `${stakes}?${query}`, { key: who })).body
      const ids = (body: { items: { stakeId: string }[] }) => body.items.map(({ stakeId }) => stakeId)
      const first = await page(mine, 'limit=2')
      await service.stake(mine)
      const second = await page(mine, `limit=2&cursor=${first.nextCursor}`)
      expect([...ids(first), ...ids(second)]).toEqual(made)
      expect(second.nextCursor).toBeUndefined()
      const { nextCursor } = await page(theirs, 'limit=1')
      for (const id of ids(await page(mine, `cursor=${nextCursor}`))) expect(made).toContain(id)
    })

    test.each([
      'limit=0',
      'limit=201',
      'limit=x',
      'cursor=x',
      'page=2',
      'externalReference=a%00b',
      'externalReference=%ff',
      'externalReference=%ED%A0%80',
      'externalReference=%',
      'cursor=%00',
      'network=%00',
      'externalReference=',
    ])('refuse %s', async (query) => {
      expect(await service.call('GET', `${stakes}?${query}`, { key })).toMatchObject({
        status: 400,
        body: { code: 'invalid-request', errors: [{ pointer: expect.stringMatching(/^\/query/) }] },
      })
    })
  })

  describe('what is not there', () => {
    test.each([
      { method: 'GET', path: '/nothing', status: 404, code: 'not-found' },
      { method: 'GET', path: `${stakes}/${'0'.repeat(32)}`, status: 404, code: 'not-found' },
      { method: 'GET', path: `${stakes}/no-such-stake`, status: 404, code: 'not-found' },
      { method: 'GET', path: `${stakes}/%ff`, status: 404, code: 'not-found' },
      { method: 'GET', path: `${stakes}/${'a'.repeat(500)}`, status: 404, code: 'not-found' },
      { method: 'DELETE', path: stakes, status: 405, code: 'method-not-allowed', allow: /GET.*POST|POST.*GET/ },
      { method: 'PATCH', path: `${stakes}/${'0'.repeat(32)}`, status: 405, code: 'method-not-allowed', allow: /GET/ },
      { method: 'QUERY', path: stakes, status: 405, code: 'method-not-allowed', allow: /GET.*POST|POST.*GET/ },
    ])('$method $path is $status', async ({ method, path, status, code, allow }) => {
      const answer = await service.call(method, path, { key })
      expect(answer).toMatchObject({ status, body: { code } })
      if (allow !== undefined) expect(answer.headers.get('allow')).toMatch(allow)
    })

    test.each([
      { contentType: 'application/json; charset=utf-16', status: 415 },
      { contentType: 'application/json;charset="ISO-8859-1"', status: 415 },
      { contentType: 'application/json; charset=UTF-8', status: 201 },
      { contentType: 'application/json;charset="utf-8"', status: 201 },
    ])('a body as $contentType is $status', async ({ contentType, status }) => {
      const headers = { 'content-type': contentType }
      const answer = await service.call('POST', stakes, { key, idempotencyKey: hash(), text: JSON.stringify(body), headers })
      expect(answer.status).toBe(status)
    })

    test.each([
      { contentEncoding: 'identity', status: 201 },
      { contentEncoding: 'gzip', status: 415 },
      { contentEncoding: 'identity, br', status: 415 },
    ])('a body that is encoded as $contentEncoding is $status', async ({ contentEncoding, status }) => {
      const headers = { 'content-encoding': contentEncoding }
      const answer = await service.call('POST', stakes, { key, idempotencyKey: hash(), text: JSON.stringify(body), headers })
      expect(answer.status).toBe(status)
    })

    test.each([
      { name: 'Authorization', values: () => [`Bearer ${key}`, `Bearer ${other}`] },
      { name: 'Content-Type', values: () => ['application/json', 'application/json; charset=utf-16'] },
      { name: 'Host', values: () => ['a.example', 'b.example'] },
    ])('a second $name is refused: who stands before the service may believe the other', async ({ name, values }) => {
      const given = [
        ['Host', new URL(service.url).host],
        ['Authorization', `Bearer ${key}`],
        ['Content-Type', 'application/json'],
        ['Idempotency-Key', hash()],
      ].filter(([one]) => one !== name)
      const answer = await sendRaw(
        service.url + stakes,
        [...given.flat(), ...values().flatMap((value) => [name, value])],
        JSON.stringify(body),
      )
      expect(answer).toMatchObject({
        status: 400,
        body: { code: 'invalid-request', errors: [{ pointer: `/headers/${name.toLowerCase()}`, code: 'several' }] },
      })
    })

    test('a body that is not JSON is 415, one too large 413', async () => {
      const idempotencyKey = hash()
      expect(
        (
          await service.call('POST', stakes, {
            key,
            idempotencyKey,
            text: 'a=b',
            headers: { 'content-type': 'application/x-www-form-urlencoded' },
          })
        ).status,
      ).toBe(415)
      expect((await service.call('POST', stakes, { key, idempotencyKey, text: `"${'x'.repeat(70_000)}"` })).status).toBe(413)
    })
  })

  describe('operations', () => {
    test('is alive and ready, without an API key', async () => {
      expect((await service.call('GET', '/healthz')).status).toBe(200)
      expect((await service.call('GET', '/readyz')).body).toEqual({ status: 'ready', database: 'ok' })
    })
    test('is ready where its database takes no writes, since reading goes on, and says so and why', async () => {
      const reason = "the disk of the service's database is full"
      const other = await startService({ ...service.store, readOnly: () => reason })
      try {
        expect(await other.call('GET', '/readyz')).toMatchObject({ status: 200, body: { status: 'ready', database: 'read-only', reason } })
      } finally {
        await other.close()
      }
    })
    test('tells of each network, when asked for more', async () => {
      expect((await service.call('GET', '/readyz?verbose')).body).toEqual({
        status: 'ready',
        database: 'ok',
        networks: { devnet: { chain: 'ok' } },
        missingStakes: {},
      })
      const failing = createFakeChain('broken')
      failing.failing = 'wrong-chain'
      const networks = new Map([['broken', { config: networkConfig('broken'), chain: failing }]])
      const other = await startService(service.store, { networks })
      try {
        expect(await other.call('GET', '/readyz?verbose')).toMatchObject({
          status: 200,
          body: { networks: { broken: { chain: 'wrong-chain' } } },
        })
        expect((await other.call('GET', '/metrics')).text).toContain('staking_service_network_up{network="broken",kind="chain"} 0')
      } finally {
        await other.close()
      }
    })
    test('lists its networks', async () => {
      expect((await service.call('GET', '/v1/networks', { key })).body).toEqual({
        networks: [
          {
            network: 'devnet',
            chain: 'ethereum',
            chainId: 31337,
            depositContractAddress: networkConfig().depositContractAddress,
            genesisForkVersion: '0x10000910',
          },
        ],
      })
    })
    test('describes what it serves, and no more', async () => {
      const document = (await service.call('GET', '/openapi.json')).body
      expect(Object.keys(document.paths).sort()).toEqual(
        [
          stakes,
          `${stakes}/{stakeId}`,
          `${stakes}/{stakeId}/submission`,
          ...['exit-requests', 'withdrawal-requests'].flatMap((list) => {
            const path = `/v1/ethereum/validators/{pubkey}/${list}`
            return [path, `${path}/{requestId}`, `${path}/{requestId}/submission`]
          }),
          '/v1/ethereum/validators/{pubkey}/withdrawal-capacity',
          ...['', '/{stakeId}', '/{stakeId}/stake-transaction-challenge'].map((path) => `/v1/solana/stakes${path}`),
          ...['stake', 'deactivation', 'withdrawal'].map((kind) => `/v1/solana/stakes/{stakeId}/${kind}-transactions`),
          ...['refresh', 'submission'].map((act) => `/v1/solana/stakes/{stakeId}/transactions/{txId}/${act}`),
          ...['/v1/audit-log', '/v1/networks'],
          ...['', '/{endpointId}', '/{endpointId}/enable', '/{endpointId}/secret-rotations'].map((path) => `/v1/webhook-endpoints${path}`),
        ].sort(),
      )
    })
    test('counts', async () => {
      const { text } = await service.call('GET', '/metrics')
      expect(text).toMatch(/^staking_service_stakes\{network="devnet",status="awaiting_submission"\} \d+$/m)
      expect(text).toMatch(
        /staking_service_http_request_duration_seconds_count\{method="POST",route="\/v1\/ethereum\/stakes",status="201"\} \d+/,
      )
      expect(text).toMatch(/staking_service_chain_errors_total\{network="devnet",code="unavailable"\} \d+/)
    })
    test('counts the lag of a tracker that never gets through from its start', async () => {
      const chain = createFakeChain('broken')
      chain.failing = 'wrong-chain'
      const other = await startService(service.store, { networks: new Map([['broken', { config: networkConfig('broken'), chain }]]) })
      const ending = new AbortController()
      const running = other.service.tracker.run(ending.signal)
      try {
        const { text } = await other.call('GET', '/metrics')
        const [, at] = /^staking_service_tracker_last_success_timestamp_seconds\{network="broken"\} ([\d.]+)$/m.exec(text) ?? []
        expect(Math.abs(Date.now() / 1000 - Number(at))).toBeLessThan(60)
      } finally {
        ending.abort()
        await running
        await other.close()
      }
    })
    test('remembers that a statement was refused since the database takes no writes', async () => {
      const { store } = service
      expect(store.readOnly()).toBeUndefined()
      const refused = store.db.connection().execute(async (connection) => {
        await sql`set default_transaction_read_only = on`.execute(connection)
        const writing = sql`create table refused (a int)`.execute(connection)
        // The embedded database has one connection. A server's is given up with its error.
        return writing.finally(() => sql`set default_transaction_read_only = off`.execute(connection).catch(() => undefined))
      })
      await expect(refused).rejects.toThrow()
      expect(store.readOnly()).toBe("the service's database takes no writes: it is a standby")
    })
    test("hands on the caller's request id, if it is one", async () => {
      expect((await service.call('GET', '/healthz', { headers: { 'x-request-id': 'abc-1' } })).headers.get('x-request-id')).toBe('abc-1')
      expect((await service.call('GET', '/healthz', { headers: { 'x-request-id': 'a b' } })).headers.get('x-request-id')).not.toBe('a b')
    })
  })

  test('logs its requests, and no secret', async () => {
    await service.call('GET', `${stakes}?x=1`, { headers: { authorization: `Bearer ${key}x` } })
    const logs = service.logs()
    expect(logs).toContain('"msg":"request"')
    for (const secret of [...keysMade, seedHex, 'authorization', 'Bearer']) expect(logs).not.toContain(secret)
  })
})

/** POSTs with headers as they are given, names and values in turn. */
const sendRaw = (url: string, headers: readonly string[], text: string) =>
  new Promise<{ status: number | undefined; body: unknown }>((done, fail) => {
    const outgoing = request(url, { method: 'POST', headers: [...headers, 'content-length', String(text.length)] }, (incoming) => {
      let received = ''
      incoming.on('data', (chunk) => {
        received += chunk
      })
      incoming.on('end', () => done({ status: incoming.statusCode, body: JSON.parse(received) }))
    })
    outgoing.on('error', fail)
    outgoing.end(text)
  })

/** The chain shows a transaction. */
function show(
  service: TestService,
  transactionHash: `0x${string}`,
  more: { nonce: number; from?: `0x${string}`; blockNumber?: bigint },
): void {
  service.chain.transactions.set(transactionHash, {
    hash: transactionHash,
    from: payer,
    to: `0x${'2'.repeat(40)}` as const,
    data: '0x',
    valueWei: 0n as never,
    ...more,
  })
}

/** The chain shows a transaction in a block, a final one unless told otherwise; `pays` is the stake whose deposit it makes. */
function land(
  service: TestService,
  transactionHash: `0x${string}`,
  {
    success,
    pays,
    nonce = 1,
    at = 5n,
  }: { success: boolean; pays?: { unsignedTransaction: object; depositData: object }; nonce?: number; at?: bigint },
): void {
  show(service, transactionHash, { nonce, blockNumber: at })
  const shown = service.chain.transactions.get(transactionHash)
  if (shown === undefined) throw new Error('it is not shown')
  const call = pays && z.decode(unsignedTransaction, pays.unsignedTransaction as never)
  const deposit = pays && z.decode(depositData, pays.depositData as never)
  if (call !== undefined) {
    service.chain.transactions.set(transactionHash, { ...shown, to: call.to, data: call.data, valueWei: call.valueWei })
  }
  service.chain.receipts.set(transactionHash, {
    hash: transactionHash,
    from: payer,
    success,
    blockNumber: at,
    blockHash: `0x${'b'.repeat(64)}` as const,
    gasUsed: 1n,
    effectiveGasPrice: 1n as never,
    logs: deposit === undefined ? [] : [depositLog(deposit)],
  })
}

/** As the deposit contract writes it. */
const depositLog = (deposit: z.output<typeof depositData>) => ({
  address: deposit.depositContractAddress,
  topics: [depositEventTopic],
  data: encodeAbiParameters(parseAbiParameters('bytes pubkey, bytes withdrawal_credentials, bytes amount, bytes signature, bytes index'), [
    deposit.pubkey,
    deposit.withdrawalCredentials,
    `0x${Buffer.from(new BigUint64Array([deposit.amountGwei]).buffer).toString('hex')}`,
    deposit.signature,
    `0x${'00'.repeat(8)}`,
  ]),
})

async function pass(service: TestService): Promise<void> {
  const network = service.networks.get('devnet')
  if (network === undefined) throw new Error('no network')
  await service.service.tracker.pass(network, AbortSignal.timeout(10_000))
}
