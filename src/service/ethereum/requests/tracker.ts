import type { ChainHead, ChainReceipt } from '../../../chains/ethereum/chain.ts'
import { queuedDeposits } from '../../../chains/ethereum/queued-deposits.ts'
import type { Logger } from '../../../lib/log.ts'
import type { Metrics } from '../../metrics.ts'
import type { Store } from '../../store/database.ts'
import {
  type RequestHashRow,
  type RequestRow,
  recordRequest,
  recordRequests,
  recordUnchanged,
  rememberRequestSender,
  requestHashes,
  type SeenOfRequest,
  type SeenRequests,
  takeDueRequests,
  type UnchangedRequest,
} from '../../store/requests.ts'
import { eachPart } from '../each-part.ts'
import type { EthereumNetwork } from '../networks.ts'
import { hasNewSender, observe } from '../observe.ts'
import { type Observed, type Outcome, outcomeOf } from '../outcome.ts'
import { inParallelOrLater } from '../parallel.ts'
import { createCancelledRequests } from './cancelled-requests.ts'
import { judgeRequest } from './consensus.ts'
import { madeRequest, requestMismatch, requestOf } from './made-request.ts'
import type { PaymentTracker } from './payments.ts'
import { standingOf, withEarlier } from './standing.ts'
import type { UnreportedRequests } from './unreported.ts'
import { cannotTell, finalWith, maxReason, type Verdict } from './verdict.ts'
import { columnsOf, storedVerdict } from './verdict-columns.ts'

/** Requests taken at once, looked at side by side, and batches of one pass. */
const batchSize = 250
const concurrency = 8
const maxBatches = 40

type Looked = UnchangedRequest | (SeenRequests & { readonly tell: () => void })

export interface RequestTracker {
  /** Goes once through what is due on a network, at this head. @throws ChainError, or the database's error */
  pass(network: EthereumNetwork, head: ChainHead, signal: AbortSignal): Promise<void>
}

/**
 * Follows exit and withdrawal requests: their transactions as those of stakes, and then what the consensus layer made of them, told soon after the block
 * and again when the block is final. It shares the work with other instances as the tracker of stakes does.
 */
export function createRequestTracker(deps: {
  store: Store
  log: Logger
  metrics: Metrics
  payments: PaymentTracker
  /** Looks for requests that nobody has reported. */
  unreported: UnreportedRequests
}): RequestTracker {
  const { log, metrics } = deps
  const { db } = deps.store
  const cancelled = createCancelledRequests(deps)

  /** @returns what is still to be written: what was seen of it, or, where that is nothing new, that it was looked at */
  async function look(
    network: EthereumNetwork,
    head: ChainHead,
    row: RequestRow,
    hashes: readonly RequestHashRow[],
    signal: AbortSignal,
  ): Promise<Looked | undefined> {
    if (row.status === 'cancelled') {
      await cancelled.look({ chain: network.chain, head }, row, hashes, signal)
      return undefined
    }
    const observed = await observe({ chain: network.chain, head }, hashes, requestMismatch(row), signal)
    const [first, ...rest] = observed
    if (first === undefined) return undefined
    await rememberSenders(db, row, hashes, observed)
    const outcome = outcomeOf([first, ...rest], head)
    const verdict = await verdictOn(network, head, row, outcome, observed, signal)
    const judged = await isForGood(network, head, outcome, observed, verdict, signal)
    const settled = outcome.status === 'failed' || (outcome.status === 'confirmed' && judged)
    const queued = await queuedBehind(network, row, verdict, signal)
    const seen = { ...columnsOf(outcome, verdict), ...queued, settled }
    const askAgain = verdict.askAgain === true
    if (isSame(row, seen) && !(askAgain && row.checked_head !== null))
      return askAgain ? undefined : { request: row, hashCount: hashes.length }
    const written = { ...seen, checked_head: askAgain ? null : head.latest }
    const tell = settled ? () => tellSettled(network, row, outcome, verdict) : () => undefined
    // Its reference is free then.
    if (outcome.status !== 'failed') return { request: row, hashCount: hashes.length, seen: written, tell }
    if (await recordRequest(db, row, hashes.length, written)) tell()
    return undefined
  }

  function tellSettled(network: EthereumNetwork, row: RequestRow, outcome: Outcome, verdict: Verdict): void {
    const result = outcome.status === 'failed' ? 'failed' : verdict.status === 'accepted' ? 'accepted' : 'dropped'
    metrics.requestSettled(network.config.name, row.kind, result)
    const line = { requestId: row.id, kind: row.kind, network: row.network, pubkey: row.pubkey, hash: outcome.hash }
    if (result === 'accepted') log.info({ ...line, reason: verdict.reason }, 'the consensus layer has accepted a request')
    else if (result === 'dropped') log.warn({ ...line, reason: verdict.reason }, 'the consensus layer has dropped a request')
    else log.warn({ ...line, reason: outcome.status === 'failed' ? outcome.reason : undefined }, "a request's transaction has failed")
  }

  async function verdictOn(
    network: EthereumNetwork,
    head: ChainHead,
    row: RequestRow,
    outcome: Outcome,
    observed: readonly Observed[],
    signal: AbortSignal,
  ): Promise<Verdict> {
    const receipt = observed.find(({ hash }) => hash === outcome.hash)?.receipt
    if (outcome.status === 'failed' || receipt === undefined || !receipt.success) return { status: 'pending' }
    const earlier = row.block_hash === receipt.blockHash ? storedVerdict(row) : undefined
    if (earlier === undefined) return judged(network, head, row, receipt, signal)
    return withEarlier(earlier, {
      isFinal: outcome.status === 'confirmed' && finalWith(earlier) <= head.final,
      standing: () => standingOf(network.validators, receipt, earlier, signal),
      judge: () => judged(network, head, row, receipt, signal),
    })
  }

  async function judged(
    { chain, config, validators }: EthereumNetwork,
    head: ChainHead,
    row: RequestRow,
    receipt: ChainReceipt,
    signal: AbortSignal,
  ): Promise<Verdict> {
    const made = madeRequest(receipt, requestOf(row))
    if ('mismatch' in made) return { status: 'pending' }
    const { times, ...logged } = made
    if (validators === undefined) return cannotTell(`${config.name} has no beaconApiUrls in the service's configuration any more`)
    const { blockNumber, blockHash } = receipt
    const known =
      row.block_hash !== blockHash || row.queue_position === null || row.queue_turn === null
        ? undefined
        : { position: row.queue_position, turn: row.queue_turn }
    const mined = { logged, blockNumber, blockHash, transactionHash: receipt.hash, latest: head.latest, known }
    const verdict = withTimes(await judgeRequest({ ...validators, requestLogs: chain.requestLogs }, mined, signal), times)
    if (verdict.status !== 'pending' || verdict.cannotTell !== true) return verdict
    // Nobody answers now, or the states are gone: its place in the queue stays as it was told.
    return { ...verdict, ...(known === undefined ? {} : { place: known }) }
  }

  async function write(head: ChainHead, looked: readonly Looked[]): Promise<void> {
    const changed = looked.filter((one) => 'seen' in one)
    await recordUnchanged(
      db,
      head.latest,
      looked.filter((one) => !('seen' in one)),
    )
    const written = await recordRequests(db, changed)
    for (const { request, tell } of changed) if (written.has(request.id)) tell()
  }

  return {
    pass: (network, head, signal) =>
      eachPart(signal, [
        () => followRequests(network, head, signal),
        () => deps.payments.pass(network, head, signal),
        () => deps.unreported.pass(network, head, signal),
      ]),
  }

  async function followRequests(network: EthereumNetwork, head: ChainHead, signal: AbortSignal): Promise<void> {
    const { name, pollIntervalMs } = network.config
    for (let batch = 0; batch < maxBatches; batch++) {
      const rows = await takeDueRequests(db, { network: name, head: head.latest, limit: batchSize, intervalMs: pollIntervalMs })
      const hashes = Map.groupBy(
        await requestHashes(
          db,
          rows.map(({ id }) => id),
        ),
        ({ request_id: id }) => id,
      )
      const looked: Looked[] = []
      const all = inParallelOrLater(concurrency, rows, async (row) => {
        const one = await look(network, head, row, hashes.get(row.id) ?? [], signal)
        if (one !== undefined) looked.push(one)
      })
      // What was seen of the others is written, whoever failed.
      const [err] = await all.finally(() => write(head, looked))
      if (err !== undefined) log.debug({ err, network: name }, 'the nodes do not tell of some requests now; they are looked at again')
      if (rows.length < batchSize) break
    }
  }
}

/** Judged by what is final, and by a block that no node disputes: one of them may be on a fork, and then tells the states of another time. */
async function isForGood(
  network: EthereumNetwork,
  head: ChainHead,
  outcome: Outcome,
  observed: readonly Observed[],
  verdict: Verdict,
  signal: AbortSignal,
): Promise<boolean> {
  if (verdict.status === 'pending' || verdict.askAgain === true || finalWith(verdict) > head.final) return false
  const receipt = observed.find(({ hash }) => hash === outcome.hash)?.receipt
  return receipt !== undefined && (await standingOf(network.validators, receipt, verdict, signal)) === 'stands'
}

/** What is queued for a validator that exits, as it stands when the exit begins. */
async function queuedBehind(network: EthereumNetwork, row: RequestRow, verdict: Verdict, signal: AbortSignal) {
  const unchanged = { queued_deposits_gwei: row.queued_deposits_gwei, queued_deposits_epoch: row.queued_deposits_epoch }
  if (row.kind !== 'exit' || verdict.status !== 'accepted' || network.validators === undefined) return unchanged
  if (row.consensus_status === 'accepted' || verdict.withdrawableEpoch === undefined) return unchanged
  const queued = await queuedDeposits(network.validators.beacon, row.pubkey, signal)
  if (queued === undefined) return { ...unchanged, queued_deposits_epoch: BigInt(verdict.withdrawableEpoch) }
  return { queued_deposits_gwei: queued === 0n ? null : queued, queued_deposits_epoch: BigInt(verdict.withdrawableEpoch) }
}

const rememberSenders = (db: Store['db'], row: RequestRow, hashes: readonly RequestHashRow[], observed: readonly Observed[]) =>
  Promise.all(
    observed.map(async ({ hash, sentBy }) => {
      if (sentBy !== undefined && hasNewSender(hashes, hash, sentBy)) await rememberRequestSender(db, row.id, hash, sentBy)
    }),
  )

/** What was seen is what stands in the row already. */
const isSame = (row: RequestRow, seen: Omit<SeenOfRequest, 'checked_head'>): boolean =>
  Object.entries(seen).every(([column, value]) => row[column as keyof RequestRow] === value)

/** A transaction may make one request several times: each is judged by itself, and here the first is told. */
function withTimes<V extends Verdict>(verdict: V, times: number): V {
  if (times === 1 || verdict.reason === undefined) return verdict
  return {
    ...verdict,
    reason: `${verdict.reason}; the transaction makes this request ${times} times, and this is said of the first`.slice(0, maxReason),
  }
}
