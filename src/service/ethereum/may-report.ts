import { ChainError, type EthereumChain, type Hex } from '../../chains/ethereum/chain.ts'
import { chainUnavailable, ProblemError } from '../errors.ts'
import type { HashRow } from '../store/stakes.ts'
import type { EthereumNetwork } from './networks.ts'
import { maySupersede } from './supersede.ts'

/** Others reported hashes meanwhile: what was concluded from those before doesn't hold. */
export class Stale extends Error {}
/** So often it is concluded again. */
export const attempts = 5

type Hash = Omit<HashRow, 'stake_id'>

export interface Report {
  readonly subject: { readonly network: string; readonly status: string; readonly hash: Hex | null }
  /** What the transaction is for, in words: it must not happen twice. */
  readonly what: string
  /** Undefined when it isn't configured any more. */
  readonly network: EthereumNetwork | undefined
  /** All that were reported before. */
  readonly hashes: readonly Hash[]
  readonly hash: Hex
}

/**
 * Whether this hash may be reported now: the first one, one of the earlier ones, or one that can't land beside them (see `maySupersede`).
 * @throws ProblemError `already-submitted`, `transaction-not-visible`, `chain-unavailable`
 */
export async function mayReport({ subject, what, network, hashes, hash }: Report, signal: AbortSignal): Promise<void> {
  if (hashes.length === 0 || hashes.some((one) => one.hash === hash)) return
  if (subject.status === 'confirmed' || subject.status === 'failed') {
    throw new ProblemError('already-submitted', `the transaction ${subject.hash} of ${what} is final (${subject.status})`)
  }
  if (network === undefined) {
    throw new ProblemError('chain-unavailable', `the network ${subject.network} is not configured any more`, { retryAfterSeconds: 60 })
  }
  const verdict = await judge(network.chain, hashes, hash, signal).catch((error: unknown) => {
    throw error instanceof ChainError ? chainUnavailable(network.config.name, error) : error
  })
  if (verdict === 'wait') {
    throw new ProblemError(
      'transaction-not-visible',
      `${subject.hash} was reported before and is waiting; ${hash} isn't visible yet, so it can't be told whether it replaces it`,
      { retryAfterSeconds: 5 },
    )
  }
  if (verdict === 'refuse') {
    throw new ProblemError(
      'already-submitted',
      `${subject.hash} was reported before, and both transactions could land: ${what} would be paid twice`,
    )
  }
}

async function judge(chain: EthereumChain, hashes: readonly Hash[], hash: Hex, signal: AbortSignal) {
  const next = await chain.transaction(hash, signal)
  const earlier = await Promise.all(
    hashes.map(async (row) => {
      const found = await chain.transaction(row.hash, signal)
      const sentBy =
        found !== undefined
          ? { sender: found.from, nonce: found.nonce }
          : row.sender !== null && row.nonce !== null
            ? { sender: row.sender, nonce: Number(row.nonce) }
            : undefined
      return { visible: found !== undefined, mined: found?.blockNumber !== undefined, sentBy }
    }),
  )
  return maySupersede(earlier, next === undefined ? undefined : { sender: next.from, nonce: next.nonce })
}
