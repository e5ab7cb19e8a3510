import type { EthereumStake, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import { CONFIRM_DELETE_ANNOTATION, isDeletionConfirmed } from '../../../resources/meta.ts'
import type { Deletion } from '../../engine/deletion.ts'
import { isConfirmed, isDone } from './status.ts'

/** What the log has of the resource's deposit, whatever its status says. */
export type LoggedDeposit =
  /** `isNamed`: the staking API has a stake of this name that nobody has paid, though status names none. */
  | { readonly is: 'none'; readonly isNamed?: true }
  /** No attempt, or each place proven closed. */
  | { readonly is: 'idle' }
  | { readonly is: 'open'; readonly hash: string; readonly nonce: number }
  | { readonly is: 'landed'; readonly pubkey: string }
  | { readonly is: 'reverted' }
  /** The log has nothing, and the chain, which was asked then, does not answer. */
  | { readonly is: 'unknown' }
  /** The staking API was told of its transaction, of which the log has nothing, and the chain no deposit. */
  | { readonly is: 'told'; readonly stakeId: string; readonly pubkey: string; readonly hash: string | undefined }

const howToForget = ({ metadata: { name, namespace = '' } }: EthereumStake): string =>
  `To have Kubernetes forget it anyway (no money moves by that), confirm: kubectl annotate ethereumstake ${name} -n ${namespace} ${CONFIRM_DELETE_ANNOTATION}=${name}`

export function decideDeletion(resource: EthereumStake, status: EthereumStakeStatus, logged: LoggedDeposit): Deletion {
  if (isDeletionConfirmed(resource)) return { do: 'release', because: 'its deletion was confirmed by annotation' }
  if (logged.is === 'open')
    return {
      do: 'watch',
      message: `Deleted, but its transaction ${logged.hash} (nonce ${logged.nonce}) was signed and may still land; nothing more of it is signed. It goes once the outcome is final. ${howToForget(resource)}`,
    }
  if (logged.is === 'landed' || isConfirmed(status)) {
    if (isDone(status)) return { do: 'release', because: 'its validator has left and its balance was withdrawn' }
    const pubkey = logged.is === 'landed' ? logged.pubkey : (status.depositData?.pubkey ?? '')
    return {
      // Status is to show what has landed, as far as it can.
      do: isConfirmed(status) || status.stakeId === undefined ? 'hold' : 'watch',
      message: `Deleted, but ${resource.spec.amountEth} ETH are staked with validator ${pubkey}. It goes once the validator has exited. ${howToForget(resource)}`,
    }
  }
  if (logged.is === 'unknown')
    return {
      do: 'hold',
      message: `Deleted, and the log has no transaction of it: whether the chain has its deposit is asked, and not certain yet. It goes once it is certain that nothing is staked. ${howToForget(resource)}`,
    }
  if (logged.is === 'told') {
    const { stakeId, pubkey, hash } = logged
    return {
      do: 'ask',
      reason: 'UnknownSubmission',
      message: `Deleted, and the log has no transaction of it. The staking API says that stake ${stakeId} was reported or paid${hash === undefined ? '' : ` (transaction ${hash})`}, and the chain has no deposit of it: it may still land. Look for a deposit for ${pubkey} before you let this resource go. ${howToForget(resource)}`,
    }
  }
  if (logged.is === 'reverted') return { do: 'release', because: 'its transaction was reverted: nothing is staked' }
  return { do: 'release', because: logged.is === 'idle' ? 'nothing of it can land' : 'no transaction was ever made for it' }
}

/**
 * What is released since nothing was paid for it is cancelled at the staking API first: a stake that stays there keeps its name for ever. One that was adopted
 * is not this resource's to cancel.
 */
export function cancelFirst(resource: EthereumStake, status: EthereumStakeStatus, logged: LoggedDeposit, decision: Deletion): Deletion {
  const isUnpaid = logged.is === 'none' || logged.is === 'idle'
  if (decision.do !== 'release' || !isUnpaid || status.cancelled === true || resource.spec.adopt !== undefined) return decision
  const message = `Deleted: the log has no payment of it that has landed or may land, and its stake is being cancelled at the staking API. ${howToForget(resource)}`
  // Whether there is a stake of its name was not asked.
  if (isDeletionConfirmed(resource)) return { do: 'cancel', message, orRelease: decision.because }
  const isMade = status.stakeId !== undefined || (logged.is === 'none' && logged.isNamed === true)
  return isMade ? { do: 'cancel', message } : decision
}
