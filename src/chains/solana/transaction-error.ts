import type { SolanaAddress } from './addresses.ts'
import { stakeProgram, systemProgram } from './programs.ts'

/** What an executed or simulated transaction failed with, as the cluster tells it. */
export interface TransactionFailure {
  /** TransactionError's or InstructionError's own name: `BlockhashNotFound`, `InsufficientFunds`, `Custom`. */
  readonly name: string
  /** Which instruction, from 0; absent when the transaction failed as a whole. */
  readonly instruction?: number
  /** The program's own code, for `Custom`. */
  readonly custom?: number
}

/** What a failure means for a stake. */
export type FailureMeaning =
  | 'blockhash-not-found'
  | 'already-processed'
  /** The fee payer can't pay amount and fees, or the account holds less than is withdrawn, or would keep less than its rent reserve. */
  | 'insufficient-funds'
  /** System Custom(0): the address is there already, made by us or funded by a stranger. */
  | 'account-in-use'
  /** Stake Custom(16): rewards are being distributed. Wait. */
  | 'epoch-rewards'
  | 'lockup-in-force'
  | 'already-deactivated'
  | 'too-soon-to-redelegate'
  | 'insufficient-delegation'
  /** A signature is missing, or not of the authority that stands on chain. */
  | 'wrong-authority'
  | 'signature-failure'
  /** An account of the transaction is locked by another, or the block is full: the same bytes later. */
  | 'busy'
  /** The transaction as such is wrong, or a program failed for another reason. */
  | 'failed'

/** Reads the JSON of a TransactionError: a name, `{InstructionError: [index, name | {Custom: n}]}`, or `{Name: …}`. */
export function readTransactionError(value: unknown): TransactionFailure | undefined {
  if (value === null || value === undefined) return undefined
  if (typeof value === 'string') return { name: plain(value) }
  if (typeof value !== 'object') return { name: 'Unknown' }
  const [entry] = Object.entries(value)
  if (entry === undefined) return { name: 'Unknown' }
  const [name, detail] = entry
  if (name !== 'InstructionError' || !Array.isArray(detail)) return { name: plain(name) }
  const [index, reason] = detail as readonly unknown[]
  const instruction = typeof index === 'number' ? { instruction: index } : {}
  if (typeof reason === 'string') return { name: plain(reason), ...instruction }
  const [inner] = reason !== null && typeof reason === 'object' ? Object.entries(reason) : []
  if (inner === undefined) return { name: 'Unknown', ...instruction }
  const [kind, code] = inner
  return { name: plain(kind), ...instruction, ...(typeof code === 'number' ? { custom: code } : {}) }
}

/** A name as the cluster has it: anything else stays out of messages. */
const plain = (name: string): string => (/^[A-Za-z0-9]{1,64}$/.test(name) ? name : 'Unknown')

const ofTransaction: Readonly<Record<string, FailureMeaning>> = {
  BlockhashNotFound: 'blockhash-not-found',
  AlreadyProcessed: 'already-processed',
  AccountNotFound: 'insufficient-funds',
  InsufficientFundsForFee: 'insufficient-funds',
  InsufficientFundsForRent: 'insufficient-funds',
  InvalidRentPayingAccount: 'insufficient-funds',
  SignatureFailure: 'signature-failure',
  MissingSignatureForFee: 'signature-failure',
  AccountInUse: 'busy',
  WouldExceedMaxBlockCostLimit: 'busy',
  WouldExceedMaxAccountCostLimit: 'busy',
  WouldExceedAccountDataBlockLimit: 'busy',
  WouldExceedAccountDataTotalLimit: 'busy',
  ClusterMaintenance: 'busy',
}

const ofInstruction: Readonly<Record<string, FailureMeaning>> = {
  InsufficientFunds: 'insufficient-funds',
  MissingRequiredSignature: 'wrong-authority',
  AccountAlreadyInitialized: 'account-in-use',
}

/** SystemError. */
const ofSystem: Readonly<Record<number, FailureMeaning>> = { 0: 'account-in-use', 1: 'insufficient-funds' }
/** StakeError. */
const ofStake: Readonly<Record<number, FailureMeaning>> = {
  1: 'lockup-in-force',
  2: 'already-deactivated',
  3: 'too-soon-to-redelegate',
  12: 'insufficient-delegation',
  16: 'epoch-rewards',
}

/** @param programs the message's programs, by instruction: a custom code means something only with its program. */
export function meaningOf(failure: TransactionFailure, programs: readonly SolanaAddress[] = []): FailureMeaning {
  const { name, instruction, custom } = failure
  if (instruction === undefined) return ofTransaction[name] ?? 'failed'
  if (custom === undefined) return ofInstruction[name] ?? 'failed'
  const program = programs[instruction]
  if (program === systemProgram) return ofSystem[custom] ?? 'failed'
  if (program === stakeProgram) return ofStake[custom] ?? 'failed'
  return 'failed'
}

/** For messages: `InstructionError 2: Custom 16`. Holds nothing but names and numbers. */
export const describeFailure = ({ name, instruction, custom }: TransactionFailure): string =>
  `${instruction === undefined ? '' : `instruction ${instruction + 1}: `}${name}${custom === undefined ? '' : ` ${custom}`}`
