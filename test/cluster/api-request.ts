import { type Agent, request as httpsRequest } from 'node:https'

export interface ApiRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With its query: `/api/v1/namespaces?limit=1`. */
  readonly path: string
  /** Sent as JSON. */
  readonly body?: unknown
  /** Default `application/json`; a PATCH needs its own. */
  readonly contentType?: string
  /** Default `application/json`. */
  readonly accept?: string
  /** Instead of the administrator's. */
  readonly token?: string
  /** Default 30,000. */
  readonly timeoutMs?: number
}

export interface ApiResponse {
  readonly status: number
  /** Parsed JSON; the text where it isn't. */
  readonly body: unknown
}

/** One request to an API server, on a connection of its own unless an agent keeps them. @throws when it can't be reached or takes too long. */
export function apiRequest(
  server: { readonly url: string; readonly caPem: string; readonly token: string; readonly agent?: Agent },
  {
    method = 'GET',
    path,
    body,
    contentType = 'application/json',
    accept = 'application/json',
    token = server.token,
    timeoutMs = 30_000,
  }: ApiRequest,
): Promise<ApiResponse> {
  const payload = body === undefined ? undefined : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const request = httpsRequest(
      new URL(path, server.url),
      {
        method,
        ca: server.caPem,
        agent: server.agent ?? false,
        signal: AbortSignal.timeout(timeoutMs),
        headers: {
          authorization: `Bearer ${token}`,
          accept,
          ...(payload === undefined ? {} : { 'content-type': contentType, 'content-length': Buffer.byteLength(payload) }),
        },
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          text += chunk
        })
        response.once('error', reject)
        response.once('end', () => resolve({ status: response.statusCode ?? 0, body: parsed(text) }))
      },
    )
    request.once('error', reject)
    request.end(payload)
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
