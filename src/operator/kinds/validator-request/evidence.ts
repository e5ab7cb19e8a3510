import type { ChainReceipt } from '../../../chains/ethereum/chain.ts'
import { decodeRequestLog, RequestEncodingError, type ValidatorRequest } from '../../../chains/ethereum/requests.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { isBegun } from '../../transactions/owner.ts'
import { attemptsOf, closedOf, seenBy } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import type { RequestKindName } from './request-kind.ts'
import type { FoundValidator } from './steps.ts'

/** A resource by its place and origin; without an origin, by its place alone. */
export interface RequestOwner {
  readonly kind: RequestKindName
  readonly namespace: string
  readonly name: string
  readonly uid: string | undefined
}

/** In gwei, as a log carries it: 0 is a full exit. */
export const loggedAmount = (request: ValidatorRequest): bigint => (request.kind === 'exit' ? 0n : request.amountGwei)

/** Whether a receipt holds the contract's log of this very request, made by this sender. */
export function makesRequest(receipt: ChainReceipt, contract: string, sender: string, wanted: ValidatorRequest): boolean {
  return receipt.logs.some((log) => {
    if (!sameHex(log.address, contract)) return false
    try {
      const { source, request } = decodeRequestLog(log)
      return sameHex(source, sender) && sameHex(request.pubkey, wanted.pubkey) && loggedAmount(request) === loggedAmount(wanted)
    } catch (error) {
      if (error instanceof RequestEncodingError) return false
      throw error
    }
  })
}

/** Whether a record knows of a transaction as its own. One whose outcome is known may be held without its versions: none but the outcome has landed. */
export const knowsOf = (record: RecordObject, hash: string): boolean => {
  const of = recordOf(record)
  return [...attemptsOf(of), ...closedOf(of), ...(of.status.outcome === undefined ? [] : [of.status.outcome])].some((one) =>
    sameHex(one.hash, hash),
  )
}

/** The record that a resource's request stands in: the one that is begun, before one that was only made or that it was the owner of once. */
export function ownRequest(log: Pick<TransactionLog, 'ofOwner'>, { uid, ...owner }: RequestOwner): RecordObject | undefined {
  const isOwner = ({ spec }: RecordObject): boolean =>
    spec.owner.kind === owner.kind &&
    spec.owner.namespace === owner.namespace &&
    spec.owner.name === owner.name &&
    (uid === undefined || spec.owner.originUid === uid)
  const wasOwner = (record: RecordObject): boolean =>
    uid !== undefined && closedOf(recordOf(record)).some(({ owner: former }) => former?.originUid === uid)
  const rank = (record: RecordObject): number => (wasOwner(record) ? 2 : isBegun(record) ? 1 : 0)
  return log
    .ofOwner(owner)
    .filter((record) => isOwner(record) || wasOwner(record))
    .toSorted((a, b) => rank(b) - rank(a))[0]
}

/** The record as its owner of this origin sees it: a former owner has its own landing, the present one what was made since. */
export const asSeenBy = (record: RecordObject, uid: string | undefined): RecordObject =>
  uid === undefined ? record : { ...record, status: seenBy(recordOf(record), uid).status }

export const foundBy = ({ network, pubkey }: FoundValidator): FoundValidator => ({ network, pubkey })
