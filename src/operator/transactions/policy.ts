import { getAddress, isAddress } from 'viem'
import type { z } from 'zod'
import {
  AmountError,
  formatEth,
  type Gwei,
  gwei,
  type Lamports,
  parseEth,
  parseGweiAsWei,
  parseInteger,
  parseLamports,
  type Wei,
} from '../../lib/amounts.ts'
import { sameHex } from '../../lib/hex.ts'
import type { Reason } from '../../resources/reasons.ts'
import {
  type LabelSelector,
  type SignerPolicy,
  type StakingSigner,
  type StakingSignerSpec,
  stakingSignerSpec,
} from '../../resources/staking-signer.ts'
import { type Halt, stall, wait } from '../engine/verdict.ts'
import { requirementOf } from './approval-rules.ts'
import { limitsOf } from './limits.ts'

export interface Refusal {
  readonly reason: Reason
  readonly message: string
  /** Somebody has stopped it on purpose: it waits for that, and nothing is wrong with it. */
  readonly isWait?: true
}

/** What a refusal means for who asks. */
export const haltBy = ({ reason, message, isWait }: Refusal): Halt =>
  isWait === true ? wait(reason, message, SUSPENDED_LOOK_MS) : stall(reason, message)
/** The watch tells sooner. */
const SUSPENDED_LOOK_MS = 30_000

/** A namespace as policy sees it; `labels` undefined means that they could not be read. */
export interface NamespaceFacts {
  readonly name: string
  readonly labels: Readonly<Record<string, string>> | undefined
}

/** Whether a policy admits or refuses a namespace by its labels: one that names it need not know them. */
export function goesByLabels({ spec }: StakingSigner, namespace: string): boolean {
  // As the API server holds it: it is parsed when it is asked.
  const allowed = (spec as { readonly policy?: { readonly allowedNamespaces?: { readonly names?: unknown; readonly selector?: unknown } } })
    .policy?.allowedNamespaces
  const isNamed = Array.isArray(allowed?.names) && allowed.names.includes(namespace)
  return allowed?.selector !== undefined && !isNamed
}

const suspended = (name: string): Refusal => ({
  reason: 'SignerSuspended',
  message: `StakingSigner ${name} is suspended (spec.suspend): nothing is signed with its key but what cancels. What was sent is followed. It goes on when its owner takes that back.`,
  isWait: true,
})

/**
 * ▸ A suspended signer signs no call from the moment on at which the cache shows that: many parties were asked since it admitted this one.
 * @throws Halt (SignerSuspended)
 */
export function assertNotSuspended(signers: Iterable<StakingSigner>, name: string): void {
  for (const { metadata, spec } of signers) if (metadata.name === name && spec.suspend === true) throw haltBy(suspended(name))
}

/** What every use of a signer must pass: that its policy can be read, its chain, the namespace. */
function admitUse(
  signer: StakingSigner,
  { chain: needed, kind, namespace }: { chain: StakingSigner['spec']['chain']; kind: string; namespace: NamespaceFacts },
): { readonly refusal: Refusal } | { readonly policy: SignerPolicy } {
  const refuse = (reason: Reason, message: string) => ({ refusal: { reason, message } })
  const read = readSpec(signer.spec)
  const name = signer.metadata.name
  if ('problem' in read)
    return refuse(
      'PolicyUnreadable',
      `StakingSigner ${name} has fields that cannot be read (${read.problem}): it admits nothing until they are mended.`,
    )
  const { policy, chain, suspend } = read
  if (suspend === true) return { refusal: suspended(name) }
  if (chain !== needed)
    return refuse(
      'WrongChain',
      `StakingSigner ${name} is for ${chain}; ${/^[AEIOU]/.test(kind) ? 'an' : 'a'} ${kind} needs one for ${needed}.`,
    )
  const { names = [], selector } = policy.allowedNamespaces
  if (!names.includes(namespace.name) && !(selector && selects(selector, namespace.labels)))
    return refuse(
      'NamespaceNotAllowed',
      `StakingSigner ${name} does not admit namespace ${namespace.name}. Ask its owner to add it to spec.policy.allowedNamespaces, or name another signer.`,
    )
  return { policy }
}

/** The spec of a signer as the API server holds it; or what of it can't be read, which admits nothing. */
function readSpec(spec: unknown): StakingSignerSpec | { readonly problem: string } {
  const parsed = stakingSignerSpec.safeParse(spec)
  if (!parsed.success) return { problem: unreadable(parsed.error) }
  const limits = limitsOf(parsed.data)
  if ('problem' in limits) return limits
  const approval = requirementOf(parsed.data)
  return approval !== undefined && 'problem' in approval ? approval : parsed.data
}
/** What of a signer's spec can't be read, so that it admits nothing; undefined where all can. */
export function problemOf({ spec }: Pick<StakingSigner, 'spec'>): string | undefined {
  const read = readSpec(spec)
  return 'problem' in read ? read.problem : undefined
}

/** The fields of a signer's spec that cannot be read, among them those that this version of the operator does not know. */
const unreadable = (error: z.ZodError): string =>
  [
    ...new Set(
      error.issues.flatMap((issue) => {
        const at = issue.path.join('.')
        if (issue.code !== 'unrecognized_keys') return [at || 'spec']
        return issue.keys.map((key) => `${at === '' ? '' : `${at}.`}${key.slice(0, 63)}, which this version of the operator does not know`)
      }),
    ),
  ]
    .slice(0, 16)
    .join('; ')

/**
 * Whether a signer's policy admits a deposit. It runs at every signature, on the spec as the API server holds it now. Nothing fails open: a
 * policy that cannot be read, an empty list or a namespace whose labels are unknown admit nothing.
 */
export function admitDeposit(
  signer: StakingSigner,
  request: { namespace: NamespaceFacts; withdrawalAddress: string; amountGwei: Gwei },
): Refusal | undefined {
  const use = admitUse(signer, { chain: 'Ethereum', kind: 'EthereumStake', namespace: request.namespace })
  if ('refusal' in use) return use.refusal
  const { policy } = use
  const name = signer.metadata.name
  if (
    policy.allowedWithdrawalAddresses &&
    !policy.allowedWithdrawalAddresses.some((allowed) => sameHex(allowed, request.withdrawalAddress))
  ) {
    return {
      reason: 'WithdrawalAddressNotAllowed',
      message: `StakingSigner ${name} does not admit withdrawal address ${request.withdrawalAddress}. Ask its owner to add it to spec.policy.allowedWithdrawalAddresses.`,
    }
  }
  try {
    const limit = parseEth(policy.maxPerTransaction)
    if (request.amountGwei > limit) {
      return {
        reason: 'OverLimit',
        message: `${formatEth(request.amountGwei)} ETH is over StakingSigner ${name}'s limit of ${formatEth(limit)} ETH for one transaction (spec.policy.maxPerTransaction).`,
      }
    }
  } catch (error) {
    if (!(error instanceof AmountError)) throw error
    return { reason: 'PolicyUnreadable', message: `StakingSigner ${name}: spec.policy.maxPerTransaction: ${error.message}` }
  }
  return undefined
}

/** What a policy says of a deposit whatever that waits for. */
const ruledOut: ReadonlySet<Reason> = new Set(['WrongChain', 'NamespaceNotAllowed', 'WithdrawalAddressNotAllowed'])

/**
 * Whether a signer's policy admits no deposit of this namespace to this address, of whatever amount, for as long as it stands as it does. ▸ What can't be told
 * isn't ruled out: a policy that can't be read now, a namespace whose labels are unknown, whatever a suspended signer would say to it.
 */
export function rulesOutDeposit(
  signer: StakingSigner,
  { namespace, withdrawalAddress }: { readonly namespace: NamespaceFacts; readonly withdrawalAddress: string },
): boolean {
  const refusal = admitDeposit(
    { ...signer, spec: { ...signer.spec, suspend: false } },
    { namespace, withdrawalAddress, amountGwei: gwei(0n) },
  )
  if (refusal?.reason === 'NamespaceNotAllowed' && namespace.labels === undefined && goesByLabels(signer, namespace.name)) return false
  return refusal !== undefined && ruledOut.has(refusal.reason)
}

/** Whether a signer's policy admits an exit or withdrawal request (EIP-7002). It sends no more than a fee, which `requestFeeCap` bounds. */
export function admitRequest(
  signer: StakingSigner,
  request: { namespace: NamespaceFacts; kind: 'ValidatorExit' | 'ValidatorWithdrawal' },
): Refusal | undefined {
  const use = admitUse(signer, { chain: 'Ethereum', ...request })
  return 'refusal' in use ? use.refusal : undefined
}

/**
 * Whether the policy of a Solana stake's signer admits what is asked of it: as stake authority it pays the amount and delegates it, as
 * withdraw authority it decides where the money goes in the end. Left out: what this signature has nothing to do with.
 */
export function admitSolanaStake(
  signer: StakingSigner,
  request: { namespace: NamespaceFacts; kind?: string; amountLamports?: Lamports; voteAccount?: string; destination?: string },
): Refusal | undefined {
  const use = admitUse(signer, { chain: 'Solana', kind: request.kind ?? 'SolanaStake', namespace: request.namespace })
  if ('refusal' in use) return use.refusal
  const { policy } = use
  const name = signer.metadata.name
  const { voteAccount, destination, amountLamports } = request
  // Base58 has no second spelling.
  if (voteAccount !== undefined && policy.allowedVoteAccounts && !policy.allowedVoteAccounts.includes(voteAccount))
    return {
      reason: 'VoteAccountNotAllowed',
      message: `StakingSigner ${name} does not admit vote account ${voteAccount}. Ask its owner to add it to spec.policy.allowedVoteAccounts.`,
    }
  if (destination !== undefined && policy.allowedWithdrawalAddresses && !policy.allowedWithdrawalAddresses.includes(destination))
    return {
      reason: 'WithdrawalAddressNotAllowed',
      message: `StakingSigner ${name} does not admit destination ${destination}. Ask its owner to add it to spec.policy.allowedWithdrawalAddresses.`,
    }
  if (amountLamports === undefined) return undefined
  try {
    const limit = parseLamports(policy.maxPerTransaction)
    if (amountLamports > limit)
      return {
        reason: 'OverLimit',
        message: `${amountLamports} lamports are over StakingSigner ${name}'s limit of ${limit} lamports for one transaction (spec.policy.maxPerTransaction).`,
      }
  } catch (error) {
    if (!(error instanceof AmountError)) throw error
    return {
      reason: 'PolicyUnreadable',
      message: `StakingSigner ${name}: spec.policy.maxPerTransaction: ${error.message}. For a Solana signer it is a whole number of lamports.`,
    }
  }
  return undefined
}

/**
 * Whether the policy of the signer that has an authority of a stake account admits that another address gets it. ▸ Whoever has the withdraw authority owns the
 * money: a policy that names no successors has none.
 */
export function admitSuccessor(
  signer: StakingSigner,
  request: {
    namespace: NamespaceFacts
    kind: string
    role: 'stake' | 'withdraw'
    successor: string
    /** Name of the StakingSigner that has the successor's key, whose policy decides from then on; undefined where none has. */
    signer: string | undefined
  },
): Refusal | undefined {
  const { namespace, kind, role, successor } = request
  const use = admitUse(signer, { chain: 'Solana', kind, namespace })
  if ('refusal' in use) return use.refusal
  const isSameKey = successor === signer.spec.address
  const stays = isSameKey && request.signer === signer.metadata.name
  if (stays || use.policy.allowedSuccessors?.includes(successor) === true) return undefined
  // Of the same key the chain shows it done: with another StakingSigner another policy would decide, and nothing is signed for that.
  const whose = isSameKey && request.signer !== undefined ? ` as StakingSigner ${request.signer}, whose policy would decide then` : ''
  return {
    reason: 'SuccessorNotAllowed',
    message: `StakingSigner ${signer.metadata.name} has the ${role} authority, and does not admit that it is handed over to ${successor}${whose}. If that is meant, its owner adds the address to spec.policy.allowedSuccessors.`,
  }
}

const lowerOf = (signersCapGwei: string | undefined, ownCapGwei: string | undefined): Wei => {
  const cap = parseGweiAsWei(signersCapGwei ?? '0')
  if (ownCapGwei === undefined) return cap
  const own = parseGweiAsWei(ownCapGwei)
  return own < cap ? own : cap
}
/** The lower of the signer's and the resource's own fee cap, in wei per gas. @throws AmountError */
export const feeCap = (signer: StakingSigner, ownCapGwei: string | undefined): Wei =>
  lowerOf(signer.spec.policy.maxFeePerGasGwei, ownCapGwei)
/** The lower of the signer's and the resource's own cap on what a request may pay to the EIP-7002 contract, in wei. @throws AmountError */
export const requestFeeCap = (signer: StakingSigner, ownCapGwei: string | undefined): Wei =>
  lowerOf(signer.spec.policy.maxRequestFeeGwei, ownCapGwei)

/**
 * The lowest of the signers' and the stake's own caps on the priority fee of a transaction, in lamports. A policy that has none admits none.
 * @throws AmountError
 */
export const priorityFeeCap = (signers: readonly StakingSigner[], own: string): bigint =>
  [own, ...signers.map(({ spec }) => spec.policy.maxPriorityFeeLamports ?? '0')]
    .map((text) => parseInteger(text, 'a fee in lamports', 9_999_999_999n))
    .reduce((lowest, cap) => (cap < lowest ? cap : lowest))

/** Whether labels match a selector (metav1.LabelSelector), but for one thing: an empty selector matches nothing, as an omission must not admit all. */
export function selects(selector: LabelSelector, labels: Readonly<Record<string, string>> | undefined): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector
  if (labels === undefined || (Object.keys(matchLabels).length === 0 && matchExpressions.length === 0)) return false
  const labelOf = (key: string): string | undefined => (Object.hasOwn(labels, key) ? labels[key] : undefined)
  return (
    Object.entries(matchLabels).every(([key, value]) => labelOf(key) === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = labelOf(key)
      // As Kubernetes has it: In and NotIn need values, the others must have none. A requirement that says neither is not read as "all".
      switch (operator) {
        case 'In':
          return value !== undefined && values.includes(value)
        case 'NotIn':
          return values.length > 0 && (value === undefined || !values.includes(value))
        case 'Exists':
          return values.length === 0 && value !== undefined
        case 'DoesNotExist':
          return values.length === 0 && value === undefined
        default:
          return false
      }
    })
  )
}

/** The checksum rule of EIP-55: mixed case must be right; all lower or all upper carries none. */
export function checkAddress(address: string): string | undefined {
  const digits = address.slice(2)
  if (digits === digits.toLowerCase() || digits === digits.toUpperCase()) return undefined
  if (isAddress(address, { strict: true })) return undefined
  return `${address} has a wrong EIP-55 checksum: a digit is mistyped, or the case is. If you are certain of every digit, it is written ${isAddress(address, { strict: false }) ? getAddress(address) : 'otherwise'}.`
}
