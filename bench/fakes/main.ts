import { createServer, type IncomingMessage } from 'node:http'
import { parseArgs } from 'node:util'
import { createBenchChain } from './chain.ts'
import { createPreparedApi } from './staking-api.ts'

/**
 * The chain (POST /rpc) and the staking API (/v1/…) of the benchmarks in a process of their own, so that the operator's CPU is the operator's.
 * GET /progress says how far they are. Prints its URL when all deposits are prepared.
 */
const { values } = parseArgs({
  options: {
    stakes: { type: 'string', default: '0' },
    fleet: { type: 'string', default: '0' },
    'block-ms': { type: 'string' },
    finality: { type: 'string', default: '0' },
  },
})
const chain = createBenchChain({
  fleet: Number(values.fleet),
  finality: Number(values.finality),
  ...(values['block-ms'] === undefined ? {} : { blockMs: Number(values['block-ms']) }),
})
const api = createPreparedApi(Number(values.stakes))

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function rpc(text: string): string {
  const { id, method, params } = JSON.parse(text) as { id: number; method: string; params: readonly unknown[] }
  try {
    return JSON.stringify({ jsonrpc: '2.0', id, result: chain.call(method, params) })
  } catch (error) {
    return JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message: error instanceof Error ? error.message : 'failed' } })
  }
}

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const send = (status: number, body: string) => {
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    response.end(body)
  }
  textOf(request)
    .then(
      (text) => {
        const path = request.url ?? '/'
        if (path === '/rpc') return send(200, rpc(text))
        if (path === '/progress')
          return send(200, JSON.stringify({ created: api.created, mined: chain.mined, inFlight: chain.inFlight, submitted: api.submitted }))
        const key = request.headers['idempotency-key']
        const { status, body } = api.answer(request.method ?? 'GET', path, typeof key === 'string' ? key : undefined, text)
        send(status, body)
      },
      () => response.destroy(),
    )
    .catch((error: unknown) => {
      console.error(error)
      send(500, '{}')
    })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') console.log(`listening http://127.0.0.1:${address.port}`)
})
