import type { FastifyReply, FastifyRequest } from 'fastify'
import { routes } from '../../contract/routes.ts'
import { preferredWaitMs } from '../../contract/wait.ts'
import { entityTag, knownTags } from './entity-tags.ts'
import type { Place, Waiting } from './waiting.ts'
import type { Written } from './written-answers.ts'

declare module 'fastify' {
  interface FastifyInstance {
    waiting: Waiting
  }
  interface FastifyRequest {
    /** @throws ProblemError when the caller may not have the answer any more */
    permitAgain: (() => Promise<void>) | undefined
    /** Waits, and is no request that is being served meanwhile. */
    stepAside: ((wait: Promise<void>) => Promise<void>) | undefined
    waitedMs: number
    /** Of the answer, where that was written before. */
    entityTag: string | undefined
  }
}

/** What only the chain changes is looked for so often: a validator's state moves with slots and epochs, a Solana transaction's with its confirmation. */
const lookAgainMs = ({ routeOptions: { config } }: FastifyRequest): number => (config.contract === routes.getSolanaStake ? 5_000 : 12_000)

/**
 * Answers a GET of one resource. Who names the state that it has (If-None-Match) and asks to wait gets the answer once there is another one, or when the wait is
 * over. Where there is no place to wait in, it comes at once, and without Preference-Applied.
 */
export async function sendChanged(
  request: FastifyRequest,
  reply: FastifyReply,
  look: () => Promise<{ readonly status: number; readonly body?: unknown } | Written>,
): Promise<FastifyReply> {
  const read = async () => {
    const found = await look()
    reply.status(found.status)
    request.entityTag = 'tag' in found ? found.tag : undefined
    return 'tag' in found ? found.body : String(reply.serialize(found.body))
  }
  const send = (payload: string) => reply.type('application/json; charset=utf-8').send(payload)
  const askedMs = askedWaitMs(request)
  const known = knownTags(request)
  const names = known.length > 0 && !known.includes('*')
  const place = askedMs === undefined || askedMs === 0 || !names ? undefined : placeFor(request)
  const isHonoured = askedMs !== undefined && (place !== undefined || askedMs === 0 || !names)
  if (isHonoured) reply.header('preference-applied', `wait=${Math.floor(askedMs / 1000)}`)
  if (place === undefined || askedMs === undefined) return send(await read())

  const left = new AbortController()
  const onClose = () => left.abort('the client has left')
  reply.raw.once('close', onClose)
  try {
    const payload = await untilChanged(request, { place, known, read, waitMs: askedMs, left: left.signal })
    // An instance that ends closes the connection with the answer.
    if (request.server.waiting.over.aborted) reply.header('connection', 'close')
    return send(payload)
  } finally {
    reply.raw.off('close', onClose)
    place.leave()
  }
}

async function untilChanged(
  request: FastifyRequest,
  given: {
    readonly place: Place
    readonly known: readonly string[]
    readonly read: () => Promise<string>
    readonly waitMs: number
    readonly left: AbortSignal
  },
): Promise<string> {
  const { place, known, read, waitMs, left } = given
  const { clock, over } = request.server.waiting
  const begun = clock.monotonicMs()
  let payload = await read()
  while (known.includes(request.entityTag ?? entityTag(payload)) && !left.aborted && !over.aborted) {
    const from = clock.monotonicMs()
    const restMs = begun + waitMs - from
    if (restMs <= 0) break
    await request.stepAside?.(place.next(Math.min(restMs, lookAgainMs(request)), left))
    request.waitedMs += clock.monotonicMs() - from
    if (left.aborted) break
    // A key that was revoked meanwhile learns nothing more.
    await request.permitAgain?.()
    payload = await read()
  }
  return payload
}

/** The query comes before the header. Undefined: nothing was asked. */
function askedWaitMs({ query, headers }: FastifyRequest): number | undefined {
  const wait = typeof query === 'object' && query !== null && 'wait' in query ? query.wait : undefined
  return typeof wait === 'number' ? wait : preferredWaitMs(headers.prefer)
}

function placeFor({ params, caller, server }: FastifyRequest): Place | undefined {
  const { requestId, stakeId } = params as { readonly requestId?: string; readonly stakeId?: string }
  const id = requestId ?? stakeId
  return id === undefined || caller === undefined ? undefined : server.waiting.enter(caller.keyId, id)
}
