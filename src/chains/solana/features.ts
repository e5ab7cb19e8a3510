import type { ChainAccount } from './chain.ts'
import { featureProgram } from './programs.ts'

/**
 * Feature gates of a cluster, by the address of their accounts. Source: agave's feature set, as listed with the slots of their activation on mainnet-beta and
 * testnet; read 28 November 2026.
 */
export const features = {
  /** SIMD-0391: the stake program, version 5.1, and the validators reckon warm-up and cool-down in integers. Mainnet-beta since epoch 1026. */
  fixedPointStake: 's51VGwCAgebo2745DSUris72RavoLkXGUmVJosESCXr',
  /** SIMD-0357: a validator needs a BLS key in its vote account, and buys a ticket with it, to be admitted to an epoch. */
  admissionTicket: 'VAT9huvhPjRN9cyrPytq9rwvEJ3J4ADtjdncgZRyANJ',
} as const

/** Whether a feature is on: its account holds the slot of its activation. Source: solana-feature-gate-interface, `Feature { activated_at: Option<u64> }`. */
export const isFeatureOn = (account: ChainAccount | null | undefined): boolean =>
  account?.owner === featureProgram && account.data.length >= 9 && account.data[0] === 1
