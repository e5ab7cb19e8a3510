import { type Kysely, sql, type Transaction } from 'kysely'
import type { Hash } from '../../chains/ethereum/chain.ts'
import { type RequestRow, requestHashes, sendManyAgain } from './requests.ts'
import type { Database } from './schema.ts'
import { retakeReference } from './stakes.ts'
import type { Alike, UnreportedRequest } from './unreported-requests.ts'

type Db = Kysely<Database> | Transaction<Database>

/** Requests that were sent and that nobody has reported, of one kind that the chain can't tell apart: in the order of their blocks. */
export interface UnreportedGroup {
  readonly key: string
  readonly which: Alike
  readonly sent: readonly Pick<UnreportedRequest, 'hash' | 'block_number'>[]
}

/** What a turn takes at most. */
export interface TurnLimits {
  /** In all, but for a group that is larger by itself. */
  readonly rows: number
  /** Of one group, the oldest; as many stored requests alike are looked at. */
  readonly perGroup: number
}

/** Rows of one statement. */
const atOnce = 5_000

export const keyOf = ({ pubkey, amount_gwei: amount, sender }: Alike): string => `${pubkey} ${amount} ${sender}`

/** Sets of rows come as JSON: of any size, and in one parameter. */
const asJson = (rows: readonly object[]): string =>
  JSON.stringify(rows, (_name, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
const alikeOf = ({ pubkey, amount_gwei, sender }: Alike) => ({ pubkey, amount_gwei, sender })
const asTable = (groups: readonly UnreportedGroup[]) =>
  sql`jsonb_to_recordset(${asJson(groups.map(({ which }) => alikeOf(which)))}::jsonb) as which (pubkey text, amount_gwei bigint, sender text)`

/**
 * Takes the groups of a network whose turn it is: those that were never judged, then those that were judged longest ago, so that what stays unclear for ever holds
 * up nobody. A group comes whole, or with its `perGroup` oldest.
 */
export async function takeUnreported(
  db: Kysely<Database>,
  network: string,
  { rows: most, perGroup }: TurnLimits,
): Promise<UnreportedGroup[]> {
  const { rows } = await sql<Pick<UnreportedRequest, 'hash' | 'pubkey' | 'amount_gwei' | 'sender' | 'block_number'>>`
    with groups as (
      select pubkey, amount_gwei, sender, max(judged_at) as judged, min(block_number) as block
      from unreported_requests where network = ${network} group by pubkey, amount_gwei, sender
    ), turns as (
      select *, row_number() over (order by judged, block, pubkey, amount_gwei, sender) as turn from groups
      order by turn limit ${most + 1}
    ), numbered as (
      select one.hash, one.pubkey, one.amount_gwei, one.sender, one.block_number, turn,
        row_number() over (partition by turn order by one.block_number, one.hash) as number
      from turns join unreported_requests one on one.network = ${network} and one.pubkey = turns.pubkey
        and one.amount_gwei = turns.amount_gwei and one.sender = turns.sender
    )
    select hash, pubkey, amount_gwei, sender, block_number from numbered where number <= ${perGroup}
    order by turn, number limit ${Math.max(most, perGroup) + 1}`.execute(db)
  const groups = [...Map.groupBy(rows, (row) => keyOf({ network, ...row }))].flatMap(([key, sent]): UnreportedGroup[] => {
    const [first] = sent
    return first === undefined ? [] : [{ key, which: { network, ...alikeOf({ network, ...first }) }, sent }]
  })
  // The last one may be cut.
  return rows.length > Math.max(most, perGroup) && groups.length > 1 ? groups.slice(0, -1) : groups
}

/** These have had their turn, whatever comes of it. */
export async function passTurn(db: Kysely<Database>, network: string, groups: readonly UnreportedGroup[]): Promise<void> {
  for (let from = 0; from < groups.length; from += atOnce) {
    await sql`
      update unreported_requests one set judged_at = now() from ${asTable(groups.slice(from, from + atOnce))}
      where one.network = ${network} and one.pubkey = which.pubkey and one.amount_gwei = which.amount_gwei and one.sender = which.sender`.execute(
      db,
    )
  }
}

/** A hash and the group that it is of. */
export const sentKey = (hash: string, key: string): string => `${hash} ${key}`

/** By hash and group (`sentKey`), the accounts that have reported a transaction for a request that asks for the very same. */
export type Reporters = ReadonlyMap<string, ReadonlySet<string>>

/**
 * Which of the groups' transactions were reported for a request that asks for the very same, and by which accounts. What is reported for another request says nothing:
 * anybody may report any hash.
 */
export async function reportedIn(db: Db, network: string, groups: readonly UnreportedGroup[]): Promise<Reporters> {
  const reported = new Map<string, Set<string>>()
  const sent = groups.flatMap(({ which, sent: all }) => all.map(({ hash }) => ({ hash, ...alikeOf(which) })))
  for (let from = 0; from < sent.length; from += atOnce) {
    const { rows } = await sql<Pick<UnreportedRequest, 'hash' | 'pubkey' | 'amount_gwei' | 'sender'> & Pick<RequestRow, 'account'>>`
      select distinct sent.hash, sent.pubkey, sent.amount_gwei, sent.sender, request.account
      from jsonb_to_recordset(${asJson(sent.slice(from, from + atOnce))}::jsonb) as sent (hash text, pubkey text, amount_gwei bigint, sender text)
      join ethereum_request_hashes told on told.hash = sent.hash
      join ethereum_requests request on request.id = told.request_id
      where request.network = ${network} and request.pubkey = sent.pubkey and coalesce(request.amount_gwei, 0) = sent.amount_gwei
        and lower(request.sender) = sent.sender`.execute(db)
    for (const { account, ...row } of rows) {
      const key = sentKey(row.hash, keyOf({ network, ...row }))
      reported.set(key, (reported.get(key) ?? new Set()).add(account))
    }
  }
  return reported
}

/** A stored request that is not known to have landed. */
export type UnlandedRequest = Pick<
  RequestRow,
  'id' | 'account' | 'network' | 'kind' | 'pubkey' | 'status' | 'quoted_at_block' | 'external_reference' | 'consensus_reason'
>

/** Stored requests that ask for the very same as a group and are not known to have landed, the oldest first: those that are to be sent before those that count as over. */
export async function unlandedIn(
  db: Db,
  network: string,
  groups: readonly UnreportedGroup[],
  { perGroup }: Pick<TurnLimits, 'perGroup'>,
): Promise<ReadonlyMap<string, readonly UnlandedRequest[]>> {
  const found = new Map<string, UnlandedRequest[]>()
  for (let from = 0; from < groups.length; from += atOnce) {
    const { rows } = await sql<UnlandedRequest & Pick<UnreportedRequest, 'amount_gwei' | 'sender'>>`
      select id, account, ${network}::text as network, kind, pubkey, amount_gwei, sender, status, quoted_at_block, external_reference, consensus_reason
      from (
        select request.id, account, kind, which.pubkey, which.amount_gwei, which.sender, status, quoted_at_block, external_reference, consensus_reason,
          row_number() over (
            partition by which.pubkey, which.amount_gwei, which.sender
            order by status in ('awaiting_submission', 'submitted') desc, request.id
          ) as number
        from ${asTable(groups.slice(from, from + atOnce))}
        join ethereum_requests request on request.pubkey = which.pubkey and coalesce(request.amount_gwei, 0) = which.amount_gwei
          and lower(request.sender) = which.sender
        where request.network = ${network} and status <> 'confirmed'
      ) as numbered where number <= ${perGroup + 1} order by id`.execute(db)
    for (const { amount_gwei, sender, ...row } of rows) {
      const key = keyOf({ network, pubkey: row.pubkey, amount_gwei, sender })
      const alike = found.get(key)
      if (alike === undefined) found.set(key, [row])
      else alike.push(row)
    }
  }
  return found
}

/** Nothing of these is unreported any more. */
export async function forgetUnreported(
  db: Db,
  network: string,
  sent: readonly (Pick<UnreportedRequest, 'hash'> & { readonly which: Alike })[],
): Promise<void> {
  for (let from = 0; from < sent.length; from += atOnce) {
    const rows = sent.slice(from, from + atOnce).map(({ hash, which }) => ({ hash, ...alikeOf(which) }))
    await sql`
      delete from unreported_requests one
      using jsonb_to_recordset(${asJson(rows)}::jsonb) as over (hash text, pubkey text, amount_gwei bigint, sender text)
      where one.network = ${network} and one.hash = over.hash and one.pubkey = over.pubkey and one.amount_gwei = over.amount_gwei
        and one.sender = over.sender`.execute(db)
  }
}

/** What is told of requests that were not submitted while others alike may have been sent. Null: nothing. */
export async function tellAwaiting(db: Db, told: readonly { readonly id: string; readonly reason: string | null }[]): Promise<void> {
  for (let from = 0; from < told.length; from += atOnce) {
    await sql`
      update ethereum_requests set consensus_reason = told.reason
      from jsonb_to_recordset(${asJson(told.slice(from, from + atOnce))}::jsonb) as told (id text, reason text)
      where ethereum_requests.id = told.id and status = 'awaiting_submission' and consensus_reason is distinct from told.reason`.execute(db)
  }
}

export interface SeenRequest {
  readonly id: string
  readonly hash: Hash
  readonly was: RequestRow['status']
  /** Another resource has taken its external reference meanwhile. */
  readonly referenceHeldBy?: string
}

/**
 * Records transactions that were seen in final blocks to have made these requests, as if they were reported. One that counted as failed or cancelled is in flight
 * again, and holds its reference again unless another has taken it.
 * @returns those that were neither reported meanwhile nor have landed
 */
export async function seeRequests(
  transaction: Transaction<Database>,
  found: readonly { readonly id: string; readonly hash: Hash }[],
  now: Date,
): Promise<SeenRequest[]> {
  const ids = found.map(({ id }) => id).toSorted()
  if (ids.length === 0) return []
  const rows = await transaction
    .selectFrom('ethereum_requests')
    .select(['id', 'account', 'status', 'external_reference'])
    .where('id', 'in', ids)
    .orderBy('id')
    .forUpdate()
    .execute()
  const byId = new Map(rows.map((row) => [row.id, row]))
  const reported = new Set((await requestHashes(transaction, ids)).map(({ request_id: id, hash }) => sentKey(hash, id)))
  const sent = found.flatMap(({ id, hash }) => {
    const row = byId.get(id)
    return row === undefined || row.status === 'confirmed' || reported.has(sentKey(hash, id)) ? [] : [{ row, id, hash }]
  })
  await sendManyAgain(transaction, sent, now)
  const seen: SeenRequest[] = []
  for (const { row, id, hash } of sent) {
    const isOver = row.status === 'failed' || row.status === 'cancelled'
    seen.push({ id, hash, was: row.status, ...(isOver ? await retakeReference(transaction, row) : {}) })
  }
  return seen
}
