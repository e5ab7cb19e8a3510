import { z } from 'zod'
import { networkName } from '../ethereum/networks.ts'
import { isAddress } from './addresses.ts'

/** Genesis hashes of the public clusters. Source: `getGenesisHash` of their public RPC endpoints; Solana documentation, "Clusters". */
export const knownGenesisHashes: Readonly<Record<string, string>> = {
  'mainnet-beta': '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d',
  testnet: '4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY',
  devnet: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG',
}

const httpUrl = z.url({ protocol: /^https?$/, error: 'must be an http(s) URL' })

/**
 * One Solana network in a configuration file. The genesis hash of mainnet-beta, testnet and devnet is built in and may not be changed by
 * configuration; any other name must give it.
 */
export const solanaNetworkConfig = z
  .strictObject({
    name: networkName,
    chain: z.literal('Solana'),
    /** Tried in order. */
    rpcUrls: z.array(httpUrl).min(1).max(8),
    genesisHash: z.string().refine(isAddress, 'must be base58 of 32 bytes').optional(),
    /** How often a transaction in flight is looked at, in ms. */
    pollIntervalMs: z.int().min(50).max(3_600_000).default(5000),
  })
  .transform((value, context) => {
    const known = knownGenesisHashes[value.name]
    const genesisHash = value.genesisHash ?? known
    if (genesisHash === undefined) {
      context.addIssue({
        code: 'custom',
        path: ['genesisHash'],
        message: `is required: "${value.name}" is not a cluster whose genesis hash is built in`,
      })
    } else if (known !== undefined && genesisHash !== known) {
      context.addIssue({ code: 'custom', path: ['genesisHash'], message: `must be ${known}, the genesis of ${value.name}, or left out` })
    }
    return { ...value, genesisHash: genesisHash ?? '' }
  })
export type SolanaNetworkConfig = z.output<typeof solanaNetworkConfig>
