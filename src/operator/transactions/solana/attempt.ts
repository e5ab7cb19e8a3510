import { SolanaError, type SolanaErrorCode } from '../../../chains/solana/chain.ts'
import type { Clock } from '../../../lib/clock.ts'
import { inSpan } from '../../../lib/tracing.ts'
import { timestamp } from '../../../resources/conditions.ts'
import { ALLOW_REMAKES_ANNOTATION } from '../../../resources/meta.ts'
import type { TransactionAttempt } from '../../../resources/staking-transaction.ts'
import { type Halt, stall, wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import type { Approvals } from '../approvals.ts'
import type { Memory } from '../memory.ts'
import type { LaneDeps, TransactionEvent } from '../moment.ts'
import { assertOwnName, recordFull } from '../owner.ts'
import { attemptsOf, closedOf } from '../protocol.ts'
import { spanOf } from '../span.ts'
import { type RecordObject, recordOf, type TransactionStore } from '../store.ts'
import { chainSeconds } from './chain-time.ts'
import type { Heights, Signed, SolanaTransactionKind } from './kind.ts'
import type { SolanaLimiter } from './limiter.ts'
import { type Looks, tooMany, withAttempt, withOutcome } from './rules.ts'

/** No node has taken the transaction, and each would say so again, or nothing. */
const tookNothing: ReadonlySet<SolanaErrorCode> = new Set(['wrong-cluster', 'access-denied', 'unavailable'])

export interface SolanaLogDeps {
  readonly store: Pick<TransactionStore, 'record' | 'read' | 'writeStatus' | 'releaseRecord'>
  /** The rolling limits of whoever pays. */
  readonly limits: SolanaLimiter
  /** What the policies of whoever signs want approved. */
  readonly approvals: Approvals
  /** Until when a limit counts a record that nobody needs otherwise, as a sentence. */
  readonly countedUntil: (record: RecordObject, network: SolanaNetwork | undefined, signal: AbortSignal) => Promise<string | undefined>
  readonly ownerExists: LaneDeps['ownerExists']
  readonly signers: LaneDeps['signers']
  readonly onAlarm?: LaneDeps['onAlarm']
  readonly onPruned?: LaneDeps['onPruned']
  /** The configured network of this genesis; undefined where there is none any more. */
  readonly network: (genesisHash: string) => SolanaNetwork | undefined
  readonly kindOf: (record: RecordObject) => SolanaTransactionKind
  readonly memory: Memory
  readonly clock: Clock
  /** Throws unless this process may act now. */
  readonly assertMayAct: () => void
  readonly onEvent?: (record: RecordObject, event: TransactionEvent) => void
  /** Before and after each broadcast: crash tests end the process here. */
  readonly onPoint?: (point: string, key: string) => void
  readonly random?: () => number
}

/** What one look at a record works with. */
export interface Moment {
  readonly network: SolanaNetwork
  readonly kind: SolanaTransactionKind
  readonly looks: Looks
  readonly signal: AbortSignal
}

/** How many more attempts than by itself a person has allowed. */
export function allowedBy({ metadata }: RecordObject): number {
  const text = metadata.annotations?.[ALLOW_REMAKES_ANNOTATION] ?? ''
  return /^[0-9]{1,2}$/.test(text) ? Number(text) : 0
}

export const sentSoFar = ({ hash, lastValidBlockHeight }: TransactionAttempt, poll: number): Halt =>
  wait(
    'AwaitingFinality',
    `Transaction ${hash} was sent; waiting until it is in a final block. It can land up to block height ${lastValidBlockHeight ?? '?'}.`,
    poll,
  )

/** Makes attempts, sends them, and writes what came of them. */
export function createAttempts(deps: SolanaLogDeps) {
  const { store, memory, clock } = deps

  async function settle(record: RecordObject, hash: string, slot: bigint, signal: AbortSignal): Promise<void> {
    const at = timestamp(clock.now())
    const written = await store.writeStatus(record, withOutcome(recordOf(record), { hash, slot, at }), signal)
    const nonce = Math.max(
      0,
      attemptsOf(recordOf(written)).findIndex((attempt) => attempt.hash === hash),
    )
    deps.onEvent?.(written, { is: 'outcome', outcome: 'Landed', hash, nonce })
    memory.forget(written)
  }

  /** Tells the staking API, reads owner and signers past the cache where it was never sent from here, sends, and tells again where it must be seen first. */
  async function send(
    { network, kind, signal }: Moment,
    record: RecordObject,
    attempt: TransactionAttempt,
    { raw }: Signed,
  ): Promise<void> {
    const known = memory.of(record)
    const key = attempt.hash.toLowerCase()
    const isFirst = !known.sent.has(key)
    if (!known.told.has(key) && (await kind.tell(record, attempt, signal)) === 'taken') known.told.add(key)
    // ▸ It stands in the log by now, and so does what any other leader has signed before: whoever looks last sees all of it.
    if (isFirst) {
      const now = await kind.mayBeSigned(record, true, new Map(), signal)
      await deps.limits.assertStill(record, kind.payerOf(now), network.chain, signal)
      // ▸ Taken back before it was sent, it is not sent: it expires by itself.
      await deps.approvals.assertApproved(record, kind.approvableOf(now), () => chainSeconds(network.chain, signal), signal)
    }
    deps.assertMayAct()
    deps.onPoint?.('before send', record.metadata.name)
    try {
      await inSpan(
        'broadcast',
        () => ({ ...spanOf(record), attributes: { ...spanOf(record).attributes, 'staking.hash': attempt.hash } }),
        () => network.chain.sendTransaction(raw, { skipPreflight: !isFirst }, signal),
      )
    } catch (error) {
      // What was sent before may be in a block by now, or is dropped: that is looked up, and costs nothing but another try.
      if (isFirst || !(error instanceof SolanaError) || tookNothing.has(error.code)) throw kind.explain(record, error)
    }
    deps.onPoint?.('after send', record.metadata.name)
    known.sent.add(key)
    if (isFirst) {
      deps.onEvent?.(record, { is: 'sent', kind: 'Call', hash: attempt.hash, nonce: attemptsOf(recordOf(record)).length - 1, nodes: 1 })
    }
    // The cluster shows it in a moment; whoever made it is told when it is final at the latest, by its owner.
    if (!known.told.has(key)) {
      await kind.tell(record, attempt, signal)
      known.told.add(key)
    }
  }

  /** Nothing of it can land, and it is not done: another attempt, after everything that can refuse it was asked. */
  async function make(moment: Moment, record: RecordObject): Promise<void> {
    const { network, kind, looks, signal } = moment
    const { name } = record.metadata
    assertOwnName(record)
    const limit = tooMany(recordOf(record), allowedBy(record))
    if (limit === 'full') throw recordFull(record)
    if (limit !== undefined)
      throw stall(
        'RemadeTooOften',
        `${kind.what(record)} has been made ${attemptsOf(recordOf(record)).length} times ${limit === 'failures' ? `and failed ${closedOf(recordOf(record)).filter(({ by }) => by === 'Revert').length} times, each at the cost of a fee` : 'and has expired each time'} (see status.closed of StakingTransaction ${name}). It is not made again before somebody has looked: kubectl annotate stx ${name} ${ALLOW_REMAKES_ANNOTATION}=${allowedBy(record) + 1} lets it go on.`,
      )
    // What leaves no trace in the state is looked up in the history: the log may have been set back.
    if (kind.step(record).leavesNoTrace) {
      const sought = await kind.seek(record, latestOf(looks), signal)
      if (sought.is === 'found') return settle(record, sought.hash, sought.slot, signal)
    }
    const visit = new Map<string, unknown>()
    const admission = await kind.mayBeSigned(record, false, visit, signal)
    const chainTime = (): Promise<number> => chainSeconds(network.chain, signal)
    const approval = await deps.approvals.assertApproved(record, kind.approvableOf(admission), chainTime, signal)
    const blockSeconds = await deps.limits.timeFor(record, network.chain, signal)
    deps.limits.assertRoom(record, kind.payerOf(admission), blockSeconds)
    const made = await kind.obtain(record, admission, heightsOf(looks), visit, signal)
    // Asked once more: the admission may have been taken back while the service was waited for.
    const now = await kind.mayBeSigned(record, false, visit, signal)
    deps.assertMayAct()
    const signed = await inSpan(
      'sign',
      () => spanOf(record),
      () => kind.sign(record, now, made.message, signal),
    )
    if (attemptsOf(recordOf(record)).some(({ hash }) => hash === signed.signature))
      throw wait(
        'AwaitingFinality',
        `The staking API gives transaction ${signed.signature} once more, which can't land any more: it is asked again.`,
        network.config.pollIntervalMs,
      )
    const attempt: TransactionAttempt = {
      hash: signed.signature,
      kind: 'Call',
      message: Buffer.from(made.message).toString('base64'),
      lastValidBlockHeight: made.lastValidBlockHeight,
      sinceSlot: made.sinceSlot,
      ...(made.apiId === undefined ? {} : { apiId: made.apiId }),
      namespace: record.spec.owner.namespace,
      ...(approval === undefined ? {} : { approval }),
      at: timestamp(clock.now()),
      ...(blockSeconds === 0 ? {} : { blockAt: timestamp(new Date(blockSeconds * 1_000)) }),
    }
    const written = await deps.limits.within(record, kind.payerOf(now), blockSeconds, () =>
      store.writeStatus(record, withAttempt(recordOf(record), attempt), signal),
    )
    const nonce = attemptsOf(recordOf(written)).length - 1
    deps.onEvent?.(written, { is: 'attempt', kind: 'Call', hash: attempt.hash, nonce, maxFeePerGasWei: '' })
    await send(moment, written, attempt, signed)
    throw sentSoFar(attempt, network.config.pollIntervalMs)
  }

  return { make, send, settle }
}

/** The last slot that any node shows. */
export const latestOf = (looks: Looks): bigint =>
  looks.reduce((most, look) => (look !== undefined && look.slot > most ? look.slot : most), 0n)

function heightsOf(looks: Looks): Heights {
  const heights = looks.flatMap((look) => (look === undefined ? [] : [look.finalizedBlockHeight])).toSorted((a, b) => (a < b ? -1 : 1))
  return { everywhere: heights.length === looks.length ? heights[0] : undefined, highest: heights.at(-1) ?? 0n }
}
