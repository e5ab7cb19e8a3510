import type { EthereumChain } from '../../chains/ethereum/chain.ts'

/** What the log asks of a chain: facts of all nodes for what is signed, proof from every node for what makes a second one possible. */
export type LaneChain = Pick<
  EthereumChain,
  | 'laneCounts'
  | 'trace'
  | 'transaction'
  | 'finalEverywhere'
  | 'nonceUse'
  | 'send'
  | 'view'
  | 'balance'
  | 'priorityFee'
  | 'estimateGas'
  | 'storageGas'
>
