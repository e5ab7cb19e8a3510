import { afterEach, describe, expect, test } from 'vitest'
import { createFakeClock, settle } from '../../../test/integration/kube/fake-clock.ts'
import { createMemoryServer } from '../../../test/integration/kube/memory-server.ts'
import { KubeError } from './errors.ts'
import { createEventRecorder, cutToBytes, type EventRecorderOptions, type EventText, events, type KubeEvent } from './events.ts'
import type { KubeObject } from './objects.ts'

let stopping = new AbortController()
afterEach(() => {
  stopping.abort()
  stopping = new AbortController()
})

const stake: KubeObject = {
  apiVersion: 'test/v1',
  kind: 'Thing',
  metadata: { name: 'one', namespace: 'team', uid: 'u1', resourceVersion: '5' },
}
const signer: KubeObject = { apiVersion: 'test/v1', kind: 'Signer', metadata: { name: 'hot', uid: 'u2', resourceVersion: '6' } }
const text: EventText = { type: 'Normal', reason: 'Broadcast', action: 'Broadcast', note: 'it is out' }

function setUp(options: Partial<EventRecorderOptions> = {}) {
  const clock = createFakeClock()
  const server = createMemoryServer<KubeEvent>(events)
  const recorder = createEventRecorder({
    client: server.client,
    reportingController: 'test.dev/operator',
    reportingInstance: 'pod-0',
    clock,
    ...options,
  })
  const running = recorder.run(stopping.signal)
  const stored = async (): Promise<readonly KubeEvent[]> => (await server.client.list({}, new AbortController().signal)).items
  return { clock, server, recorder, running, stored }
}

test('an event is written whole, in the namespace of what it is about', async () => {
  const { recorder, stored } = setUp()
  recorder.event(stake, { ...text, related: signer })
  await settle()
  expect(await stored()).toEqual([
    expect.objectContaining({
      metadata: expect.objectContaining({ namespace: 'team', name: expect.stringMatching(/^one\.[0-9a-f]{16}$/) }),
      ...{
        type: 'Normal',
        reason: 'Broadcast',
        action: 'Broadcast',
        note: 'it is out',
        reportingController: 'test.dev/operator',
        reportingInstance: 'pod-0',
      },
      eventTime: expect.stringMatching(/\.\d{6}Z$/),
      regarding: { apiVersion: 'test/v1', kind: 'Thing', namespace: 'team', name: 'one', uid: 'u1', resourceVersion: '5' },
      related: { apiVersion: 'test/v1', kind: 'Signer', name: 'hot', uid: 'u2', resourceVersion: '6' },
    }),
  ])
})

test('events of cluster-scoped objects go to the namespace default', async () => {
  const { recorder, stored } = setUp()
  recorder.event(signer, text)
  await settle()
  expect((await stored())[0]?.metadata.namespace).toBe('default')
})

test('repeats are counted in a series, written once in a while, not once each', async () => {
  const { recorder, stored, server, clock } = setUp({ seriesMs: 10_000 })
  recorder.event(stake, text)
  await settle()
  for (let time = 0; time < 50; time++) {
    recorder.event(stake, text)
    await settle()
  }
  await clock.advance(10_000)
  expect(server.calls).toMatchObject({ create: 1, mergePatch: 1 })
  expect((await stored()).map(({ series }) => series?.count)).toEqual([51])
})

test('what differs in its note, or is about another object, is another event', async () => {
  const { recorder, stored } = setUp()
  recorder.event(stake, text)
  recorder.event(stake, { ...text, note: 'something else' })
  recorder.event(signer, text)
  await settle()
  expect(await stored()).toHaveLength(3)
})

test('after six quiet minutes the same is a new event', async () => {
  const { recorder, stored, clock } = setUp()
  recorder.event(stake, text)
  await clock.advance(6 * 60_000)
  recorder.event(stake, text)
  await settle()
  expect(await stored()).toHaveLength(2)
})

test('a refused event is dropped, counted, and holds up nothing', async () => {
  let dropped = 0
  const { recorder, stored, server } = setUp({ onDropped: () => dropped++ })
  server.failNext('create', new KubeError(403, 'Forbidden', 'no'))
  recorder.event(stake, text)
  recorder.event(signer, text)
  await settle()
  expect(await stored()).toHaveLength(1)
  expect(dropped).toBe(1)
})

test('a series that the server has forgotten begins anew', async () => {
  const { recorder, stored, server, clock } = setUp()
  recorder.event(stake, text)
  await settle()
  const [first] = await stored()
  server.remove(`team/${first?.metadata.name}`)
  recorder.event(stake, text)
  await clock.advance(10_000)
  recorder.event(stake, text)
  await settle()
  expect(await stored()).toHaveLength(1)
})

test('no more events wait than the capacity allows', async () => {
  let dropped = 0
  const { recorder, stored } = setUp({ capacity: 10, onDropped: () => dropped++ })
  for (let n = 0; n < 25; n++) recorder.event(stake, { ...text, note: `note ${n}` })
  await settle()
  expect(dropped).toBe(15)
  expect(await stored()).toHaveLength(10)
})

describe('a namespace with many that say the same at once', () => {
  const normal = { burst: 3, perSecond: 1 }
  const other = (n: number, namespace = 'team'): KubeObject => ({
    ...stake,
    metadata: { name: `thing-${n}`, namespace, uid: `thing ${namespace} ${n}`, resourceVersion: '1' },
  })
  const notes = (stored: readonly KubeEvent[]) => stored.map(({ regarding, note }) => `${regarding?.name}: ${note}`)

  test('has an event for each of the first, and then one that speaks for the rest', async () => {
    const { clock, recorder, stored } = setUp({ normal })
    for (let n = 0; n < 40; n++) recorder.event(other(n), text)
    await settle()
    expect(notes(await stored())).toEqual(['thing-0: it is out', 'thing-1: it is out', 'thing-2: it is out'])
    await clock.advance(1_000)
    await settle()
    expect(notes(await stored()).slice(3)).toEqual(['thing-3: it is out (36 more of kind Thing in this namespace: Broadcast)'])
    await clock.advance(1_000)
    recorder.event(other(40), text)
    await settle()
    expect(notes(await stored()).slice(4)).toEqual(['thing-40: it is out'])
  })

  test('takes no event away: of warnings, of other reasons, of other namespaces', async () => {
    const { recorder, stored } = setUp({ normal })
    for (let n = 0; n < 9; n++) recorder.event(other(n), text)
    for (let n = 0; n < 9; n++) recorder.event(other(n), { ...text, type: 'Warning', reason: 'OverLimit' })
    recorder.event(other(1, 'another'), text)
    await settle()
    const written = await stored()
    expect(written.filter(({ type }) => type === 'Warning')).toHaveLength(9)
    expect(written.filter(({ metadata }) => metadata.namespace === 'another')).toHaveLength(1)
  })

  test('does not count a resource for another: what it says of itself is told', async () => {
    const { clock, recorder, stored } = setUp({ normal })
    for (let n = 0; n < 4; n++) recorder.event(other(n), text)
    recorder.event(other(3), { ...text, note: 'it is out again' })
    await clock.advance(5_000)
    await settle()
    expect(notes(await stored()).filter((one) => one.startsWith('thing-3:'))).toHaveLength(2)
    expect(notes(await stored())).toContain('thing-3: it is out again')
  })

  test('keeps the count where its note is long', async () => {
    const { clock, recorder, stored } = setUp({ normal: { burst: 1, perSecond: 1 } })
    for (let n = 0; n < 3; n++) recorder.event(other(n), { ...text, note: 'é'.repeat(1_000) })
    await clock.advance(2_000)
    await settle()
    const note = (await stored())[1]?.note ?? ''
    expect(Buffer.byteLength(note)).toBeLessThanOrEqual(1_024)
    expect(note).toMatch(/… \(1 more of kind Thing in this namespace: Broadcast\)$/)
  })

  test('is told of what waits when the operator ends', async () => {
    const { recorder, stored, running } = setUp({ normal })
    for (let n = 0; n < 9; n++) recorder.event(other(n), text)
    stopping.abort()
    await running
    expect(notes(await stored()).at(-1)).toBe('thing-3: it is out (5 more of kind Thing in this namespace: Broadcast)')
  })
})

test('stopping writes what is left, counts included', async () => {
  const { recorder, stored, running } = setUp()
  recorder.event(stake, text)
  await settle()
  recorder.event(stake, text)
  recorder.event(signer, text)
  stopping.abort()
  await running
  expect((await stored()).map(({ series }) => series?.count)).toEqual([undefined, 2])
})

test('a write whose answer is on its way when all ends is waited for, and its repeats are counted', async () => {
  const server = createMemoryServer<KubeEvent>(events)
  const { clock, recorder, running } = setUp({
    seriesMs: 10_000,
    client: {
      ...server.client,
      // Taken by the server at once; the answer takes a second, unless nobody waits for it any more.
      mergePatch: async (ref, patch, options, signal) => {
        const stored = await server.client.mergePatch(ref, patch, options, signal)
        await clock.sleep(1_000, signal)
        return stored
      },
    },
  })
  recorder.event(stake, text)
  await settle()
  recorder.event(stake, text)
  await clock.advance(10_000)
  recorder.event(stake, text)
  stopping.abort()
  await settle()
  await clock.advance(1_000)
  await clock.advance(1_000)
  await running
  const { items } = await server.client.list({}, new AbortController().signal)
  expect(items.map(({ series }) => series?.count)).toEqual([3])
})

test('an event that can not even be described does not throw', () => {
  const { recorder } = setUp()
  expect(() => recorder.event({} as KubeObject, text)).not.toThrow()
})

test.each([
  { given: 'short', text: 'abc', expected: 'abc' },
  { given: 'just fitting', text: 'a'.repeat(10), expected: 'a'.repeat(10) },
  { given: 'long', text: 'a'.repeat(11), expected: `${'a'.repeat(7)}…` },
  { given: 'long, with a character of several bytes at the cut', text: `${'a'.repeat(6)}é${'a'.repeat(9)}`, expected: `${'a'.repeat(6)}…` },
])('a $given note is cut to at most 10 bytes at a whole character', ({ text: note, expected }) => {
  expect(cutToBytes(note, 10)).toBe(expected)
  expect(Buffer.byteLength(cutToBytes(note, 10))).toBeLessThanOrEqual(10)
})
