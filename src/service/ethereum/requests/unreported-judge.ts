import { ChainError, type Hash } from '../../../chains/ethereum/chain.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { Logger } from '../../../lib/log.ts'
import type { Store } from '../../store/database.ts'
import { requestHashes } from '../../store/requests.ts'
import {
  forgetUnreported,
  passTurn,
  type Reporters,
  reportedIn,
  seeRequests,
  sentKey,
  tellAwaiting,
  type UnlandedRequest,
  type UnreportedGroup,
  unlandedIn,
} from '../../store/unreported-turns.ts'
import type { EthereumNetwork } from '../networks.ts'
import { inParallel } from '../parallel.ts'
import { logSeen } from '../seen.ts'
import { type Attribution, attribute } from './attribution.ts'

/** Transactions that are looked for at once, and that one pass looks for. Those of a group are looked for together. */
const concurrency = 32
const mostLooks = 10_000
/** Requests that one transaction of the database writes. */
const writtenAtOnce = 500
/** Transactions that are remembered as told. */
const mostTold = 10_000

/** What a group comes to, once it is known which of its requests have a transaction of their own to wait for. */
interface Judged extends Attribution {
  readonly group: UnreportedGroup
  readonly rows: readonly UnlandedRequest[]
  /** What an account has reported for a request of its own, and open requests of others may have made. */
  readonly reportedByOthers: Attribution['unclear']
}

const isOpen = ({ status }: UnlandedRequest): boolean => status === 'awaiting_submission' || status === 'submitted'

/** Says whose unreported requests are. Everything is read and written for many groups at once; a group that a node can't tell of has another turn. */
export function createUnreportedJudge(deps: { store: Store; clock: Clock; log: Logger; perGroup: number }) {
  const { clock, log, perGroup } = deps
  const { db } = deps.store
  /** Transactions of which this process has said that it is unclear whose they are. */
  const told = new Set<string>()

  /** Which of these submitted requests have a transaction that a node still shows: that is theirs to wait for. Undefined where a node can't tell. */
  async function shownOf(
    { chain }: EthereumNetwork,
    rows: readonly UnlandedRequest[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, boolean | undefined>> {
    const submitted = rows.flatMap(({ id, status }) => (status === 'submitted' ? [id] : []))
    const hashes = await requestHashes(db, submitted)
    const shown = new Map<string, boolean | undefined>()
    await inParallel(concurrency, hashes, async ({ request_id: id, hash }) => {
      if (shown.get(id) === true) return
      try {
        if ((await chain.transaction(hash, signal)) !== undefined) shown.set(id, true)
      } catch (error) {
        if (!(error instanceof ChainError)) throw error
        if (!shown.has(id)) shown.set(id, undefined)
      }
    })
    return shown
  }

  const judged = (
    group: UnreportedGroup,
    rows: readonly UnlandedRequest[],
    reported: Reporters,
    shown: ReadonlyMap<string, boolean | undefined>,
  ): { readonly over: readonly Hash[]; readonly judged: Judged | undefined } => {
    const waiting = rows.filter(({ id }) => shown.get(id) !== true)
    type Sent = UnreportedGroup['sent'][number]
    const isUnreported = ({ hash, block_number: block }: Sent): boolean =>
      !reported.has(sentKey(hash, group.key)) && rows.some((row) => row.quoted_at_block <= block)
    // What an account reports is its own business: it must not hide from another what was sent for that one.
    const othersOf = ({ hash, block_number: block }: Sent): readonly string[] => {
      const by = reported.get(sentKey(hash, group.key))
      const isOther = (row: UnlandedRequest): boolean => isOpen(row) && by?.has(row.account) === false && row.quoted_at_block <= block
      return by === undefined ? [] : waiting.filter(isOther).map(({ id }) => id)
    }
    const others = new Map(group.sent.map((one) => [one.hash, othersOf(one)]))
    const over = group.sent.filter((one) => !isUnreported(one) && others.get(one.hash)?.length === 0).map(({ hash }) => hash)
    if (rows.some(({ id }) => shown.has(id) && shown.get(id) === undefined)) return { over, judged: undefined }
    const sent = group.sent.filter(isUnreported).map(({ hash, block_number: blockNumber }) => ({ hash, blockNumber }))
    const claimants = waiting.map((row) => ({ id: row.id, quotedAtBlock: row.quoted_at_block, isOpen: isOpen(row) }))
    const attribution = attribute(sent, claimants)
    const found = new Set(attribution.found.map(({ id }) => id))
    const reportedByOthers = [...others].flatMap(([hash, all]) => {
      const ids = all.filter((id) => !found.has(id))
      return ids.length === 0 ? [] : [{ hash, ids }]
    })
    return { over, judged: { group, rows, ...attribution, reportedByOthers } }
  }

  async function see(all: readonly Judged[]): Promise<void> {
    const found = all.flatMap(({ group: { which }, rows, found: of }) =>
      of.flatMap(({ id, hash }) => {
        const row = rows.find((one) => one.id === id)
        return row === undefined ? [] : [{ id, hash, row, which }]
      }),
    )
    for (let from = 0; from < found.length; from += writtenAtOnce) {
      const some = found.slice(from, from + writtenAtOnce)
      const seen = await db.transaction().execute((transaction) => seeRequests(transaction, some, clock.now()))
      const rows = new Map(some.map(({ id, row }) => [id, row]))
      for (const { id, hash, ...one } of seen) {
        const row = rows.get(id)
        const line = { requestId: id, kind: row?.kind, network: row?.network, pubkey: row?.pubkey, hash }
        logSeen(log, { what: 'request', done: 'sent' }, line, { ...one, reference: row?.external_reference ?? null })
      }
    }
    const [first] = found
    if (first !== undefined) await forgetUnreported(db, first.which.network, found)
  }

  async function tell(all: readonly Judged[]): Promise<void> {
    const changed: { id: string; reason: string | null }[] = []
    for (const { rows, unclear, reportedByOthers, found } of all) {
      const about = new Map<string, string>()
      const isFound = new Set(found.map(({ id }) => id))
      const note = ({ hash, ids }: Attribution['unclear'][number], reason: string, message: string): void => {
        for (const id of ids) if (!about.has(id)) about.set(id, `the validator's owner has asked for this by ${hash}, which ${reason}`)
        if (told.has(hash)) return
        if (told.size >= mostTold) told.clear()
        told.add(hash)
        const row = rows.find(({ id }) => ids.includes(id))
        const line = { network: row?.network, pubkey: row?.pubkey, hash, requestIds: ids.slice(0, 10), requests: ids.length }
        log.warn(line, message)
      }
      for (const one of unclear) {
        const reason = `nobody has reported and ${one.ids.length} requests may have made: report that transaction for the one that made it`
        note(one, reason, 'a request was sent by a transaction that nobody has reported, and several requests may have made it')
      }
      for (const one of reportedByOthers) {
        const reason =
          'another account has reported for a request of its own, and this one may have made: report that transaction if it did'
        note(one, reason, 'a request was sent by a transaction that one account has reported, and requests of others may have made it')
      }
      for (const { id, status, consensus_reason: before } of rows) {
        const reason = about.get(id) ?? null
        if (status === 'awaiting_submission' && !isFound.has(id) && before !== reason) changed.push({ id, reason })
      }
    }
    await tellAwaiting(db, changed)
  }

  return async (network: EthereumNetwork, groups: readonly UnreportedGroup[], signal: AbortSignal): Promise<void> => {
    const { name } = network.config
    const unlanded = await unlandedIn(db, name, groups, { perGroup })
    const reported = await reportedIn(db, name, groups)
    const rowsOf = ({ key }: UnreportedGroup): readonly UnlandedRequest[] => unlanded.get(key) ?? []
    let looks = 0
    const now = groups.filter((group) => {
      looks += rowsOf(group).filter(({ status }) => status === 'submitted').length
      return looks <= mostLooks
    })
    // First: what can't be looked for now must not come first again.
    await passTurn(db, name, now)
    const shown = await shownOf(network, now.flatMap(rowsOf), signal)
    const looked = now.map((group) => ({ group, ...judged(group, rowsOf(group), reported, shown) }))
    await forgetUnreported(
      db,
      name,
      looked.flatMap(({ group: { which }, over }) => over.map((hash) => ({ hash, which }))),
    )
    const whole = looked.flatMap((one) => (one.judged === undefined ? [] : [one.judged]))
    await see(whole)
    await tell(whole)
  }
}
