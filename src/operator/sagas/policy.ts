import { getAddress, isAddress } from 'viem'
import { AmountError, formatEth, type Gwei, parseEth, parseGweiAsWei, type Wei } from '../../lib/amounts.ts'
import type { Reason } from '../../resources/reasons.ts'
import { type LabelSelector, type StakingSigner, stakingSignerSpec } from '../../resources/staking-signer.ts'

export interface Refusal {
  readonly reason: Reason
  readonly message: string
}

/** A namespace as policy sees it; `labels` undefined means that they could not be read. */
export interface NamespaceFacts {
  readonly name: string
  readonly labels: Readonly<Record<string, string>> | undefined
}

/**
 * Whether a signer's policy admits a deposit. It runs at every signature, on the spec as the API server holds it now. Nothing fails open: a
 * policy that cannot be read, an empty list or a namespace whose labels are unknown admit nothing.
 */
export function admitDeposit(
  signer: StakingSigner,
  request: { namespace: NamespaceFacts; withdrawalAddress: string; amountGwei: Gwei },
): Refusal | undefined {
  const parsed = stakingSignerSpec.safeParse(signer.spec)
  if (!parsed.success) {
    const where = parsed.error.issues.map((issue) => issue.path.join('.') || 'spec').join(', ')
    return {
      reason: 'PolicyUnreadable',
      message: `StakingSigner ${signer.metadata.name} has fields that cannot be read (${where}): it admits nothing until they are mended.`,
    }
  }
  const { policy, chain } = parsed.data
  const name = signer.metadata.name
  if (chain !== 'Ethereum')
    return { reason: 'WrongChain', message: `StakingSigner ${name} is for ${chain}; an EthereumStake needs one for Ethereum.` }
  const { names = [], selector } = policy.allowedNamespaces
  if (!names.includes(request.namespace.name) && !(selector && selects(selector, request.namespace.labels))) {
    return {
      reason: 'NamespaceNotAllowed',
      message: `StakingSigner ${name} does not admit namespace ${request.namespace.name}. Ask its owner to add it to spec.policy.allowedNamespaces, or name another signer.`,
    }
  }
  if (
    policy.allowedWithdrawalAddresses &&
    !policy.allowedWithdrawalAddresses.some((allowed) => sameAddress(allowed, request.withdrawalAddress))
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

/** The lower of the signer's and the resource's own fee cap, in wei per gas. @throws AmountError */
export function feeCap(signer: StakingSigner, ownCapGwei: string | undefined): Wei {
  const signerCap = parseGweiAsWei(signer.spec.policy.maxFeePerGasGwei ?? '0')
  if (ownCapGwei === undefined) return signerCap
  const own = parseGweiAsWei(ownCapGwei)
  return own < signerCap ? own : signerCap
}

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

export const sameAddress = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

/** The checksum rule of EIP-55: mixed case must be right; all lower or all upper carries none. */
export function checkAddress(address: string): string | undefined {
  const digits = address.slice(2)
  if (digits === digits.toLowerCase() || digits === digits.toUpperCase()) return undefined
  if (isAddress(address, { strict: true })) return undefined
  return `${address} has a wrong EIP-55 checksum: a digit is mistyped, or the case is. If you are certain of every digit, it is written ${isAddress(address, { strict: false }) ? getAddress(address) : 'otherwise'}.`
}
