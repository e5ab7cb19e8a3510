import { verifyChallenge } from '../../../chains/solana/challenge.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import type { ChallengeBody, SolanaTransactionBody } from '../../../contract/schemas/solana.ts'
import { stall } from '../../engine/verdict.ts'
import type { SolanaFeeCap } from '../../ports.ts'
import type { SolanaRequests, SolanaStakeDeps } from './request.ts'
import type { Wanted } from './service-transaction.ts'

/** A challenge that expires sooner is renewed first. */
const MIN_CHALLENGE_MS = 10_000
/** One that lives longer is none to sign; made by a clock that is ahead, it is renewed and told as that. */
const MAX_CHALLENGE_MS = 600_000
/** What a Date header, which has seconds, and the way of an answer do not explain. */
const MIN_SKEW_MS = 30_000

/** Signs the staking API's challenge, renewed where it has expired or is void, and gets the stake transaction for it. */
export function createApproval(
  { keys, clock, assertMayAct }: Pick<SolanaStakeDeps, 'keys' | 'clock' | 'assertMayAct'>,
  { amountOf, refuse }: Pick<SolanaRequests, 'amountOf' | 'refuse'>,
) {
  /** Only a text that says exactly what this resource asks for is signed, in an envelope that no cluster takes for a transaction. */
  async function signChallenge(
    { challengeId, message }: ChallengeBody,
    isNew: boolean,
    { plan, terms, parties, network }: Wanted,
    signal: AbortSignal,
  ): Promise<string> {
    const wrong = verifyChallenge({
      text: message,
      expected: {
        domain: network.challengeDomain,
        stakeId: terms.stakeId,
        challengeId,
        network: plan.request.network,
        amount: amountOf(plan.request),
        stakeAccount: terms.stakeAccount,
        stakeAuthority: terms.stakeAuthority,
        withdrawAuthority: terms.withdrawAuthority,
      },
      now: clock.now(),
    })
    const isOfTime = wrong.length > 0 && wrong.every(({ code }) => code === 'expired' || code === 'wrong-lifetime')
    const ahead = network.api.clockAheadMs ?? 0
    if (isOfTime && isNew && Math.abs(ahead) >= MIN_SKEW_MS)
      throw stall(
        'ClockSkew',
        `The clocks of the operator and of the staking API differ by ${duration(ahead)}: the API's is ${ahead < 0 ? 'behind' : 'ahead'}, by the Date header of its answer, and a challenge that it has made just now ${ahead < 0 ? 'has expired' : 'lives too long'} for the operator. It was not signed. Have both synchronise their clocks (NTP).`,
      )
    if (wrong.length > 0)
      refuse(
        'VerificationFailed',
        `The staking API's challenge is not what this resource asks for: ${wrong.map((one) => one.message).join('; ')}. Nothing was signed.${wrong.some(({ code }) => code === 'wrong-domain') ? " If the service's own domain is another, whoever runs the operator must set challengeDomain in the networks file." : ''}`,
      )
    assertMayAct()
    const { keyName, address } = parties.withdrawer.spec
    return keys.signOffchainMessage(keyName, address, message, signal)
  }

  return async (
    wanted: Wanted,
    given: ChallengeBody | undefined,
    how: { readonly idempotencyKey: string } & SolanaFeeCap,
    signal: AbortSignal,
  ): Promise<SolanaTransactionBody> => {
    const { terms, network } = wanted
    const renewed = () => network.api.renewChallenge(terms.stakeId, signal)
    const use = async (challenge: ChallengeBody, isNew = true) =>
      network.api.createStakeTransaction(
        terms.stakeId,
        {
          ...how,
          challengeId: challenge.challengeId,
          signature: await signChallenge(challenge, isNew, wanted, signal),
        },
        signal,
      )
    const left = given === undefined ? 0 : Date.parse(given.expiresAt) - clock.now().getTime()
    const isFresh = given !== undefined && left >= MIN_CHALLENGE_MS && left <= MAX_CHALLENGE_MS
    try {
      return isFresh ? await use(given, false) : await use(await renewed())
    } catch (error) {
      if (!(error instanceof StakingApiError) || error.code !== 'challenge-expired' || !isFresh) throw error
      return use(await renewed())
    }
  }
}

/** In minutes, or in seconds where it is under two. */
const duration = (ms: number): string => {
  const seconds = Math.round(Math.abs(ms) / 1000)
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
}
