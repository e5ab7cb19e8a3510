import { createServer } from 'node:net'

/**
 * A TCP port on 127.0.0.1 that nothing listens on now. It lies below the range that the system takes for outgoing connections (32768 and up on
 * Linux), so that a server killed and started again on its port does not find it taken by a client.
 * @throws when 50 random ports in a row are taken.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const port = 12_000 + Math.floor(Math.random() * 20_000)
    if (await canListen(port)) return port
  }
  throw new Error('no free port found on 127.0.0.1 between 12000 and 32000')
}

const canListen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
