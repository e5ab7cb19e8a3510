import { isAddress, type SolanaAddress } from '../../../chains/solana/addresses.ts'
import { encodeBase58 } from '../../../chains/solana/base58.ts'
import { SolanaError } from '../../../chains/solana/chain.ts'
import { decodeInstruction } from '../../../chains/solana/instructions.ts'
import { decodeMessage, joinTransaction, MessageError } from '../../../chains/solana/message.ts'
import { plainMessage } from '../../../chains/solana/rpc-errors.ts'
import { describeFailure } from '../../../chains/solana/transaction-error.ts'
import { type ExpectedTransaction, type TransactionMismatch, verifyTransaction } from '../../../chains/solana/verify-transaction.ts'
import { lamports } from '../../../lib/amounts.ts'
import { wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import { alteration, isReached, stakeStateOf } from './chain.ts'
import type { Parties } from './parties.ts'
import type { SolanaRequests, SolanaStakeDeps } from './request.ts'
import type { ActionKind, SolanaPlan, StakeTerms } from './steps.ts'

/** Compute units that a transaction may ask for (MAX_COMPUTE_UNIT_LIMIT of the cluster). What it needs, a simulation tells. */
const MAX_COMPUTE_UNITS = 1_400_000
/** Units that any transaction of a stake may ask for without a question: `computeUnits` with room. */
const FEW_COMPUTE_UNITS = 200_000n
/** How much more than a simulation uses a transaction may ask for: the price is paid for all of it. */
const UNITS_MARGIN = 2n
/** Blocks that a blockhash may live from now, twice over: nodes differ in height. A block height far beyond would have the operator wait for good. */
const MAX_BLOCKS_AHEAD = 300n

/** Lamports that are more than the rent reserve of an account without data has ever been (890,880): the cluster need not be asked. */
const ASK_FOR_RENT = 10_000_000n

/** What a message is compared with, besides the spec. `withdrawn`: all that the account holds. */
interface Given {
  readonly withdrawn: bigint
  readonly blockhash: string | undefined
  readonly feeCap: bigint
}

/** A stake's transactions: verified, simulated and signed. */
export type SolanaVerification = ReturnType<typeof createSolanaVerification>

export function createSolanaVerification(deps: SolanaStakeDeps, { amountOf, feeCapOf, refuse }: SolanaRequests) {
  const { keys } = deps

  /** By stake account: what it held when a withdrawal of the staking API's did not take all of it, and the message of that. */
  const short = new Map<string, { readonly holds: bigint; readonly message: string }>()

  /** What a transaction must do, by the spec and the keys. */
  function expected(
    { request, kind }: SolanaPlan,
    terms: StakeTerms,
    destination: SolanaAddress,
    more: Given & { readonly feePayer: string; readonly prefunded: boolean },
  ): ExpectedTransaction {
    const { stakeAuthority, withdrawAuthority, stakeAccount, voteAccount, stakeId } = terms
    const frame = {
      feePayer: more.feePayer,
      limits: { maxComputeUnits: MAX_COMPUTE_UNITS, maxPriorityFeeLamports: more.feeCap },
      ...(more.blockhash === undefined ? {} : { recentBlockhash: more.blockhash }),
    }
    switch (kind) {
      case 'stake':
        return {
          ...frame,
          kind,
          seed: stakeId,
          amount: amountOf(request),
          stakeAuthority,
          withdrawAuthority,
          voteAccount,
          prefunded: more.prefunded,
        }
      case 'deactivation':
        return { ...frame, kind, stakeAccount, stakeAuthority }
      case 'withdrawal':
        return { ...frame, kind, stakeAccount, withdrawAuthority, destination, amount: lamports(more.withdrawn) }
    }
  }

  /**
   * Compares a message with the spec. A stake account may be made in either of two ways, which both pay the same amount to the same account once:
   * which of them can land depends on whether strangers have sent lamports to the address, and a simulation tells.
   */
  function mismatches(
    plan: SolanaPlan,
    terms: StakeTerms,
    destination: SolanaAddress,
    message: Uint8Array,
    more: Given,
  ): readonly TransactionMismatch[] {
    const feePayer = feePayerOf(plan.kind, terms, message)
    const plain = verifyTransaction(message, expected(plan, terms, destination, { ...more, feePayer, prefunded: false }))
    if (plain.length === 0 || plan.kind !== 'stake' || !allocates(message)) return plain
    return verifyTransaction(message, expected(plan, terms, destination, { ...more, feePayer, prefunded: true }))
  }

  function verified(
    plan: SolanaPlan,
    terms: StakeTerms,
    destination: SolanaAddress,
    message: Uint8Array,
    more: Given & { readonly source: string },
  ): void {
    const wrong = mismatches(plan, terms, destination, message, more)
    if (wrong.length > 0 && wrong.every(({ code }) => code === 'priority-fee-too-high'))
      throw wait(
        'FeeTooHigh',
        `The ${plan.kind} transaction ${more.source} offers a priority fee over the cap of ${more.feeCap} lamports, by spec.maxPriorityFeeLamports and the signers' policies. Nothing was signed. It is asked for again, with that cap, once this one has expired; or raise the cap.`,
        30_000,
      )
    if (wrong.length > 0)
      refuse(
        'VerificationFailed',
        `The ${plan.kind} transaction ${more.source} is not what this resource asks for: ${wrong.map((one) => one.message).join('; ')}. Nothing was signed.`,
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
        `The withdrawal transaction ${more.source} takes ${withdrawn} of the ${holds} lamports that the stake account holds, and so did the one before it: it would not close the account. Nothing was signed. Whoever runs the staking API must mend that.`,
      )
    if (before?.holds !== holds) short.set(terms.stakeAccount, { holds, message: text })
    throw wait(
      'AwaitingFinality',
      `The stake account holds ${holds} lamports now, and the transaction ${more.source} withdraws ${withdrawn}: somebody has sent or taken some. It is made anew once it can't land any more.`,
      network.config.pollIntervalMs,
    )
  }

  /** Runs the message on the chain's present state: it must succeed, and leave the account as it should be. @throws SolanaError, Halt */
  async function simulate(
    network: SolanaNetwork,
    kind: ActionKind,
    { terms, message, atSlot }: { readonly terms: StakeTerms; readonly message: Uint8Array; readonly atSlot: bigint },
    signal: AbortSignal,
  ) {
    const options = { watch: [terms.stakeAccount], minContextSlot: atSlot }
    const { failure, meaning, accounts, unitsConsumed } = await network.chain.simulate(message, options, signal)
    if (failure !== undefined) {
      const code = meaning ?? 'failed'
      throw new SolanaError(code, `${plainMessage(code)} (${describeFailure(failure)})`, { failure })
    }
    const asked = unitsAskedBy(message)
    if (asked > FEW_COMPUTE_UNITS && asked > unitsConsumed * UNITS_MARGIN)
      refuse(
        'VerificationFailed',
        `The ${kind} transaction asks for ${asked} compute units, and uses ${unitsConsumed} in a simulation: its priority fee would be paid for all of them. Nothing was signed.`,
      )
    const [after] = accounts
    // Of the future, if you like: an account that is gone then counts as closed.
    const look = { state: after === undefined || after.lamports === 0n ? undefined : stakeStateOf(after), slot: 1n }
    const altered = alteration(look.state, terms)
    const delegated = kind !== 'stake' || (look.state?.kind === 'stake' && look.state.delegation.voter === terms.voteAccount)
    if (!isReached(kind, look, 1) || altered !== undefined || !delegated)
      refuse(
        'VerificationFailed',
        `The ${kind} transaction was simulated, and the stake account would not be as it should afterwards. Nothing was signed.`,
      )
  }

  /** The bytes to send, of a verified message. The signature is the fee payer's, by which the cluster knows the transaction. */
  async function sign(parties: Parties, message: Uint8Array, signal: AbortSignal) {
    const { feePayer, signers } = decodeMessage(message)
    const signatures = new Map<SolanaAddress, Uint8Array>()
    for (const { spec } of [parties.payer, parties.withdrawer]) {
      if (signatures.has(spec.address) || !signers.includes(spec.address)) continue
      deps.assertMayAct()
      signatures.set(spec.address, await keys.signMessage(spec.keyName, spec.address, message, signal))
    }
    const first = signatures.get(feePayer)
    if (first === undefined) throw new Error('the fee payer has not signed')
    return { raw: joinTransaction(message, signatures), signature: encodeBase58(first) }
  }

  /** What the payer must have: said with numbers, before the cluster refuses without. */
  async function assertFunds(network: SolanaNetwork, plan: SolanaPlan, payer: string, fee: bigint, signal: AbortSignal) {
    const balance = await network.chain.balance(payer, 'confirmed', signal)
    const amount = plan.kind === 'stake' ? amountOf(plan.request) : 0n
    const left = balance - amount - fee
    const short = (more: string) =>
      wait(
        'InsufficientFunds',
        `${payer} has ${balance} lamports; ${amount === 0n ? '' : `the stake of ${amount} and `}a fee of ${fee} need ${amount + fee}${more}. Fund the address; it goes on by itself.`,
        30_000,
      )
    if (left < 0n) throw short('')
    if (left === 0n || left >= ASK_FOR_RENT) return
    const rent = await network.chain.rentExemption(0, signal)
    if (left < rent && balance >= rent) throw short(`, and an account keeps either nothing or at least ${rent}, not ${left}`)
  }

  const held = async (network: SolanaNetwork, { stakeAccount }: StakeTerms, signal: AbortSignal): Promise<bigint> =>
    (await network.chain.account(stakeAccount, 'confirmed', signal))?.lamports ?? 0n

  return { verifiedNow, simulate, sign, assertFunds }
}

/** The bytes of a message; undefined for what isn't the base64 of one. */
export function messageOf({ message }: { readonly message?: string | undefined }): Uint8Array | undefined {
  if (message === undefined) return undefined
  const bytes = new Uint8Array(Buffer.from(message, 'base64'))
  return Buffer.from(bytes).toString('base64') === message ? bytes : undefined
}

/**
 * Who pays the fees: the stake authority. A withdrawal may be paid by the withdraw authority as well, which is this resource's own: where the stake key is
 * lost, or kept away, or where the stake was created without a named fee payer.
 */
export function feePayerOf(kind: ActionKind, { stakeAuthority, withdrawAuthority }: StakeTerms, message: Uint8Array): SolanaAddress {
  if (kind !== 'withdrawal') return stakeAuthority
  try {
    return decodeMessage(message).feePayer === withdrawAuthority ? withdrawAuthority : stakeAuthority
  } catch (error) {
    if (error instanceof MessageError) return stakeAuthority
    throw error
  }
}

const instructionsOf = (message: Uint8Array) => {
  try {
    return decodeMessage(message).instructions.map(decodeInstruction)
  } catch (error) {
    if (error instanceof MessageError) return []
    throw error
  }
}
const allocates = (message: Uint8Array): boolean => instructionsOf(message).some(({ kind }) => kind === 'allocate-with-seed')
/** Where the message itself says that the money goes; undefined where it goes nowhere, or to several. */
export const destinationOf = (message: Uint8Array): SolanaAddress | undefined => {
  const to = new Set(instructionsOf(message).flatMap((one) => (one.kind === 'withdraw' ? [one.to] : [])))
  return to.size === 1 ? [...to][0] : undefined
}
/** Compute units that the message asks for; 0 where it leaves that to the cluster. */
const unitsAskedBy = (message: Uint8Array): bigint =>
  instructionsOf(message).reduce(
    (most, one) => (one.kind === 'compute-unit-limit' && BigInt(one.units) > most ? BigInt(one.units) : most),
    0n,
  )
/** What the message itself says that it withdraws. */
const withdrawnBy = (message: Uint8Array): bigint =>
  instructionsOf(message).reduce((sum, one) => (one.kind === 'withdraw' ? sum + one.lamports : sum), 0n)

/** What of a transaction's frame must be right before it can be waited for. */
export function frameProblem(
  given: { readonly txId: string; readonly recentBlockhash: string; readonly lastValidBlockHeight: number },
  height: bigint,
): string | undefined {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(given.txId)) return 'its id is not one'
  if (!isAddress(given.recentBlockhash)) return 'its blockhash is not one'
  if (BigInt(given.lastValidBlockHeight) > height + MAX_BLOCKS_AHEAD)
    return `its last valid block height is far beyond the cluster's height of ${height}`
  return undefined
}
