import { stakePosition } from '../../../chains/solana/activation.ts'
import { type ChainAccount, type SolanaChain, SolanaError, type StakeView } from '../../../chains/solana/chain.ts'
import { noEpoch, stakeProgram } from '../../../chains/solana/programs.ts'
import { LayoutError } from '../../../chains/solana/reader.ts'
import { decodeStakeAccount, lockText, lockupInForce, type StakeMeta, type StakeState } from '../../../chains/solana/stake-account.ts'
import type { SolanaProtocol } from '../../../resources/solana-stake.ts'
import { type Halt, stall } from '../../engine/verdict.ts'
import type { ActionKind, StakeTerms } from './steps.ts'

/** What the chain holds at a stake's address, at finalized commitment. */
export interface StakeLook extends StakeView {
  /** Undefined: there is no stake account, though strangers' lamports may be. */
  readonly state: StakeState | undefined
}

/** @throws SolanaError, `unreadable` for an account that can't be read */
export async function lookAt(chain: SolanaChain, stakeAccount: string, signal: AbortSignal): Promise<StakeLook> {
  const view = await chain.stakeView(stakeAccount, 'finalized', signal)
  return { ...view, state: stakeStateOf(view.account) }
}

/** @throws SolanaError */
export function stakeStateOf(account: ChainAccount | undefined): StakeState | undefined {
  if (account?.owner !== stakeProgram) return undefined
  try {
    return decodeStakeAccount(account)
  } catch (error) {
    if (error instanceof LayoutError) throw new SolanaError('unreadable', `The stake account cannot be read: ${error.message}`)
    throw error
  }
}

export const metaOf = (state: StakeState | undefined): StakeMeta | undefined =>
  state?.kind === 'stake' || state?.kind === 'initialized' ? state.meta : undefined

/**
 * Whether what a transaction is made for stands on the chain, by whichever transaction it came. An account that isn't there counts as closed
 * only at a slot after one at which it was.
 */
export function isReached(kind: ActionKind, { state, slot }: Pick<StakeLook, 'state' | 'slot'>, madeAtSlot: number): boolean {
  const gone = state === undefined && madeAtSlot > 0 && slot >= BigInt(madeAtSlot)
  switch (kind) {
    case 'stake':
      return state?.kind === 'stake'
    case 'deactivation':
      return gone || state?.kind === 'initialized' || (state?.kind === 'stake' && state.delegation.deactivationEpoch !== noEpoch)
    case 'withdrawal':
      return gone
  }
}

/** Slots (about an hour) that one node may be behind another and still be used. */
const MAX_LAG = 9_000n

const phases = { ACTIVATING: 'Activating', ACTIVE: 'Active', DEACTIVATING: 'Deactivating', INACTIVE: 'Inactive' } as const

/** The look as status has it. Where nothing but the time differs from what was seen before, that very object comes back: nothing is to be written. */
export function protocolOf(look: StakeLook, madeAtSlot: number, seen: SolanaProtocol | undefined): SolanaProtocol {
  const next = { ...read(look, madeAtSlot), ...(seen?.validator === undefined ? {} : { validator: seen.validator }) }
  if (seen === undefined) return next
  // A node that lags, or an account that a lagging node doesn't have yet, is no news. A slot of the far future was seen by nobody.
  const isLagging = look.slot < BigInt(seen.slot) && look.slot + MAX_LAG >= BigInt(seen.slot)
  if (isLagging || (next.status === 'Created' && seen.status !== 'Created')) return seen
  // Once it is where it stays, another epoch is no news either.
  const isMoving = next.status === 'Activating' || next.status === 'Deactivating'
  return sameBut(isMoving ? ['slot'] : ['slot', 'epoch'], next, seen) ? seen : next
}

function read({ account, state, clock, history, arithmetic, slot }: StakeLook, madeAtSlot: number): SolanaProtocol {
  const at = { epoch: Number(clock.epoch), slot: Number(slot) }
  if (state === undefined || account === undefined) {
    const gone = madeAtSlot > 0 && slot >= BigInt(madeAtSlot)
    return { status: gone ? 'Withdrawn' : 'Created', activeLamports: '0', inactiveLamports: '0', ...at }
  }
  const position = stakePosition({ state, lamports: account.lamports, epoch: clock.epoch, history, arithmetic })
  const { activationEpoch, deactivationEpoch } = position
  const meta = metaOf(state)
  return {
    status: phases[position.phase],
    ...(activationEpoch === undefined ? {} : { activationEpoch: Number(activationEpoch) }),
    ...(deactivationEpoch === undefined ? {} : { deactivationEpoch: Number(deactivationEpoch) }),
    activeLamports: String(position.effective),
    inactiveLamports: String(position.inactive),
    ...at,
    ...(meta === undefined ? {} : { stakeAuthority: meta.staker, withdrawAuthority: meta.withdrawer }),
    ...(state.kind === 'stake' ? { voteAccount: state.delegation.voter } : {}),
    ...(meta === undefined || !lockupInForce(meta, clock)
      ? {}
      : { lockedUntil: lockText(meta, clock), lockupCustodian: meta.lockup.custodian }),
  }
}

function sameBut<T extends object>(fields: readonly string[], a: T, b: T): boolean {
  const without = (value: T) =>
    JSON.stringify(
      Object.entries(value)
        .filter(([key]) => !fields.includes(key))
        .toSorted(([x], [y]) => (x < y ? -1 : 1)),
    )
  return without(a) === without(b)
}

/** How the account on the chain is not what this resource made of it, in words; undefined where it is. Somebody else has signed with a key of it. */
export function alteration(state: StakeState | undefined, terms: StakeTerms): string | undefined {
  const meta = metaOf(state)
  if (meta === undefined) return undefined
  const changed = [
    ...(meta.staker === terms.stakeAuthority ? [] : [`its stake authority is ${meta.staker}, not ${terms.stakeAuthority}`]),
    ...(meta.withdrawer === terms.withdrawAuthority
      ? []
      : [`its withdraw authority is ${meta.withdrawer}, not ${terms.withdrawAuthority}`]),
  ]
  return changed.length === 0 ? undefined : changed.join(', and ')
}

export const authorityChanged = ({ stakeAccount }: StakeTerms, how: string): Halt =>
  stall(
    'AuthorityChanged',
    `Somebody has changed the stake account ${stakeAccount} on the chain: ${how}. Nothing was signed. Whoever holds these keys must be asked at once: a new withdraw authority can take the money.`,
  )
