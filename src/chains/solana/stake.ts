import { createHash } from 'node:crypto'
import { Authorized, ComputeBudgetProgram, StakeProgram, SystemProgram, Transaction, TransactionInstruction } from '@solana/web3.js'
import type { Lamports } from '../../lib/amounts.ts'
import { addressBytes, addressOf, type Blockhash, publicKey, type SolanaAddress } from './addresses.ts'
import { clockSysvar, maxSeedBytes, stakeAccountSpace, stakeProgram } from './programs.ts'

/**
 * The address of the stake account that this fee payer makes from this seed: sha256(base, seed, owner), so that the same stake can't be made twice.
 * @throws RangeError for a seed that is empty or over 32 bytes: web3.js doesn't refuse those, the cluster does.
 */
export function stakeAccountAddress(feePayer: SolanaAddress, seed: string): SolanaAddress {
  const bytes = Buffer.from(seed, 'utf8')
  if (bytes.length === 0 || bytes.length > maxSeedBytes) throw new RangeError(`a seed has 1 to ${maxSeedBytes} bytes`)
  const hash = createHash('sha256').update(addressBytes(feePayer)).update(bytes).update(addressBytes(stakeProgram)).digest()
  return addressOf(hash)
}

/** What every transaction has besides what it does. */
export interface TransactionFrame {
  readonly feePayer: SolanaAddress
  readonly recentBlockhash: Blockhash
  /** Units that may be used; the price is paid for all of them. See `computeUnits`. */
  readonly computeUnitLimit: number
  /** Millionths of a lamport a unit; 0 leaves the price out. */
  readonly computeUnitPriceMicroLamports: bigint
}

export interface StakeTransaction extends TransactionFrame {
  /** At most 32 bytes: the stake's id. */
  readonly seed: string
  readonly stakeAuthority: SolanaAddress
  readonly withdrawAuthority: SolanaAddress
  readonly voteAccount: SolanaAddress
  /** What leaves the fee payer for the stake account: the rent reserve and the delegation. */
  readonly amount: Lamports
  /**
   * Whether someone has sent lamports to the address already. CreateAccountWithSeed then fails; transfer, allocate and assign do the same.
   * What the stranger sent stays on top of `amount`.
   */
  readonly prefunded: boolean
}

/**
 * Units that suffice, measured with the real stake program, with about half as much on top. A limit that is too low would fail the transaction,
 * a high one only costs where a priority fee is paid. A withdrawal takes about a thousand more for each epoch that the stake has warmed up or cooled
 * down in: this is enough for ninety, where a mainnet stake has two.
 */
export const computeUnits = { stake: 40_000, deactivation: 25_000, withdrawal: 100_000, authorization: 40_000 } as const

/** Lamports for one signature (the cluster's base fee). */
export const baseFeePerSignature = 5000n

/** What the fee payer pays for a transaction, whether it succeeds or not: in lamports. */
export const transactionFee = (given: { signatures: number; computeUnitLimit: number; computeUnitPriceMicroLamports: bigint }): Lamports =>
  (baseFeePerSignature * BigInt(given.signatures) + priorityFee(given.computeUnitLimit, given.computeUnitPriceMicroLamports)) as Lamports

/** In lamports, rounded up. */
export const priorityFee = (units: number, microLamports: bigint): bigint => (BigInt(units) * microLamports + 999_999n) / 1_000_000n

/**
 * The message that makes, initialises and delegates a stake account, without a lockup. Signers: fee payer, stake authority.
 * @throws RangeError, AddressError
 */
export function buildStakeMessage(given: StakeTransaction): Uint8Array {
  const { seed, amount } = given
  const feePayer = publicKey(given.feePayer)
  const account = publicKey(stakeAccountAddress(given.feePayer, seed))
  const { programId } = StakeProgram
  const fund: readonly TransactionInstruction[] = given.prefunded
    ? [
        SystemProgram.transfer({ fromPubkey: feePayer, toPubkey: account, lamports: amount }),
        SystemProgram.allocate({ accountPubkey: account, basePubkey: feePayer, seed, space: stakeAccountSpace, programId }),
        SystemProgram.assign({ accountPubkey: account, basePubkey: feePayer, seed, programId }),
      ]
    : [
        SystemProgram.createAccountWithSeed({
          fromPubkey: feePayer,
          newAccountPubkey: account,
          basePubkey: feePayer,
          seed,
          lamports: exact(amount),
          space: stakeAccountSpace,
          programId,
        }),
      ]
  const authorized = new Authorized(publicKey(given.stakeAuthority), publicKey(given.withdrawAuthority))
  return compile(given, [
    ...fund,
    StakeProgram.initialize({ stakePubkey: account, authorized }),
    ...StakeProgram.delegate({
      stakePubkey: account,
      authorizedPubkey: publicKey(given.stakeAuthority),
      votePubkey: publicKey(given.voteAccount),
    }).instructions,
  ])
}

/** The message that begins the cool-down. Signers: fee payer, stake authority. @throws AddressError */
export function buildDeactivationMessage(
  given: TransactionFrame & { readonly stakeAccount: SolanaAddress; readonly stakeAuthority: SolanaAddress },
): Uint8Array {
  return compile(
    given,
    StakeProgram.deactivate({ stakePubkey: publicKey(given.stakeAccount), authorizedPubkey: publicKey(given.stakeAuthority) }).instructions,
  )
}

/** The message that withdraws; with all of the account's lamports it closes the account. Signers: fee payer, withdraw authority. @throws AddressError */
export function buildWithdrawalMessage(
  given: TransactionFrame & {
    readonly stakeAccount: SolanaAddress
    readonly withdrawAuthority: SolanaAddress
    readonly destination: SolanaAddress
    readonly amount: Lamports
  },
): Uint8Array {
  return compile(
    given,
    StakeProgram.withdraw({
      stakePubkey: publicKey(given.stakeAccount),
      authorizedPubkey: publicKey(given.withdrawAuthority),
      toPubkey: publicKey(given.destination),
      lamports: exact(given.amount),
    }).instructions,
  )
}

/** An authority of a stake account that another takes the place of. */
export interface NewAuthority {
  readonly address: SolanaAddress
  /** The new one signs too (AuthorizeChecked): that proves that there is a key. */
  readonly isChecked: boolean
}

/** The tags of StakeInstruction, and StakeAuthorize. Source: solana-stake-interface, instruction.rs and state.rs. */
const authorizeTags = { plain: 1, checked: 10 } as const
const roles = { staker: 0, withdrawer: 1 } as const

/**
 * The message that replaces authorities, the withdraw authority last: after that the old one may nothing. Signers: fee payer, whoever replaces, and each new
 * authority that is checked. @throws AddressError
 */
export function buildAuthorizationMessage(
  given: TransactionFrame & {
    readonly stakeAccount: SolanaAddress
    /** The present stake authority, or the withdraw authority, which may do it as well. */
    readonly stakerBy: SolanaAddress
    readonly withdrawAuthority: SolanaAddress
    readonly newStaker: NewAuthority | undefined
    readonly newWithdrawer: NewAuthority | undefined
  },
): Uint8Array {
  const account = publicKey(given.stakeAccount)
  const authorize = (role: keyof typeof roles, by: SolanaAddress, { address, isChecked }: NewAuthority): TransactionInstruction => {
    const data = Buffer.alloc(isChecked ? 8 : 40)
    data.writeUInt32LE(isChecked ? authorizeTags.checked : authorizeTags.plain)
    if (!isChecked) data.set(addressBytes(address), 4)
    data.writeUInt32LE(roles[role], isChecked ? 4 : 36)
    return new TransactionInstruction({
      programId: StakeProgram.programId,
      keys: [
        { pubkey: account, isSigner: false, isWritable: true },
        { pubkey: publicKey(clockSysvar), isSigner: false, isWritable: false },
        { pubkey: publicKey(by), isSigner: true, isWritable: false },
        ...(isChecked ? [{ pubkey: publicKey(address), isSigner: true, isWritable: false }] : []),
      ],
      data,
    })
  }
  return compile(given, [
    ...(given.newStaker === undefined ? [] : [authorize('staker', given.stakerBy, given.newStaker)]),
    ...(given.newWithdrawer === undefined ? [] : [authorize('withdrawer', given.withdrawAuthority, given.newWithdrawer)]),
  ])
}

function compile(frame: TransactionFrame, instructions: readonly TransactionInstruction[]): Uint8Array {
  addressBytes(frame.recentBlockhash, 'a blockhash')
  const transaction = new Transaction({
    feePayer: publicKey(frame.feePayer),
    blockhash: frame.recentBlockhash,
    // Only web3.js's own waiting uses it.
    lastValidBlockHeight: 0,
  })
  transaction.add(ComputeBudgetProgram.setComputeUnitLimit({ units: frame.computeUnitLimit }))
  if (frame.computeUnitPriceMicroLamports > 0n)
    transaction.add(ComputeBudgetProgram.setComputeUnitPrice({ microLamports: frame.computeUnitPriceMicroLamports }))
  transaction.add(...instructions)
  return new Uint8Array(transaction.compileMessage().serialize())
}

/** web3.js takes these amounts as doubles: refuse what a double would round. @throws RangeError */
function exact(amount: bigint): number {
  const number = Number(amount)
  if (amount < 0n || !Number.isSafeInteger(number)) throw new RangeError('the amount is larger than 9007199254740991 lamports')
  return number
}
