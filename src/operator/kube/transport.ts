import { type Dispatcher, Pool, ProxyAgent } from 'undici'
import { type Access, type Credentials, sameConnection } from './credentials.ts'
import { answerTooLarge, KubeTransportError } from './errors.ts'

export interface Answer {
  readonly status: number
  readonly text: string
  /** Length of the body on the wire; 0 for a body that went to `onData`. */
  readonly bytes: number
  readonly retryAfter: string | undefined
}

/**
 * What is read of any answer at most, in bytes. The API server takes no object larger than 3 MiB (etcd, by default, 1.5 MiB); for what it keeps as protobuf, JSON
 * may write a character as six (`\u003c`).
 */
export const LARGEST_ANSWER_BYTES = 32 * 1024 * 1024

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  /** From `/api` or `/apis` on, with its query. */
  readonly path: string
  readonly body?: string
  readonly contentType?: string
  /** How much of the answer's body is taken, in bytes; LARGEST_ANSWER_BYTES by default. */
  readonly maxBytes?: number
}

export interface Transport {
  /**
   * Sends and reads the whole answer. A 2xx answer beyond `maxBytes` is given up as soon as that shows; of a longer refusal only the beginning is kept.
   * @throws KubeError `AnswerTooLarge`, KubeTransportError, or the signal's reason.
   */
  request(request: TransportRequest, signal: AbortSignal): Promise<Answer>
  /** As `request`, but a 200's body goes to `onData` piece by piece, for as long as it comes; `text` is then ''. A throw of `onData` ends it. */
  stream(request: TransportRequest, onData: (chunk: Buffer) => void, signal: AbortSignal): Promise<Answer>
  close(): Promise<void>
}

export interface TransportOptions {
  readonly credentials: Credentials
  readonly requestTimeoutMs: number
  readonly userAgent: string
}

/**
 * HTTP to one API server over one pool of connections, kept as long as the TLS material is the same. (Node's own agents, and the clients over them, make a new
 * handshake, for every request.) Answers are read by a handler of our own: undici's `request` builds a stream for each, which costs more than the parsing.
 */
export function createTransport({ credentials, requestTimeoutMs, userAgent }: TransportOptions): Transport {
  let pool: { readonly access: Access; readonly dispatcher: Dispatcher } | undefined
  const headerSets = new WeakMap<Access, Map<string, string[]>>()

  const dispatcherFor = (access: Access): Dispatcher => {
    if (pool?.access === access) return pool.dispatcher
    if (pool === undefined || !sameConnection(pool.access, access)) {
      // What runs over the old connections may end in its own time.
      pool?.dispatcher.close().catch(() => {})
      pool = { access, dispatcher: createDispatcher(access) }
    } else pool = { access, dispatcher: pool.dispatcher }
    return pool.dispatcher
  }

  const headersFor = (access: Access, contentType: string): string[] => {
    const sets = headerSets.get(access) ?? new Map<string, string[]>()
    headerSets.set(access, sets)
    let headers = sets.get(contentType)
    if (!headers) {
      headers = ['accept', 'application/json', 'user-agent', userAgent, ...access.headers.flat()]
      if (contentType !== '') headers.push('content-type', contentType)
      sets.set(contentType, headers)
    }
    return headers
  }

  const send = (access: Access, request: TransportRequest, onData: OnData | undefined, signal: AbortSignal): Promise<Answer> =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const exchange = new Exchange(resolve, reject, onData, signal, requestTimeoutMs, request.maxBytes ?? LARGEST_ANSWER_BYTES)
      try {
        dispatcherFor(access).dispatch(
          {
            origin: access.origin,
            path: access.basePath + request.path,
            method: request.method,
            headers: headersFor(access, request.contentType ?? ''),
            body: request.body ?? null,
            headersTimeout: 0,
            bodyTimeout: 0,
          },
          exchange,
        )
      } catch (error) {
        exchange.fail(error)
      }
    })

  const exchange = async (request: TransportRequest, onData: OnData | undefined, signal: AbortSignal): Promise<Answer> => {
    const known = credentials.access()
    const access = known instanceof Promise ? await known : known
    const answer = await send(access, request, onData, signal)
    if (answer.status !== 401) return answer
    const renewed = await credentials.renew(access)
    return renewed === access ? answer : send(renewed, request, onData, signal)
  }

  return {
    request: (request, signal) => exchange(request, undefined, signal),
    stream: (request, onData, signal) => exchange(request, onData, signal),
    close: async () => {
      await pool?.dispatcher.destroy()
      pool = undefined
    },
  }
}

/** Idle connections are dropped before the server's own limit (90 s in Go's server) or a balancer's (60 s) cuts them under a request. */
const KEEP_ALIVE_MS = 30_000
const CONNECT_TIMEOUT_MS = 10_000

function createDispatcher({ origin, tls, proxyUrl }: Access): Dispatcher {
  const timeouts = { keepAliveTimeout: KEEP_ALIVE_MS, keepAliveMaxTimeout: KEEP_ALIVE_MS }
  if (proxyUrl === undefined)
    return new Pool(origin, {
      ...timeouts,
      allowH2: false,
      connect: { ...tls, timeout: CONNECT_TIMEOUT_MS, keepAlive: true, keepAliveInitialDelay: 15_000 },
    })
  if (!/^https?:/.test(proxyUrl))
    throw new KubeTransportError('PROXY', 'the kubeconfig names a proxy that is neither http nor https: only these are supported')
  return new ProxyAgent({ ...timeouts, uri: proxyUrl, allowH2: false, requestTls: { ...tls, timeout: CONNECT_TIMEOUT_MS } })
}

type OnData = (chunk: Buffer) => void

/** One request and its answer, read straight from undici's dispatcher. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: Answer) => void
  readonly #reject: (error: unknown) => void
  readonly #onData: OnData | undefined
  readonly #signal: AbortSignal
  readonly #onAbort: () => void
  readonly #timeoutMs: number
  readonly #maxBytes: number
  #timer: NodeJS.Timeout | undefined
  #controller: Dispatcher.DispatchController | undefined
  #settled = false
  #status = 0
  #retryAfter: string | undefined
  #first: Buffer | undefined
  #rest: Buffer[] | undefined
  #bytes = 0

  constructor(
    resolve: (answer: Answer) => void,
    reject: (error: unknown) => void,
    onData: OnData | undefined,
    signal: AbortSignal,
    timeoutMs: number,
    maxBytes: number,
  ) {
    this.#resolve = resolve
    this.#reject = reject
    this.#onData = onData
    this.#signal = signal
    this.#timeoutMs = timeoutMs
    this.#maxBytes = maxBytes
    this.#onAbort = () => this.fail(this.#signal.reason)
    signal.addEventListener('abort', this.#onAbort)
    // Real time on purpose: it bounds a socket, which no test clock drives.
    this.#timer = setTimeout(
      () => this.fail(new KubeTransportError('TIMEOUT', `the API server gave no answer within ${this.#timeoutMs} ms`)),
      timeoutMs,
    )
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#settled) controller.abort(new Error('the caller no longer waits'))
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = status
    const retryAfter = headers['retry-after']
    if (typeof retryAfter === 'string') this.#retryAfter = retryAfter
    if (this.#onData !== undefined && status === 200) this.#stopTimer()
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return
    if (this.#onData !== undefined && this.#status === 200) {
      try {
        this.#onData(chunk)
      } catch (error) {
        this.fail(error)
      }
      return
    }
    if (this.#bytes + chunk.length > this.#maxBytes) {
      if (this.#status < 300) this.fail(answerTooLarge(this.#maxBytes))
      return
    }
    this.#bytes += chunk.length
    if (this.#first === undefined) this.#first = chunk
    else if (this.#rest === undefined) this.#rest = [this.#first, chunk]
    else this.#rest.push(chunk)
  }

  onResponseEnd(): void {
    if (!this.#settle()) return
    const body = this.#rest === undefined ? this.#first : Buffer.concat(this.#rest)
    this.#resolve({
      status: this.#status,
      text: body === undefined ? '' : body.toString('utf8'),
      bytes: this.#bytes,
      retryAfter: this.#retryAfter,
    })
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.fail(error)
  }

  fail(error: unknown): void {
    if (!this.#settle()) return
    this.#controller?.abort(error instanceof Error ? error : new Error('aborted', { cause: error }))
    this.#reject(
      this.#signal.aborted || !isSystemError(error)
        ? error
        : new KubeTransportError(error.code, `the API server can't be reached: ${error.message}`, { cause: error }),
    )
  }

  #settle(): boolean {
    if (this.#settled) return false
    this.#settled = true
    this.#stopTimer()
    this.#signal.removeEventListener('abort', this.#onAbort)
    return true
  }

  #stopTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

const isSystemError = (error: unknown): error is Error & { code: string } =>
  error instanceof Error && !(error instanceof KubeTransportError) && 'code' in error && typeof error.code === 'string'
