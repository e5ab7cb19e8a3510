import { ethereumStake } from './ethereum-stake.ts'
import type { KindDefinition } from './meta.ts'
import { solanaStake } from './solana-stake.ts'
import { stakingSigner } from './staking-signer.ts'

/** Every kind of the group, in the order of the reference. */
export const kinds: readonly KindDefinition[] = [ethereumStake, solanaStake, stakingSigner]
