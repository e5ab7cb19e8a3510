import { lowerCase } from '../../lib/chain-types.ts'
import type { Clock } from '../../lib/clock.ts'
import { abortable, shareCall, shareNextCall } from '../../lib/shared-call.ts'
import { type BlockHash, ChainError, type DepositLog, type Pubkey } from './chain.ts'
import type { DepositCheckpoint } from './deposit-checkpoint.ts'
import { createDepositIndex, looksLike } from './deposit-index.ts'
import type { DepositNode } from './deposit-node.ts'
import { decode, disproof, provenTree, toDepositLog } from './deposit-proof.ts'
import { createLogReader } from './log-reader.ts'
import type { ChainLog } from './rpc-nodes.ts'

export interface DepositHistory {
  /** Every deposit for a public key up to the latest block, in order. @throws ChainError `history-syncing`, `unavailable` */
  depositsFor(pubkey: Pubkey, signal: AbortSignal): Promise<readonly DepositLog[]>
  /**
   * What is settled, to begin with at the next start. It reads all logs once more for the contract's tree, and compares its root with the contract's at that block:
   * for a command, not beside other work. @throws ChainError
   */
  checkpoint(identity: Pick<DepositCheckpoint, 'chainId' | 'contract'>, signal: AbortSignal): Promise<DepositCheckpoint>
}

/**
 * The history of the deposit contract. Its event has no indexed field, so a public key can't be asked for: all events are read, once, and
 * indexed; each query first reads what is new.
 *
 * That nothing is missing is known from the contract itself: it numbers its deposits, so the events must be numbered without a gap, from 0 to
 * its own count. A provider that leaves logs out (some do, silently) is found out, and the reading goes back to the last deposit that is known.
 * Blocks that may still change are read anew each time.
 */
export function createDepositHistory(options: {
  /** Does something on the first node that can. */
  readonly first: <T>(use: (node: DepositNode) => Promise<T>) => Promise<T>
  readonly fromBlock: bigint
  readonly network: string
  readonly clock: Clock
  readonly log?: ChainLog | undefined
  /** How long a query waits for the history, in ms; the reading goes on without it. */
  readonly waitMs: number
  /**
   * Where many ask all the time: the head is read so often at most, in ms, and those who come meanwhile share the next reading, which is begun after they came. Default: those who come while
   * it is read share that.
   */
  readonly everyMs?: number | undefined
  /** Ends the reading. */
  readonly signal: AbortSignal
  readonly reader?: Parameters<typeof createLogReader>[0]
  /** Where the reading begins, instead of with the contract's first block. */
  readonly checkpoint?: DepositCheckpoint | undefined
}): DepositHistory {
  const { clock, network, log, fromBlock, waitMs } = options
  /** Not proven yet to be of this contract. */
  let unproven = options.checkpoint
  let settled = createDepositIndex(1024, unproven?.entries)
  const reader = createLogReader(options.reader)
  /** Blocks up to here are in `settled`, deposits below `nextIndex` too. */
  let settledTo = unproven?.block ?? fromBlock - 1n
  let nextIndex = unproven?.count ?? 0n
  let lastDepositBlock = unproven?.lastDepositBlock ?? fromBlock
  /** Deposits of blocks that may still change, as of the head that was read last. */
  let unsettled: readonly { readonly pubkey: Pubkey; readonly block: bigint }[] = []
  let head: { readonly hash: BlockHash; readonly latest: bigint } | undefined
  let progressAt = clock.monotonicMs()

  const incomplete = (): never => {
    // What was read last may be what is missing: read from the last known deposit's block again.
    settledTo = min(settledTo, lastDepositBlock - 1n)
    head = undefined
    throw new ChainError(
      'unavailable',
      `the deposit history of ${network} has a gap on this node: it left out logs of the deposit contract`,
    )
  }

  /** All logs are read, as if there had been no checkpoint. */
  const forget = (why: string): void => {
    log?.warn({ network }, `the deposit history file is not used, and all deposits are read from the chain: ${why}`)
    unproven = undefined
    settled = createDepositIndex()
    settledTo = fromBlock - 1n
    nextIndex = 0n
    lastDepositBlock = fromBlock
    unsettled = []
    head = undefined
  }

  const catchUpOn = async (node: DepositNode): Promise<void> => {
    const next = await node.head()
    if (head?.hash === next.hash) return
    if (unproven !== undefined) {
      // A node that does not have the block yet says nothing of it.
      if (next.latest < unproven.block) throw new ChainError('unavailable', `a node of ${network} lags behind the deposit history`)
      const wrong = await disproof(node, reader, next.latest, unproven, options.signal)
      if (wrong === undefined) unproven = undefined
      else forget(wrong)
    }
    if (next.latest < settledTo) throw new ChainError('unavailable', `a node of ${network} lags behind the deposit history`)
    // What is soon read is not told, however often it is.
    progressAt = clock.monotonicMs()
    let index = nextIndex
    const changing: { pubkey: Pubkey; block: bigint }[] = []

    for await (const chunk of reader.read(node, settledTo + 1n, next.latest, next.settled)) {
      options.signal.throwIfAborted()
      for (const raw of chunk.logs) {
        const deposit = decode(raw)
        if (deposit.index < index) continue
        if (deposit.index > index) incomplete()
        index += 1n
        if (raw.blockNumber > next.settled) {
          changing.push({ pubkey: deposit.pubkey, block: raw.blockNumber })
        } else {
          settled.add(deposit.pubkey, raw.blockNumber)
          nextIndex = index
          lastDepositBlock = raw.blockNumber
        }
      }
      if (chunk.to <= next.settled) settledTo = chunk.to
      reportProgress(next.latest)
    }
    if ((await node.depositCount(next.latest)) !== index) incomplete()
    unsettled = changing
    head = next
  }

  const reportProgress = (latest: bigint): void => {
    const now = clock.monotonicMs()
    if (now - progressAt < 10_000) return
    progressAt = now
    log?.info({ network, block: Number(settledTo), latest: Number(latest), deposits: settled.size }, 'reading the deposit history')
  }

  const { everyMs } = options
  const catchUpOnce = () => options.first(catchUpOn)
  const catchUp = everyMs === undefined ? shareCall(catchUpOnce) : shareNextCall(catchUpOnce, { clock, everyMs })

  /** Waits for the history, but not for long. */
  const caughtUp = async (signal: AbortSignal): Promise<void> => {
    const done = new AbortController()
    const outcome = await abortable(
      Promise.race([
        catchUp(signal).then(() => 'caught up' as const),
        clock.sleep(waitMs, done.signal).then(() => 'still reading' as const),
      ]),
      signal,
    ).finally(() => done.abort('over'))
    if (outcome === 'still reading') {
      throw new ChainError('history-syncing', `the deposit history of ${network} is being read: at block ${settledTo}`, waitMs)
    }
  }

  /** A block that is known to hold a deposit for the key, or for one that the index takes for it. */
  const depositsIn = async (node: DepositNode, block: bigint, pubkey: Pubkey): Promise<readonly DepositLog[]> => {
    const found = (await node.logs(block, block)).map(toDepositLog).filter((deposit) => looksLike(deposit.pubkey, pubkey))
    // This node has another block, or no logs of it. Saying "no deposit" could mean paying for a key of someone else.
    if (found.length === 0)
      throw new ChainError('unavailable', `a node of ${network} does not show a deposit of block ${block} that was seen there`)
    return found.filter((deposit) => deposit.pubkey === pubkey)
  }

  return {
    checkpoint: async (identity, signal) => {
      await abortable(catchUp(signal), signal)
      const block = settledTo
      const given = { network, from: fromBlock, block, count: () => nextIndex }
      const proven = await options.first((node) => provenTree(node, reader, given, options.signal))
      return { ...identity, block, ...proven, lastDepositBlock, entries: settled.sorted() }
    },
    depositsFor: async (pubkey, signal) => {
      if (!/^0x[0-9a-fA-F]{96}$/.test(pubkey)) throw new TypeError('a public key has 48 bytes')
      const key = lowerCase(pubkey)
      await caughtUp(signal)
      const blocks = new Set([...settled.find(key), ...unsettled.filter((deposit) => deposit.pubkey === key).map(({ block }) => block)])
      const deposits: DepositLog[] = []
      for (const block of blocks) {
        deposits.push(
          ...(await abortable(
            options.first((node) => depositsIn(node, block, key)),
            signal,
          )),
        )
      }
      return deposits.sort((a, b) => (a.index < b.index ? -1 : 1))
    },
  }
}

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)
