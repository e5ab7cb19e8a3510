import type { Address, Hex } from '../../src/chains/ethereum/chain.ts'
import { type Anvil, type AnvilOptions, startAnvil } from '../chains/anvil.ts'
import { type BeaconSimulator, type SimulatorOptions, startBeaconSimulator } from '../chains/beacon/simulator.ts'

export const NETWORK = 'local'

/** A network that is there already, such as the devnet of test/devnet: the stack uses it, and leaves it running. */
export interface EthereumSource {
  /** JSON-RPC. */
  readonly url: string
  readonly chainId: number
  readonly depositContract: Address
  readonly genesisForkVersion: Hex
  /** Funded; the first one pays. */
  readonly accounts: readonly { readonly address: Address; readonly privateKey: Hex }[]
  /** Base URL of a Beacon API. */
  readonly beaconUrl?: string
}

export type StackBeaconOptions = Omit<SimulatorOptions, 'anvil'>

/**
 * For tests: with `mining: 1` each block is a slot and an epoch takes four seconds; a deposit is an active validator after some six epochs
 * (`advanceUntil` jumps there), which may ask for exit or withdrawal two epochs later. Money and limits are mainnet's.
 */
export const FAST_BEACON: StackBeaconOptions = {
  time: 'manual',
  spec: {
    SECONDS_PER_SLOT: 12,
    SLOTS_PER_EPOCH: 4,
    SHARD_COMMITTEE_PERIOD: 2,
    MIN_VALIDATOR_WITHDRAWABILITY_DELAY: 1,
    MAX_SEED_LOOKAHEAD: 1,
  },
}

export interface StackEthereum {
  readonly source: EthereumSource
  readonly anvil: Anvil | undefined
  readonly beacon: BeaconSimulator | undefined
  stop(): Promise<void>
}

/** The given network, or an anvil with, where it is asked for, the simulated beacon chain over it. */
export async function startStackEthereum(
  options: { readonly ethereum?: EthereumSource; readonly anvil?: AnvilOptions; readonly beacon?: StackBeaconOptions } = {},
): Promise<StackEthereum> {
  if (options.ethereum !== undefined) {
    if (options.anvil !== undefined || options.beacon !== undefined) throw new Error('a network that is there already has its own chains')
    return { source: options.ethereum, anvil: undefined, beacon: undefined, stop: async () => undefined }
  }
  const anvil = await startAnvil({ accounts: 4, ...options.anvil })
  try {
    const beacon = options.beacon === undefined ? undefined : await startBeaconSimulator({ ...options.beacon, anvil })
    const { url, chainId, depositContract, accounts } = anvil
    return {
      source: {
        url,
        chainId,
        depositContract,
        accounts,
        genesisForkVersion: beacon?.spec.GENESIS_FORK_VERSION ?? '0x10000038',
        ...(beacon === undefined ? {} : { beaconUrl: beacon.url }),
      },
      anvil,
      beacon,
      stop: async () => {
        await beacon?.stop()
        await anvil.stop()
      },
    }
  } catch (error) {
    await anvil.stop()
    throw error
  }
}

/** As both programs' configuration names the chain. */
export const ethereumNetwork = (source: EthereumSource, confirmations: 'finalized' | number, rpcUrl: string) => ({
  name: NETWORK,
  chain: 'Ethereum',
  chainId: source.chainId,
  depositContractAddress: source.depositContract,
  genesisForkVersion: source.genesisForkVersion,
  confirmations,
  pollIntervalMs: 500,
  rpcUrls: [rpcUrl],
  ...(source.beaconUrl === undefined ? {} : { beaconApiUrls: [source.beaconUrl] }),
})
