import type { RequestListener, Server, ServerOptions } from 'node:http'
import { createServer } from 'node:https'
import { Server as TlsServer } from 'node:tls'
import { type Certificate, contextOf } from './certificate.ts'

/** A server of HTTP/1.1 over TLS. A handshake has `handshakeTimeoutMs`; where it fails, the connection is closed. */
export function createTlsServer(
  certificate: Certificate,
  { handshakeTimeoutMs, ...options }: ServerOptions & { readonly handshakeTimeoutMs: number },
  listener: RequestListener,
): Server {
  const server = createServer({ ...options, ...contextOf(certificate), handshakeTimeout: handshakeTimeoutMs }, listener)
  // Node tells these as errors of HTTP, whose answer nobody could read: there is no TLS to send it in.
  server.removeAllListeners('tlsClientError')
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  return server
}

/** From now on, new connections are shown this certificate; those that are open stay. */
export function showCertificate(server: Server, certificate: Certificate): void {
  if (!(server instanceof TlsServer)) throw new TypeError('the server speaks no TLS')
  server.setSecureContext(contextOf(certificate))
}

export const speaksTls = (server: Server): boolean => server instanceof TlsServer
