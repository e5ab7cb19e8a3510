import {
  type SolanaStakeAuthorization,
  type SolanaStakeAuthorizationStatus,
  solanaStakeAuthorization,
} from '../../../resources/solana-stake-authorization.ts'
import type { SagaKind } from '../../engine/saga-kind.ts'
import { sameJson } from '../../kube/merge-patch.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { liveAttempts } from '../../transactions/solana/rules.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { ownAuthorization } from './authorization-records.ts'
import { solanaStakeAuthorizationStatus } from './authorization-status.ts'
import { type AuthorizationEffects, type AuthorizationView, authorizationSteps } from './authorization-steps.ts'
import { isLive, shownOf } from './records.ts'
import { isFinal } from './steps.ts'

/** SolanaStakeAuthorization for the engine. */
export function solanaStakeAuthorizationKind({
  log,
}: {
  readonly log: TransactionLog
}): SagaKind<SolanaStakeAuthorization, SolanaStakeAuthorizationStatus, AuthorizationView, AuthorizationEffects> {
  const { kind } = solanaStakeAuthorization
  const recordFor = ({ metadata }: SolanaStakeAuthorization, uid: string | undefined): RecordObject | undefined =>
    ownAuthorization(log, { kind, namespace: metadata.namespace ?? '', name: metadata.name, uid })

  return {
    kind,
    steps: () => authorizationSteps,
    statusOf: (resource) => resource.status,
    isSuspended: (resource) => resource.spec.suspend === true,
    view: ({ spec, metadata }, origin, status) => ({
      origin,
      spec,
      status,
      deleting: metadata.deletionTimestamp !== undefined,
      uid: metadata.uid,
    }),
    say: solanaStakeAuthorizationStatus,
    hasSigned: ({ transaction }) => transaction !== undefined,
    passing: ['Pending', 'Verified', 'Prepared', 'Confirming'],

    mirror(resource, status, origin) {
      const record = recordFor(resource, origin?.uid)
      const { transaction, ...rest } = status
      const shown = shownOf(log, record, transaction)
      const { from, to } = record?.spec.handOver ?? {}
      const next: SolanaStakeAuthorizationStatus = {
        ...rest,
        ...(record === undefined
          ? {}
          : { network: record.spec.network, stakeAccount: record.spec.subject as never, from: holders(from), to: holders(to) }),
        ...(shown === undefined ? {} : { transaction: shown }),
      }
      return sameJson(next, status) ? status : next
    },

    decideDeletion(resource, _status, origin) {
      // What was signed at its place and may land keeps it, whichever origin it says that it has.
      const record = [origin?.uid, resource.metadata.uid, undefined]
        .map((uid) => recordFor(resource, uid))
        .find((one) => one !== undefined && isLive(one))
      if (record === undefined) return { do: 'release', because: 'nothing of it may land any more' }
      const { attempt } = liveAttempts(recordOf(record)).at(-1) ?? {}
      return {
        do: 'watch',
        message: `Deleted, but its transaction ${attempt?.hash ?? ''} may still land; nothing more is signed. It goes once that is certain. Where it lands, the authorities are handed over all the same.`,
      }
    },

    // Its stake is looked at, and tells who has its authorities.
    observeEvery: () => undefined,
    observe: async (_resource, status) => status,
  }
}

type Holders = NonNullable<SolanaStakeAuthorizationStatus['from']>
const holders = (given: NonNullable<RecordObject['spec']['handOver']>['from'] | undefined): Holders => ({
  ...(given?.stakeAuthority === undefined ? {} : { stakeAuthority: given.stakeAuthority.address }),
  ...(given?.withdrawAuthority === undefined ? {} : { withdrawAuthority: given.withdrawAuthority.address }),
})

/** Nothing of it is to be signed any more. */
export const isSettledAuthorization = ({ status }: SolanaStakeAuthorization): boolean => isFinal(status?.transaction)
