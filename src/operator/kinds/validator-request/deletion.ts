import { CONFIRM_DELETE_ANNOTATION, isDeletionConfirmed, type ObjectMeta } from '../../../resources/meta.ts'
import type { ValidatorRequestStatus } from '../../../resources/validator-request.ts'
import type { Deletion } from '../../engine/deletion.ts'
import type { RequestKindName } from './request-kind.ts'

/** What the log has of the resource's request, whatever its status says. */
export type LoggedRequest =
  | { readonly is: 'none' }
  /** No attempt, or each place proven closed. */
  | { readonly is: 'idle' }
  | { readonly is: 'open'; readonly hash: string; readonly nonce: number }
  | { readonly is: 'landed'; readonly blockNumber: number }
  | { readonly is: 'reverted' }

/** What to do with an exit or withdrawal that is being deleted. Before it is sent it can be taken back; afterwards its outcome is watched. */
export function decideRequestDeletion(
  { kind, metadata }: { readonly kind: RequestKindName; readonly metadata: ObjectMeta },
  status: ValidatorRequestStatus,
  logged: LoggedRequest,
): Deletion {
  const { name, namespace = '' } = metadata
  const howToForget = `To forget it in Kubernetes all the same, confirm: kubectl annotate ${kind.toLowerCase()} ${name} -n ${namespace} ${CONFIRM_DELETE_ANNOTATION}=${name}`
  const isConfirmed = isDeletionConfirmed({ metadata })
  const forgotten = 'its deletion was confirmed by annotation'
  if (isConfirmed && logged.is !== 'none' && logged.is !== 'idle') return { do: 'release', because: forgotten }
  switch (logged.is) {
    case 'reverted':
      return { do: 'release', because: 'its transaction was reverted: no request was made' }
    case 'landed':
      if (status.consensus !== undefined) return { do: 'release', because: 'the consensus layer has decided on its request' }
      return {
        do: 'watch',
        message: `Deleted, but its request was made in block ${logged.blockNumber}, and can't be taken back. It goes once the consensus layer has decided on it. ${howToForget}`,
      }
    case 'open':
      return {
        do: 'watch',
        message: `Deleted, but its transaction ${logged.hash} (nonce ${logged.nonce}) may still land; nothing more of it is signed. It goes once its outcome is final. ${howToForget}`,
      }
    case 'none':
    case 'idle':
  }
  // One that stays with the staking API keeps its name, or its amount, long after its resource is gone. Whether there is one, status doesn't decide.
  if (status.cancelled !== true)
    return {
      do: 'cancel',
      message: `Deleted: its request is being cancelled at the staking API. ${howToForget}`,
      ...(isConfirmed ? { orRelease: forgotten } : {}),
    }
  return { do: 'release', because: 'its request was cancelled, or never made' }
}
