import { SolanaError } from '../../../chains/solana/chain.ts'
import { plainMessage } from '../../../chains/solana/rpc-errors.ts'
import { describeFailure } from '../../../chains/solana/transaction-error.ts'
import type { SolanaNetwork } from '../../ports.ts'
import { alteration, isReached, stakeStateOf } from './chain.ts'
import { unitsAskedBy } from './message.ts'
import type { Refuse } from './request.ts'
import type { ActionKind, StakeTerms } from './steps.ts'

/** Units that any transaction of a stake may ask for without a question: `computeUnits` with room. */
const FEW_COMPUTE_UNITS = 200_000n
/** How much more than a simulation uses a transaction may ask for: the price is paid for all of it. */
const UNITS_MARGIN = 2n
/** Runs a message on the chain's present state. @throws SolanaError where it would fail */
export async function simulated(
  { chain }: Pick<SolanaNetwork, 'chain'>,
  message: Uint8Array,
  subject: string,
  atSlot: bigint,
  signal: AbortSignal,
) {
  const { failure, meaning, accounts, unitsConsumed } = await chain.simulate(message, { watch: [subject], minContextSlot: atSlot }, signal)
  if (failure !== undefined) {
    const code = meaning ?? 'failed'
    throw new SolanaError(code, `${plainMessage(code)} (${describeFailure(failure)})`, { failure })
  }
  return { after: accounts[0], unitsConsumed }
}

/** Runs the message on the chain's present state: it must succeed, and leave the account as it should be. @throws SolanaError, Halt */
export async function simulate(
  refuse: Refuse,
  network: SolanaNetwork,
  kind: ActionKind,
  { terms, message, atSlot }: { readonly terms: StakeTerms; readonly message: Uint8Array; readonly atSlot: bigint },
  signal: AbortSignal,
) {
  const { after, unitsConsumed } = await simulated(network, message, terms.stakeAccount, atSlot, signal)
  const asked = unitsAskedBy(message)
  if (asked > FEW_COMPUTE_UNITS && asked > unitsConsumed * UNITS_MARGIN)
    refuse(
      'VerificationFailed',
      `The ${kind} transaction asks for ${asked} compute units, and uses ${unitsConsumed} in a simulation: its priority fee would be paid for all of them. No transaction was signed.`,
    )
  // Of the future, if you like: an account that is gone then counts as closed.
  const look = { state: after === undefined || after.lamports === 0n ? undefined : stakeStateOf(after), slot: 1n }
  const altered = alteration(look.state, terms)
  const delegated = kind !== 'stake' || (look.state?.kind === 'stake' && look.state.delegation.voter === terms.voteAccount)
  if (!isReached(kind, look, 1) || altered !== undefined || !delegated)
    refuse(
      'VerificationFailed',
      `The ${kind} transaction was simulated, and the stake account would not be as it should afterwards. No transaction was signed.`,
    )
}
