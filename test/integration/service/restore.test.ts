import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { depositData } from '../../../src/contract/schemas/ethereum-stake.ts'
import { Secret } from '../../../src/lib/secret.ts'
import { firstHashedIndex } from '../../../src/service/key-index.ts'
import type { DatabaseConfig } from '../../../src/service/store/database.ts'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
import { startService, type TestService, withdrawalAddress } from './harness.ts'

/** A database, and a copy of it that was made earlier: a restored backup. */
interface Copied {
  readonly database: DatabaseConfig
  copy(): Promise<DatabaseConfig>
}

let postgres: Postgres
let folder: string
beforeAll(async () => {
  postgres = await startPostgres()
  folder = mkdtempSync(join(tmpdir(), 'staking-restore-'))
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await postgres?.stop()
})

let made = 0
const embedded = async (): Promise<Copied> => {
  const dataDir = join(folder, `data-${made++}`)
  return {
    database: { kind: 'embedded', dataDir },
    copy: async () => {
      const copy = join(folder, `copy-${made++}`)
      cpSync(join(dataDir, 'pgdata'), join(copy, 'pgdata'), { recursive: true })
      return { kind: 'embedded', dataDir: copy }
    },
  }
}
const server = async (): Promise<Copied> => {
  const name = `restore_${made++}`
  const configOf = (url: string): DatabaseConfig => ({ kind: 'postgres', url: new Secret(url), poolSize: 5 })
  return {
    database: configOf(await postgres.createDatabase(name)),
    copy: async () => {
      const client = new pg.Client({ connectionString: postgres.url })
      await client.connect()
      await client.query(`create database ${name}_copy template ${name}`)
      await client.end()
      return configOf(postgres.url.replace(/postgres$/, `${name}_copy`))
    },
  }
}

const stakes = '/v1/ethereum/stakes'
const elsewhere = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359'

describe.each([
  { name: 'the embedded database', create: embedded },
  { name: 'PostgreSQL', create: server },
])('after $name was restored from an older copy', ({ create }) => {
  let service: TestService
  let key: string
  const lost: { readonly body: ReturnType<typeof JSON.parse>; readonly idempotencyKey: string }[] = []
  const post = (idempotencyKey: string, more: object = {}) =>
    service.call('POST', stakes, { key, idempotencyKey, body: { network: 'devnet', amountEth: 32, withdrawalAddress, ...more } })

  beforeAll(async () => {
    const { database: original, copy } = await create()
    service = await startService(original)
    key = await service.key()
    expect((await post('before')).status).toBe(201)
    await service.close()
    const restored = await copy()
    service = await startService(original)
    // More than a block of indices and any look ahead: the last one is paid.
    for (let count = 0; count < 36; count++) lost.push({ idempotencyKey: `lost/${count}`, body: (await post(`lost/${count}`)).body })
    await service.close()
    service = await startService(restored)
  })
  afterAll(() => service?.close())
  const lostKeys = () => new Set(lost.map(({ body }) => body.depositData.pubkey))
  const lostAt = (at: number) => lost[at] ?? expect.fail('there is no such stake')
  const pay = ({ body }: { body: { depositData: object } }, change: object = {}) => {
    const deposit = z.decode(depositData, body.depositData as never)
    service.chain.deposits.set(deposit.pubkey, [{ ...deposit, index: 0n, transactionHash: paidBy, blockNumber: 5n, ...change }])
  }
  const paidBy = `0x${'ab'.repeat(32)}` as const

  test('the next 36 stakes get none of the keys that were handed out since, paid or not', async () => {
    pay(lostAt(35))
    const keys = new Set<string>()
    for (let count = 0; count < 36; count++) {
      const answer = await post(`new/${count}`, { withdrawalAddress: elsewhere })
      expect(answer.status).toBe(201)
      keys.add(answer.body.depositData.pubkey)
    }
    expect(keys.size).toBe(36)
    expect([...keys].filter((pubkey) => lostKeys().has(pubkey))).toEqual([])
  })

  test.each([
    { at: 1, change: { withdrawalAddress: elsewhere } },
    { at: 2, change: { amountEth: 33 } },
    { at: 3, change: { credentialsType: '0x01' } },
  ])('a lost Idempotency-Key with $change gets another key: none is ever signed for two', async ({ at, change }) => {
    const answer = await post(lostAt(at).idempotencyKey, change)
    expect(answer.status).toBe(201)
    expect(lostKeys().has(answer.body.depositData.pubkey)).toBe(false)
  })

  test('a lost request that comes again gets the very same deposit', async () => {
    const { idempotencyKey, body } = lostAt(10)
    const again = await post(idempotencyKey)
    expect(again).toMatchObject({
      status: 201,
      body: {
        depositData: body.depositData,
        unsignedTransaction: body.unsignedTransaction,
        transaction: { status: 'awaiting_submission' },
      },
    })
  })

  test('a lost request that was paid is made again as paid: nobody pays twice', async () => {
    const { idempotencyKey, body } = lostAt(35)
    pay(lostAt(35))
    const again = await post(idempotencyKey)
    expect(again).toMatchObject({
      status: 201,
      body: { depositData: body.depositData, transaction: { status: 'submitted', hash: paidBy } },
    })
    expect(service.logs()).toContain('was the database restored from an older backup?')
    expect((await post(idempotencyKey)).text).toBe(again.text)
  })

  test("a key that has somebody else's deposit is not handed out", async () => {
    pay(lostAt(20), { signature: `0x${'cd'.repeat(96)}` })
    const again = await post('lost/20')
    expect(again.status).toBe(201)
    expect(again.body.depositData.pubkey).not.toBe(lostAt(20).body.depositData.pubkey)
    expect(service.logs()).toContain('has another deposit already and is skipped')
  })

  describe('when records of answers are lost, and their stakes are not', () => {
    const lose = (idempotencyKey: string) => service.store.db.deleteFrom('idempotency_keys').where('key', '=', idempotencyKey).execute()
    const count = async () => (await service.store.db.selectFrom('ethereum_stakes').select('id').execute()).length

    test.each([
      { what: 'as it is', more: {} },
      { what: 'with a reference', more: { externalReference: 'kept/reference' } },
    ])('a request that comes again, $what, gets its stake, as it is now', async ({ what, more }) => {
      const idempotencyKey = `kept/${what}`
      const first = await post(idempotencyKey, more)
      expect(first.status).toBe(201)
      const path = `${stakes}/${first.body.stakeId}`
      const transactionHash = `0x${'5'.repeat(64)}`
      await service.call('PUT', `${path}/submission`, { key, body: { transactionHash } })
      const stakesBefore = await count()
      await lose(idempotencyKey)
      const again = await post(idempotencyKey, more)
      expect(again).toMatchObject({
        status: 201,
        body: {
          stakeId: first.body.stakeId,
          depositData: first.body.depositData,
          transaction: { status: 'submitted', hash: transactionHash },
        },
      })
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      expect(again.headers.get('location')).toBe(path)
      expect((await post(idempotencyKey, more)).text).toBe(again.text)
      expect(await count()).toBe(stakesBefore)
      expect(service.logs()).toContain('a stake is there of a request whose record is lost')
    })

    test('also where the address was written in another case, and the reference was given up', async () => {
      const first = await post('kept/cancelled', { externalReference: 'kept/given up' })
      expect((await service.call('DELETE', `${stakes}/${first.body.stakeId}`, { key })).status).toBe(200)
      await lose('kept/cancelled')
      const more = { externalReference: 'kept/given up', withdrawalAddress: withdrawalAddress.toLowerCase() }
      expect(await post('kept/cancelled', more)).toMatchObject({
        status: 201,
        body: { stakeId: first.body.stakeId, transaction: { status: 'cancelled' } },
      })
    })

    test.each([
      { more: { amountEth: 33 } },
      { more: { withdrawalAddress: elsewhere } },
      { more: { credentialsType: '0x01' } },
      { more: { externalReference: 'kept/other' } },
      { more: { amountEth: 1 } },
    ])('another request under its key is refused: $more', async ({ more }) => {
      const idempotencyKey = `kept/${JSON.stringify(more)}`
      await post(idempotencyKey)
      const stakesBefore = await count()
      await lose(idempotencyKey)
      expect(await post(idempotencyKey, more)).toMatchObject({ status: 409, body: { code: 'idempotency-key-reused' } })
      expect(await count()).toBe(stakesBefore)
      expect((await post(idempotencyKey)).headers.get('idempotency-replayed')).toBe('true')
    })

    test('ten at once get the one stake', async () => {
      const first = await post('kept/many')
      await lose('kept/many')
      const answers = await Promise.all(Array.from({ length: 10 }, () => post('kept/many')))
      const made = answers.filter(({ status }) => status === 201)
      expect(made.length).toBeGreaterThan(0)
      for (const { body } of made) expect(body.stakeId).toBe(first.body.stakeId)
      for (const answer of answers.filter(({ status }) => status !== 201)) expect(answer.body.code).toBe('idempotency-key-in-progress')
    })

    test('and the other way round: a request whose stake is lost makes it again, with the very same deposit', async () => {
      const more = { externalReference: 'kept/no stake' }
      const first = await post('kept/no stake', more)
      await service.store.db.deleteFrom('ethereum_stakes').where('id', '=', first.body.stakeId).execute()
      expect((await service.call('GET', `${stakes}/${first.body.stakeId}`, { key })).status).toBe(404)
      const again = await post('kept/no stake', more)
      expect(again).toMatchObject({ status: 201, body: { ...more, depositData: first.body.depositData } })
      expect(again.headers.get('idempotency-replayed')).toBeNull()
      expect((await service.call('GET', `${stakes}/${again.body.stakeId}`, { key })).status).toBe(200)
      expect((await post('kept/no stake', more)).text).toBe(again.text)
    })

    test("another account's stake at its index is none of its own: it takes the next", async () => {
      await post('kept/index')
      const row = await service.store.db
        .selectFrom('ethereum_stakes')
        .selectAll()
        .where('idempotency_key', '=', 'kept/index')
        .executeTakeFirstOrThrow()
      await service.store.db.updateTable('ethereum_stakes').set({ account: 'somebody' }).where('id', '=', row.id).execute()
      await lose('kept/index')
      const answer = await post('kept/index')
      expect(answer.status).toBe(201)
      expect(answer.body.stakeId).not.toBe(row.id)
      expect(answer.body.depositData.pubkey).not.toBe(row.pubkey)
    })
  })

  test('stakes from before keys came from their requests stay as they are, and their indices are not given again', async () => {
    const row = await service.store.db
      .selectFrom('ethereum_stakes')
      .selectAll()
      .where('status', '=', 'awaiting_submission')
      .executeTakeFirstOrThrow()
    await service.store.db.updateTable('ethereum_stakes').set({ key_index: 3n }).where('id', '=', row.id).execute()
    expect((await service.call('GET', `${stakes}/${row.id}`, { key })).body.depositData.pubkey).toBe(row.pubkey)
    const rows = await service.store.db.selectFrom('ethereum_stakes').select(['key_index', 'id']).execute()
    for (const { key_index, id } of rows) if (id !== row.id) expect(key_index).toBeGreaterThanOrEqual(firstHashedIndex)
  })
})
