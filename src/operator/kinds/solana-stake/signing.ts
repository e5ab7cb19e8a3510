import type { SolanaAddress } from '../../../chains/solana/addresses.ts'
import { encodeBase58 } from '../../../chains/solana/base58.ts'
import { decodeMessage, joinTransaction } from '../../../chains/solana/message.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { type Halt, stall } from '../../engine/verdict.ts'
import type { RecordObject } from '../../transactions/store.ts'
import type { Parties } from './parties.ts'
import type { SolanaStakeDeps } from './request.ts'
import type { ActionKind } from './steps.ts'

/** The bytes to send, of a verified message. The signature is the fee payer's, by which the cluster knows the transaction. */
export async function sign(
  { keys, assertMayAct }: Pick<SolanaStakeDeps, 'keys' | 'assertMayAct'>,
  by: readonly StakingSigner[],
  message: Uint8Array,
  signal: AbortSignal,
) {
  const { feePayer, signers } = decodeMessage(message)
  const signatures = new Map<SolanaAddress, Uint8Array>()
  for (const { spec } of by) {
    if (signatures.has(spec.address) || !signers.includes(spec.address)) continue
    assertMayAct()
    signatures.set(spec.address, await keys.signMessage(spec.keyName, spec.address, message, signal))
  }
  const first = signatures.get(feePayer)
  if (first === undefined) throw new Error('the fee payer has not signed')
  return { raw: joinTransaction(message, signatures), signature: encodeBase58(first) }
}

/** Who signs a transaction that is made now. */
export function signersOf(kind: ActionKind, { payer, withdrawer, feePayer, stakeAuthority }: Parties): readonly StakingSigner[] {
  if (kind === 'deactivation') return [payer]
  return feePayer === stakeAuthority ? [payer, withdrawer] : [withdrawer]
}

/** Nothing new is signed for a signer that is being deleted: it goes once what is open is settled. @throws Halt */
export function assertStays(signers: readonly StakingSigner[]): void {
  const leaving = signers.find(({ metadata }) => metadata.deletionTimestamp !== undefined)
  if (leaving !== undefined)
    throw stall('SignerNotFound', `StakingSigner ${leaving.metadata.name} is being deleted: nothing more is signed with its key.`)
}

/** An attempt that was signed anew, and is another one. */
export const notOurs = ({ metadata }: RecordObject): Halt =>
  stall(
    'VerificationFailed',
    `The attempt in StakingTransaction ${metadata.name} is not what was signed for it: somebody changed it, or a remote signer signs in another way each time. Nothing was sent.`,
  )
