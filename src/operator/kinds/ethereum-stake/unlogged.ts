import { noneOf } from '../../../contract/client-error.ts'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { EthereumStake, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import { classify } from '../../engine/classify.ts'
import { externalReference } from '../../engine/origin.ts'
import type { Networks } from '../../ports.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import type { RecordObject } from '../../transactions/store.ts'
import type { LoggedDeposit } from './deletion.ts'
import { depositOnChain } from './evidence.ts'
import { depositIn } from './records.ts'

/** What is asked elsewhere of a stake that the log has nothing of: the chain, and the staking API. */
export function createUnlogged({ log, networks }: { readonly log: Pick<TransactionLog, 'ofSubject'>; readonly networks: Networks }) {
  /** Whether the chain has a deposit with this public key and these credentials. @returns `unknown` while it does not answer */
  async function chainHas(
    { spec }: EthereumStake,
    depositData: Pick<NonNullable<EthereumStakeStatus['depositData']>, 'pubkey' | 'withdrawalCredentials'>,
    signal: AbortSignal,
  ): Promise<LoggedDeposit> {
    const network = networks.ethereum(spec.network)
    if (network === undefined) return { is: 'none' }
    try {
      const paid = await depositOnChain(network, depositData, signal)
      return paid === undefined ? { is: 'none' } : { is: 'landed', pubkey: depositData.pubkey }
    } catch (error) {
      signal.throwIfAborted()
      classify(error)
      return { is: 'unknown' }
    }
  }

  /** Whether a node has the transaction, or none answers: what becomes of it is seen soon. */
  async function isWaiting({ spec }: EthereumStake, hash: EthereumStakeBody['transaction']['hash'], signal: AbortSignal): Promise<boolean> {
    const chain = networks.ethereum(spec.network)?.chain
    if (chain === undefined || hash === undefined) return false
    try {
      return (await chain.transaction(hash, signal)) !== undefined
    } catch (error) {
      signal.throwIfAborted()
      classify(error)
      return true
    }
  }

  /**
   * What the chain has of a resource of which neither the log nor its status knows a stake: status may have been lost, as by a restore, or never have been written
   * since the stake was made. The staking API says which were made in its name, and has the one that its spec adopts. One that it was told of, and that the chain
   * does not show, may land.
   */
  async function unseen(resource: EthereumStake, signal: AbortSignal): Promise<LoggedDeposit> {
    const api = networks.ethereum(resource.spec.network)?.api
    const { namespace = '', name } = resource.metadata
    const reference = externalReference({ kind: 'EthereumStake', namespace, name })
    const adopts = resource.spec.adopt?.stakeId
    let found: readonly EthereumStakeBody[]
    try {
      const named = (await api?.ethereumStakesNamed?.(reference, signal)) ?? []
      const adopted = adopts === undefined ? undefined : await api?.ethereumStake(adopts, signal).catch(noneOf)
      found = [...named.filter((body) => body.externalReference === reference), ...(adopted === undefined ? [] : [adopted])]
    } catch (error) {
      signal.throwIfAborted()
      classify(error)
      return { is: 'unknown' }
    }
    let worst: LoggedDeposit = { is: 'none' }
    for (const { network, stakeId, depositData, transaction } of found) {
      // What the log has of it was made for another resource, which is held for that.
      if (network !== resource.spec.network || log.ofSubject(depositData.pubkey).length > 0) continue
      const onChain = await chainHas(resource, depositData, signal)
      if (onChain.is === 'landed') return onChain
      if (onChain.is === 'unknown') worst = onChain
      else if (transaction.status === 'submitted') {
        const { hash } = transaction
        const told: LoggedDeposit = (await isWaiting(resource, hash, signal))
          ? { is: 'unknown' }
          : { is: 'told', stakeId, pubkey: depositData.pubkey, hash }
        worst = worst.is === 'unknown' ? worst : told
      } else if (worst.is === 'none' && transaction.status === 'awaiting_submission') worst = { is: 'none', isNamed: true }
    }
    return worst
  }

  /**
   * The same of a record for which nothing was signed: it may be younger than a log that was lost. What somebody else has paid, with a key that is not the
   * record's, is no money of its resource.
   */
  async function hasPaid({ spec }: EthereumStake, record: RecordObject, signal: AbortSignal): Promise<LoggedDeposit> {
    const network = networks.ethereum(spec.network)
    if (network === undefined) return { is: 'none' }
    const { pubkey, withdrawalCredentials } = depositIn(record)
    try {
      const deposits = await network.chain.depositsFor(pubkey, signal)
      if (!deposits.some((one) => sameHex(one.withdrawalCredentials, withdrawalCredentials))) return { is: 'none' }
      const makers = await Promise.all(deposits.map(({ transactionHash }) => network.chain.transaction(transactionHash, signal)))
      // A transaction that no node shows may be ours.
      return makers.some((one) => one === undefined || sameHex(one.from, record.spec.from)) ? { is: 'landed', pubkey } : { is: 'none' }
    } catch (error) {
      signal.throwIfAborted()
      classify(error)
      return { is: 'unknown' }
    }
  }

  return { chainHas, unseen, hasPaid }
}
