import { describe, expect, test } from 'vitest'
import { signedFor } from '../../resources/signed-for.ts'
import type { StakingTransactionSpec, TransactionAttempt } from '../../resources/staking-transaction.ts'
import { notedOwner } from './noted-owner.ts'
import type { RecordObject } from './store.ts'

const ownedBy = (name: string, generation: number) => ({
  generation,
  owner: { kind: 'SolanaStake', namespace: 'team-a', name, originUid: name },
  signer: 'payer',
  from: `key of ${name}`,
  network: 'devnet',
})
const attempt = (generation?: number): TransactionAttempt => ({
  hash: `s${generation ?? ''}`,
  kind: 'Call',
  ...(generation === undefined ? {} : { generation }),
  at: '2026-11-29T10:00:00Z',
})
const record = (attempts: readonly TransactionAttempt[], spec: Partial<StakingTransactionSpec>): RecordObject => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'StakingTransaction',
  metadata: { name: 'one', uid: 'u', resourceVersion: '1' },
  spec: { ...ownedBy('now', 3), chain: 'Solana', purpose: 'SolanaWithdrawal', subject: 's', amount: '5 SOL', ...spec },
  status: { attempts: [...attempts] },
})

describe('whom an attempt was signed for', () => {
  const { spec } = record([], { earlier: [ownedBy('second', 2), ownedBy('first', 1)] })
  test.each([
    { given: 'of an earlier generation', of: attempt(2), name: 'second' },
    { given: 'of the present one', of: attempt(3), name: 'now' },
    { given: 'without one, as earlier versions wrote it for Solana', of: attempt(), name: 'first' },
  ])('$given', ({ of, name }) => {
    expect(signedFor(spec, of).owner.name).toBe(name)
  })
  test('without any generation, of a record that has never passed on', () => {
    expect(signedFor(record([], {}).spec, attempt()).owner.name).toBe('now')
  })
})

describe('a record that passes on notes whose it was', () => {
  test.each<{
    where: string
    attempts: readonly TransactionAttempt[]
    earlier?: StakingTransactionSpec['earlier']
    noted: readonly number[] | undefined
  }>([
    { where: 'something was signed for that one', attempts: [attempt(3)], noted: [3] },
    { where: 'nothing was ever signed: not at all', attempts: [], noted: undefined },
    {
      where: 'something was signed for those before alone: not at all',
      attempts: [attempt(1)],
      earlier: [ownedBy('a', 1)],
      noted: undefined,
    },
    {
      where: 'an attempt without a generation is of those before: not at all',
      attempts: [attempt()],
      earlier: [ownedBy('a', 1)],
      noted: undefined,
    },
    { where: 'it is noted already', attempts: [attempt(3)], earlier: [ownedBy('a', 3)], noted: undefined },
    {
      where: 'an earlier version noted those whom nothing was signed for: they go',
      attempts: [attempt(), attempt(3)],
      earlier: [ownedBy('a', 0), ownedBy('b', 1), ownedBy('c', 2)],
      noted: [0, 3],
    },
  ])('$where', ({ attempts, earlier, noted }) => {
    const { earlier: now } = notedOwner(record(attempts, earlier === undefined ? {} : { earlier }))
    expect(now?.map(({ generation }) => generation)).toEqual(noted)
  })

  test('so that its list is never longer than its attempts, however often it passes on', () => {
    const full = Array.from({ length: 96 }, (_, generation) => ownedBy(`owner-${generation}`, generation))
    const passed = record([attempt(), attempt(96)], { ...ownedBy('now', 96), earlier: full })
    expect(notedOwner(passed).earlier?.map(({ owner }) => owner.name)).toEqual(['owner-0', 'now'])
  })
})
