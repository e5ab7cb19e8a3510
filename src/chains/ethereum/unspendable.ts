import { sameHex } from '../../lib/hex.ts'
import { reservedAddress, systemContracts } from '../../lib/system-addresses.ts'
import type { Address, Hex } from './chain.ts'

/**
 * Why nobody could ever spend what is paid to an address: a precompile, or a contract of the protocol, the network's own deposit contract among them.
 * Undefined when nothing is known against it. Credentials name their address for good, so a stake that pays there is lost.
 */
export function unspendable(address: Address, network?: { readonly depositContractAddress: Address }): string | undefined {
  if (/^0x0{40}$/.test(address)) return 'it is the zero address, and nobody can spend from there'
  if (reservedAddress.test(address)) return 'it lies in the range of precompiles (EIP-1352), and nobody can spend from there'
  const what =
    network !== undefined && sameHex(address, network.depositContractAddress)
      ? 'the deposit contract'
      : systemContracts[address.toLowerCase()]
  return what === undefined ? undefined : `it is ${what}, which never pays anything out`
}

/** EIP-7702: an account with a key of its own that has named a contract to run for it. Its key can still spend. */
const delegation = /^0xef0100[0-9a-f]{40}$/i

/** Whether an account is a contract that nobody here knows: whether it can pay out what comes to it, its code alone says. */
export const isContract = (code: Hex): boolean => code.length > 2 && !delegation.test(code)
