import type { SolanaChain } from '../../../chains/solana/chain.ts'
import { decodeInstruction, type StakingInstruction } from '../../../chains/solana/instructions.ts'
import { decodeMessage, MessageError, verifySignature } from '../../../chains/solana/message.ts'
import { stakeProgram } from '../../../chains/solana/programs.ts'
import type { Sought } from '../../transactions/solana/kind.ts'
import type { ActionKind } from './steps.ts'

type History = Pick<SolanaChain, 'past' | 'message'>

/** Transactions of an account that are read. One that was made, deactivated and withdrawn has three; but anyone may name it in more, for a fee each. */
const MOST = 256

/** Changes of a stake account that move no lamports out of it. */
const harmless: ReadonlySet<string | undefined> = new Set([
  'Authorize',
  'AuthorizeWithSeed',
  'AuthorizeChecked',
  'AuthorizeCheckedWithSeed',
  'InitializeChecked',
  'SetLockup',
  'SetLockupChecked',
  'GetMinimumDelegation',
  'DeactivateDelinquent',
])

/** The instructions that name the account; undefined where they can't be read. */
function readable(message: Uint8Array, account: string): readonly StakingInstruction[] | undefined {
  try {
    return decodeMessage(message)
      .instructions.filter(({ accounts }) => accounts.includes(account))
      .map(decodeInstruction)
  } catch (error) {
    if (error instanceof MessageError) return undefined
    throw error
  }
}

/** The bytes of a message that its fee payer has signed under this very signature. */
function signedMessage(signature: string, given: string | undefined): Uint8Array | undefined {
  if (given === undefined) return undefined
  const bytes = new Uint8Array(Buffer.from(given, 'base64'))
  try {
    return verifySignature(decodeMessage(bytes).feePayer, bytes, signature) ? bytes : undefined
  } catch (error) {
    if (error instanceof MessageError) return undefined
    throw error
  }
}

/** What the chain's history says of a stake account: who made, deactivated or closed it, and where its money went. */
export function createStakeHistory() {
  /** The instructions of a transaction that name the account; undefined where they can't be read. */
  async function instructionsOn(
    { message }: History,
    account: string,
    signature: string,
    signal: AbortSignal,
  ): Promise<readonly StakingInstruction[] | undefined> {
    const bytes = await message(signature, signal)
    return bytes === undefined ? undefined : readable(bytes, account)
  }

  const does: Readonly<Record<Exclude<ActionKind, 'withdrawal'>, (one: StakingInstruction) => boolean>> = {
    stake: ({ kind }) => kind === 'initialize',
    deactivation: ({ kind }) => kind === 'deactivate',
  }

  return {
    /**
     * Whether the message of a transaction that landed does a step to the account; of a withdrawal, to `destination`. `given`: a message that is said to
     * be its, believed where the signature is that of its fee payer. Undefined where no node has it. @throws SolanaError
     */
    async proofOf(
      chain: History,
      { hash, message: given }: { readonly hash: string; readonly message?: string | undefined },
      { account, kind, destination }: { readonly account: string; readonly kind: ActionKind; readonly destination: string | undefined },
      signal: AbortSignal,
    ): Promise<boolean | undefined> {
      const bytes = signedMessage(hash, given) ?? (await chain.message(hash, signal))
      if (bytes === undefined) return undefined
      const instructions = readable(bytes, account)
      if (kind !== 'withdrawal') return instructions?.some(does[kind]) === true
      const out = (instructions ?? []).flatMap((one) => (one.kind === 'withdraw' && one.account === account ? [one.to] : []))
      return out.length > 0 && out.every((to) => to === destination)
    },

    /** The transaction that made the stake, or the newest that deactivated it. @throws SolanaError */
    async doerOf(
      chain: History,
      { account, kind, atSlot }: { readonly account: string; readonly kind: Exclude<ActionKind, 'withdrawal'>; readonly atSlot: bigint },
      signal: AbortSignal,
    ): Promise<Sought> {
      const past = (await chain.past(account, atSlot, signal)).filter(({ failed }) => !failed)
      // An account is made at the beginning of its life, however many others have named it since.
      for (const { signature, slot } of (kind === 'stake' ? past.toReversed() : past).slice(0, MOST)) {
        const instructions = await instructionsOn(chain, account, signature, signal)
        if (instructions?.some(does[kind]) === true) return { is: 'found', hash: signature, slot }
      }
      return { is: 'unknown' }
    },

    /**
     * The transaction that closed the account, where the history shows its whole life and that nothing ever went anywhere but to `destination`.
     * @throws SolanaError
     */
    async withdrawalOf(
      chain: History,
      { account, destination, atSlot }: { readonly account: string; readonly destination: string | undefined; readonly atSlot: bigint },
      signal: AbortSignal,
    ): Promise<Sought> {
      const elsewhere = (what: string): Sought => ({
        is: 'elsewhere',
        message: `The stake account ${account} is closed, and ${what}. This resource wants it at ${destination ?? 'nowhere: its signer is gone'}. Nothing is signed. Whoever holds the keys must be asked at once; when that is settled, delete this resource.`,
      })
      const past = (await chain.past(account, atSlot, signal)).filter(({ failed }) => !failed)
      let closing: Extract<Sought, { is: 'found' }> | undefined
      for (const { signature, slot } of past.slice(0, MOST)) {
        const instructions = await instructionsOn(chain, account, signature, signal)
        if (instructions === undefined)
          return elsewhere(`transaction ${signature} of somebody else, which can't be read, may have withdrawn its money`)
        for (const one of instructions) {
          if (one.kind === 'withdraw' && one.account === account) {
            if (one.to !== destination) return elsewhere(`transaction ${signature} withdrew its money to ${one.to}`)
            closing ??= { is: 'found', hash: signature, slot }
          }
          const isUnknown = one.kind === 'malformed' || (one.kind === 'other' && (one.program !== stakeProgram || !harmless.has(one.name)))
          if (isUnknown) return elsewhere(`transaction ${signature} of somebody else took money out of it, or may have`)
        }
        if (instructions.some(({ kind }) => kind === 'initialize') && closing !== undefined) return closing
      }
      return elsewhere(
        past.length > MOST
          ? `${past.length} transactions or more name it, as anyone may for a fee: those that tell where its money went are not among the ${MOST} that are read`
          : 'no RPC node has the history that tells where its money went',
      )
    },
  }
}
