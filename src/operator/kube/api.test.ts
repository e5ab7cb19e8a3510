import { getEventListeners } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { createFakeClock } from '../../../test/integration/kube/fake-clock.ts'
import { systemClock } from '../../lib/clock.ts'
import { createKubeApi, type KubeApi, type KubeApiOptions } from './api.ts'
import { isAlreadyExists, isAnswerTooLarge, isConflict, isGone, isNotFound, KubeError, KubeTransportError } from './errors.ts'
import type { Kubeconfig } from './kubeconfig.ts'
import type { KubeObject } from './objects.ts'
import type { WatchEvent } from './resource-client.ts'
import { EtcdSetBack } from './revisions.ts'

interface Thing extends KubeObject {
  readonly spec?: { readonly colour: string }
}
interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

const signal = new AbortController().signal
const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** An API server whose answers the test writes, and a client for it. */
async function setUp(
  answer: (seen: Seen, response: ServerResponse) => void,
  options: Partial<KubeApiOptions> & { user?: object; path?: string } = {},
) {
  const seen: Seen[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += String(chunk)
    })
    request.on('end', () => {
      const one = { method: request.method ?? '', url: request.url ?? '', headers: request.headers, body }
      seen.push(one)
      answer(one, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUps.push(
    () => server.closeAllConnections(),
    () => server.close(),
  )
  const { user = { token: 'abc' }, path = '', ...rest } = options
  const kubeConfig: Kubeconfig = {
    clusters: [{ name: 'c', server: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, skipTLSVerify: true }],
    users: [{ name: 'u', ...user }],
    contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
    currentContext: 'x',
  }
  const api = createKubeApi({ kubeConfig, clock: systemClock, userAgent: 'test/1', requestTimeoutMs: 2_000, ...rest } as KubeApiOptions)
  cleanUps.push(() => api.close())
  return { api, seen, client: thingsOf(api), server }
}

const thingsOf = (api: KubeApi) =>
  api.resource<Thing>({ group: 'test.dev', version: 'v1', plural: 'things', kind: 'Thing', namespaced: true })
const thing = { apiVersion: 'test.dev/v1', kind: 'Thing', metadata: { name: 'one', namespace: 'ns', uid: 'u', resourceVersion: '7' } }
const json = (response: ServerResponse, body: unknown, status = 200, headers = {}): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
const status = (code: number, reason: string, more = {}) => ({ kind: 'Status', code, reason, message: `it is ${reason}`, ...more })
const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => expect.fail('it did not fail'),
    (error: unknown) => error,
  )

describe('requests', () => {
  const ref = { namespace: 'ns', name: 'one' }
  test.each([
    {
      call: 'get',
      run: (api: KubeApi) => thingsOf(api).get(ref, signal),
      expected: { method: 'GET', url: '/apis/test.dev/v1/namespaces/ns/things/one', body: '' },
    },
    {
      call: 'create',
      run: (api: KubeApi) => thingsOf(api).create({ apiVersion: 'test.dev/v1', kind: 'Thing', metadata: ref }, signal),
      expected: { method: 'POST', url: '/apis/test.dev/v1/namespaces/ns/things' },
    },
    {
      call: 'a status patch, fenced',
      run: (api: KubeApi) =>
        thingsOf(api).mergePatch(ref, { status: { a: 1 } }, { resourceVersion: '7', subresource: 'status', fieldManager: 'me' }, signal),
      expected: {
        method: 'PATCH',
        url: '/apis/test.dev/v1/namespaces/ns/things/one/status?fieldManager=me',
        body: '{"status":{"a":1},"metadata":{"resourceVersion":"7"}}',
      },
    },
    {
      call: 'a metadata patch, whose own version does not count',
      run: (api: KubeApi) =>
        thingsOf(api).mergePatch(ref, { metadata: { finalizers: ['x'], resourceVersion: '1' } }, { resourceVersion: '7' }, signal),
      expected: { url: '/apis/test.dev/v1/namespaces/ns/things/one', body: '{"metadata":{"finalizers":["x"],"resourceVersion":"7"}}' },
    },
    {
      call: 'delete, with preconditions',
      run: (api: KubeApi) => thingsOf(api).delete(ref, { preconditions: { uid: 'u' } }, signal),
      expected: { method: 'DELETE', body: '{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u"}}' },
    },
    {
      call: 'a core resource',
      run: (api: KubeApi) =>
        api.resource({ group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false }).get({ name: 'n/1' }, signal),
      expected: { url: '/api/v1/nodes/n%2F1' },
    },
  ])('$call', async ({ run, expected }) => {
    const { api, seen } = await setUp((_seen, response) => json(response, thing))
    await run(api)
    expect(seen[0]).toMatchObject(expected)
    expect(seen[0]?.headers).toMatchObject({ authorization: 'Bearer abc', 'user-agent': 'test/1', accept: 'application/json' })
  })

  test('a server behind a path is asked there', async () => {
    const { client, seen } = await setUp((_seen, response) => json(response, thing), { path: '/k8s/clusters/c1/' })
    await client.get(ref, signal)
    expect(seen[0]?.url).toBe('/k8s/clusters/c1/apis/test.dev/v1/namespaces/ns/things/one')
  })

  test('a patch without a version is not sent', async () => {
    const { client, seen } = await setUp((_seen, response) => json(response, thing))
    expect(() => client.mergePatch(ref, { status: {} }, { resourceVersion: '' }, signal)).toThrow('resourceVersion')
    expect(seen).toHaveLength(0)
  })

  test.each([{ bad: { namespace: 'ns', name: '' } }, { bad: { name: 'one' } }])(
    '$bad names no object, and is not sent: it would address all',
    async ({ bad }) => {
      const { client, seen } = await setUp((_seen, response) => json(response, thing))
      expect(await failure((async () => client.delete(bad, {}, signal))())).toBeInstanceOf(TypeError)
      expect(seen).toHaveLength(0)
    },
  )

  test('a list asks for its page and fills in the kind that built-in lists leave out', async () => {
    const { client, seen } = await setUp((_seen, response) =>
      json(response, { metadata: { resourceVersion: '9', continue: 'c=1' }, items: [{ metadata: thing.metadata }] }),
    )
    const page = await client.list({ namespace: 'ns', limit: 1, labelSelector: 'a=b' }, signal)
    expect(seen[0]?.url).toBe('/apis/test.dev/v1/namespaces/ns/things?limit=1&labelSelector=a%3Db')
    const bytes = JSON.stringify({ metadata: { resourceVersion: '9', continue: 'c=1' }, items: [{ metadata: thing.metadata }] }).length
    expect(page).toEqual({ items: [thing], bytes, resourceVersion: '9', continue: 'c=1' })
  })

  test('each is told to the metrics, with its time', async () => {
    const told: unknown[] = []
    const { client } = await setUp((_seen, response) => json(response, status(404, 'NotFound'), 404), {
      onRequest: (verb, resource, code) => told.push([verb, resource, code]),
    })
    await failure(client.get(ref, signal))
    expect(told).toEqual([['get', 'things', 404]])
  })
})

describe('refusals', () => {
  test.each([
    { given: status(404, 'NotFound'), is: isNotFound },
    { given: status(409, 'Conflict'), is: isConflict },
    { given: status(409, 'AlreadyExists'), is: isAlreadyExists },
    { given: status(410, 'Expired'), is: isGone },
  ])('$given.reason is told apart', async ({ given, is }) => {
    const { client } = await setUp((_seen, response) => json(response, given, given.code))
    const error = await failure(client.get({ namespace: 'ns', name: 'one' }, signal))
    expect([isNotFound, isConflict, isAlreadyExists, isGone].filter((helper) => helper(error))).toEqual([is])
    expect(error).toMatchObject({
      name: 'KubeError',
      status: given.code,
      reason: given.reason,
      message: `get things: it is ${given.reason}`,
    })
  })

  test.each([
    { how: 'the header', headers: { 'retry-after': '3' }, body: status(429, 'TooManyRequests'), ms: 3000 },
    { how: 'the details', headers: {}, body: status(429, 'TooManyRequests', { details: { retryAfterSeconds: 2 } }), ms: 2000 },
    { how: 'nothing', headers: {}, body: status(429, 'TooManyRequests'), ms: undefined },
  ])('the time to wait comes from $how', async ({ headers, body, ms }) => {
    const { client } = await setUp((_seen, response) => json(response, body, 429, headers))
    expect(await failure(client.get({ namespace: 'ns', name: 'one' }, signal))).toMatchObject({ retryAfterMs: ms })
  })

  test("a proxy's page is not quoted", async () => {
    const { client } = await setUp((_seen, response) => response.writeHead(502).end('<html>token=abc</html>'))
    const error = await failure(client.get({ namespace: 'ns', name: 'one' }, signal))
    expect(error).toMatchObject({ status: 502, reason: '', message: 'get things: the API server answered 502' })
  })

  test('a success that is no JSON is an error that quotes nothing', async () => {
    const { client } = await setUp((_seen, response) => response.writeHead(200).end('token=abc'))
    expect(String(await failure(client.get({ namespace: 'ns', name: 'one' }, signal)))).toBe(
      'KubeError: get things: the answer is not JSON',
    )
  })
})

describe('an answer longer than what is taken', () => {
  const pieces = (response: ServerResponse, code: number): { sent: () => number } => {
    let sent = 0
    response.writeHead(code, { 'content-type': 'application/json' })
    const send = (): void => {
      if (response.destroyed || sent >= 50_000_000) return
      sent += 100_000
      response.write('x'.repeat(100_000), send)
    }
    send()
    return { sent: () => sent }
  }

  test('is given up while it is read, and the next request works', async () => {
    let answered: { sent: () => number } | undefined
    const { client } = await setUp((seen, response) => {
      if (seen.url.includes('limit=5')) answered = pieces(response, 200)
      else json(response, { metadata: { resourceVersion: '9' }, items: [] })
    })
    const refused = await failure(client.list({ limit: 5, maxBytes: 300_000 }, signal))
    expect(isAnswerTooLarge(refused)).toBe(true)
    expect(String(refused)).not.toContain('xxx')
    expect(answered?.sent()).toBeLessThan(50_000_000)
    expect((await client.list({ limit: 1, maxBytes: 300_000 }, signal)).items).toEqual([])
  })

  test('is not asked of the server as a parameter', async () => {
    const { client, seen } = await setUp((_seen, response) => json(response, { metadata: { resourceVersion: '9' }, items: [] }))
    await client.list({ limit: 5, maxBytes: 1000 }, signal)
    expect(seen[0]?.url).toBe('/apis/test.dev/v1/things?limit=5')
  })

  test('is still the refusal that it is', async () => {
    const { client } = await setUp((_seen, response) => response.writeHead(503).end('x'.repeat(1_000_000)))
    expect(await failure(client.list({ maxBytes: 1000 }, signal))).toMatchObject({
      status: 503,
      message: 'list things: the API server answered 503',
    })
  })
})

describe('no answer', () => {
  test('in time is a TIMEOUT, and the next request works', async () => {
    let silent = true
    const { client } = await setUp((_seen, response) => !silent && json(response, thing), { requestTimeoutMs: 750 })
    expect(await failure(client.get({ namespace: 'ns', name: 'one' }, signal))).toMatchObject({
      name: 'KubeTransportError',
      code: 'TIMEOUT',
    })
    silent = false
    expect(await client.get({ namespace: 'ns', name: 'one' }, signal)).toEqual(thing)
  })

  test('but a broken connection is a transport error', async () => {
    const { client } = await setUp((_seen, response) => response.destroy())
    expect(await failure(client.get({ namespace: 'ns', name: 'one' }, signal))).toBeInstanceOf(KubeTransportError)
  })

  test('from a server that is not there is a transport error', async () => {
    const { client, server } = await setUp(() => {})
    await new Promise((resolve) => server.close(resolve))
    expect(await failure(client.get({ namespace: 'ns', name: 'one' }, signal))).toMatchObject({
      name: 'KubeTransportError',
      code: 'ECONNREFUSED',
    })
  })

  test('because the caller gave up is its own reason, before and while waiting', async () => {
    const { client, seen } = await setUp(() => {})
    const reason = new Error('enough')
    expect(await failure(client.get({ namespace: 'ns', name: 'one' }, AbortSignal.abort(reason)))).toBe(reason)
    expect(seen).toHaveLength(0)
    const stop = new AbortController()
    const waiting = failure(client.get({ namespace: 'ns', name: 'one' }, stop.signal))
    setTimeout(() => stop.abort(reason), 50)
    expect(await waiting).toBe(reason)
  })
})

test('a signal that outlives its requests holds nothing of them', async () => {
  const { client } = await setUp((_seen, response) => json(response, thing))
  const long = new AbortController().signal
  for (let time = 0; time < 3; time++) await client.get({ namespace: 'ns', name: 'one' }, long)
  expect(getEventListeners(long, 'abort')).toHaveLength(0)
})

describe('a watch', () => {
  const line = (type: string, object: object): string => `${JSON.stringify({ type, object })}\n`

  test('passes on events, bookmarks among them, however they are cut, until the server ends it', async () => {
    const { client, seen } = await setUp((_seen, response) => {
      const gone = { ...thing, metadata: { ...thing.metadata, resourceVersion: '12' } }
      const text = line('ADDED', thing) + line('BOOKMARK', { metadata: { resourceVersion: '9' } }) + line('DELETED', gone)
      response.writeHead(200)
      response.write(text.slice(0, 25))
      setTimeout(() => response.end(text.slice(25)), 20)
    })
    const events: WatchEvent<Thing>[] = []
    await client.watch({ resourceVersion: '5', timeoutSeconds: 300 }, (event) => events.push(event), signal)
    expect(seen[0]?.url).toBe('/apis/test.dev/v1/things?watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=300')
    expect(events.map(({ type, object }) => `${type} ${object.metadata.resourceVersion}`)).toEqual(['ADDED 7', 'BOOKMARK 9', 'DELETED 12'])
  })

  test.each([
    { given: 'an ERROR event', text: line('ERROR', status(410, 'Expired')), expected: { status: 410, reason: 'Expired' } },
    {
      given: 'a line that is no JSON',
      text: 'token=abc\n',
      expected: { reason: 'NotJson', message: 'watch things: a line is not a watch event' },
    },
    { given: 'a line that is no event', text: '{"a":1}\n', expected: { reason: 'NotJson' } },
  ])('ends with an error at $given', async ({ text, expected }) => {
    const { client } = await setUp((_seen, response) => response.writeHead(200).write(text))
    const error = await failure(client.watch({ resourceVersion: '5' }, () => {}, signal))
    expect(error).toBeInstanceOf(KubeError)
    expect(error).toMatchObject(expected)
  })

  test('that is refused is a KubeError', async () => {
    const { client } = await setUp((_seen, response) => json(response, status(403, 'Forbidden'), 403))
    expect(await failure(client.watch({ resourceVersion: '5' }, () => {}, signal))).toMatchObject({ status: 403 })
  })

  test('outlives the time limit of requests, and ends with what its handler throws', async () => {
    const { client } = await setUp(
      (_seen, response) => {
        response.writeHead(200).flushHeaders()
        setTimeout(() => response.write(line('ADDED', thing)), 1_500)
      },
      { requestTimeoutMs: 1_000 },
    )
    const bug = new Error('a bug')
    const watching = client.watch(
      { resourceVersion: '5' },
      () => {
        throw bug
      },
      signal,
    )
    expect(await failure(watching)).toBe(bug)
  })

  test('that breaks in the middle is a transport error', async () => {
    const { client } = await setUp((_seen, response) => {
      response.writeHead(200).write(line('ADDED', thing))
      setTimeout(() => response.destroy(), 20)
    })
    expect(await failure(client.watch({ resourceVersion: '5' }, () => {}, signal))).toBeInstanceOf(KubeTransportError)
  })
})

describe('a client that keeps only what is used of metadata', () => {
  const { name, namespace, uid, resourceVersion } = thing.metadata
  const large = {
    ...thing,
    metadata: { ...thing.metadata, labels: { a: 'b' }, annotations: { read: '1', unread: '2' }, managedFields: [{}] },
  }
  const held = { ...thing, metadata: { name, namespace, uid, resourceVersion, annotations: { read: '1' } } }
  const ref = { namespace: 'ns', name: 'one' }
  const definition = { group: 'test.dev', version: 'v1', plural: 'things', kind: 'Thing', namespaced: true }
  const clientOf = (api: KubeApi) => api.resource<Thing>(definition, { kept: { annotations: ['read'] } })

  test.each([
    { how: 'get', run: (api: KubeApi) => clientOf(api).get(ref, signal) },
    { how: 'create', run: (api: KubeApi) => clientOf(api).create({ apiVersion: 'test.dev/v1', kind: 'Thing', metadata: ref }, signal) },
    { how: 'patch', run: (api: KubeApi) => clientOf(api).mergePatch(ref, {}, { resourceVersion: '6' }, signal) },
  ])('does so with the answer to a $how', async ({ run }) => {
    const { api } = await setUp((_seen, response) => json(response, large))
    expect(await run(api)).toEqual(held)
  })

  test('does so with the items of a list and the events of a watch', async () => {
    const event = { type: 'MODIFIED', object: { ...large, metadata: { ...large.metadata, resourceVersion: '10' } } }
    const { api } = await setUp((seen, response) => {
      if (seen.url.includes('watch')) response.end(`${JSON.stringify(event)}\n`)
      else json(response, { metadata: { resourceVersion: '9' }, items: [large] })
    })
    expect((await clientOf(api).list({}, signal)).items).toEqual([held])
    const events: WatchEvent<Thing>[] = []
    await clientOf(api).watch({ resourceVersion: '9' }, (one) => events.push(one), signal)
    expect(events).toEqual([{ type: 'MODIFIED', object: { ...held, metadata: { ...held.metadata, resourceVersion: '10' } } }])
  })

  test('gives the whole object to who asks for it', async () => {
    const { api } = await setUp((_seen, response) => json(response, large))
    expect(await clientOf(api).get(ref, signal, { whole: true })).toEqual(large)
  })
})

describe('an etcd that was set back', () => {
  const versioned = (resourceVersion: string) => ({ ...thing, metadata: { ...thing.metadata, resourceVersion } })
  const listOf = (resourceVersion: string, more: object = {}) => ({ metadata: { resourceVersion, ...more }, items: [] })
  const ref = { namespace: 'ns', name: 'one' }
  const others = { group: 'test.dev', version: 'v1', plural: 'others', kind: 'Other', namespaced: true }
  const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease', namespaced: true }
  const events = { group: 'events.k8s.io', version: 'v1', plural: 'events', kind: 'Event', namespaced: true }

  type Call = (api: KubeApi) => Promise<unknown>
  const list: Call = (api) => thingsOf(api).list({}, signal)
  const nextPage: Call = (api) => thingsOf(api).list({ continue: 'c' }, signal)
  const get: Call = (api) => thingsOf(api).get(ref, signal)
  const patch: Call = (api) => thingsOf(api).mergePatch(ref, { status: {} }, { resourceVersion: '40' }, signal)
  const create: Call = (api) => thingsOf(api).create({ apiVersion: 'test.dev/v1', kind: 'Thing', metadata: ref }, signal)
  const watch: Call = (api) => thingsOf(api).watch({ resourceVersion: '100' }, () => {}, signal)
  const listOfOthers: Call = (api) => api.resource(others).list({}, signal)
  const listOfLeases: Call = (api) => api.resource(leases).list({}, signal)
  const eventsOnly: Call = (api) => api.resource(events).list({}, signal)
  const event = (resourceVersion: string) => ({ type: 'MODIFIED', object: versioned(resourceVersion) })

  test.each([
    { is: 'a list below an earlier one', calls: [list, list], answers: [listOf('100'), listOf('99')] },
    { is: 'a list below an object that was read', calls: [get, list], answers: [versioned('100'), listOf('99')] },
    { is: 'a list below a write', calls: [patch, list], answers: [versioned('100'), listOf('99')] },
    { is: 'a list below what a watch has brought', calls: [watch, list], answers: [event('120'), listOf('119')] },
    { is: 'a list below one of another custom resource', calls: [list, listOfOthers], answers: [listOf('100'), listOf('99')] },
    { is: 'a write below a list', calls: [list, patch], answers: [listOf('100'), versioned('90')] },
    { is: 'a write under a version that was given out before', calls: [list, patch], answers: [listOf('100'), versioned('100')] },
    { is: 'a creation below a list', calls: [list, create], answers: [listOf('100'), versioned('90')] },
    { is: 'a watch that brings what was before its start', calls: [watch], answers: [event('99')] },
    { is: 'versions of another length', calls: [list, list], answers: [listOf('1000'), listOf('999')] },
  ])('is told by $is', async ({ calls, answers }) => {
    const told: EtcdSetBack[] = []
    const left = [...answers]
    const { api } = await setUp((_seen, response) => response.end(`${JSON.stringify(left.shift())}\n`), {
      onSetBack: (error) => told.push(error),
    })
    const last = calls.at(-1) as Call
    for (const call of calls.slice(0, -1)) await call(api)
    const error = await failure(last(api))
    expect(error).toBeInstanceOf(EtcdSetBack)
    expect(told).toEqual([error])
    expect(String(error)).toMatch(
      /^EtcdSetBack: etcd was set back: a (list|write|watch) of (things|others) is at resource version \d+, but \d+ was seen before/,
    )
  })

  test.each([
    { is: 'the same list again', calls: [list, list], answers: [listOf('100'), listOf('100')] },
    { is: 'an object whose last write is older than others', calls: [list, get], answers: [listOf('100'), versioned('40')] },
    { is: 'a patch that changed nothing', calls: [list, patch], answers: [listOf('100'), versioned('40')] },
    {
      is: 'a further page, which is as old as the first',
      calls: [list, patch, nextPage],
      answers: [listOf('100'), versioned('120'), listOf('100')],
    },
    { is: 'a built-in kind, which may have an etcd of its own', calls: [list, listOfLeases], answers: [listOf('100'), listOf('5')] },
    { is: 'events, which may be thrown away', calls: [eventsOnly, eventsOnly], answers: [listOf('100'), listOf('5')] },
  ])('is not told by $is', async ({ calls, answers }) => {
    const told: EtcdSetBack[] = []
    const left = [...answers]
    const { api } = await setUp((_seen, response) => response.end(`${JSON.stringify(left.shift())}\n`), {
      onSetBack: (error) => told.push(error),
    })
    for (const call of calls) await call(api)
    expect(told).toEqual([])
  })

  test('is not told by a write that was overtaken by what came while it was under way', async () => {
    const { api } = await setUp((seen, response) => {
      if (seen.method === 'GET') json(response, listOf('100'))
      else setTimeout(() => json(response, versioned('90')), 50)
    })
    const writing = patch(api)
    await list(api)
    expect(await writing).toMatchObject({ metadata: { resourceVersion: '90' } })
  })
})

describe('credentials', () => {
  const tokenUser = () => {
    const dir = mkdtempSync(join(tmpdir(), 'kube-token-'))
    cleanUps.push(() => rmSync(dir, { recursive: true }))
    const tokenFile = join(dir, 'token')
    return { tokenFile, user: { tokenFile } }
  }
  const ref = { namespace: 'ns', name: 'one' }

  test('a token file is read again when the last reading is old, off the path of requests', async () => {
    const { tokenFile, user } = tokenUser()
    const clock = createFakeClock()
    writeFileSync(tokenFile, 'first\n')
    const { client, seen } = await setUp((_seen, response) => json(response, thing), { user, clock, credentialRefreshMs: 10_000 })
    await client.get(ref, signal)
    writeFileSync(tokenFile, 'second\n')
    await client.get(ref, signal)
    clock.freeze(10_000)
    await client.get(ref, signal)
    await client.get(ref, signal)
    expect(seen.map(({ headers }) => headers.authorization)).toEqual(['Bearer first', 'Bearer first', 'Bearer first', 'Bearer second'])
  })

  test('a refused token is read again at once, and the request repeated once', async () => {
    const { tokenFile, user } = tokenUser()
    writeFileSync(tokenFile, 'old')
    const { client, seen } = await setUp(
      (one, response) =>
        one.headers.authorization === 'Bearer new' ? json(response, thing) : json(response, status(401, 'Unauthorized'), 401),
      { user },
    )
    const first = await failure(client.get(ref, signal))
    expect(first).toMatchObject({ status: 401 })
    expect(seen).toHaveLength(1)
    writeFileSync(tokenFile, 'new')
    expect(await client.get(ref, signal)).toEqual(thing)
    expect(seen).toHaveLength(3)
  })

  test('a file that can not be read for a while leaves the last token in use', async () => {
    const { tokenFile, user } = tokenUser()
    const clock = createFakeClock()
    writeFileSync(tokenFile, 'first')
    const { client, seen } = await setUp((_seen, response) => json(response, thing), { user, clock, credentialRefreshMs: 10_000 })
    await client.get(ref, signal)
    rmSync(tokenFile)
    clock.freeze(10_000)
    await client.get(ref, signal)
    await client.get(ref, signal)
    expect(seen.map(({ headers }) => headers.authorization)).toEqual(['Bearer first', 'Bearer first', 'Bearer first'])
  })
})
