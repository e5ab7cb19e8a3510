import { CompiledQuery, sql } from 'kysely'
import { SeedError } from '../seed.ts'
import type { Store } from './database.ts'
import { gathered } from './gathered.ts'
import { prepared } from './prepared.ts'

/** Which indices of validator keys are taken, as far as this database knows; a key's index is on one network only. */
export interface KeyIndices {
  /** The first index that may be given to a new key, where the configuration raises it. */
  readonly floor: bigint
  /** Whose stake has the index; undefined while it is free. */
  holderOf(index: bigint): Promise<IndexHolder | undefined>
}

/** Under which request a stake was made; of one from before this was kept, it isn't known. */
export interface IndexHolder {
  readonly account: string
  readonly idempotency_key: string | null
}

const takenIndices = prepared(
  'index_holders',
  'select key_index, account, idempotency_key from ethereum_stakes where key_index = any($1::bigint[])',
)

/**
 * @throws SeedError when the database's stakes were made from another seed: their keys could not be exported, and a mistaken Secret is the likely cause.
 */
export async function openKeyIndices({
  store,
  seedFingerprint,
  floor,
}: {
  store: Store
  seedFingerprint: string
  floor: bigint
}): Promise<KeyIndices> {
  const { db } = store
  await db.transaction().execute(async (transaction) => {
    // Instances that start together come one after another.
    await sql`lock table key_counters in share row exclusive mode`.execute(transaction)
    const others = await transaction
      .selectFrom('key_counters')
      .select('seed_fingerprint')
      .where('seed_fingerprint', '<>', seedFingerprint)
      .execute()
    if (others.length > 0) {
      throw new SeedError('the database belongs to another seed: mount the seed that it was made with, or use another database')
    }
    await transaction
      .insertInto('key_counters')
      .values({ seed_fingerprint: seedFingerprint, next_index: 0n })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  })
  const holdersOf = gathered(
    async (indices: readonly bigint[]) => {
      const query = CompiledQuery.raw(takenIndices, [indices.map(String)])
      const { rows } = await store.looks.executeQuery<IndexHolder & { key_index: bigint }>(query)
      return new Map(rows.map((row) => [row.key_index, row]))
    },
    { atMost: 100, atOnce: 1 },
  )
  return { floor, holderOf: async (index) => (await holdersOf(index)).get(index) }
}
