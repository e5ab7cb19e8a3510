import { stall } from '../../engine/verdict.ts'
import type { Networks, SolanaNetwork } from '../../ports.ts'

/** The configured clusters: by the name that a spec has, or by the genesis of what was done there. */
export function createSolanaNetworks(networks: Pick<Networks, 'solana' | 'names'>) {
  function networkOf(name: string): SolanaNetwork {
    const network = networks.solana(name)
    if (network === undefined) {
      const names = networks.names('Solana')
      throw stall(
        'UnknownNetwork',
        `The operator has no Solana network "${name}"${names.length === 0 ? '' : `; it has ${names.join(', ')}`}. Add it to the operator's networks file, or create this resource with another network.`,
      )
    }
    return network
  }

  /** The network of the cluster that something was done on, whatever its name is now. @throws Halt where it isn't configured any more */
  function networkOn(genesisHash: string | undefined, name: string): SolanaNetwork {
    const all = networks.names('Solana').map((one) => networks.solana(one))
    const found = genesisHash === undefined ? networkOf(name) : all.find((one) => one?.config.genesisHash === genesisHash)
    if (found !== undefined) return found
    throw stall(
      'WrongChain',
      `This stake is on the cluster with genesis ${genesisHash}, and the operator's networks file has none of that genesis any more. Nothing is signed, and nothing is known of it. Put its network back.`,
    )
  }

  return { networkOf, networkOn }
}
