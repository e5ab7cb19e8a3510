import type { SolanaAddress } from './addresses.ts'
import type { DecodedInstruction } from './message.ts'
import { clockSysvar, computeBudgetProgram, maxSeedBytes, stakeProgram, systemProgram } from './programs.ts'
import { createReader, LayoutError, type Reader } from './reader.ts'

/** The instructions that stakes are made of. Everything else is `other`, named as far as it is known, for messages. */
export type StakingInstruction =
  | { readonly kind: 'compute-unit-limit'; readonly units: number }
  /** In millionths of a lamport for each compute unit. */
  | { readonly kind: 'compute-unit-price'; readonly microLamports: bigint }
  | {
      readonly kind: 'create-account-with-seed'
      readonly from: SolanaAddress
      readonly account: SolanaAddress
      readonly base: SolanaAddress
      readonly seed: string
      readonly lamports: bigint
      readonly space: bigint
      readonly owner: SolanaAddress
    }
  | { readonly kind: 'transfer'; readonly from: SolanaAddress; readonly to: SolanaAddress; readonly lamports: bigint }
  | {
      readonly kind: 'allocate-with-seed'
      readonly account: SolanaAddress
      readonly base: SolanaAddress
      readonly seed: string
      readonly space: bigint
      readonly owner: SolanaAddress
    }
  | {
      readonly kind: 'assign-with-seed'
      readonly account: SolanaAddress
      readonly base: SolanaAddress
      readonly seed: string
      readonly owner: SolanaAddress
    }
  | {
      readonly kind: 'initialize'
      readonly account: SolanaAddress
      readonly staker: SolanaAddress
      readonly withdrawer: SolanaAddress
      readonly lockup: { readonly unixTimestamp: bigint; readonly epoch: bigint; readonly custodian: SolanaAddress }
      readonly sysvars: readonly SolanaAddress[]
    }
  | {
      readonly kind: 'delegate'
      readonly account: SolanaAddress
      readonly voteAccount: SolanaAddress
      readonly authority: SolanaAddress
      readonly sysvars: readonly SolanaAddress[]
    }
  | {
      readonly kind: 'deactivate'
      readonly account: SolanaAddress
      readonly authority: SolanaAddress
      readonly sysvars: readonly SolanaAddress[]
    }
  | {
      readonly kind: 'withdraw'
      readonly account: SolanaAddress
      readonly to: SolanaAddress
      readonly authority: SolanaAddress
      readonly lamports: bigint
      readonly sysvars: readonly SolanaAddress[]
    }
  | {
      /** Authorize or AuthorizeChecked, with the Clock sysvar and without a custodian. In any other form it is `other`. */
      readonly kind: 'authorize-staker' | 'authorize-withdrawer'
      readonly account: SolanaAddress
      readonly authority: SolanaAddress
      readonly to: SolanaAddress
      /** The new authority signs too. */
      readonly checked: boolean
    }
  | { readonly kind: 'other'; readonly program: SolanaAddress; readonly name: string | undefined }
  /** Of a known program and tag, but with other data or accounts than that instruction has. */
  | { readonly kind: 'malformed'; readonly program: SolanaAddress }

/** Decodes one instruction; its data must be exactly as long as its layout, its accounts exactly as many. */
export function decodeInstruction(instruction: DecodedInstruction): StakingInstruction {
  const { program } = instruction
  try {
    if (program === computeBudgetProgram) return decodeComputeBudget(instruction)
    if (program === systemProgram) return decodeSystem(instruction)
    if (program === stakeProgram) return decodeStake(instruction)
    return { kind: 'other', program, name: undefined }
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error
    return { kind: 'malformed', program }
  }
}

const computeBudgetNames = [
  'RequestUnits',
  'RequestHeapFrame',
  'SetComputeUnitLimit',
  'SetComputeUnitPrice',
  'SetLoadedAccountsDataSizeLimit',
]

function decodeComputeBudget({ program, accounts, data }: DecodedInstruction): StakingInstruction {
  const reader = createReader(data, 'the instruction')
  const tag = reader.u8()
  if (tag === 2) {
    take(accounts, 0)
    return all(reader, { kind: 'compute-unit-limit', units: reader.u32() })
  }
  if (tag === 3) {
    take(accounts, 0)
    return all(reader, { kind: 'compute-unit-price', microLamports: reader.u64() })
  }
  return { kind: 'other', program, name: computeBudgetNames[tag] }
}

/** SystemInstruction, in the order of its tags. */
const systemNames = [
  'CreateAccount',
  'Assign',
  'Transfer',
  'CreateAccountWithSeed',
  'AdvanceNonceAccount',
  'WithdrawNonceAccount',
  'InitializeNonceAccount',
  'AuthorizeNonceAccount',
  'Allocate',
  'AllocateWithSeed',
  'AssignWithSeed',
  'TransferWithSeed',
  'UpgradeNonceAccount',
]

function decodeSystem({ program, accounts, data }: DecodedInstruction): StakingInstruction {
  const reader = createReader(data, 'the instruction')
  const tag = reader.u32()
  switch (tag) {
    case 2: {
      const [from, to] = take(accounts, 2)
      return all(reader, { kind: 'transfer', from, to, lamports: reader.u64() })
    }
    case 3: {
      const base = reader.address()
      const seed = reader.string(maxSeedBytes)
      const lamports = reader.u64()
      const space = reader.u64()
      const owner = reader.address()
      const [from, account] = takeWithBase(accounts, base, 2)
      return all(reader, { kind: 'create-account-with-seed', from, account, base, seed, lamports, space, owner })
    }
    case 9: {
      const base = reader.address()
      const seed = reader.string(maxSeedBytes)
      const space = reader.u64()
      const owner = reader.address()
      const [account] = takeWithBase(accounts, base, 1)
      return all(reader, { kind: 'allocate-with-seed', account, base, seed, space, owner })
    }
    case 10: {
      const base = reader.address()
      const seed = reader.string(maxSeedBytes)
      const owner = reader.address()
      const [account] = takeWithBase(accounts, base, 1)
      return all(reader, { kind: 'assign-with-seed', account, base, seed, owner })
    }
    default:
      return { kind: 'other', program, name: systemNames[tag] }
  }
}

/** StakeInstruction, in the order of its tags. */
const stakeNames = [
  'Initialize',
  'Authorize',
  'DelegateStake',
  'Split',
  'Withdraw',
  'Deactivate',
  'SetLockup',
  'Merge',
  'AuthorizeWithSeed',
  'InitializeChecked',
  'AuthorizeChecked',
  'AuthorizeCheckedWithSeed',
  'SetLockupChecked',
  'GetMinimumDelegation',
  'DeactivateDelinquent',
  'Redelegate',
  'MoveStake',
  'MoveLamports',
]

/**
 * The stake program of version 5 takes initialize, delegate, withdraw and deactivate without the sysvar accounts, which it reads by itself (SIMD-0490;
 * solana-program/stake, program/src/processor.rs, 29 November 2026); an older one refuses those. `sysvars` is empty then. Both forms do the same.
 */
function decodeStake({ program, accounts, data }: DecodedInstruction): StakingInstruction {
  const reader = createReader(data, 'the instruction')
  const tag = reader.u32()
  switch (tag) {
    case 0: {
      const [account] = take(accounts.slice(0, 1), 1)
      const sysvars = accounts.length === 1 ? [] : [take(accounts, 2)[1]]
      const staker = reader.address()
      const withdrawer = reader.address()
      const lockup = { unixTimestamp: reader.i64(), epoch: reader.u64(), custodian: reader.address() }
      return all(reader, { kind: 'initialize', account, staker, withdrawer, lockup, sysvars })
    }
    case 2: {
      if (accounts.length === 3) {
        const [account, voteAccount, authority] = take(accounts, 3)
        return all(reader, { kind: 'delegate', account, voteAccount, authority, sysvars: [] })
      }
      const [account, voteAccount, clock, history, config, authority] = take(accounts, 6)
      return all(reader, { kind: 'delegate', account, voteAccount, authority, sysvars: [clock, history, config] })
    }
    case 4: {
      if (accounts.length === 3) {
        const [account, to, authority] = take(accounts, 3)
        return all(reader, { kind: 'withdraw', account, to, authority, lamports: reader.u64(), sysvars: [] })
      }
      const [account, to, clock, history, authority] = take(accounts, 5)
      return all(reader, { kind: 'withdraw', account, to, authority, lamports: reader.u64(), sysvars: [clock, history] })
    }
    case 5: {
      if (accounts.length === 2) {
        const [account, authority] = take(accounts, 2)
        return all(reader, { kind: 'deactivate', account, authority, sysvars: [] })
      }
      const [account, clock, authority] = take(accounts, 3)
      return all(reader, { kind: 'deactivate', account, authority, sysvars: [clock] })
    }
    case 1:
    case 10:
      return decodeAuthorize(accounts, reader, tag === 10) ?? { kind: 'other', program, name: stakeNames[tag] }
    default:
      return { kind: 'other', program, name: stakeNames[tag] }
  }
}

const roles = ['authorize-staker', 'authorize-withdrawer'] as const

/** Undefined for a form that is not made here: with a custodian, or without the sysvar. */
function decodeAuthorize(accounts: readonly SolanaAddress[], reader: Reader, checked: boolean): StakingInstruction | undefined {
  const [account, clock, authority, signer] = accounts
  if (clock !== clockSysvar || accounts.length !== (checked ? 4 : 3) || reader.remaining() !== (checked ? 4 : 36)) return undefined
  const to = checked ? signer : reader.address()
  const kind = roles[reader.u32()]
  if (kind === undefined || account === undefined || authority === undefined || to === undefined) return undefined
  return { kind, account, authority, to, checked }
}

type Accounts<N extends number> = N extends 0
  ? readonly []
  : N extends 1
    ? readonly [SolanaAddress]
    : N extends 2
      ? readonly [SolanaAddress, SolanaAddress]
      : N extends 3
        ? readonly [SolanaAddress, SolanaAddress, SolanaAddress]
        : N extends 5
          ? readonly [SolanaAddress, SolanaAddress, SolanaAddress, SolanaAddress, SolanaAddress]
          : readonly [SolanaAddress, SolanaAddress, SolanaAddress, SolanaAddress, SolanaAddress, SolanaAddress]

function take<N extends 0 | 1 | 2 | 3 | 5 | 6>(accounts: readonly SolanaAddress[], count: N): Accounts<N> {
  if (accounts.length !== count) throw new LayoutError('the instruction has another number of accounts')
  return accounts as unknown as Accounts<N>
}

/** The base of a seed signs: it stands last, unless it is the funding account, which stands first. */
function takeWithBase<N extends 1 | 2>(accounts: readonly SolanaAddress[], base: SolanaAddress, count: N): Accounts<N> {
  const own = accounts.slice(0, count)
  const rest = accounts.slice(count)
  const separate = count === 1 || own[0] !== base
  if (rest.length > 1 || rest.some((account) => account !== base) || (separate && rest.length === 0))
    throw new LayoutError('the instruction has other accounts than its seed needs')
  return take(own, count) as Accounts<N>
}

function all<T extends StakingInstruction>(reader: Reader, instruction: T): T {
  reader.end()
  return instruction
}
