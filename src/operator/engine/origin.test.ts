import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ObjectMeta, ORIGIN_ANNOTATION } from '../../resources/meta.ts'
import { externalReference, idempotencyKey, type Origin, originAnnotation, readOrigin } from './origin.ts'

const uid = '0b2f6e1c-8a53-4c7e-9d0a-5f1e2d3c4b5a'
const meta = (annotation?: string, change: Partial<ObjectMeta> = {}): ObjectMeta => ({
  name: 'stake',
  namespace: 'team-a',
  uid,
  resourceVersion: '1',
  ...(annotation === undefined ? {} : { annotations: { [ORIGIN_ANNOTATION]: annotation } }),
  ...change,
})
const origin: Origin = { uid, kind: 'EthereumStake', namespace: 'team-a', name: 'stake' }

describe('the annotation', () => {
  test('is written from what the resource is at first sight, and read back', () => {
    expect(readOrigin('EthereumStake', meta(originAnnotation(meta())))).toEqual({ is: 'own', origin })
  })
  test('may name another uid: a resource restored from a backup keeps its origin', () => {
    expect(readOrigin('EthereumStake', meta(originAnnotation(meta()), { uid: 'another' }))).toEqual({ is: 'own', origin })
  })
  test.each([
    { annotation: `${uid}/team-b/stake`, what: 'another namespace' },
    { annotation: `${uid}/team-a/other`, what: 'another name' },
    { annotation: `${uid}/team-a/stake/more`, what: 'too many parts' },
    { annotation: `${uid}/team-a`, what: 'too few parts' },
    { annotation: '', what: 'nothing' },
    { annotation: '/team-a/stake', what: 'no uid' },
    { annotation: `${'x'.repeat(65)}/team-a/stake`, what: 'a uid too long' },
    { annotation: 'a b/team-a/stake', what: 'a uid with a space' },
    { annotation: 'ü/team-a/stake', what: 'a uid that no header may hold' },
    { annotation: 'a\nb/team-a/stake', what: 'a uid with a line break' },
  ])('with $what marks a copy', ({ annotation }) => {
    expect(readOrigin('EthereumStake', meta(annotation)).is).toBe('foreign')
  })
  test.each(['foo', `${uid}/team-a`, '', `${uid}/a/b/c`])('edited to %j is said to be that, and names no resource', (annotation) => {
    expect(readOrigin('EthereumStake', meta(annotation))).toEqual({
      is: 'foreign',
      says: expect.stringMatching(/was edited, and can't be read/),
    })
  })
  test('that is missing is no copy', () => {
    expect(readOrigin('EthereumStake', meta())).toEqual({ is: 'absent' })
  })
})

describe('the idempotency key', () => {
  test('is the origin uid, twelve hex of the place, the step, and the attempt if there is one', () => {
    // The first 12 hex of sha256("EthereumStake/team-a/stake").
    expect(idempotencyKey(origin, 'stake')).toBe(`${uid}/1b97de637578/stake`)
    expect(idempotencyKey(origin, 'stake', 2)).toBe(`${idempotencyKey(origin, 'stake')}/2`)
  })
  test('of a forged uid reaches nobody else: the place is part of it', () => {
    expect(idempotencyKey({ ...origin, namespace: 'team-b' }, 'stake')).not.toBe(idempotencyKey(origin, 'stake'))
    expect(idempotencyKey({ ...origin, name: 'other' }, 'stake')).not.toBe(idempotencyKey(origin, 'stake'))
    expect(idempotencyKey({ ...origin, kind: 'SolanaStake' }, 'stake')).not.toBe(idempotencyKey(origin, 'stake'))
  })
  test('and the reference have at most 255 printable characters, are always the same, and differ by resource', () => {
    const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?$/)
    const namespace = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)
    fc.assert(
      fc.property(fc.uuid(), namespace, name, name, (someUid, place, one, other) => {
        const a: Origin = { uid: someUid, kind: 'ValidatorWithdrawal', namespace: place, name: one }
        const b: Origin = { ...a, name: other }
        for (const text of [idempotencyKey(a, 'withdrawal', 99), externalReference(a)]) {
          expect(text.length).toBeLessThanOrEqual(255)
          expect(text).toMatch(/^[!-~]+$/)
        }
        expect(idempotencyKey(a, 'stake')).toBe(idempotencyKey({ ...a }, 'stake'))
        if (one !== other) {
          expect(idempotencyKey(a, 'stake')).not.toBe(idempotencyKey(b, 'stake'))
          expect(externalReference(a)).not.toBe(externalReference(b))
        }
      }),
    )
  })
  test('two names that differ beyond the cut have two references', () => {
    const long = { ...origin, namespace: 'n'.repeat(63), name: `${'x'.repeat(252)}a` }
    expect(externalReference(long)).toHaveLength(255)
    expect(externalReference(long)).not.toBe(externalReference({ ...long, name: `${'x'.repeat(252)}b` }))
  })
})
