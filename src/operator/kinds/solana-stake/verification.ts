import type { SolanaAddress } from '../../../chains/solana/addresses.ts'
import { wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import { withdrawnBy } from './message.ts'
import { type Asked, type Given, mismatches } from './mismatches.ts'
import type { Parties } from './parties.ts'
import type { SolanaRequests } from './request.ts'
import type { SolanaPlan, StakeTerms } from './steps.ts'

/** A stake's transactions, compared with what the resource asks for. */
export function createSolanaVerification({ amountOf, feeCapOf, refuse }: Pick<SolanaRequests, 'amountOf' | 'feeCapOf' | 'refuse'>) {
  /** By stake account: what it held when a withdrawal of the staking API's did not take all of it, and the message of that. */
  const short = new Map<string, { readonly holds: bigint; readonly message: string }>()

  function verified(
    plan: SolanaPlan,
    terms: StakeTerms,
    destination: SolanaAddress,
    message: Uint8Array,
    more: Given & { readonly source: string },
  ): void {
    const { kind, request } = plan
    const asked: Asked = kind === 'stake' ? { kind, amount: amountOf(request) } : { kind }
    const wrong = mismatches(asked, terms, destination, message, more)
    if (wrong.length > 0 && wrong.every(({ code }) => code === 'priority-fee-too-high'))
      throw wait(
        'FeeTooHigh',
        `The ${kind} transaction ${more.source} offers a priority fee over the cap of ${more.feeCap} lamports, by spec.maxPriorityFeeLamports and the signers' policies. No transaction was signed. It is asked for again, with that cap, once this one has expired; or raise the cap.`,
        30_000,
      )
    if (wrong.length > 0)
      refuse(
        'VerificationFailed',
        `The ${kind} transaction ${more.source} is not what this resource asks for: ${wrong.map((one) => one.message).join('; ')}. No transaction was signed.`,
      )
  }

  /**
   * Verified, with the lamports that the account holds now where they are withdrawn.
   * @throws Halt `VerificationFailed`; a wait for a withdrawal that was right when the account held something else
   */
  async function verifiedNow(
    plan: SolanaPlan,
    terms: StakeTerms,
    parties: Parties,
    network: SolanaNetwork,
    message: Uint8Array,
    more: { readonly blockhash: string | undefined; readonly source: string },
    signal: AbortSignal,
  ): Promise<void> {
    const holds = plan.kind === 'withdrawal' ? await held(network, terms, signal) : 0n
    const withdrawn = withdrawnBy(message)
    verified(plan, terms, parties.destination, message, { ...more, withdrawn, feeCap: feeCapOf(plan.request, parties) })
    // An account that is gone was withdrawn, by this very transaction maybe.
    const text = Buffer.from(message).toString('base64')
    const before = short.get(terms.stakeAccount)
    if (holds === 0n || holds === withdrawn) {
      short.delete(terms.stakeAccount)
      return
    }
    // Made anew while nobody has sent or taken anything: it is the API that reckons wrong.
    if (before?.holds === holds && before.message !== text)
      refuse(
        'VerificationFailed',
        `The withdrawal transaction ${more.source} takes ${withdrawn} of the ${holds} lamports that the stake account holds, and so did the one before it: it would not close the account. No transaction was signed. Whoever runs the staking API must mend that.`,
      )
    if (before?.holds !== holds) short.set(terms.stakeAccount, { holds, message: text })
    throw wait(
      'AwaitingFinality',
      `The stake account holds ${holds} lamports now, and the transaction ${more.source} withdraws ${withdrawn}: somebody has sent or taken some. It is made anew once it can't land any more.`,
      network.config.pollIntervalMs,
    )
  }

  const held = async (network: SolanaNetwork, { stakeAccount }: StakeTerms, signal: AbortSignal): Promise<bigint> =>
    (await network.chain.account(stakeAccount, 'confirmed', signal))?.lamports ?? 0n

  return { verifiedNow }
}
