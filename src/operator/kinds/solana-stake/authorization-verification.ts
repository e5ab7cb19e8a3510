import { decodeInstruction } from '../../../chains/solana/instructions.ts'
import { decodeMessage, MessageError } from '../../../chains/solana/message.ts'
import type { NewAuthority } from '../../../chains/solana/stake.ts'
import { verifyTransaction } from '../../../chains/solana/verify-transaction.ts'
import { stall, wait } from '../../engine/verdict.ts'
import type { HandOver, Successor } from './authorization-wanted.ts'

/** Compute units that are not asked for without need: what two instructions use, many times over. */
const MAX_COMPUTE_UNITS = 200_000

/** Compares a message with what is asked for, instruction by instruction. @throws Halt */
export function verifyHandOver(handOver: HandOver, message: Uint8Array, source: string, blockhash?: string): void {
  const wrong = verifyTransaction(message, {
    kind: 'authorization',
    ...shapeOf(message, handOver),
    ...(blockhash === undefined ? {} : { recentBlockhash: blockhash }),
    limits: { maxComputeUnits: MAX_COMPUTE_UNITS, maxPriorityFeeLamports: handOver.feeCap },
    stakeAccount: handOver.paid.spec.subject,
    stakeAuthority: handOver.parties.stakeAuthority,
    withdrawAuthority: handOver.parties.withdrawAuthority,
    newStaker: newAuthority(handOver.stake),
    newWithdrawer: newAuthority(handOver.withdraw),
  })
  if (wrong.length > 0 && wrong.every(({ code }) => code === 'priority-fee-too-high'))
    throw wait(
      'FeeTooHigh',
      `The transaction ${source} offers a priority fee over the cap of ${handOver.feeCap} lamports, by spec.maxPriorityFeeLamports and the signers' policies. It is made anew once this one has expired; or raise the cap.`,
      30_000,
    )
  if (wrong.length > 0)
    throw stall(
      'VerificationFailed',
      `The transaction ${source} is not what this resource asks for: ${wrong.map((one) => one.message).join('; ')}. Nothing was signed.`,
    )
}

export const newAuthority = (to: Successor | undefined): NewAuthority | undefined =>
  to === undefined ? undefined : { address: to.authority.address, isChecked: to.signer !== undefined }

/** Who pays, and who replaces the stake authority: either of the present authorities may. */
function shapeOf(message: Uint8Array, { parties }: HandOver): { readonly feePayer: string; readonly stakerBy: string } {
  const { stakeAuthority, withdrawAuthority } = parties
  const either = (address: string | undefined): string => (address === withdrawAuthority ? withdrawAuthority : stakeAuthority)
  try {
    const { feePayer, instructions } = decodeMessage(message)
    const staker = instructions.map(decodeInstruction).find((one) => one.kind === 'authorize-staker')
    return { feePayer: either(feePayer), stakerBy: either(staker?.kind === 'authorize-staker' ? staker.authority : undefined) }
  } catch (error) {
    if (error instanceof MessageError) return { feePayer: stakeAuthority, stakerBy: stakeAuthority }
    throw error
  }
}
