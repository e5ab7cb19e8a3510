import type { FastifyInstance } from 'fastify'
import { sql } from 'kysely'
import type { Metrics } from '../metrics.ts'
import type { NetworkHealth } from '../network-health.ts'
import type { Store } from '../store/database.ts'

const databaseTimeoutMs = 2_000

/**
 * What the platform asks, without an API key: is it alive, can it serve, its metrics. It is ready while its database answers and it isn't
 * stopping. A chain that is away doesn't count, nor does a database that takes no writes: reading goes on, and what writes says 503 with the reason, which
 * nobody would hear of an instance that no request is sent to. `/readyz` says so; `/readyz?verbose` tells of each network, and how many stakes on it the
 * database lacks.
 */
export function operationRoutes(
  app: FastifyInstance,
  {
    store,
    metrics,
    stopping,
    networks,
    missing,
  }: {
    store: Store
    metrics: Metrics
    stopping: AbortSignal
    networks: () => Promise<NetworkHealth>
    missing: () => Promise<readonly { readonly network: string; readonly count: bigint }[]>
  },
): void {
  app.get('/healthz', async () => ({ status: 'ok' }))

  app.get('/readyz', async (request, reply) => {
    const verbose = typeof request.query === 'object' && request.query !== null && 'verbose' in request.query
    const [database, health] = await Promise.all([answers(store), verbose ? networks() : undefined])
    const lacking = verbose && database ? await missing().catch(() => undefined) : undefined
    const ready = database && !stopping.aborted
    const readOnly = store.readOnly()
    return reply.status(ready ? 200 : 503).send({
      status: ready ? 'ready' : stopping.aborted ? 'stopping' : 'unready',
      database: database ? (readOnly === undefined ? 'ok' : 'read-only') : 'unavailable',
      ...(readOnly !== undefined && { reason: readOnly }),
      ...(health && { networks: health }),
      ...(lacking && { missingStakes: Object.fromEntries(lacking.map(({ network, count }) => [network, Number(count)])) }),
    })
  })

  app.get('/metrics', async (_request, reply) => reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()))
}

async function answers({ db }: Store): Promise<boolean> {
  const late = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => late.resolve(false), databaseTimeoutMs)
  try {
    return await Promise.race([
      sql`select 1`.execute(db).then(
        () => true,
        () => false,
      ),
      late.promise,
    ])
  } finally {
    clearTimeout(timer)
  }
}
