import { expect, test } from 'vitest'
import { createTestClock } from '../testing/test-clock.ts'
import { rememberEvents } from './remembered-events.ts'

const object = (uid: string) => ({ apiVersion: 'v1', kind: 'Thing', metadata: { name: uid, uid, resourceVersion: '1' } })
const text = (note: string) => ({ type: 'Normal' as const, reason: 'Said', action: 'Say', note })

test('events go on to the recorder, and the last ones of each resource are remembered, a repeated one once', () => {
  const told: string[] = []
  const events = rememberEvents({ event: (_object, { note }) => void told.push(note) }, createTestClock())
  for (const note of ['one', 'two', 'two']) events.event(object('a'), text(note))
  expect(told).toEqual(['one', 'two', 'two'])
  expect(events.of('a').map(({ note, count }) => ({ note, count }))).toEqual([
    { note: 'one', count: 1 },
    { note: 'two', count: 2 },
  ])
  expect(events.of('b')).toEqual([])
})

test('what is remembered is bounded: of a resource, of a note, and of all resources', () => {
  const events = rememberEvents({ event: () => {} }, createTestClock())
  for (let at = 0; at < 100; at++) events.event(object('busy'), text(`${at} ${'x'.repeat(5_000)}`))
  expect(events.of('busy')).toHaveLength(10)
  expect(events.of('busy').at(-1)?.note).toHaveLength(1_024)
  for (let at = 0; at < 1_000; at++) events.event(object(`uid-${at}`), text('said'))
  expect(events.of('busy')).toEqual([])
  expect(events.of('uid-0')).toHaveLength(1)
})
