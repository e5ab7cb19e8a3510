import { BeaconError } from '../../chains/ethereum/beacon.ts'
import { type Address, ChainError, type DepositLog, type Hex, type Pubkey } from '../../chains/ethereum/chain.ts'
import { type CredentialsType, withdrawalCredentials } from '../../chains/ethereum/deposit.ts'
import type { EthereumStakeBody } from '../../contract/schemas/ethereum-stake.ts'
import type { Gwei } from '../../lib/amounts.ts'
import { sameHex } from '../../lib/hex.ts'
import type { Logger } from '../../lib/log.ts'
import { beaconUnavailable, chainUnavailable, ProblemError } from '../errors.ts'
import { inProgress } from '../idempotency.ts'
import { type KeyOrder, keyIndexOf, maxProbes } from '../key-index.ts'
import { MadeBeforeError } from '../made-before.ts'
import type { Metrics } from '../metrics.ts'
import { keyPath, type ValidatorKeys } from '../seed.ts'
import { isUniqueViolation } from '../store/database.ts'
import { inTime } from '../store/guarded-pool.ts'
import type { KeyIndices } from '../store/key-index.ts'
import type { DepositMaker } from './deposit-maker.ts'
import type { EthereumNetwork } from './networks.ts'

/** A stake as it is asked for, in the terms that its key is made of. */
export interface StakeOrder {
  readonly account: string
  readonly idempotencyKey: string
  readonly amountGwei: Gwei
  readonly credentialsType: CredentialsType
  readonly withdrawalAddress: Address
}

type Deposit = Pick<EthereumStakeBody, 'depositData' | 'unsignedTransaction'>

export interface NewKey extends Deposit {
  readonly index: bigint
  readonly pubkey: Pubkey
  /** The transaction that has made this very deposit already: an earlier answer, which this database doesn't know, was paid. */
  readonly paidBy?: Hex
}

/**
 * @param use Stores the stake that gets the key: the database, which has each index and key once, says whether it is free.
 * @throws ProblemError `chain-unavailable` when the chain can't say whether the key is new; MadeBeforeError when a stake of this very order has the key
 */
export type TakeNewKey = <T>(
  network: EthereumNetwork,
  order: StakeOrder,
  signal: AbortSignal,
  use: (key: NewKey) => Promise<T>,
) => Promise<T>

/** Of a request's five seconds. */
const lookMs = 1_000

type Verdict = 'new' | { readonly paidBy: Hex } | 'used'

/**
 * Takes the validator key of an order, and signs its deposit. Which key it is, the order says (see `keyIndexOf`): the database may have been restored from an
 * older copy. It is given to this order only: an index that a stake holds is not taken, nor a key that has another deposit or that the beacon chain
 * knows, for a second deposit would only top up the first. A key that has exactly the deposit that is signed here is this order's own, paid before the
 * database lost it: the stake is made again, with the transaction that paid it.
 */
export function createTakeNewKey(deps: {
  keys: Pick<ValidatorKeys, 'mac'>
  deposits: DepositMaker
  indices: KeyIndices
  log: Logger
  metrics: Metrics
}): TakeNewKey {
  const { keys, deposits, indices, log, metrics } = deps

  async function judge({ config, chain, validators }: EthereumNetwork, { depositData }: Deposit, signal: AbortSignal): Promise<Verdict> {
    const { pubkey } = depositData
    try {
      const [deposits, view] = await Promise.all([
        chain.depositsFor(pubkey, signal),
        validators?.beacon.validators([pubkey], 'head', signal),
      ])
      const own = deposits.find((deposit) => isSameDeposit(deposit, depositData))
      if (own !== undefined) return { paidBy: own.transactionHash }
      const known = view?.validators.get(pubkey)
      if (known !== undefined && deposits.length === 0 && sameHex(known.withdrawalCredentials, depositData.withdrawalCredentials)) {
        const detail = `the beacon chain of ${config.name} has the validator of this very stake, and the deposit history doesn't show its deposit yet`
        throw new ProblemError('chain-unavailable', detail, { retryAfterSeconds: 60 })
      }
      return deposits.length > 0 || known !== undefined ? 'used' : 'new'
    } catch (error) {
      if (error instanceof ChainError) throw chainUnavailable(config.name, error)
      throw error instanceof BeaconError ? beaconUnavailable(config.name, error) : error
    }
  }

  /** Whether a stake has the index. @throws MadeBeforeError when it is one of this very order */
  async function isTaken(index: bigint, { account, idempotencyKey }: StakeOrder): Promise<boolean> {
    const holder = await indices.holderOf(index)
    if (holder?.account === account && holder.idempotency_key === idempotencyKey) throw new MadeBeforeError()
    return holder !== undefined
  }

  return async (network, order, signal, use) => {
    const { name } = network.config
    const { account, idempotencyKey, amountGwei, credentialsType, withdrawalAddress } = order
    const keyOrder: KeyOrder = {
      account,
      idempotencyKey,
      network: name,
      withdrawalCredentials: withdrawalCredentials(credentialsType, withdrawalAddress),
      amountGwei,
    }
    for (let probe = 0; probe < maxProbes; probe++) {
      const index = keyIndexOf(keys, keyOrder, probe, indices.floor)
      const terms = { network: network.config, amountGwei, credentialsType, withdrawalAddress }
      const { pubkey, ...deposit } = await deposits.make(index, terms, signal)
      const verdict = await judge(network, deposit, signal).catch(async (error: unknown) => {
        // A stake of this very order is found though the chain tells nothing; a database that tells nothing either is not waited for.
        await inTime(isTaken(index, order), lookMs).catch((other: unknown) => {
          if (other instanceof MadeBeforeError) throw other
        })
        throw error
      })
      if (verdict === 'new') {
        // Hardly any index is taken: whether this one is, is seen when it is stored.
        try {
          return await use({ ...deposit, index, pubkey })
        } catch (error) {
          if (!isUniqueViolation(error, ...ofKeys)) throw error
        }
        // Another one that comes at the same moment and then fails leaves the index free: the next try has it.
        if (!(await isTaken(index, order))) throw inProgress()
        continue
      }
      if (await isTaken(index, order)) continue
      const line = { network: name, path: keyPath(index), pubkey }
      metrics.knownKeySkipped(name)
      if (verdict !== 'used') {
        log.warn(
          { ...line, hash: verdict.paidBy },
          'a stake that this database does not know was paid already, and is made again from its request: was the database restored from an older backup?',
        )
        return use({ ...deposit, index, pubkey, paidBy: verdict.paidBy }).catch((error: unknown) => {
          throw isUniqueViolation(error, ...ofKeys) ? inProgress() : error
        })
      }
      log.warn(line, 'a validator key that was not handed out yet has another deposit already and is skipped: is the seed used elsewhere?')
    }
    throw new Error('every validator key of a request is taken')
  }
}

/** What the database has each index and each key once by. */
const ofKeys = ['ethereum_stakes_key_index_key', 'ethereum_stakes_pubkey_key'] as const

/** The signature of a deposit says all of it: BLS signatures are deterministic. */
const isSameDeposit = (made: DepositLog, { withdrawalCredentials, amountGwei, signature }: EthereumStakeBody['depositData']): boolean =>
  made.amountGwei === amountGwei && sameHex(made.withdrawalCredentials, withdrawalCredentials) && sameHex(made.signature, signature)
