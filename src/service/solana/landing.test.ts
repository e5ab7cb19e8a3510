import { describe, expect, test } from 'vitest'
import type { Landing } from '../../chains/solana/expiry.ts'
import type { SolanaTransactionStatus } from '../store/solana-schema.ts'
import { isLive, signaturesOf, statusAfter } from './landing.ts'

const row = (status: SolanaTransactionStatus) => ({ status, signature: 'now', earlier_signatures: ['before'], failure_reason: null })
const landed = (index: number, final: boolean, failed = false): Landing => ({
  kind: 'landed',
  index,
  final,
  status: {
    slot: 5n,
    commitment: final ? 'finalized' : 'confirmed',
    ...(failed ? { failure: { name: 'Custom', instruction: 2, custom: 16 } } : {}),
  },
})

describe('what a look at the cluster makes of a transaction', () => {
  test.each<{ status: SolanaTransactionStatus; landing: Landing; becomes: object }>([
    { status: 'awaiting_submission', landing: { kind: 'may-land', blocksLeft: 3n }, becomes: { status: 'awaiting_submission' } },
    { status: 'submitted', landing: { kind: 'may-land', blocksLeft: 3n }, becomes: { status: 'submitted', signature: 'now' } },
    { status: 'submitted', landing: { kind: 'unknown' }, becomes: { status: 'submitted' } },
    { status: 'awaiting_submission', landing: { kind: 'expired' }, becomes: { status: 'expired', signature: 'now' } },
    { status: 'submitted', landing: { kind: 'expired' }, becomes: { status: 'expired' } },
    { status: 'awaiting_submission', landing: landed(1, false), becomes: { status: 'submitted', signature: 'now', failure_reason: null } },
    // Only a final block says that it failed: another fork may have it succeed.
    { status: 'submitted', landing: landed(1, false, true), becomes: { status: 'submitted', failure_reason: null } },
    { status: 'submitted', landing: landed(1, true), becomes: { status: 'confirmed', signature: 'now' } },
    { status: 'awaiting_submission', landing: landed(0, true), becomes: { status: 'confirmed', signature: 'before' } },
    {
      status: 'submitted',
      landing: landed(1, true, true),
      becomes: { status: 'failed', signature: 'now', failure_reason: 'instruction 3: Custom 16' },
    },
    { status: 'expired', landing: landed(1, true), becomes: { status: 'confirmed' } },
  ])('$status, $landing.kind: $becomes.status', ({ status, landing, becomes }) => {
    expect(statusAfter(row(status), landing)).toMatchObject(becomes)
  })
})

test('signatures of earlier attempts are looked for as well', () => {
  expect(signaturesOf(row('submitted'))).toEqual(['before', 'now'])
  expect(signaturesOf({ signature: null, earlier_signatures: [] })).toEqual([])
})

test('only what may still land is live', () => {
  const all: SolanaTransactionStatus[] = ['awaiting_submission', 'submitted', 'confirmed', 'failed', 'expired']
  expect(all.filter((status) => isLive({ status }))).toEqual(['awaiting_submission', 'submitted'])
})
