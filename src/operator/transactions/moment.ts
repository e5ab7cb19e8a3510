import type { LaneCounts } from '../../chains/ethereum/chain.ts'
import type { FeeMarket } from '../../chains/ethereum/fees.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Reason } from '../../resources/reasons.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import type { ClosedPlace, TransactionOwner } from '../../resources/staking-transaction.ts'
import type { Halt } from '../engine/verdict.ts'
import type { EthereumNetwork } from '../ports.ts'
import type { Approvals } from './approvals.ts'
import type { LaneChain } from './chain-port.ts'
import type { FinalityWatch } from './finality.ts'
import type { TransactionKind } from './kind.ts'
import type { Limiter } from './limiter.ts'
import type { Memory, Standing } from './memory.ts'
import type { LaneId } from './names.ts'
import type { Place } from './protocol.ts'
import type { Signing } from './signing.ts'
import type { RecordObject, TransactionStore } from './store.ts'

/** What happens to money, for the audit log, events and metrics. */
export type TransactionEvent =
  | {
      readonly is: 'attempt'
      readonly kind: 'Call' | 'Cancel'
      readonly hash: string
      readonly nonce: number
      readonly maxFeePerGasWei: string
      /** Another version stands under this nonce already. */
      readonly replaces?: string
    }
  | { readonly is: 'sent'; readonly kind: 'Call' | 'Cancel'; readonly hash: string; readonly nonce: number; readonly nodes: number }
  | { readonly is: 'closed'; readonly by: ClosedPlace['by']; readonly hash: string; readonly nonce: number }
  | { readonly is: 'outcome'; readonly outcome: 'Landed' | 'Reverted' | 'FrontRun'; readonly hash: string; readonly nonce: number }

export interface Alarm {
  readonly reason: Reason
  readonly message: string
}

/** What the parts of a lane's pass work with. */
export interface LaneDeps {
  readonly store: TransactionStore
  readonly network: (chainId: number) => (Omit<EthereumNetwork, 'chain'> & { readonly chain: LaneChain }) | undefined
  readonly kindOf: (record: RecordObject) => TransactionKind
  readonly signing: Signing
  /** The rolling limits of signers. */
  readonly limiter: Limiter
  /** What the policies of signers want approved. */
  readonly approvals: Approvals
  readonly signers: () => Iterable<StakingSigner>
  readonly memory: Memory
  readonly clock: Clock
  readonly assertMayAct: () => void
  /**
   * Has a signer stay until its lane is settled, whoever deletes it: before a place is taken in its name, so that its key is there to cancel or replace what
   * is signed. @throws Halt where it is gone, or is being deleted
   */
  readonly holdSigner: (signer: StakingSigner, signal: AbortSignal) => Promise<void>
  /** Why nothing is signed in a lane yet: what an earlier version has signed is not in the log. */
  readonly importing: (lane: LaneId) => Standing | undefined
  /** Why nothing is signed for a record yet, in whatever lane: an earlier version may have signed it in another, and that is not in the log. */
  readonly importingFor: (record: RecordObject) => Halt | undefined
  /** Whether the very resource that a record was made for is there: by the cache, or past it. Of a kind that isn't known here: it is. */
  readonly ownerExists: (owner: TransactionOwner, isFresh: boolean, signal: AbortSignal) => Promise<boolean>
  /** How long a record is kept after the last resource that it was made for, in ms. */
  readonly retentionMs: number
  /** `what`: the purpose of a record, or `SignerNonce`. */
  readonly onPruned?: (network: string, what: string) => void
  readonly onEvent?: (record: RecordObject, event: TransactionEvent) => void
  /** What a gas unit costs on a network, each time that it was asked for. */
  readonly onMarket?: ((network: string, market: FeeMarket) => void) | undefined
  /** What whoever runs the operator must hear of besides conditions, once for each time. */
  readonly onAlarm?: (signer: StakingSigner, network: string, alarm: Alarm) => void
  readonly onPoint?: (point: string, key: string) => void
}

/** One look at a lane: facts that its decisions share. */
export interface Moment {
  readonly lane: LaneId
  readonly network: NonNullable<ReturnType<LaneDeps['network']>>
  readonly chain: LaneChain
  readonly counts: LaneCounts
  readonly final: bigint
  /** Time of the latest block, in seconds since 1970; 0 where the node does not tell. */
  readonly blockSeconds: number
  /** The final block has not moved for long (`NO_FINALITY_MS`). */
  readonly isStuck: boolean
  readonly places: ReadonlyMap<number, Place>
  /** Records without an outcome, the oldest first. */
  readonly records: readonly RecordObject[]
  readonly market: () => Promise<FeeMarket>
  readonly signal: AbortSignal
}

/** Nodes that show nothing under this nonce: their counts end at or below it. One that gave no answer is asked again at the next look. */
export const nodesLacking = ({ nodes }: LaneCounts, nonce: number): readonly number[] =>
  nodes.flatMap((node, index) => (node !== undefined && node.pending <= nonce ? [index] : []))

/** Whether somebody waits behind a nonce: a higher place, or a transaction that wants one. */
export const somebodyWaits = (
  { places, records }: Pick<Moment, 'places' | 'records'>,
  nonce: number,
  isHeldBack: (record: RecordObject) => boolean,
): boolean =>
  [...places.keys()].some((other) => other > nonce) || records.some((record) => record.status?.place === undefined && !isHeldBack(record))

/**
 * One look at a lane. ▸ The log is read after the chain: a nonce that is given out meanwhile must not look like a stranger's.
 * @throws ChainError where no node answers usefully
 */
export async function lookAt(
  lane: LaneId,
  network: Moment['network'],
  {
    finality,
    inLog,
    onMarket,
    signal,
  }: {
    readonly finality: FinalityWatch
    readonly inLog: () => Pick<Moment, 'places' | 'records'>
    readonly onMarket?: LaneDeps['onMarket']
    readonly signal: AbortSignal
  },
): Promise<Moment> {
  const { chain } = network
  const [counts, view] = await Promise.all([chain.laneCounts(lane.address, signal), chain.view(signal)])
  let market: Promise<FeeMarket> | undefined
  const priceNow = async (): Promise<FeeMarket> => {
    const now = { baseFeePerGas: view.baseFeePerGas, priorityFeePerGas: await chain.priorityFee(signal) }
    onMarket?.(network.config.name, now)
    return now
  }
  return {
    lane,
    network,
    chain,
    counts,
    final: view.final.number,
    blockSeconds: view.latest.timestamp,
    isStuck: finality.standsStill(lane.chainId, view.final.number, view.latest.number),
    ...inLog(),
    market: () => {
      market ??= priceNow()
      return market
    },
    signal,
  }
}
