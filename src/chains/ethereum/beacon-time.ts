import type { BeaconGenesis, BeaconSpec } from './beacon.ts'

type Time = Pick<BeaconGenesis, 'genesisTime'>
type Slots = Pick<BeaconSpec, 'slotDurationMs' | 'slotsPerEpoch'>

/** The slot of a moment, in seconds since 1970; negative before genesis. A block's time is the beginning of its slot, so this maps a block of the execution layer to its slot. */
export const slotAt = ({ genesisTime }: Time, { slotDurationMs }: Slots, seconds: number): number =>
  Math.floor(((seconds - genesisTime) * 1000) / slotDurationMs)

export const epochOf = (slot: number, { slotsPerEpoch }: Slots): number => Math.floor(slot / slotsPerEpoch)

export const firstSlotOf = (epoch: number, { slotsPerEpoch }: Slots): number => epoch * slotsPerEpoch

/** When an epoch begins. */
export const epochStart = ({ genesisTime }: Time, spec: Slots, epoch: number): Date =>
  new Date(genesisTime * 1000 + firstSlotOf(epoch, spec) * spec.slotDurationMs)
