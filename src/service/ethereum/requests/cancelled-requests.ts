import type { ChainHead, EthereumChain } from '../../../chains/ethereum/chain.ts'
import type { Logger } from '../../../lib/log.ts'
import type { Store } from '../../store/database.ts'
import { type RequestHashRow, type RequestRow, reviveRequest, settleCancelled } from '../../store/requests.ts'
import { receiptIn } from '../observe.ts'
import { isFinal } from '../outcome.ts'
import { logSeen } from '../seen.ts'
import { madeRequest, requestOf } from './made-request.ts'

export interface CancelledRequests {
  /** Looks whether a request that counts as cancelled was sent all the same, by a hash that was reported for it later. @throws ChainError, or the database's error */
  look(
    at: { readonly chain: EthereumChain; readonly head: ChainHead },
    row: RequestRow,
    hashes: readonly RequestHashRow[],
    signal: AbortSignal,
  ): Promise<void>
}

/** Follows the hashes that are reported for cancelled requests. One that lands and makes the request is told, and the request is followed as any other. */
export function createCancelledRequests({ store, log }: { store: Store; log: Logger }): CancelledRequests {
  const { db } = store
  return {
    async look({ chain, head }, row, hashes, signal) {
      let mayLand = false
      for (const { hash } of hashes) {
        const receipt = await receiptIn(chain, head, hash, signal)
        if (receipt === undefined || !receipt.success || 'mismatch' in madeRequest(receipt, requestOf(row))) {
          mayLand ||= receipt === undefined || !isFinal(receipt, head)
          continue
        }
        const revived = await db.transaction().execute((transaction) => reviveRequest(transaction, row.id, hash))
        if (revived === undefined) return
        const line = { requestId: row.id, kind: row.kind, network: row.network, pubkey: row.pubkey, hash }
        logSeen(log, { what: 'request', done: 'sent' }, line, { ...revived, was: 'cancelled', reference: row.external_reference })
        return
      }
      if (!mayLand) await settleCancelled(db, row.id, hashes.length)
    },
  }
}
