import { sql } from 'kysely'
import type { Store } from './database.ts'

/** Hands out the indices of validator keys. */
export interface KeyIndices {
  /**
   * The next index. It was committed before it is returned, so whatever happens to the caller it never comes again; an index that is not
   * used leaves a gap, which costs nothing. One counter serves all networks: no key is ever on two of them.
   */
  next(): Promise<bigint>
  /**
   * Goes on far beyond an index that was used without this database's knowledge: the database is older than the chain (a restored backup),
   * and the keys next to it may have been handed out as well, though nobody has paid for them yet.
   */
  skipBeyond(index: bigint): Promise<void>
}

/** More stakes than are created between two backups, it is hoped; whoever knows better sets the floor. */
const restoreGap = 1_000n

/** Indices reserved by one commit; a restart leaves the rest of its block as a gap. */
const blockSize = 16n

/**
 * @param floor The first index that may be handed out; raise it after the database was restored from a backup (or on a second database with the same seed).
 * @throws Error when the database's stakes were made from another seed: their keys could not be exported, and a mistaken Secret is the likely cause.
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
      throw new Error('the database belongs to another seed: mount the seed that it was made with, or use another database')
    }
    const { used } = await transaction
      .selectFrom('ethereum_stakes')
      .select(sql<bigint>`coalesce(max(key_index) + 1, 0)`.as('used'))
      .executeTakeFirstOrThrow()
    const least = used > floor ? used : floor
    await transaction
      .insertInto('key_counters')
      .values({ seed_fingerprint: seedFingerprint, next_index: least })
      .onConflict((conflict) =>
        conflict
          .column('seed_fingerprint')
          .doUpdateSet({ next_index: sql<bigint>`greatest(key_counters.next_index, excluded.next_index)` }),
      )
      .execute()
  })
  const reserve = async (): Promise<{ next: bigint; end: bigint }> => {
    const { end } = await db
      .updateTable('key_counters')
      .set({ next_index: sql<bigint>`next_index + ${blockSize}` })
      .where('seed_fingerprint', '=', seedFingerprint)
      .returning('next_index as end')
      .executeTakeFirstOrThrow()
    return { next: end - blockSize, end }
  }

  let block = { next: 0n, end: 0n }
  let reserving: Promise<void> | undefined
  return {
    async next() {
      while (block.next >= block.end) {
        reserving ??= reserve()
          .then((reserved) => {
            block = reserved
          })
          .finally(() => {
            reserving = undefined
          })
        await reserving
      }
      return block.next++
    },
    async skipBeyond(index) {
      await db
        .updateTable('key_counters')
        .set({ next_index: sql<bigint>`greatest(next_index, ${index + restoreGap})` })
        .where('seed_fingerprint', '=', seedFingerprint)
        .execute()
      block = { next: 0n, end: 0n }
    },
  }
}
