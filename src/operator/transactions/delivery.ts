import { ChainError, type Hex, type Sent } from '../../chains/ethereum/chain.ts'
import { lowerCase } from '../../lib/chain-types.ts'
import { inSpan } from '../../lib/tracing.ts'
import type { TransactionAttempt } from '../../resources/staking-transaction.ts'
import { hashIn } from './ethereum-texts.ts'
import type { RecordMemory } from './memory.ts'
import { type LaneDeps, type Moment, nodesLacking } from './moment.ts'
import { openAttempts, withAttempt } from './protocol.ts'
import type { SignedAttempt } from './signing.ts'
import { spanOf } from './span.ts'
import { type RecordObject, recordOf } from './store.ts'

/** Nodes that answer. */
export const answering = ({ counts }: Pick<Moment, 'counts'>): readonly number[] =>
  counts.nodes.flatMap((node, index) => (node === undefined ? [] : [index]))

export type Delivery = ReturnType<typeof createDelivery>

/** Brings what is signed to the nodes: written down first, to whoever lacks it, with what each says of it. */
export function createDelivery(deps: Pick<LaneDeps, 'store' | 'memory' | 'clock' | 'assertMayAct' | 'onPoint' | 'onEvent'>) {
  const { store, memory, clock } = deps

  /** Nodes that have not got this version. Where a nonce has several, each node is asked: it may hold an older one. */
  async function lacking({ chain, counts, signal }: Moment, record: RecordObject, attempt: TransactionAttempt): Promise<readonly number[]> {
    const bare = nodesLacking(counts, attempt.nonce ?? 0)
    const versions = openAttempts(recordOf(record))
    if (versions.length === 1) return bare
    const { lackedBy } = await chain.trace(versions.map(hashIn), signal)
    return [...new Set([...bare, ...(lackedBy.get(lowerCase(hashIn(attempt))) ?? [])])]
  }

  /** Whether a node shows this version, by its hash. ▸ A count that is higher may be another transaction's, or one node's wrong word: it doesn't say that this one was sent. */
  const isShown = async ({ chain, signal }: Pick<Moment, 'chain' | 'signal'>, attempt: TransactionAttempt): Promise<boolean> =>
    (await chain.trace([hashIn(attempt)], signal)).known.size > 0

  /** Hands bytes to nodes. A node that refuses may have taken them anyway: that is looked up before anything is concluded from it. */
  async function send(
    moment: Moment,
    record: RecordObject,
    attempt: TransactionAttempt,
    raw: Hex,
    nodes: readonly number[],
  ): Promise<void> {
    const known = memory.of(record)
    deps.assertMayAct()
    deps.onPoint?.('before send', record.metadata.name)
    known.freshPlace = false
    const answers = await inSpan(
      'broadcast',
      () => ({
        ...spanOf(record),
        attributes: { ...spanOf(record).attributes, 'staking.hash': attempt.hash, 'staking.nodes': nodes.length },
      }),
      () => moment.chain.send(raw, nodes, moment.signal),
    )
    deps.onPoint?.('after send', record.metadata.name)
    const taken = answers.filter((answer) => answer.is === 'taken').length
    if (taken > 0) {
      known.sent.add(attempt.hash.toLowerCase())
      known.isUnderpriced = false
      deps.onEvent?.(record, { is: 'sent', kind: attempt.kind, hash: attempt.hash, nonce: attempt.nonce ?? 0, nodes: taken })
      return
    }
    if (await isShown(moment, attempt)) {
      known.sent.add(attempt.hash.toLowerCase())
      return
    }
    refused(known, answers)
  }

  function refused(known: RecordMemory, answers: readonly Sent[]): void {
    const codes = answers.flatMap((answer) => (answer.is === 'refused' ? [answer.code] : []))
    if (codes.includes('nonce-too-low')) return
    if (codes.includes('replacement-underpriced') || codes.includes('underpriced')) {
      known.isUnderpriced = true
      return
    }
    const code = codes.find((one) => one !== 'unavailable') ?? codes[0]
    const said = answers.find((answer) => answer.is === 'refused' && answer.said !== undefined)
    if (code !== undefined)
      throw new ChainError(code, `no node took the transaction${said?.is === 'refused' && said.said !== undefined ? `: ${said.said}` : ''}`)
  }

  /** Writes a version down, fenced, before anything of it is sent. */
  async function record(moment: Moment, of: RecordObject, signed: SignedAttempt): Promise<RecordObject> {
    const earlier = openAttempts(recordOf(of)).at(-1)
    const written = await store.writeStatus(of, withAttempt(recordOf(of), signed.attempt), moment.signal)
    const { kind, hash, nonce, maxFeePerGasWei = '' } = signed.attempt
    memory.of(written).seenAt.set(hash.toLowerCase(), clock.monotonicMs())
    deps.onEvent?.(written, {
      is: 'attempt',
      kind,
      hash,
      nonce,
      maxFeePerGasWei,
      ...(earlier === undefined ? {} : { replaces: earlier.hash }),
    })
    return written
  }

  /** How long a version has been waiting in this process, in ms of monotonic time. */
  function waitedMs(record: RecordObject, { hash }: TransactionAttempt): number {
    const { seenAt } = memory.of(record)
    const key = hash.toLowerCase()
    const at = seenAt.get(key) ?? clock.monotonicMs()
    seenAt.set(key, at)
    return clock.monotonicMs() - at
  }

  /** One bump a poll at most, whoever asks for it. */
  function mayBumpNow(moment: Moment, record: RecordObject): boolean {
    const { bumpedAt } = memory.of(record)
    return bumpedAt === undefined || clock.monotonicMs() - bumpedAt >= moment.network.config.pollIntervalMs * 0.9
  }

  return { lacking, isShown, send, record, waitedMs, mayBumpNow }
}
