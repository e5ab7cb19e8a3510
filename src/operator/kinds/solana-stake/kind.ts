import { type SolanaAddress, type SolanaChain, SolanaError, type VoteAccountAnswer } from '../../../chains/solana/chain.ts'
import type { SolanaProtocol, SolanaStake, SolanaStakeStatus } from '../../../resources/solana-stake.ts'
import type { Origin } from '../../engine/origin.ts'
import type { ObservationIntervals, SagaKind } from '../../engine/saga-kind.ts'
import { sameJson } from '../../kube/merge-patch.ts'
import type { SolanaNetwork } from '../../ports.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { type HandedOver, handedOver } from '../../transactions/solana/authorities.ts'
import { lookAt, protocolOf } from './chain.ts'
import { earnsNothing } from './chain-rules.ts'
import { cancelFirst, decideSolanaDeletion } from './deletion.ts'
import { isBegun, type OwnSteps, ownSteps, shownOf } from './records.ts'
import { requiredKeys } from './required-keys.ts'
import type { SeenStakes } from './seen.ts'
import { configured, createStanding } from './standing.ts'
import { isWhereWanted, solanaStakeStatus } from './status.ts'
import {
  type ActionKind,
  isFunded,
  isWithdrawn,
  madeAtSlot,
  type SolanaStakeEffects,
  type SolanaStakeView,
  settleBeforeDeletion,
  solanaStakeSteps,
  undoStake,
  withdrawBeforeDeletion,
} from './steps.ts'

const kinds = ['stake', 'deactivation', 'withdrawal'] as const satisfies readonly ActionKind[]

/** SolanaStake for the engine: the saga with what the engine must know besides. */
export function solanaStakeKind(deps: {
  readonly log: TransactionLog
  /** The network of the cluster with a genesis; without one, of a name. */
  readonly networkOn: (genesisHash: string | undefined, name: string) => SolanaNetwork
  readonly intervals: ObservationIntervals
  /** The folder of a signer's mounted key; undefined for a signer that isn't there. */
  readonly keyNameOf: (signer: string) => string | undefined
  readonly seen: SeenStakes
  /** Takes what earlier versions have left in status into the log. */
  readonly takeIn: (resource: SolanaStake, origin: Origin, signal: AbortSignal) => Promise<readonly string[]>
}): SagaKind<SolanaStake, SolanaStakeStatus, SolanaStakeView, SolanaStakeEffects> {
  const { log, networkOn, intervals, keyNameOf, seen, takeIn } = deps

  const ownOf = ({ metadata }: SolanaStake, uid: string | undefined): OwnSteps =>
    ownSteps(log, { kind: 'SolanaStake', namespace: metadata.namespace ?? '', name: metadata.name, uid })
  const standing = createStanding({ log, networkOn, seen, ownOf })

  return {
    kind: 'SolanaStake',
    steps: ({ metadata, spec }) => (metadata.deletionTimestamp === undefined ? solanaStakeSteps[spec.desiredState] : settleBeforeDeletion),
    withdraw: withdrawBeforeDeletion,
    cancel: undoStake,
    statusOf: (resource) => resource.status,
    isSuspended: (resource) => resource.spec.suspend === true,
    view: ({ spec, metadata }, origin, status) => ({
      origin,
      spec,
      status,
      deleting: metadata.deletionTimestamp !== undefined,
      uid: metadata.uid,
    }),
    say(resource, status, progress, now) {
      const { requiresKey: _before, ...said } = solanaStakeStatus(resource, status, progress, now)
      const needed = requiredKeys(resource, said, keyNameOf)
      return needed.length === 0 ? said : { ...said, requiresKey: [...needed] }
    },
    hasSigned: ({ transactions = {} }) => Object.keys(transactions).length > 0,
    passing: ['Pending', 'Created', 'Prepared', 'Confirming'],
    warnings: ['ValidatorDelinquent', 'ValidatorEarnsNothing'],

    takeIn,

    mirror(resource, status, origin) {
      const own = ownOf(resource, origin?.uid)
      const { transactions, looked, protocol, handOver: _before, ...rest } = status
      const next = transactionsOf(log, own, transactions)
      const { stake } = own
      const isPaid = stake !== undefined && isBegun(stake)
      // That nothing was ever staked is said by who has looked, and not by status, where a tenant may have written it.
      const hasLooked = origin !== undefined && seen.isNothing(origin.uid)
      const isForeign = origin !== undefined && seen.isAnother(origin.uid, protocol)
      const mirrored: SolanaStakeStatus = {
        ...rest,
        // Where the money is, or may be, stands in the log.
        ...(isPaid
          ? {
              stakeId: stake.spec.apiId ?? '',
              stakeAccount: stake.spec.subject,
              ...authoritiesIn(handedOver(log.ofSubject(stake.spec.subject)), stake.spec.from),
            }
          : {}),
        ...(looked === undefined || isPaid || !hasLooked ? {} : { looked }),
        ...(protocol === undefined || isForeign ? {} : { protocol }),
        ...(next === undefined ? {} : { transactions: next }),
      }
      return sameJson(mirrored, status) ? status : mirrored
    },

    async decideDeletion(resource, status, origin, signal) {
      const found = await standing(resource, status, origin, signal)
      const decided = decideSolanaDeletion(resource, found)
      // A copy cancels nothing, nor one whose network is gone from the configuration: they go.
      const decision =
        origin === undefined || configured(() => networkOn(undefined, resource.spec.network)) === undefined
          ? decided
          : cancelFirst(resource, status, found, decided)
      if (decision.do === 'release' && origin !== undefined) seen.forget(origin.uid)
      return decision
    },

    observeEvery: (status) => {
      if (!isFunded(status) || isWithdrawn(status)) return undefined
      const is = status.protocol?.status
      return is === 'Active' || is === 'Inactive' || is === 'Withdrawn' ? intervals.settledMs : intervals.activatingMs
    },

    async observe(resource, status, signal) {
      if (status.stakeAccount === undefined) return status
      const { owner, genesisHash } = ownOf(resource, undefined).stake?.spec ?? {}
      const { chain } = networkOn(genesisHash, resource.spec.network)
      const look = await lookAt(chain, status.stakeAccount, signal).catch((error: unknown) => {
        if (!(error instanceof SolanaError) || error.code !== 'unreadable') throw error
        return error.message
      })
      const before = status.protocol
      if (typeof look === 'string') {
        if (before === undefined || before.unreadable === look) return status
        const unread = { ...before, unreadable: look.slice(0, 256) }
        if (owner !== undefined) seen.note(owner.originUid, unread)
        return { ...status, protocol: unread }
      }
      const { unreadable: _over, ...last } = before ?? {}
      const read = protocolOf(look, madeAtSlot(status), before?.unreadable === undefined ? before : (last as SolanaProtocol))
      const protocol = resource.spec.desiredState === 'Active' ? await withValidator(chain, read, signal) : read
      const { originUid } = owner ?? {}
      if (originUid !== undefined) seen.note(originUid, protocol)
      return { ...status, protocol }
    },
  }
}

/** What status shows of the transactions, from the log alone. */
function transactionsOf(log: TransactionLog, own: OwnSteps, shown: SolanaStakeStatus['transactions']): SolanaStakeStatus['transactions'] {
  const entries = kinds.flatMap((kind) => {
    const next = shownOf(log, own[kind], shown?.[kind])
    return next === undefined ? [] : [[kind, next] as const]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** With what its vote account is: of one that stopped, somebody should know before anyone deactivates the stake. A chain that doesn't tell is no news. */
async function withValidator(
  chain: Pick<SolanaChain, 'voteAccount'>,
  protocol: SolanaProtocol,
  signal: AbortSignal,
): Promise<SolanaProtocol> {
  if (protocol.voteAccount === undefined) return protocol
  let found: SolanaProtocol['validator']
  try {
    const answer = await chain.voteAccount(protocol.voteAccount, signal)
    found = standingOf(answer)
  } catch (error) {
    if (!(error instanceof SolanaError)) throw error
    return protocol
  }
  return found === protocol.validator ? protocol : { ...protocol, validator: found }
}

/** Who has the authorities, by the log: what a tenant writes there is put right. */
function authoritiesIn({ stake, withdraw, slot, open }: HandedOver, from: string): Partial<SolanaStakeStatus> {
  const expected = open?.spec.handOver?.to
  const handOver: SolanaStakeStatus['handOver'] = {
    ...(slot === undefined ? {} : { slot }),
    ...(stake === undefined ? {} : { stakeSigner: stake.signer ?? '' }),
    ...(withdraw === undefined ? {} : { withdrawSigner: withdraw.signer ?? '' }),
    ...(expected === undefined
      ? {}
      : {
          expected: {
            ...(expected.stakeAuthority === undefined ? {} : { stakeAuthority: expected.stakeAuthority.address }),
            ...(expected.withdrawAuthority === undefined ? {} : { withdrawAuthority: expected.withdrawAuthority.address }),
          },
        }),
  }
  return {
    stakeAuthority: stake?.address ?? (from as SolanaAddress),
    ...(withdraw === undefined ? {} : { withdrawAuthority: withdraw.address }),
    ...(Object.keys(handOver).length === 0 ? {} : { handOver }),
  }
}

function standingOf(answer: VoteAccountAnswer): NonNullable<SolanaProtocol['validator']> {
  if (answer.kind === 'not-voting') return 'Delinquent'
  if (answer.kind !== 'vote-account') return 'Closed'
  if (answer.account.delinquent) return 'Delinquent'
  return earnsNothing(answer.account) === undefined ? 'Voting' : 'EarnsNothing'
}

/** Nothing is under way: a change of a signer or a namespace need not wake it. */
export const isSettledSolanaStake = (stake: SolanaStake): boolean => stake.status !== undefined && isWhereWanted(stake, stake.status)
