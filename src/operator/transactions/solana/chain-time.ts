import { type SolanaChain, SolanaError } from '../../../chains/solana/chain.ts'
import { clockSysvar } from '../../../chains/solana/programs.ts'
import { LayoutError } from '../../../chains/solana/reader.ts'
import { decodeClock } from '../../../chains/solana/sysvars.ts'

/** The year 9999: a later time is none that can be written down. */
const LATEST = 253_402_300_799n

/** The cluster's own time, Unix seconds, by its Clock sysvar at its last final block; 0 where it has none. @throws SolanaError */
export async function chainSeconds(chain: Pick<SolanaChain, 'account'>, signal: AbortSignal): Promise<number> {
  const account = await chain.account(clockSysvar, 'finalized', signal)
  if (account === undefined) return 0
  try {
    const { unixTimestamp } = decodeClock(account.data)
    if (unixTimestamp >= 0n && unixTimestamp <= LATEST) return Number(unixTimestamp)
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error
  }
  throw new SolanaError('unreadable', "the cluster's Clock sysvar cannot be read")
}
