import { buildDeactivationMessage, buildWithdrawalMessage, computeUnits, type TransactionFrame } from '../../../chains/solana/stake.ts'
import { stall, wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import { frameProblem } from './message.ts'
import type { Parties } from './parties.ts'
import type { SolanaRequests } from './request.ts'
import type { SolanaPlan, StakeTerms } from './steps.ts'

/** A transaction in the shape in which the staking API gives one. */
export interface MadeHere {
  readonly txId?: undefined
  readonly messageBase64: string
  readonly recentBlockhash: string
  readonly lastValidBlockHeight: number
}

interface Wanted {
  readonly plan: SolanaPlan
  readonly terms: StakeTerms
  readonly parties: Parties
  readonly network: SolanaNetwork
  /** From 1: each further one offers twice as much, as the one before did not land. */
  readonly attempt: number
}

/** Of a further attempt at the least, in millionths of a lamport a unit: where the recent fees are 0, twice nothing is nothing. */
const FLOOR_OF_RETRIES = 10_000n

/**
 * The frame of a transaction that is made here, without the staking API: a fresh blockhash, and a priority fee as the cluster lately took, within the cap.
 * @throws Halt, SolanaError
 */
export async function frameOf(
  { chain, config }: SolanaNetwork,
  given: {
    readonly feePayer: string
    readonly writable: readonly string[]
    readonly units: number
    readonly attempt: number
    /** Highest priority fee of the transaction, in lamports. */
    readonly cap: bigint
  },
  signal: AbortSignal,
): Promise<TransactionFrame & { readonly lastValidBlockHeight: number }> {
  const { feePayer, units, attempt, cap } = given
  const recent = await chain.recentPriorityFee([feePayer, ...given.writable], signal)
  const floor = recent > FLOOR_OF_RETRIES ? recent : FLOOR_OF_RETRIES
  const wanted = attempt <= 1 ? recent : floor << BigInt(Math.min(attempt - 1, 20))
  const most = (cap * 1_000_000n) / BigInt(units)
  const height = await chain.blockHeight('confirmed', signal)
  // Last, so that as much as possible of its life is left.
  const { blockhash, lastValidBlockHeight } = await chain.latestBlockhash(signal)
  const problem = frameProblem({ txId: 'own', recentBlockhash: blockhash, lastValidBlockHeight: Number(lastValidBlockHeight) }, height)
  if (problem !== undefined)
    throw wait(
      'ChainUnavailable',
      `An RPC node of ${config.name} gives a blockhash that is not one: ${problem}. It is asked again.`,
      config.pollIntervalMs,
    )
  return {
    feePayer,
    recentBlockhash: blockhash,
    computeUnitLimit: units,
    computeUnitPriceMicroLamports: wanted < most ? wanted : most,
    lastValidBlockHeight: Number(lastValidBlockHeight),
  }
}

/**
 * Makes the later steps of a stake whose authorities have changed hands, since the staking API knows it by those that it was made with; and of one that the
 * staking API has lost.
 */
export function createOwnTransactions({ feeCapOf }: Pick<SolanaRequests, 'feeCapOf'>) {
  return async ({ plan, terms, parties, network, attempt }: Wanted, signal: AbortSignal): Promise<MadeHere> => {
    const { kind, request } = plan
    const { stakeAccount, stakeAuthority, withdrawAuthority } = terms
    if (kind === 'stake') throw stall('VerificationFailed', 'This stake was paid before. Nothing is paid again.')
    const frame = await frameOf(
      network,
      { feePayer: parties.feePayer, writable: [stakeAccount], units: computeUnits[kind], attempt, cap: feeCapOf(request, parties) },
      signal,
    )
    const amount = kind === 'withdrawal' ? (await network.chain.account(stakeAccount, 'confirmed', signal))?.lamports : undefined
    if (kind === 'withdrawal' && amount === undefined)
      throw wait(
        'ChainUnavailable',
        `The node does not show the stake account ${stakeAccount}: it lags. It is asked again.`,
        network.config.pollIntervalMs,
      )
    const message =
      amount === undefined
        ? buildDeactivationMessage({ ...frame, stakeAccount, stakeAuthority })
        : buildWithdrawalMessage({ ...frame, stakeAccount, withdrawAuthority, destination: parties.destination, amount })
    return {
      messageBase64: Buffer.from(message).toString('base64'),
      recentBlockhash: frame.recentBlockhash,
      lastValidBlockHeight: frame.lastValidBlockHeight,
    }
  }
}
