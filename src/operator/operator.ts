import { hostname } from 'node:os'
import { type Clock, systemClock } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import { kinds } from '../resources/kinds.ts'
import { GROUP } from '../resources/meta.ts'
import { createApprovalChecks } from './approval-checks.ts'
import { createCaches } from './caches.ts'
import { composeOperator } from './compose.ts'
import { createControllers } from './controllers.ts'
import { createCrdGuard, followDefinitions } from './crd-guard.ts'
import { type HealthServer, serveHealth } from './health.ts'
import { createKeys } from './keys/keys.ts'
import { createRemoteSigners } from './keys/remote/remote-signers.ts'
import { watchKeys } from './keys/watch-keys.ts'
import { createKubeApi, type KubeApi } from './kube/api.ts'
import { checkCluster } from './kube/cluster.ts'
import { createKubeCollections, type KubeCollections } from './kube/collections.ts'
import { createEventRecorder, events as eventsResource, type KubeEvent } from './kube/events.ts'
import { createLeaderElector, type LeaderElector } from './kube/leader-election.ts'
import { type Lease, leases } from './kube/lease.ts'
import { paced } from './kube/paced.ts'
import { createReach, type Reach } from './kube/reach.ts'
import { createOperatorMetrics, type OperatorMetrics } from './metrics.ts'
import { followNamespaces } from './namespaces.ts'
import { createNetworks } from './networks/networks.ts'
import type { OperatorHooks, OperatorOptions } from './options.ts'
import { openPage } from './page/open.ts'
import type { Page } from './page/page.ts'
import { createReadings, createSeen } from './readings.ts'
import { definitionOf } from './saga-collection.ts'
import { tracesOf } from './traces.ts'
import { LOG_WORKERS, turnsIn } from './transactions/turns.ts'
import { followWaits } from './waits.ts'
import { wireWakes } from './wake.ts'

const FIELD_MANAGER = 'staking-operator'
/** Each transaction of a lane is news to it and to its signer: one look for all that come within so many ms. */
const LANE_PACE_MS = 500
const SIGNER_PACE_MS = 1_000

/**
 * Runs the operator until the signal aborts or the lease is lost. Every instance fills its caches and serves health and metrics; only the leader acts.
 * @returns `lost` when the lease was lost: the process must end at once, with everything that it was about to do undone.
 */
export async function runOperator(
  options: OperatorOptions,
  log: Logger,
  signal: AbortSignal,
  hooks: OperatorHooks = {},
): Promise<'stopped' | 'lost'> {
  const { version, keysDir } = options
  const clock = hooks.clock ?? systemClock
  const identity = options.identity ?? hostname()
  const userAgent = `staking-operator/${version}`
  const source = options.kubeconfig === undefined ? { inCluster: true as const } : { kubeconfigPath: options.kubeconfig }
  const cluster = checkCluster(source, process.env)
  const metrics = createOperatorMetrics({ version })
  const networks = await createNetworks(options.networksFile, {
    clock,
    log,
    userAgent,
    onRpc: metrics.rpc,
    onApi: metrics.api,
    onReload: metrics.reload,
    nodes: metrics.nodes,
  })
  const keys = await openKeys(options, { clock, log, metrics })
  const api = createKubeApi({
    ...source,
    clock,
    userAgent,
    log,
    onRequest: metrics.kubeRequest,
    onSetBack: (error) => elector.lose(error.message),
  })
  const elector = createElector(options, api, identity, { clock, log })
  const recorder = createEventRecorder({
    client: api.resource<KubeEvent>(eventsResource),
    reportingController: `${GROUP}/operator`,
    reportingInstance: identity,
    clock,
    log,
  })

  const collections = createKubeCollections({ api, clock, log })
  const caches = createCaches((definition, cached) => collections.follow(definitionOf(definition), cached))
  const { places: _byTheirLanes, approvals: _nobodys, ...reconciled } = caches
  const workers = (name: keyof typeof reconciled) => (name === 'signers' ? 2 : name === 'records' ? LOG_WORKERS : options.workers)
  const controllers = createControllers(reconciled, { clock, log, metrics, workers, turns: turnsIn(caches), traces: tracesOf(caches) })
  const wakes = wireWakes(caches, {
    ...controllers.queues,
    records: paced(controllers.queues.records, { clock, everyMs: LANE_PACE_MS }),
    signers: paced(controllers.queues.signers, { clock, everyMs: SIGNER_PACE_MS }),
  })
  const namespaces = followNamespaces(collections.follow, wakes.namespace)
  const guard = createCrdGuard(kinds)
  const tellDefinitions = followDefinitions(collections, guard, { log, onChange: wakes.all })

  const seen = createSeen(clock)
  const waits = followWaits(caches, clock)
  const { page, events } = openPage(options, { caches, recorder, elector, collections, identity, clock, log })
  metrics.read(createReadings({ elector, caches, controllers, collections, networks, seen, waits, nodes: metrics.nodes, clock }))
  const reach = createReach({ cluster, probe: (asking) => api.resource<Lease>(leases).get(leaseOf(options), asking), clock, log })
  const health = await createHealth(options, metrics.registry, { unsynced: collections.unsynced, trouble: reach.trouble, page })
  log.info(
    { address: health.address, networks: [...networks.names('Ethereum'), ...networks.names('Solana')], version },
    'the operator serves health and metrics',
  )

  /** What the leader does. */
  async function lead(leading: AbortSignal): Promise<void> {
    log.info({}, 'this instance leads')
    await collections.whenSynced(leading).then(tellDefinitions)
    const { reconcile } = composeOperator({
      caches,
      networks,
      keys: keys.ethereum,
      solanaKeys: keys.solana,
      clock,
      log,
      events,
      report: { ...metrics, ...seen.report },
      fieldManager: FIELD_MANAGER,
      namespace: namespaces.facts,
      refreshNamespace: namespaces.refresh,
      assertHeld: () => elector.assertHeld(),
      leaseAnnotations: () => elector.annotations(),
      assertCurrent: () => guard.assertCurrent(),
      approvalChecks: createApprovalChecks(api),
      stallRecheckMs: options.stallRecheckMs,
      signerIntervalMs: options.signerIntervalMs,
      observation: options.observation,
      retentionMs: options.retentionMs,
      signal: leading,
      onNews: wakes.owner,
      ...(hooks.onPoint === undefined ? {} : { onPoint: hooks.onPoint }),
    })
    const onKeys = () => {
      metrics.reload('keys', true)
      wakes.all()
    }
    wakes.all()
    await Promise.all([
      controllers.run(reconcile, leading),
      networks.watch(wakes.all, leading),
      keys.remote.watch(wakes.all, leading),
      watchKeys({ dir: keysDir, clock, intervalMs: 2_000, onChange: onKeys, signal: leading }),
    ])
  }

  const background = new AbortController()
  const running: Promise<void>[] = []
  try {
    if (!(await reach.reached(signal))) return 'stopped'
    running.push(collections.run(background.signal), recorder.run(background.signal))
    return await elector.run({ onStartedLeading: lead }, signal)
  } finally {
    background.abort()
    await Promise.allSettled(running)
    await health.close()
    await Promise.all([networks.close(), keys.remote.close()])
    await api.close()
  }
}

/** The keys of all signers, and what follows the file of those that others have. */
async function openKeys(
  { keysDir, remoteSignersFile }: OperatorOptions,
  { clock, log, metrics }: { readonly clock: Clock; readonly log: Logger; readonly metrics: OperatorMetrics },
) {
  const remote = await createRemoteSigners(remoteSignersFile, { clock, log, onCall: metrics.remoteSigner, onReload: metrics.reload })
  return { ...createKeys({ dir: keysDir, remote }), remote }
}

const leaseOf = ({ leaseNamespace, leaseName }: OperatorOptions) => ({ namespace: leaseNamespace, name: leaseName })

const createElector = (
  { leaseNamespace, leaseName, leaseDurationMs, renewDeadlineMs, retryPeriodMs }: OperatorOptions,
  api: KubeApi,
  identity: string,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): LeaderElector =>
  createLeaderElector({
    client: api.resource<Lease>(leases),
    namespace: leaseNamespace,
    name: leaseName,
    identity,
    leaseDurationMs,
    renewDeadlineMs,
    retryPeriodMs,
    clock,
    log,
  })

/** Every instance serves its health and metrics; it is ready once its caches are whole. @throws ConfigError when nobody can listen there */
const createHealth = (
  { host, port }: OperatorOptions,
  registry: OperatorMetrics['registry'],
  { unsynced, trouble, page }: Pick<KubeCollections, 'unsynced'> & Pick<Reach, 'trouble'> & { readonly page: Page | undefined },
): Promise<HealthServer> =>
  serveHealth({
    host,
    port,
    registry,
    page,
    healthy: () => undefined,
    ready: () => {
      const left = unsynced()
      return trouble() ?? (left.length === 0 ? undefined : `caches are being filled: ${left.join(', ')}`)
    },
  })
