import { hostname } from 'node:os'
import { formatWeiAsEth, wei } from '../lib/amounts.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import { findCondition } from '../resources/conditions.ts'
import { type EthereumStake, ethereumStake } from '../resources/ethereum-stake.ts'
import { kinds } from '../resources/kinds.ts'
import { GROUP, type KindDefinition, VERSION } from '../resources/meta.ts'
import { type StakingSigner, stakingSigner } from '../resources/staking-signer.ts'
import { createStakeCacheForm } from './cached-stake.ts'
import { type CustomResourceDefinition, createCrdGuard, customResourceDefinitions } from './crd-guard.ts'
import { createEthereumStakeEffects } from './engine/ethereum-stake-effects.ts'
import { createReconciler } from './engine/reconcile.ts'
import { createSignerLedger } from './engine/signer-ledger.ts'
import { ethereumStakeKind, type ObservationIntervals } from './ethereum-stake-kind.ts'
import { serveHealth } from './health.ts'
import { createEthereumKeys } from './keys/ethereum-keys.ts'
import { watchKeys } from './keys/watch-keys.ts'
import { createKubeApi, type KubeApi } from './kube/api.ts'
import { createController } from './kube/controller.ts'
import { createEventRecorder, events as eventsResource, type KubeEvent } from './kube/events.ts'
import { createInformer, type Informer } from './kube/informer.ts'
import { createLeaderElector, type Lease, leases } from './kube/lease.ts'
import { type KubeObject, refOf } from './kube/objects.ts'
import { createQueue, Priority, type Queue } from './kube/queue.ts'
import type { ResourceDefinition } from './kube/resource-client.ts'
import { createOperatorMetrics, type OperatorMetrics } from './metrics.ts'
import { createNetworks } from './networks.ts'
import { readOrigin } from './sagas/origin.ts'
import { createSignerReconciler, createSignerStore, duplicateOf } from './signers.ts'

export interface OperatorOptions {
  /** Path of a kubeconfig; undefined inside a cluster. */
  readonly kubeconfig: string | undefined
  readonly networksFile: string
  readonly keysDir: string
  readonly leaseNamespace: string
  readonly leaseName: string
  /** Who holds the lease and reports events: the pod's name. */
  readonly identity: string | undefined
  readonly leaseDurationMs: number
  readonly renewDeadlineMs: number
  readonly retryPeriodMs: number
  readonly host: string
  readonly port: number
  readonly workers: number
  /** How often a stalled resource whose cause no watch can see is looked at again, in ms. */
  readonly stallRecheckMs: number
  readonly signerIntervalMs: number
  readonly observation: ObservationIntervals
  readonly version: string
}

/** For tests that end the process at every point before and after an effect or a write. */
export interface OperatorHooks {
  readonly onPoint?: (point: string, key: string) => void
  readonly clock?: Clock
}

const FIELD_MANAGER = 'staking-operator'
const definitionOf = ({ plural, kind, scope }: KindDefinition): ResourceDefinition => ({
  group: GROUP,
  version: VERSION,
  plural,
  kind,
  namespaced: scope === 'Namespaced',
})
const namespaces: ResourceDefinition = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false }

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
  const clock = hooks.clock ?? systemClock
  let metrics: OperatorMetrics | undefined
  const networks = await createNetworks(options.networksFile, {
    clock,
    log,
    userAgent: `staking-operator/${options.version}`,
    onRpc: (...call) => metrics?.rpc(...call),
    onApi: (...call) => metrics?.api(...call),
  })
  const api: KubeApi = createKubeApi({
    ...(options.kubeconfig === undefined ? { inCluster: true as const } : { kubeconfigPath: options.kubeconfig }),
    clock,
    userAgent: `staking-operator/${options.version}`,
    log,
    onRequest: (...request) => metrics?.kubeRequest(...request),
  })

  const stakeClient = api.resource<EthereumStake & KubeObject>(definitionOf(ethereumStake))
  const signerClient = api.resource<StakingSigner & KubeObject>(definitionOf(stakingSigner))
  const queueOf = (kind: string, maxDelayMs: number): Queue<string> =>
    createQueue<string>({ clock, baseDelayMs: 500, maxDelayMs, onPicked: (waitedMs) => metrics?.queuePicked(kind, waitedMs) })
  const stakeQueue = queueOf(ethereumStake.kind, 60_000)
  const signerQueue = queueOf(stakingSigner.kind, 60_000)
  const guard = createCrdGuard(kinds)
  const keys = createEthereumKeys({ dir: options.keysDir })

  const wakeStakes = (which: Iterable<EthereumStake>) => {
    for (const stake of which)
      stakeQueue.add(`${stake.metadata.namespace}/${stake.metadata.name}`, { priority: isSettled(stake) ? Priority.low : Priority.high })
  }
  const wakeSigners = () => {
    for (const signer of signers.list()) signerQueue.add(signer.metadata.name)
  }
  const wakeAll = () => {
    wakeSigners()
    wakeStakes(stakes.list())
  }

  const stakes = createInformer<EthereumStake & KubeObject>({
    client: stakeClient,
    clock,
    log,
    transform: createStakeCacheForm(),
    indexers: {
      signer: (stake) => [stake.spec.signer],
      namespace: (stake) => [stake.metadata.namespace ?? ''],
      stakeId: (stake) => (stake.status?.stakeId === undefined ? [] : [stake.status.stakeId]),
    },
    onChange: (key, change) => {
      if (!change.own) stakeQueue.add(key, { priority: change.type !== 'deleted' && isSettled(change.new) ? Priority.low : Priority.high })
    },
  })
  const signers = createInformer<StakingSigner & KubeObject>({
    client: signerClient,
    clock,
    log,
    onChange: (name, change) => {
      if (change.type !== 'updated' || !change.own) signerQueue.add(name)
      // What matters to stakes: the spec, and whether it may be used. The ledger's own writes are no news to them.
      const matters =
        change.type !== 'updated' ||
        change.old.metadata.generation !== change.new.metadata.generation ||
        findCondition(change.old.status?.conditions, 'Ready')?.status !== findCondition(change.new.status?.conditions, 'Ready')?.status ||
        findCondition(change.old.status?.conditions, 'Funded')?.status !== findCondition(change.new.status?.conditions, 'Funded')?.status
      if (matters) wakeStakes([...stakes.byIndex('signer', name)].filter((stake) => !isSettled(stake)))
    },
  })
  const namespaceInformer = createInformer<KubeObject>({
    client: api.resource<KubeObject>(namespaces),
    clock,
    log,
    onChange: (name, change) => {
      if (change.type === 'updated' && JSON.stringify(change.old.metadata.labels) === JSON.stringify(change.new.metadata.labels)) return
      wakeStakes([...stakes.byIndex('namespace', name)].filter((stake) => !isSettled(stake)))
    },
  })
  const crds = createInformer<CustomResourceDefinition>({
    client: api.resource<CustomResourceDefinition>(customResourceDefinitions),
    clock,
    log,
    // Others' definitions can be large and are of no use here.
    transform: (object) =>
      object.spec.group === GROUP
        ? object
        : ({
            ...object,
            metadata: { name: object.metadata.name, uid: object.metadata.uid, resourceVersion: object.metadata.resourceVersion },
            spec: { ...object.spec, versions: [] },
          } as CustomResourceDefinition),
    onChange: (name, change) => {
      const definition = change.type === 'deleted' ? undefined : change.new
      guard.seen(name, definition)
      if ((definition ?? (change.type === 'deleted' ? change.old : undefined))?.spec.group === GROUP) wakeAll()
    },
  })
  const informers: readonly (readonly [string, Informer<never>])[] = [
    ['ethereumstakes', stakes as unknown as Informer<never>],
    ['stakingsigners', signers as unknown as Informer<never>],
    ['namespaces', namespaceInformer as unknown as Informer<never>],
    ['customresourcedefinitions', crds as unknown as Informer<never>],
  ]

  const elector = createLeaderElector({
    client: api.resource<Lease>(leases),
    namespace: options.leaseNamespace,
    name: options.leaseName,
    identity: options.identity ?? hostname(),
    leaseDurationMs: options.leaseDurationMs,
    renewDeadlineMs: options.renewDeadlineMs,
    retryPeriodMs: options.retryPeriodMs,
    clock,
    log,
  })
  const recorder = createEventRecorder({
    client: api.resource<KubeEvent>(eventsResource),
    reportingController: `${GROUP}/operator`,
    reportingInstance: options.identity ?? hostname(),
    clock,
    log,
  })

  const balances = new Map<string, bigint>()
  metrics = createOperatorMetrics(
    {
      leader: () => elector.isHeld(),
      queues: () => [
        { kind: ethereumStake.kind, ...stakeQueue.stats() },
        { kind: stakingSigner.kind, ...signerQueue.stats() },
      ],
      informers: () =>
        informers.map(([resource, informer]) => ({
          resource,
          objects: informer.size,
          synced: informer.hasSynced(),
          silentMs: informer.lastEventAt === undefined ? undefined : clock.monotonicMs() - informer.lastEventAt,
        })),
      *resources() {
        for (const stake of stakes.list()) {
          const stalled = findCondition(stake.status?.conditions, 'Stalled')
          yield {
            kind: ethereumStake.kind,
            phase: stake.status?.phase ?? 'Pending',
            stalled: stalled?.status === 'True' ? stalled.reason : '',
          }
        }
        for (const signer of signers.list()) {
          const ready = findCondition(signer.status?.conditions, 'Ready')
          yield {
            kind: stakingSigner.kind,
            phase: ready?.status === 'True' ? 'Ready' : 'NotReady',
            stalled: ready?.status === 'False' ? ready.reason : '',
          }
        }
      },
      *signers() {
        for (const signer of signers.list()) {
          for (const ledger of signer.status?.ledgers ?? []) {
            const balance = balances.get(`${signer.metadata.name}/${ledger.network}`)
            yield {
              signer: signer.metadata.name,
              network: ledger.network,
              inFlight: ledger.inFlight?.length ?? 0,
              nextNonce: ledger.nextNonce,
              balanceEth: balance === undefined ? undefined : Number(formatWeiAsEth(wei(balance))),
            }
          }
        }
      },
    },
    { version: options.version },
  )
  const measured = metrics

  const synced = () => informers.every(([, informer]) => informer.hasSynced())
  const health = await serveHealth({
    host: options.host,
    port: options.port,
    registry: metrics.registry,
    healthy: () => undefined,
    ready: () =>
      synced()
        ? undefined
        : `caches are being filled: ${informers
            .filter(([, informer]) => !informer.hasSynced())
            .map(([resource]) => resource)
            .join(', ')}`,
  })
  log.info({ address: health.address, networks: networks.names(), version: options.version }, 'the operator serves health and metrics')

  /** What the leader does. */
  async function lead(leading: AbortSignal): Promise<void> {
    log.info({}, 'this instance leads')
    await Promise.all(informers.map(([, informer]) => informer.whenSynced(leading)))
    const assertHeld = () => elector.assertHeld()
    const store = createSignerStore({
      client: signerClient,
      informer: signers,
      fieldManager: FIELD_MANAGER,
      assertHeld,
      onWrite: () => measured.statusWrite(stakingSigner.kind),
      ...(hooks.onPoint === undefined ? {} : { onPoint: hooks.onPoint }),
    })
    const ledger = createSignerLedger({
      signers: store,
      clock,
      signal: leading,
      exists: (entry) => {
        const stake = stakes.get(`${entry.namespace}/${entry.name}`)
        if (stake === undefined) return false
        const origin = readOrigin(ethereumStake.kind, stake.metadata)
        return origin.is === 'own' && origin.origin.uid === entry.origin
      },
      onWrite: (signer, reservations) => measured.ledgerWrite(signer, reservations),
    })
    const effects = createEthereumStakeEffects({
      networks,
      signers: store,
      ledger,
      keys,
      clock,
      namespace: (name) => ({ name, labels: namespaceInformer.get(name)?.metadata.labels }),
      duplicateOf: (signer) => duplicateOf(signer, signers.list()),
      otherHolder: (stakeId, origin) =>
        stakes
          .byIndex('stakeId', stakeId)
          // One that has no transaction yet may be waiting just as this one is: the ledger settles who goes first.
          .some(
            (stake) =>
              stake.status?.transaction !== undefined &&
              (stake.metadata.namespace !== origin.namespace || stake.metadata.name !== origin.name),
          ),
      assertMayAct: () => {
        assertHeld()
        guard.assertCurrent()
      },
      onRefusal: (reason) => measured.refused(ethereumStake.kind, reason),
    })
    const reconcileStake = createReconciler(ethereumStakeKind({ ledger, networks, intervals: options.observation }), effects, {
      client: stakeClient,
      informer: stakes,
      events: recorder,
      clock,
      fieldManager: FIELD_MANAGER,
      assertHeld,
      stallRecheckMs: options.stallRecheckMs,
      ...(hooks.onPoint === undefined ? {} : { onPoint: hooks.onPoint }),
      onStatusWrite: () => measured.statusWrite(ethereumStake.kind),
      onStep: (step, outcome, ms) => measured.step(ethereumStake.kind, step, outcome, ms),
      logFor: (key) => log.child({ kind: ethereumStake.kind, ...refOf(key), uid: stakes.get(key)?.metadata.uid }),
    })
    const reconcileSigner = createSignerReconciler({
      store,
      informer: signers,
      networks,
      keys,
      clock,
      events: recorder,
      intervalMs: options.signerIntervalMs,
      onBalance: (signer, network, balance) => balances.set(`${signer}/${network}`, balance),
    })
    const controller = (
      name: string,
      queue: Queue<string>,
      workers: number,
      reconcile: (key: string, abort: AbortSignal) => ReturnType<typeof reconcileStake>,
    ) =>
      createController<string>({
        name,
        queue,
        workers,
        reconcile,
        clock,
        log,
        logFields: (key) => ({ kind: name, ...refOf(key) }),
        onResult: (_key, outcome, ms) => measured.reconcile(name, outcome, ms),
      })
    wakeAll()
    await Promise.all([
      controller(ethereumStake.kind, stakeQueue, options.workers, reconcileStake).run(leading),
      controller(stakingSigner.kind, signerQueue, 2, reconcileSigner).run(leading),
      networks.watch(wakeAll, leading),
      watchKeys({ dir: options.keysDir, clock, intervalMs: 2_000, onChange: wakeAll, signal: leading }),
    ])
  }

  const background = new AbortController()
  const running = [...informers.map(([, informer]) => informer.run(background.signal)), recorder.run(background.signal)]
  try {
    return await elector.run({ onStartedLeading: lead }, signal)
  } finally {
    background.abort()
    await Promise.allSettled(running)
    await health.close()
    await networks.close()
    await api.close()
  }
}

const isSettled = (stake: EthereumStake): boolean => stake.status?.transaction?.state === 'Confirmed'
