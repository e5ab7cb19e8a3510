import { createReader, LayoutError } from './reader.ts'

/** The Clock sysvar. */
export interface SolanaClock {
  readonly slot: bigint
  readonly epoch: bigint
  /** Seconds since 1970, as the validators estimate it; lockups compare with it. */
  readonly unixTimestamp: bigint
}

/** One epoch of the StakeHistory sysvar: the whole cluster's stake, in lamports. */
export interface StakeHistoryEntry {
  readonly effective: bigint
  readonly activating: bigint
  readonly deactivating: bigint
}
/** By epoch; at most the last 512. */
export type StakeHistory = ReadonlyMap<bigint, StakeHistoryEntry>

/** The EpochRewards sysvar. While `active`, the stake program refuses every change with Custom(16). */
export interface EpochRewards {
  readonly active: boolean
}

/** @throws LayoutError */
export function decodeClock(data: Uint8Array): SolanaClock {
  const reader = createReader(data, 'the Clock sysvar')
  const slot = reader.u64()
  reader.i64()
  const epoch = reader.u64()
  reader.u64()
  const unixTimestamp = reader.i64()
  reader.end()
  return { slot, epoch, unixTimestamp }
}

/** StakeHistory::MAX_ENTRIES. */
const maxHistory = 512n

/** The account is larger than what it holds. @throws LayoutError */
export function decodeStakeHistory(data: Uint8Array): StakeHistory {
  const reader = createReader(data, 'the StakeHistory sysvar')
  const count = reader.u64()
  if (count > maxHistory) throw new LayoutError('the StakeHistory sysvar holds more epochs than it may')
  const history = new Map<bigint, StakeHistoryEntry>()
  for (let index = 0n; index < count; index++) {
    const epoch = reader.u64()
    history.set(epoch, { effective: reader.u64(), activating: reader.u64(), deactivating: reader.u64() })
  }
  return history
}

/** @throws LayoutError */
export function decodeEpochRewards(data: Uint8Array): EpochRewards {
  const reader = createReader(data, 'the EpochRewards sysvar')
  reader.u64()
  reader.u64()
  reader.bytes(32)
  reader.u128()
  reader.u64()
  reader.u64()
  const active = reader.u8()
  if (active > 1) throw new LayoutError('the EpochRewards sysvar holds a truth value that is none')
  reader.end()
  return { active: active === 1 }
}
