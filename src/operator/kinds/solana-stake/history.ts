import type { StakingInstruction } from '../../../chains/solana/instructions.ts'
import { decodeMessage, MessageError, verifySignature } from '../../../chains/solana/message.ts'
import { stakeProgram } from '../../../chains/solana/programs.ts'
import { type AccountHistory, firstDoer, instructionsNaming, mostRead } from '../../../chains/solana/stake-maker.ts'
import type { Sought } from '../../transactions/solana/kind.ts'
import type { ActionKind } from './steps.ts'

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
    { message }: AccountHistory,
    account: string,
    signature: string,
    signal: AbortSignal,
  ): Promise<readonly StakingInstruction[] | undefined> {
    const bytes = await message(signature, signal)
    return bytes === undefined ? undefined : instructionsNaming(bytes, account)
  }

  const instructionOf = { stake: 'initialize', deactivation: 'deactivate' } as const
  /** To this account: another one's may name it in the place of a sysvar. */
  const does =
    (kind: Exclude<ActionKind, 'withdrawal'>, account: string) =>
    (one: StakingInstruction): boolean =>
      one.kind === instructionOf[kind] && one.account === account

  return {
    /**
     * Whether the message of a transaction that landed does a step to the account; of a withdrawal, to `destination`. `given`: a message that is said to
     * be its, believed where the signature is that of its fee payer. Undefined where no node has it. @throws SolanaError
     */
    async proofOf(
      chain: AccountHistory,
      { hash, message: given }: { readonly hash: string; readonly message?: string | undefined },
      { account, kind, destination }: { readonly account: string; readonly kind: ActionKind; readonly destination: string | undefined },
      signal: AbortSignal,
    ): Promise<boolean | undefined> {
      const bytes = signedMessage(hash, given) ?? (await chain.message(hash, signal))
      if (bytes === undefined) return undefined
      const instructions = instructionsNaming(bytes, account)
      if (kind !== 'withdrawal') return instructions?.some(does(kind, account)) === true
      const out = (instructions ?? []).flatMap((one) => (one.kind === 'withdraw' && one.account === account ? [one.to] : []))
      return out.length > 0 && out.every((to) => to === destination)
    },

    /** The transaction that made the stake, or the newest that deactivated it. @throws SolanaError */
    async doerOf(
      chain: AccountHistory,
      { account, kind, atSlot }: { readonly account: string; readonly kind: Exclude<ActionKind, 'withdrawal'>; readonly atSlot: bigint },
      signal: AbortSignal,
    ): Promise<Sought> {
      if (kind === 'stake') {
        const first = await firstDoer(chain, { account, atSlot, does: does(kind, account) }, signal)
        return first === undefined ? { is: 'unknown' } : { is: 'found', hash: first.signature, slot: first.slot }
      }
      const past = (await chain.past(account, atSlot, signal)).filter(({ failed }) => !failed)
      for (const { signature, slot } of past.slice(0, mostRead)) {
        const instructions = await instructionsOn(chain, account, signature, signal)
        if (instructions?.some(does(kind, account)) === true) return { is: 'found', hash: signature, slot }
      }
      return { is: 'unknown' }
    },

    /**
     * The transaction that closed the account, where the history shows its whole life and that nothing ever went anywhere but to `destination`.
     * @throws SolanaError
     */
    async withdrawalOf(
      chain: AccountHistory,
      { account, destination, atSlot }: { readonly account: string; readonly destination: string | undefined; readonly atSlot: bigint },
      signal: AbortSignal,
    ): Promise<Sought> {
      const elsewhere = (what: string): Sought => ({
        is: 'elsewhere',
        message: `The stake account ${account} is closed, and ${what}. This resource wants it at ${destination ?? 'nowhere: its signer is gone'}. Nothing is signed. Whoever holds the keys must be asked at once; when that is settled, delete this resource.`,
      })
      const past = (await chain.past(account, atSlot, signal)).filter(({ failed }) => !failed)
      let closing: Extract<Sought, { is: 'found' }> | undefined
      for (const { signature, slot } of past.slice(0, mostRead)) {
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
        if (instructions.some(does('stake', account)) && closing !== undefined) return closing
      }
      return elsewhere(
        past.length > mostRead
          ? `${past.length} transactions or more name it, as anyone may for a fee: those that tell where its money went are not among the ${mostRead} that are read`
          : 'no RPC node has the history that tells where its money went',
      )
    },
  }
}
