import { sameHex } from '../../../lib/hex.ts'
import type { ValidatorRequestStatus } from '../../../resources/validator-request.ts'
import type { ObservationIntervals, SagaKind } from '../../engine/saga-kind.ts'
import type { KubeObject } from '../../kube/objects.ts'
import type { Networks } from '../../ports.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { shows } from '../../transactions/mirror.ts'
import { mirrored } from '../../transactions/mirrored.ts'
import { networkGone } from '../../transactions/network-gone.ts'
import { recordOfDeleted } from '../../transactions/owner.ts'
import { openAttempts } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { decideRequestDeletion, type LoggedRequest } from './deletion.ts'
import type { ValidatorRequestResource } from './deps.ts'
import { asSeenBy, ownRequest } from './evidence.ts'
import type { RequestKindName } from './request-kind.ts'
import { requestTypes } from './request-type.ts'
import { acceptedOf, paysTooMuch } from './service.ts'
import { isDecided, isUnpaid, validatorRequestStatus } from './status.ts'
import { termsOf, undoRequest, type ValidatorRequestEffects, type ValidatorRequestView, validatorRequestSteps } from './steps.ts'

/** ValidatorExit or ValidatorWithdrawal for the engine: the one saga with what the engine must know besides. */
export function validatorRequestKind<R extends ValidatorRequestResource & KubeObject>(
  kind: RequestKindName,
  deps: { readonly log: TransactionLog; readonly networks: Networks; readonly intervals: ObservationIntervals },
): SagaKind<R, ValidatorRequestStatus, ValidatorRequestView, ValidatorRequestEffects> {
  const { log, networks, intervals } = deps

  /** The record of this resource, as it sees it. */
  function recordFor({ metadata }: R, uid: string | undefined): RecordObject | undefined {
    const record = ownRequest(log, { kind, namespace: metadata.namespace ?? '', name: metadata.name, uid })
    return record && asSeenBy(record, uid)
  }

  return {
    kind,
    steps: () => validatorRequestSteps,
    cancel: undoRequest,
    statusOf: (resource) => resource.status,
    isSuspended: (resource) => resource.spec.suspend === true,
    view: ({ spec, metadata }, origin, status) => ({ origin: { ...origin, kind }, spec, status, uid: metadata.uid }),
    say: ({ metadata, spec }, status, progress, now) => validatorRequestStatus({ kind, metadata, spec }, status, progress, now),
    hasSigned: ({ transaction }) => transaction !== undefined,
    passing: ['Pending', 'Waiting', 'Created', 'Prepared', 'Confirming', 'Confirmed'],

    mirror(resource, status, origin) {
      const record = recordFor(resource, origin?.uid)
      const { transaction, ...rest } = status
      const outcome = record?.status?.outcome
      // What landed is held in the cache without its versions: where status shows something else, it is read and mirrored anew.
      if (record !== undefined && outcome !== undefined) return transaction === undefined || shows(transaction, record) ? status : rest
      // Nobody can have decided on what did not land.
      const { consensus, ...undecided } = rest
      const next = record && mirrored(log, record, transaction)
      if (next === undefined) return transaction === undefined && consensus === undefined ? status : undecided
      return next === transaction && consensus === undefined ? status : { ...undecided, transaction: next }
    },

    decideDeletion: (resource, status, origin) =>
      decideRequestDeletion(
        { kind, metadata: resource.metadata },
        status,
        logged(recordOfDeleted((uid) => recordFor(resource, uid), resource.metadata, origin)),
      ),
    // What was decided is looked at again, seldom: a block beyond a numeric depth may go, and what the staking API said with it. An accepted withdrawal
    // may still be paid, or come to nothing.
    observeEvery: (status) =>
      !isDecided(status) ? undefined : requestTypes[kind].isPaidOut && isUnpaid(status) ? intervals.activatingMs : intervals.settledMs,
    async observe(resource, status, signal) {
      const { validator, requestId } = status
      if (validator === undefined || requestId === undefined) return status
      const network = networks.ethereum(validator.network)
      if (network === undefined) throw networkGone(validator.network)
      const undecided = ({ consensus: _gone, ...rest }: ValidatorRequestStatus): ValidatorRequestStatus => rest
      const record = recordFor(resource, undefined)
      const outcome = record?.status?.outcome
      // A former owner's landing is not in the record's outcome any more: what was dropped is over.
      if (record !== undefined && outcome !== undefined && isOf(record, resource)) {
        const { transaction: _gone, ...rest } = undecided(status)
        if ((await log.recheck(record, network.chain, signal)).status?.outcome === undefined) return rest
      }
      const body = await requestTypes[kind].read(network.requests, validator.pubkey, requestId, signal)
      // The staking API has taken back what it said: it is asked anew, by the step that is there for it.
      if (
        body.requestId === requestId &&
        outcome !== undefined &&
        sameHex(body.transaction.hash ?? '', outcome.hash) &&
        contradicts(body.consensus.status, status)
      )
        return undecided(status)
      if (!requestTypes[kind].isPaidOut || !isUnpaid(status)) return status
      // What the service says of another request, or does not say any more, is no news of this one.
      if (body.requestId !== requestId || !sameHex(body.pubkey, validator.pubkey) || body.consensus.status !== 'accepted') return status
      if (paysTooMuch(body, termsOf({ kind, spec: resource.spec }))) return status
      const { payment } = acceptedOf(body)
      return payment === undefined || status.consensus === undefined ? status : { ...status, consensus: { ...status.consensus, payment } }
    },
  }
}

const contradicts = (now: string, { consensus }: ValidatorRequestStatus): boolean =>
  consensus !== undefined && now !== consensus.status.toLowerCase()
const isOf = ({ spec: { owner } }: RecordObject, { metadata }: ValidatorRequestResource): boolean =>
  owner.namespace === metadata.namespace && owner.name === metadata.name

function logged(record: RecordObject | undefined): LoggedRequest {
  if (record === undefined) return { is: 'none' }
  const { outcome, place } = record.status ?? {}
  if (outcome !== undefined) return outcome.is === 'Reverted' ? { is: 'reverted' } : { is: 'landed', blockNumber: outcome.blockNumber }
  if (place === undefined) return { is: 'idle' }
  return { is: 'open', hash: openAttempts(recordOf(record)).at(-1)?.hash ?? '', nonce: place }
}
