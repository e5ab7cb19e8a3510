import { decodeMessage, MessageError } from '../../../chains/solana/message.ts'
import type { StakingTransaction } from '../../../resources/staking-transaction.ts'
import { liveAttempts } from './rules.ts'

type Given = Pick<StakingTransaction, 'spec' | 'status'>

/** Whether an attempt of a Solana record may still land. */
export const isOpen = ({ spec, status }: Given): boolean =>
  spec.chain === 'Solana' && status?.outcome === undefined && liveAttempts({ status: status ?? {} }).length > 0

/**
 * Addresses that a Solana record without an outcome concerns: whoever pays for it, and everybody whose key has signed an attempt that may still land. Nobody
 * else's key can follow up on it, so their StakingSigners stay until it is settled.
 */
export function holdersOf(record: Given): readonly string[] {
  if (record.spec.chain !== 'Solana' || record.status?.outcome !== undefined) return []
  const signed = liveAttempts({ status: record.status ?? {} }).flatMap(({ attempt }) => signersOf(attempt.message))
  return [...new Set([record.spec.from, ...signed])]
}

function signersOf(message: string | undefined): readonly string[] {
  if (message === undefined) return []
  try {
    return decodeMessage(new Uint8Array(Buffer.from(message, 'base64'))).signers
  } catch (error) {
    if (error instanceof MessageError) return []
    throw error
  }
}
