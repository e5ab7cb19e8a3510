import { z } from 'zod'
import type { Address, BlockHash, Hex } from './chain.ts'

/**
 * Constants of a network that deposits depend on. Sources: the networks' published configurations (eth-clients/mainnet, eth-clients/hoodi,
 * eth-clients/sepolia): DEPOSIT_CONTRACT_ADDRESS, DEPOSIT_CHAIN_ID, GENESIS_FORK_VERSION.
 */
export interface EthereumNetworkConstants {
  readonly chainId: number
  readonly depositContractAddress: Address
  readonly genesisForkVersion: Hex
  /** Block in which the deposit contract was created: the deposit history is read from here. */
  readonly depositContractBlock: number
}

export const knownNetworks: Readonly<Record<string, EthereumNetworkConstants>> = {
  mainnet: {
    chainId: 1,
    depositContractAddress: '0x00000000219ab540356cBB839Cbe05303d7705Fa',
    genesisForkVersion: '0x00000000',
    depositContractBlock: 11_052_984,
  },
  hoodi: {
    chainId: 560048,
    depositContractAddress: '0x00000000219ab540356cBB839Cbe05303d7705Fa',
    genesisForkVersion: '0x10000910',
    depositContractBlock: 0,
  },
  sepolia: {
    chainId: 11155111,
    depositContractAddress: '0x7f02C3E3c98b133055B8B348B2Ac625669Ed295D',
    genesisForkVersion: '0x90000069',
    depositContractBlock: 1_273_020,
  },
}

const hex = <T extends Hex>(bytes: number): z.ZodType<T, T> =>
  z.string().regex(new RegExp(`^0x[0-9a-fA-F]{${bytes * 2}}$`), `must be ${bytes} bytes in hex with 0x`) as unknown as z.ZodType<T, T>
export const networkName = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'must be lower-case letters, digits and hyphens, at most 63 characters')
const httpUrl = z.url({ protocol: /^https?$/, error: 'must be an http(s) URL' })

/**
 * One Ethereum network in a configuration file. The constants of mainnet, hoodi and sepolia are built in and may not be changed by configuration;
 * any other name must give them.
 */
export const ethereumNetworkConfig = z
  .strictObject({
    name: networkName,
    chain: z.literal('Ethereum'),
    /** Tried in order. */
    rpcUrls: z.array(httpUrl).min(1).max(8),
    /** Standard Beacon API, tried in order; optional. */
    beaconApiUrls: z.array(httpUrl).max(8).default([]),
    chainId: z.int().positive().optional(),
    /** Hash of block 0. Two networks may share a chain id, never this. Without it, the nodes must agree on one. */
    genesisHash: hex<BlockHash>(32).optional(),
    depositContractAddress: hex<Address>(20).optional(),
    genesisForkVersion: hex(4).optional(),
    depositContractBlock: z.int().nonnegative().optional(),
    /** Absolute path of a deposit history, as `staking-operator history build` writes it: without one all deposits are read from the chain at every start. */
    depositHistoryFile: z.string().min(1).max(4096).optional(),
    /** SHA-256 of that file, in hex, as `history build` prints it: a file that is another one is not used. Nothing else finds out a key that was taken out of it. */
    depositHistorySha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/, 'must be 32 bytes in lower-case hex')
      .optional(),
    /** Epochs of forks that the nodes' `config/spec` does not name yet: a node that gives a date of its own is believed. */
    forks: z.strictObject({ gloasEpoch: z.int().nonnegative().optional() }).optional(),
    /** What counts as final: the node's `finalized` block, or a number of blocks on top. */
    confirmations: z.union([z.literal('finalized'), z.int().min(0).max(10_000)]).default('finalized'),
    /** How often a transaction in flight is looked at, in ms. */
    pollIntervalMs: z.int().min(50).max(3_600_000).default(12_000),
  })
  .transform((value, context) => {
    const known = knownNetworks[value.name]
    const constants = {
      chainId: value.chainId ?? known?.chainId,
      depositContractAddress: value.depositContractAddress ?? known?.depositContractAddress,
      genesisForkVersion: value.genesisForkVersion ?? known?.genesisForkVersion,
      depositContractBlock: value.depositContractBlock ?? known?.depositContractBlock ?? 0,
    }
    for (const field of ['chainId', 'depositContractAddress', 'genesisForkVersion'] as const) {
      const given = constants[field]
      if (given === undefined) {
        context.addIssue({
          code: 'custom',
          path: [field],
          message: `is required: "${value.name}" is not a network whose constants are built in`,
        })
      } else if (known !== undefined && String(given).toLowerCase() !== String(known[field]).toLowerCase()) {
        context.addIssue({ code: 'custom', path: [field], message: `must be ${known[field]}, the constant of ${value.name}, or left out` })
      }
    }
    if (value.depositHistorySha256 !== undefined && value.depositHistoryFile === undefined)
      context.addIssue({ code: 'custom', path: ['depositHistorySha256'], message: 'is of no use without depositHistoryFile' })
    return { ...value, ...constants } as typeof value & EthereumNetworkConstants
  })
export type EthereumNetworkConfig = z.output<typeof ethereumNetworkConfig>
