import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { RpcFault, type RpcRequest, readRequest, toJson } from './rpc-json.ts'

export interface NodeServer {
  readonly url: string
  /** Every call that came, in order. */
  readonly calls: readonly { readonly method: string; readonly params: readonly unknown[] }[]
  /** Makes a method answer after so many ms (0 ends that). */
  delay(method: string, ms: number): void
  close(): Promise<void>
}

/** JSON-RPC 2.0 by HTTP POST, with batches, on a free port of 127.0.0.1. */
export async function startNodeServer(methods: Readonly<Record<string, (params: readonly unknown[]) => unknown>>): Promise<NodeServer> {
  const calls: { method: string; params: readonly unknown[] }[] = []
  const delays = new Map<string, number>()
  const ended = new AbortController()

  const answer = async (value: unknown): Promise<object> => {
    const request = readRequest(value)
    if (request === undefined) return { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'Invalid request' } }
    const { id, method, params } = request
    calls.push({ method, params })
    const wait = delays.get(method) ?? 0
    // The work is done at once; it is the answer that is late.
    const outcome = run(request)
    if (wait > 0) await delay(wait, undefined, { signal: ended.signal })
    return { jsonrpc: '2.0', ...outcome, id }
  }
  const run = ({ method, params }: RpcRequest): object => {
    const handler = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (handler === undefined) return { error: { code: -32601, message: 'Method not found' } }
    try {
      return { result: handler(params) ?? null }
    } catch (error) {
      if (!(error instanceof RpcFault)) throw error
      const { code, message, data } = error
      return { error: { code, message, ...(data === undefined ? {} : { data }) } }
    }
  }
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    let body: unknown
    try {
      body = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    } catch {
      body = undefined
    }
    const result = Array.isArray(body) ? await Promise.all(body.map(answer)) : await answer(body)
    response.writeHead(200, { 'content-type': 'application/json' }).end(toJson(result))
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      // A defect of the simulator: say so, loudly.
      if (!ended.signal.aborted) console.error(error)
      response.destroy()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    delay: (method, ms) => {
      delays.set(method, ms)
    },
    close: async () => {
      ended.abort()
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
