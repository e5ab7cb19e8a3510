import type { Hash, Hex } from '../../lib/chain-types.ts'
import type { Statement } from '../../resources/conditions.ts'
import type { EthereumTransaction } from '../../resources/ethereum-transaction.ts'
import type { StakingTransaction, TransactionAttempt } from '../../resources/staking-transaction.ts'
import { pending, say } from '../engine/progress.ts'
import { blockHashIn, hashIn, senderOf } from './ethereum-texts.ts'

/** What a resource's status shows of its transaction: a mirror of the record, for people. Nothing about money is read from it. */

/** The status field of every kind that has one Ethereum transaction (`transactionFields`). */
export interface WithTransaction {
  readonly transaction?: EthereumTransaction | undefined
}

/** Its outcome is final and proven. */
export const isFinal = ({ transaction }: WithTransaction): boolean =>
  transaction?.state === 'Confirmed' || transaction?.state === 'Failed' || transaction?.state === 'FrontRun'
export const isReported = ({ transaction }: WithTransaction): boolean =>
  transaction !== undefined && transaction.reportedHash === (transaction.minedHash ?? transaction.hash)

/** What of it was signed and may still land, as a sentence for people. */
export function mayLand({ transaction }: WithTransaction): string | undefined {
  if (transaction === undefined || isFinal({ transaction })) return undefined
  const { hash, nonce, state } = transaction
  return state === 'Broadcast'
    ? `Transaction ${hash} (nonce ${nonce}) was sent before and may still land; it is followed, and cancelled if others wait behind it.`
    : `Transaction ${hash} (nonce ${nonce}) was signed before, and is cancelled if others wait behind it.`
}

/** The evidence of an earlier step. The order of the steps guarantees it; its absence is a bug, not a state. */
export function evidence<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`a step ran before its evidence: status has no ${what}`)
  return value
}

/** The mirror carries a hash of the calldata, which the pure part does not compute. */
export interface MirrorSource {
  readonly record: Pick<StakingTransaction, 'spec' | 'status'>
  readonly dataHash: Hex
  /** Whether a version was handed to a node, as far as this process knows. */
  readonly wasSent: (hash: Hash) => boolean
  /** Whether the staking API was told of a version, as far as this process knows. */
  readonly wasTold: (hash: Hash) => boolean
}

const shown = ({ nonce = 0, gas = '0', maxFeePerGasWei = '0', maxPriorityFeePerGasWei = '0', at, ...attempt }: TransactionAttempt) => ({
  hash: hashIn(attempt),
  nonce,
  gas,
  maxFeePerGasWei,
  maxPriorityFeePerGasWei,
  preparedAt: at,
})

const states = { Landed: 'Confirmed', Reverted: 'Failed', FrontRun: 'FrontRun' } as const
/** Versions that status shows besides the current one; the record has them all. */
const SHOWN = 32

/** The mirror of a record; undefined while nothing was ever signed. Where nothing but its own notes differs, the very object that stood there. */
export function mirrorOf(
  { record, dataHash, wasSent, wasTold }: MirrorSource,
  before: EthereumTransaction | undefined,
): EthereumTransaction | undefined {
  const { spec, status } = record
  const { attempts = [], outcome } = status ?? {}
  const calls = attempts.filter(({ kind }) => kind === 'Call')
  const landed = outcome === undefined ? undefined : calls.find(({ hash }) => hash.toLowerCase() === outcome.hash.toLowerCase())
  const current = landed ?? calls.at(-1)
  if (current === undefined || spec.call === undefined || spec.chainId === undefined) return undefined
  const hash = hashIn(current)
  const earlier = calls.filter((attempt) => attempt !== current).slice(-SHOWN)
  const isSent = current.found === true || outcome !== undefined || wasSent(hash) || before?.broadcastHash === hash
  const reportedHash = wasTold(hash) ? hash : before?.reportedHash
  return {
    chainId: spec.chainId,
    from: senderOf(record),
    to: spec.call.to,
    valueWei: current.valueWei ?? spec.call.valueWei ?? '0',
    dataHash,
    ...shown(current),
    ...(earlier.length === 0 ? {} : { replaced: earlier.map(shown) }),
    ...(isSent ? { broadcastHash: hash } : {}),
    ...(reportedHash === undefined ? {} : { reportedHash }),
    state: outcome === undefined ? (isSent ? 'Broadcast' : 'Prepared') : states[outcome.is],
    ...(outcome === undefined
      ? {}
      : {
          minedHash: hashIn(outcome),
          blockNumber: outcome.blockNumber,
          ...(outcome.blockHash === undefined ? {} : { blockHash: blockHashIn(outcome.blockHash) }),
        }),
  }
}

/** Whether a mirror shows the outcome of a record that has one. */
export const shows = ({ state, minedHash, blockHash }: EthereumTransaction, { status }: Pick<StakingTransaction, 'status'>): boolean => {
  const outcome = status?.outcome
  return (
    outcome !== undefined &&
    state === states[outcome.is] &&
    minedHash?.toLowerCase() === outcome.hash.toLowerCase() &&
    blockHash?.toLowerCase() === outcome.blockHash?.toLowerCase()
  )
}

/** Which condition the trouble of following a transaction is shown on. */
export const transactionCondition = ({ transaction }: WithTransaction): 'Broadcast' | 'Confirmed' =>
  transaction?.broadcastHash === undefined ? 'Broadcast' : 'Confirmed'

/** What the mirror says of the conditions Broadcast and Confirmed. `what`: what it makes, as a sentence begins with it; `nothing`: what a revert leaves. */
export const transactionStatements = (
  { transaction }: WithTransaction,
  { what, nothing }: { readonly what: string; readonly nothing: string },
): Readonly<Record<'Broadcast' | 'Confirmed', Statement>> => ({
  Broadcast:
    transaction?.broadcastHash === undefined
      ? pending
      : say('True', 'Succeeded', `Transaction ${transaction.broadcastHash} with nonce ${transaction.nonce} was sent.`),
  Confirmed:
    transaction?.state === 'Confirmed'
      ? say('True', 'Succeeded', `${what} is in final block ${transaction.blockNumber}.`)
      : transaction?.state === 'Failed'
        ? say(
            'False',
            'TransactionReverted',
            `Transaction ${transaction.minedHash} was reverted in block ${transaction.blockNumber}: ${nothing}.`,
          )
        : pending,
})
