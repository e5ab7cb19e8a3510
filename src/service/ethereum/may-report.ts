import { getAddress } from 'viem'
import { ChainError, type ChainHead, type EthereumChain, type Hash } from '../../chains/ethereum/chain.ts'
import type { HashSubmission } from '../../contract/schemas/ethereum-stake.ts'
import { chainUnavailable, ProblemError, validationFailed } from '../errors.ts'
import type { HashRow } from '../store/stakes.ts'
import type { EthereumNetwork } from './networks.ts'
import { type Mismatch, receiptIn } from './observe.ts'
import { isFinal } from './outcome.ts'
import { isSameNonce, maySupersede, type SenderAndNonce } from './supersede.ts'

/** Others reported hashes meanwhile: what was concluded from those before doesn't hold. */
export class Stale extends Error {}
/** So often it is concluded again. */
export const attempts = 5
const firstLookMs = 2_000
/**
 * So many hashes of one stake or request are followed, and beyond that what a node shows: every pass of the tracker asks the nodes for each. The operator never comes
 * that far: its log holds 128 versions of one transaction at most, of all places that it was given and with their cancels (`status.attempts` of a StakingTransaction).
 */
export const mostHashes = 256

type ReportedHash = Omit<HashRow, 'stake_id'>

export interface Report {
  readonly subject: { readonly network: string; readonly status: string; readonly hash: Hash | null }
  /** What the transaction is for, in words: it must not happen twice. */
  readonly what: string
  /** Undefined when it isn't configured any more. */
  readonly network: EthereumNetwork | undefined
  /** All that were reported before. */
  readonly hashes: readonly ReportedHash[]
  readonly hash: Hash
  /** Sender and nonce as the client names them, before a node shows the transaction. */
  readonly told: SenderAndNonce | undefined
  readonly mismatchIn: Mismatch
}

/** What the client says of the transaction besides its hash. @throws ProblemError `validation-failed` for a hash that no transaction has. */
export function toldOf({ transactionHash, from, nonce }: HashSubmission): SenderAndNonce | undefined {
  if (/^0x0+$/.test(transactionHash)) {
    const detail = 'no transaction has the hash zero'
    throw validationFailed([{ pointer: '/body/transactionHash', code: 'zero-hash', detail }])
  }
  return from === undefined || nonce === undefined ? undefined : { sender: getAddress(from.toLowerCase()), nonce }
}

/**
 * Whether this hash may be reported now: the first one, one of the earlier ones, or one that can't land beside them (see `maySupersede`). The transaction
 * need not have been sent yet.
 * @returns Sender and nonce to remember with the hash, as far as they are known.
 * @throws ProblemError `already-submitted`, `transaction-not-visible`, `validation-failed`, `chain-unavailable`
 */
export async function mayReport(report: Report, signal: AbortSignal): Promise<SenderAndNonce | undefined> {
  const { subject, what, network, hashes, hash, told } = report
  const before = hashes.find((one) => one.hash === hash)
  if (before !== undefined) return sameAs(sentByOf(before), told)
  if (hashes.length === 0) return told ?? (network && (await shownBy(network.chain, hash, signal)))
  if (subject.status === 'confirmed') {
    throw new ProblemError('already-submitted', `the transaction ${subject.hash} of ${what} is final (${subject.status})`)
  }
  const isOneMore = hashes.length < mostHashes && subject.status !== 'failed'
  // Only one of them can land, whatever a node shows.
  if (told !== undefined && isOneMore && hashes.every((one) => isSentBy(one, told))) return told
  if (network === undefined) {
    throw new ProblemError('chain-unavailable', `the network ${subject.network} is not configured any more`, { retryAfterSeconds: 60 })
  }
  const { verdict, sentBy } = await judge({ ...report, chain: network.chain }, signal).catch((error: unknown) => {
    throw error instanceof ChainError ? chainUnavailable(network.config.name, error) : error
  })
  if (verdict === 'wait') {
    throw new ProblemError(
      'transaction-not-visible',
      `${subject.hash} was reported before and is waiting; ${hash} isn't visible yet, so it can't be told whether it replaces it: name its from and nonce, or ask again`,
      { retryAfterSeconds: 5 },
    )
  }
  if (verdict === 'refuse') {
    throw new ProblemError(
      'already-submitted',
      sentBy === undefined
        ? `${subject.hash} was reported before, and no node shows ${hash}: name its from and nonce, so that it can be told whether ${what} would be paid twice`
        : `${subject.hash} was reported before, and both transactions could land: ${what} would be paid twice`,
    )
  }
  return sentBy
}

/** A short look, and no more: a first hash may always be reported, but once it is replaced no node may show any more who sent it. */
async function shownBy(chain: EthereumChain, hash: Hash, signal: AbortSignal): Promise<SenderAndNonce | undefined> {
  try {
    const found = await chain.transaction(hash, AbortSignal.any([signal, AbortSignal.timeout(firstLookMs)]))
    return found && { sender: found.from, nonce: found.nonce }
  } catch {
    signal.throwIfAborted()
    return undefined
  }
}

async function judge(
  given: Pick<Report, 'what' | 'hashes' | 'hash' | 'told' | 'mismatchIn'> & { readonly chain: EthereumChain },
  signal: AbortSignal,
) {
  const { chain, what, hashes, hash, told, mismatchIn } = given
  if (hashes.length >= mostHashes && (await chain.transaction(hash, signal)) === undefined) {
    throw new ProblemError(
      'already-submitted',
      `${hashes.length} transactions were reported for ${what}, and no node shows ${hash}: the nodes are asked for each of them again and again, so no more are taken that may never be sent. Report it once it is sent and a node shows it`,
    )
  }
  const head = await chain.head(signal)
  const [next, ...earlier] = await Promise.all(
    [{ hash, sentBy: undefined }, ...hashes.map((row) => ({ hash: row.hash, sentBy: sentByOf(row) }))].map((one) =>
      look(chain, head, one, mismatchIn, signal),
    ),
  )
  if (next === undefined) throw new Error('nothing was looked at')
  const sentBy = sameAs(next.sentBy, told)
  const finals = [next, ...earlier].filter(({ landed }) => landed === 'final')
  const closedBy = (one: Looked): boolean | Promise<boolean> => {
    const known = one.sentBy
    if (one.landed === 'final') return !one.pays
    if (known === undefined) return false
    if (finals.some((other) => other.sentBy && isSameNonce(other.sentBy, known))) return true
    // Only a nonce that is not the new one's matters, and what a node still shows as waiting or landed is not asked about.
    if (one.seen === 'mined' || (sentBy !== undefined && isSameNonce(known, sentBy))) return false
    return usedOtherwise(chain, known, mismatchIn, signal)
  }
  const verdict = maySupersede(
    await Promise.all(earlier.map(async (one) => ({ seen: one.seen, sentBy: one.sentBy, closed: await closedBy(one) }))),
    { sentBy, paid: next.landed !== 'not' && next.pays },
  )
  return { verdict, sentBy }
}

/** Every node shows one final transaction that used this nonce, which nobody reported and which does not pay: the key was used elsewhere. */
export async function usedOtherwise(
  chain: EthereumChain,
  { sender, nonce }: SenderAndNonce,
  mismatchIn: Mismatch,
  signal: AbortSignal,
): Promise<boolean> {
  const use = await chain.nonceUse(getAddress(sender), nonce, signal)
  return use.is === 'used' && !(use.receipt.success && mismatchIn(use.receipt, use.transaction) === undefined)
}

interface Looked {
  readonly seen: 'unseen' | 'pooled' | 'mined'
  readonly landed: 'not' | 'young' | 'final'
  /** Of a landed one: it succeeded, and does what it was reported for. */
  readonly pays: boolean
  readonly sentBy: SenderAndNonce | undefined
}

async function look(
  chain: EthereumChain,
  head: ChainHead,
  known: { readonly hash: Hash; readonly sentBy: SenderAndNonce | undefined },
  mismatchIn: Mismatch,
  signal: AbortSignal,
): Promise<Looked> {
  const [transaction, receipt] = await Promise.all([chain.transaction(known.hash, signal), receiptIn(chain, head, known.hash, signal)])
  const sentBy = transaction === undefined ? known.sentBy : { sender: transaction.from, nonce: transaction.nonce }
  // Both or none: what two nodes say, one before and one after a block, proves nothing.
  if (receipt === undefined || transaction === undefined) {
    const seen = receipt !== undefined || transaction?.blockNumber !== undefined ? 'mined' : transaction === undefined ? 'unseen' : 'pooled'
    return { seen, landed: 'not', pays: false, sentBy }
  }
  const pays = receipt.success && mismatchIn(receipt, transaction) === undefined
  return { seen: 'mined', landed: isFinal(receipt, head) ? 'final' : 'young', pays, sentBy }
}

const sentByOf = ({ sender, nonce }: Pick<HashRow, 'sender' | 'nonce'>): SenderAndNonce | undefined =>
  sender === null || nonce === null ? undefined : { sender, nonce: Number(nonce) }

const isSentBy = (row: ReportedHash, told: SenderAndNonce): boolean => {
  const known = sentByOf(row)
  return known !== undefined && isSameNonce(known, told)
}

/** What is known, or else what is named. @throws ProblemError `validation-failed` when they contradict each other */
function sameAs(known: SenderAndNonce | undefined, told: SenderAndNonce | undefined): SenderAndNonce | undefined {
  if (known === undefined || told === undefined || isSameNonce(known, told)) return known ?? told
  const detail = `the transaction has the sender ${known.sender} and the nonce ${known.nonce}, not ${told.sender} and ${told.nonce}`
  throw validationFailed([{ pointer: '/body/nonce', code: 'other-sender-or-nonce', detail }])
}
