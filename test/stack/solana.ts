import type { Keypair } from '@solana/web3.js'
import type { FaultyProxy } from '../chains/faulty-http.ts'
import { startFaultyRpc } from '../chains/faulty-rpc.ts'
import { type SolanaCluster, type SolanaClusterOptions, startSolanaCluster, type Validator } from '../chains/solana/cluster.ts'
import { testSolanaKey } from './keys.ts'

export const SOLANA_NETWORK = 'solana-local'
/** Folders of the mounted keys, and names of the signers: who pays and may delegate, and whom the money belongs to. */
export const SOLANA_STAKER = 'solana-staker'
export const SOLANA_WITHDRAWER = 'solana-withdrawer'
export const SOLANA_STAKER_ADDRESS = testSolanaKey(SOLANA_STAKER).publicKey.toBase58()
export const SOLANA_WITHDRAWER_ADDRESS = testSolanaKey(SOLANA_WITHDRAWER).publicKey.toBase58()

const sol = 1_000_000_000n

export interface StackSolanaOptions extends SolanaClusterOptions {
  /** Put a proxy in front of the first node, for the operator, that can misbehave on demand. Default: the stack's `faults`. */
  readonly faults?: boolean
}

/** The simulated cluster with what a stack puts there: a vote account that stakes go to, and two funded keys. */
export interface StackSolana extends SolanaCluster {
  readonly validator: Validator
  readonly keys: Readonly<Record<typeof SOLANA_STAKER | typeof SOLANA_WITHDRAWER, Keypair>>
  /** In front of the first node's RPC, for the operator only; there with `faults`. What the cluster itself can do wrong is with its node. */
  readonly faults: FaultyProxy | undefined
  /** What the operator calls: the proxy, or the node. */
  readonly operatorUrl: string
}

/** Blocks come every 200 ms unless `slotMs` says otherwise: what is sent is final after a second. Epochs pass by `nextEpoch`. */
export async function startStackSolana({ faults: faulty = false, ...options }: StackSolanaOptions): Promise<StackSolana> {
  const cluster = await startSolanaCluster({ slotMs: 200, ...options })
  try {
    const validator = cluster.addValidator()
    cluster.fund(SOLANA_STAKER_ADDRESS, 10_000n * sol)
    // It may have to pay for its own transactions.
    cluster.fund(SOLANA_WITHDRAWER_ADDRESS, 10n * sol)
    const faults = faulty ? await startFaultyRpc(cluster.url) : undefined
    return {
      ...cluster,
      validator,
      keys: { [SOLANA_STAKER]: testSolanaKey(SOLANA_STAKER), [SOLANA_WITHDRAWER]: testSolanaKey(SOLANA_WITHDRAWER) },
      faults,
      operatorUrl: faults?.url ?? cluster.url,
      close: async () => {
        await faults?.stop()
        await cluster.close()
      },
    }
  } catch (error) {
    await cluster.close()
    throw error
  }
}

/** As both programs' configuration names the cluster. */
export const solanaNetwork = ({ genesisHash }: StackSolana, rpcUrl: string) => ({
  name: SOLANA_NETWORK,
  chain: 'Solana',
  rpcUrls: [rpcUrl],
  genesisHash,
  pollIntervalMs: 200,
})
