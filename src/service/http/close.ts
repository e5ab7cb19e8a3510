import { Server } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../lib/clock.ts'

/** What was accepted last has so long to send its request. */
const lastRequestsMs = 300
const lookMs = 50

/**
 * Ends a server that refuses requests already, without a reset: it stops accepting, answers on what it has accepted, and closes connections as they fall idle.
 * Node's own `close` closes at once what it takes for idle: also a connection whose request is on its way.
 * @param graceMs So long requests may still take; then their connections are cut.
 */
export async function closeGently(app: FastifyInstance, graceMs: number, clock: Clock): Promise<void> {
  const { server } = app
  const never = new AbortController().signal
  if (!server.listening) return void (await app.close())
  let open = true
  // Of the class below: it stops accepting, and nothing else.
  Server.prototype.close.call(server, () => {
    open = false
  })
  const begun = clock.monotonicMs()
  for (let passed = 0; open && passed < graceMs; passed = clock.monotonicMs() - begun) {
    await clock.sleep(lookMs, never)
    if (passed >= lastRequestsMs) server.closeIdleConnections()
  }
  server.closeAllConnections()
  // It says that the server isn't running, which is so.
  await app.close().catch(() => undefined)
}
