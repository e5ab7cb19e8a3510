import { isSignature } from '../../chains/solana/addresses.ts'
import { decodeMessage, verifySignature } from '../../chains/solana/message.ts'
import { routes } from '../../contract/routes.ts'
import { ProblemError } from '../errors.ts'
import { answer, type Handled, type Input } from '../http/contract-route.ts'
import { findSolanaStake } from '../store/solana-stakes.ts'
import { findTransaction, rememberSignature, type SolanaTransactionRow } from '../store/solana-transactions.ts'
import { transactionBody } from './bodies.ts'
import { wrongSignature } from './create-transaction.ts'
import type { SolanaDeps } from './deps.ts'
import { lookForTransaction, recordLanding } from './landing.ts'
import { networkOf, type SolanaNetwork } from './networks.ts'

const route = routes.submitSolanaTransaction
type Route = typeof route

/**
 * Records the signature under which a transaction was broadcast: its fee payer's, of the present message. It is accepted once the cluster shows the
 * transaction; before, the client is told to ask again, and the signature is looked for from then on.
 */
export function submitTransaction(deps: SolanaDeps): (input: Input<Route>) => Promise<Handled<Route>> {
  const { store, idempotency, networks, metrics } = deps

  async function remembered(row: SolanaTransactionRow, signature: string): Promise<SolanaTransactionRow> {
    if (row.signature === signature) return row
    const next = await rememberSignature(store.db, row, signature)
    if (next === undefined) throw meanwhile()
    return next
  }

  return async ({ caller, params, body, idempotent, signal }) => {
    const { stakeId, txId } = params
    const { signature } = body
    const answered = await idempotency.run(idempotent, async (commit) => {
      const stake = await findSolanaStake(store.db, caller.account, stakeId)
      const found = stake === undefined ? undefined : await findTransaction(store.db, stakeId, txId)
      if (stake === undefined || found === undefined)
        throw new ProblemError('not-found', `there is no transaction ${txId} of a stake ${stakeId}`)
      refuseSignature(found, signature)
      const network = networkOf(networks, stake.network)
      if (found.status === 'confirmed' || found.status === 'failed')
        return commit(async () => answer(route, 200, transactionBody(found, stake.network)))

      const row = await remembered(found, signature)
      const landing = await lookForTransaction(network.chain, row, signal)
      if (landing.kind === 'landed')
        return commit(async (transaction) => {
          const current = await recordLanding(transaction, row, landing)
          if (current === undefined) throw meanwhile()
          return answer(route, 200, transactionBody(current, stake.network))
        })
      await recordLanding(store.db, row, landing)
      if (landing.kind === 'expired')
        throw new ProblemError('invalid-state', 'the transaction has expired, and the cluster has it in no block: refresh it')
      throw notVisible(network)
    })
    if (answered.replayed) metrics.replayed()
    return answered
  }
}

/** @throws ProblemError `validation-failed`, `already-submitted` */
function refuseSignature(row: SolanaTransactionRow, signature: string): void {
  if (!isSignature(signature)) throw wrongSignature('the signature is not base58 of 64 bytes')
  if (row.signature === signature) return
  const message = Buffer.from(row.message, 'base64')
  if (!verifySignature(decodeMessage(message).feePayer, message, signature))
    throw wrongSignature("the signature is not the fee payer's of the transaction's present message")
  if (row.signature !== null && row.status !== 'awaiting_submission' && row.status !== 'expired')
    throw new ProblemError('already-submitted', `the transaction was submitted as ${row.signature}`)
}

const notVisible = ({ config }: SolanaNetwork) =>
  new ProblemError('transaction-not-visible', `${config.name} does not show the transaction yet: send it again, and report it again`, {
    retryAfterSeconds: Math.max(1, Math.ceil(config.pollIntervalMs / 1000)),
  })
const meanwhile = () =>
  new ProblemError('transaction-not-visible', 'the transaction was changed meanwhile: report it again', { retryAfterSeconds: 1 })
