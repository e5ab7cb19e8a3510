import type { Clock } from '../lib/clock.ts'
import { type EthereumStake, ethereumStake } from '../resources/ethereum-stake.ts'
import { solanaStake } from '../resources/solana-stake.ts'
import { type StakingSigner, stakingSigner } from '../resources/staking-signer.ts'
import type { Caches } from './caches.ts'
import type { Origin } from './engine/origin.ts'
import { createReconciler, type ObservationIntervals, type SagaKind, type VisitLog } from './engine/reconcile.ts'
import type { EffectTable } from './engine/step.ts'
import type { Visit } from './engine/visit.ts'
import { createEthereumStakeEffects } from './kinds/ethereum-stake/effects.ts'
import { ethereumStakeKind } from './kinds/ethereum-stake/kind.ts'
import { createSolanaStakeEffects } from './kinds/solana-stake/effects.ts'
import { solanaStakeKind } from './kinds/solana-stake/kind.ts'
import { createSignerReconciler, createSignerStore, duplicateOf } from './kinds/staking-signer/signers.ts'
import { createValidatorRequestEffects } from './kinds/validator-request/effects.ts'
import { validatorRequestKind } from './kinds/validator-request/kind.ts'
import { createRequestLookups } from './kinds/validator-request/requests.ts'
import type { Result } from './kube/controller.ts'
import type { EventRecorder } from './kube/events.ts'
import { type KubeObject, refOf } from './kube/objects.ts'
import type { OperatorMetrics } from './metrics.ts'
import type { EthereumKeys, Networks, SolanaKeys } from './ports.ts'
import type { SagaCollection, SagaResource } from './saga-collection.ts'
import type { NamespaceFacts } from './transactions/policy.ts'
import { createSignerLedger } from './transactions/signer-ledger.ts'

/** What is counted and measured of the work. */
export interface Report extends Pick<OperatorMetrics, 'statusWrite' | 'step' | 'refused' | 'ledgerWrite'> {
  /** What a signer's address holds on a network, in wei or lamports. */
  readonly balance: (signer: string, network: string, amount: bigint) => void
}

/** Where the operator's surroundings come in: production gives real ones, the tests fakes. */
export interface OperatorParts {
  readonly caches: Caches
  readonly networks: Networks
  readonly keys: EthereumKeys
  readonly solanaKeys: SolanaKeys
  readonly clock: Clock
  readonly log: VisitLog
  readonly events: Pick<EventRecorder, 'event'>
  readonly report: Report
  readonly fieldManager: string
  /** A namespace as policy sees it now. */
  readonly namespace: (name: string) => NamespaceFacts
  /** Throws unless this process leads. */
  readonly assertHeld: () => void
  /** Throws unless the installed CRDs are what the operator was built for. */
  readonly assertCurrent: () => void
  /** How often a stalled resource whose cause no watch can see is looked at again, in ms. */
  readonly stallRecheckMs: number
  /** How often a signer is looked at, in ms. */
  readonly signerIntervalMs: number
  readonly observation: ObservationIntervals
  /** Aborted when the lease is lost. */
  readonly signal: AbortSignal
  readonly random?: () => number
  /** Before and after each effect and each write: crash tests end the process here. */
  readonly onPoint?: (point: string, key: string) => void
}

export type Reconcile = (key: string, signal: AbortSignal) => Promise<Result>
/** What looks after a resource of each kind, by the names of the caches. */
export type Reconciles = { readonly [Name in keyof Caches]: Reconcile }

/** What the leader does, put together once: production runs it by queues, the tests by hand. Whatever decides about money is wired here and nowhere else. */
export function composeOperator(parts: OperatorParts) {
  const { caches, networks, keys, solanaKeys, clock, events, report, assertHeld, fieldManager, observation: intervals } = parts
  const { stakes, exits, withdrawals, solanaStakes, signers } = caches
  const onPoint = parts.onPoint === undefined ? {} : { onPoint: parts.onPoint }
  const requests = createRequestLookups(caches)
  const sagas = [stakes, exits, withdrawals, solanaStakes]

  const store = createSignerStore({
    client: signers.client,
    informer: signers.cache,
    fieldManager,
    assertHeld,
    onWrite: () => report.statusWrite(stakingSigner.kind),
    ...onPoint,
  })
  const ledger = createSignerLedger({
    signers: store,
    clock,
    signal: parts.signal,
    // Of a kind that isn't known here nothing is given away.
    exists: (entry) => sagas.find(({ kind }) => kind === entry.kind)?.owns(entry) ?? true,
    isSettled: requests.isSettled,
    onWrite: report.ledgerWrite,
  })
  const signing = {
    networks,
    signers: store,
    clock,
    namespace: parts.namespace,
    assertMayAct: () => {
      assertHeld()
      parts.assertCurrent()
    },
  }
  const ethereum = (kind: string) => ({
    ...signing,
    ledger,
    keys,
    duplicateOf: (signer: StakingSigner) => duplicateOf(signer, signers.cache.list()),
    onRefusal: (reason: string) => report.refused(kind, reason),
  })

  const stakeEffects = createEthereumStakeEffects({
    ...ethereum(ethereumStake.kind),
    // One that has no transaction yet may be waiting just as this one is: the ledger settles who goes first.
    otherHolder: (stakeId, origin) =>
      stakes.cache.byIndex('stakeId', stakeId).some((stake) => stake.status?.transaction !== undefined && isAnother(stake, origin)),
  })
  const requestEffects = (kind: string) =>
    createValidatorRequestEffects({ ...ethereum(kind), stake: requests.stake, requestsOn: requests.requestsOn })
  const solanaEffects = createSolanaStakeEffects({
    ...signing,
    keys: solanaKeys,
    otherHolder: (stakeId, origin) =>
      solanaStakes.cache.byIndex('stakeId', stakeId).some((stake) => stake.status?.verifiedStakeId === stakeId && isAnother(stake, origin)),
    exists: (key) => solanaStakes.cache.get(key) !== undefined,
    activatingMs: intervals.activatingMs,
    onRefusal: (reason) => report.refused(solanaStake.kind, reason),
  })

  const saga = <R extends SagaResource, S extends NonNullable<SagaResource['status']>, View, Effects extends EffectTable>(
    { client, cache }: SagaCollection<R>,
    kind: SagaKind<R, S, View, Effects>,
    perform: { readonly [name: string]: (args: never, visit: Visit, signal: AbortSignal) => Promise<unknown> },
  ): Reconcile =>
    createReconciler(kind, perform, {
      client,
      informer: cache,
      events,
      clock,
      fieldManager,
      assertHeld,
      stallRecheckMs: parts.stallRecheckMs,
      ...(parts.random === undefined ? {} : { random: parts.random }),
      ...onPoint,
      onStatusWrite: () => report.statusWrite(kind.kind),
      onStep: (step, outcome, ms) => report.step(kind.kind, step, outcome, ms),
      logFor: (key) => parts.log.child({ kind: kind.kind, ...refOf(key), uid: cache.get(key)?.metadata.uid }),
    })
  const reconcile: Reconciles = {
    stakes: saga(stakes, ethereumStakeKind({ ledger, networks, intervals, exitAccepted: requests.exitAccepted }), stakeEffects),
    exits: saga(exits, validatorRequestKind('ValidatorExit', { ledger, networks }), requestEffects(exits.kind)),
    withdrawals: saga(withdrawals, validatorRequestKind('ValidatorWithdrawal', { ledger, networks }), requestEffects(withdrawals.kind)),
    solanaStakes: saga(solanaStakes, solanaStakeKind({ networks, intervals }), solanaEffects),
    signers: createSignerReconciler({
      store,
      informer: signers.cache,
      networks,
      keys,
      solanaKeys,
      clock,
      events,
      intervalMs: parts.signerIntervalMs,
      onBalance: report.balance,
    }),
  }
  return { reconcile, ledger, store, stakeEffects }
}

const isAnother = ({ metadata }: EthereumStake | KubeObject, origin: Origin): boolean =>
  metadata.namespace !== origin.namespace || metadata.name !== origin.name
