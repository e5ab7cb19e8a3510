import { formatWeiAsEth, wei } from '../lib/amounts.ts'
import type { Clock } from '../lib/clock.ts'
import { findCondition } from '../resources/conditions.ts'
import { stakingSigner } from '../resources/staking-signer.ts'
import type { Caches } from './caches.ts'
import type { Reconciled } from './compose.ts'
import type { Controllers } from './controllers.ts'
import type { KubeCollections } from './kube/collections.ts'
import type { Readings } from './metrics.ts'
import type { Networks } from './ports.ts'
import { addressOf } from './transactions/ethereum-texts.ts'
import { laneKey } from './transactions/names.ts'
import { isOpen } from './transactions/protocol.ts'
import { recordOf } from './transactions/store.ts'

/** What signers' addresses held when it was last read, in wei or lamports. */
export function createBalances() {
  const balances = new Map<string, bigint>()
  return {
    set: (signer: string, network: string, amount: bigint) => void balances.set(`${signer}/${network}`, amount),
    get: (signer: string, network: string) => balances.get(`${signer}/${network}`),
  }
}

/** What the metrics show of the operator's memory at scrape time. */
export function createReadings(deps: {
  readonly isLeader: () => boolean
  readonly caches: Caches
  readonly controllers: Pick<Controllers<Reconciled>, 'stats'>
  readonly collections: Pick<KubeCollections, 'informers'>
  readonly networks: Pick<Networks, 'names' | 'ethereum'>
  readonly balances: ReturnType<typeof createBalances>
  readonly clock: Clock
}): Readings {
  const { caches, networks, balances, clock } = deps
  const { signers, stakes, exits, withdrawals, solanaStakes, records, places } = caches
  return {
    leader: deps.isLeader,
    queues: () => deps.controllers.stats(),
    informers: () =>
      deps.collections.informers.map(([resource, informer]) => ({
        resource,
        objects: informer.size,
        synced: informer.hasSynced(),
        silentMs: informer.lastEventAt === undefined ? undefined : clock.monotonicMs() - informer.lastEventAt,
      })),
    *resources() {
      for (const { kind, states } of [stakes, exits, withdrawals, solanaStakes]) for (const state of states()) yield { kind, ...state }
      for (const { status } of signers.cache.list()) {
        const ready = findCondition(status?.conditions, 'Ready')
        yield {
          kind: stakingSigner.kind,
          phase: ready?.status === 'True' ? 'Ready' : 'NotReady',
          stalled: ready?.status === 'False' ? ready.reason : '',
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
          const seen = status?.lanes?.find((one) => one.network === network)
          if (seen === undefined && given.length === 0) continue
          const balance = balances.get(metadata.name, network)
          yield {
            signer: metadata.name,
            network,
            inFlight: records.cache.byIndex('lane', lane).filter((record) => isOpen(recordOf(record))).length,
            nextNonce: given.reduce((most, next) => (next > most ? next : most), seen?.nextNonce ?? 0),
            balanceEth: balance === undefined ? undefined : Number(formatWeiAsEth(wei(balance))),
          }
        }
      }
    },
    *solanaBalances() {
      for (const { metadata, spec } of signers.cache.list()) {
        if (spec.chain !== 'Solana') continue
        for (const network of networks.names('Solana')) {
          const balance = balances.get(metadata.name, network)
          if (balance !== undefined) yield { signer: metadata.name, network, balanceSol: Number(balance) / 1e9 }
        }
      }
    },
  }
}
