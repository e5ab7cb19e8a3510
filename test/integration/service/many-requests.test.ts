import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ChainError, type ChainHead } from '../../../src/chains/ethereum/chain.ts'
import type { Address, Hash, Pubkey } from '../../../src/lib/chain-types.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { EthereumNetwork } from '../../../src/service/ethereum/networks.ts'
import { createUnreportedRequests } from '../../../src/service/ethereum/requests/unreported.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { awaitedOf, awaitedSenders, insertRequestMark, moveRequestMark } from '../../../src/service/store/unreported-requests.ts'
import { passTurn, takeUnreported } from '../../../src/service/store/unreported-turns.ts'
import { databases } from './harness.ts'

/** Anyone may fill the blocks that a service that was away has to read: PostgreSQL takes 65,535 parameters a statement. */
const MANY = 70_000
const { both, stop } = databases('many')
afterAll(stop)

const hex = <T extends string>(bytes: number, n: number) => `0x${n.toString(16).padStart(bytes * 2, '0')}` as T
const each = <T>(count: number, make: (n: number) => T): readonly T[] => Array.from({ length: count }, (_, n) => make(n))

/** A network whose nodes show these transactions only, and log nothing. */
const networkOf = (name: string, shown: readonly Hash[] = [], fails: readonly Hash[] = []) =>
  ({
    config: { name, pollIntervalMs: 1_000 },
    requests: { requestsBetween: async () => ({ requests: [], isWhole: true }) },
    chain: {
      transaction: async (hash: Hash) => {
        if (fails.includes(hash)) throw new ChainError('unavailable', 'the node cannot answer now')
        return shown.includes(hash) ? {} : undefined
      },
    },
  }) as unknown as EthereumNetwork
const head = { latest: 20n, final: 20n } as ChainHead
const never = new AbortController().signal
const silent = { info() {}, warn() {}, debug() {}, error() {} } as never

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
    // In turns: nobody is left out, and nobody comes twice before all others came.
    const limits = { rows: 5_000, perGroup: 1_000 }
    const taken: string[] = []
    for (let turn = 0; turn < 4; turn += 1) {
      const groups = await takeUnreported(store.db, 'devnet', limits)
      await passTurn(store.db, 'devnet', groups)
      taken.push(...groups.map(({ key }) => key))
    }
    expect(taken.length).toBe(4 * 5_000)
    expect(new Set(taken).size).toBe(count)
  })

  /** Stored withdrawals of one validator each, and what was sent for them. */
  async function stored(network: string, all: readonly { id: string; n: number; account?: string }[], more: object = {}): Promise<void> {
    await store.db
      .insertInto('ethereum_requests')
      .values(
        all.map(({ id, n, account = 'main' }) => ({
          ...{ id: `${network}-${id}`, account, network, kind: 'withdrawal' as const, pubkey: hex<Pubkey>(48, n), amount_gwei: 5n },
          ...{ sender: hex<Address>(20, n), unsigned_transaction: '{}', fee_wei: '1', quoted_at_block: 5n, external_reference: null },
          ...{ queued_deposits_gwei: null, created_at: new Date(0), ...more },
        })),
      )
      .execute()
  }
  async function sent(network: string, all: readonly { n: number; hash: Hash; block: bigint }[]): Promise<void> {
    await insertRequestMark(store.db, network, 20n)
    const rows = all.map(({ n, hash, block: block_number }) => ({
      ...{ network, hash, pubkey: hex<Pubkey>(48, n), amount_gwei: 5n, sender: hex<Address>(20, n), block_number, seen_at: new Date(0) },
    }))
    await moveRequestMark(store.db, network, { from: 20n, to: 20n }, rows)
  }
  async function passes(network: EthereumNetwork, count: number, limits = { rows: 10, perGroup: 5 }): Promise<void> {
    const unreported = createUnreportedRequests({ store, clock: systemClock, log: silent, limits })
    for (let pass = 0; pass < count; pass += 1) {
      await store.db
        .updateTable('request_marks')
        .set({ check_at: new Date(0) })
        .execute()
      await unreported.pass(network, head, never)
    }
  }
  const statuses = async (network: string) =>
    Object.fromEntries(
      (
        await store.db
          .selectFrom('ethereum_requests')
          .select(['id', 'status', 'hash', 'consensus_reason as reason'])
          .where('network', '=', network)
          .execute()
      ).map(({ id, ...row }) => [id.slice(network.length + 1), row]),
    )

  test('that stay unclear for ever hold up none of those that are clear', { timeout: 60_000 }, async () => {
    const unclear = each(30, (n) => n + 1)
    const clear = each(10, (n) => n + 101)
    await stored('turns', [
      ...unclear.flatMap((n) => [
        { id: `a${n}`, n },
        { id: `b${n}`, n },
      ]),
      ...clear.map((n) => ({ id: `c${n}`, n })),
    ])
    await sent('turns', [
      ...unclear.map((n) => ({ n, hash: hex<Hash>(32, n), block: 11n })),
      ...clear.map((n) => ({ n, hash: hex<Hash>(32, n), block: 12n })),
    ])
    await passes(networkOf('turns'), 4)
    const now = await statuses('turns')
    for (const n of clear) expect(now[`c${n}`]).toMatchObject({ status: 'submitted', hash: hex(32, n) })
    for (const n of unclear) {
      for (const id of [`a${n}`, `b${n}`]) {
        expect(now[id]).toMatchObject({ status: 'awaiting_submission', reason: expect.stringContaining('2 requests may have made') })
      }
    }
    const { left } = await store.db
      .selectFrom('unreported_requests')
      .select((select) => select.fn.countAll<bigint>().as('left'))
      .where('network', '=', 'turns')
      .executeTakeFirstOrThrow()
    expect(Number(left), 'what was found is unreported no more').toBe(30)
  })

  test('are each what they were: shown by a node, reported, cancelled, of a node that fails', { timeout: 60_000 }, async () => {
    const [lost, waits, dead] = [hex<Hash>(32, 901), hex<Hash>(32, 902), hex<Hash>(32, 903)]
    const submitted = { status: 'submitted' as const, hash: lost }
    await stored('kinds', [{ id: 'lost', n: 1 }], submitted)
    await stored('kinds', [{ id: 'waits', n: 2 }], { ...submitted, hash: waits })
    await stored('kinds', [{ id: 'unknown', n: 3 }], { ...submitted, hash: dead })
    await stored('kinds', [{ id: 'cancelled', n: 4 }], { status: 'cancelled', settled: true })
    await stored('kinds', [{ id: 'later', n: 5 }], { quoted_at_block: 15n })
    await stored('kinds', [
      { id: 'told', n: 6, account: 'other' },
      { id: 'mine', n: 6 },
      { id: 'theirs', n: 6, account: 'other' },
    ])
    await store.db
      .insertInto('ethereum_request_hashes')
      .values(
        [['lost', lost] as const, ['waits', waits] as const, ['unknown', dead] as const, ['told', hex<Hash>(32, 6)] as const].map(
          ([id, hash]) => ({ request_id: `kinds-${id}`, hash, submitted_at: new Date(0), sender: null, nonce: null }),
        ),
      )
      .execute()
    await sent(
      'kinds',
      [1, 2, 3, 4, 5, 6].map((n) => ({ n, hash: hex<Hash>(32, n), block: 11n })),
    )
    await passes(networkOf('kinds', [waits], [dead]), 2)
    expect(await statuses('kinds')).toMatchObject({
      lost: { status: 'submitted', hash: hex(32, 1) },
      waits: { status: 'submitted', hash: waits },
      unknown: { status: 'submitted', hash: dead },
      cancelled: { status: 'submitted', hash: hex(32, 4) },
      later: { status: 'awaiting_submission', hash: null },
      // Another account has reported it for a request of its own: that says nothing of this one, and all of the other's.
      mine: {
        status: 'awaiting_submission',
        hash: null,
        reason: expect.stringContaining(`${hex(32, 6)}, which another account has reported`),
      },
      theirs: { status: 'awaiting_submission', hash: null, reason: null },
    })
    await store.db
      .insertInto('ethereum_request_hashes')
      .values({ request_id: 'kinds-mine', hash: hex<Hash>(32, 6), submitted_at: new Date(0), sender: null, nonce: null })
      .execute()
    // The node answers again.
    await passes(networkOf('kinds', [waits]), 1)
    expect(await statuses('kinds')).toMatchObject({ unknown: { hash: hex(32, 3) }, mine: { reason: null } })
  })
})
