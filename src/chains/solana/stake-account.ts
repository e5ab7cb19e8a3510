import type { SolanaAddress } from './addresses.ts'
import { noEpoch, stakeAccountSpace, stakeProgram } from './programs.ts'
import { createReader, LayoutError } from './reader.ts'

/** Who may act, and until when nobody may withdraw. */
export interface StakeMeta {
  /** Lamports that are never staked. */
  readonly rentExemptReserve: bigint
  readonly staker: SolanaAddress
  readonly withdrawer: SolanaAddress
  readonly lockup: { readonly unixTimestamp: bigint; readonly epoch: bigint; readonly custodian: SolanaAddress }
}

export interface Delegation {
  readonly voter: SolanaAddress
  /** Lamports that are delegated. */
  readonly stake: bigint
  /** `noEpoch` (u64::MAX) for a stake of the cluster's first hour. */
  readonly activationEpoch: bigint
  /** `noEpoch` (u64::MAX) while it is delegated. */
  readonly deactivationEpoch: bigint
}

export type StakeState =
  | { readonly kind: 'uninitialized' }
  | { readonly kind: 'initialized'; readonly meta: StakeMeta }
  | { readonly kind: 'stake'; readonly meta: StakeMeta; readonly delegation: Delegation }
  | { readonly kind: 'rewards-pool' }

/**
 * Reads a stake account's data: 200 bytes, tag 0 Uninitialized, 1 Initialized, 2 Stake, 3 RewardsPool. Refuses an account of another program.
 * Source: solana-stake-interface, StakeStateV2.
 * @throws LayoutError
 */
export function decodeStakeAccount(account: { readonly owner: SolanaAddress; readonly data: Uint8Array }): StakeState {
  if (account.owner !== stakeProgram) throw new LayoutError('the account is not owned by the stake program')
  if (account.data.length !== stakeAccountSpace)
    throw new LayoutError(`a stake account has ${stakeAccountSpace} bytes, this one ${account.data.length}`)
  const reader = createReader(account.data, 'the stake account')
  const tag = reader.u32()
  switch (tag) {
    case 0:
      return { kind: 'uninitialized' }
    case 1:
      return { kind: 'initialized', meta: readMeta(reader) }
    case 2: {
      const meta = readMeta(reader)
      const voter = reader.address()
      const stake = reader.u64()
      const activationEpoch = reader.u64()
      const deactivationEpoch = reader.u64()
      return { kind: 'stake', meta, delegation: { voter, stake, activationEpoch, deactivationEpoch } }
    }
    case 3:
      return { kind: 'rewards-pool' }
    default:
      throw new LayoutError(`a stake account's state is 0 to 3, this one's is ${tag}`)
  }
}

function readMeta(reader: ReturnType<typeof createReader>): StakeMeta {
  const rentExemptReserve = reader.u64()
  const staker = reader.address()
  const withdrawer = reader.address()
  const unixTimestamp = reader.i64()
  const epoch = reader.u64()
  return { rentExemptReserve, staker, withdrawer, lockup: { unixTimestamp, epoch, custodian: reader.address() } }
}

/** Whether nobody but the custodian can withdraw now. Source: Lockup::is_in_force. */
export const lockupInForce = ({ lockup }: StakeMeta, clock: { readonly unixTimestamp: bigint; readonly epoch: bigint }): boolean =>
  lockup.unixTimestamp > clock.unixTimestamp || lockup.epoch > clock.epoch

/** Until when it is in force, in words: of its time and its epoch, one may be over. */
export const lockText = ({ lockup }: StakeMeta, clock: { readonly unixTimestamp: bigint; readonly epoch: bigint }): string =>
  [
    ...(lockup.unixTimestamp > clock.unixTimestamp ? [timeText(lockup.unixTimestamp)] : []),
    ...(lockup.epoch > clock.epoch ? [`the end of epoch ${lockup.epoch - 1n}`] : []),
  ].join(' and ')
/** Seconds since 1970, which may be any 64-bit number. */
const timeText = (seconds: bigint): string => {
  const date = new Date(Number(seconds) * 1000)
  return Number.isNaN(date.getTime()) ? `second ${seconds}` : date.toISOString()
}

export const isDelegated = ({ deactivationEpoch }: Delegation): boolean => deactivationEpoch === noEpoch
