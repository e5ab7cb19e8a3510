import { createHash } from 'node:crypto'
import type { Address, Hex } from '../src/chains/ethereum/chain.ts'

/** The network that both fakes and the operator agree on. */
export const NETWORK = 'bench'
export const CHAIN_ID = 31337
export const DEPOSIT_CONTRACT: Address = '0x00000000219ab540356cBB839Cbe05303d7705Fa'
export const GENESIS_FORK_VERSION: Hex = '0x10000038'

/** Well-known test accounts (anvil's first two): never fund them on a real network. */
export const PAYER: Address = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
export const PAYER_KEY: Hex = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
export const WITHDRAWAL_ADDRESS: Address = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
export const AMOUNT_ETH = '32'
export const KEY_NAME = 'treasury'
export const SIGNER = 'treasury'

/** Hash of a block of the benchmarks' chain. */
export const blockHash = (number: number): Hex => `0x${createHash('sha256').update(`block ${number}`).digest('hex')}`
