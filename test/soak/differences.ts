import { type DatabaseConfig, openStore, type Store } from '../../src/service/store/database.ts'
import type { Known } from './clients.ts'

/** What the database holds, beside what the clients were told: nothing is lost, nothing is there twice. @returns what is wrong */
export async function differences(database: DatabaseConfig, known: Known): Promise<string[]> {
  const store = await openStore(database)
  try {
    return [...(await ofStakes(store, known)), ...(await ofKeys(store, known)), ...(await ofReferences(store)), ...(await ofAudit(store))]
  } finally {
    await store.close()
  }
}

async function ofStakes({ db }: Store, { answers, reported }: Known): Promise<string[]> {
  const wrong: string[] = []
  const rows = await db.selectFrom('ethereum_stakes').select(['id', 'external_reference', 'pubkey', 'key_index', 'hash']).execute()
  const byReference = Map.groupBy(rows, (row) => row.external_reference ?? '')
  for (const [reference, text] of answers) {
    const { stakeId, depositData } = JSON.parse(text) as { stakeId: string; depositData: { pubkey: string } }
    const made = byReference.get(reference) ?? []
    if (made.length !== 1) wrong.push(`${reference} has ${made.length} stakes`)
    if (made[0]?.id !== stakeId || made[0]?.pubkey !== depositData.pubkey)
      wrong.push(`${reference} is another stake than its client was told`)
  }
  if (rows.length !== answers.size) wrong.push(`${rows.length} stakes for ${answers.size} requests`)
  for (const column of ['pubkey', 'key_index'] as const) {
    if (new Set(rows.map((row) => row[column])).size !== rows.length) wrong.push(`a ${column} was given twice`)
  }
  const hashes = new Map(rows.map(({ id, hash }) => [id, hash]))
  for (const [id, hash] of reported) if (hashes.get(id) !== hash) wrong.push(`the hash of ${id} was lost`)
  return wrong
}

/** Each Idempotency-Key has the answer that its client got, and none is held by anybody. */
async function ofKeys({ db }: Store, { answers }: Known): Promise<string[]> {
  const wrong: string[] = []
  const rows = await db.selectFrom('idempotency_keys').select(['key', 'status', 'body']).execute()
  const stored = new Map(rows.map((row) => [row.key, row]))
  if (stored.size !== rows.length) wrong.push('an Idempotency-Key is there twice')
  for (const [key, text] of answers) {
    const row = stored.get(key)
    if (row?.status !== 201 || row.body !== text) wrong.push(`${key} has another answer than its client got`)
  }
  for (const { key, status } of rows) if (status === null) wrong.push(`${key} is still claimed`)
  return wrong
}

/** Each stake holds its reference. */
async function ofReferences({ db }: Store): Promise<string[]> {
  const rows = await db
    .selectFrom('ethereum_stakes as stake')
    .fullJoin('external_references as held', (join) =>
      join.onRef('held.resource_id', '=', 'stake.id').onRef('held.reference', '=', 'stake.external_reference'),
    )
    .select(['stake.id', 'held.reference'])
    .where((where) => where.or([where('stake.id', 'is', null), where('held.reference', 'is', null)]))
    .execute()
  return rows.map(({ id, reference }) => `${id === null ? `${reference} is held by no stake` : `${id} does not hold its reference`}`)
}

/** No effect is without its entry. */
async function ofAudit({ db }: Store): Promise<string[]> {
  const rows = await db
    .selectFrom('ethereum_stakes')
    .select('id')
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom('audit_log')
            .select('audit_log.id')
            .whereRef('audit_log.idempotency_key', '=', 'ethereum_stakes.external_reference'),
        ),
      ),
    )
    .execute()
  return rows.map(({ id }) => `${id} is in no audit log`)
}
