import { Agent } from 'undici'
import { checkedLookup, literalOf, mayReach, refusalOf, TargetError, type WebhookPolicy } from './target.ts'

/** What became of an attempt. `error` is for the tenant: of the answer it holds the status, and nothing of its body. */
export type Sent = { readonly is: 'delivered' } | { readonly is: 'failed' | 'gone'; readonly error: string }

export interface Sender {
  /** POSTs once, follows no redirect, and reads no more of the answer than its status. Throws only when the signal aborts. */
  send(url: string, headers: Readonly<Record<string, string>>, body: string, signal: AbortSignal): Promise<Sent>
  close(): Promise<void>
}

const maxHeaderBytes = 16 * 1024
/** So much of an answer is read past, and for so long, for the connection's sake. */
const maxBodyBytes = 16 * 1024
const maxBodyMs = 500

export function createSender({ policy, timeoutMs, userAgent }: { policy: WebhookPolicy; timeoutMs: number; userAgent: string }): Sender {
  const check = mayReach(policy)
  // Not by a proxy of the environment: that would connect where nothing was checked.
  const agent = new Agent({
    // As many as there are deliveries under way: endpoints of many accounts are at one host, and a slow one must hold no other's connection.
    pipelining: 1,
    keepAliveTimeout: 1_000,
    keepAliveMaxTimeout: 1_000,
    maxHeaderSize: maxHeaderBytes,
    connect: { timeout: timeoutMs, lookup: checkedLookup(policy) },
  })
  return {
    async send(url, headers, body, signal) {
      const late = AbortSignal.timeout(timeoutMs)
      try {
        const target = new URL(url)
        const refusal = refusalOf(url, policy)
        // The policy may be another one than when the endpoint was made. A literal address is not looked up.
        const literal = literalOf(target)
        if (refusal !== undefined || (literal !== undefined && !check(literal)))
          throw new TargetError(`the URL ${refusal ?? 'must be a public address'}`)
        const { statusCode, body: answer } = await agent.request({
          origin: target.origin,
          path: `${target.pathname}${target.search}`,
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json', 'user-agent': userAgent },
          body,
          signal: AbortSignal.any([signal, late]),
          headersTimeout: timeoutMs,
          bodyTimeout: timeoutMs,
        })
        // What it says beside its status is nobody's concern, and may never end.
        const enough = AbortSignal.any([signal, late, AbortSignal.timeout(maxBodyMs)])
        await answer.dump({ limit: maxBodyBytes, signal: enough }).catch(() => undefined)
        if (statusCode >= 200 && statusCode < 300) return { is: 'delivered' }
        return { is: statusCode === 410 ? 'gone' : 'failed', error: `the endpoint answered ${statusCode}` }
      } catch (error) {
        signal.throwIfAborted()
        return { is: 'failed', error: late.aborted ? `no answer within ${timeoutMs} ms` : reasonOf(error) }
      }
    },
    close: () => agent.destroy(),
  }
}

function reasonOf(error: unknown): string {
  for (let current = error, depth = 0; current instanceof Error && depth < 4; current = current.cause, depth++) {
    if (current instanceof TargetError) return current.message
    const code = (current as { code?: unknown }).code
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code)) return `the endpoint could not be reached (${code})`
  }
  return 'the endpoint could not be reached'
}
