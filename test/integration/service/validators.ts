import { privateKeyToAccount } from 'viem/accounts'
import { expect } from 'vitest'
import type { BeaconChain } from '../../../src/chains/ethereum/beacon.ts'
import { createBeaconChain } from '../../../src/chains/ethereum/beacon-chain.ts'
import { type CredentialsType, signDepositMessage, withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import type { EthereumNetworkConfig } from '../../../src/chains/ethereum/networks.ts'
import { createEthereumChain } from '../../../src/chains/ethereum/rpc-chain.ts'
import { gwei } from '../../../src/lib/amounts.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { EthereumNetworks } from '../../../src/service/ethereum/networks.ts'
import type { DatabaseConfig, Store } from '../../../src/service/store/database.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import { createSender } from '../../chains/beacon/sender.ts'
import { type BeaconSimulator, startBeaconSimulator } from '../../chains/beacon/simulator.ts'
import { networkConfig, startService, type TestService } from './harness.ts'

type Hex = `0x${string}`

export const ETH = 1_000_000_000n
const GENESIS_FORK_VERSION = '0x10000038'

/** A chain with the real contracts, and the simulator behind it, with validators that are active from genesis and old enough for everything. */
export interface ValidatorChain {
  readonly anvil: Anvil
  readonly simulator: BeaconSimulator
  readonly sender: ReturnType<typeof createSender>
  /** Public keys of 0x02 validators of account 0 with 40 ETH, each handed out once. */
  fresh(): Hex
  /** Of account 0: 0x01 with 33 ETH; with credentials that no request can move; of account 1 with 40 ETH. */
  readonly oldStyle: Hex
  readonly locked: Hex
  readonly ofAnother: Hex
  account(index: number): ReturnType<typeof privateKeyToAccount>
  config(more?: object): EthereumNetworkConfig
  stop(): Promise<void>
}

export async function startValidatorChain(): Promise<ValidatorChain> {
  const anvil = await startAnvil({ accounts: 4 })
  const account = (index: number) => privateKeyToAccount(anvil.accounts[index]?.privateKey ?? '0x')
  let made = 0
  const validator = (amount: bigint, type: CredentialsType | '0x00', owner = 0) => {
    made += 1
    const credentials = withdrawalCredentials(type === '0x00' ? '0x01' : type, account(owner).address)
    const message = { withdrawalCredentials: credentials, amountGwei: gwei(amount), genesisForkVersion: GENESIS_FORK_VERSION } as const
    const { pubkey } = signDepositMessage(new Uint8Array(32).fill(made), message)
    return { pubkey, withdrawalCredentials: type === '0x00' ? (`0x00${credentials.slice(4)}` as Hex) : credentials, amountGwei: amount }
  }
  const pool = Array.from({ length: 48 }, () => validator(40n * ETH, '0x02'))
  const special = [validator(33n * ETH, '0x01'), validator(32n * ETH, '0x00'), validator(40n * ETH, '0x02', 1)] as const
  let simulator: BeaconSimulator | undefined
  try {
    simulator = await startBeaconSimulator({ anvil, validators: [...pool, ...special] })
    await simulator.advanceEpochs(simulator.spec.SHARD_COMMITTEE_PERIOD + 1)
  } catch (error) {
    await simulator?.stop()
    await anvil.stop()
    throw error
  }
  const started = simulator
  const keys = pool.map(({ pubkey }) => pubkey)
  return {
    anvil,
    simulator,
    sender: createSender({ ...anvil, genesisForkVersion: GENESIS_FORK_VERSION }),
    fresh: () => keys.shift() ?? expect.fail('the pool of validators is empty'),
    oldStyle: special[0].pubkey,
    locked: special[1].pubkey,
    ofAnother: special[2].pubkey,
    account,
    config: (more = {}) => networkConfig('devnet', { rpcUrls: [anvil.url], genesisForkVersion: GENESIS_FORK_VERSION, ...more }),
    stop: async () => {
      await started.stop()
      await anvil.stop()
    },
  }
}

export interface TrackedService {
  readonly service: TestService
  stop(): Promise<void>
}

/** A service with its tracker on that chain; `beaconUrls` other than the simulator's make it find another beacon chain, or none. */
export async function startTracked(
  store: Store | DatabaseConfig,
  chain: ValidatorChain,
  more: {
    readonly beaconUrls?: readonly string[]
    readonly config?: object
    /** Stands before the Beacon API, to answer otherwise. */
    readonly before?: (beacon: BeaconChain) => BeaconChain
  } = {},
): Promise<TrackedService> {
  const ending = new AbortController()
  const config = chain.config(more.config)
  const ethereum = createEthereumChain({ config, clock: systemClock, timeoutMs: 10_000, signal: ending.signal })
  const urls = more.beaconUrls ?? [chain.simulator.url]
  const api = createBeaconChain({ network: config, urls, clock: systemClock, timeoutMs: 10_000 })
  const beacon = more.before?.(api) ?? api
  const networks: EthereumNetworks = new Map([
    ['devnet', { config, chain: ethereum, requests: ethereum, ...(urls.length === 0 ? {} : { validators: { beacon, reads: ethereum } }) }],
  ])
  const service = await startService(store, { networks })
  const tracking = service.service.tracker.run(ending.signal)
  return {
    service,
    stop: async () => {
      ending.abort()
      await tracking
      await service.close()
    },
  }
}

/** Asks again until the answer is as expected; the time is for a machine under load. */
export async function eventually<T>(read: () => Promise<T>, expected: object, timeoutMs = 40_000): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const got = await read()
    try {
      expect(got).toMatchObject(expected)
      return got
    } catch (error) {
      if (Date.now() > deadline) throw error
      await new Promise((done) => setTimeout(done, 60))
    }
  }
}
