import type { NodeBoard } from '../chains/nodes/board.ts'
import { formatWeiAsEth, wei } from '../lib/amounts.ts'
import type { Clock } from '../lib/clock.ts'
import { findCondition } from '../resources/conditions.ts'
import { stakingSigner } from '../resources/staking-signer.ts'
import { type Caches, sagasOf } from './caches.ts'
import type { Reconciled } from './compose.ts'
import type { Controllers } from './controllers.ts'
import { createFleetReadings, createPrices } from './fleet-readings.ts'
import type { Readings } from './gauges.ts'
import type { BalanceReading } from './kinds/staking-signer/facts.ts'
import type { KubeCollections } from './kube/collections.ts'
import type { LeaderElector } from './kube/leader-election.ts'
import type { Networks } from './ports.ts'
import { isSuspended } from './suspension.ts'
import { addressOf } from './transactions/ethereum-texts.ts'
import { laneKey } from './transactions/names.ts'
import { isOpen } from './transactions/protocol.ts'
import { recordOf } from './transactions/store.ts'
import type { Waits } from './waits.ts'

/** What reconciles came to know of the chains, for the metrics. */
export function createSeen(clock: Clock) {
  const balances = new Map<string, BalanceReading>()
  const prices = createPrices(clock)
  return {
    report: {
      balance: (signer: string, network: string, reading: BalanceReading) => void balances.set(`${signer}/${network}`, reading),
      market: prices.set,
    },
    balance: (signer: string, network: string) => balances.get(`${signer}/${network}`),
    prices,
  }
}

/** What the metrics show of the operator's memory at scrape time. */
export function createReadings(deps: {
  readonly elector: Pick<LeaderElector, 'isHeld' | 'transitions' | 'annotations'>
  readonly caches: Caches
  readonly controllers: Pick<Controllers<Reconciled>, 'stats'>
  readonly collections: Pick<KubeCollections, 'informers'>
  readonly networks: Pick<Networks, 'names' | 'ethereum'>
  readonly seen: ReturnType<typeof createSeen>
  readonly waits: Pick<Waits, 'all'>
  readonly nodes: Pick<NodeBoard, 'readings'>
  readonly clock: Clock
}): Readings {
  const { caches, networks, seen, clock } = deps
  const { signers, records, places } = caches
  return {
    leader: () => deps.elector.isHeld(),
    knowsFleet: () => deps.elector.isHeld() && deps.collections.informers.every(([, informer]) => informer.hasSynced()),
    leaseTransitions: () => deps.elector.transitions(),
    suspended: () => isSuspended(deps.elector.annotations()),
    *suspendedSigners() {
      // By the spec, which is what stops it; its status may be old, or say something else first.
      for (const { metadata, spec } of signers.cache.list()) yield { signer: metadata.name, suspended: spec.suspend === true }
    },
    nodes: () => deps.nodes.readings(),
    queues: () => deps.controllers.stats(),
    informers: () =>
      deps.collections.informers.map(([resource, informer]) => ({
        resource,
        objects: informer.size,
        synced: informer.hasSynced(),
        silentMs: informer.lastEventAt === undefined ? undefined : clock.monotonicMs() - informer.lastEventAt,
      })),
    *resources() {
      for (const { kind, states } of sagasOf(caches)) for (const state of states()) yield { kind, ...state }
      for (const { status } of signers.cache.list()) {
        const [ready, stalled] = ['Ready', 'Stalled'].map((type) => findCondition(status?.conditions, type))
        yield {
          kind: stakingSigner.kind,
          phase: ready?.status === 'True' ? 'Ready' : 'NotReady',
          stalled: stalled?.status === 'True' ? stalled.reason : '',
          count: 1,
        }
      }
    },
    *signers() {
      for (const { metadata, spec, status } of signers.cache.list()) {
        if (spec.chain !== 'Ethereum') continue
        for (const network of networks.names('Ethereum')) {
          const chainId = networks.ethereum(network)?.config.chainId
          if (chainId === undefined) continue
          // By the log as it is now: the signer's status is as old as the last look at the signer.
          const lane = laneKey({ chainId, address: addressOf({ spec }) })
          const given = places.cache.byIndex('lane', lane).map((place) => place.spec.nonce + 1)
          const shown = status?.lanes?.find((one) => one.network === network)
          if (shown === undefined && given.length === 0) continue
          yield {
            signer: metadata.name,
            network,
            inFlight: records.cache.byIndex('lane', lane).filter((record) => isOpen(recordOf(record))).length,
            nextNonce: given.reduce((most, next) => (next > most ? next : most), shown?.nextNonce ?? 0),
          }
        }
      }
    },
    *balances() {
      for (const { metadata, spec } of signers.cache.list()) {
        for (const network of networks.names(spec.chain)) {
          const reading = seen.balance(metadata.name, network)
          if (reading === undefined) continue
          const unit = spec.chain === 'Solana' ? ('sol' as const) : ('eth' as const)
          const inUnit = (amount: bigint): number => (unit === 'sol' ? Number(amount) / 1e9 : Number(formatWeiAsEth(wei(amount))))
          yield {
            unit,
            signer: metadata.name,
            network,
            balance: inUnit(reading.balance),
            needed: inUnit(reading.needed),
            readAt: reading.at.getTime() / 1000,
          }
        }
      }
    },
    *limits() {
      for (const { metadata, status } of signers.cache.list())
        for (const {
          network,
          window,
          per,
          namespace = '',
          count,
          countLeft,
          usedEth,
          leftEth,
          usedSol,
          leftSol,
          freesAt,
        } of status?.limits ?? []) {
          const [unit, used, left] = usedSol === undefined ? (['eth', usedEth, leftEth] as const) : (['sol', usedSol, leftSol] as const)
          yield {
            signer: metadata.name,
            network,
            window,
            per,
            namespace,
            count,
            countLeft,
            amount: used === undefined ? undefined : { unit, used: Number(used), left: Number(left) },
            freesAt: freesAt === undefined ? undefined : Date.parse(freesAt) / 1000,
          }
        }
    },
    fleet: createFleetReadings({ caches, waits: deps.waits, prices: seen.prices, clock }),
  }
}
