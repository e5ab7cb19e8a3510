import { createServer } from 'node:net'

const FIRST = 12_000
/** Test files run beside each other, and a port is listened on a moment after it was found free: each of Vitest's workers looks in a share of its own. */
const SHARES = 8
const SHARE = 2_500
const taken = new Set<number>()

/**
 * A TCP port on 127.0.0.1 that nothing listens on now, and that this process has not been given before. It lies below the range that the system takes
 * for outgoing connections (32768 and up on Linux), so that a server killed and started again on its port does not find it taken by a client.
 * @throws when 50 random ports in a row are taken.
 */
export async function freePort(): Promise<number> {
  const first = firstPortOf(process.env.VITEST_POOL_ID)
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const port = first + Math.floor(Math.random() * SHARE)
    if (taken.has(port)) continue
    taken.add(port)
    if (await canListen(port)) return port
  }
  throw new Error(`no free port found on 127.0.0.1 between ${first} and ${first + SHARE}`)
}

/** Where a worker's ports begin: two of up to eight that run together share none. Programs that a test starts look where it does. */
export const firstPortOf = (worker: string | undefined): number => FIRST + (Number(worker ?? 0) % SHARES) * SHARE

const canListen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
