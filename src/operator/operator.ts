import { hostname } from 'node:os'
import { formatWeiAsEth, wei } from '../lib/amounts.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import { findCondition } from '../resources/conditions.ts'
import { type EthereumStake, ethereumStake } from '../resources/ethereum-stake.ts'
import { kinds } from '../resources/kinds.ts'
import { GROUP } from '../resources/meta.ts'
import { type SolanaStake, solanaStake } from '../resources/solana-stake.ts'
import { type StakingSigner, stakingSigner } from '../resources/staking-signer.ts'
import { type CustomResourceDefinition, createCrdGuard, customResourceDefinitions } from './crd-guard.ts'
import type { ObservationIntervals } from './engine/reconcile.ts'
import { serveHealth } from './health.ts'
import { createEthereumKeys } from './keys/ethereum-keys.ts'
import { createSolanaKeys } from './keys/solana-keys.ts'
import { watchKeys } from './keys/watch-keys.ts'
import { createStakeCacheForm } from './kinds/ethereum-stake/cache-form.ts'
import { createEthereumStakeEffects } from './kinds/ethereum-stake/effects.ts'
import { ethereumStakeKind } from './kinds/ethereum-stake/kind.ts'
import { createSolanaStakeEffects } from './kinds/solana-stake/effects.ts'
import { isSettledSolanaStake, solanaStakeKind } from './kinds/solana-stake/kind.ts'
import { createSignerReconciler, createSignerStore, duplicateOf } from './kinds/staking-signer/signers.ts'
import { createValidatorRequests, stakesByValidator } from './kinds/validator-request/requests.ts'
import { createKubeApi, type KubeApi } from './kube/api.ts'
import { createCompact } from './kube/compact.ts'
import { createController } from './kube/controller.ts'
import { createEventRecorder, events as eventsResource, type KubeEvent } from './kube/events.ts'
import { createInformer, type Informer } from './kube/informer.ts'
import { keptMetadata } from './kube/kept-metadata.ts'
import { createLeaderElector, type Lease, leases } from './kube/lease.ts'
import { type KubeObject, refOf } from './kube/objects.ts'
import { createQueue } from './kube/queue.ts'
import type { ResourceDefinition } from './kube/resource-client.ts'
import { createOperatorMetrics, type OperatorMetrics } from './metrics.ts'
import { createNetworks } from './networks/networks.ts'
import { type AnySagaRuntime, createSagaRuntime, definitionOf, type RuntimeDeps } from './saga-runtime.ts'
import { createSignerLedger } from './transactions/signer-ledger.ts'

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
  const assertHeld = () => elector.assertHeld()
  const recorder = createEventRecorder({
    client: api.resource<KubeEvent>(eventsResource),
    reportingController: `${GROUP}/operator`,
    reportingInstance: options.identity ?? hostname(),
    clock,
    log,
  })

  const runtime: RuntimeDeps = {
    api,
    clock,
    log,
    fieldManager: FIELD_MANAGER,
    workers: options.workers,
    stallRecheckMs: options.stallRecheckMs,
    events: recorder,
    assertHeld,
    ...(hooks.onPoint === undefined ? {} : { onPoint: hooks.onPoint }),
    metrics: () => metrics,
  }
  const stakes = createSagaRuntime<EthereumStake & KubeObject>(runtime, {
    definition: ethereumStake,
    signersOf: ({ spec }) => [spec.signer],
    isSettled: ({ status }) => status?.transaction?.state === 'Confirmed',
    transform: createStakeCacheForm(),
    indexers: { stakeId: ({ status }) => (status?.stakeId === undefined ? [] : [status.stakeId]), validator: stakesByValidator },
    onChange: (now, before) => requests.stakeChanged(now, before),
  })
  const requests = createValidatorRequests(runtime, stakes)
  const solanaStakes = createSagaRuntime<SolanaStake & KubeObject>(runtime, {
    definition: solanaStake,
    signersOf: ({ spec }) => [...new Set([spec.stakeAuthority.signer, spec.withdrawAuthority.signer])],
    isSettled: isSettledSolanaStake,
    indexers: { stakeId: ({ status }) => (status?.stakeId === undefined ? [] : [status.stakeId]) },
  })
  /** Every kind that a saga reconciles. */
  const sagas: readonly AnySagaRuntime[] = [stakes, ...requests.sagas, solanaStakes]

  const signerClient = api.resource<StakingSigner & KubeObject>(definitionOf(stakingSigner))
  const signerQueue = createQueue<string>({
    clock,
    baseDelayMs: 500,
    maxDelayMs: 60_000,
    onPicked: (waitedMs) => metrics?.queuePicked(stakingSigner.kind, waitedMs),
  })
  const guard = createCrdGuard(kinds)
  const keys = createEthereumKeys({ dir: options.keysDir })
  const solanaKeys = createSolanaKeys({ dir: options.keysDir })
  const wakeAll = () => {
    for (const signer of signers.list()) signerQueue.add(signer.metadata.name)
    for (const saga of sagas) saga.wakeAll()
  }
  const signers = createInformer<StakingSigner & KubeObject>({
    client: signerClient,
    clock,
    log,
    onChange: (name, change) => {
      if (change.type !== 'updated' || !change.own) signerQueue.add(name)
      // What matters to those who use it: the spec, and whether it may be used. The ledger's own writes are no news to them.
      const matters =
        change.type !== 'updated' ||
        change.old.metadata.generation !== change.new.metadata.generation ||
        findCondition(change.old.status?.conditions, 'Ready')?.status !== findCondition(change.new.status?.conditions, 'Ready')?.status ||
        findCondition(change.old.status?.conditions, 'Funded')?.status !== findCondition(change.new.status?.conditions, 'Funded')?.status
      if (matters) for (const saga of sagas) saga.wakeUnsettled('signer', name)
    },
  })
  const compactNamespace = createCompact({ labels: true })
  const namespaceInformer = createInformer<KubeObject>({
    client: api.resource<KubeObject>(namespaces),
    clock,
    log,
    // Policies select by labels.
    transform: ({ apiVersion, kind, metadata }) => compactNamespace({ apiVersion, kind, metadata }),
    onChange: (name, change) => {
      if (change.type === 'updated' && JSON.stringify(change.old.metadata.labels) === JSON.stringify(change.new.metadata.labels)) return
      for (const saga of sagas) saga.wakeUnsettled('namespace', name)
    },
  })
  const crds = createInformer<CustomResourceDefinition>({
    client: api.resource<CustomResourceDefinition>(customResourceDefinitions),
    clock,
    log,
    // Others' definitions can be large and are of no use here.
    transform: ({ apiVersion, kind, metadata, spec: { group, names, versions } }) => ({
      apiVersion,
      kind,
      metadata: keptMetadata(metadata, {}),
      spec: { group, names: { plural: names.plural }, versions: group === GROUP ? versions : [] },
    }),
    onChange: (name, change) => {
      const definition = change.type === 'deleted' ? undefined : change.new
      guard.seen(name, definition)
      if ((definition ?? (change.type === 'deleted' ? change.old : undefined))?.spec.group === GROUP) wakeAll()
    },
  })
  const informers: readonly (readonly [string, Pick<Informer<never>, 'run' | 'hasSynced' | 'whenSynced' | 'size' | 'lastEventAt'>])[] = [
    ...sagas.map(({ plural, cache }) => [plural, cache] as const),
    ['stakingsigners', signers],
    ['namespaces', namespaceInformer],
    ['customresourcedefinitions', crds],
  ]

  const balances = new Map<string, bigint>()
  metrics = createOperatorMetrics(
    {
      leader: () => elector.isHeld(),
      queues: () => [...sagas.map(({ kind, queue }) => ({ kind, ...queue.stats() })), { kind: stakingSigner.kind, ...signerQueue.stats() }],
      informers: () =>
        informers.map(([resource, informer]) => ({
          resource,
          objects: informer.size,
          synced: informer.hasSynced(),
          silentMs: informer.lastEventAt === undefined ? undefined : clock.monotonicMs() - informer.lastEventAt,
        })),
      *resources() {
        for (const { kind, states } of sagas) for (const state of states()) yield { kind, ...state }
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
      *solanaBalances() {
        for (const signer of signers.list()) {
          if (signer.spec.chain !== 'Solana') continue
          for (const network of networks.names('Solana')) {
            const balance = balances.get(`${signer.metadata.name}/${network}`)
            if (balance !== undefined) yield { signer: signer.metadata.name, network, balanceSol: Number(balance) / 1e9 }
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
  log.info(
    { address: health.address, networks: [...networks.names('Ethereum'), ...networks.names('Solana')], version: options.version },
    'the operator serves health and metrics',
  )

  /** What the leader does. */
  async function lead(leading: AbortSignal): Promise<void> {
    log.info({}, 'this instance leads')
    await Promise.all(informers.map(([, informer]) => informer.whenSynced(leading)))
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
      // Of a kind that isn't known here nothing is given away.
      exists: (entry) => sagas.find(({ kind }) => kind === entry.kind)?.owns(entry) ?? true,
      isSettled: requests.isSettled,
      onWrite: (signer, reservations) => measured.ledgerWrite(signer, reservations),
    })
    const ethereum = {
      networks,
      signers: store,
      ledger,
      keys,
      clock,
      namespace: (name: string) => ({ name, labels: namespaceInformer.get(name)?.metadata.labels }),
      duplicateOf: (signer: StakingSigner) => duplicateOf(signer, signers.list()),
      assertMayAct: () => {
        assertHeld()
        guard.assertCurrent()
      },
    }
    const effects = createEthereumStakeEffects({
      ...ethereum,
      otherHolder: (stakeId, origin) =>
        stakes.informer
          .byIndex('stakeId', stakeId)
          // One that has no transaction yet may be waiting just as this one is: the ledger settles who goes first.
          .some(
            (stake) =>
              stake.status?.transaction !== undefined &&
              (stake.metadata.namespace !== origin.namespace || stake.metadata.name !== origin.name),
          ),
      onRefusal: (reason) => measured.refused(ethereumStake.kind, reason),
    })
    const solanaEffects = createSolanaStakeEffects({
      networks,
      signers: store,
      keys: solanaKeys,
      clock,
      namespace: (name) => ({ name, labels: namespaceInformer.get(name)?.metadata.labels }),
      otherHolder: (stakeId, origin) =>
        solanaStakes.informer
          .byIndex('stakeId', stakeId)
          .some(
            (stake) =>
              stake.status?.verifiedStakeId === stakeId &&
              (stake.metadata.namespace !== origin.namespace || stake.metadata.name !== origin.name),
          ),
      exists: (key) => solanaStakes.informer.get(key) !== undefined,
      assertMayAct: () => {
        assertHeld()
        guard.assertCurrent()
      },
      activatingMs: options.observation.activatingMs,
      onRefusal: (reason) => measured.refused(solanaStake.kind, reason),
    })
    const reconcileSigner = createSignerReconciler({
      store,
      informer: signers,
      networks,
      keys,
      solanaKeys,
      clock,
      events: recorder,
      intervalMs: options.signerIntervalMs,
      onBalance: (signer, network, balance) => balances.set(`${signer}/${network}`, balance),
    })
    const signerController = createController<string>({
      name: stakingSigner.kind,
      queue: signerQueue,
      workers: 2,
      reconcile: reconcileSigner,
      clock,
      log,
      logFields: (key) => ({ kind: stakingSigner.kind, ...refOf(key) }),
      onResult: (_key, outcome, ms) => measured.reconcile(stakingSigner.kind, outcome, ms),
    })
    wakeAll()
    await Promise.all([
      stakes.lead(
        ethereumStakeKind({ ledger, networks, intervals: options.observation, exitAccepted: requests.exitAccepted }),
        effects,
        leading,
      ),
      requests.lead({ ...ethereum, onRefusal: (kind, reason) => measured.refused(kind, reason) }, leading),
      solanaStakes.lead(solanaStakeKind({ networks, intervals: options.observation }), solanaEffects, leading),
      signerController.run(leading),
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
