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
  readonly networks: Pick<Networks, 'names'>
  readonly balances: ReturnType<typeof createBalances>
  readonly clock: Clock
}): Readings {
  const { caches, networks, balances, clock } = deps
  const { signers, stakes, exits, withdrawals, solanaStakes } = caches
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
        }
      }
    },
    *signers() {
      for (const { metadata, status } of signers.cache.list()) {
        for (const { network, open, nextNonce } of status?.lanes ?? []) {
          const balance = balances.get(metadata.name, network)
          yield {
            signer: metadata.name,
            network,
            inFlight: open,
            nextNonce,
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
