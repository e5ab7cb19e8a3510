import type { SolanaAddress } from './addresses.ts'
import type { SolanaChain, SolanaSignature } from './chain.ts'
import { decodeInstruction, type StakingInstruction } from './instructions.ts'
import { decodeMessage, MessageError } from './message.ts'
import { stakeProgram } from './programs.ts'

/** What is read of an account's past. */
export type AccountHistory = Pick<SolanaChain, 'past' | 'message'>

/** Transactions of an account that are read. One that was made, deactivated and withdrawn has three; but anyone may name it in more, for a fee each. */
export const mostRead = 256

/** The instructions that name the account; undefined where they can't be read. */
export function instructionsNaming(message: Uint8Array, account: SolanaAddress): readonly StakingInstruction[] | undefined {
  try {
    return decodeMessage(message)
      .instructions.filter(({ accounts }) => accounts.includes(account))
      .map(decodeInstruction)
  } catch (error) {
    if (error instanceof MessageError) return undefined
    throw error
  }
}

/**
 * Whether an instruction that succeeded made this stake account: it was given to the stake program by its base's key, or initialised, which the stake program
 * does only to an account of its own. That a stranger's transaction names the account, or sends lamports to it, makes nothing.
 */
export const makesStake = (one: StakingInstruction, account: SolanaAddress): boolean =>
  one.kind === 'initialize'
    ? one.account === account
    : (one.kind === 'create-account-with-seed' || one.kind === 'assign-with-seed') && one.account === account && one.owner === stakeProgram

/**
 * The first final transaction that did something to the account, by the history of every node; the account may be gone since. Undefined proves nothing: nodes
 * forget, and strangers may have named it more often than a node tells.
 * @param atSlot A node that has not come so far has no say. @throws SolanaError where no node answers, or keeps a history
 */
export async function firstDoer(
  chain: AccountHistory,
  {
    account,
    atSlot,
    does,
  }: { readonly account: SolanaAddress; readonly atSlot: bigint; readonly does: (one: StakingInstruction) => boolean },
  signal: AbortSignal,
): Promise<{ readonly signature: SolanaSignature; readonly slot: bigint } | undefined> {
  const past = (await chain.past(account, atSlot, signal)).filter(({ failed }) => !failed)
  // An account is made at the beginning of its life, however many others have named it since.
  for (const { signature, slot } of past.toReversed().slice(0, mostRead)) {
    const bytes = await chain.message(signature, signal)
    if (bytes !== undefined && instructionsNaming(bytes, account)?.some(does) === true) return { signature, slot }
  }
  return undefined
}
