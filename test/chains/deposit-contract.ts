import { concatHex, decodeEventLog, encodeFunctionData, numberToHex, padHex, parseAbi, sha256, sliceHex } from 'viem'
import type { Address, Hex } from '../../src/chains/ethereum/chain.ts'

/** The same on mainnet, Hoodi and in ethereum-genesis.json. */
export const DEPOSIT_CONTRACT: Address = '0x00000000219ab540356cBB839Cbe05303d7705Fa'

/** Of the deposit contract (consensus-specs, solidity_deposit_contract). */
export const depositContractAbi = parseAbi([
  'event DepositEvent(bytes pubkey, bytes withdrawal_credentials, bytes amount, bytes signature, bytes index)',
  'function get_deposit_count() view returns (bytes)',
  'function get_deposit_root() view returns (bytes32)',
  'function deposit(bytes pubkey, bytes withdrawal_credentials, bytes signature, bytes32 deposit_data_root) payable',
])

/** One DepositEvent, as the chain shows it. */
export interface SeenDeposit {
  readonly pubkey: Hex
  readonly withdrawalCredentials: Hex
  readonly amountGwei: bigint
  readonly signature: Hex
  readonly index: number
  readonly txHash: Hex
  readonly blockNumber: number
}

/** A log as `eth_getLogs` answers it. */
export interface RpcLog {
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly transactionHash: Hex
  readonly blockNumber: Hex
}

export function decodeDeposit(log: RpcLog): SeenDeposit {
  const [signature, ...rest] = log.topics
  if (signature === undefined) throw new Error('a log of the deposit contract without a topic')
  const { args } = decodeEventLog({ abi: depositContractAbi, topics: [signature, ...rest], data: log.data })
  return {
    pubkey: args.pubkey,
    withdrawalCredentials: args.withdrawal_credentials,
    amountGwei: littleEndian(args.amount),
    signature: args.signature,
    index: Number(littleEndian(args.index)),
    txHash: log.transactionHash,
    blockNumber: Number(log.blockNumber),
  }
}

/** Eight bytes, the least significant first, as the contract writes amounts, indices and its count. */
export const littleEndian = (bytes: Hex): bigint => Buffer.from(bytes.slice(2), 'hex').readBigUInt64LE()

export interface DepositFields {
  readonly pubkey: Hex
  readonly withdrawalCredentials: Hex
  readonly signature: Hex
  readonly amountGwei: bigint
}

/**
 * Calldata of a deposit with its root, computed as the contract's source does and independently of src/: for deposits that a test, or a thief in one,
 * makes by itself. The contract doesn't check the signature.
 */
export function encodeDeposit({ pubkey, withdrawalCredentials, signature, amountGwei }: DepositFields): Hex {
  const pair = (left: Hex, right: Hex): Hex => sha256(concatHex([left, right]))
  const pubkeyRoot = sha256(padHex(pubkey, { dir: 'right', size: 64 }))
  const signatureRoot = pair(sha256(sliceHex(signature, 0, 64)), sha256(padHex(sliceHex(signature, 64), { dir: 'right', size: 64 })))
  const amount = padHex(
    `0x${Buffer.from(numberToHex(amountGwei, { size: 8 }).slice(2), 'hex')
      .reverse()
      .toString('hex')}`,
    { dir: 'right', size: 32 },
  )
  const root = pair(pair(pubkeyRoot, withdrawalCredentials), pair(amount, signatureRoot))
  return encodeFunctionData({ abi: depositContractAbi, functionName: 'deposit', args: [pubkey, withdrawalCredentials, signature, root] })
}
