import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Passes bytes on to a server, TLS and all, until told to misbehave. */
export interface TcpProxy {
  readonly port: number
  /** Breaks all connections there are. */
  cut(): void
  /** Refuses new connections, and breaks those there are, until `accept`. */
  refuse(): void
  accept(): void
  /** The connections there are stay open, but nothing more comes back over them. New ones work. */
  swallow(): void
  readonly connections: number
  close(): Promise<void>
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<{ readonly client: Socket; readonly server: Socket }>()
  let refusing = false
  const listener = createServer((client) => {
    if (refusing) {
      client.resetAndDestroy()
      return
    }
    const server = connect(targetPort, '127.0.0.1')
    const pair = { client, server }
    pairs.add(pair)
    client.pipe(server)
    server.pipe(client)
    for (const socket of [client, server]) {
      socket.on('error', () => {})
      socket.on('close', () => {
        pairs.delete(pair)
        client.destroy()
        server.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const cut = (): void => {
    for (const { client, server } of pairs) {
      client.resetAndDestroy()
      server.destroy()
    }
  }
  return {
    port: (listener.address() as AddressInfo).port,
    cut,
    refuse: () => {
      refusing = true
      cut()
    },
    accept: () => {
      refusing = false
    },
    swallow: () => {
      for (const { client, server } of pairs) {
        server.unpipe(client)
        server.resume()
      }
    },
    get connections() {
      return pairs.size
    },
    close: async () => {
      cut()
      await new Promise<void>((resolve) => listener.close(() => resolve()))
    },
  }
}
