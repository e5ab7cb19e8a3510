import { ChainError, type Hash } from '../../../chains/ethereum/chain.ts'
import type { HashSubmission } from '../../../contract/schemas/ethereum-stake.ts'
import type { Clock } from '../../../lib/clock.ts'
import { ProblemError } from '../../errors.ts'
import type { Answer, Idempotency, Idempotent } from '../../idempotency.ts'
import type { Metrics } from '../../metrics.ts'
import type { Store } from '../../store/database.ts'
import {
  addLateHash,
  addRequestHash,
  findRequest,
  lockRequest,
  type RequestKey,
  type RequestRow,
  rememberRequestSender,
  requestHashes,
} from '../../store/requests.ts'
import { attempts, mayReport, Stale, toldOf } from '../may-report.ts'
import type { EthereumNetworks } from '../networks.ts'
import { requestMismatch } from './made-request.ts'

export interface SubmitRequestDeps {
  readonly store: Store
  readonly idempotency: Idempotency
  readonly networks: EthereumNetworks
  readonly clock: Clock
  readonly metrics: Metrics
}

export interface RequestReport {
  readonly key: RequestKey
  readonly submission: HashSubmission
  readonly idempotent: Idempotent | undefined
  /** Whether the answer tells a hash that the chain doesn't show yet from one that it does. */
  readonly tellsVisibility: boolean
  readonly write: (row: RequestRow) => Answer
}

/** The hash is recorded, and the chain does not show it yet. */
export interface NotVisibleYet {
  readonly notVisible: RequestRow
}

class NotVisible extends Error {
  readonly row: RequestRow
  constructor(row: RequestRow) {
    super('the chain does not show the transaction yet')
    this.row = row
  }
}

/**
 * Records the hash of a request's transaction, which may not have been sent yet. Idempotent by nature; the tracker finds out what became of it.
 * "Not visible yet" is not stored under the Idempotency-Key, as it is true for a moment only: the hash is recorded all the same.
 * @throws ProblemError
 */
export function submitRequest(
  deps: SubmitRequestDeps,
): (report: RequestReport, signal: AbortSignal) => Promise<(Answer & { replayed: boolean }) | NotVisibleYet> {
  const { store, idempotency, networks, clock, metrics } = deps
  const { db } = store

  async function isVisible(row: RequestRow, hash: Hash, signal: AbortSignal): Promise<boolean> {
    if (row.hash === hash && (row.status === 'confirmed' || row.status === 'failed')) return true
    try {
      return (await networks.get(row.network)?.chain.transaction(hash, signal)) !== undefined
    } catch (error) {
      if (error instanceof ChainError) return false
      throw error
    }
  }

  /**
   * Nothing must be sent for a cancelled request, and what is sent is seen: the hash is remembered. One that was seen to land meanwhile has made the request one that
   * is submitted.
   */
  async function refuseCancelled(key: RequestKey, late: Parameters<typeof addLateHash>[2]): Promise<never> {
    await db.transaction().execute(async (transaction) => {
      const current = await lockRequest(transaction, key)
      if (current?.status === 'cancelled') await addLateHash(transaction, current, late)
    })
    const detail = `the request ${key.id} is cancelled: nothing must be sent for it. Should ${late.hash} land, the request counts as submitted`
    throw new ProblemError('invalid-state', detail)
  }

  return async ({ key, submission, idempotent, tellsVisibility, write }, signal) => {
    const hash = submission.transactionHash
    try {
      const answered = await idempotency.run(idempotent, async (commit) => {
        const told = toldOf(submission)
        for (let attempt = 1; ; attempt++) {
          const request = await findRequest(db, key)
          if (request === undefined) throw notFound(key)
          if (request.status === 'cancelled') return refuseCancelled(key, { hash, sentBy: told, now: clock.now() })
          const hashes = await requestHashes(db, [key.id])
          const what = request.kind === 'exit' ? 'the exit request' : 'the withdrawal request'
          const sentBy = await mayReport(
            { subject: request, what, network: networks.get(request.network), hashes, hash, told, mismatchIn: requestMismatch(request) },
            signal,
          )
          const record = async (transaction: Parameters<typeof lockRequest>[0]): Promise<RequestRow> => {
            const current = await lockRequest(transaction, key)
            if (current === undefined) throw notFound(key)
            const now = await requestHashes(transaction, [key.id])
            const same = now.find((one) => one.hash === hash)
            if (same !== undefined) {
              if (same.sender === null && sentBy !== undefined) await rememberRequestSender(transaction, key.id, hash, sentBy)
              return current
            }
            if (now.length !== hashes.length || (current.status !== request.status && current.status !== 'submitted')) throw new Stale()
            return addRequestHash(transaction, current, { hash, sentBy, now: clock.now() })
          }
          try {
            if (tellsVisibility && !(await isVisible(request, hash, signal))) throw new NotVisible(await db.transaction().execute(record))
            return await commit(async (transaction) => write(await record(transaction)))
          } catch (error) {
            if (!(error instanceof Stale) || attempt >= attempts) throw error
          }
        }
      })
      if (answered.replayed) metrics.replayed()
      return answered
    } catch (error) {
      if (error instanceof NotVisible) return { notVisible: error.row }
      throw error
    }
  }
}

export const notFound = ({ kind, id, pubkey }: RequestKey) =>
  new ProblemError('not-found', `there is no ${kind} request ${id} of the validator ${pubkey}`)
