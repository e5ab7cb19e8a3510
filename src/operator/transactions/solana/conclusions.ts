import { SolanaError } from '../../../chains/solana/chain.ts'
import type { ClosedPlace } from '../../../resources/staking-transaction.ts'
import { Halt, stall, wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import { attemptsOf } from '../protocol.ts'
import { type RecordObject, recordOf } from '../store.ts'
import { createAttempts, type Moment, type SolanaLogDeps, sentSoFar } from './attempt.ts'
import type { Sought } from './kind.ts'
import { type Conclusion, isSettled, withClosed } from './rules.ts'

const awaitedText = ({ config }: SolanaNetwork, { node, about, slot, awaited }: Conclusion & { is: 'awaited' }): string =>
  `RPC node ${node} of ${config.name} shows ${about} as of slot ${slot}. It counts once node ${awaited.join(', ')} shows it too, which gives no answer or is not there yet. If that stands still, or the slot is one that the cluster has not reached, take the wrong node out of the networks file.`

/** Carries out what was concluded of a Solana record: settles it, closes what is dead, sends again what may land, makes what is free. */
export function createConclusions(deps: SolanaLogDeps) {
  const { make, send, settle } = createAttempts(deps)

  /** @returns the record as it then is, where something was concluded that leads on; undefined when this look is over. @throws Halt, or a port's error */
  async function act(moment: Moment, record: RecordObject, conclusion: Conclusion): Promise<RecordObject | undefined> {
    const { network, signal } = moment
    const poll = network.config.pollIntervalMs
    switch (conclusion.is) {
      case 'landed':
        return land(moment, record, conclusion)
      case 'done':
        await attribute(moment, record, conclusion)
        return undefined
      case 'awaited':
        throw wait('AwaitingFinality', awaitedText(network, conclusion), poll)
      case 'mined':
        throw wait(
          'AwaitingFinality',
          `Transaction ${conclusion.signature} is in slot ${conclusion.slot}; waiting until that is final.`,
          poll,
        )
      case 'disagreement':
        throw wait(
          'NodesDisagree',
          `RPC nodes ${conclusion.nodes.join(' and ')} of ${network.config.name} say different things of ${conclusion.about}. Nothing is concluded until they agree, or until the wrong one is taken out of the networks file.`,
          poll,
        )
      case 'history-missing':
        throw historyMissing(
          network.config,
          `Transaction ${conclusion.attempt.hash} can no longer land, but no RPC node of ${network.config.name} has the history since slot ${conclusion.attempt.sinceSlot ?? '?'}: whether it landed cannot be told, so it is not made anew.`,
        )
      case 'closed': {
        await assertDead(moment, record, conclusion.closed)
        return close(deps, record, conclusion.closed, signal)
      }
      case 'open':
        return follow(moment, record, conclusion)
      case 'free':
        await make(moment, record)
        return undefined
    }
  }

  /** What the log has made itself does its step. What it was told of may be any transaction: the chain says what it does. */
  async function land(
    moment: Moment,
    record: RecordObject,
    { signature, slot }: Conclusion & { is: 'landed' },
  ): Promise<RecordObject | undefined> {
    const { kind, network, looks, signal } = moment
    const attempts = attemptsOf(recordOf(record))
    const attempt = attempts.find(({ hash }) => hash === signature)
    if (attempt?.found === true) {
      const proven = await kind.proves(record, attempt, signal)
      // Where the state shows it done, it matters less by what.
      if (proven === undefined && looks.every((look) => look === undefined || look.done)) {
        await attribute(moment, record, { is: 'done', slot, settled: isSettled(recordOf(record), looks) })
        return undefined
      }
      if (proven === undefined)
        throw historyMissing(
          network.config,
          `Transaction ${attempt.hash} has landed, and no RPC node of ${network.config.name} has it in its history: what it does cannot be told, so nothing else is signed.`,
        )
      if (!proven)
        return close(
          deps,
          record,
          [{ nonce: attempts.indexOf(attempt), by: 'Unrelated', hash: signature, blockNumber: Number(slot) }],
          signal,
        )
    }
    await settle(record, signature, slot, signal)
    return undefined
  }

  /** The state shows it done: by whom is looked up, and counts. */
  async function attribute(moment: Moment, record: RecordObject, { slot, settled }: Conclusion & { is: 'done' }): Promise<void> {
    const { kind, network, signal } = moment
    const sought = await kind.seek(record, slot, signal).catch((error: unknown): Sought => {
      // Who did it matters only where it decides where money went.
      if (!(error instanceof SolanaError) || !kind.step(record).landedIsDone) throw error
      return { is: 'unknown' }
    })
    if (sought.is === 'found') return settle(record, sought.hash, sought.slot, signal)
    // The node that shows what was done may not show yet by what.
    if (!settled)
      throw wait(
        'AwaitingFinality',
        `${kind.what(record)} has done its work, as of slot ${slot}; which transaction it was is not seen yet.`,
        network.config.pollIntervalMs,
      )
    if (sought.is === 'elsewhere') throw stall('WithdrawnElsewhere', sought.message)
    await settle(record, '', slot, signal)
  }

  /** It may land: the same bytes are sent again to nodes that lack it, as long as it can. */
  async function follow(
    moment: Moment,
    record: RecordObject,
    { attempt, canLand, awaited }: Conclusion & { is: 'open' },
  ): Promise<undefined> {
    const { network, kind, signal } = moment
    const poll = network.config.pollIntervalMs
    if (!canLand)
      throw wait(
        'AwaitingFinality',
        `Transaction ${attempt.hash} has expired; whether it landed, and may be made anew, is certain once every configured RPC node has a block beyond height ${attempt.lastValidBlockHeight} as final${awaited.length === moment.looks.length ? '' : `: node ${awaited.join(', ')} of ${network.config.name} does not answer, or is not there yet`}.`,
        poll,
      )
    const visit = new Map<string, unknown>()
    const admission = await kind.mayBeSigned(record, false, visit, signal)
    await send(moment, record, attempt, await kind.signAgain(record, admission, attempt, signal))
    throw sentSoFar(attempt, poll)
  }

  return act
}

/** Whoever told its last valid block height may have been wrong: while the cluster still takes the blockhash, it has not expired. */
async function assertDead({ network, signal }: Moment, record: RecordObject, closed: readonly ClosedPlace[]): Promise<void> {
  const attempts = attemptsOf(recordOf(record))
  for (const { by, nonce } of closed) {
    const { message, hash } = attempts[nonce] ?? {}
    if (by !== 'Expired' || message === undefined) continue
    if ((await network.chain.feeFor(new Uint8Array(Buffer.from(message, 'base64')), signal)) !== undefined)
      throw wait(
        'AwaitingFinality',
        `Transaction ${hash} was said to expire earlier, and the cluster still takes its blockhash: it may land.`,
        network.config.pollIntervalMs,
      )
  }
}

/** Writes down that these attempts are over. */
async function close(
  { store, onEvent }: Pick<SolanaLogDeps, 'store' | 'onEvent'>,
  record: RecordObject,
  closed: readonly ClosedPlace[],
  signal: AbortSignal,
): Promise<RecordObject> {
  const written = await store.writeStatus(record, withClosed(recordOf(record), closed), signal)
  for (const { by, hash, nonce } of closed) onEvent?.(written, { is: 'closed', by, hash, nonce })
  return written
}

/** A question that only the history answers, and no node has it. `what`: in words, up to what is done about it. */
export const historyMissing = (config: SolanaNetwork['config'], what: string): Halt =>
  new Halt({
    kind: 'stall',
    reason: 'HistoryMissing',
    message: `${what} Add an RPC URL whose history reaches back far enough.`,
    recheck: true,
    recheckAfterMs: Math.max(config.pollIntervalMs, 30_000),
  })
