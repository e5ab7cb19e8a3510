import type { ChainReceipt, ChainTransaction } from '../../chains/ethereum/chain.ts'
import { sameHex } from '../../lib/hex.ts'
import { timestamp } from '../../resources/conditions.ts'
import type { wait } from '../engine/verdict.ts'
import { hashIn } from './ethereum-texts.ts'
import type { LaneDeps, Moment } from './moment.ts'
import { conclude, type Landing, openAttempts } from './protocol.ts'
import { type RecordObject, recordOf } from './store.ts'

/** Looks taken again while a mined transaction waits for its finality: a reorg is seen by the lane's count, and this often besides. */
const LOOK_EVERY = 8

/** `settled`: something was concluded and written. `waits`: it is mined, or nodes disagree. `unmined`: nothing under its nonce is in the chain. */
export type Followed = 'settled' | 'waits' | 'unmined'

export type Follow = (moment: Moment, record: RecordObject) => Promise<Followed>

/** From what the chain shows under a record's nonce to what may be concluded from it. */
export function createFollow(deps: LaneDeps): Follow {
  const { store, memory } = deps

  async function settle(moment: Moment, record: RecordObject, landing: Landing): Promise<Followed> {
    const kind = deps.kindOf(record)
    const conclusion = conclude(recordOf(record), landing, kind.remakeAfterRevert)
    if (conclusion.is === 'unproven') {
      awaitFinality(
        moment,
        record,
        `Transaction ${landing.hash} has used nonce ${landing.nonce} without doing what this is for. Before it is made again, every configured RPC node must have block ${landing.blockNumber} as final; one does not answer, or is not there yet.`,
      )
      return 'waits'
    }
    const written = await store.writeStatus(record, conclusion.status, moment.signal)
    const { hash, nonce } = landing
    if (conclusion.is === 'outcome') {
      deps.onEvent?.(written, { is: 'outcome', outcome: conclusion.outcome, hash, nonce })
      memory.conclude(written)
    } else {
      deps.onEvent?.(written, { is: 'closed', by: conclusion.by, hash, nonce })
      const known = memory.of(written)
      known.hinderedSince = undefined
      known.isUnderpriced = false
      known.minedAt = undefined
      known.nextSince = undefined
      known.unseenSince = undefined
    }
    return 'settled'
  }

  const stand = (record: RecordObject, reason: Parameters<typeof wait>[0], message: string, afterMs: number) =>
    memory.stand(record, { kind: 'wait', reason, message, afterMs })

  /** Told as what it is when finality itself has stopped. */
  function awaitFinality({ network, final, isStuck }: Moment, record: RecordObject, message: string): void {
    const { name, pollIntervalMs } = network.config
    const stillness = ` The final block of ${name} has been ${final} for more than 30 minutes: the chain makes none, or its RPC nodes don't show it. It goes on when that moves.`
    stand(record, isStuck ? 'NoFinality' : 'AwaitingFinality', isStuck ? message + stillness : message, pollIntervalMs)
  }

  return async (moment, record) => {
    const { chain, counts, network, lane, signal } = moment
    const nonce = record.status?.place
    const known = memory.of(record)
    known.disputed = undefined
    if (nonce === undefined || nonce >= counts.latest) return 'unmined'
    const after = network.config.pollIntervalMs
    known.looks += 1
    const isNewlyStuck = moment.isStuck && memory.standing(record.metadata.name)?.reason !== 'NoFinality'
    if (known.minedAt !== undefined && moment.final < known.minedAt && known.looks % LOOK_EVERY !== 0 && !isNewlyStuck) return 'waits'

    const attempts = openAttempts(recordOf(record))
    const trace = await chain.trace(attempts.map(hashIn), signal)
    const attemptOf = (hash: string) => attempts.find((attempt) => sameHex(attempt.hash, hash))
    if (trace.final !== undefined) {
      const as = attemptOf(trace.final.hash)?.kind === 'Cancel' ? 'cancel' : 'call'
      return settle(moment, record, await landingOf(deps, moment, record, trace.final, as, nonce, false))
    }
    if (trace.disagreement !== undefined) {
      const { height, nodes } = trace.disagreement
      known.disputed = {
        kind: 'wait',
        reason: 'NodesDisagree',
        message: `RPC nodes ${nodes.join(' and ')} of ${network.config.name} show different blocks at height ${height}, or not the same in one, so what became of nonce ${nonce} is not certain. Nothing is concluded until they agree, or until the wrong one is taken out of the networks file.`,
        afterMs: after,
      }
      // Who lacks it gets it once more: under the same nonce it can land only once.
      return 'unmined'
    }
    if (trace.mined !== undefined) {
      known.minedAt = trace.mined.blockNumber
      known.sent.add(trace.mined.hash.toLowerCase())
      awaitFinality(
        moment,
        record,
        `Transaction ${trace.mined.hash} is in block ${trace.mined.blockNumber}; waiting until that block is final.`,
      )
      return 'waits'
    }
    known.minedAt = undefined
    if (nonce < counts.final) {
      const used = await chain.nonceUse(lane.address, nonce, signal)
      if (used.is === 'used') {
        const as = useAs(record.spec, used.transaction)
        return settle(moment, record, await landingOf(deps, moment, record, used.receipt, as, nonce, true))
      }
      if (used.is === 'unproven')
        stand(
          record,
          'NonceUseUnproven',
          `Nonce ${nonce} of ${lane.address} is used, and by none of the transactions that StakingTransaction ${record.metadata.name} knows. It is not made again before the transaction that used it is found on every configured RPC node (${used.why}).`,
          after,
        )
      return used.is === 'unproven' ? 'waits' : 'unmined'
    }
    awaitFinality(
      moment,
      record,
      `Nonce ${nonce} of ${lane.address} is used by a transaction that StakingTransaction ${record.metadata.name} does not know. What it is will be known once it is final.`,
    )
    return 'waits'
  }
}

/** What the chain has under a record's nonce, and what it did. */
async function landingOf(
  { kindOf, clock }: Pick<LaneDeps, 'kindOf' | 'clock'>,
  { chain, signal }: Moment,
  record: RecordObject,
  receipt: ChainReceipt,
  as: Landing['is'],
  nonce: number,
  isProven: boolean,
): Promise<Landing> {
  const did = as === 'call' && receipt.success ? await kindOf(record).judge(record, receipt, signal) : 'nothing'
  const isDone = did === 'it' || did === 'second'
  // ▸ That our own call did nothing makes a second one possible: every node must show that, and not only that it is there.
  const holds = { hash: receipt.hash, ...(as === 'call' ? { receipt } : {}) }
  return {
    hash: receipt.hash,
    nonce,
    blockNumber: Number(receipt.blockNumber),
    blockHash: receipt.blockHash,
    is: as,
    success: receipt.success,
    did,
    // Asked only where it decides: what did what it is for needs no more than a view that nobody contradicts.
    proven:
      (isProven && as !== 'call') ||
      (!isDone && (await chain.finalEverywhere({ number: receipt.blockNumber, hash: receipt.blockHash, holds }, signal)) === 'agreed'),
    foundAt: timestamp(clock.now()),
  }
}

/** What used the nonce is known by its call, not by its hash: the same call is ours, whatever the log knows of it. */
export function useAs(
  { call, from }: Pick<RecordObject['spec'], 'call' | 'from'>,
  transaction: Pick<ChainTransaction, 'to' | 'data' | 'valueWei'>,
): Landing['is'] {
  if (call !== undefined && transaction.to !== undefined && sameHex(transaction.to, call.to) && sameHex(transaction.data, call.data))
    return 'call'
  const isCancel = transaction.to !== undefined && sameHex(transaction.to, from) && transaction.data === '0x' && transaction.valueWei === 0n
  return isCancel ? 'cancel' : 'foreign'
}
