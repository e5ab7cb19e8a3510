import { getAddress } from 'viem'
import { ChainError, type Hex } from '../../../chains/ethereum/chain.ts'
import { chainUnavailable, ProblemError } from '../../errors.ts'
import type { Answer, Idempotency, Idempotent } from '../../idempotency.ts'
import type { Metrics } from '../../metrics.ts'
import type { Store } from '../../store/database.ts'
import { cancelRequest, findRequest, lockRequest, type RequestKey, type RequestRow } from '../../store/requests.ts'
import { reportedAlike } from '../../store/unreported-requests.ts'
import type { EthereumNetworks } from '../networks.ts'
import { notFound } from './submit.ts'

export interface CancelRequestDeps {
  readonly store: Store
  readonly idempotency: Idempotency
  readonly networks: EthereumNetworks
  readonly metrics: Metrics
}

/**
 * Cancels a request that was not sent: no hash was reported, and the EIP-7002 contract has logged no request alike since it was made but those that others
 * of the account have reported. What was sent and never reported would otherwise be asked for once more.
 * @throws ProblemError `not-found`, `invalid-state`, `chain-unavailable`
 */
export function cancelUnsent({ store, idempotency, networks, metrics }: CancelRequestDeps) {
  return async (key: RequestKey, idempotent: Idempotent | undefined, write: (row: RequestRow) => Answer, signal: AbortSignal) => {
    const answered = await idempotency.run(idempotent, async (commit) => {
      const found = await findRequest(store.db, key)
      if (found === undefined) throw notFound(key)
      if (found.status === 'awaiting_submission') await refuseSent(store, networks, found, signal)
      return commit(async (transaction) => {
        const row = await lockRequest(transaction, key)
        if (row === undefined) throw notFound(key)
        if (row.status === 'cancelled') return write(row)
        if (row.status !== 'awaiting_submission') {
          throw new ProblemError(
            'invalid-state',
            `the request was submitted (${row.hash}) and can't be cancelled any more: it is ${row.status}`,
          )
        }
        return write(await cancelRequest(transaction, row.id))
      })
    })
    if (answered.replayed) metrics.replayed()
    return answered
  }
}

async function refuseSent({ db }: Store, networks: EthereumNetworks, row: RequestRow, signal: AbortSignal): Promise<void> {
  const network = networks.get(row.network)
  if (network === undefined) {
    throw new ProblemError('chain-unavailable', `the network ${row.network} is not configured any more`, { retryAfterSeconds: 60 })
  }
  const query = { sender: getAddress(row.sender), pubkey: row.pubkey, fromBlock: row.quoted_at_block }
  const logs = await network.chain.requestLogs(query, signal).catch((error: unknown) => {
    throw error instanceof ChainError ? chainUnavailable(row.network, error) : error
  })
  const amount = row.amount_gwei ?? 0n
  const alike = logs.filter(({ amountGwei }) => amountGwei === amount).map(({ transactionHash }) => transactionHash)
  // What another account reports is its own business: it must not free what this one has asked for.
  const { account, network: name, pubkey } = row
  const which = { account, network: name, pubkey, amount_gwei: amount, sender: row.sender.toLowerCase() as Hex }
  const reported = await reportedAlike(db, which, alike)
  const sent = alike.find((hash) => !reported.has(hash))
  if (sent === undefined) return
  throw new ProblemError(
    'invalid-state',
    `the validator's owner has asked for this by ${sent}, which nobody has reported: it may be this request, and can't be cancelled. Report that transaction, for this request or for the one that it makes`,
  )
}
