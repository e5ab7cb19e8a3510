import { type Wei, wei } from '../../lib/amounts.ts'
import type { Clock } from '../../lib/clock.ts'
import { timeMs } from '../../resources/conditions.ts'
import type { ObjectMeta } from '../../resources/meta.ts'
import { type Plan, planHash, withHash } from '../../resources/plan.ts'
import type { StakingApproval } from '../../resources/staking-approval.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import type { AttemptApproval } from '../../resources/staking-transaction.ts'
import { stall, wait } from '../engine/verdict.ts'
import type { ApprovalChecks, PoliciesInForce } from '../ports.ts'
import {
  approverKey,
  inWords,
  isRequired,
  type Refused,
  type Requirement,
  requestersOf,
  requirementOf,
  userKey,
  type Voice,
  votersOf,
  weigh,
} from './approval-rules.ts'
import type { Admission } from './kind.ts'
import type { Memory } from './memory.ts'
import { openAttempts } from './protocol.ts'
import { type RecordObject, recordOf } from './store.ts'

/** What can be approved of a transaction: as its kind has verified it a moment ago. */
export interface Approvable {
  readonly plan: Plan
  /** Whose keys sign it: each has a policy. */
  readonly signers: readonly StakingSigner[]
  /** Metadata of the resource that asks for it. */
  readonly metadata: ObjectMeta
}

export interface ApprovalDeps {
  /** Approvals of a plan: by the cache. */
  readonly cached: (hash: string) => Iterable<StakingApproval>
  /** Approvals of a plan in a namespace, past the cache. */
  readonly read: (namespace: string, hash: string, signal: AbortSignal) => Promise<readonly StakingApproval[]>
  readonly checks: ApprovalChecks
  readonly memory: Pick<Memory, 'of'>
  readonly clock: Pick<Clock, 'now'>
}
export type Approvals = ReturnType<typeof createApprovals>
/** The chain's own time, Unix seconds; 0 where it has none. Asked for only where something may be approved. */
export type ChainTime = () => Promise<number> | number

/** How often who waits for an approval looks again at most, in ms: an approval wakes it. */
const LOOK_MS = 60_000
/** After so many refusals of one user, in different groups each time, none of their approvals of this plan is asked about any more. */
const MOST_DENIED_OF_ONE = 4
/** After so many refusals in one look it waits, whoever else may approve: each is a call to the API server, and others in the lane wait for them. */
const MOST_DENIED = 64
/** Approvals that don't count and that a message names. */
const TOLD = 5

interface Asked extends Requirement {
  readonly signer: string
}

/** What the policies of its signers ask for. @throws Halt where they can't be read: such a policy admits nothing */
function askedFor({ plan, signers }: Approvable): readonly Asked[] {
  const byName = new Map(signers.map((signer) => [signer.metadata.name, signer]))
  return [...byName.values()].flatMap(({ metadata: { name }, spec }) => {
    const found = requirementOf(spec)
    if (found === undefined) return []
    if ('problem' in found)
      throw stall('PolicyUnreadable', `StakingSigner ${name}: ${found.problem}. It admits nothing until that is mended.`)
    return isRequired(found, plan) ? [{ ...found, signer: name }] : []
  })
}

/** Sees to it that nothing is signed that a signer's policy wants approved first, and that later versions stay within what was approved. */
export function createApprovals({ cached, read, checks, memory, clock }: ApprovalDeps) {
  /** By what is there, whether each policy is met. @throws Halt (ApprovalRequired, ApprovalUnproven) */
  function assertMet(
    { plan, metadata }: Approvable,
    asked: readonly Asked[],
    approvals: readonly StakingApproval[],
    policies: PoliciesInForce,
    nowMs: number,
    denied: ReadonlySet<string> = new Set(),
  ): readonly Voice[] {
    const hash = planHash(plan)
    const isProven = timeMs(metadata.creationTimestamp ?? '') >= policies.requestersSinceMs
    const heard = new Map<string, Voice>()
    for (const one of asked) {
      const known = requestersOf(metadata)
      // Whoever is known to have asked doesn't approve it, whatever else is not known.
      if (known === 'cut' || ((known === undefined || !isProven) && !one.allowUnrecorded)) throw unrecorded(plan, one, isProven)
      const ground = { plan, planHash: hash, requestedBy: known ?? [], nowMs, sinceMs: policies.approvalsSinceMs, denied }
      const weighed = weigh(approvals, ground)
      const { voters, refused } = votersOf(one, weighed.voices, nowMs)
      if (voters.length < one.count) throw lacking(plan, hash, one, voters, [...weighed.refused, ...refused])
      // More than are asked for make no difference: neither their number nor their being there costs anything.
      for (const voter of voters.slice(0, one.count)) heard.set(voter.approval, voter)
    }
    return [...heard.values()]
  }

  /**
   * As `assertMet`, of approvers who may approve it now, by the API server's own word. It is asked about few: what those who may no longer have left behind, in
   * whatever groups, holds nobody else in the lane.
   */
  async function permitted(
    of: Approvable,
    asked: readonly Asked[],
    found: readonly StakingApproval[],
    policies: PoliciesInForce,
    nowMs: number,
    signal: AbortSignal,
  ) {
    const reviews = createReviews((voice) => checks.mayApprove(voice, of.plan.resource, signal))
    for (;;) {
      const voices = assertMet(of, asked, found, policies, nowMs, reviews.denied)
      const open = reviews.open(voices)
      if (open.length === 0) return voices
      if (reviews.denied.size > MOST_DENIED) throw overrun(of.plan, found.length)
      await reviews.ask(open)
    }
  }

  /**
   * What a policy asks for is there, now: by the cache first, so that what waits costs nobody anything, and then by the API server's own answers. Asked
   * before a place is taken, and again right before the first broadcast.
   * ▸ An approval is over when either the operator's clock or the chain's time says so: a clock that is set back keeps none alive.
   * @returns what is to be written down with the attempt; undefined where no policy asks for anything
   * @throws Halt (ApprovalRequired, ApprovalUnproven)
   */
  async function assertApproved(
    record: RecordObject,
    of: Approvable,
    chainTime: ChainTime,
    signal: AbortSignal,
  ): Promise<AttemptApproval | undefined> {
    const asked = askedFor(of)
    const { plan } = of
    memory.of(record).plan = asked.length === 0 ? null : withHash(plan)
    if (asked.length === 0) return undefined
    const { namespace } = plan.resource
    const hash = planHash(plan)
    // Whatever the policies are like: most of those that wait have no approval at all.
    assertMet(of, asked, [...cached(hash)], { approvalsSinceMs: 0, requestersSinceMs: 0 }, clock.now().getTime())
    const nowMs = Math.max(clock.now().getTime(), (await chainTime()) * 1_000)
    const policies = await checks.policies(signal)
    if ('missing' in policies) throw unprotected(policies.missing)
    const found = (await read(namespace, hash, signal)).filter(({ spec }) => spec.planHash === hash)
    const voices = await permitted(of, asked, found, policies, nowMs, signal)
    return {
      planHash: hash,
      approvers: voices.map(({ user }) => user),
      ...(plan.maxFeePerGasWei === undefined ? {} : { maxFeePerGasWei: plan.maxFeePerGasWei }),
      ...(plan.maxRequestFeeWei === undefined ? {} : { maxRequestFeeWei: plan.maxRequestFeeWei }),
    }
  }

  return {
    assertApproved,

    /**
     * An admission within what the open attempts of a record were approved for. A cap that was raised since takes an approval of its own: without one the
     * transaction goes on within the old.
     */
    async within(record: RecordObject, admission: Admission, chainTime: ChainTime, signal: AbortSignal): Promise<Admission> {
      const approved = approvalOf(record)
      if (approved === undefined) return admission
      const { plan } = admission.approvable
      if (isAbove(plan.maxFeePerGasWei, approved.maxFeePerGasWei) || isAbove(plan.maxRequestFeeWei, approved.maxRequestFeeWei)) {
        try {
          const approval = await assertApproved(record, admission.approvable, chainTime, signal)
          return approval === undefined ? admission : { ...admission, approval }
        } catch {
          signal.throwIfAborted()
        }
      }
      return {
        ...admission,
        feeCap: lower(admission.feeCap, approved.maxFeePerGasWei),
        ...(approved.maxRequestFeeWei === undefined ? {} : { valueCap: wei(BigInt(approved.maxRequestFeeWei)) }),
      }
    },
  }
}

/** Who may approve, as the API server says in one look. */
function createReviews(mayApprove: (voice: Voice) => Promise<boolean>) {
  const allowed = new Set<string>()
  const denied = new Set<string>()
  const refusals = new Map<string, number>()
  return {
    denied: denied as ReadonlySet<string>,
    /** Those that nobody has been asked about yet, one for each user and their groups. */
    open: (voices: readonly Voice[]): readonly Voice[] => [
      ...new Map(voices.map((voice) => [approverKey(voice), voice] as const).filter(([key]) => !allowed.has(key))).values(),
    ],
    async ask(voices: readonly Voice[]): Promise<void> {
      for (const voice of voices) {
        if (await mayApprove(voice)) {
          allowed.add(approverKey(voice))
          continue
        }
        denied.add(approverKey(voice))
        const times = (refusals.get(voice.user) ?? 0) + 1
        refusals.set(voice.user, times)
        if (times >= MOST_DENIED_OF_ONE) denied.add(userKey(voice.user))
      }
    },
  }
}

/** By which approval the newest open attempt was signed. */
export const approvalOf = (record: RecordObject): AttemptApproval | undefined =>
  openAttempts(recordOf(record)).findLast(({ kind, approval }) => kind === 'Call' && approval !== undefined)?.approval

function lower(cap: Wei, approved: string | undefined): Wei {
  const most = wei(BigInt(approved ?? cap))
  return most < cap ? most : cap
}
const isAbove = (cap: string | undefined, approved: string | undefined): boolean =>
  cap !== undefined && approved !== undefined && BigInt(cap) > BigInt(approved)

const about = ({ resource: { kind, namespace, name } }: Plan): string => `${kind} ${namespace}/${name}`

/** What waits for approvals, and how one approves. */
function lacking(plan: Plan, hash: string, one: Asked, voters: readonly Voice[], refused: readonly Refused[]) {
  const { kind, namespace, name } = plan.resource
  const sofar = voters.length === 0 ? '' : ` So far: ${voters.map(({ user }) => user).join(', ')}.`
  const told = refused.slice(0, TOLD).map(({ approver, why }) => `${approver} (${why})`)
  const ignored =
    told.length === 0 ? '' : ` Not counted: ${told.join('; ')}${refused.length > TOLD ? ` and ${refused.length - TOLD} more` : ''}.`
  return wait(
    'ApprovalRequired',
    `StakingSigner ${one.signer} asks for ${inWords(one)} (spec.policy.approval). status.plan shows what would be signed. To approve it: kubectl staking approve ${kind.toLowerCase()}/${name} -n ${namespace} --plan ${hash}.${sofar}${ignored}`,
    LOOK_MS,
  )
}

const overrun = (plan: Plan, approvals: number) =>
  wait(
    'ApprovalRequired',
    `${about(plan)} has ${approvals} approvals of this plan, and more than ${MOST_DENIED} of those who gave them may not approve it any more (verb approve). Delete these: kubectl get stakingapprovals -n ${plan.resource.namespace}`,
    LOOK_MS,
  )

const unrecorded = (plan: Plan, { signer }: Asked, isProven: boolean) =>
  stall(
    'ApprovalUnproven',
    `StakingSigner ${signer} asks for an approval, and nobody can prove who has asked for ${about(plan)}: ${isProven ? 'it carries no whole record of that (annotation staking.dev/requested-by)' : 'it is older than the admission policy that records it'}. Create it anew, with your own user name as that annotation where the cluster does not write it (MutatingAdmissionPolicy). Where that can't be, the owner of the signer can set policy.approval.allowUnrecorded.`,
  )

const unprotected = (missing: string) =>
  stall(
    'ApprovalUnproven',
    `No approval counts, since nobody can prove who made it: ${missing}. Whoever runs the operator installs the admission policies of its chart (approvals.policies).`,
  )
