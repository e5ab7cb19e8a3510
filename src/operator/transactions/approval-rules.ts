import { AmountError, parseEth } from '../../lib/amounts.ts'
import { timeMs } from '../../resources/conditions.ts'
import { type ObjectMeta, REQUESTED_BY_ANNOTATION } from '../../resources/meta.ts'
import type { Plan } from '../../resources/plan.ts'
import { type ApproverRule, EVERYBODY, NOBODY, type SignerApproval, signerApproval } from '../../resources/signer-approval.ts'
import type { StakingApproval } from '../../resources/staking-approval.ts'
import type { StakingSignerSpec } from '../../resources/staking-signer.ts'
import { windowMs } from './limits.ts'

/**
 * Approvals, pure: whether a policy asks for any, and which of those that are there count. Amounts are gwei on Ethereum, lamports on Solana.
 *
 * ▸ An approval counts for one plan of one resource, by its hash and its UID, and never by whoever has asked for it. That it is the word of whom it names
 * rests on the admission policies, which is proven elsewhere.
 */

/** What a policy asks for. */
export interface Requirement {
  readonly kinds: SignerApproval['kinds']
  /** What is above it needs an approval; undefined: everything does. */
  readonly above: bigint | undefined
  readonly by: readonly ApproverRule[]
  readonly count: number
  readonly validForMs: number
  /** Also what nobody can prove the requesters of may be approved. */
  readonly allowUnrecorded: boolean
}

/** The approvals that a signer's policy asks for, or why that can't be read: what the admission rules refuse too, once more. No policy fails open. */
export function requirementOf({
  chain,
  policy,
}: Pick<StakingSignerSpec, 'chain' | 'policy'>): Requirement | undefined | { readonly problem: string } {
  if (policy.approval === undefined) return undefined
  const parsed = signerApproval.safeParse(policy.approval)
  if (!parsed.success) return { problem: ['policy.approval', ...(parsed.error.issues[0]?.path ?? [])].join('.') }
  const { kinds, by, count, validFor, allowUnrecorded = false, ...amounts } = parsed.data
  const [own, other] = chain === 'Solana' ? (['aboveSol', 'aboveEth'] as const) : (['aboveEth', 'aboveSol'] as const)
  if (amounts[other] !== undefined) return { problem: `policy.approval.${other} is of another chain: ${chain} has ${own}` }
  if (kinds?.some((kind) => kind.startsWith('Solana') !== (chain === 'Solana')) === true)
    return { problem: `policy.approval.kinds names what is of another chain than ${chain}` }
  const above = amountOf(amounts[own])
  if (above === null) return { problem: `policy.approval.${own} is no amount` }
  const validForMs = windowMs(validFor)
  if (validForMs === undefined) return { problem: 'policy.approval.validFor is no time of at most a year, such as "7d"' }
  if (by.some(({ group, user }) => (group === undefined) === (user === undefined)))
    return { problem: 'policy.approval.by has an entry without one of group and user' }
  if (by.some(({ group = '', user }) => EVERYBODY.includes(group) || user === NOBODY))
    return { problem: 'policy.approval.by names everybody, every pod, or nobody in particular' }
  const named = by.map(({ group, user }) => (user === undefined ? `group ${group}` : `user ${person(user)}`))
  if (new Set(named).size < named.length) return { problem: 'policy.approval.by names somebody twice' }
  if (by.every(({ user }) => user !== undefined) && count > by.length)
    return { problem: 'policy.approval.count is more than the users that policy.approval.by names' }
  return { kinds, above, by, count, validForMs, allowUnrecorded }
}

function amountOf(text: string | undefined): bigint | undefined | null {
  if (text === undefined) return undefined
  try {
    return parseEth(text)
  } catch (error) {
    if (error instanceof AmountError) return null
    throw error
  }
}

/**
 * Whether a policy asks for the approval of a plan. What moves all that is there has no amount, and is above any. ▸ Who gets an authority can do what it is for,
 * under a policy of its own: where withdrawals have to be approved, a hand-over of the withdraw authority has to be as well, and where deactivations have to be,
 * one of either (whoever has the withdraw authority replaces the other).
 */
export function isRequired(
  { kinds, above }: Requirement,
  {
    purpose,
    amount,
    newStakeAuthority,
    newWithdrawAuthority,
  }: Pick<Plan, 'purpose' | 'amount' | 'newStakeAuthority' | 'newWithdrawAuthority'>,
): boolean {
  const isNamed =
    kinds === undefined ||
    kinds.includes(purpose) ||
    (newWithdrawAuthority !== undefined && kinds.includes('SolanaWithdrawal')) ||
    ((newStakeAuthority ?? newWithdrawAuthority) !== undefined && kinds.includes('SolanaDeactivation'))
  if (!isNamed) return false
  return above === undefined || amount === undefined || BigInt(amount) > above
}

/** Two spellings of a name that a person would take for one. */
const person = (user: string): string => user.normalize('NFKC').trim().toLowerCase()

/**
 * Who has asked for what a resource asks for: its creator, then whoever changed its spec. Undefined where that was not recorded, `cut` where it is not whole: a
 * cache cuts what is very long.
 */
export function requestersOf({ annotations }: Pick<ObjectMeta, 'annotations'>): readonly string[] | 'cut' | undefined {
  const text = annotations?.[REQUESTED_BY_ANNOTATION] ?? ''
  if (text.includes('…sha256:')) return 'cut'
  return text === '' ? undefined : text.split('\n')
}

/** What an approval has to fit, to count. */
export interface Ground {
  readonly plan: Plan
  readonly planHash: string
  readonly requestedBy: readonly string[]
  /** The operator's clock, Unix ms. */
  readonly nowMs: number
  /** Since when the admission policies are in force, Unix ms: what was made before may have been made by anybody. */
  readonly sinceMs: number
  /** Who may not approve the resource, by the API server's own word: approvers (`approverKey`), or users in whatever groups (`userKey`). */
  readonly denied: ReadonlySet<string>
}
/** Whom the API server is asked about: a user, in these groups. */
export const approverKey = ({ user, groups }: Pick<Voice, 'user' | 'groups'>): string => JSON.stringify([user, ...groups.toSorted()])

/** A user, in whatever groups. No `approverKey` is the same text. */
export const userKey = (user: string): string => JSON.stringify({ user })

/** An approval that counts for its plan, for whatever policy its approver is good for. */
export interface Voice {
  readonly user: string
  readonly groups: readonly string[]
  readonly approval: string
  readonly createdMs: number
}
export interface Weighed {
  readonly voices: readonly Voice[]
  /** Approvals of this very plan that don't count. */
  readonly refused: readonly Refused[]
}
export interface Refused {
  readonly approval: string
  readonly approver: string
  /** Why it doesn't count, as a clause. */
  readonly why: string
}

/** By how much the API server's clock may be ahead of the operator's. */
const SKEW_MS = 300_000

/** Which approvals of a namespace count for a plan, oldest first. */
export function weigh(approvals: Iterable<StakingApproval>, ground: Ground): Weighed {
  const voices: Voice[] = []
  const refused: Refused[] = []
  for (const approval of [...approvals].toSorted(byAge)) {
    const { spec, metadata } = approval
    if (spec.planHash !== ground.planHash) continue
    const why = against(approval, ground)
    if (why !== undefined) refused.push({ approval: metadata.name, approver: spec.approver, why })
    else
      voices.push({
        user: spec.approver,
        groups: spec.approverGroups ?? [],
        approval: metadata.name,
        createdMs: timeMs(metadata.creationTimestamp ?? ''),
      })
  }
  return { voices, refused }
}

/** Why an approval doesn't count, as a clause. */
function against({ metadata, spec }: StakingApproval, { plan, requestedBy, nowMs, sinceMs, denied }: Ground): string | undefined {
  const { resource } = plan
  const ref = spec.resourceRef
  if (metadata.namespace !== resource.namespace || ref.kind !== resource.kind || ref.name !== resource.name)
    return 'it is for another resource'
  if (ref.uid !== resource.uid) return 'it is for a resource of this name that is gone'
  if (metadata.deletionTimestamp !== undefined) return 'it is being deleted'
  if (spec.approver === '' || /\p{Cc}/u.test(spec.approver)) return 'its approver is no name'
  if (requestedBy.some((user) => person(user) === person(spec.approver))) return 'its approver has asked for this'
  if (spec.requestedBy.length === 0 && requestedBy.length > 0) return 'it names nobody who has asked, and somebody is recorded to have'
  const createdMs = timeMs(metadata.creationTimestamp ?? '')
  // What can't be read is never before or after anything.
  if (!(createdMs >= sinceMs)) return 'it is older than the admission policies that prove who made it'
  if (!(createdMs <= nowMs + SKEW_MS)) return "it was made in the future, by the operator's clock"
  if (denied.has(userKey(spec.approver)) || denied.has(approverKey({ user: spec.approver, groups: spec.approverGroups ?? [] })))
    return 'its approver may not approve this resource (verb approve)'
  if (spec.expiresAt !== undefined && !(timeMs(spec.expiresAt) > nowMs)) return 'it has expired'
  return undefined
}

/** Those that count for one policy: of different users, each of whom it names, within the time that it gives them. And those that don't. */
export function votersOf(
  { by, validForMs }: Requirement,
  voices: readonly Voice[],
  nowMs: number,
): { readonly voters: readonly Voice[]; readonly refused: readonly Refused[] } {
  const heard = new Set<string>()
  const voters: Voice[] = []
  const refused: Refused[] = []
  const why = (voice: Voice): string | undefined => {
    if (voice.createdMs + validForMs <= nowMs) return 'it is older than the policy lets it be (validFor)'
    if (heard.has(person(voice.user))) return 'another one of this user counts'
    const isNamed = by.some(({ user, group }) =>
      user === undefined ? group !== undefined && voice.groups.includes(group) : user === voice.user,
    )
    return isNamed ? undefined : 'the policy names neither its approver nor any of its approverGroups'
  }
  for (const voice of voices) {
    const against = why(voice)
    if (against !== undefined) refused.push({ approval: voice.approval, approver: voice.user, why: against })
    else {
      heard.add(person(voice.user))
      voters.push(voice)
    }
  }
  return { voters, refused }
}

/** Whose approval is asked for, for people. */
export const inWords = ({ by, count }: Requirement): string =>
  `${count === 1 ? 'the approval' : `${count} approvals`} of ${by.map(({ user, group }) => (user === undefined ? `group ${group}` : `user ${user}`)).join(' or ')}`

function byAge(a: StakingApproval, b: StakingApproval): number {
  const key = ({ metadata }: StakingApproval): string => `${metadata.creationTimestamp ?? ''} ${metadata.name}`
  return key(a) < key(b) ? -1 : 1
}
