import { describe, expect, test } from 'vitest'
import { keptMetadata } from './kept-metadata.ts'
import type { ObjectMeta } from './objects.ts'

const known = {
  name: 'one',
  namespace: 'team-a',
  uid: 'u',
  resourceVersion: '7',
  generation: 2,
  creationTimestamp: '2026-01-01T00:00:00Z',
  deletionTimestamp: '2026-01-02T00:00:00Z',
  finalizers: ['theirs', 'mine'],
} as const
const numbered = (count: number, prefix: string): string[] => Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
const sizeOf = (metadata: ObjectMeta): number => JSON.stringify(metadata).length

test('what every object is known by is kept as it is', () => {
  const given = {
    ...known,
    labels: { a: 'b' },
    annotations: { c: 'd' },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'p' }],
    managedFields: [{}],
  }
  expect(keptMetadata(given, {})).toEqual(known)
})

test('what an object lacks is not made up', () => {
  const bare = { name: 'one', uid: 'u', resourceVersion: '1' }
  expect(keptMetadata(bare, { annotations: ['read'], labels: true, finalizers: ['mine'] })).toEqual(bare)
})

describe('annotations', () => {
  const keep = (annotations: Record<string, string>) =>
    keptMetadata({ ...known, annotations }, { annotations: ['read', 'also'] }).annotations
  test('are kept where they are read', () => {
    expect(keep({ read: '1', unread: '2' })).toEqual({ read: '1' })
  })
  test('are none where none is read', () => {
    expect(keep({ unread: '2' })).toBeUndefined()
  })
  test('of any length take little, and differ when the whole values do', () => {
    const long = 'x'.repeat(200_000)
    const [one, other] = [keep({ read: `${long}1` })?.read, keep({ read: `${long}2` })?.read]
    expect(one?.length).toBeLessThan(200)
    expect(one).not.toBe(other)
    expect(keep({ read: `${long}1` })?.read).toBe(one)
  })
  test('of a usual length are kept whole', () => {
    expect(keep({ read: 'x'.repeat(512) })).toEqual({ read: 'x'.repeat(512) })
  })
})

describe('labels', () => {
  test.each([
    { given: 'some', labels: { team: 'a' }, kept: { team: 'a' } },
    { given: 'none', labels: undefined, kept: undefined },
    {
      given: 'more than are held, so that no selector selects by a part of them',
      labels: Object.fromEntries(numbered(10_000, 'label').map((name) => [name, 'x'])),
      kept: undefined,
    },
  ])('with $given', ({ labels, kept }) => {
    expect(keptMetadata({ ...known, ...(labels && { labels }) }, { labels: true }).labels).toEqual(kept)
  })
})

describe('finalizers', () => {
  const flooded = (finalizers: string[]) => keptMetadata({ ...known, finalizers }, { finalizers: ['mine', 'absent'] })
  test.each([
    { what: 'many', others: numbered(5_000, 'theirs.dev/f') },
    { what: 'long', others: numbered(15, `${'x'.repeat(240)}.dev/f`) },
  ])('that are too $what are cut to those that are looked for, and the object is marked', ({ others }) => {
    const kept = flooded([...others, 'mine'])
    expect(kept.finalizers).toEqual(['mine'])
    expect(kept.incomplete).toBe(true)
    expect(sizeOf(kept)).toBeLessThan(500)
  })
  test('of a usual number are all there, and the object is not marked', () => {
    const kept = flooded(['a', 'b', 'mine'])
    expect(kept.finalizers).toEqual(['a', 'b', 'mine'])
    expect(kept.incomplete).toBeUndefined()
  })
  test('once left out stay marked as left out', () => {
    expect(keptMetadata(flooded(numbered(5_000, 'f')), {}).incomplete).toBe(true)
  })
})
