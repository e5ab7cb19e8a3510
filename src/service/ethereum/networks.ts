import { type BeaconChain, BeaconError } from '../../chains/ethereum/beacon.ts'
import { ChainError, type ContractReads, type EthereumChain } from '../../chains/ethereum/chain.ts'
import type { DepositScan } from '../../chains/ethereum/deposit-scan.ts'
import type { EthereumNetworkConfig } from '../../chains/ethereum/networks.ts'
import type { RequestScan } from '../../chains/ethereum/request-logs.ts'
import type { BlockWitness, QueueReads } from '../../chains/ethereum/request-queue.ts'
import type { Metrics } from '../metrics.ts'

/** A network that the service serves: its constants, and its chain. */
export interface EthereumNetwork {
  readonly config: EthereumNetworkConfig
  readonly chain: EthereumChain
  /** Absent where no Beacon API is configured: then nothing can be said of validators, nor asked of them. */
  readonly validators?: ValidatorAccess
  /** The deposits of everybody, one after another. Without it, stakes that the database lacks are not looked for. */
  readonly deposits?: DepositScan
  /** The EIP-7002 requests of everybody. Without it, requests that nobody has reported are not looked for. */
  readonly requests?: RequestScan
}
/** What exits, withdrawals and the status of validators need besides. */
export interface ValidatorAccess {
  readonly beacon: BeaconChain
  readonly reads: ContractReads & QueueReads & BlockWitness
}
export type EthereumNetworks = ReadonlyMap<string, EthereumNetwork>

/** The same network, with every failed call counted. */
export const countErrors = (network: EthereumNetwork, metrics: Metrics): EthereumNetwork => {
  const { config, chain, validators, deposits, requests } = network
  const counted = counter(config.name, metrics)
  return {
    config,
    chain: countChain(chain, counted),
    ...(deposits === undefined ? {} : { deposits: countDeposits(deposits, counted) }),
    ...(requests === undefined
      ? {}
      : { requests: { requestsBetween: counted((from, to, signal) => requests.requestsBetween(from, to, signal)) } }),
    ...(validators === undefined
      ? {}
      : { validators: { beacon: countBeacon(validators.beacon, counted), reads: countReads(validators.reads, counted) } }),
  }
}

type Counted = <A extends unknown[], R>(call: (...args: A) => Promise<R>) => (...args: A) => Promise<R>

const counter =
  (network: string, metrics: Metrics): Counted =>
  (call) =>
  async (...args) => {
    try {
      return await call(...args)
    } catch (error) {
      const code = error instanceof ChainError ? error.code : error instanceof BeaconError ? `beacon-${error.code}` : 'unknown'
      metrics.rpcError(network, code)
      throw error
    }
  }

const countChain = (chain: EthereumChain, counted: Counted): EthereumChain => ({
  network: chain.network,
  genesisHash: counted((signal) => chain.genesisHash(signal)),
  head: counted((signal) => chain.head(signal)),
  transactionCount: counted((address, at, signal) => chain.transactionCount(address, at, signal)),
  balance: counted((address, signal) => chain.balance(address, signal)),
  code: counted((address, signal) => chain.code(address, signal)),
  priorityFee: counted((signal) => chain.priorityFee(signal)),
  estimateGas: counted((call, signal) => chain.estimateGas(call, signal)),
  storageGas: counted((signal) => chain.storageGas(signal)),
  broadcast: counted((raw, signal) => chain.broadcast(raw, signal)),
  transaction: counted((hash, signal) => chain.transaction(hash, signal)),
  receipt: counted((hash, signal) => chain.receipt(hash, signal)),
  depositsFor: counted((pubkey, signal) => chain.depositsFor(pubkey, signal)),
  laneCounts: counted((address, signal) => chain.laneCounts(address, signal)),
  trace: counted((hashes, signal) => chain.trace(hashes, signal)),
  finalEverywhere: counted((block, signal) => chain.finalEverywhere(block, signal)),
  nonceUse: counted((address, nonce, signal) => chain.nonceUse(address, nonce, signal)),
  send: counted((raw, nodes, signal) => chain.send(raw, nodes, signal)),
  requestLogs: counted((query, signal) => chain.requestLogs(query, signal)),
  view: counted((signal) => chain.view(signal)),
})

const countReads = (reads: ValidatorAccess['reads'], counted: Counted): ValidatorAccess['reads'] => ({
  call: counted((call, signal) => reads.call(call, signal)),
  blockTime: counted((blockNumber, signal) => reads.blockTime(blockNumber, signal)),
  blockAt: counted((at, signal) => reads.blockAt(at, signal)),
  storageAt: counted((address, slots, blockHash, signal) => reads.storageAt(address, slots, blockHash, signal)),
  logsIn: counted((address, blockHash, signal) => reads.logsIn(address, blockHash, signal)),
  standing: counted((block, signal) => reads.standing(block, signal)),
  countLogs: counted((address, from, to, signal) => reads.countLogs(address, from, to, signal)),
})

const countDeposits = (deposits: DepositScan, counted: Counted): DepositScan => ({
  depositMark: counted((signal) => deposits.depositMark(signal)),
  depositsAfter: counted((mark, signal) => deposits.depositsAfter(mark, signal)),
})

const countBeacon = (beacon: BeaconChain, counted: Counted): BeaconChain => ({
  network: beacon.network,
  spec: counted((signal) => beacon.spec(signal)),
  genesis: counted((signal) => beacon.genesis(signal)),
  head: counted((signal) => beacon.head(signal)),
  validators: counted((pubkeys, at, signal) => beacon.validators(pubkeys, at, signal)),
  withdrawalView: counted((pubkey, at, signal) => beacon.withdrawalView(pubkey, at, signal)),
  blockAt: counted((slot, signal) => beacon.blockAt(slot, signal)),
  standing: counted((block, signal) => beacon.standing(block, signal)),
  executionOf: counted((block, signal) => beacon.executionOf(block, signal)),
  depositView: counted((pubkeys, at, signal) => beacon.depositView(pubkeys, at, signal)),
  pendingDeposits: counted((at, signal) => beacon.pendingDeposits(at, signal)),
})
