import type { Lamports } from '../../lib/amounts.ts'
import type { Blockhash, SolanaAddress } from './addresses.ts'
import { decodeInstruction, type StakingInstruction } from './instructions.ts'
import { type DecodedMessage, decodeMessage, MessageError } from './message.ts'
import {
  clockSysvar,
  computeBudgetProgram,
  maxTransactionBytes,
  rentSysvar,
  stakeAccountSpace,
  stakeConfig,
  stakeHistorySysvar,
  stakeProgram,
  systemProgram,
} from './programs.ts'
import { type NewAuthority, priorityFee, stakeAccountAddress } from './stake.ts'

export type TransactionMismatchCode =
  /** Not the canonical encoding of a message. */
  | 'malformed'
  | 'too-large'
  /** Not the legacy form: what it means may depend on the chain's state. */
  | 'versioned'
  | 'lookup-table'
  /** Would stay valid for good, instead of expiring. */
  | 'durable-nonce'
  | 'wrong-blockhash'
  | 'wrong-fee-payer'
  /** Asks for a signature that this transaction does not need, or lacks one. */
  | 'wrong-signers'
  | 'unexpected-program'
  /** Another instruction than this transaction has, one too many, or one twice. */
  | 'unexpected-instruction'
  | 'malformed-instruction'
  | 'missing-instruction'
  | 'wrong-order'
  /** An account that no instruction names. */
  | 'unexpected-account'
  | 'wrong-sysvar'
  | 'wrong-stake-account'
  /** The lamports come from another account than the fee payer. */
  | 'wrong-source'
  | 'wrong-seed'
  | 'wrong-space'
  | 'wrong-owner'
  | 'wrong-amount'
  | 'wrong-stake-authority'
  | 'wrong-withdraw-authority'
  | 'lockup'
  | 'wrong-vote-account'
  | 'wrong-destination'
  /** It would make somebody else an authority, or without that one's signature. */
  | 'wrong-new-authority'
  | 'compute-limit'
  | 'priority-fee-too-high'

/** One rule that an answer of the staking service breaks. The message says what was expected and quotes nothing of the answer. */
export interface TransactionMismatch {
  readonly code: TransactionMismatchCode
  readonly message: string
}

/** What the resource's own spec, its signers and the operator's policy say: the only authority. */
export type ExpectedTransaction = {
  readonly feePayer: SolanaAddress
  /** Absent: whatever the message says. */
  readonly recentBlockhash?: Blockhash
  readonly limits: TransactionLimits
} & ExpectedAction

export interface TransactionLimits {
  readonly maxComputeUnits: number
  /** For the whole transaction, on top of the base fee. */
  readonly maxPriorityFeeLamports: bigint
}

export type ExpectedAction =
  | {
      readonly kind: 'stake'
      /** The stake's id, of which the account's address is made. */
      readonly seed: string
      /** Exactly what leaves the fee payer for the stake account, the rent reserve among it. */
      readonly amount: Lamports
      readonly stakeAuthority: SolanaAddress
      readonly withdrawAuthority: SolanaAddress
      readonly voteAccount: SolanaAddress
      /** Whether the address holds lamports of strangers: then it is made by transfer, allocate and assign; otherwise only by create. */
      readonly prefunded: boolean
    }
  | { readonly kind: 'deactivation'; readonly stakeAccount: SolanaAddress; readonly stakeAuthority: SolanaAddress }
  | {
      readonly kind: 'withdrawal'
      readonly stakeAccount: SolanaAddress
      readonly withdrawAuthority: SolanaAddress
      readonly destination: SolanaAddress
      /** All that the account holds. */
      readonly amount: Lamports
    }
  | {
      readonly kind: 'authorization'
      readonly stakeAccount: SolanaAddress
      /** Who may replace the stake authority: itself, or the withdraw authority. One of them does. */
      readonly stakeAuthority: SolanaAddress
      readonly withdrawAuthority: SolanaAddress
      /** Absent: it stays. */
      readonly newStaker: NewAuthority | undefined
      readonly newWithdrawer: NewAuthority | undefined
      /** Who replaces the stake authority. */
      readonly stakerBy: SolanaAddress
    }

/**
 * Compares a message with what was asked for, instruction by instruction, and gives all mismatches. An empty list means: signing these bytes
 * does exactly the expected, for this money, under these authorities, and for no more than the fees that the limits allow.
 * What the chain says meanwhile (is the account there, does the vote account vote) is not this function's to say: simulate before signing.
 */
export function verifyTransaction(message: Uint8Array, expected: ExpectedTransaction): readonly TransactionMismatch[] {
  let decoded: DecodedMessage
  try {
    decoded = decodeMessage(message)
  } catch (error) {
    if (error instanceof MessageError) return [{ code: error.code, message: error.message }]
    throw error
  }
  const mismatches: TransactionMismatch[] = []
  const no = (code: TransactionMismatchCode, text: string) => {
    mismatches.push({ code, message: text })
  }
  const must = (holds: boolean, code: TransactionMismatchCode, text: string) => {
    if (!holds) no(code, text)
  }

  const plan = planOf(expected)
  must(
    1 + 64 * decoded.signers.length + message.length <= maxTransactionBytes,
    'too-large',
    'the signed transaction does not fit into a packet',
  )
  must(decoded.feePayer === expected.feePayer, 'wrong-fee-payer', `the fee payer is not ${expected.feePayer}`)
  must(
    expected.recentBlockhash === undefined || decoded.recentBlockhash === expected.recentBlockhash,
    'wrong-blockhash',
    'the blockhash is not the one that was told with the transaction',
  )
  must(sameSet(decoded.signers, plan.signers), 'wrong-signers', `the required signers are not exactly ${plan.signers.join(' and ')}`)
  const named = new Set([decoded.feePayer, ...decoded.instructions.flatMap(({ program, accounts }) => [program, ...accounts])])
  must(
    decoded.accounts.every((account) => named.has(account)),
    'unexpected-account',
    'the message holds an account that no instruction names',
  )

  const found = decoded.instructions.map(decodeInstruction)
  checkBudget(found, expected.limits, no)
  const rest = found.filter(({ kind }) => kind !== 'compute-unit-limit' && kind !== 'compute-unit-price')
  for (const instruction of rest) {
    if (instruction.kind === 'other') no(...refusalOf(instruction))
    else if (instruction.kind === 'malformed')
      no('malformed-instruction', `an instruction of ${programName(instruction.program)} has other data or accounts than its kind has`)
  }
  const actions = rest.filter(({ kind }) => kind !== 'other' && kind !== 'malformed')
  const kinds = plan.steps.map(({ kind }) => kind)
  for (const { kind } of actions) {
    const have = actions.filter((action) => action.kind === kind).length
    const want = kinds.filter((step) => step === kind).length
    if (have > want)
      no('unexpected-instruction', `the instruction ${kind} stands in the message more often than the ${want} times it should`)
  }
  for (const kind of kinds) {
    must(
      actions.some((action) => action.kind === kind),
      'missing-instruction',
      `the instruction ${kind} is missing`,
    )
  }
  if (mismatches.every(({ code }) => !structural.has(code)))
    must(
      actions.every(({ kind }, index) => kind === kinds[index]),
      'wrong-order',
      `the instructions are not in the order ${kinds.join(', ')}`,
    )
  // What is wrong in one is told also when others are too many: a person reads all of it.
  for (const action of actions) plan.steps.find(({ kind }) => kind === action.kind)?.check(action, must)
  return dedupe(mismatches)
}

type Must = (holds: boolean, code: TransactionMismatchCode, text: string) => void
interface Step {
  readonly kind: StakingInstruction['kind']
  readonly check: (instruction: StakingInstruction, must: Must) => void
}
interface Plan {
  readonly signers: readonly SolanaAddress[]
  readonly steps: readonly Step[]
}

const structural: ReadonlySet<TransactionMismatchCode> = new Set([
  'durable-nonce',
  'unexpected-program',
  'unexpected-instruction',
  'malformed-instruction',
  'missing-instruction',
])

/** A step of one kind, whose check sees that kind. */
const step = <K extends StakingInstruction['kind']>(
  kind: K,
  check: (instruction: Extract<StakingInstruction, { kind: K }>, must: Must) => void,
): Step => ({
  kind,
  check: (instruction, must) => {
    if (instruction.kind === kind) check(instruction as Extract<StakingInstruction, { kind: K }>, must)
  },
})

function planOf(expected: ExpectedTransaction): Plan {
  const { feePayer } = expected
  switch (expected.kind) {
    case 'stake':
      return stakePlan(feePayer, expected)
    case 'deactivation':
      return {
        signers: [...new Set([feePayer, expected.stakeAuthority])],
        steps: [
          step('deactivate', ({ account, authority, sysvars }, must) => {
            must(account === expected.stakeAccount, ...wrongAccount(expected.stakeAccount))
            must(authority === expected.stakeAuthority, ...wrongStaker(expected.stakeAuthority))
            must(noneOr(sysvars, [clockSysvar]), ...wrongSysvar)
          }),
        ],
      }
    case 'withdrawal':
      return {
        signers: [...new Set([feePayer, expected.withdrawAuthority])],
        steps: [
          step('withdraw', ({ account, to, authority, lamports, sysvars }, must) => {
            must(account === expected.stakeAccount, ...wrongAccount(expected.stakeAccount))
            must(to === expected.destination, 'wrong-destination', `the lamports do not go to ${expected.destination}`)
            must(authority === expected.withdrawAuthority, ...wrongWithdrawer(expected.withdrawAuthority))
            must(lamports === expected.amount, 'wrong-amount', `the amount is not ${expected.amount} lamports, all that the account holds`)
            must(noneOr(sysvars, [clockSysvar, stakeHistorySysvar]), ...wrongSysvar)
          }),
        ],
      }
    case 'authorization':
      return authorizationPlan(feePayer, expected)
  }
}

/** Each role once, by whom it may be replaced, to whom it is handed over, and with that one's signature where it must sign. */
function authorizationPlan(feePayer: SolanaAddress, expected: Extract<ExpectedAction, { kind: 'authorization' }>): Plan {
  const { stakeAccount, stakeAuthority, withdrawAuthority, newStaker, newWithdrawer, stakerBy } = expected
  const handedOver = (role: 'stake' | 'withdraw', by: SolanaAddress, to: NewAuthority) =>
    step(role === 'stake' ? 'authorize-staker' : 'authorize-withdrawer', (given, must) => {
      must(given.account === stakeAccount, ...wrongAccount(stakeAccount))
      if (role === 'stake') must(given.authority === by, ...wrongStaker(by))
      else must(given.authority === by, ...wrongWithdrawer(by))
      must(given.to === to.address, 'wrong-new-authority', `the new ${role} authority is not ${to.address}`)
      must(given.checked || !to.isChecked, 'wrong-new-authority', `the new ${role} authority ${to.address} would not sign`)
      must(!given.checked || to.isChecked, 'wrong-new-authority', `the new ${role} authority ${to.address} would have to sign`)
    })
  if (stakerBy !== stakeAuthority && stakerBy !== withdrawAuthority) throw new RangeError('only an authority can replace an authority')
  const signers = [
    feePayer,
    ...(newStaker === undefined ? [] : [stakerBy, ...(newStaker.isChecked ? [newStaker.address] : [])]),
    ...(newWithdrawer === undefined ? [] : [withdrawAuthority, ...(newWithdrawer.isChecked ? [newWithdrawer.address] : [])]),
  ]
  return {
    signers: [...new Set(signers)],
    steps: [
      ...(newStaker === undefined ? [] : [handedOver('stake', stakerBy, newStaker)]),
      ...(newWithdrawer === undefined ? [] : [handedOver('withdraw', withdrawAuthority, newWithdrawer)]),
    ],
  }
}

function stakePlan(feePayer: SolanaAddress, expected: Extract<ExpectedAction, { kind: 'stake' }>): Plan {
  const { seed, amount, stakeAuthority, withdrawAuthority, voteAccount } = expected
  const address = stakeAccountAddress(feePayer, seed)
  const seeded = (given: { account: SolanaAddress; base: SolanaAddress; seed: string; owner: SolanaAddress }, must: Must) => {
    must(given.account === address, ...wrongAccount(address))
    must(given.base === feePayer && given.seed === seed, 'wrong-seed', 'the stake account is not made from the fee payer and the stake id')
    must(given.owner === stakeProgram, 'wrong-owner', 'the account would not belong to the stake program')
  }
  const space = (bytes: bigint, must: Must) =>
    must(bytes === BigInt(stakeAccountSpace), 'wrong-space', `the account would not have ${stakeAccountSpace} bytes`)
  const money = (from: SolanaAddress, lamports: bigint, must: Must) => {
    must(from === feePayer, 'wrong-source', `the lamports do not come from ${feePayer}`)
    must(lamports === amount, 'wrong-amount', `the amount is not ${amount} lamports`)
  }
  const fund: readonly Step[] = expected.prefunded
    ? [
        step('transfer', ({ from, to, lamports }, must) => {
          must(to === address, ...wrongAccount(address))
          money(from, lamports, must)
        }),
        step('allocate-with-seed', (given, must) => {
          seeded(given, must)
          space(given.space, must)
        }),
        step('assign-with-seed', seeded),
      ]
    : [
        step('create-account-with-seed', (given, must) => {
          seeded(given, must)
          space(given.space, must)
          money(given.from, given.lamports, must)
        }),
      ]
  return {
    signers: [...new Set([feePayer, stakeAuthority])],
    steps: [
      ...fund,
      step('initialize', ({ account, staker, withdrawer, lockup, sysvars }, must) => {
        must(account === address, ...wrongAccount(address))
        must(staker === stakeAuthority, ...wrongStaker(stakeAuthority))
        must(withdrawer === withdrawAuthority, ...wrongWithdrawer(withdrawAuthority))
        // Also a lockup that is over names a custodian, who could set a new one.
        must(
          lockup.unixTimestamp === 0n && lockup.epoch === 0n && lockup.custodian === systemProgram,
          'lockup',
          'the account would have a lockup or a custodian',
        )
        must(noneOr(sysvars, [rentSysvar]), ...wrongSysvar)
      }),
      step('delegate', (given, must) => {
        must(given.account === address, ...wrongAccount(address))
        must(given.voteAccount === voteAccount, 'wrong-vote-account', `the stake is not delegated to ${voteAccount}`)
        must(given.authority === stakeAuthority, ...wrongStaker(stakeAuthority))
        must(noneOr(given.sysvars, [clockSysvar, stakeHistorySysvar, stakeConfig]), ...wrongSysvar)
      }),
    ],
  }
}

type No = (code: TransactionMismatchCode, text: string) => void

/** Limit and price may stand once each, or not at all; the runtime's default limit then counts, 200,000 units an instruction. */
function checkBudget(found: readonly StakingInstruction[], limits: TransactionLimits, no: No): void {
  const units = found.flatMap((instruction) => (instruction.kind === 'compute-unit-limit' ? [instruction.units] : []))
  const prices = found.flatMap((instruction) => (instruction.kind === 'compute-unit-price' ? [instruction.microLamports] : []))
  if (units.length > 1 || prices.length > 1) no('unexpected-instruction', 'the compute budget is set twice')
  const others = found.length - units.length - prices.length
  const used = units.length === 0 ? Math.min(200_000 * others, 1_400_000) : Math.max(...units)
  if (units.some((limit) => limit > limits.maxComputeUnits || limit === 0))
    no('compute-limit', `the compute unit limit is not within 1 to ${limits.maxComputeUnits}`)
  const fee = prices.reduce((highest, price) => bigger(highest, priorityFee(used, price)), 0n)
  if (fee > limits.maxPriorityFeeLamports) no('priority-fee-too-high', `the priority fee is over ${limits.maxPriorityFeeLamports} lamports`)
}

function refusalOf({ program, name }: Extract<StakingInstruction, { kind: 'other' }>): [TransactionMismatchCode, string] {
  if (program === systemProgram && name?.includes('Nonce') === true)
    return ['durable-nonce', 'the transaction uses a durable nonce: it would not expire']
  const known = [systemProgram, stakeProgram, computeBudgetProgram].includes(program)
  if (!known) return ['unexpected-program', 'an instruction is for a program that a stake does not need']
  return ['unexpected-instruction', `an instruction${name === undefined ? '' : ` ${name}`} of ${programName(program)} does not belong here`]
}

const programName = (program: SolanaAddress): string =>
  program === systemProgram ? 'the system program' : program === stakeProgram ? 'the stake program' : 'the compute budget'

const wrongAccount = (address: SolanaAddress) => ['wrong-stake-account', `the account is not the stake account ${address}`] as const
const wrongStaker = (address: SolanaAddress) => ['wrong-stake-authority', `the stake authority is not ${address}`] as const
const wrongWithdrawer = (address: SolanaAddress) => ['wrong-withdraw-authority', `the withdraw authority is not ${address}`] as const
const wrongSysvar = ['wrong-sysvar', 'an instruction names other sysvars than it needs'] as const

/** The short form of the stake program's version 5 names no sysvars. */
const noneOr = (sysvars: readonly string[], expected: readonly string[]): boolean => sysvars.length === 0 || sameList(sysvars, expected)
const sameList = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((item, index) => item === b[index])
const sameSet = (a: readonly string[], b: readonly string[]): boolean => sameList([...a].sort(), [...b].sort())
const bigger = (a: bigint, b: bigint): bigint => (a > b ? a : b)

const dedupe = (mismatches: readonly TransactionMismatch[]): readonly TransactionMismatch[] => [
  ...new Map(mismatches.map((mismatch) => [`${mismatch.code} ${mismatch.message}`, mismatch])).values(),
]
