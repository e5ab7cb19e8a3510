import { expect, test } from 'vitest'
import { CONFIRM_DELETE_ANNOTATION } from '../../../resources/meta.ts'
import type { ValidatorRequestStatus } from '../../../resources/validator-request.ts'
import { decideRequestDeletion, type LoggedRequest } from './deletion.ts'
import type { RequestKindName } from './request-kind.ts'

const hash = `0x${'aa'.repeat(32)}` as const
const validator = { network: 'hoodi', pubkey: `0x${'11'.repeat(48)}` as const }
const created: ValidatorRequestStatus = { validator, requestId: 'r1' }
const transaction = (state: 'Prepared' | 'Broadcast' | 'Confirmed' | 'Failed') => ({
  ...created,
  transaction: { hash, nonce: 3, state, blockNumber: 7 } as NonNullable<ValidatorRequestStatus['transaction']>,
})
const meta = { name: 'one', namespace: 'team-a', uid: 'u', resourceVersion: '1' }

const open: LoggedRequest = { is: 'open', hash, nonce: 3 }
const landed: LoggedRequest = { is: 'landed', blockNumber: 7 }

test.each<{ given: string; kind?: RequestKindName; status: ValidatorRequestStatus; logged?: LoggedRequest; expected: string }>([
  { given: 'nothing yet: status may have been wiped', status: {}, expected: 'cancel' },
  { given: 'a validator: a request may have been made', status: { validator }, expected: 'cancel' },
  { given: 'a request', status: created, expected: 'cancel' },
  { given: 'a request that was cancelled', status: { ...created, cancelled: true }, expected: 'release' },
  { given: 'a withdrawal that was not sent', kind: 'ValidatorWithdrawal', status: created, expected: 'cancel' },
  { given: 'a withdrawal that was cancelled', kind: 'ValidatorWithdrawal', status: { ...created, cancelled: true }, expected: 'release' },
  { given: 'a record of which nothing can land', status: created, logged: { is: 'idle' }, expected: 'cancel' },
  { given: 'a record of which nothing can land, and no status', status: {}, logged: { is: 'idle' }, expected: 'cancel' },
  {
    given: 'a withdrawal of which nothing can land',
    kind: 'ValidatorWithdrawal',
    status: created,
    logged: { is: 'idle' },
    expected: 'cancel',
  },
  {
    given: 'a withdrawal of which nothing can land, and no status',
    kind: 'ValidatorWithdrawal',
    status: {},
    logged: { is: 'idle' },
    expected: 'cancel',
  },
  { given: 'a transaction in the log alone', kind: 'ValidatorWithdrawal', status: created, logged: open, expected: 'watch' },
  { given: 'a transaction in the log, and no status', status: {}, logged: open, expected: 'watch' },
  { given: 'a transaction that status shows and the log does not have', status: transaction('Confirmed'), expected: 'cancel' },
  { given: 'a prepared transaction', status: transaction('Prepared'), logged: open, expected: 'watch' },
  { given: 'one that was sent', status: transaction('Broadcast'), logged: open, expected: 'watch' },
  { given: 'one that is final, and not decided on', status: transaction('Confirmed'), logged: landed, expected: 'watch' },
  { given: 'one that was reverted', status: transaction('Failed'), logged: { is: 'reverted' }, expected: 'release' },
  {
    given: 'one that was accepted',
    status: { ...transaction('Confirmed'), consensus: { status: 'Accepted' } },
    logged: landed,
    expected: 'release',
  },
  {
    given: 'one that was dropped',
    status: { ...transaction('Confirmed'), consensus: { status: 'Dropped' } },
    logged: landed,
    expected: 'release',
  },
  {
    given: 'a decision that somebody forged',
    status: { ...transaction('Confirmed'), consensus: { status: 'Accepted' } },
    logged: open,
    expected: 'watch',
  },
])('deleted with $given: $expected', ({ kind = 'ValidatorExit', status, logged = { is: 'none' }, expected }) => {
  const decision = decideRequestDeletion({ kind, metadata: meta }, status, logged)
  expect(decision.do).toBe(expected)
  if (decision.do !== 'release')
    expect(decision.message).toContain(`kubectl annotate ${kind.toLowerCase()} one -n team-a ${CONFIRM_DELETE_ANNOTATION}=one`)
  // What may be there to be cancelled is cancelled first; nothing else keeps one that a person has let go.
  const confirmed = { ...meta, annotations: { [CONFIRM_DELETE_ANNOTATION]: 'one' } }
  expect(decideRequestDeletion({ kind, metadata: confirmed }, status, logged)).toMatchObject(
    expected === 'cancel' ? { do: 'cancel', orRelease: 'its deletion was confirmed by annotation' } : { do: 'release' },
  )
})
