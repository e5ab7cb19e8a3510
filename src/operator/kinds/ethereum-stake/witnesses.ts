import type { ChainTransaction, Hash } from '../../../chains/ethereum/chain.ts'
import { sameHex } from '../../../lib/hex.ts'
import { stall, wait } from '../../engine/verdict.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { pubkeyOf } from '../../transactions/ethereum-texts.ts'
import type { TransactionKind } from '../../transactions/kind.ts'
import { attemptsOf, openAttempts } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { paysDeposit } from './evidence.ts'
import { depositIn } from './records.ts'

const isThisCall = ({ to, data }: ChainTransaction, { spec }: RecordObject): boolean =>
  to !== undefined && sameHex(to, spec.call?.to ?? '') && sameHex(data, spec.call?.data ?? '')

/** Who knows of a deposit besides the log: the staking API, which is told of every transaction, and the deposit contract's history. */
export function createDepositWitnesses(
  networkOfRecord: (record: RecordObject) => EthereumNetwork,
): Pick<TransactionKind, 'witnesses' | 'tell' | 'judge' | 'overtaken'> {
  /**
   * Deposits for the key on the chain, in order. `isOpen`: one of the versions under the nonce in use made it. `isOurs`: it stands in the record, or was made
   * by the lane's own address with this very call.
   */
  async function deposits(record: RecordObject, signal: AbortSignal) {
    const found = await networkOfRecord(record).chain.depositsFor(pubkeyOf(record), signal)
    return Promise.all(
      found.map(async ({ transactionHash: hash }) => {
        const isIn = (attempts: readonly { readonly hash: string }[]) => attempts.some((attempt) => sameHex(attempt.hash, hash))
        const isOurs = isIn(attemptsOf(recordOf(record))) || (await makerOf(hash, record, signal)).isOurs
        return { hash, isOpen: isIn(openAttempts(recordOf(record))), isOurs }
      }),
    )
  }

  /** Who made a deposit, and whether by the record's very call. */
  async function makerOf(hash: Hash, record: RecordObject, signal: AbortSignal) {
    const transaction = await networkOfRecord(record).chain.transaction(hash, signal)
    const sameCall = transaction !== undefined && isThisCall(transaction, record)
    return { transaction, sameCall, isOurs: sameCall && sameHex(transaction.from, record.spec.from) }
  }

  return {
    async witnesses(record, signal) {
      const { api, chain } = networkOfRecord(record)
      const { apiId } = record.spec
      const said = apiId === undefined ? undefined : (await api.ethereumStake(apiId, signal)).transaction
      const hash = said?.hash
      const told = hash === undefined ? undefined : await chain.transaction(hash, signal)
      const [first] = await chain.depositsFor(pubkeyOf(record), signal)
      // Its resource may be there again, as after a restore. Nobody tells the staking API of a payment for it any more.
      if (said?.status === 'cancelled' && first === undefined)
        throw stall(
          'RequestCancelled',
          `Stake ${apiId} was cancelled at the staking API, as it is when its resource is deleted before it was paid. Nothing was signed. To stake, delete this resource and create it anew: then another stake is made.`,
        )
      const done = first && { hash: first.transactionHash, ...(await makerOf(first.transactionHash, record, signal)) }
      return {
        told:
          hash === undefined
            ? undefined
            : {
                hash,
                landed: said?.status === 'confirmed',
                transaction: told && {
                  hash,
                  from: told.from,
                  nonce: told.nonce,
                  sameCall: isThisCall(told, record),
                  pending: told.blockNumber === undefined,
                },
              },
        done:
          done === undefined
            ? undefined
            : { hash: done.hash, from: done.transaction?.from ?? '', nonce: done.transaction?.nonce ?? 0, sameCall: done.sameCall },
      }
    },

    async tell(record, { hash, from, nonce }, signal) {
      if (record.spec.apiId !== undefined)
        await networkOfRecord(record).api.submitEthereumStake(record.spec.apiId, hash, signal, { from, nonce })
    },

    async judge(record, receipt, signal) {
      if (!paysDeposit(receipt, depositIn(record), networkOfRecord(record))) return 'nothing'
      const history = await deposits(record, signal)
      const at = history.findIndex(({ hash }) => sameHex(hash, receipt.hash))
      if (at < 0)
        throw wait('HistorySyncing', "The deposit's transaction is final; the contract's history does not show its deposit yet.", 5_000)
      return history.slice(0, at).every(({ isOurs }) => isOurs) ? 'it' : 'second'
    },

    async overtaken(record, signal) {
      const history = await deposits(record, signal)
      const own = history.findIndex(({ isOpen }) => isOpen)
      const earlier = own < 0 ? history : history.slice(0, own)
      const others = earlier.filter(({ isOurs }) => !isOurs)
      const [first] = others
      if (first !== undefined) {
        return stall(
          'PubkeyAlreadyDeposited',
          `The deposit contract has ${others.length === 1 ? 'a deposit' : `${others.length} deposits`} for this public key that this resource did not make (transaction ${first.hash}). Paying it again would top up a validator whose withdrawal address others may have fixed. Find out who made that deposit; to stake, delete this resource and create one under another name: it gets a key of its own.`,
        )
      }
      const [made] = earlier
      // Paid by this very call, in a transaction that is not under the nonce in use: another would pay a second time.
      return record.status?.place === undefined || made === undefined
        ? undefined
        : wait(
            'Cancelling',
            `Transaction ${made.hash} has made this deposit already; the one under nonce ${record.status.place} is cancelled.`,
            12_000,
          )
    },
  }
}
