import { ChainError, type ChainHead, type Hash } from '../../../chains/ethereum/chain.ts'
import type { ScannedRequest } from '../../../chains/ethereum/request-logs.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { Logger } from '../../../lib/log.ts'
import type { Store } from '../../store/database.ts'
import { type RequestRow, requestHashes } from '../../store/requests.ts'
import {
  type Alike,
  awaitedOf,
  awaitedSenders,
  forgetUnreported,
  insertRequestMark,
  moveRequestMark,
  reportedAlike,
  seeRequest,
  takeRequestMark,
  tellAwaiting,
  type UnreportedRequest,
  unlandedAlike,
  unreportedOf,
} from '../../store/unreported-requests.ts'
import type { EthereumNetwork } from '../networks.ts'
import { logSeen } from '../seen.ts'
import { attribute, type Claimant } from './attribution.ts'

/** Blocks of one read, and reads of one pass: a service that was away for a month of mainnet has caught up in two passes. */
const blocksAtOnce = 10_000n
const maxReads = 20
/** The logs are read at every so many-th poll: a request that nobody reports is no hurry. */
const pollsBetween = 5

export interface UnreportedRequests {
  /** Goes on through the requests of a network when it is due. What the chain can't tell now is looked for later. */
  pass(network: EthereumNetwork, head: ChainHead, signal: AbortSignal): Promise<void>
}

/**
 * Sees requests in the logs of the EIP-7002 contract that nobody has reported: their hash was lost, another one was reported, or whoever sent them is gone. In a
 * final block one is recorded as if it were reported, and followed as any other. Where several stored requests may have made it, all are told, and none is taken for sent.
 */
export function createUnreportedRequests(deps: { store: Store; clock: Clock; log: Logger }): UnreportedRequests {
  const { clock, log } = deps
  const { db } = deps.store
  /** Transactions of which this process has said that it is unclear whose they are. */
  const told = new Set<string>()

  /** @returns whether anything was read */
  async function readOn(network: EthereumNetwork, head: ChainHead, signal: AbortSignal): Promise<boolean> {
    const { config, requests: scan } = network
    if (scan === undefined) return false
    const { name, pollIntervalMs } = config
    const mark = await takeRequestMark(db, name, Math.max(pollIntervalMs * pollsBetween, 1_000))
    if (mark === undefined) return false
    if (mark === 'none') {
      await insertRequestMark(db, name, head.final)
      return false
    }
    let from = mark
    for (let read = 0; read < maxReads && from < head.final; read++) {
      const to = from + blocksAtOnce < head.final ? from + blocksAtOnce : head.final
      const { requests, isWhole } = await scan.requestsBetween(from + 1n, to, signal)
      await moveRequestMark(db, name, { from, to: isWhole ? to : from }, await mayBeOurs(name, requests))
      // A node that can't answer now may show more.
      if (!isWhole) break
      from = to
    }
    return true
  }

  /** Most logs are those of others, whoever they are: nobody can log a request from an address that is not their own. */
  async function mayBeOurs(network: string, logged: readonly ScannedRequest[]): Promise<UnreportedRequest[]> {
    const own = await awaitedSenders(db, network, [...new Set(logged.map(({ source }) => source))])
    const requests = logged.filter(({ source }) => own.has(source))
    const pubkeys = [...new Set(requests.map(({ request }) => request.pubkey))]
    const awaited = new Set((await awaitedOf(db, network, pubkeys)).map(keyOf))
    return requests.flatMap(({ source, request, transactionHash: hash, blockNumber }) => {
      const alike = { network, pubkey: request.pubkey, amount_gwei: request.kind === 'exit' ? 0n : request.amountGwei, sender: source }
      return awaited.has(keyOf(alike)) ? [{ ...alike, hash, block_number: blockNumber, seen_at: clock.now() }] : []
    })
  }

  async function judge(network: EthereumNetwork, sent: readonly UnreportedRequest[], which: Alike, signal: AbortSignal): Promise<void> {
    const reported = await reportedAlike(
      db,
      which,
      sent.map(({ hash }) => hash),
    )
    const rows = await unlandedAlike(db, which)
    const unknown: UnreportedRequest[] = []
    for (const one of sent) {
      if (!reported.has(one.hash) && rows.some((row) => row.quoted_at_block <= one.block_number)) unknown.push(one)
      else await forgetUnreported(db, one)
    }
    const { found, unclear } = attribute(
      unknown.map(({ hash, block_number: blockNumber }) => ({ hash, blockNumber })),
      await claimantsOf(network, rows, signal),
    )
    for (const { id, hash } of found) {
      const row = rows.find((one) => one.id === id)
      if (row !== undefined) await see(row, hash)
      await forgetUnreported(db, { ...which, hash })
    }
    await tell(rows, unclear)
  }

  /** A request whose transaction a node still shows has that one to wait for. */
  async function claimantsOf({ chain }: EthereumNetwork, rows: readonly RequestRow[], signal: AbortSignal): Promise<Claimant[]> {
    const hashes = await requestHashes(
      db,
      rows.flatMap(({ id, status }) => (status === 'submitted' ? [id] : [])),
    )
    const shown = new Set<string>()
    for (const { request_id: id, hash } of hashes) if ((await chain.transaction(hash, signal)) !== undefined) shown.add(id)
    return rows.flatMap(({ id, status, quoted_at_block: quotedAtBlock }) =>
      shown.has(id) ? [] : [{ id, quotedAtBlock, isOpen: status === 'awaiting_submission' || status === 'submitted' }],
    )
  }

  async function see(row: RequestRow, hash: Hash): Promise<void> {
    const seen = await db.transaction().execute((transaction) => seeRequest(transaction, row.id, hash, clock.now()))
    if (seen === undefined) return
    const line = { requestId: row.id, kind: row.kind, network: row.network, pubkey: row.pubkey, hash }
    logSeen(log, { what: 'request', done: 'sent' }, line, { ...seen, reference: row.external_reference })
  }

  async function tell(rows: readonly RequestRow[], unclear: ReturnType<typeof attribute>['unclear']): Promise<void> {
    const about = new Map<string, string>()
    for (const { hash, ids } of unclear) {
      const reason = `the validator's owner has asked for this by ${hash}, which nobody has reported and ${ids.length} requests may have made: report that transaction for the one that made it`
      for (const id of ids) if (!about.has(id)) about.set(id, reason)
      if (told.has(hash)) continue
      told.add(hash)
      const row = rows.find(({ id }) => ids.includes(id))
      const line = { network: row?.network, pubkey: row?.pubkey, hash, requestIds: ids.slice(0, 10), requests: ids.length }
      log.warn(line, 'a request was sent by a transaction that nobody has reported, and several requests may have made it')
    }
    const ids = rows.map(({ id }) => id)
    for (const [reason, those] of Map.groupBy(ids, (id) => about.get(id) ?? null)) await tellAwaiting(db, those, reason)
  }

  return {
    async pass(network, head, signal) {
      const { name } = network.config
      try {
        if (!(await readOn(network, head, signal))) return
        for (const sent of Map.groupBy(await unreportedOf(db, name), keyOf).values()) {
          const [first] = sent
          if (first !== undefined) await judge(network, sent, first, signal)
        }
      } catch (error) {
        if (!(error instanceof ChainError)) throw error
        log.debug({ err: error, network: name }, 'requests that nobody has reported could not be looked for; it tries again')
      }
    },
  }
}

const keyOf = ({ pubkey, amount_gwei: amount, sender }: Alike): string => `${pubkey} ${amount} ${sender}`
