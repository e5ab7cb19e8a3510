import { Pool } from 'undici'
import { parseKubeconfig } from '../src/operator/kube/kubeconfig.ts'
import type { ControlPlane } from '../test/cluster/control-plane.ts'

/** Requests to the API server with nothing in between: one undici pool, the administrator's token, JSON. */
export interface BareClient {
  /** @returns the parsed answer. @throws for any status beyond 2xx. */
  send<T>(method: 'GET' | 'POST' | 'PATCH', path: string, body?: unknown): Promise<T>
  close(): Promise<void>
}

export function createBareClient(cluster: ControlPlane): BareClient {
  const token = parseKubeconfig(cluster.adminKubeconfig).users[0]?.token ?? ''
  const pool = new Pool(cluster.url, { connect: { ca: cluster.caPem }, allowH2: false })
  const plain = { authorization: `Bearer ${token}`, accept: 'application/json' }
  const headers = {
    GET: plain,
    POST: { ...plain, 'content-type': 'application/json' },
    PATCH: { ...plain, 'content-type': 'application/merge-patch+json' },
  }
  return {
    async send<T>(method: 'GET' | 'POST' | 'PATCH', path: string, body?: unknown) {
      const response = await pool.request({
        method,
        path,
        headers: headers[method],
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.body.text()
      if (response.statusCode >= 300) throw new Error(`${method} ${path}: ${response.statusCode} ${text.slice(0, 500)}`)
      return JSON.parse(text) as T
    },
    close: () => pool.close(),
  }
}

/** Does something for each of `0 … count - 1`, so many at a time. */
export async function forEachOf(
  count: number,
  atATime: number,
  work: (index: number) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) {
      signal.throwIfAborted()
      await work(next++)
    }
  }
  await Promise.all(Array.from({ length: Math.min(atATime, count) }, worker))
}
