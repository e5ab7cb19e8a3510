import { getAddress, isAddress } from 'viem'
import type { Address } from '../../chains/ethereum/chain.ts'
import { unspendable } from '../../chains/ethereum/unspendable.ts'
import type { ProblemDetail } from '../../contract/problems.ts'
import type { CredentialsType } from '../../contract/schemas/ethereum-stake.ts'
import { formatEth, type Gwei, gwei } from '../../lib/amounts.ts'

/** MIN_ACTIVATION_BALANCE and MAX_EFFECTIVE_BALANCE_ELECTRA of the consensus specification. */
const minActivationBalance = gwei(32_000_000_000n)
const maxEffectiveBalance: Readonly<Record<CredentialsType, Gwei>> = { '0x01': minActivationBalance, '0x02': gwei(2_048_000_000_000n) }

/**
 * The rules of the chain for a new stake. An amount below 32 ETH never activates; above the cap of its credentials it earns nothing.
 * The address gets the withdrawn money and can't be changed later: a mistyped one is lost money.
 */
export function brokenRules(given: {
  networkName: string
  /** Undefined: the service has no network of this name. */
  network: { readonly depositContractAddress: Address } | undefined
  amount: Gwei
  credentialsType: CredentialsType
  withdrawalAddress: Address
}): readonly ProblemDetail[] {
  const broken: ProblemDetail[] = []
  const { amount, credentialsType, withdrawalAddress } = given
  if (given.network === undefined) {
    broken.push({
      pointer: '/body/network',
      code: 'unknown-network',
      detail: `"${given.networkName}" is not a network of this service: see GET /v1/networks`,
    })
  }
  const max = maxEffectiveBalance[credentialsType]
  if (amount < minActivationBalance || amount > max) {
    const rule = max === minActivationBalance ? 'exactly 32 ETH' : `from 32 to ${formatEth(max)} ETH`
    broken.push({
      pointer: '/body/amountEth',
      code: 'amount-out-of-range',
      detail: `a stake with ${credentialsType} credentials is ${rule}, not ${formatEth(amount)}`,
    })
  }
  const lost = unspendable(withdrawalAddress, given.network)
  if (lost !== undefined) {
    const code = /^0x0+$/.test(withdrawalAddress) ? 'zero-address' : 'unspendable-address'
    broken.push({ pointer: '/body/withdrawalAddress', code, detail: `the stake would be lost at ${withdrawalAddress}: ${lost}` })
  } else if (!hasValidChecksum(withdrawalAddress)) {
    broken.push({
      pointer: '/body/withdrawalAddress',
      code: 'address-checksum',
      detail: 'the checksum of the address (EIP-55, its upper and lower case) is wrong: it is probably mistyped',
    })
  }
  return broken
}

/** An address in one case has no checksum. */
const hasValidChecksum = (address: string): boolean => {
  const digits = address.slice(2)
  return digits === digits.toLowerCase() || digits === digits.toUpperCase() || isAddress(address, { strict: true })
}

/** The address in its EIP-55 form. */
export const checksummed = (address: string): Address => getAddress(address.toLowerCase())
