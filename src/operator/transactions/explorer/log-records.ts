import type { TransactionAttempt } from '../../../resources/staking-transaction.ts'
import { MAX_REMAKES, type TransactionRecord } from '../protocol.ts'
import { CANCEL, codeOfId, hashOf, idOf, subjectOf, transactionId } from './codes.ts'
import { type Config, isFor, type Rules } from './config.ts'

export interface LogRecord {
  readonly number: number
  readonly purpose: number
  /** Counts records that were made for this purpose. */
  readonly uid: number
  readonly owner: number
  readonly lane: number
  readonly record: TransactionRecord
  readonly place: number
  /** Something of it may land. */
  readonly isOpen: boolean
  readonly isLanded: boolean
  readonly isSettled: boolean
  readonly isCancelling: boolean
  /** Codes of the versions under the place in use: a set of bits, and the one that is sent: the cancel, or the last call. */
  readonly versions: number
  readonly last: number
  readonly mayTake: 'yes' | 'has-place' | 'settled' | 'too-many-remakes'
  readonly mayBeHandedOver: boolean
  readonly mayBump: boolean
  readonly mayCancel: boolean
}

/** Records by number: each that ever comes up once, with what the rules say of it alone. */
export type LogRecords = ReturnType<typeof createLogRecords>

export const uidOf = (purpose: number, uid: number): string => `purpose${purpose}-${uid}`

export function createLogRecords(config: Config, rules: Rules) {
  const records: (LogRecord | undefined)[] = [undefined]
  const numbers = new Map<string, number>()

  /** After so many own cancels the product only waits, each time longer: here a world ends with them, and one that needed none of them is found out. */
  const mayTake = (record: TransactionRecord): LogRecord['mayTake'] => {
    const may = rules.mayTakePlace(record, 0)
    return may === 'yes' && (record.status.closed?.length ?? 0) > MAX_REMAKES ? 'too-many-remakes' : may
  }

  const intern = (
    made: Pick<LogRecord, 'purpose' | 'uid' | 'owner' | 'lane'> & { generation: number; status: TransactionRecord['status'] },
  ) => {
    const { purpose, uid, owner, lane, generation, status } = made
    const key = JSON.stringify([purpose, uid, owner, lane, generation, status.place, status.attempts, status.closed, status.outcome])
    const known = numbers.get(key)
    if (known !== undefined) return known
    const record: TransactionRecord = { uid: uidOf(purpose, uid), subject: subjectOf(purpose), generation, status }
    const open = rules.mayAttempt(record, 'Call')
    const versions = rules.openAttempts(record)
    const number = records.length
    if (number > 0xffff) throw new Error('more than 65,535 different records: the world is too large for states of 16-bit words')
    records.push({
      number,
      purpose,
      uid,
      owner,
      lane,
      record,
      place: status.place ?? -1,
      isOpen: status.place !== undefined && status.outcome === undefined,
      isLanded: status.outcome?.is === 'Landed',
      isSettled: status.outcome !== undefined,
      isCancelling: rules.isCancelling(record),
      versions: versions.reduce((bits, { hash }) => bits | (1 << codeOfId(idOf(hash))), 0),
      last: rules.isCancelling(record) ? CANCEL : versions.length === 0 ? 0 : codeOfId(idOf(versions[versions.length - 1]?.hash ?? '0x1')),
      mayTake: mayTake(record),
      mayBeHandedOver: !isFor(config, 'handOverClosed') || rules.mayBeHandedOver(record),
      mayBump: open === 'yes',
      mayCancel: rules.mayAttempt(record, 'Cancel') === 'yes',
    })
    numbers.set(key, number)
    return number
  }
  const recordOf = (number: number): LogRecord => {
    const record = records[number]
    if (record === undefined) throw new Error(`no record ${number}`)
    return record
  }
  const attempt = (lane: number, nonce: number, code: number, found: boolean): TransactionAttempt => ({
    hash: hashOf(transactionId(lane, nonce, code)),
    kind: code === CANCEL ? 'Cancel' : 'Call',
    nonce,
    ...(found ? { found } : {}),
    at: '',
  })
  const withStatus = (of: LogRecord, status: TransactionRecord['status']): number => {
    if (status === of.record.status) return of.number
    const { purpose, uid, owner, lane, record } = of
    const written = isFor(config, 'versionsOfLane') ? status : { ...status, attempts: withoutGeneration(status.attempts) }
    return intern({ purpose, uid, owner, lane, generation: record.generation, status: written })
  }
  const withoutGeneration = (attempts: readonly TransactionAttempt[] | undefined): TransactionAttempt[] =>
    (attempts ?? []).map(({ generation: _generation, ...attempt }) => attempt)

  return {
    recordOf,
    attempt,
    withStatus,
    create: (purpose: number, uid: number, owner: number, lane: number): number =>
      intern({ purpose, uid, owner, lane, generation: 1, status: {} }),
    handOver: (number: number, owner: number, lane: number): number => {
      const { purpose, uid, record } = recordOf(number)
      return intern({ purpose, uid, owner, lane, generation: Math.min(record.generation + 1, 7), status: record.status })
    },
    size: () => records.length - 1,
  }
}
