import type { IncomingMessage, ServerResponse } from 'node:http'
import { Server, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../lib/clock.ts'
import { speaksTls } from './tls-server.ts'

/** A client that connected last, on a busy machine, has so long to send the first byte of its request. */
const firstByteMs = 2_000
/** A client that was told that its connection ends has so long to close its side. */
const lingerMs = 1_000
const lookMs = 50
/** A turn of the event loop this quick has seen all who had connected a moment ago. */
const quickTurnMs = 2
const maxTurns = 500

/** What is known of an open connection. */
interface Connection {
  /** Requests whose answers aren't written yet. */
  serving: number
  /** Bytes that had come when the last answer was written: more of them are a request on its way. */
  readBytes: number
}

/**
 * Watches a server's connections from its start, so that it can be ended without a reset. Make it before the server listens.
 * @returns Ends a server that refuses requests already: it stops accepting, answers what it has accepted, and closes connections as they fall idle.
 *   `graceMs`: so long requests may still take; then their connections are cut.
 */
export function gentleClose(app: FastifyInstance, clock: Clock): (graceMs: number) => Promise<void> {
  const { server } = app
  const { connections, handshakes } = watchConnections(server)
  const never = new AbortController().signal

  return async (graceMs) => {
    if (!server.listening) return void (await app.close())
    const begun = clock.monotonicMs()
    const passed = () => clock.monotonicMs() - begun
    await untilNobodyComes(server, clock)
    // Of the class below: it stops accepting, and nothing else. Node's own also destroys what it takes for idle, and so resets a request on its way.
    let open = true
    Server.prototype.close.call(server, () => {
      open = false
    })
    while (open && passed() < graceMs) {
      await clock.sleep(lookMs, never)
      // A timer fires before what has come is read: a turn of the loop reads it.
      await turn()
      for (const [socket, connection] of connections) {
        const waits = socket.bytesRead > 0 || passed() > firstByteMs
        if (waits && isIdle(socket, connection)) hangUp(socket)
      }
      if (passed() > firstByteMs) cutAll(handshakes)
    }
    server.closeAllConnections()
    cutAll(handshakes)
    // It says that the server isn't running, which is so.
    await app.close().catch(() => undefined)
  }
}

interface Watched {
  readonly connections: ReadonlyMap<Socket, Connection>
  /** Where TLS isn't agreed on yet, so that nothing was asked. */
  readonly handshakes: ReadonlyMap<string, Socket>
}

function watchConnections(server: FastifyInstance['server']): Watched {
  const connections = new Map<Socket, Connection>()
  const handshakes = new Map<string, Socket>()
  const watch = (socket: Socket) => {
    connections.set(socket, { serving: 0, readBytes: 0 })
    socket.once('close', () => connections.delete(socket))
  }
  if (!speaksTls(server)) server.on('connection', watch)
  else {
    // Node makes a socket of its own for TLS, and doesn't say over which one: both have the same other end.
    server.on('connection', (socket: Socket) => {
      const peer = peerOf(socket)
      handshakes.set(peer, socket)
      socket.once('close', () => {
        if (handshakes.get(peer) === socket) handshakes.delete(peer)
      })
    })
    server.on('secureConnection', (socket: Socket) => {
      handshakes.delete(peerOf(socket))
      watch(socket)
    })
  }
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const connection = connections.get(socket)
    if (connection === undefined) return
    connection.serving++
    response.once('close', () => {
      connection.serving--
      connection.readBytes = socket.bytesRead
    })
  })
  return { connections, handshakes }
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

function cutAll(sockets: ReadonlyMap<string, Socket>): void {
  for (const socket of sockets.values()) socket.destroy()
}

const isIdle = (socket: Socket, { serving, readBytes }: Connection): boolean => serving === 0 && socket.bytesRead === readBytes

/** Closes this side: destroyed, what the client has sent meanwhile would be answered by a reset. */
function hangUp(socket: Socket): void {
  if (!socket.writable) return
  socket.end()
  socket.setTimeout(lingerMs, () => socket.destroy())
}

/** One turn of the event loop: it reads from all connections what has come, and accepts of those who wait. */
const turn = () => new Promise<void>((done) => setImmediate(done))

/**
 * Returns when a whole turn found nobody waiting to be accepted: the system resets who still does when the server stops listening. Bounded, for where they
 * come without an end.
 */
async function untilNobodyComes(server: FastifyInstance['server'], clock: Clock): Promise<void> {
  let came = 0
  const count = () => {
    came++
  }
  server.on('connection', count).on('drop', count)
  await turn()
  for (let turns = 0; turns < maxTurns; turns++) {
    const before = came
    const begun = clock.monotonicMs()
    await turn()
    if (came === before && clock.monotonicMs() - begun < quickTurnMs) break
  }
  server.off('connection', count).off('drop', count)
}
