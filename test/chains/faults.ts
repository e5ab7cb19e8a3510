import type { Call, Fault } from './faulty-http.ts'

/** Faults by the name of what a client meets. */

/** The server did the work and its answer never comes: the case that costs money when it is taken for a failure. */
export const timeoutAfterPassing: Fault = { kind: 'hang', afterPassing: true }
/** As above, seen as a reset connection: the same unknown outcome, without the wait. */
export const resetAfterPassing: Fault = { kind: 'drop', afterPassing: true }
export const timeout: Fault = { kind: 'hang' }
export const reset: Fault = { kind: 'drop' }
export const endlessBody: Fault = { kind: 'endless' }
export const latency = (ms: number): Fault => ({ kind: 'delay', ms })

export const httpStatus = (status: number, headers: Readonly<Record<string, string>> = {}, body = ''): Fault => ({
  kind: 'answer',
  answer: { status, headers: { 'content-type': 'text/plain', ...headers }, body },
})
export const tooManyRequests = (retryAfterSeconds: number): Fault => httpStatus(429, { 'retry-after': String(retryAfterSeconds) })

/** What a gateway in front of a dead server says, with a 200 or another status. */
export const html = (status = 200): Fault => ({
  kind: 'answer',
  answer: {
    status,
    headers: { 'content-type': 'text/html' },
    body: '<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>',
  },
})

/** Rewrites the JSON body of the server's own answer. */
export const rewriteJson = <T>(rewrite: (body: T, call: Call) => unknown): Fault => ({
  kind: 'rewrite',
  rewrite: (body, call) => rewrite(body as T, call),
})
