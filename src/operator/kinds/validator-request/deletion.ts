import { CONFIRM_DELETE_ANNOTATION, type ObjectMeta } from '../../../resources/meta.ts'
import type { ValidatorRequestStatus } from '../../../resources/validator-request.ts'
import { isDecided } from './status.ts'
import type { RequestKindName } from './steps.ts'

/** What to do with an exit or withdrawal that is being deleted. Before it is sent it can be taken back; afterwards its outcome is watched. */
export type RequestDeletion =
  /** Nothing can land any more, or what was asked for is decided, or a person said that it may be forgotten. */
  | { readonly do: 'release'; readonly because: string }
  /** Watch what is in flight until its outcome is known; sign nothing. */
  | { readonly do: 'watch'; readonly message: string }
  /** Take the request back at the staking API, or find the transaction that status has lost. */
  | { readonly do: 'undo'; readonly message: string }

export function decideRequestDeletion(
  { kind, metadata }: { readonly kind: RequestKindName; readonly metadata: ObjectMeta },
  status: ValidatorRequestStatus,
  inLedger: boolean,
): RequestDeletion {
  const { name, namespace = '' } = metadata
  const howToForget = `To forget it in Kubernetes all the same, confirm: kubectl annotate ${kind.toLowerCase()} ${name} -n ${namespace} ${CONFIRM_DELETE_ANNOTATION}=${name}`
  if (metadata.annotations?.[CONFIRM_DELETE_ANNOTATION] === name)
    return { do: 'release', because: 'its deletion was confirmed by annotation' }
  const { transaction } = status
  if (transaction?.state === 'Failed') return { do: 'release', because: 'its transaction was reverted: no request was made' }
  if (isDecided(status)) return { do: 'release', because: 'the consensus layer has decided on its request' }
  if (transaction !== undefined) {
    return {
      do: 'watch',
      message:
        transaction.state === 'Confirmed'
          ? `Deleted, but its request was made in block ${transaction.blockNumber}, and can't be taken back. It goes once the consensus layer has decided on it. ${howToForget}`
          : `Deleted, but its transaction ${transaction.hash} (nonce ${transaction.nonce}) may still land; nothing more is signed. It goes once its outcome is final. ${howToForget}`,
    }
  }
  if (inLedger)
    return {
      do: 'undo',
      message: `Deleted, but the signer's ledger has a transaction of this resource: it is watched until its outcome is final. ${howToForget}`,
    }
  // The service can't take a withdrawal back; one that is not sent comes to nothing.
  if (kind === 'ValidatorExit' && status.validator !== undefined && status.cancelled !== true)
    return { do: 'undo', message: `Deleted: its exit request is being cancelled at the staking API. ${howToForget}` }
  return { do: 'release', because: status.cancelled === true ? 'its exit request was cancelled' : 'no transaction was ever made for it' }
}
