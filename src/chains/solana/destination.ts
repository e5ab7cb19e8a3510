import { isAddress, isOnCurve, isSmallOrder, type SolanaAddress } from './addresses.ts'
import type { ChainAccount } from './chain.ts'
import { burnAddress, stakeProgram, systemProgram, sysvarOwner, voteProgram } from './programs.ts'

/** Why an address should get no money, and whether an owner who knows better may say so. */
export interface UnfitDestination {
  readonly code:
    | 'invalid-address'
    /** Burned on arrival. */
    | 'destination-burns'
    /** A point of small order: no key signs for it. */
    | 'destination-without-key'
    /** Not on the curve, so a program signs for it or nobody: an escrow or a multisig's vault may be right. */
    | 'destination-off-curve'
    | 'destination-is-program'
    | 'destination-is-sysvar'
    /** Belongs to another program than the System program: a mint, a token account, a vote or stake account. */
    | 'destination-of-program'
  /** For people: what it is. */
  readonly what: string
  /** Money may come back from there by a program: right for somebody who names it. */
  readonly mayBeMeant: boolean
}

/**
 * Whether money that is withdrawn to an address can be spent again by its owner: an account of the System program, or none yet, whose address is on the curve.
 * The runtime credits any account, so that a withdrawal to a mint or to the incinerator succeeds and the money is gone.
 * @param account As the chain shows it; undefined when there is none.
 */
export function unfitDestination(address: SolanaAddress, account: ChainAccount | undefined): UnfitDestination | undefined {
  if (!isAddress(address)) return { code: 'invalid-address', what: 'is not a Solana address: base58 of 32 bytes', mayBeMeant: false }
  if (address === burnAddress) return { code: 'destination-burns', what: 'is the incinerator, which burns what it gets', mayBeMeant: false }
  if (isSmallOrder(address)) {
    return { code: 'destination-without-key', what: 'is a point of small order, for which no key signs', mayBeMeant: false }
  }
  if (account !== undefined) {
    if (account.executable) return { code: 'destination-is-program', what: 'is a program', mayBeMeant: false }
    if (account.owner === sysvarOwner) return { code: 'destination-is-sysvar', what: 'is a sysvar', mayBeMeant: false }
    if (account.owner !== systemProgram) {
      return { code: 'destination-of-program', what: `is ${kindOf(account.owner)}, and not a wallet`, mayBeMeant: true }
    }
  }
  if (account !== undefined && account.data.length > 0) {
    return { code: 'destination-of-program', what: 'is a nonce account, and not a wallet: no transfer leaves it', mayBeMeant: true }
  }
  if (isOnCurve(address)) return undefined
  return { code: 'destination-off-curve', what: 'is off the curve: no key signs for it, at most a program does', mayBeMeant: true }
}

const kindOf = (owner: SolanaAddress): string => {
  if (owner === voteProgram) return 'a vote account'
  if (owner === stakeProgram) return 'a stake account'
  return tokenPrograms.has(owner) ? 'a mint or a token account' : `an account of the program ${owner}`
}

/** SPL Token and Token-2022. Source: solana-program/token and token-2022, declare_id. */
const tokenPrograms: ReadonlySet<SolanaAddress> = new Set([
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
])
