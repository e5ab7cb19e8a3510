import type { StakingInstruction } from '../../../chains/solana/instructions.ts'
import type { StakeMeta } from '../../../chains/solana/stake-account.ts'
import { instructionsNaming, mostRead } from '../../../chains/solana/stake-maker.ts'
import type { SolanaNetwork } from '../../ports.ts'
import type { SolanaTransactionKind } from '../../transactions/solana/kind.ts'
import type { RecordObject } from '../../transactions/store.ts'
import { messageOf } from './message.ts'

/** What the chain's history says of a hand-over. */
export function createAuthorizationWitnesses(
  networkOf: (record: RecordObject) => SolanaNetwork,
): Pick<SolanaTransactionKind, 'seek' | 'proves'> {
  return {
    async seek(record, atSlot, signal) {
      const found = await landedIn(networkOf(record), record, { atSlot, except: new Set() }, signal)
      return found === undefined ? { is: 'unknown' } : { is: 'found', hash: found.signature, slot: found.slot }
    },
    async proves(record, { hash, message }, signal) {
      const bytes = messageOf({ message }) ?? (await networkOf(record).chain.message(hash, signal))
      return bytes === undefined ? undefined : does(instructionsNaming(bytes, record.spec.subject), record)
    },
  }
}

/**
 * ▸ A transaction of the account's history that did what a record asks for, and that no record of the account knows. The account's state shows nothing of it once
 * the authorities were handed on: where the log was lost, it would be done again, with a key that may have been given up for a reason.
 */
export async function doneBefore(
  network: Pick<SolanaNetwork, 'chain'>,
  record: RecordObject,
  ofSubject: readonly RecordObject[],
  atSlot: bigint,
  signal: AbortSignal,
): Promise<string | undefined> {
  const except = new Set(ofSubject.flatMap(({ status }) => [status?.outcome?.hash, ...(status?.attempts ?? []).map(({ hash }) => hash)]))
  return (await landedIn(network, record, { atSlot, except }, signal))?.signature
}

/** The newest transaction of the account's history that did what a record asks for, but for some. */
async function landedIn(
  { chain }: Pick<SolanaNetwork, 'chain'>,
  record: RecordObject,
  { atSlot, except }: { readonly atSlot: bigint; readonly except: ReadonlySet<string | undefined> },
  signal: AbortSignal,
) {
  const { subject } = record.spec
  const past = (await chain.past(subject, atSlot, signal)).filter(({ failed, signature }) => !failed && !except.has(signature))
  for (const one of past.slice(0, mostRead)) {
    const bytes = await chain.message(one.signature, signal)
    if (bytes !== undefined && does(instructionsNaming(bytes, subject), record)) return one
  }
  return undefined
}

/** Whether the account has the authorities that a record is to give it. */
export const isHandedOver = (meta: StakeMeta | undefined, { handOver }: RecordObject['spec']): boolean => {
  const { stakeAuthority, withdrawAuthority } = handOver?.to ?? {}
  return (
    meta !== undefined &&
    (stakeAuthority === undefined || meta.staker === stakeAuthority.address) &&
    (withdrawAuthority === undefined || meta.withdrawer === withdrawAuthority.address)
  )
}

/** Whether a transaction that landed gave the account all of these authorities. */
function does(instructions: readonly StakingInstruction[] | undefined, { spec }: RecordObject): boolean {
  const gives = (kind: 'authorize-staker' | 'authorize-withdrawer', to: string | undefined): boolean =>
    to === undefined || instructions?.some((one) => one.kind === kind && one.account === spec.subject && one.to === to) === true
  const { stakeAuthority, withdrawAuthority } = spec.handOver?.to ?? {}
  return gives('authorize-staker', stakeAuthority?.address) && gives('authorize-withdrawer', withdrawAuthority?.address)
}
