import { afterEach, describe, expect, test } from 'vitest'
import { createFakeClock, settle } from '../../../test/integration/kube/fake-clock.ts'
import { createMemoryServer } from '../../../test/integration/kube/memory-server.ts'
import { KubeError, KubeTransportError } from './errors.ts'
import { createInformer, type InformerOptions } from './informer.ts'
import type { KubeObject } from './objects.ts'
import { EtcdSetBack } from './revisions.ts'

interface Thing extends KubeObject {
  readonly spec?: { readonly colour?: string }
}
const things = { group: 'test', version: 'v1', plural: 'things', kind: 'Thing', namespaced: true }

let stopping = new AbortController()
afterEach(() => {
  stopping.abort()
  stopping = new AbortController()
})

function setUp(options: Partial<InformerOptions<Thing>> = {}) {
  const clock = createFakeClock()
  const server = createMemoryServer<Thing>(things)
  const changes: string[] = []
  const ends: string[] = []
  const informer = createInformer<Thing>({
    client: server.client,
    clock,
    random: () => 0.5,
    page: { start: 2, most: 2 },
    backoff: { baseMs: 100, maxMs: 1000 },
    metrics: { watchEnded: (reason) => ends.push(reason) },
    onChange: (key, { type, own }) => changes.push(`${type} ${key}${own ? ' (own)' : ''}`),
    ...options,
  })
  const thing = (name: string, colour?: string) => ({
    apiVersion: 'test/v1',
    kind: 'Thing',
    metadata: { name, namespace: 'ns' },
    ...(colour !== undefined && { spec: { colour } }),
  })
  const start = async (): Promise<void> => {
    void informer.run(stopping.signal)
    await settle()
  }
  const keys = (): string[] => [...informer.list()].map(({ metadata }) => metadata.name).sort()
  return { clock, server, changes, ends, informer, thing, start, keys }
}

test('it lists in pages, then is synced, then follows', async () => {
  const { server, informer, thing, start, changes, keys } = setUp()
  for (const name of ['a', 'b', 'c', 'd', 'e']) server.write(thing(name))
  expect(informer.hasSynced()).toBe(false)
  await start()
  expect(server.calls.list).toBe(3)
  expect(informer.hasSynced()).toBe(true)
  await informer.whenSynced(stopping.signal)
  server.write(thing('f'))
  server.write(thing('a'))
  server.remove('ns/b')
  expect(keys()).toEqual(['a', 'c', 'd', 'e', 'f'])
  expect(changes.slice(5)).toEqual(['added ns/f', 'updated ns/a', 'deleted ns/b'])
})

describe('a list of large objects', () => {
  test('is asked for in smaller pages until each answer is one that is taken', async () => {
    const { server, thing, start, informer } = setUp({ page: { start: 8, most: 8, targetBytes: 3_000, maxBytes: 5_000 } })
    for (let index = 0; index < 20; index++) server.write(thing(`large-${index}`, 'x'.repeat(index < 10 ? 10 : 2_000)))
    await start()
    expect(informer.size).toBe(20)
    expect(server.calls.list).toBeLessThan(30)
  })

  test.each([
    { error: new KubeTransportError('TIMEOUT', 'no answer') },
    { error: new KubeError(504, 'Timeout', 'the server took too long') },
  ])('that the server does not put together in time ($error.name) is asked for in smaller pages the next time', async ({ error }) => {
    const limits: (number | undefined)[] = []
    const { server, thing, start, informer, clock } = setUp({ page: { start: 64, most: 64 } })
    const list = server.client.list
    server.client.list = (options, signal) => {
      limits.push(options.limit)
      return list(options, signal)
    }
    server.write(thing('a'))
    server.failNext('list', error)
    server.failNext('list', error)
    await start()
    await clock.advance(1_000)
    expect(limits).toEqual([64, 8, 1])
    expect(informer.hasSynced()).toBe(true)
  })

  test('with one that is too large even by itself fails and says after which, and is tried again with a back-off', async () => {
    const errors: unknown[] = []
    const { server, thing, start, informer, clock } = setUp({
      page: { start: 8, most: 8, targetBytes: 3_000, maxBytes: 5_000 },
      metrics: { failed: (error) => errors.push(error) },
    })
    const { client } = server
    const list = client.list
    client.list = (options, signal) => list({ ...options, maxBytes: options.maxBytes ?? 9_000 }, signal)
    server.write(thing('a'))
    server.write(thing('huge', 'x'.repeat(10_000)))
    await start()
    expect(String(errors[0])).toContain('list things: the object after "ns/a" is too large')
    const asked = server.calls.list
    expect(asked).toBeLessThan(6)
    await clock.advance(99)
    expect(server.calls.list).toBe(asked)
    server.write(thing('huge', 'small'))
    await clock.advance(1)
    expect(informer.hasSynced()).toBe(true)
    expect(informer.size).toBe(2)
  })
})

test('what is held of an object is without the metadata that nobody reads, by whatever way it came', async () => {
  const { server, thing, start, informer } = setUp()
  const labels = { unread: 'x' }
  const labelled = (name: string) => ({
    ...thing(name),
    metadata: { name, namespace: 'ns', labels, annotations: labels, managedFields: [labels] },
  })
  server.write(labelled('listed'))
  await start()
  server.write(labelled('watched'))
  informer.put(server.write(labelled('put'), 'quietly'))
  expect([...informer.list()].map(({ metadata }) => Object.keys(JSON.parse(JSON.stringify(metadata))))).toEqual(
    Array.from({ length: 3 }, () => ['name', 'namespace', 'uid', 'resourceVersion']),
  )
})

test('who waits for the sync may give up', async () => {
  const { informer } = setUp()
  const impatient = new AbortController()
  const waiting = informer.whenSynced(impatient.signal)
  impatient.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
})

describe('when the watch ends', () => {
  test.each([
    { how: 'as the server ends it', error: undefined },
    { how: 'as the connection breaks', error: new KubeTransportError('ECONNRESET', 'reset') },
  ])('$how, the next one goes on from the last version without a list', async ({ error }) => {
    const { server, thing, start, informer, changes } = setUp()
    await start()
    const last = server.write(thing('a')).metadata.resourceVersion
    server.endWatches(error)
    await settle()
    expect(server.watchedFrom).toBe(last)
    // The second asks for one object, to see that the server has not gone back.
    expect(server.calls.list).toBe(2)
    server.write(thing('b'))
    expect(informer.size).toBe(2)
    expect(changes).toEqual(['added ns/a', 'added ns/b'])
  })

  test('a bookmark moves the version on', async () => {
    const { server, thing, start } = setUp()
    await start()
    server.setRevision(500)
    server.bookmark()
    server.endWatches()
    await settle()
    expect(server.watchedFrom).toBe('500')
    expect(server.write(thing('a')).metadata.resourceVersion).toBe('501')
  })

  test.each([
    { error: new KubeError(410, 'Expired', 'too old'), ends: 'expired' },
    { error: new KubeError(403, 'Forbidden', 'no'), ends: 'failed' },
    { error: new KubeError(500, 'InternalError', 'oops'), ends: 'failed' },
    { error: new KubeError(200, 'NotJson', 'malformed'), ends: 'failed' },
    { error: new TypeError('a bug'), ends: 'failed' },
  ])('with $error.message, it lists afresh and misses neither changes nor deletions', async ({ error, ends }) => {
    const context = setUp()
    const { server, thing, start, clock, keys, changes } = context
    server.write(thing('stays'))
    server.write(thing('goes'))
    await start()
    server.remove('ns/goes', 'quietly')
    server.write(thing('comes'), 'quietly')
    server.endWatches(error)
    await clock.advance(200)
    expect(server.calls.list).toBe(2)
    expect(keys()).toEqual(['comes', 'stays'])
    expect(changes.slice(2).sort()).toEqual(['added ns/comes', 'deleted ns/goes'])
    expect(context.ends).toEqual([ends])
    expect(server.watching).toBe(1)
  })
})

test('failures of the list are backed off from, until one works', async () => {
  const { server, thing, start, clock, informer } = setUp()
  for (let time = 0; time < 3; time++) server.failNext('list', new KubeError(404, 'NotFound', 'the CRD is not there yet'))
  await start()
  server.write(thing('a'))
  expect(server.calls.list).toBe(1)
  await clock.advance(99)
  expect(server.calls.list).toBe(1)
  await clock.advance(1)
  expect(server.calls.list).toBe(2)
  await clock.advance(200)
  expect(server.calls.list).toBe(3)
  expect(informer.hasSynced()).toBe(false)
  await clock.advance(400)
  expect(informer.hasSynced()).toBe(true)
  expect(informer.size).toBe(1)
})

test('after a sign of life the waits start over', async () => {
  const { server, thing, start, clock } = setUp()
  for (let time = 0; time < 3; time++) server.failNext('list', new KubeError(500, 'InternalError', 'oops'))
  await start()
  await clock.advance(700)
  server.write(thing('a'))
  server.endWatches(new KubeError(500, 'InternalError', 'oops'))
  await clock.advance(99)
  expect(server.calls.list).toBe(4)
  await clock.advance(1)
  expect(server.calls.list).toBe(5)
})

test('a list that fails in the middle changes nothing that it did not see, and deletes nothing', async () => {
  const { server, thing, start, clock, keys } = setUp()
  for (const name of ['a', 'b', 'c', 'd']) server.write(thing(name))
  await start()
  server.failNext('list', new KubeError(410, 'Expired', 'the continue token is too old'))
  server.endWatches(new KubeError(410, 'Expired', 'too old'))
  await clock.advance(0)
  expect(keys()).toEqual(['a', 'b', 'c', 'd'])
  await clock.advance(1000)
  expect(server.watching).toBe(1)
})

test('a server that ends every watch at once is not asked in a tight loop', async () => {
  const { server, start, clock } = setUp()
  await start()
  for (let time = 0; time < 50; time++) {
    server.endWatches()
    await clock.advance(50)
  }
  expect(server.calls.watch).toBeLessThan(12)
})

test('a watch that is silent for too long is cut and resumed', async () => {
  const { server, start, clock, ends } = setUp({ idleWatchMs: 10_000 })
  await start()
  await clock.advance(9_000)
  server.bookmark()
  await clock.advance(9_999)
  expect(ends).toEqual([])
  await clock.advance(1)
  expect(ends).toEqual(['idle'])
  await clock.advance(100)
  expect(server.watching).toBe(1)
  // The second asks for one object, to see that the server has not gone back.
  expect(server.calls.list).toBe(2)
})

test('it lists afresh now and then when asked to', async () => {
  const { server, thing, start, clock, keys } = setUp({ relistMs: 60_000 })
  await start()
  server.write(thing('missed'), 'quietly')
  await clock.advance(60_000)
  expect(keys()).toEqual(['missed'])
})

test('an object deleted and made again under its name while the watch was down is seen as deleted, then added', async () => {
  const { server, thing, start, clock, changes } = setUp()
  const first = server.write(thing('a'))
  await start()
  server.remove('ns/a', 'quietly')
  const second = server.write(thing('a'), 'quietly')
  expect(second.metadata.uid).not.toBe(first.metadata.uid)
  server.endWatches(new KubeError(410, 'Expired', 'too old'))
  await clock.advance(200)
  expect(changes).toEqual(['added ns/a', 'deleted ns/a', 'added ns/a'])
})

test('a handler that throws holds up nothing, and is told again until it has heard', async () => {
  let failuresLeft = 2
  const heard: string[] = []
  const { server, thing, start, clock } = setUp({
    onChange: (key, { type }) => {
      if (key === 'ns/poison' && failuresLeft-- > 0) throw new Error('a bug')
      heard.push(`${type} ${key}`)
    },
  })
  await start()
  server.write(thing('poison'))
  server.write(thing('fine'))
  server.write(thing('poison'))
  expect(heard).toEqual(['added ns/fine'])
  await clock.advance(1000)
  expect(heard).toEqual(['added ns/fine', 'added ns/poison'])
  expect(server.calls.watch).toBe(1)
})

describe('up to where the cache shows all that was written', () => {
  test('is the list, then the watch, and what was put there tells nothing of what others wrote before', async () => {
    const { server, thing, start, informer, clock } = setUp()
    const listed = server.write(thing('a')).metadata.resourceVersion
    expect(informer.hasHeard(listed)).toBe(false)
    await start()
    expect(informer.hasHeard(listed)).toBe(true)
    server.write(thing('b'), 'quietly')
    const own = server.write(thing('c'), 'quietly')
    informer.put(own)
    expect(informer.get('ns/c')).toBeDefined()
    expect(informer.hasHeard(own.metadata.resourceVersion)).toBe(false)
    server.endWatches(new KubeError(410, 'Expired', 'too old'))
    await clock.advance(200)
    expect(informer.hasHeard(own.metadata.resourceVersion)).toBe(true)
    expect(informer.get('ns/b')).toBeDefined()
    const told = server.write(thing('d')).metadata.resourceVersion
    expect(informer.hasHeard(told)).toBe(true)
    expect(informer.hasHeard(String(Number(told) + 1))).toBe(false)
  })

  test('is before an event that is held back while this process writes that object', async () => {
    const server = createMemoryServer<Thing>(things)
    const answer = Promise.withResolvers<Thing>()
    const { informer, thing, start } = setUp({ client: { ...server.client, mergePatch: () => answer.promise } })
    server.write(thing('a'))
    await start()
    const writing = informer.client.mergePatch({ namespace: 'ns', name: 'a' }, {}, { resourceVersion: '1' }, stopping.signal)
    const theirs = server.write(thing('a', 'red'))
    const later = server.write(thing('b')).metadata.resourceVersion
    expect(informer.get('ns/a')?.spec).toBeUndefined()
    expect(informer.hasHeard(later)).toBe(false)
    answer.resolve(theirs)
    await writing
    expect(informer.get('ns/a')?.spec?.colour).toBe('red')
    expect(informer.hasHeard(later)).toBe(true)
  })
})

describe('an own write', () => {
  test('is seen at once, is told as own, and is not told again when the watch brings it', async () => {
    const { server, thing, start, informer, changes, clock } = setUp()
    server.write(thing('a', 'red'))
    await start()
    const written = server.write(thing('a', 'blue'), 'quietly')
    informer.put(written)
    expect(informer.get('ns/a')?.spec?.colour).toBe('blue')
    server.endWatches(new KubeError(410, 'Expired', 'too old'))
    await clock.advance(200)
    expect(changes).toEqual(['added ns/a', 'updated ns/a (own)'])
  })

  test('never replaces something newer', async () => {
    const { server, thing, start, informer, changes } = setUp()
    await start()
    const older = server.write(thing('a', 'red'))
    server.write(thing('a', 'blue'))
    informer.put(older)
    expect(informer.get('ns/a')?.spec?.colour).toBe('blue')
    expect(changes).toHaveLength(2)
  })

  test('never brings back what is known to be deleted', async () => {
    const { server, thing, start, informer } = setUp()
    await start()
    const written = server.write(thing('a'))
    server.remove('ns/a')
    informer.put(written)
    expect(informer.get('ns/a')).toBeUndefined()
  })

  test('made while a list is taken, whose snapshot is older, stays until the watch says otherwise', async () => {
    let betweenPages = (): void => {}
    const server = createMemoryServer<Thing>(things)
    const client: typeof server.client = {
      ...server.client,
      list: async (options, signal) => {
        const page = await server.client.list(options, signal)
        betweenPages()
        betweenPages = () => {}
        return page
      },
    }
    const { informer, thing, start, changes } = setUp({ client })
    for (const name of ['b', 'c', 'd']) server.write(thing(name))
    betweenPages = () => informer.put(server.write(thing('a'), 'quietly'))
    await start()
    expect(server.calls.list).toBe(2)
    expect(informer.get('ns/a')).toBeDefined()
    expect(changes).toContain('added ns/a (own)')
    server.remove('ns/a')
    expect(informer.get('ns/a')).toBeUndefined()
  })
})

test('a server that was set back is not followed: before a watch goes on it is asked where it stands', async () => {
  const errors: unknown[] = []
  const { server, thing, start, clock, keys } = setUp({ metrics: { failed: (error) => errors.push(error) } })
  server.write(thing('kept'))
  await start()
  const setBack = new EtcdSetBack('a list of things', '5000', '200')
  for (let time = 0; time < 20; time++) server.failNext('list', setBack)
  server.endWatches(new KubeTransportError('ECONNRESET', 'reset'))
  await clock.advance(5_000)
  expect(server.watching).toBe(0)
  expect(errors).toContain(setBack)
  expect(keys()).toEqual(['kept'])
})

test('objects are found by an index, which follows their changes', async () => {
  const { server, thing, start, informer } = setUp({
    indexers: { colour: ({ spec }) => (spec?.colour === undefined ? [] : [spec.colour]) },
  })
  const names = (colour: string): string[] => informer.byIndex('colour', colour).map(({ metadata }) => metadata.name)
  server.write(thing('a', 'red'))
  server.write(thing('b', 'red'))
  await start()
  expect(names('red')).toEqual(['a', 'b'])
  server.write(thing('a', 'blue'))
  server.remove('ns/b')
  expect(names('red')).toEqual([])
  expect(names('blue')).toEqual(['a'])
  expect(() => informer.byIndex('size', '1')).toThrow('no index')
})

test('the time of the last sign of life is there to be watched', async () => {
  const { server, start, clock, informer } = setUp()
  expect(informer.lastEventAt).toBeUndefined()
  await start()
  const listedAt = informer.lastEventAt
  expect(listedAt).toBe(clock.monotonicMs())
  await clock.advance(5000)
  expect(informer.lastEventAt).toBe(listedAt)
  server.bookmark()
  expect(informer.lastEventAt).toBe(clock.monotonicMs())
})

test('stopping ends the watch and leaves nothing sleeping', async () => {
  const { server, clock, informer } = setUp()
  const running = informer.run(stopping.signal)
  await settle()
  stopping.abort()
  await running
  expect(server.watching).toBe(0)
  expect(clock.sleeping).toBe(0)
})
