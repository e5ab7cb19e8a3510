import { connect } from 'node:net'
import { connect as connectTls, createSecureContext } from 'node:tls'
import { fastify } from 'fastify'
import { describe, expect, test } from 'vitest'
import { createAuthority } from '../../../test/cluster/certificates.ts'
import { systemClock } from '../../lib/clock.ts'
import { Secret } from '../../lib/secret.ts'
import { gentleClose } from './close.ts'
import { createTlsServer } from './tls-server.ts'

const authority = createAuthority()
const { cert: chain, key } = authority.issue()
const certificate = { chain, key: new Secret(key), names: '', validTo: new Date(), fingerprint: '' }
const secureContext = createSecureContext({ ca: authority.cert })

async function start(scheme: 'http' | 'https') {
  const app =
    scheme === 'http'
      ? fastify()
      : fastify({ serverFactory: (listener) => createTlsServer(certificate, { handshakeTimeoutMs: 60_000 }, listener) })
  app.get('/', async (_request, reply) => reply.header('connection', 'close').send('answered'))
  app.get('/kept', async () => 'answered')
  app.get('/slow', async () => new Promise(() => undefined))
  const close = gentleClose(app, systemClock)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as { port: number }
  const bare = () => connect(port, '127.0.0.1')
  const open = () => {
    let [text, error] = ['', undefined as string | undefined]
    const socket = scheme === 'http' ? bare() : connectTls({ port, host: '127.0.0.1', secureContext })
    const closed = new Promise<{ text: string; error: string | undefined }>((done) => {
      socket.on('data', (chunk) => {
        text += chunk.toString()
      })
      socket.on('error', (failure: NodeJS.ErrnoException) => {
        error = failure.code
      })
      socket.on('close', () => done({ text, error }))
    })
    return new Promise<{ socket: typeof socket; closed: typeof closed }>((done) =>
      socket.once(scheme === 'http' ? 'connect' : 'secureConnect', () => done({ socket, closed })),
    )
  }
  return { app, bare, open, close }
}
const ask = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`

describe.each(['http', 'https'] as const)('over %s', (scheme) => {
  test('a connection that was accepted before the end has its request answered, and no further one is accepted', async () => {
    const { app, open, close } = await start(scheme)
    const { socket, closed } = await open()
    const ended = close(5_000)
    socket.write(ask('/'))
    expect(await closed).toMatchObject({ text: expect.stringContaining('answered'), error: undefined })
    await ended
    expect(app.server.listening).toBe(false)
  })

  test('an idle connection is closed without a reset, and one whose request never ends is cut after the grace', async () => {
    const { app, open, close } = await start(scheme)
    const idle = await open()
    const slow = await open()
    slow.socket.write(ask('/slow'))
    const begun = performance.now()
    await close(1_000)
    expect(await idle.closed).toEqual({ text: '', error: undefined })
    await slow.closed
    expect(performance.now() - begun).toBeGreaterThan(900)
    expect(app.server.listening).toBe(false)
  })

  test('those who have connected and were not accepted yet are answered', async () => {
    const { app, open, close } = await start(scheme)
    const waiting = Array.from({ length: 20 }, open)
    // As far as the system's queue, and no further: the event loop has not turned since.
    await new Promise((done) => process.nextTick(done))
    const ended = close(5_000)
    for (const { socket } of await Promise.all(waiting)) socket.write(ask('/'))
    for (const { closed } of await Promise.all(waiting)) {
      expect(await closed).toMatchObject({ text: expect.stringContaining('answered'), error: undefined })
    }
    await ended
    expect(app.server.listening).toBe(false)
  })

  test('a request that comes on a connection kept from before is answered, and the connection is then closed from this side', async () => {
    const { open, close } = await start(scheme)
    const { socket, closed } = await open()
    socket.write(ask('/kept'))
    await new Promise((done) => socket.once('data', done))
    const ended = close(5_000)
    // It has arrived by then, unread.
    socket.write(ask('/kept'))
    expect(await closed).toMatchObject({ text: expect.stringMatching(/answered[\s\S]*answered$/), error: undefined })
    await ended
  })
})

test('a connection that never agrees on TLS holds up nobody for longer than one that asks nothing', { timeout: 60_000 }, async () => {
  const { app, bare, open, close } = await start('https')
  const silent = bare()
  await new Promise((done) => silent.once('connect', done))
  const idle = await open()
  const slow = await open()
  slow.socket.write(ask('/slow'))
  const cut = new Promise((done) => silent.once('close', done))
  const begun = performance.now()
  const ended = close(6_000)
  await Promise.all([cut, idle.closed])
  // The one that is being served still is.
  expect(performance.now() - begun).toBeLessThan(5_500)
  expect(slow.socket.destroyed).toBe(false)
  await ended
  expect(app.server.listening).toBe(false)
})

test('a handshake that is under way is finished, and its request answered', async () => {
  const { open, close } = await start('https')
  const opening = open()
  await new Promise((done) => setTimeout(done, 1))
  const ended = close(5_000)
  const { socket, closed } = await opening
  socket.write(ask('/'))
  expect(await closed).toMatchObject({ text: expect.stringContaining('answered'), error: undefined })
  await ended
})
