import { hash, randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import { createIdempotency } from '../../../src/service/idempotency.ts'
import { newId } from '../../../src/service/ids.ts'
import { type Claim, createStakeOnce } from '../../../src/service/store/new-stake.ts'
import type { NewStake } from '../../../src/service/store/stakes.ts'
import { databases, startService, type TestService, withdrawalAddress } from './harness.ts'

/** What many write at once goes into one statement: each must get what it would have got alone. */
const { both, stop } = databases('together')
afterAll(() => stop())

describe.each(both)('what is written together on $database', ({ open }) => {
  let service: TestService
  beforeAll(async () => {
    service = await startService(await open())
  })
  afterAll(() => service?.close())

  const post = (key: string, idempotencyKey: string, more: object = {}) =>
    service.call('POST', '/v1/ethereum/stakes', {
      key,
      idempotencyKey,
      body: { network: 'devnet', amountEth: 32, withdrawalAddress, ...more },
    })
  const countOf = async (table: 'ethereum_stakes' | 'external_references') =>
    (await service.store.db.selectFrom(table).selectAll().execute()).length

  test('of requests that come at once, those with one Idempotency-Key make one stake, and each of the others one of its own', async () => {
    const key = await service.key()
    const before = await countOf('ethereum_stakes')
    const names = Array.from({ length: 12 }, (_, index) => `${index % 8}`)
    const answers = await Promise.all(names.map((name) => post(key, name)))
    const made = new Map<string, Set<string>>()
    for (const [index, { status, body }] of answers.entries()) {
      if (status === 201) made.set(names[index] ?? '', (made.get(names[index] ?? '') ?? new Set()).add(body.stakeId))
      else expect(body.code).toBe('idempotency-key-in-progress')
    }
    expect([...made.keys()].sort()).toEqual(['0', '1', '2', '3', '4', '5', '6', '7'])
    for (const ids of made.values()) expect(ids.size).toBe(1)
    expect(await countOf('ethereum_stakes')).toBe(8 + before)
  })

  test('a request of a revoked key beside good ones is refused, and the others are not', async () => {
    const keys = await Promise.all([service.key(), service.key(), service.key()])
    const [, revoked] = keys
    // Remembered as good by this instance, whatever the database says meanwhile.
    await Promise.all(keys.map((key) => service.call('GET', '/v1/ethereum/stakes', { key })))
    const given = hash('sha256', revoked ?? '')
    await service.store.db.updateTable('api_keys').set({ revoked_at: new Date() }).where('key_hash', '=', given).execute()
    const answers = await Promise.all(keys.map((key) => post(key, randomUUID())))
    expect(answers.map(({ status }) => status)).toEqual([201, 401, 201])
  })

  describe('a new stake', () => {
    let claim: Claim
    const stakeOf = (reference: string | null, keyIndex = BigInt(`0x${randomBytes(3).toString('hex')}`)): NewStake => ({
      id: newId(new Date()),
      account: 'acme',
      network: 'devnet',
      amount_gwei: 32_000_000_000n,
      withdrawal_address: withdrawalAddress,
      credentials_type: '0x02',
      key_index: keyIndex,
      pubkey: `0x${randomBytes(48).toString('hex')}` as Hex,
      deposit_data: '{"a":1}',
      unsigned_transaction: '{"b":2}',
      external_reference: reference,
      withdrawal_is_contract: null,
      idempotency_key: null,
      created_at: new Date(),
    })
    const made = { status: 201, body: '{}' }
    const write = (stake: NewStake, of = claim) => createStakeOnce(service.store.db, of, stake, made)
    /** Holds a key as a request does. */
    const holding = async (work: () => Promise<void>) => {
      const request = { account: 'acme', key: randomUUID(), fingerprint: 'f' }
      await createIdempotency({ store: service.store }).runClaimed(request, async (given) => {
        claim = given
        await work()
        return made
      })
    }
    const counts = async () => [await countOf('ethereum_stakes'), await countOf('external_references')] as const
    let before: readonly [number, number]
    beforeEach(async () => {
      before = await counts()
    })
    const rows = async () => {
      const [stakes, references] = await counts()
      return { stakes: stakes - before[0], references: references - before[1] }
    }

    test('is written with its reference and the answer to its request', async () => {
      const stake = stakeOf(randomUUID())
      await holding(async () => expect(await write(stake)).toBe('created'))
      expect(await service.store.db.selectFrom('ethereum_stakes').selectAll().where('id', '=', stake.id).executeTakeFirst()).toMatchObject({
        id: stake.id,
        amount_gwei: 32_000_000_000n,
        deposit_data: { a: 1 },
        unsigned_transaction: { b: 2 },
        status: 'awaiting_submission',
        created_at: stake.created_at,
      })
      expect(await rows()).toEqual({ stakes: 1, references: 1 })
      const answered = await service.store.db.selectFrom('idempotency_keys').selectAll().where('key', '=', claim.key).executeTakeFirst()
      expect(answered).toMatchObject(made)
    })

    test.each<{ what: string; of: () => Claim }>([
      { what: 'somebody else holds the key by now', of: () => ({ ...claim, owner: 'another' }) },
      { what: 'nobody holds the key', of: () => ({ ...claim, key: 'unknown' }) },
    ])('is not written, nor anything else, when $what', async ({ of }) => {
      await holding(async () => expect(await write(stakeOf(randomUUID()), of())).toBe('unclaimed'))
      expect(await rows()).toEqual({ stakes: 0, references: 0 })
    })

    test('is not written twice for one claim', async () => {
      await holding(async () => {
        expect(await write(stakeOf(randomUUID()))).toBe('created')
        expect(await write(stakeOf(randomUUID()))).toBe('unclaimed')
      })
      expect(await rows()).toEqual({ stakes: 1, references: 1 })
    })

    test('is not written when its reference is held, and the request is not answered', async () => {
      const reference = randomUUID()
      await holding(async () => expect(await write(stakeOf(reference))).toBe('created'))
      await holding(async () => {
        expect(await write(stakeOf(reference))).toBe('referenced')
        const row = await service.store.db.selectFrom('idempotency_keys').selectAll().where('key', '=', claim.key).executeTakeFirst()
        expect(row).toMatchObject({ status: null, body: null })
      })
      expect(await rows()).toEqual({ stakes: 1, references: 1 })
    })

    test('leaves nothing behind when the index of its key is taken', async () => {
      await holding(async () => expect(await write(stakeOf(randomUUID(), 7n))).toBe('created'))
      await holding(() => expect(write(stakeOf(randomUUID(), 7n))).rejects.toMatchObject({ code: '23505' }))
      expect(await rows()).toEqual({ stakes: 1, references: 1 })
    })
  })
})
