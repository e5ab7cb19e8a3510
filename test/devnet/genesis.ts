import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { toHex } from 'viem'
import type { Address } from '../../src/chains/ethereum/chain.ts'
import { REQUEST_CONTRACT } from '../chains/beacon/execution.ts'

export const DEVNET_CHAIN_ID = 32382
/** EIP-7251. */
const CONSOLIDATION_CONTRACT = '0x0000BBdDc7CE488642fb579F8B00f3a590007251'
/** EIP-7002 and EIP-7251, EXCESS_INHIBITOR: the contracts refuse requests until the first system call, which real blocks have. */
const excessInhibitor = `0x${'ff'.repeat(32)}`

interface GenesisAccount {
  readonly balance: string
  readonly code?: string
  readonly nonce?: string
  readonly storage?: Readonly<Record<string, string>>
}

/** The execution layer's genesis: everything up to Prague from the first block on, with the real deposit and system contracts, and funded accounts. */
export function executionGenesis(funded: readonly Address[], balanceWei: bigint): string {
  const { alloc } = JSON.parse(readFileSync(join(import.meta.dirname, '../chains/ethereum-genesis.json'), 'utf8')) as {
    alloc: Readonly<Record<string, GenesisAccount>>
  }
  const contracts = Object.entries(alloc).flatMap(([address, account]) => {
    if (account.code === undefined) return []
    const inhibited = [REQUEST_CONTRACT, CONSOLIDATION_CONTRACT].some(
      (contract) => contract.slice(2).toLowerCase() === address.toLowerCase(),
    )
    return [[address, inhibited ? { ...account, storage: { [toHex(0, { size: 32 })]: excessInhibitor } } : account] as const]
  })
  const blocks = [
    'homestead',
    'eip150',
    'eip155',
    'eip158',
    'byzantium',
    'constantinople',
    'petersburg',
    'istanbul',
    'muirGlacier',
    'berlin',
    'london',
  ]
  return JSON.stringify({
    config: {
      chainId: DEVNET_CHAIN_ID,
      ...Object.fromEntries(blocks.map((fork) => [`${fork}Block`, 0])),
      mergeNetsplitBlock: 0,
      terminalTotalDifficulty: 0,
      shanghaiTime: 0,
      cancunTime: 0,
      pragueTime: 0,
      depositContractAddress: '0x00000000219ab540356cBB839Cbe05303d7705Fa',
      blobSchedule: {
        cancun: { target: 3, max: 6, baseFeeUpdateFraction: 3_338_477 },
        prague: { target: 6, max: 9, baseFeeUpdateFraction: 5_007_716 },
      },
    },
    nonce: '0x0',
    timestamp: '0x0',
    extraData: '0x',
    gasLimit: '0x1c9c380',
    difficulty: '0x0',
    mixHash: `0x${'00'.repeat(32)}`,
    coinbase: `0x${'00'.repeat(20)}`,
    number: '0x0',
    gasUsed: '0x0',
    parentHash: `0x${'00'.repeat(32)}`,
    baseFeePerGas: '0x3b9aca00',
    alloc: {
      ...Object.fromEntries(contracts),
      ...Object.fromEntries(funded.map((address) => [address.slice(2).toLowerCase(), { balance: toHex(balanceWei) }])),
    },
  })
}

/** EIP-8282: contracts whose system calls a block of Amsterdam makes. Code that does nothing has nothing to hand on. */
const builderContracts = ['0x0000bFF46984e3725691FA540a8C7589300D8282', '0x000064D678505ad48F8cCb093BC65613800E8282']

/** The same with all forks up to Amsterdam from the first block on, for `geth --dev`, which makes blocks by itself. */
export function amsterdamGenesis(funded: readonly Address[], balanceWei: bigint): string {
  const genesis = JSON.parse(executionGenesis(funded, balanceWei)) as {
    config: Record<string, unknown>
    alloc: Record<string, GenesisAccount>
  }
  const forks = ['cancun', 'prague', 'osaka', 'bpo1', 'bpo2', 'amsterdam']
  return JSON.stringify({
    ...genesis,
    config: {
      ...genesis.config,
      ...Object.fromEntries(forks.slice(2).map((fork) => [`${fork}Time`, 0])),
      blobSchedule: Object.fromEntries(forks.map((fork) => [fork, { target: 6, max: 9, baseFeeUpdateFraction: 5_007_716 }])),
    },
    alloc: {
      ...genesis.alloc,
      ...Object.fromEntries(
        builderContracts.map((address) => [address.slice(2).toLowerCase(), { balance: '0x0', nonce: '0x1', code: '0x00' }]),
      ),
    },
  })
}
