import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { ProblemError } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import type { HttpLimits } from './app.ts'

const sweepMs = 1_000

/** The places of requests that are being served. */
export interface Admission {
  /** None is left, or none is given any more. */
  isFull(): boolean
  /** An account has as many as it may: what it sends slowly, or makes wait for a slow node, keeps no other account's place. */
  isFullFor(account: string): boolean
  /** Takes a place until the client has taken the answer, or has left. */
  enter(answer: ServerResponse): void
  /** Says whose a place is that was taken. */
  assign(answer: ServerResponse, account: string): void
}

/** Takes as many requests of the contract at once as it may, and none once it has stopped. What the platform asks is always answered. */
export function admit(
  app: FastifyInstance,
  { maxInFlight, maxInFlightPerAccount, requestTimeoutMs }: HttpLimits,
  metrics: Pick<Metrics, 'onScrapeInFlight' | 'shed'>,
  stopped: AbortSignal,
): Admission {
  const answers = new Map<ServerResponse, string | undefined>()
  const byAccount = new Map<string, number>()
  const count = (account: string | undefined, change: 1 | -1) => {
    if (account === undefined) return
    const places = (byAccount.get(account) ?? 0) + change
    if (places === 0) byAccount.delete(account)
    else byAccount.set(account, places)
  }
  /** Those whose requests wait, and are not being served meanwhile. */
  let aside = 0
  metrics.onScrapeInFlight(() => answers.size - aside)
  const isFull = () => stopped.aborted || answers.size - aside >= maxInFlight
  const isFullFor = (account: string) => (byAccount.get(account) ?? 0) >= maxInFlightPerAccount
  const enter = (answer: ServerResponse) => {
    answers.set(answer, undefined)
    answer.once('close', () => {
      count(answers.get(answer), -1)
      answers.delete(answer)
    })
  }
  const assign = (answer: ServerResponse, account: string) => {
    if (!answers.has(answer)) return
    count(answers.get(answer), -1)
    answers.set(answer, account)
    count(account, 1)
  }
  app.addHook('onRequest', (request, reply, done) => {
    if (request.routeOptions.config.contract === undefined) return done()
    if (stopped.aborted) {
      const refusal = new ProblemError('service-unavailable', 'this instance is stopping: ask again', { retryAfterSeconds: 1 })
      // Who is still sending its body when the connection is closed would be reset, and never read this.
      return void wholeBody(request.raw).then(() => done(refusal))
    }
    if (isFull()) {
      metrics.shed()
      return done(new ProblemError('service-unavailable', `${maxInFlight} requests are being served: ask again`, { retryAfterSeconds: 1 }))
    }
    enter(reply.raw)
    request.stepAside = async (wait) => {
      const account = answers.get(reply.raw)
      aside++
      count(account, -1)
      await wait.finally(() => {
        aside--
        // Who has left meanwhile was counted off as one that holds a place.
        count(account, 1)
      })
    }
    done()
  })

  /** Answers that are written, and that their clients have not taken yet; each with the number of looks that have found it so. */
  let slow = new Map<ServerResponse, number>()
  const sweep = setInterval(() => {
    const still = new Map<ServerResponse, number>()
    for (const answer of answers.keys()) if (answer.writableEnded) still.set(answer, (slow.get(answer) ?? 0) + 1)
    // As a client that sends too slowly, one that reads too slowly would keep a place from others.
    for (const [answer, looks] of still) if (looks * sweepMs > requestTimeoutMs) answer.destroy()
    slow = still
  }, sweepMs).unref()
  app.addHook('onClose', async () => clearInterval(sweep))
  return { isFull, isFullFor, enter, assign }
}

/** Reads to the end of a request, or of its connection; the request's own time-out bounds it. */
async function wholeBody(request: IncomingMessage): Promise<void> {
  if (request.complete) return
  const ended = new Promise<void>((done) => request.once('end', done).once('close', done))
  request.resume()
  await ended
}
