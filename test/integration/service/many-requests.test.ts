import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Address, Hash, Pubkey } from '../../../src/lib/chain-types.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import {
  awaitedOf,
  awaitedSenders,
  insertRequestMark,
  moveRequestMark,
  unreportedOf,
} from '../../../src/service/store/unreported-requests.ts'
import { databases } from './harness.ts'

/** Anyone may fill the blocks that a service that was away has to read: PostgreSQL takes 65,535 parameters a statement. */
const MANY = 70_000
const { both, stop } = databases('many')
afterAll(stop)

const hex = <T extends string>(bytes: number, n: number) => `0x${n.toString(16).padStart(bytes * 2, '0')}` as T
const each = <T>(count: number, make: (n: number) => T): readonly T[] => Array.from({ length: count }, (_, n) => make(n))

describe.each(both)('requests of everybody on $database', ({ open }) => {
  let store: Store
  beforeAll(async () => {
    store = await openStore(await open())
  })
  afterAll(async () => {
    await store?.close()
  })

  test('of more validators and senders than a statement takes are told apart from our own', { timeout: 120_000 }, async () => {
    const pubkeys = each(MANY, (n) => hex<Pubkey>(48, n))
    const senders = each(MANY, (n) => hex<Address>(20, n))
    expect(await awaitedOf(store.db, 'devnet', pubkeys)).toEqual([])
    expect(await awaitedSenders(store.db, 'devnet', senders)).toEqual(new Set())
  })

  test('that may be our own are kept, however many, and the mark moves on', { timeout: 120_000 }, async () => {
    const count = 17_000
    await insertRequestMark(store.db, 'devnet', 10n)
    const found = each(count, (n) => ({
      network: 'devnet',
      hash: hex<Hash>(32, n),
      pubkey: hex<Pubkey>(48, n),
      amount_gwei: 0n,
      sender: hex<Address>(20, n),
      block_number: 11n,
      seen_at: new Date(0),
    }))
    await moveRequestMark(store.db, 'devnet', { from: 10n, to: 20n }, found)
    const { total } = await store.db
      .selectFrom('unreported_requests')
      .select((select) => select.fn.countAll<bigint>().as('total'))
      .executeTakeFirstOrThrow()
    expect(Number(total)).toBe(count)
    expect((await unreportedOf(store.db, 'devnet')).length).toBeGreaterThan(0)
  })
})
