import { type Gwei, gwei } from '../../lib/amounts.ts'
import { sameHex } from '../../lib/hex.ts'
import { type BeaconChain, BeaconError } from './beacon.ts'
import type { Pubkey } from './chain.ts'

/**
 * What is queued to be credited to a validator. While it exits, its deposits are postponed; once its balance can be withdrawn they are credited, and paid out
 * to its withdrawal address by themselves (consensus-specs, electra and gloas/beacon-chain.md: process_pending_deposits, get_validators_sweep_withdrawals).
 * No rule of an exit depends on it, so a node may lack the list: undefined then.
 */
export async function queuedDeposits(
  beacon: Pick<BeaconChain, 'pendingDeposits'>,
  pubkey: Pubkey,
  signal: AbortSignal,
): Promise<Gwei | undefined> {
  try {
    const own = (await beacon.pendingDeposits('head', signal)).filter((deposit) => sameHex(deposit.pubkey, pubkey))
    return gwei(own.reduce((sum, { amountGwei }) => sum + amountGwei, 0n))
  } catch (error) {
    if (error instanceof BeaconError) return undefined
    throw error
  }
}
