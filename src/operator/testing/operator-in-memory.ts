import type { KindDefinition } from '../../resources/meta.ts'
import { createCaches } from '../caches.ts'
import { composeOperator, type OperatorParts, type Reconciles, type Report } from '../compose.ts'
import type { CacheOptions, Collection } from '../kube/collections.ts'
import type { Result } from '../kube/controller.ts'
import type { EventText } from '../kube/events.ts'
import type { KubeObject } from '../kube/objects.ts'
import type { FakeInformer } from './fake-informer.ts'
import type { FakeKube } from './fake-kube.ts'
import { type Around, createMortal, type KILLED } from './mortal.ts'

/** What a world gives: how ports are made, so that each call of theirs can be told. */
type Given = Pick<OperatorParts, 'clock' | 'namespace' | 'refreshNamespace'> &
  Partial<
    Pick<OperatorParts, 'approvalChecks' | 'stallRecheckMs' | 'signerIntervalMs' | 'observation' | 'retentionMs' | 'random' | 'log'>
  > & {
    readonly ports: (
      instrument: <T extends object>(name: string, port: T) => T,
      mortal: { isKilled(): boolean },
    ) => Pick<OperatorParts, 'networks' | 'keys' | 'solanaKeys'>
    readonly onEvent: (object: KubeObject, text: EventText) => void
    readonly onRefusal: (reason: string) => void
    readonly onAlarm?: (alarm: { readonly network: string; readonly signer: string; readonly reason: string }) => void
  }

const nothing = () => {}
const silent = { debug: nothing, info: nothing, warn: nothing, child: () => silent }

/**
 * The operator's own composition over an API server in memory: its memory is fresh, time and order are the world's. It can be ended at any call of a
 * port and at any point of the engine.
 */
export function startInMemory(kube: FakeKube, given: Given, around: Around = nothing) {
  const mortal = createMortal(around)
  const { instrument, onPoint } = mortal
  const abort = new AbortController()
  const state = { leads: true, crdsCurrent: undefined as Error | undefined, leaseAnnotations: {} as Readonly<Record<string, string>> }
  const informers = new Map<string, unknown>()
  const news = new Set<string>()
  const caches = createCaches(<R extends KubeObject>(definition: KindDefinition, options?: CacheOptions<R>): Collection<R> => {
    const { client, cache, onChange } = kube.follow<R>(definition, options)
    informers.set(definition.plural, cache)
    return { client: instrument(portName(definition), client), cache, onChange }
  })
  const tell = ({ kind, namespace, name }: { readonly kind: string; readonly namespace: string; readonly name: string }) =>
    void news.add(`${kind}/${namespace}/${name}`)
  // As `wake.ts` does in production.
  caches.records.onChange((_name, change) => tell((change.type === 'deleted' ? change.old : change.new).spec.owner))
  const report: Report = {
    statusWrite: nothing,
    step: nothing,
    transaction: nothing,
    pruned: nothing,
    alarm: (network, signer, reason) => given.onAlarm?.({ network, signer, reason }),
    balance: nothing,
    market: nothing,
    condition: nothing,
    refused: (_kind, reason) => given.onRefusal(reason),
  }
  const operator = composeOperator({
    stallRecheckMs: 300_000,
    signerIntervalMs: 60_000,
    observation: { activatingMs: 60_000, settledMs: 3_600_000 },
    retentionMs: 30 * 86_400_000,
    random: () => 0.5,
    log: silent,
    approvalChecks: { policies: async () => ({ missing: 'there are none in this world' }), mayApprove: async () => false },
    ...given,
    ...given.ports(instrument, mortal),
    caches,
    events: { event: given.onEvent },
    report,
    fieldManager: 'test',
    assertHeld: () => {
      if (!state.leads) throw new Error('the lease is not held')
    },
    leaseAnnotations: () => state.leaseAnnotations,
    assertCurrent: () => {
      if (state.crdsCurrent !== undefined) throw state.crdsCurrent
    },
    signal: abort.signal,
    onPoint,
    onNews: tell,
  })
  return {
    kill: mortal.kill,
    state,
    log: operator.log,
    transactions: operator.transactions,
    store: operator.store,
    /** Whether the log has told of news for a resource since this was asked last. */
    hasNews: (owner: string): boolean => news.delete(owner),
    effects: operator.stakeEffects,
    /** The cache of a kind. */
    cache: <R extends KubeObject>({ plural }: KindDefinition) => informers.get(plural) as FakeInformer<R>,
    /** The lease is lost: everything under way aborts. */
    depose() {
      state.leads = false
      abort.abort(new Error('the lease was lost'))
    },
    get killed() {
      return mortal.isKilled()
    },
    reconcile: (kind: keyof Reconciles, key: string): Promise<Result | typeof KILLED> =>
      mortal.untilDeath(operator.reconcile[kind](key, abort.signal)),
  }
}
export type InMemoryOperator = ReturnType<typeof startInMemory>

/** How points name the client of a kind: `stakes.mergePatch`. */
const portName = ({ plural }: KindDefinition): string => plural.replace(/^(ethereum|solana|validator|staking)/, '')
