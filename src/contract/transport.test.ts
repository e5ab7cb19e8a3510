import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { Agent } from 'undici'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../lib/clock.ts'
import { send } from './transport.ts'

let server: Server | undefined
const agent = new Agent()
afterEach(async () => {
  server?.closeAllConnections()
  server?.close()
  server = undefined
})

// Ten seconds: only the tests of a time-out are about time, however slow the machine is.
async function answerOf(
  listener: RequestListener,
  limits: { timeoutMs?: number; maxBodyBytes?: number } = {},
  signal = new AbortController().signal,
) {
  server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return send(
    { method: 'POST', origin: `http://127.0.0.1:${port}`, path: '/', headers: {}, body: '{}' },
    { dispatcher: agent, clock: systemClock, timeoutMs: 10_000, maxBodyBytes: 10_000, what: 'test', ...limits },
    signal,
  )
}

test('a whole answer is read', async () => {
  expect(await answerOf((_, response) => response.end('grüezi'))).toMatchObject({ status: 200, text: 'grüezi' })
})

test('headers that never come end in a time-out', async () => {
  await expect(answerOf(() => {}, { timeoutMs: 150 })).rejects.toMatchObject({ kind: 'timeout', outcomeUnknown: true })
})

test('a body that never ends, a byte at a time, ends in a time-out', async () => {
  const dripping = answerOf(
    (_, response) => {
      const timer = setInterval(() => response.write('x'), 10)
      response.on('close', () => clearInterval(timer))
    },
    { timeoutMs: 150 },
  )
  await expect(dripping).rejects.toMatchObject({ kind: 'timeout', outcomeUnknown: true })
})

test('a body that never ends, as fast as it can, is too large', async () => {
  const flooding = answerOf((_, response) => {
    const pour = () => {
      while (!response.destroyed && response.write('x'.repeat(4096)));
    }
    response.on('drain', pour)
    pour()
  })
  await expect(flooding).rejects.toMatchObject({ kind: 'invalid-response', outcomeUnknown: true })
})

test('a connection cut in the middle is a network error', async () => {
  const cut = answerOf((_, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('half')
    setTimeout(() => response.destroy(), 10)
  })
  await expect(cut).rejects.toMatchObject({ kind: 'network', outcomeUnknown: true })
})

test('an abort in the middle of the body throws its reason', async () => {
  const controller = new AbortController()
  const reason = new Error('stop')
  setTimeout(() => controller.abort(reason), 30)
  await expect(answerOf((_, response) => response.write('half'), {}, controller.signal)).rejects.toBe(reason)
})

test('a refused connection is known to have done nothing', async () => {
  const refused = send(
    { method: 'POST', origin: 'http://127.0.0.1:1', path: '/', headers: {}, body: '{}' },
    { dispatcher: agent, clock: systemClock, timeoutMs: 1000, maxBodyBytes: 100, what: 'test' },
    new AbortController().signal,
  )
  await expect(refused).rejects.toMatchObject({
    kind: 'network',
    outcomeUnknown: false,
    message: 'test: the service could not be reached (ECONNREFUSED)',
  })
})
