import type { FeeMarket } from '../chains/ethereum/fees.ts'
import type { Clock } from '../lib/clock.ts'
import { type EthereumStake, ethereumStake } from '../resources/ethereum-stake.ts'
import type { Reason } from '../resources/reasons.ts'
import { type SolanaStake, solanaStake } from '../resources/solana-stake.ts'
import { type SolanaStakeAuthorization, solanaStakeAuthorization } from '../resources/solana-stake-authorization.ts'
import { type StakingSigner, stakingSigner } from '../resources/staking-signer.ts'
import type { TransactionOwner } from '../resources/staking-transaction.ts'
import { type Caches, sagasOf } from './caches.ts'
import type { VisitLog } from './engine/deps.ts'
import { createReconciler, type Reconciler } from './engine/reconcile.ts'
import type { ObservationIntervals, SagaKind } from './engine/saga-kind.ts'
import type { EffectTable, Perform } from './engine/step.ts'
import { stall } from './engine/verdict.ts'
import { createKeyNeed } from './key-need.ts'
import { createEthereumStakeEffects } from './kinds/ethereum-stake/effects.ts'
import { ethereumStakeKind } from './kinds/ethereum-stake/kind.ts'
import { solanaStakeAuthorizationKind } from './kinds/solana-stake/authorization-kind.ts'
import { createSolanaStakeEffects } from './kinds/solana-stake/effects.ts'
import { solanaStakeKind } from './kinds/solana-stake/kind.ts'
import { duplicateOf } from './kinds/staking-signer/duplicate.ts'
import { type BalanceReading, createSignerFacts } from './kinds/staking-signer/facts.ts'
import { createSignerHold } from './kinds/staking-signer/hold.ts'
import { createSignerReconciler } from './kinds/staking-signer/signers.ts'
import { createSignerStore } from './kinds/staking-signer/store.ts'
import type { ValidatorRequestResource } from './kinds/validator-request/deps.ts'
import { createValidatorRequestEffects } from './kinds/validator-request/effects.ts'
import { validatorRequestKind } from './kinds/validator-request/kind.ts'
import { createRequestLookups } from './kinds/validator-request/requests.ts'
import type { Cache } from './kube/collections.ts'
import type { Result } from './kube/controller.ts'
import type { EventRecorder } from './kube/events.ts'
import { type KubeObject, type Ref, refOf } from './kube/objects.ts'
import { Priority } from './kube/queue.ts'
import { readThrough } from './kube/read-through.ts'
import type { ResourceClient } from './kube/resource-client.ts'
import type { OperatorMetrics } from './metrics.ts'
import { createClaims, isOwner } from './owners.ts'
import type { ApprovalChecks, EthereumKeys, Networks, SolanaKeys } from './ports.ts'
import type { SagaCollection, SagaResource } from './saga-collection.ts'
import { createSuspension } from './suspension.ts'
import { createApprovals } from './transactions/approvals.ts'
import { auditOf } from './transactions/audit.ts'
import { createCatchUp } from './transactions/catch-up.ts'
import { createLane } from './transactions/lane.ts'
import { createLegacy } from './transactions/legacy/gate.ts'
import type { LegacyResource, LegacySource } from './transactions/legacy/import.ts'
import type { LegacyKind } from './transactions/legacy/kind.ts'
import { createLimiter } from './transactions/limiter.ts'
import { createTransactionLog } from './transactions/log.ts'
import { createMemory } from './transactions/memory.ts'
import type { LaneDeps } from './transactions/moment.ts'
import type { NamespaceFacts } from './transactions/policy.ts'
import { createSigning } from './transactions/signing.ts'
import { createSolanaLog } from './transactions/solana/controller.ts'
import { createSolanaLimiter } from './transactions/solana/limiter.ts'
import { createTransactionStore } from './transactions/store.ts'

/** What is counted and measured of the work. */
export interface Report
  extends Pick<OperatorMetrics, 'statusWrite' | 'step' | 'condition' | 'refused' | 'transaction' | 'alarm' | 'pruned'> {
  /** What a signer's address holds on a network, and what waits for that. */
  readonly balance: (signer: string, network: string, reading: BalanceReading) => void
  /** What a gas unit costs on a network now. */
  readonly market: (network: string, market: FeeMarket) => void
}

/** Why verification or policy refuses a signature. */
const refusals: ReadonlySet<string> = new Set<Reason>([
  'VerificationFailed',
  'AdoptionMismatch',
  'PubkeyAlreadyDeposited',
  'NamespaceNotAllowed',
  'WithdrawalAddressNotAllowed',
  'SuccessorNotAllowed',
  'VoteAccountNotAllowed',
  'OverLimit',
  'PolicyUnreadable',
  'WrongChain',
  'SignerNotWithdrawalAddress',
  'ValidatorNotOwned',
  'AuthorityChanged',
  'SignerMisbehaves',
])

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
  /** Reads a namespace past the cache, which `namespace` reads. */
  readonly refreshNamespace: (name: string, signal: AbortSignal) => Promise<void>
  /** Throws unless this process leads. */
  readonly assertHeld: () => void
  /** What people have written at the operator's lease. */
  readonly leaseAnnotations: () => Readonly<Record<string, string>>
  /** What the API server says of approvals. */
  readonly approvalChecks: ApprovalChecks
  /** Throws unless the installed CRDs are what the operator was built for. */
  readonly assertCurrent: () => void
  /** How often a stalled resource whose cause no watch can see is looked at again, in ms. */
  readonly stallRecheckMs: number
  /** How often a signer is looked at, in ms. */
  readonly signerIntervalMs: number
  readonly observation: ObservationIntervals
  /** How long the record of an exit or withdrawal is kept after its resource, in ms. */
  readonly retentionMs: number
  /** Aborted when the lease is lost. */
  readonly signal: AbortSignal
  readonly random?: () => number
  /** Before and after each effect and each write: crash tests end the process here. */
  readonly onPoint?: (point: string, key: string) => void
  /** The resource of this kind has news in the log. `isPassing`: of a transaction that takes its course. */
  readonly onNews: (owner: Pick<TransactionOwner, 'kind' | 'namespace' | 'name'>, isPassing?: boolean) => void
}

/** A kind's objects, whatever they are besides. */
interface Owned {
  readonly client: Pick<ResourceClient<KubeObject>, 'get' | 'list' | 'definition'>
  readonly cache: Pick<Cache<KubeObject>, 'get' | 'put'>
}

export type Reconcile = (key: string, signal: AbortSignal) => Promise<Result>
type Show = (key: string, signal: AbortSignal) => Promise<KubeObject | undefined>
/** Kinds that something looks after: a place in a lane is looked after by its lane, an approval by whoever waits for it. */
export type Reconciled = Exclude<keyof Caches, 'places' | 'approvals'>
/** What looks after a resource of each kind, by the names of the caches. `records` looks after lanes: its keys are theirs. */
export type Reconciles = { readonly [Name in Reconciled]: Reconcile }

/** What all of it works with: the log, the signers, what reads a resource past the cache. */
function composeGround(parts: OperatorParts) {
  const { caches, networks, clock, report, assertHeld, fieldManager } = parts
  const { signers } = caches
  const onPoint = parts.onPoint === undefined ? {} : { onPoint: parts.onPoint }
  const sagas: Readonly<Record<string, Owned>> = Object.fromEntries(sagasOf(caches).map((saga) => [saga.kind, saga as unknown as Owned]))
  const store = createSignerStore({
    client: signers.client,
    informer: signers.cache,
    fieldManager,
    clock,
    assertHeld,
    onWrite: () => report.statusWrite(stakingSigner.kind),
    ...onPoint,
  })
  const transactions = createTransactionStore({ records: caches.records, places: caches.places, fieldManager, assertHeld, ...onPoint })
  const memory = createMemory(
    (name, { reason }) => {
      const record = transactions.record(name)
      if (record !== undefined) parts.onNews(record.spec.owner, reason === 'AwaitingFinality' || reason === 'WaitingForNonce')
    },
    () => clock.monotonicMs(),
  )
  /** The resource of a record as it stands now: from the cache, or read past it. */
  async function resource(kind: string, ref: Ref, fresh: boolean, signal: AbortSignal): Promise<KubeObject | undefined> {
    const saga = sagas[kind]
    if (saga === undefined) return undefined
    return fresh ? readThrough(saga, ref, signal) : saga.cache.get(`${ref.namespace}/${ref.name}`)
  }
  /** By kind, where a resource's status shows what is about to be sent: set once the kinds are put together. */
  const shows = new Map<string, Show>()
  /** The resource of a record as it stands now, as right before something of it is sent: its status shows that by then. */
  const asking = async (kind: string, ref: Ref, fresh: boolean, signal: AbortSignal): Promise<KubeObject | undefined> => {
    const show = fresh ? shows.get(kind) : undefined
    return show === undefined ? resource(kind, ref, fresh, signal) : show(`${ref.namespace}/${ref.name}`, signal)
  }
  const mayAct = () => {
    assertHeld()
    parts.assertCurrent()
  }
  const assertNotSuspended = createSuspension({ leaseAnnotations: parts.leaseAnnotations, log: parts.log })
  /** ▸ Asked before every signature and every broadcast. */
  const maySign = () => {
    mayAct()
    assertNotSuspended()
  }
  async function ownerExists(owner: TransactionOwner, isFresh: boolean, signal: AbortSignal): Promise<boolean> {
    // Of a kind that isn't known here nothing is given away.
    if (sagas[owner.kind] === undefined) return true
    return isOwner(await resource(owner.kind, owner, isFresh, signal), owner)
  }
  const log = createTransactionLog({
    store: transactions,
    memory,
    ownerExists: (owner, signal) => ownerExists(owner, true, signal),
    assertMayAct: mayAct,
  })
  const approvals = createApprovals({
    cached: (hash) => caches.approvals.cache.byIndex('plan', hash),
    read: async (namespace, hash, signal) =>
      (await caches.approvals.client.list({ namespace, fieldSelector: `spec.planHash=${hash}` }, signal)).items,
    checks: parts.approvalChecks,
    memory,
    clock,
  })
  const limiter = createLimiter({ store: transactions, signers: () => signers.cache.list(), clock })
  const signing = {
    networks,
    signers: store,
    clock,
    namespace: parts.namespace,
    refreshNamespace: parts.refreshNamespace,
    assertMayAct: maySign,
  }
  return {
    parts,
    onPoint,
    store,
    transactions,
    memory,
    limiter,
    approvals,
    resource,
    asking,
    shows,
    mayAct,
    maySign,
    ownerExists,
    log,
    signing,
  }
}
type Ground = ReturnType<typeof composeGround>

/** What the kinds do, each with what it needs of the ground. */
function composeEffects({ parts, log, signing, approvals, resource, asking }: Ground) {
  const { caches, keys, solanaKeys } = parts
  const requests = createRequestLookups(caches)
  const ethereum = {
    ...signing,
    log,
    keys,
    duplicateOf: (signer: StakingSigner) => duplicateOf(signer, caches.signers.cache.list()),
  }
  return {
    requests,
    deposit: createEthereumStakeEffects({
      ...ethereum,
      stake: async (ref, fresh, signal) => (await asking(ethereumStake.kind, ref, fresh, signal)) as EthereumStake | undefined,
    }),
    // One for both kinds: who goes first on a validator is decided for both together.
    request: createValidatorRequestEffects({
      ...ethereum,
      stake: requests.stake,
      requestsOn: requests.requestsOn,
      stakesOn: requests.stakesOn,
      resource: async (kind, ref, fresh, signal) => (await asking(kind, ref, fresh, signal)) as ValidatorRequestResource | undefined,
      assertApproved: (record, of, signal) => approvals.assertApproved(record, of, () => 0, signal),
      stallRecheckMs: parts.stallRecheckMs,
      onNews: parts.onNews,
      leading: parts.signal,
    }),
    solana: createSolanaStakeEffects({
      ...signing,
      log,
      keys: solanaKeys,
      stake: async (ref, fresh, signal) => (await resource(solanaStake.kind, ref, fresh, signal)) as SolanaStake | undefined,
      authorization: async (ref, fresh, signal) =>
        (await resource(solanaStakeAuthorization.kind, ref, fresh, signal)) as SolanaStakeAuthorization | undefined,
      successorsOf(stake) {
        const asked = caches.authorizations.cache.byIndex('stake', stake).map(({ spec }) => spec)
        const addressIn = (to: SolanaStakeAuthorization['spec']['stakeAuthority']): readonly string[] => {
          const address = to?.signer === undefined ? to?.address : caches.signers.cache.get(to.signer)?.spec.address
          return address === undefined ? [] : [address]
        }
        return {
          stake: asked.flatMap(({ stakeAuthority }) => addressIn(stakeAuthority)),
          withdraw: asked.flatMap(({ withdrawAuthority }) => addressIn(withdrawAuthority)),
        }
      },
      exists: (key) => caches.solanaStakes.cache.get(key) !== undefined,
      activatingMs: parts.observation.activatingMs,
    }),
  }
}
type EffectsOfKinds = ReturnType<typeof composeEffects>

/** What the version before the log has left, and the gate that it is behind until it is taken over. */
function composeLegacy({ parts, store, transactions, memory, resource, mayAct, log }: Ground, { deposit, request }: EffectsOfKinds) {
  const { stakes, exits, withdrawals } = parts.caches
  const sourceOf = (legacy: LegacyKind, cache: { list(): Iterable<LegacyResource> }): LegacySource => ({
    ...legacy,
    list: () => cache.list(),
    read: async (ref, signal) => (await resource(legacy.kind, ref, true, signal)) as LegacyResource | undefined,
  })
  return createLegacy({
    store: transactions,
    log,
    signers: store,
    sources: [deposit.legacy, ...request.legacy].flatMap((one) => {
      const collection = [stakes, exits, withdrawals].find(({ kind }) => kind === one.kind)
      return collection === undefined ? [] : [sourceOf(one, collection.cache)]
    }),
    network: (name) => parts.networks.ethereum(name),
    assertMayAct: mayAct,
    standing: memory.standing,
    onImported(signer, { open, resources, fillers }) {
      const note = `What an earlier version of the operator has signed is in the transaction log now: ${open} open transactions, ${resources} more that resources show, ${fillers} nonces that are filled. The ledger in status is removed.`
      parts.events.event(signer, { type: 'Normal', reason: 'LedgerImported', action: 'Import', note })
      parts.log.info({ signer: signer.metadata.name, open, resources, fillers }, 'the ledger of an earlier version was imported')
    },
    onTrouble: (about, { reason, message }) =>
      parts.log.warn({ about, reason }, `what an earlier version has signed can't be taken over yet: ${message}`),
  })
}
type Legacy = ReturnType<typeof composeLegacy>

/** What looks after resources, by the names of the caches. */
function composeSagas(ground: Ground, { requests, deposit, request, solana }: EffectsOfKinds, legacy: Legacy) {
  const { parts, log, onPoint, shows } = ground
  const { networks, observation: intervals, report } = parts
  const { stakes, exits, withdrawals, solanaStakes, authorizations } = parts.caches
  /** ▸ What a status of the version before claims is taken into the log before anything is made of that status. */
  const afterImport =
    <R extends SagaResource>({ kind, cache }: SagaCollection<R>, reconcile: Reconcile): Reconcile =>
    async (key, signal) => {
      const found = cache.get(key)
      const pendingMs = found === undefined ? undefined : await legacy.pendingMs(kind, found as unknown as LegacyResource, signal)
      return pendingMs === undefined ? reconcile(key, signal) : { kind: 'wait', afterMs: pendingMs, priority: Priority.high }
    }
  const saga = <R extends SagaResource, S extends NonNullable<SagaResource['status']>, View, Effects extends EffectTable>(
    { client, cache }: SagaCollection<R>,
    kind: SagaKind<R, S, View, Effects>,
    perform: Perform<Effects>,
  ): Reconciler<R> =>
    createReconciler(kind, perform, {
      client,
      informer: cache,
      events: parts.events,
      clock: parts.clock,
      fieldManager: parts.fieldManager,
      assertHeld: parts.assertHeld,
      stallRecheckMs: parts.stallRecheckMs,
      ...(parts.random === undefined ? {} : { random: parts.random }),
      ...onPoint,
      onStatusWrite: () => report.statusWrite(kind.kind),
      onStep: (step, outcome, ms) => report.step(kind.kind, step, outcome, ms),
      onCondition: (type, ms) => report.condition(kind.kind, type, ms),
      onStall: (reason) => {
        if (refusals.has(reason)) report.refused(kind.kind, reason)
      },
      logFor: (key) => parts.log.child({ kind: kind.kind, ...refOf(key), uid: cache.get(key)?.metadata.uid }),
    })
  const stakeKind = ethereumStakeKind({ log, networks, intervals, exitAccepted: requests.exitAccepted })
  const exitKind = validatorRequestKind('ValidatorExit', { log, networks, intervals })
  const withdrawalKind = validatorRequestKind('ValidatorWithdrawal', { log, networks, intervals })
  /** One whose transactions are a lane's: it shows each before that is sent. */
  const ofLanes = <R extends SagaResource>(collection: SagaCollection<R>, { reconcile, show }: Reconciler<R>): Reconcile => {
    shows.set(collection.kind, show)
    return afterImport(collection, reconcile)
  }
  return {
    stakes: ofLanes(stakes, saga(stakes, stakeKind, deposit.effects)),
    exits: ofLanes(exits, saga(exits, exitKind, request.effects)),
    withdrawals: ofLanes(withdrawals, saga(withdrawals, withdrawalKind, request.effects)),
    solanaStakes: saga(solanaStakes, solanaStakeKind({ ...solana, log, intervals }), solana.effects).reconcile,
    authorizations: saga(authorizations, solanaStakeAuthorizationKind({ log }), solana.authorization.effects).reconcile,
  }
}

type Hold = ReturnType<typeof createSignerHold>

type Need = ReturnType<typeof createKeyNeed>

function composeSigners({ parts, store, transactions, memory }: Ground, legacy: Legacy, hold: Hold, need: Need): Reconcile {
  const { networks, keys, solanaKeys, clock, events, report } = parts
  const { cache } = parts.caches.signers
  return createSignerReconciler({
    store,
    informer: cache,
    facts: createSignerFacts({
      networks,
      clock,
      keys,
      solanaKeys,
      transactions,
      all: () => cache.list(),
      lamportsOf: ({ spec: { purpose, owner } }) => {
        const stake = purpose === 'SolanaStake' ? parts.caches.solanaStakes.cache.get(`${owner.namespace}/${owner.name}`) : undefined
        return stake === undefined ? 0n : BigInt(stake.spec.amountLamports)
      },
      need,
      strangers: {
        in: (lane) => [...memory.strangers.values()].filter((one) => one.lane === lane),
        isLookedThrough: (lane) => memory.lookedForStrangers.has(lane),
      },
      isClaimed: createClaims(parts.caches),
      onBalance: report.balance,
    }),
    hold,
    clock,
    events,
    intervalMs: parts.signerIntervalMs,
    onAlarm: report.alarm,
    importSigner: legacy.importSigner,
  })
}

/** What looks after the log: the lanes of Ethereum by their keys, each record of Solana by its name. */
function composeLog(ground: Ground, { deposit, request, solana }: EffectsOfKinds, legacy: Legacy, hold: Hold): Reconcile {
  const { parts, transactions, memory, limiter, approvals, maySign, ownerExists, onPoint } = ground
  const { networks, keys, clock, events, report, caches } = parts
  const onEvent: LaneDeps['onEvent'] = (record, event) => {
    const { about, fields, message, counted } = auditOf(record, event)
    const { network, purpose, signer } = record.spec
    parts.log.child(about).info(fields, message)
    report.transaction(network, purpose, counted)
    if (counted === 'FrontRun') report.alarm(network, signer, 'FrontRun')
  }
  const onAlarm: LaneDeps['onAlarm'] = (signer, network, { reason, message }) => {
    events.event(signer, { type: 'Warning', reason, action: 'Reconcile', note: message })
    report.alarm(network, signer.metadata.name, reason)
  }
  const transactionKinds = [deposit.deposits, request.requests]
  const lane = createLane({
    store: transactions,
    network: (chainId) => {
      const name = networks.names('Ethereum').find((one) => networks.ethereum(one)?.config.chainId === chainId)
      return name === undefined ? undefined : networks.ethereum(name)
    },
    kindOf: (record) => {
      const found = transactionKinds.find(({ purposes }) => purposes.includes(record.spec.purpose))
      if (found === undefined) throw stall('InvalidSpec', `The operator knows no purpose ${record.spec.purpose}.`)
      return found
    },
    signing: createSigning({ keys, clock, signers: () => caches.signers.cache.list(), assertMayAct: maySign }),
    limiter,
    approvals,
    signers: () => caches.signers.cache.list(),
    memory,
    clock,
    assertMayAct: maySign,
    importing: legacy.hindrance,
    importingFor: legacy.hindranceFor,
    holdSigner: hold.take,
    ownerExists,
    retentionMs: parts.retentionMs,
    onPruned: report.pruned,
    onEvent,
    onMarket: report.market,
    onAlarm,
    ...onPoint,
  })
  const limits = createSolanaLimiter({ store: transactions, memory, clock })
  const solanaRecord = createSolanaLog({
    store: transactions,
    network: (genesisHash) =>
      networks
        .names('Solana')
        .map((name) => networks.solana(name))
        .find((network) => network?.config.genesisHash === genesisHash),
    approvals,
    kindOf: ({ spec }) =>
      [solana.steps, solana.authorization.handOvers].find(({ purposes }) => purposes.includes(spec.purpose)) ?? solana.steps,
    limits,
    countedUntil: async (record, network, signal) =>
      limiter.countedUntil(record, network === undefined ? 0 : await limits.timeFor(record, network.chain, signal)),
    ownerExists,
    signers: () => caches.signers.cache.list(),
    onAlarm,
    onPruned: report.pruned,
    memory,
    clock,
    assertMayAct: maySign,
    onEvent,
    ...(parts.random === undefined ? {} : { random: parts.random }),
    ...onPoint,
  })
  return (key, signal) => (key.includes('/') ? lane(key, signal) : solanaRecord(key, signal))
}

/** What the leader does, put together once: production runs it by queues, the tests by hand. Whatever decides about money is wired here and nowhere else. */
export function composeOperator(parts: OperatorParts) {
  const ground = composeGround(parts)
  const { store, transactions, log } = ground
  const effects = composeEffects(ground)
  const legacy = composeLegacy(ground, effects)
  const need = createKeyNeed(parts)
  const hold = createSignerHold({
    ...parts.caches.signers,
    fieldManager: parts.fieldManager,
    assertHeld: parts.assertHeld,
    transactions,
    need,
  })
  const { records, places, stakes, exits, withdrawals } = parts.caches
  const caughtUp = createCatchUp({
    records,
    places,
    sources: [stakes, exits, withdrawals].map((one) => one as unknown as Owned),
    importing: legacy.importing,
    signal: parts.signal,
  })
  const informed =
    (reconcile: Reconcile): Reconcile =>
    async (key, signal) => {
      await caughtUp(signal)
      return reconcile(key, signal)
    }
  const sagas = composeSagas(ground, effects, legacy)
  const reconcile: Reconciles = {
    stakes: informed(sagas.stakes),
    exits: informed(sagas.exits),
    withdrawals: informed(sagas.withdrawals),
    solanaStakes: informed(sagas.solanaStakes),
    authorizations: informed(sagas.authorizations),
    signers: informed(composeSigners(ground, legacy, hold, need)),
    records: informed(composeLog(ground, effects, legacy, hold)),
  }
  return { reconcile, store, log, transactions, stakeEffects: effects.deposit.effects }
}
