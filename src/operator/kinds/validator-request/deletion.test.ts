import { expect, test } from 'vitest'
import { CONFIRM_DELETE_ANNOTATION } from '../../../resources/meta.ts'
import type { ValidatorRequestStatus } from '../../../resources/validator-request.ts'
import { decideRequestDeletion } from './deletion.ts'
import type { RequestKindName } from './steps.ts'

const hash = `0x${'aa'.repeat(32)}`
const validator = { network: 'hoodi', pubkey: `0x${'11'.repeat(48)}` }
const created: ValidatorRequestStatus = { validator, requestId: 'r1' }
const transaction = (state: 'Prepared' | 'Broadcast' | 'Confirmed' | 'Failed') => ({
  ...created,
  transaction: { hash, nonce: 3, state, blockNumber: 7 } as NonNullable<ValidatorRequestStatus['transaction']>,
})
const meta = { name: 'one', namespace: 'team-a', uid: 'u', resourceVersion: '1' }

test.each<{ given: string; kind?: RequestKindName; status: ValidatorRequestStatus; inLedger?: boolean; expected: string }>([
  { given: 'nothing yet', status: {}, expected: 'release' },
  { given: 'a validator: a request may have been made', status: { validator }, expected: 'undo' },
  { given: 'a request', status: created, expected: 'undo' },
  { given: 'a request that was cancelled', status: { ...created, cancelled: true }, expected: 'release' },
  { given: 'a withdrawal that was not sent', kind: 'ValidatorWithdrawal', status: created, expected: 'release' },
  { given: 'a transaction in the ledger alone', kind: 'ValidatorWithdrawal', status: created, inLedger: true, expected: 'undo' },
  { given: 'a transaction in the ledger, and no status', status: {}, inLedger: true, expected: 'undo' },
  { given: 'a prepared transaction', status: transaction('Prepared'), expected: 'watch' },
  { given: 'one that was sent', status: transaction('Broadcast'), inLedger: true, expected: 'watch' },
  { given: 'one that is final, and not decided on', status: transaction('Confirmed'), expected: 'watch' },
  { given: 'one that was reverted', status: transaction('Failed'), inLedger: true, expected: 'release' },
  { given: 'one that was accepted', status: { ...transaction('Confirmed'), consensus: { status: 'Accepted' } }, expected: 'release' },
  { given: 'one that was dropped', status: { ...transaction('Confirmed'), consensus: { status: 'Dropped' } }, expected: 'release' },
  {
    given: 'a decision that somebody forged',
    status: { ...transaction('Broadcast'), consensus: { status: 'Accepted' } },
    expected: 'watch',
  },
])('deleted with $given: $expected', ({ kind = 'ValidatorExit', status, inLedger = false, expected }) => {
  const decision = decideRequestDeletion({ kind, metadata: meta }, status, inLedger)
  expect(decision.do).toBe(expected)
  if (decision.do !== 'release')
    expect(decision.message).toContain(`kubectl annotate ${kind.toLowerCase()} one -n team-a ${CONFIRM_DELETE_ANNOTATION}=one`)
  const confirmed = { ...meta, annotations: { [CONFIRM_DELETE_ANNOTATION]: 'one' } }
  expect(decideRequestDeletion({ kind, metadata: confirmed }, status, inLedger).do).toBe('release')
})
