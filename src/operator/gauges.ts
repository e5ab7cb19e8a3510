import { Counter, Gauge, type Registry } from 'prom-client'
import { type NodeBoard, registerNodeMetrics } from '../chains/nodes/board.ts'
import type { FleetReadings } from './fleet-readings.ts'

/** What is read at scrape time, so that no gauge can be stale. */
export interface Readings {
  readonly leader: () => boolean
  /** It leads, and its caches have taken in whole lists: what it knows of the fleet is all there is. */
  readonly knowsFleet: () => boolean
  /** How often the lease has passed to another holder. */
  readonly leaseTransitions: () => number | undefined
  /** Whether people have stopped all that is signed, by the lease's annotation. */
  readonly suspended: () => boolean
  /** Every signer, and whether people have stopped its key by `spec.suspend`. */
  readonly suspendedSigners: () => Iterable<{ readonly signer: string; readonly suspended: boolean }>
  readonly queues: () => Iterable<{ readonly kind: string; readonly ready: number; readonly delayed: number; readonly processing: number }>
  readonly informers: () => Iterable<{
    readonly resource: string
    readonly objects: number
    readonly synced: boolean
    readonly silentMs: number | undefined
  }>
  /** Resources by kind, phase and whether they are stalled, and for which reason ('' when not): how many there are. */
  readonly resources: () => Iterable<{ readonly kind: string; readonly phase: string; readonly stalled: string; readonly count: number }>
  readonly signers: () => Iterable<{
    readonly signer: string
    readonly network: string
    readonly inFlight: number
    readonly nextNonce: number
  }>
  /** Of signers, where it was read, in ETH or SOL; `needed`: what waits for it; `readAt`: Unix time. */
  readonly balances: () => Iterable<{
    readonly unit: 'eth' | 'sol'
    readonly signer: string
    readonly network: string
    readonly balance: number
    readonly needed: number
    readonly readAt: number
  }>
  /** Of signers with limits, as their status has them: amounts in ETH or SOL, `freesAt` as a Unix time. */
  readonly limits: () => Iterable<{
    readonly signer: string
    readonly network: string
    readonly window: string
    readonly per: string
    readonly namespace: string
    readonly count: number
    readonly countLeft: number | undefined
    readonly amount: { readonly unit: 'eth' | 'sol'; readonly used: number; readonly left: number } | undefined
    readonly freesAt: number | undefined
  }>
  readonly nodes: NodeBoard['readings']
  readonly fleet: FleetReadings
}

type Set<L extends string> = (labels: Record<L, string>, value: number) => void

const adderOf =
  (registry: Registry) =>
  <L extends string>(name: string, help: string, labelNames: L[], read: (set: Set<L>) => void): void => {
    new Gauge({
      name: `staking_operator_${name}`,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset()
        read((labels, value) => this.labels(labels).set(value))
      },
    })
  }
type AddGauge = ReturnType<typeof adderOf>

/** All gauges are collected in one go at a scrape: what several of them show is read once for all. */
function oncePerScrape<T>(read: () => T): () => T {
  let held: { readonly value: T } | undefined
  return () => {
    if (held === undefined) {
      held = { value: read() }
      queueMicrotask(() => {
        held = undefined
      })
    }
    return held.value
  }
}

/** Sums per label set: what several readings say of the same. */
function summed<L extends string>(set: Set<L>, entries: Iterable<readonly [labels: Record<L, string>, value: number]>): void {
  const sums = new Map<string, { labels: Record<L, string>; sum: number }>()
  for (const [labels, value] of entries) {
    const key = Object.values(labels).join('/')
    sums.set(key, { labels, sum: (sums.get(key)?.sum ?? 0) + value })
  }
  for (const { labels, sum } of sums.values()) set(labels, sum)
}

/**
 * Adds the gauges. What the fleet is like, every instance could tell from its caches, and Prometheus would count it twice: only the one that leads does, once its
 * caches are whole. Of itself (its lead, caches, queues, requests) each tells.
 */
export function registerReadings(registry: Registry, readings: Readings): void {
  const gauge = adderOf(registry)
  const ofLeader: AddGauge = (name, help, labelNames, read) =>
    gauge(name, help, labelNames, (set) => {
      if (readings.knowsFleet()) read(set)
    })
  registerInstance(gauge, registry, readings)
  registerResources(ofLeader, readings)
  registerWaits(ofLeader, readings.fleet)
  registerSigners(ofLeader, readings)
  registerLimits(ofLeader, readings)
  registerNodeMetrics(registry, 'staking_operator', { readings: () => (readings.knowsFleet() ? readings.nodes() : []) })
}

function registerInstance(gauge: AddGauge, registry: Registry, readings: Readings): void {
  gauge('leader', '1 while this instance holds the lease.', [], (set) => set({}, readings.leader() ? 1 : 0))
  gauge('suspended', '1 while the annotation of the lease has stopped all that is signed and sent.', [], (set) => {
    if (readings.leader()) set({}, readings.suspended() ? 1 : 0)
  })
  new Counter({
    name: 'staking_operator_lease_transitions_total',
    help: 'How often the lease has passed to another instance, as the lease itself counts it: the same at every instance.',
    registers: [registry],
    collect() {
      this.reset()
      this.inc(readings.leaseTransitions() ?? 0)
    },
  })
  gauge('queue_keys', 'Keys in the work queue, by state.', ['kind', 'state'], (set) => {
    for (const { kind, ready, delayed, processing } of readings.queues()) {
      set({ kind, state: 'ready' }, ready)
      set({ kind, state: 'delayed' }, delayed)
      set({ kind, state: 'processing' }, processing)
    }
  })
  gauge('informer_objects', 'Objects in the cache.', ['resource'], (set) => {
    for (const { resource, objects } of readings.informers()) set({ resource }, objects)
  })
  gauge('informer_synced', '1 once a whole list has been taken in.', ['resource'], (set) => {
    for (const { resource, synced } of readings.informers()) set({ resource }, synced ? 1 : 0)
  })
  gauge(
    'informer_silence_seconds',
    'Time since the API server last gave a sign of life on the watch. It grows while a watch is dead.',
    ['resource'],
    (set) => {
      for (const { resource, silentMs } of readings.informers()) if (silentMs !== undefined) set({ resource }, silentMs / 1000)
    },
  )
}

function registerResources(gauge: AddGauge, { resources, fleet }: Readings): void {
  gauge('resources', 'Resources by phase.', ['kind', 'phase'], (set) =>
    summed(
      set,
      [...resources()].map(({ kind, phase, count }) => [{ kind, phase }, count]),
    ),
  )
  gauge('stalled_resources', 'Resources that wait for a person, by reason.', ['kind', 'reason'], (set) =>
    summed(
      set,
      [...resources()].flatMap(({ kind, stalled, count }) => (stalled === '' ? [] : [[{ kind, reason: stalled }, count] as const])),
    ),
  )
  for (const [unit, what] of [
    ['eth', 'ETH'],
    ['sol', 'SOL'],
  ] as const)
    gauge(`amount_${unit}`, `What resources are about, in ${what}, by phase.`, ['kind', 'network', 'phase'], (set) => {
      for (const one of fleet.amounts()) if (one.unit === unit) set({ kind: one.kind, network: one.network, phase: one.phase }, one.amount)
    })
  gauge('slashed_validators', 'Validators of EthereumStakes that were slashed, also those that have left since.', ['network'], (set) => {
    for (const { network, count } of fleet.slashed()) set({ network }, count)
  })
}

function registerWaits(gauge: AddGauge, fleet: FleetReadings): void {
  const conditions = oncePerScrape(() => fleet.conditions())
  const labels: ['namespace', 'name', 'kind', 'type', 'reason'] = ['namespace', 'name', 'kind', 'type', 'reason']
  gauge(
    'resource_condition',
    'Always 1: a resource that is not settled, with a condition that says why. At most 500 resources: those that need a person first, then those that have waited longest.',
    labels,
    (set) => {
      for (const { ageSeconds: _age, ...one } of conditions().shown) set(one, 1)
    },
  )
  gauge(
    'resource_condition_age_seconds',
    'How long the condition has had this reason. After a restart: since the instance first saw it; of a stall, since its condition says so.',
    labels,
    (set) => {
      for (const { ageSeconds, ...one } of conditions().shown) set(one, ageSeconds)
    },
  )
  gauge('resource_conditions_omitted', 'Resources that are not settled, beyond those whose conditions are shown.', [], (set) =>
    set({}, conditions().omitted),
  )
  const waits = oncePerScrape(() => [...fleet.waits()])
  gauge(
    'waiting_resources',
    'Resources that are not settled, by the reason that they wait for. All are counted.',
    ['kind', 'reason'],
    (set) => {
      for (const { kind, reason, count } of waits()) set({ kind, reason }, count)
    },
  )
  gauge('oldest_wait_seconds', 'How long the one has waited that has waited longest for this reason.', ['kind', 'reason'], (set) => {
    for (const { kind, reason, oldestSeconds } of waits()) set({ kind, reason }, oldestSeconds)
  })
  const transactions = oncePerScrape(() => [...fleet.transactions()])
  const lane: ['signer', 'network', 'purpose', 'state'] = ['signer', 'network', 'purpose', 'state']
  gauge(
    'transactions_open',
    'Transactions without an outcome: `waiting` for a nonce, `open` (they may land), or `cancelling`.',
    lane,
    (set) => {
      for (const { count, oldestSeconds: _age, ...one } of transactions()) set(one, count)
    },
  )
  gauge(
    'transactions_open_oldest_seconds',
    'Age of the oldest of them: since it was made, or since its first version under its nonce was written down.',
    lane,
    (set) => {
      for (const { oldestSeconds, count: _count, ...one } of transactions()) set(one, oldestSeconds)
    },
  )
}

function registerSigners(gauge: AddGauge, { signers, suspendedSigners, balances, fleet }: Readings): void {
  gauge('signer_suspended', '1 while spec.suspend of a signer has stopped its key, 0 otherwise.', ['signer'], (set) => {
    for (const { signer, suspended } of suspendedSigners()) set({ signer }, suspended ? 1 : 0)
  })
  gauge('signer_in_flight', 'Transactions whose nonce was given out and is not final yet.', ['signer', 'network'], (set) => {
    for (const { signer, network, inFlight } of signers()) set({ signer, network }, inFlight)
  })
  gauge('signer_next_nonce', 'The highest nonce given out, plus one.', ['signer', 'network'], (set) => {
    for (const { signer, network, nextNonce } of signers()) set({ signer, network }, nextNonce)
  })
  for (const [unit, what] of [
    ['eth', 'ETH'],
    ['sol', 'SOL'],
  ] as const) {
    gauge(`signer_balance_${unit}`, `Balance of a signer when it was last read, in ${what}.`, ['signer', 'network'], (set) => {
      for (const one of balances()) if (one.unit === unit) set({ signer: one.signer, network: one.network }, one.balance)
    })
    gauge(
      `signer_needed_${unit}`,
      `What waits for the balance of a signer, in ${what}: amounts of transactions that are to be signed, and amounts with the highest fees of those that are not mined. Read with the balance.`,
      ['signer', 'network'],
      (set) => {
        for (const one of balances()) if (one.unit === unit) set({ signer: one.signer, network: one.network }, one.needed)
      },
    )
  }
  gauge(
    'signer_balance_read_timestamp_seconds',
    'When the balance of a signer was last read, as a Unix time.',
    ['signer', 'network'],
    (set) => {
      for (const { signer, network, readAt } of balances()) set({ signer, network }, readAt)
    },
  )
  gauge('signer_fee_cap_gwei', 'Highest fee per gas in gwei that the policy of an Ethereum signer allows.', ['signer'], (set) => {
    for (const { signer, gwei } of fleet.feeCaps()) set({ signer }, gwei)
  })
  gauge(
    'network_base_fee_gwei',
    'Base fee per gas in gwei when it was last asked for, which is done while something is to be sent. None after ten minutes.',
    ['network'],
    (set) => {
      for (const { network, baseFeeGwei } of fleet.prices()) set({ network }, baseFeeGwei)
    },
  )
  gauge('network_priority_fee_gwei', 'The tip per gas in gwei that was read with it.', ['network'], (set) => {
    for (const { network, priorityFeeGwei } of fleet.prices()) set({ network }, priorityFeeGwei)
  })
}

/** At most 64 entries of each signer, as its status has them. */
function registerLimits(gauge: AddGauge, { limits }: Readings): void {
  type Label = 'signer' | 'network' | 'window' | 'per' | 'namespace'
  const labels: Label[] = ['signer', 'network', 'window', 'per', 'namespace']
  const all = oncePerScrape(() => [...limits()])
  const add = (name: string, help: string, read: (one: ReturnType<typeof all>[number]) => number | undefined) =>
    gauge(`signer_limit_${name}`, help, labels, (set) => {
      for (const one of all()) {
        const { signer, network, window, per, namespace } = one
        const value = read(one)
        if (value !== undefined) set({ signer, network, window, per, namespace }, value)
      }
    })
  add('count', 'Transactions of a signer that a limit of its policy counts now.', ({ count }) => count)
  add('count_left', 'Transactions that may be signed yet, by the maxCount of a limit.', ({ countLeft }) => countLeft)
  for (const [unit, what] of [
    ['eth', 'ETH'],
    ['sol', 'SOL'],
  ] as const) {
    add(unit, `What a limit counts now, in ${what}, where it has a total.`, ({ amount }) =>
      amount?.unit === unit ? amount.used : undefined,
    )
    add(`${unit}_left`, `What may be signed for yet, in ${what}.`, ({ amount }) => (amount?.unit === unit ? amount.left : undefined))
  }
  add('frees_timestamp_seconds', 'When the first of what a limit counts now counts no more, as a Unix time.', ({ freesAt }) => freesAt)
}
