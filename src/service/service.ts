import type { FastifyInstance } from 'fastify'
import type { Hex } from '../chains/ethereum/chain.ts'
import type { NodeBoard } from '../chains/nodes/board.ts'
import { openApiDocument } from '../contract/openapi.ts'
import { fastifyUrl, type Route, routes } from '../contract/routes.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import { createApiKeys } from './api-keys.ts'
import { type AuditSettings, createAudit, defaultAuditSettings } from './audit.ts'
import { docsRoutes } from './docs/routes.ts'
import { createDepositFates } from './ethereum/deposit-fates.ts'
import { createDepositMaker, type DepositMaker } from './ethereum/deposit-maker.ts'
import { createMissingStakes } from './ethereum/missing-stakes.ts'
import type { EthereumNetworks } from './ethereum/networks.ts'
import { countErrors } from './ethereum/networks.ts'
import { createTakeNewKey } from './ethereum/new-key.ts'
import { checkPubkey, createLocate } from './ethereum/requests/locate.ts'
import { createPaymentTracker } from './ethereum/requests/payments.ts'
import { validatorRoutes } from './ethereum/requests/routes.ts'
import { createRequestTracker } from './ethereum/requests/tracker.ts'
import { createUnreportedRequests } from './ethereum/requests/unreported.ts'
import { ethereumStakeRoutes } from './ethereum/routes.ts'
import { createTracker, type Tracker } from './ethereum/tracker.ts'
import { createUnreportedPayments } from './ethereum/unreported-payments.ts'
import { createValidatorStatuses } from './ethereum/validator-statuses.ts'
import { createApp, createOperationsApp, defaultHttpLimits, type HttpLimits } from './http/app.ts'
import { answerAtHand } from './http/at-hand.ts'
import { auditRoutes } from './http/audit-routes.ts'
import { installAuth, type RateLimits } from './http/auth.ts'
import type { Certificate } from './http/certificate.ts'
import { createReplays, isAnswered, serve } from './http/contract-route.ts'
import { createNetworkCheck, installNetworkCheck } from './http/network-limits.ts'
import { operationRoutes } from './http/operations.ts'
import { installProblems } from './http/problems.ts'
import { createWaiting } from './http/waiting.ts'
import { createIdempotency } from './idempotency.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { createNetworkHealth } from './network-health.ts'
import { createRateLimiter } from './rate-limits.ts'
import type { ValidatorKeys } from './seed.ts'
import { defaultSolanaPolicy, type SolanaPolicy } from './solana/deps.ts'
import { createSolanaFollower, type SolanaFollower } from './solana/follow.ts'
import { asProblems, type SolanaNetworks } from './solana/networks.ts'
import { solanaStakeRoutes } from './solana/routes.ts'
import type { Store } from './store/database.ts'
import type { KeyIndices } from './store/key-index.ts'
import { countMissing } from './store/missing-stakes.ts'
import { networkOfResource, networksOfRecords } from './store/resource-networks.ts'
import { countByState } from './store/stakes.ts'
import { pendingDeliveries } from './store/webhooks.ts'
import { createDeliverer, type Deliverer, type DelivererDeps, leaseOf } from './webhooks/deliverer.ts'
import { webhookRoutes } from './webhooks/routes.ts'
import { createSender } from './webhooks/send.ts'
import type { WebhookPolicy } from './webhooks/target.ts'

export interface ServiceDeps {
  readonly store: Store
  readonly networks: EthereumNetworks
  /** Default: none. */
  readonly solanaNetworks?: SolanaNetworks
  readonly solanaPolicy?: SolanaPolicy
  readonly keys: ValidatorKeys
  readonly indices: KeyIndices
  /** Default: in this thread. */
  readonly deposits?: DepositMaker
  readonly clock: Clock
  readonly log: Logger
  readonly version: string
  readonly rateLimit: RateLimits
  /** What is written down of requests. */
  readonly audit?: AuditSettings
  readonly httpLimits?: Partial<HttpLimits>
  /** Health and metrics are not served beside the API. */
  readonly operationsApart?: boolean
  readonly trustProxy?: readonly string[]
  /** With one, the API is served over TLS alone. Health and metrics on a port of their own are not. */
  readonly certificate?: Certificate | undefined
  readonly trackerIntervalMs: number
  readonly webhooks?: Partial<WebhookSettings>
  /** How long a crashed instance holds an Idempotency-Key, in ms. Only tests want it shorter. */
  readonly leaseMs?: number
  /** How webhooks are tried again. Only tests want it quicker. */
  readonly deliveries?: Partial<Pick<DelivererDeps, 'leaseMs' | 'pollMs' | 'retry' | 'maxPending'>>
  /** Shows the networks' nodes, for metrics. */
  readonly nodes?: NodeBoard
  /** Aborted when the service is about to end: it says so to those who ask whether it is ready. */
  readonly stopping: AbortSignal
}

export interface WebhookSettings extends WebhookPolicy {
  readonly timeoutMs: number
  readonly maxEndpoints: number
  readonly maxPending: number
}
const defaultWebhookSettings: WebhookSettings = {
  allowHttp: false,
  allowAddresses: [],
  timeoutMs: 10_000,
  maxEndpoints: 10,
  maxPending: 10_000,
}

export interface Service {
  readonly app: FastifyInstance
  /** Serves what the platform asks, where that has a port of its own. */
  readonly operations?: FastifyInstance
  readonly tracker: Tracker
  readonly deliverer: Deliverer
  readonly solanaFollower: SolanaFollower
  readonly metrics: Metrics
  /** From now on, requests are told to go elsewhere. */
  refuse(): void
}

/** The staking service, not yet listening. Several may share one PostgreSQL. */
export async function createService(deps: ServiceDeps): Promise<Service> {
  const { store, clock, log, stopping } = deps
  const metrics = createMetrics()
  metrics.onScrape(() => countByState(store.db))
  const missing = () => countMissing(store.db)
  metrics.onScrapeMissing(missing)
  if (deps.nodes !== undefined) metrics.showNodes(deps.nodes)
  if (store.connections !== undefined) metrics.onScrapePool(store.connections)
  const networks: EthereumNetworks = new Map([...deps.networks].map(([name, network]) => [name, countErrors(network, metrics)]))
  const solanaNetworks: SolanaNetworks = new Map(
    [...(deps.solanaNetworks ?? [])].map(([name, network]) => [name, asProblems(network, metrics)]),
  )
  const idempotency = createIdempotency({ store, ...(deps.leaseMs === undefined ? {} : { leaseMs: deps.leaseMs }) })
  const tracker = createTracker({
    store,
    networks,
    clock,
    log,
    metrics,
    intervalMs: deps.trackerIntervalMs,
    unreported: createUnreportedPayments({ store, clock, log }),
    missing: createMissingStakes({ store, clock, log }),
    fates: createDepositFates({ store, log, metrics }),
    requests: createRequestTracker({
      store,
      log,
      metrics,
      payments: createPaymentTracker({ store, log }),
      unreported: createUnreportedRequests({ store, clock, log }),
    }),
  })

  const solanaFollower = createSolanaFollower({ store, networks: solanaNetworks, clock, log })

  const stopped = new AbortController()
  const limits: HttpLimits = { ...defaultHttpLimits, ...deps.httpLimits }
  const { app, admission } = createApp({
    log,
    metrics,
    stopping,
    stopped: stopped.signal,
    limits,
    trustProxy: deps.trustProxy ?? [],
    certificate: deps.certificate,
  })
  const max = Math.min(limits.maxWaiting, Math.floor(limits.maxConnections / 2))
  const waiting = createWaiting({ store, clock, max, maxPerKey: limits.maxWaitingPerKey, over: stopping })
  app.decorate('waiting', waiting)
  metrics.onScrapeWaiting(waiting.count)
  const served = recordServed(app)
  const locate = createLocate({ store, networks })
  const checkNetwork = createNetworkCheck({
    ofResource: (account, id) => networkOfResource(store.db, account, id),
    ofRecords: (account, pubkey) => networksOfRecords(store.db, account, pubkey),
    isAnswered: (request) => isAnswered(idempotency, request),
    ofValidator: async (account, pubkey, signal) => {
      checkPubkey(pubkey as Hex)
      return (await locate(account, pubkey as Hex, signal))?.config.name
    },
  })
  installProblems(app, {
    allowedMethods: (path) => served.filter((route) => route.pattern.test(path)).map((route) => route.method),
    replayOf: createReplays(idempotency, checkNetwork),
  })
  const access = {
    apiKeys: createApiKeys({ store, clock, remember: true }),
    audit: createAudit({ store, clock, log, settings: deps.audit ?? defaultAuditSettings }),
    limiter: createRateLimiter({ store, clock, ...deps.rateLimit }),
  }
  await installAuth(app, { ...access, checkNetwork, limits: deps.rateLimit, admission, onShed: metrics.shed })
  installNetworkCheck(app, checkNetwork)
  const networkHealth = createNetworkHealth({ networks: deps.networks, solanaNetworks: deps.solanaNetworks ?? new Map(), clock })
  metrics.onScrapeNetworks(networkHealth)
  const operations = deps.operationsApart === true ? createOperationsApp(log, limits) : app
  operationRoutes(operations, { store, metrics, stopping, networks: networkHealth, missing })
  app.get('/openapi.json', async () => servedOnly(deps.version, served))
  docsRoutes(app)
  const deposits = deps.deposits ?? createDepositMaker(deps.keys)
  const stakesAtHand = ethereumStakeRoutes(app, {
    store,
    idempotency,
    networks,
    clock,
    log,
    metrics,
    validators: createValidatorStatuses({ networks, clock, log }),
    takeNewKey: createTakeNewKey({ keys: deps.keys, deposits, indices: deps.indices, log, metrics }),
  })
  const hasProxies = (deps.trustProxy ?? []).length > 0
  answerAtHand(app, [stakesAtHand], { ...access, admission, metrics, log, stopping, hasProxies })
  validatorRoutes(app, { store, idempotency, networks, clock, log, metrics })
  solanaStakeRoutes(app, {
    store,
    idempotency,
    networks: solanaNetworks,
    clock,
    log,
    metrics,
    policy: deps.solanaPolicy ?? defaultSolanaPolicy,
  })
  auditRoutes(app, store)
  const webhooks: WebhookSettings = { ...defaultWebhookSettings, ...deps.webhooks }
  webhookRoutes(app, { store, idempotency, keys: deps.keys, clock, policy: webhooks, maxEndpoints: webhooks.maxEndpoints })
  const sender = createSender({ policy: webhooks, timeoutMs: webhooks.timeoutMs, userAgent: `staking-service/${deps.version}` })
  app.addHook('onClose', () => sender.close())
  metrics.onScrapeWebhooks(() => pendingDeliveries(store.db))
  const deliverer = createDeliverer({
    ...{ store, keys: deps.keys, sender, clock, log, metrics, leaseMs: leaseOf(webhooks), maxPending: webhooks.maxPending },
    ...deps.deliveries,
  })
  serve(app, routes.listNetworks, async ({ caller }) => ({
    status: 200,
    body: {
      networks: [
        ...[...networks.values()].map(({ config }) => ({
          network: config.name,
          chain: 'ethereum' as const,
          chainId: config.chainId,
          depositContractAddress: config.depositContractAddress,
          genesisForkVersion: config.genesisForkVersion,
        })),
        ...[...solanaNetworks.values()].map(({ config }) => ({
          network: config.name,
          chain: 'solana' as const,
          genesisHash: config.genesisHash,
        })),
      ].filter(({ network }) => caller.networks?.includes(network) !== false),
    },
  }))
  return { app, ...(operations === app ? {} : { operations }), tracker, deliverer, solanaFollower, metrics, refuse: () => stopped.abort() }
}

interface ServedRoute {
  readonly method: string
  readonly url: string
  readonly pattern: RegExp
}

/** What this service serves, as it is registered: for 405, and so that its document promises nothing else. */
function recordServed(app: FastifyInstance): readonly ServedRoute[] {
  const served: ServedRoute[] = []
  app.addHook('onRoute', ({ method, url }) => {
    const pattern = new RegExp(`^${url.replace(/[.]/g, '\\.').replace(/:[a-zA-Z]+/g, '[^/]+')}$`)
    for (const one of [method].flat()) served.push({ method: one, url, pattern })
  })
  return served
}

function servedOnly(version: string, served: readonly ServedRoute[]) {
  const document = openApiDocument({ version })
  const isServed = (path: string) => served.some(({ url }) => url === fastifyUrl(path as Route['path']))
  return { ...document, paths: Object.fromEntries(Object.entries(document.paths).filter(([path]) => isServed(path))) }
}
