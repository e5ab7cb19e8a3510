import { isDeletionConfirmed } from '../../../resources/meta.ts'
import type { SolanaStake, SolanaStakeStatus } from '../../../resources/solana-stake.ts'
import type { Origin } from '../../engine/origin.ts'
import { Halt } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { liveAttempts } from '../../transactions/solana/rules.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { isReached, lookAt } from './chain.ts'
import type { LoggedStake } from './deletion.ts'
import { isBegun, isLive, type OwnSteps } from './records.ts'
import type { SeenStakes } from './seen.ts'
import { createUnlogged } from './unlogged.ts'

export interface StandingDeps {
  readonly log: Pick<TransactionLog, 'ofSubject'>
  /** The network of the cluster with a genesis; without one, of a name. */
  readonly networkOn: (genesisHash: string | undefined, name: string) => SolanaNetwork
  readonly seen: SeenStakes
  /** The steps of a resource, by its place and its origin; without an origin, by its place alone. */
  readonly ownOf: (resource: SolanaStake, uid: string | undefined) => OwnSteps
}

/** What there is of a stake whose resource is being deleted. */
export function createStanding({ log, networkOn, seen, ownOf }: StandingDeps) {
  const unlogged = createUnlogged(log)

  /** What there is of its stake, whichever origin it claims: by the log, and where that has nothing of a stake that was verified, by the chain. */
  async function standing(
    resource: SolanaStake,
    { stakeId, verifiedStakeId, stakeAccount }: SolanaStakeStatus,
    origin: Origin | undefined,
    signal: AbortSignal,
  ): Promise<LoggedStake> {
    for (const uid of [origin?.uid, resource.metadata.uid]) {
      const own = logged(ownOf(resource, uid))
      if (own.is !== 'none') return own
    }
    // What was signed at its place and may land keeps it, whichever origin it says that it has; of one that says that it is another than it is, whatever was signed there.
    const here = logged(ownOf(resource, undefined))
    const isItself = origin === undefined || origin.uid === resource.metadata.uid
    if (here.is === 'open' || (!isItself && here.is !== 'none')) return here
    // What the chain and the staking API say does not keep it.
    if (isDeletionConfirmed(resource)) return { is: 'none' }
    if (stakeAccount === undefined || stakeId === undefined || verifiedStakeId !== stakeId) return unseen(resource, signal)
    const records = log.ofSubject(stakeAccount)
    const { namespace, name } = resource.metadata
    const isHere = ({ spec: { owner } }: RecordObject) => owner.namespace === namespace && owner.name === name
    // Its own record is its own under any origin. What a resource elsewhere has paid holds that one, and status says nothing of this one's.
    if (records.length > 0) return records.some(isHere) ? logged(ownOf(resource, undefined)) : unseen(resource, signal)
    // The log may have been set back, or is younger than the stake.
    const { chain } = networkOn(undefined, resource.spec.network)
    const look = await lookAt(chain, stakeAccount, signal)
    if (isReached('stake', look, 0)) return { is: 'landed', stakeAccount }
    return origin === undefined || seen.isNothing(origin.uid) ? { is: 'none' } : { is: 'unknown' }
  }

  /** Its status names no stake that was verified: either none was ever paid, or status was lost. */
  async function unseen(resource: SolanaStake, signal: AbortSignal): Promise<LoggedStake> {
    const network = configured(() => networkOn(undefined, resource.spec.network))
    if (network === undefined) return { is: 'none' }
    const { metadata, spec } = resource
    const place = { kind: 'SolanaStake', namespace: metadata.namespace ?? '', name: metadata.name, adoptStakeId: spec.adopt?.stakeId }
    return unlogged(network, place, signal)
  }

  return standing
}

/** Undefined for a network that is not configured: nothing can be asked there. */
export function configured(find: () => SolanaNetwork): SolanaNetwork | undefined {
  try {
    return find()
  } catch (error) {
    if (error instanceof Halt) return undefined
    throw error
  }
}

function logged({ stake, withdrawal }: OwnSteps): LoggedStake {
  if (withdrawal?.status?.outcome !== undefined) return { is: 'withdrawn' }
  if (stake === undefined || !isBegun(stake)) return { is: 'none' }
  if (stake.status?.outcome !== undefined) return { is: 'landed', stakeAccount: stake.spec.subject }
  if (isLive(stake)) return { is: 'open', signature: liveAttempts(recordOf(stake)).at(-1)?.attempt.hash ?? '' }
  return { is: 'idle' }
}
