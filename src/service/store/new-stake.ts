import { CompiledQuery, type Kysely } from 'kysely'
import type { Database } from './database.ts'
import { prepared } from './prepared.ts'
import type { NewStake } from './stakes.ts'

/** Who holds an Idempotency-Key. */
export interface Claim {
  readonly account: string
  readonly key: string
  readonly owner: string
}

/** Each column of a new stake, and its type. */
const columns = {
  id: 'text',
  account: 'text',
  network: 'text',
  amount_gwei: 'bigint',
  withdrawal_address: 'text',
  credentials_type: 'text',
  key_index: 'bigint',
  pubkey: 'text',
  deposit_data: 'jsonb',
  unsigned_transaction: 'jsonb',
  external_reference: 'text',
  withdrawal_is_contract: 'boolean',
  created_at: 'timestamptz',
  idempotency_key: 'text',
} as const satisfies Record<keyof NewStake, string>
const names = Object.keys(columns) as (keyof NewStake)[]

/** The claim, the answer, when it is looked for first, then the columns. */
const parameter = (name: keyof NewStake): string => `$${7 + names.indexOf(name)}::${columns[name]}`

/**
 * The row of the claim is locked before anything is written, so that of two who believe they hold it one writes; the rest is written when the reference was had, or
 * none is wanted.
 */
const create = prepared(
  'create_stake',
  `with claim as (
    select account, key from idempotency_keys
      where account = $1::text and key = $2::text and owner = $3::text and status is null for update
  ), reference as (
    insert into external_references (account, reference, resource_id)
      select claim.account, ${parameter('external_reference')}, ${parameter('id')} from claim where ${parameter('external_reference')} is not null
      on conflict do nothing returning resource_id
  ), stake as (
    insert into ethereum_stakes (${names.join(', ')}, look_at)
      select ${names.map(parameter).join(', ')}, now() + make_interval(secs => $6::double precision) from claim
      where ${parameter('external_reference')} is null or exists (select from reference)
      returning id
  ), answered as (
    update idempotency_keys set status = $4::integer, body = $5::text from claim, stake
      where idempotency_keys.account = claim.account and idempotency_keys.key = claim.key returning idempotency_keys.key
  )
  select exists (select from claim) as claimed, exists (select from stake) as created, exists (select from answered) as answered`,
)

/**
 * Writes a new stake, its reference and the answer to its request in one statement, which takes effect as a whole or not at all.
 * @param lookInMs When it is looked for among the deposits for the first time.
 * @returns `unclaimed`: the Idempotency-Key is somebody else's by now; `referenced`: another resource holds the reference. Nothing is written then.
 * @throws the database's error, when the key's index is taken
 */
export async function createStakeOnce(
  db: Kysely<Database>,
  claim: Claim,
  stake: NewStake,
  answer: { readonly status: number; readonly body: string },
  lookInMs = 0,
): Promise<'created' | 'unclaimed' | 'referenced'> {
  const parameters = [
    claim.account,
    claim.key,
    claim.owner,
    answer.status,
    answer.body,
    lookInMs / 1000,
    ...names.map((name) => stake[name]),
  ]
  const { rows } = await db.executeQuery<{ claimed: boolean; created: boolean; answered: boolean }>(CompiledQuery.raw(create, parameters))
  const [done] = rows
  if (done === undefined || done.created !== done.answered) throw new Error('a stake and its answer were not written together')
  if (done.created) return 'created'
  return done.claimed ? 'referenced' : 'unclaimed'
}
