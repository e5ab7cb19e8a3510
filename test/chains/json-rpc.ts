/** A node's own refusal. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number
  constructor(method: string, code: number, message: string) {
    super(`${method}: ${message}`)
    this.code = code
  }
}

/** One JSON-RPC call. @throws RpcError for an error in the answer, and whatever fetch throws. */
export async function callRpc<T>(url: string, method: string, params: readonly unknown[] = [], timeoutMs = 10_000): Promise<T> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(timeoutMs),
  })
  if (!response.ok) throw new Error(`${method}: HTTP ${response.status}`)
  const answer = (await response.json()) as { result?: T; error?: { code: number; message: string } }
  if (answer.error !== undefined) throw new RpcError(method, answer.error.code, answer.error.message)
  return answer.result as T
}
