import { Agent, createServer, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** One request, as it came. */
export interface Call {
  /** What rules and counters know it by: `POST /v1/x`; for JSON-RPC the method, one for each call of a batch. */
  readonly names: readonly string[]
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export interface Answer {
  readonly status: number
  readonly headers?: OutgoingHttpHeaders
  readonly body: string
}

/**
 * What goes wrong. `afterPassing`: the server behind did the work, only its answer is lost or replaced; otherwise it never heard of the call.
 */
export type Fault =
  /** Never answers; the connection stays open. */
  | { readonly kind: 'hang'; readonly afterPassing?: boolean }
  /** Resets the connection. */
  | { readonly kind: 'drop'; readonly afterPassing?: boolean }
  /** Another answer than the server's. */
  | { readonly kind: 'answer'; readonly answer: Answer | ((call: Call) => Answer); readonly afterPassing?: boolean }
  /** A body that never ends, as fast as the client reads. */
  | { readonly kind: 'endless'; readonly afterPassing?: boolean }
  /** Passes it on after `ms`. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** The server's answer, changed: it is given and returns the parsed JSON body (the text where it isn't JSON). */
  | { readonly kind: 'rewrite'; readonly rewrite: (body: unknown, call: Call) => unknown; readonly status?: number }
  /** The server is asked another question, and its answer is passed on: the text of the body as it is sent instead. */
  | { readonly kind: 'ask'; readonly body: (call: Call) => string; readonly rewrite?: (body: unknown, call: Call) => unknown }

/** A name, a pattern that one of the names matches, or any test of the call. */
export type Match = string | RegExp | ((call: Call) => boolean)

export interface ActiveFault {
  /** How many calls it has struck. */
  hits(): number
  remove(): void
}

export interface FaultyProxy {
  readonly url: string
  /** Faults apply in the order they were made; the first that matches and isn't used up strikes. */
  when(match: Match): {
    once(fault: Fault): ActiveFault
    times(count: number, fault: Fault): ActiveFault
    always(fault: Fault): ActiveFault
  }
  /** Ends all faults. Calls that hang go on hanging. */
  clear(): void
  /** How many calls came. */
  calls(match?: Match): number
  /** How many of them the server behind got to see. */
  passed(match?: Match): number
  /** All calls so far, in order. */
  history(): readonly Call[]
  /** Sends what comes from now on to another server. */
  setTarget(url: string): void
  stop(): Promise<void>
}

export interface FaultyProxyOptions {
  /** The server behind; a path in it is put before the request's. */
  readonly target: string
  /** The call's names; default `METHOD /path` without the query. */
  readonly names?: (request: { readonly method: string; readonly path: string; readonly body: string }) => readonly string[]
}

/** An HTTP proxy on 127.0.0.1 that passes everything on unchanged until told otherwise. */
export async function startFaultyHttp({ target, names = byRoute }: FaultyProxyOptions): Promise<FaultyProxy> {
  const agent = new Agent({ keepAlive: true })
  const history: Call[] = []
  const passedOn: Call[] = []
  let rules: { readonly match: Match; readonly fault: Fault; left: number; hits: number }[] = []
  let upstream = target

  const pass = (call: Call): Promise<Answer> => {
    passedOn.push(call)
    return forward(upstream, call, agent)
  }

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'GET', url: path = '/', headers } = request
    const body = await textOf(request)
    const call: Call = { names: names({ method, path, body }), method, path, headers, body }
    history.push(call)
    const rule = rules.find((candidate) => candidate.left > 0 && matches(call, candidate.match))
    if (rule === undefined) return send(response, await pass(call))
    rule.left -= 1
    rule.hits += 1
    await strike(rule.fault, call, response, pass)
  }

  const server = createServer((request, response) => {
    // The server behind can't be reached: so can't we.
    handle(request, response).catch(() => response.destroy())
  })
  server.requestTimeout = 0
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}`,
    when: (match) => {
      const add = (count: number, fault: Fault): ActiveFault => {
        const rule = { match, fault, left: count, hits: 0 }
        rules.push(rule)
        return {
          hits: () => rule.hits,
          remove: () => {
            rules = rules.filter((other) => other !== rule)
          },
        }
      }
      return {
        once: (fault) => add(1, fault),
        times: add,
        always: (fault) => add(Number.POSITIVE_INFINITY, fault),
      }
    },
    clear: () => {
      rules = []
    },
    calls: (match) => count(history, match),
    passed: (match) => count(passedOn, match),
    history: () => [...history],
    setTarget: (url) => {
      upstream = url
    },
    stop: async () => {
      agent.destroy()
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

async function strike(fault: Fault, call: Call, response: ServerResponse, pass: (call: Call) => Promise<Answer>): Promise<void> {
  if ('afterPassing' in fault && fault.afterPassing === true) await pass(call)
  switch (fault.kind) {
    case 'hang':
      return
    case 'drop':
      response.socket?.resetAndDestroy()
      return
    case 'answer':
      return send(response, typeof fault.answer === 'function' ? fault.answer(call) : fault.answer)
    case 'endless':
      return sendForever(response)
    case 'delay':
      await delay(fault.ms)
      return send(response, await pass(call))
    case 'ask': {
      const answer = await pass({ ...call, body: fault.body(call) })
      if (fault.rewrite === undefined) return send(response, answer)
      return send(response, { ...answer, body: JSON.stringify(fault.rewrite(jsonOrText(answer.body), call)) })
    }
    case 'rewrite': {
      const answer = await pass(call)
      const body = fault.rewrite(jsonOrText(answer.body), call)
      return send(response, {
        ...answer,
        status: fault.status ?? answer.status,
        body: typeof body === 'string' ? body : JSON.stringify(body),
      })
    }
  }
}

const byRoute = ({ method, path }: { readonly method: string; readonly path: string }): readonly string[] => [
  `${method} ${path.split('?')[0]}`,
]

const count = (calls: readonly Call[], match: Match | undefined): number =>
  match === undefined ? calls.length : calls.filter((call) => matches(call, match)).length

function matches(call: Call, match: Match): boolean {
  if (typeof match === 'function') return match(call)
  return call.names.some((name) => (typeof match === 'string' ? name === match : match.test(name)))
}

/** Headers that belong to one connection (RFC 9110, section 7.6.1), and the length, which is counted anew. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'host',
]

const endToEnd = (headers: OutgoingHttpHeaders): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name)))

function forward(target: string, call: Call, agent: Agent): Promise<Answer> {
  const base = new URL(target)
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        hostname: base.hostname,
        port: base.port,
        path: `${base.pathname.replace(/\/$/, '')}${call.path}`,
        method: call.method,
        // What comes back is read and perhaps rewritten as text: it must not be compressed.
        headers: { ...endToEnd(call.headers), 'accept-encoding': 'identity', 'content-length': Buffer.byteLength(call.body) },
        agent,
      },
      (response) => {
        textOf(response).then((body) => resolve({ status: response.statusCode ?? 502, headers: endToEnd(response.headers), body }), reject)
      },
    )
    request.once('error', reject)
    request.end(call.body)
  })
}

function send(response: ServerResponse, { status, headers = {}, body }: Answer): void {
  const bodyless = status === 204 || status === 304
  response.writeHead(status, { ...headers, ...(bodyless ? {} : { 'content-length': Buffer.byteLength(body) }) })
  response.end(bodyless ? undefined : body)
}

function sendForever(response: ServerResponse): void {
  const chunk = ' '.repeat(64 * 1024)
  response.writeHead(200, { 'content-type': 'application/json' })
  response.write('{"jsonrpc":"2.0","id":1,"result":"')
  const more = (): void => {
    if (!response.destroyed) response.write(chunk, () => setImmediate(more))
  }
  more()
}

async function textOf(stream: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
