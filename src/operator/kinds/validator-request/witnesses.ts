import type { ChainTransaction, Hash } from '../../../chains/ethereum/chain.ts'
import { isGone, StakingApiError } from '../../../contract/client-error.ts'
import { sameHex } from '../../../lib/hex.ts'
import { DISREGARD_SUBMISSION_ANNOTATION } from '../../../resources/meta.ts'
import { retry, stall } from '../../engine/verdict.ts'
import { pubkeyOf, senderOf } from '../../transactions/ethereum-texts.ts'
import type { TransactionKind } from '../../transactions/kind.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { disregardedIn, type WitnessedTransaction } from '../../transactions/protocol.ts'
import type { RecordObject } from '../../transactions/store.ts'
import { cancelled } from './admission.ts'
import { knowsOf, loggedAmount, makesRequest } from './evidence.ts'
import { type RequestRecords, requestIn } from './records.ts'

const makesSameCall = ({ spec }: RecordObject, one: ChainTransaction | undefined): boolean =>
  one?.to !== undefined && sameHex(one.to, spec.call?.to ?? '') && sameHex(one.data, spec.call?.data ?? '')

const witnessed = (record: RecordObject, one: ChainTransaction, sameCall: boolean): WitnessedTransaction => ({
  hash: one.hash,
  from: one.from,
  nonce: one.nonce,
  sameCall: sameCall && makesSameCall(record, one),
  pending: one.blockNumber === undefined,
})

/** Who knows of a request besides the log: the staking API, which is told of every transaction, and the contract's history. */
export function createRequestWitnesses(
  log: Pick<TransactionLog, 'ofSubject'>,
  { networkOfRecord, typeOfRecord, requestOfRecord }: RequestRecords,
): Pick<TransactionKind, 'witnesses' | 'tell' | 'judge'> {
  /** Requests like this one in the contract's history, from this sender, that no record of the log accounts for. */
  async function unaccounted(record: RecordObject, signal: AbortSignal): Promise<readonly Hash[]> {
    const { spec } = record
    const amount = loggedAmount(requestIn(record))
    const logs = await networkOfRecord(record).chain.requestLogs(
      { sender: senderOf(record), pubkey: pubkeyOf(record), fromBlock: BigInt(spec.madeAtBlock ?? 0) },
      signal,
    )
    const known = [...log.ofSubject(spec.subject).filter(({ metadata }) => metadata.name !== record.metadata.name), record]
    return logs
      .filter((one) => one.amountGwei === amount && !known.some((other) => knowsOf(other, one.transactionHash)))
      .map(({ transactionHash }) => transactionHash)
  }

  const isAnothers = (record: RecordObject, hash: string): boolean =>
    log.ofSubject(record.spec.subject).some((other) => other.metadata.name !== record.metadata.name && knowsOf(other, hash))

  return {
    async witnesses(record, signal) {
      const { chain } = networkOfRecord(record)
      const disregarded = disregardedIn(record.metadata.annotations?.[DISREGARD_SUBMISSION_ANNOTATION])
      const body = await requestOfRecord(record, signal).catch((error: unknown) => {
        if (isGone(error)) return undefined
        throw error
      })
      const told = body?.transaction.hash
      const shown = told === undefined ? undefined : await chain.transaction(told, signal)
      const left = (await unaccounted(record, signal)).filter(
        (hash) => !disregarded.includes(hash.toLowerCase()) && (told === undefined || !sameHex(hash, told)),
      )
      const [first] = left
      if (first !== undefined && typeOfRecord(record).repeats)
        // Two of the same amount are told apart by the log alone, which has lost one, or never knew it.
        throw stall(
          'UnknownSubmission',
          `Transaction ${first} has made the very same request since this one was made, and no StakingTransaction accounts for it: it may be this one. Nothing else is signed. Look at it on a block explorer. If it is this one, nothing is left to do: delete this resource. When you are certain that it was for something else: kubectl annotate stx ${record.metadata.name} ${DISREGARD_SUBMISSION_ANNOTATION}=${left.join(',')}`,
        )
      const done = first === undefined ? undefined : await chain.transaction(first, signal)
      if (first !== undefined && done === undefined)
        throw retry('ChainUnavailable', `A node has logged this request in transaction ${first}, and none shows that transaction.`)
      return {
        told:
          told === undefined
            ? undefined
            : {
                hash: told,
                landed: body?.status === 'confirmed',
                transaction: shown && witnessed(record, shown, !isAnothers(record, told)),
              },
        done: done && witnessed(record, done, true),
      }
    },

    async tell(record, { hash, from, nonce }, signal) {
      const { apiId } = record.spec
      if (apiId === undefined) return
      const { requests } = networkOfRecord(record)
      try {
        // That the API does not see it yet is as it should be: it is not sent yet.
        await typeOfRecord(record).submit(requests, pubkeyOf(record), apiId, hash, signal, { from, nonce })
      } catch (error) {
        if (!(error instanceof StakingApiError)) throw error
        if (error.code !== 'invalid-state') throw error
        throw (await requestOfRecord(record, signal))?.status === 'cancelled' ? cancelled(apiId) : error
      }
    },

    async judge(record, receipt) {
      const { spec } = record
      if (makesRequest(receipt, spec.call?.to ?? '', spec.from, requestIn(record))) return 'it'
      throw stall(
        'RequestMissing',
        `Transaction ${receipt.hash} is final in block ${receipt.blockNumber}, and the EIP-7002 contract logged no request in it. It is not made again. Look at it on a block explorer: the contract is not what it should be.`,
      )
    },
  }
}
