import { connect } from 'node:net'
import { fastify } from 'fastify'
import { expect, test } from 'vitest'
import { systemClock } from '../../lib/clock.ts'
import { closeGently } from './close.ts'

async function start() {
  const app = fastify()
  app.get('/', async (_request, reply) => reply.header('connection', 'close').send('answered'))
  app.get('/slow', async () => new Promise(() => undefined))
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as { port: number }
  const open = () => {
    let [text, error] = ['', undefined as string | undefined]
    const socket = connect(port, '127.0.0.1')
    const closed = new Promise<{ text: string; error: string | undefined }>((done) => {
      socket.on('data', (chunk) => {
        text += chunk.toString()
      })
      socket.on('error', (failure: NodeJS.ErrnoException) => {
        error = failure.code
      })
      socket.on('close', () => done({ text, error }))
    })
    return new Promise<{ socket: typeof socket; closed: typeof closed }>((done) => socket.once('connect', () => done({ socket, closed })))
  }
  return { app, open }
}
const ask = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`

test('a connection that was accepted before the end has its request answered, and no further one is accepted', async () => {
  const { app, open } = await start()
  const { socket, closed } = await open()
  const ended = closeGently(app, 5_000, systemClock)
  socket.write(ask('/'))
  expect(await closed).toMatchObject({ text: expect.stringContaining('answered'), error: undefined })
  await ended
  expect(app.server.listening).toBe(false)
})

test('an idle connection is closed without a reset, and one whose request never ends is cut after the grace', async () => {
  const { app, open } = await start()
  const idle = await open()
  const slow = await open()
  slow.socket.write(ask('/slow'))
  const begun = performance.now()
  await closeGently(app, 1_000, systemClock)
  expect(await idle.closed).toEqual({ text: '', error: undefined })
  await slow.closed
  expect(performance.now() - begun).toBeGreaterThan(900)
  expect(app.server.listening).toBe(false)
})
