import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici'
import { retryAfter } from '../../../lib/http-answer.ts'
import { KeyError } from '../../ports.ts'

/** Certificates of a connection, as mounted files. They are read for each request, so that a renewed one counts at once. */
export interface TlsFiles {
  /** Who may have signed the server's certificate; left out: the authorities that Node knows. */
  readonly caFile?: string | undefined
  /** What the operator shows of itself (mutual TLS): both or neither. */
  readonly certFile?: string | undefined
  readonly keyFile?: string | undefined
  /** The name in the server's certificate, where it isn't the URL's host. */
  readonly serverName?: string | undefined
}

export interface RemoteRequest {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

export interface RemoteAnswer {
  readonly status: number
  readonly text: string
  readonly retryAfterMs: number | undefined
}

export interface RemoteHttp {
  /** One request and its whole answer. Redirects are not followed. @throws KeyError `unavailable`; the signal's reason when that aborts */
  send(request: RemoteRequest, signal: AbortSignal): Promise<RemoteAnswer>
  close(): Promise<void>
}

/** No signer's answer is longer. */
const MAX_BYTES = 65_536
const MAX_TLS_BYTES = 262_144
/** The connection was closed while it was idle, or as the request was sent: asked once more, it is a new one. A signature that nobody has read moves nothing. */
const stale = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

/**
 * @param name of the signer, for messages. They hold no URL, no header and nothing of an answer.
 * @param mostMs for one request and its whole answer, whatever its own signal: a login that many wait for is nobody's, and one that never ends would hold them all
 */
export function createRemoteHttp({
  name,
  mostMs,
  tls = {},
  env = process.env,
}: {
  readonly name: string
  readonly mostMs: number
  readonly tls?: TlsFiles | undefined
  readonly env?: Readonly<Record<string, string | undefined>>
}): RemoteHttp {
  let current: { readonly digest: string; readonly agent: Dispatcher } | undefined

  const unavailable = (what: string, retryAfterMs?: number): KeyError =>
    new KeyError('unavailable', `The remote signer ${name} ${what}. It is asked again.`, { retryAfterMs })

  async function pem(file: string | undefined): Promise<string | undefined> {
    if (file === undefined) return undefined
    try {
      const text = await readFile(file, 'utf8')
      if (text.length <= MAX_TLS_BYTES && text.includes('-----BEGIN ')) return text
    } catch (error) {
      throw unavailable(
        `can't be asked: ${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'}). Mount the Secret that holds it`,
      )
    }
    throw unavailable(`can't be asked: ${file} holds no PEM`)
  }

  /** A new pool of connections where a certificate has changed; what runs over the old one ends there. */
  async function agentNow(): Promise<Dispatcher> {
    const [ca, cert, key] = await Promise.all([pem(tls.caFile), pem(tls.certFile), pem(tls.keyFile)])
    const digest = createHash('sha256')
      .update(JSON.stringify([ca, cert, key]))
      .digest('hex')
    if (current?.digest === digest) return current.agent
    const connect = {
      timeout: 10_000,
      minVersion: 'TLSv1.2' as const,
      // Whatever the process's environment says (NODE_TLS_REJECT_UNAUTHORIZED): who has a key is known by its certificate alone.
      rejectUnauthorized: true,
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
    }
    const pool = { connections: 16, pipelining: 1, keepAliveTimeout: 4_000, headersTimeout: 30_000, bodyTimeout: 30_000 }
    let agent: Dispatcher
    try {
      agent =
        env.NODE_USE_ENV_PROXY === '1' ? new EnvHttpProxyAgent({ ...pool, connect, requestTls: connect }) : new Agent({ ...pool, connect })
    } catch {
      // OpenSSL's words may quote the file.
      throw unavailable("can't be asked: its TLS files do not belong together, or are damaged")
    }
    current?.agent.close().catch(() => {})
    current = { digest, agent }
    return agent
  }

  async function once({ method, url, headers, body }: RemoteRequest, signal: AbortSignal): Promise<RemoteAnswer> {
    const agent = await agentNow()
    const answer = await agent.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method,
      headers,
      body: body ?? null,
      signal,
    })
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength
      if (size > MAX_BYTES) {
        answer.body.destroy()
        throw unavailable(`answered (${answer.statusCode}) with more than ${MAX_BYTES} bytes: is its URL right?`)
      }
      chunks.push(chunk)
    }
    const after = answer.headers['retry-after']
    return {
      status: answer.statusCode,
      text: Buffer.concat(chunks).toString('utf8'),
      retryAfterMs: retryAfter(typeof after === 'string' ? after : null),
    }
  }

  return {
    async send(request, signal) {
      const timeout = AbortSignal.timeout(mostMs)
      for (let attempt = 1; ; attempt++) {
        signal.throwIfAborted()
        try {
          return await once(request, AbortSignal.any([signal, timeout]))
        } catch (error) {
          if (error instanceof KeyError) throw error
          signal.throwIfAborted()
          if (timeout.aborted) throw unavailable(`did not answer within ${mostMs} ms`)
          const code = codeOf(error)
          if (attempt < 2 && stale.has(code)) continue
          throw unavailable(`cannot be reached (${code})`)
        }
      }
    },
    close: async () => {
      await current?.agent.close()
    },
  }
}

/** The code of a Node, OpenSSL or undici error: upper-case letters only, so that it can stand in a message. */
function codeOf(error: unknown): string {
  for (let one = error, depth = 0; one instanceof Error && depth < 4; one = one.cause, depth++) {
    const code = (one as { code?: unknown }).code
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code)) return code
  }
  return 'unknown error'
}

/** @throws KeyError `unavailable` where it is no JSON, or more than one */
export function jsonOf(name: string, { text, status, retryAfterMs }: RemoteAnswer): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new KeyError(
      'unavailable',
      `The remote signer ${name} answered (${status}) what is not its protocol: is its URL right, or is a proxy in between? It is asked again.`,
      { retryAfterMs },
    )
  }
}

/** Answers that often pass. */
export const isPassing = (status: number): boolean => status >= 500 || status === 429 || status === 408 || (status >= 300 && status < 400)
