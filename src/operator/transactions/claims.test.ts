import { expect, test } from 'vitest'
import { MOST_CLAIMS, openClaims, withClaims } from './claims.ts'
import type { TransactionRecord } from './protocol.ts'

const record = (status: TransactionRecord['status'] = {}): TransactionRecord => ({ uid: 'u1', generation: 1, status })
const claims = (count: number, from = 0) => Array.from({ length: count }, (_, n) => ({ hash: `0x${from + n}`, nonce: from + n }))

test('a claim is kept once, whatever the case of its hash, and the record’s own transactions are none', () => {
  const attempts = [{ hash: '0xAA', kind: 'Call' as const, nonce: 1, generation: 1, at: '2026-11-28T12:00:00Z' }]
  const { claims: kept } = withClaims(record({ attempts, claims: [{ hash: '0xbb' }] }), [
    { hash: '0xBB' },
    { hash: '0xaa', nonce: 1 },
    { hash: '0xcc' },
    { hash: '0xCC' },
    { nonce: 7 },
  ])
  expect(kept).toEqual([{ hash: '0xbb' }, { hash: '0xcc' }, { nonce: 7 }])
})

test('no claim is left out: those that a record can’t hold stop the import', () => {
  const full = record(withClaims(record(), claims(MOST_CLAIMS)))
  expect(openClaims(full, [])).toHaveLength(MOST_CLAIMS)
  expect(withClaims(full, claims(5))).toBe(full.status)
  expect(() => withClaims(full, claims(1, MOST_CLAIMS))).toThrow(/1025 transactions for one purpose/)
})
