import { RpcFailure } from './rpc-failure.ts'

/** The body as text, read only as far as it is allowed to go. Throws `too-large`. */
export async function readText(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    // Leaving the loop cancels the stream.
    if (size > maxBytes) throw new RpcFailure('too-large', `the node's answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** fetch refuses URLs with a user name or password. */
export function splitCredentials(text: string): { url: string; authorization: string | undefined } {
  const url = new URL(text)
  const { username, password } = url
  url.username = ''
  url.password = ''
  const none = username === '' && password === ''
  const basic = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')
  return { url: url.href, authorization: none ? undefined : `Basic ${basic}` }
}

/** Seconds only, as RPC providers send it; at most a minute, since there may be other nodes. */
export const retryAfter = (header: string | null): number | undefined =>
  header !== null && /^\d{1,6}$/.test(header) ? Math.min(Number(header) * 1000, 60_000) : undefined
