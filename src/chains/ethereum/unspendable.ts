import { sameHex } from '../../lib/hex.ts'
import { reservedAddress, systemContracts } from '../../lib/system-addresses.ts'
import type { Address } from './chain.ts'

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
