import { randomUUID } from 'node:crypto'
import { CompiledQuery, sql, type Transaction } from 'kysely'
import { ProblemError } from './errors.ts'
import { type Database, isOutage, type Store } from './store/database.ts'
import { gathered } from './store/gathered.ts'
import type { Claim } from './store/new-stake.ts'
import { prepared } from './store/prepared.ts'
import { releaseReference } from './store/stakes.ts'

/** What a client gets: the body as text, so that a replay is the same bytes. */
export interface Answer {
  readonly status: number
  readonly body: string
}

/** What work gives: `replayed` where the resource had been made before, though the record of its answer was lost. */
export type Worked = Answer & { readonly replayed?: boolean }

export interface Idempotent {
  readonly account: string
  readonly key: string
  readonly fingerprint: string
}

/** Does the effect and records its answer in ONE database transaction. Call it once, last. */
export type Commit = (effect: (transaction: Transaction<Database>) => Promise<Answer>) => Promise<Answer>

export interface Idempotency {
  /**
   * Runs `work` at most once per key of an account: the answer of the one that committed is everybody's answer.
   *
   * A key is claimed by a committed row with an owner and a lease. `commit` writes the answer only if the claim is still its owner's, so
   * of two that believe they hold it (one was frozen past its lease) only one takes effect. Work that fails before its commit gives the
   * claim back; a process that dies loses it when the lease ends.
   * @throws ProblemError `idempotency-key-reused`, `idempotency-key-in-progress`
   */
  run(request: Idempotent | undefined, work: (commit: Commit) => Promise<Worked>): Promise<Answer & { replayed: boolean }>
  /** The same for work that writes its effect and its answer by itself, in one statement, if the claim is still held then. */
  runClaimed(request: Idempotent, work: (claim: Claim, commit: Commit) => Promise<Worked>): Promise<Answer & { replayed: boolean }>
  /**
   * The answer that is stored for a request which can't be run as it stands; undefined when the key is free.
   * @param request `fingerprint` is undefined for one whose body could not be read: it is another one than any that was served.
   * @throws ProblemError as `run`
   */
  stored(request: Omit<Idempotent, 'fingerprint'> & { readonly fingerprint: string | undefined }): Promise<Answer | undefined>
  /** Forgets an answer whose resource is not there, and the reference that the resource held: the next one who asks makes it again. */
  forget(request: Idempotent, answer: Answer, resourceId: string): Promise<void>
}

/** Gives back what a crash left claimed. Only for a database that no other process uses: there, whoever held a claim is gone. */
export const releaseAllClaims = ({ db }: Store) => db.deleteFrom('idempotency_keys').where('status', 'is', null).execute()

const claimFree = prepared(
  'claim_free_keys',
  `insert into idempotency_keys (account, key, fingerprint, owner, lease_until, status, body)
    select account, key, fingerprint, owner, now() + make_interval(secs => $2::double precision), null, null
      from jsonb_to_recordset($1::jsonb) as asked (account text, key text, fingerprint text, owner text)
    on conflict do nothing returning owner`,
)
const together = { atMost: 100, atOnce: 2 }

/** Much longer than any request takes (its calls have time-outs of their own), short enough to wait for after a crash. */
const defaultLeaseMs = 30_000

export function createIdempotency({ store, leaseMs = defaultLeaseMs }: { store: Store; leaseMs?: number }): Idempotency {
  const { db } = store
  const leaseEnd = sql<Date>`now() + make_interval(secs => ${leaseMs / 1000}::double precision)`
  /** No lease lasts so long: one that seems to was given before the database's clock went back. Who may still hold it can't write any more once it is taken. */
  const impossibleSeconds = (leaseMs / 1000) * 2

  /** Those who come at the same time claim together. Only what is free is had so: it waits for nobody who holds a key. */
  const claims = gathered(async (asked: readonly (Idempotent & { readonly owner: string })[]) => {
    // Of one key once, and in one order: two instances that claim the same keys must not wait for one another.
    const free = new Map(asked.toReversed().map((one) => [JSON.stringify([one.account, one.key]), one]))
    const sorted = [...free].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one)
    const { rows } = await db.executeQuery<{ owner: string }>(CompiledQuery.raw(claimFree, [JSON.stringify(sorted), leaseMs / 1000]))
    return new Set(rows.map(({ owner }) => owner))
  }, together)

  /** Also from a holder whose lease is over. */
  async function takeOver({ account, key, fingerprint }: Idempotent, owner: string): Promise<boolean> {
    const row = await db
      .insertInto('idempotency_keys')
      .values({ account, key, fingerprint, owner, lease_until: leaseEnd, status: null, body: null })
      .onConflict((conflict) =>
        conflict
          .columns(['account', 'key'])
          .doUpdateSet({ fingerprint, owner, lease_until: leaseEnd })
          .where('idempotency_keys.status', 'is', null)
          .where((where) =>
            where.or([
              where('idempotency_keys.lease_until', '<', sql<Date>`now()`),
              where('idempotency_keys.lease_until', '>', sql<Date>`now() + make_interval(secs => ${impossibleSeconds}::double precision)`),
            ]),
          ),
      )
      .returning('owner')
      .executeTakeFirst()
    return row !== undefined
  }

  const find = ({ account, key }: Pick<Idempotent, 'account' | 'key'>) =>
    db
      .selectFrom('idempotency_keys')
      .select(['fingerprint', 'status', 'body', sql<number>`extract(epoch from lease_until - now())::float8`.as('lease_seconds')])
      .where('account', '=', account)
      .where('key', '=', key)
      .executeTakeFirst()

  const stored: Idempotency['stored'] = async (request) => {
    const row = await find(request)
    if (row === undefined) return undefined
    if (row.status === null && (row.lease_seconds < 0 || row.lease_seconds > impossibleSeconds)) return undefined
    if (row.fingerprint !== request.fingerprint) {
      throw new ProblemError('idempotency-key-reused', 'the Idempotency-Key belongs to a request with another method, path or body')
    }
    if (row.status === null || row.body === null) throw inProgress(row.lease_seconds)
    return { status: row.status, body: row.body }
  }

  const release = ({ account, key }: Idempotent, owner: string) =>
    db
      .deleteFrom('idempotency_keys')
      .where('account', '=', account)
      .where('key', '=', key)
      .where('owner', '=', owner)
      .where('status', 'is', null)
      .execute()

  const runClaimed: Idempotency['runClaimed'] = async (request, work) => {
    const { account, key, fingerprint } = request
    const owner = randomUUID()
    if (!(await claims({ account, key, fingerprint, owner })).has(owner)) {
      const earlier = await stored(request)
      if (earlier !== undefined) return { ...earlier, replayed: true }
      // Given back meanwhile, or its holder's lease is over; somebody else may have seen that first.
      if (!(await takeOver(request, owner))) throw inProgress()
    }
    const commit: Commit = (effect) =>
      db.transaction().execute(async (transaction) => {
        const answer = await effect(transaction)
        const fenced = await transaction
          .updateTable('idempotency_keys')
          .set({ status: answer.status, body: answer.body })
          .where('account', '=', account)
          .where('key', '=', key)
          .where('owner', '=', owner)
          .where('status', 'is', null)
          .executeTakeFirst()
        if (fenced.numUpdatedRows !== 1n) throw inProgress()
        return answer
      })
    try {
      return { replayed: false, ...(await work({ account, key, owner }, commit)) }
    } catch (error) {
      // Nothing took effect (or the commit's outcome is unknown, and then a committed answer has a status and stays): the key is free again.
      const releasing = giveBack(() => release(request, owner))
      // Who is told that the database is away is told at once; and who is told something else waits no longer for it.
      if (!isOutage(error)) await within(releaseMs, releasing)
      throw error
    }
  }

  return {
    stored,
    runClaimed,
    forget: ({ account, key }, { status, body }, resourceId) =>
      db.transaction().execute(async (transaction) => {
        await transaction
          .deleteFrom('idempotency_keys')
          .where('account', '=', account)
          .where('key', '=', key)
          .where('status', '=', status)
          .where('body', '=', body)
          .execute()
        await releaseReference(transaction, resourceId)
      }),
    async run(request, work) {
      if (request === undefined) return { replayed: false, ...(await work((effect) => db.transaction().execute(effect))) }
      return runClaimed(request, (_claim, commit) => work(commit))
    },
  }
}

/** Of a request's five seconds: so long an answer waits until its key is free again. */
const releaseMs = 2_000

/** Waits for work, but no longer than `ms`. */
async function within(ms: number, work: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, ms)
  await Promise.race([work, late.promise])
  clearTimeout(timer)
}

/** Tries for as long as a lease lasts; after that the claim is void anyway. */
async function giveBack(release: () => Promise<unknown>): Promise<void> {
  for (const waitMs of [0, 1_000, 2_000, 4_000, 8_000]) {
    if (waitMs > 0) await new Promise((done) => setTimeout(done, waitMs).unref())
    try {
      await release()
      return
    } catch (error) {
      if (!isOutage(error)) return
    }
  }
}

/** @param leaseSeconds What is left of the holder's lease: after that, whoever asks gets the key. */
export const inProgress = (leaseSeconds = 0): ProblemError =>
  new ProblemError('idempotency-key-in-progress', 'a request with this Idempotency-Key is still running: ask again', {
    retryAfterSeconds: Math.max(1, Math.ceil(leaseSeconds)),
  })
