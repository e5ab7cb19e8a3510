import type { EthereumStake, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import { CONFIRM_DELETE_ANNOTATION } from '../../../resources/meta.ts'
import { isConfirmed, isDone } from './status.ts'

/** What to do with a resource that is being deleted. Deletion never moves money, and never leads to buying twice. */
export type Deletion =
  /** Nothing can land and nothing is staked, or a person said that it may be forgotten. */
  | { readonly do: 'release'; readonly because: string }
  /** Watch what is in flight until its outcome is known; sign nothing. */
  | { readonly do: 'watch'; readonly message: string }
  /** It holds money: wait for the exit, or for a person. */
  | { readonly do: 'hold'; readonly message: string }

const howToForget = ({ metadata: { name, namespace = '' } }: EthereumStake): string =>
  `To forget it in Kubernetes all the same (no money moves by that), confirm: kubectl annotate ethereumstake ${name} -n ${namespace} ${CONFIRM_DELETE_ANNOTATION}=${name}`

export function decideDeletion(resource: EthereumStake, status: EthereumStakeStatus, inLedger: boolean): Deletion {
  if (resource.metadata.annotations?.[CONFIRM_DELETE_ANNOTATION] === resource.metadata.name)
    return { do: 'release', because: 'its deletion was confirmed by annotation' }
  if (isDone(status)) return { do: 'release', because: 'its validator has left and its balance was withdrawn' }
  if (isConfirmed(status)) {
    return {
      do: 'hold',
      message: `Deleted, but ${resource.spec.amountEth} ETH are staked with validator ${status.depositData?.pubkey ?? ''}. It goes once the validator has exited. ${howToForget(resource)}`,
    }
  }
  if (status.transaction?.state === 'Failed') return { do: 'release', because: 'its transaction was reverted: nothing is staked' }
  if (status.transaction !== undefined) {
    return {
      do: 'watch',
      message: `Deleted, but its transaction ${status.transaction.hash} (nonce ${status.transaction.nonce}) may still land; nothing more is signed. It goes once that nonce is final. ${howToForget(resource)}`,
    }
  }
  if (inLedger)
    return {
      do: 'hold',
      message: `Deleted, but the signer's ledger has a transaction of this resource that may still land. ${howToForget(resource)}`,
    }
  return { do: 'release', because: 'no transaction was ever made for it' }
}
