import { CONFIRM_DELETE_ANNOTATION, type ObjectMeta } from '../../../resources/meta.ts'
import type { ValidatorRequestStatus } from '../../../resources/validator-request.ts'
import { type RequestKindName, requestKinds } from './request-kind.ts'

/** What to do with an exit or withdrawal that is being deleted. Before it is sent it can be taken back; afterwards its outcome is watched. */
export type RequestDeletion =
  /** Nothing can land any more, or what was asked for is decided, or a person said that it may be forgotten. */
  | { readonly do: 'release'; readonly because: string }
  /** Watch what is in flight until its outcome is known; sign nothing. */
  | { readonly do: 'watch'; readonly message: string }
  /** Take the request back at the staking API. */
  | { readonly do: 'undo'; readonly message: string }

/** What the log has of the resource's request, whatever its status says. */
export type LoggedRequest =
  | { readonly is: 'none' }
  /** No attempt, or each place proven closed. */
  | { readonly is: 'idle' }
  | { readonly is: 'open'; readonly hash: string; readonly nonce: number }
  | { readonly is: 'landed'; readonly blockNumber: number }
  | { readonly is: 'reverted' }

export function decideRequestDeletion(
  { kind, metadata }: { readonly kind: RequestKindName; readonly metadata: ObjectMeta },
  status: ValidatorRequestStatus,
  logged: LoggedRequest,
): RequestDeletion {
  const { name, namespace = '' } = metadata
  const howToForget = `To forget it in Kubernetes all the same, confirm: kubectl annotate ${kind.toLowerCase()} ${name} -n ${namespace} ${CONFIRM_DELETE_ANNOTATION}=${name}`
  if (metadata.annotations?.[CONFIRM_DELETE_ANNOTATION] === name)
    return { do: 'release', because: 'its deletion was confirmed by annotation' }
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
  // One that stays with the staking API keeps its name, or its amount.
  const mayExist = (logged.is === 'idle' && requestKinds[kind].staysUntilCancelled) || status.validator !== undefined
  if (mayExist && status.cancelled !== true)
    return { do: 'undo', message: `Deleted: its request is being cancelled at the staking API. ${howToForget}` }
  return {
    do: 'release',
    because:
      status.cancelled === true
        ? 'its request was cancelled'
        : logged.is === 'idle'
          ? 'nothing of it can land'
          : 'no transaction was ever made for it',
  }
}
