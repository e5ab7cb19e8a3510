import { addressBytes } from '../../chains/solana/addresses.ts'
import type { ChainAccount, SolanaAddress, TransactionFailure } from '../../chains/solana/chain.ts'
import { decodeInstruction, type StakingInstruction } from '../../chains/solana/instructions.ts'
import type { DecodedMessage } from '../../chains/solana/message.ts'
import { noEpoch, stakeAccountSpace, stakeProgram, systemProgram, voteProgram } from '../../chains/solana/programs.ts'
import { stakeAccountAddress } from '../../chains/solana/stake.ts'
import { decodeStakeAccount, type StakeMeta, type StakeState } from '../../chains/solana/stake-account.ts'
import { lamports } from '../../lib/amounts.ts'

/** Rent reserve of a stake account, and least delegation, in lamports. */
export const RENT = 2_282_880n
export const MINIMUM_DELEGATION = 1_000_000_000n

export type Accounts = ReadonlyMap<SolanaAddress, ChainAccount>

class Failed extends Error {
  readonly failure: TransactionFailure
  constructor(failure: TransactionFailure) {
    super(failure.name)
    this.failure = failure
  }
}

/**
 * What a transaction's message does to accounts: the system and stake programs, as far as stakes need them. All of it or, where an instruction fails,
 * nothing.
 */
export function execute(
  accounts: Accounts,
  message: DecodedMessage,
  epoch: bigint,
): { readonly accounts: Accounts; readonly failure?: TransactionFailure } {
  const next = new Map(accounts)
  for (const [index, raw] of message.instructions.entries()) {
    const fail = (name: string, custom?: number): never => {
      throw new Failed({ name, instruction: index, ...(custom === undefined ? {} : { custom }) })
    }
    const mustSign = (address: SolanaAddress) => message.signers.includes(address) || fail('MissingRequiredSignature')
    try {
      run(next, decodeInstruction(raw), epoch, mustSign, fail)
    } catch (error) {
      if (!(error instanceof Failed)) throw error
      return { accounts, failure: error.failure }
    }
  }
  return { accounts: next }
}

type Fail = (name: string, custom?: number) => never

function run(
  accounts: Map<SolanaAddress, ChainAccount>,
  instruction: StakingInstruction,
  epoch: bigint,
  mustSign: (address: SolanaAddress) => unknown,
  fail: Fail,
): void {
  const held = (address: SolanaAddress): bigint => accounts.get(address)?.lamports ?? 0n
  const move = (from: SolanaAddress, to: SolanaAddress, amount: bigint): void => {
    const source = accounts.get(from)
    if (source === undefined || source.lamports < amount) fail('InsufficientFunds')
    if (source.lamports === amount) accounts.delete(from)
    else accounts.set(from, { ...source, lamports: lamports(source.lamports - amount) })
    accounts.set(to, { ...(accounts.get(to) ?? empty), lamports: lamports(held(to) + amount) })
  }
  const stakeAt = (address: SolanaAddress): StakeState => {
    const account = accounts.get(address)
    if (account?.owner !== stakeProgram) fail('InvalidAccountOwner')
    return decodeStakeAccount(account)
  }
  const put = (address: SolanaAddress, state: StakeState): void => {
    accounts.set(address, { ...(accounts.get(address) ?? empty), owner: stakeProgram, data: encodeStake(state) })
  }
  switch (instruction.kind) {
    case 'compute-unit-limit':
    case 'compute-unit-price':
      return
    case 'transfer':
      mustSign(instruction.from)
      move(instruction.from, instruction.to, instruction.lamports)
      return
    case 'create-account-with-seed': {
      const { from, account, base, seed, lamports: amount } = instruction
      mustSign(from)
      mustSign(base)
      if (account !== stakeAccountAddress(base, seed)) fail('Custom', 5)
      if (accounts.has(account)) fail('Custom', 0)
      move(from, account, amount)
      put(account, { kind: 'uninitialized' })
      return
    }
    case 'allocate-with-seed':
      mustSign(instruction.base)
      if (accounts.get(instruction.account)?.owner === stakeProgram) fail('Custom', 0)
      return
    case 'assign-with-seed':
      mustSign(instruction.base)
      put(instruction.account, { kind: 'uninitialized' })
      return
    case 'initialize': {
      const { account, staker, withdrawer, lockup } = instruction
      if (stakeAt(account).kind !== 'uninitialized') fail('InvalidAccountData')
      if (held(account) < RENT) fail('InsufficientFunds')
      put(account, { kind: 'initialized', meta: { rentExemptReserve: RENT, staker, withdrawer, lockup } })
      return
    }
    case 'delegate': {
      const { account, voteAccount, authority } = instruction
      const state = stakeAt(account)
      if (state.kind !== 'initialized') fail('InvalidAccountData')
      mustSign(authority)
      if (authority !== state.meta.staker) fail('MissingRequiredSignature')
      if (accounts.get(voteAccount)?.owner !== voteProgram) fail('IncorrectProgramId')
      const stake = held(account) - RENT
      if (stake < MINIMUM_DELEGATION) fail('Custom', 12)
      put(account, {
        kind: 'stake',
        meta: state.meta,
        delegation: { voter: voteAccount, stake, activationEpoch: epoch, deactivationEpoch: noEpoch },
      })
      return
    }
    case 'deactivate': {
      const { account, authority } = instruction
      const state = stakeAt(account)
      if (state.kind !== 'stake') fail('InvalidAccountData')
      mustSign(authority)
      if (authority !== state.meta.staker) fail('MissingRequiredSignature')
      if (state.delegation.deactivationEpoch !== noEpoch) fail('Custom', 2)
      put(account, { ...state, delegation: { ...state.delegation, deactivationEpoch: epoch } })
      return
    }
    case 'withdraw': {
      const { account, to, authority, lamports: amount } = instruction
      const state = stakeAt(account)
      mustSign(authority)
      if (state.kind === 'initialized' || state.kind === 'stake') {
        if (authority !== state.meta.withdrawer) fail('MissingRequiredSignature')
        const isOver = state.kind === 'initialized' || state.delegation.deactivationEpoch < epoch
        if (!isOver && amount + state.delegation.stake + RENT > held(account)) fail('InsufficientFunds')
      }
      move(account, to, amount)
      return
    }
    case 'authorize-staker':
    case 'authorize-withdrawer': {
      const { account, authority, to, checked, kind } = instruction
      const state = stakeAt(account)
      if (state.kind !== 'initialized' && state.kind !== 'stake') fail('InvalidAccountData')
      const { meta } = state as Extract<StakeState, { kind: 'initialized' | 'stake' }>
      mustSign(authority)
      if (checked) mustSign(to)
      const may = kind === 'authorize-staker' ? [meta.staker, meta.withdrawer] : [meta.withdrawer]
      if (!may.includes(authority)) fail('MissingRequiredSignature')
      put(account, { ...state, meta: { ...meta, [kind === 'authorize-staker' ? 'staker' : 'withdrawer']: to } } as StakeState)
      return
    }
    case 'other':
    case 'malformed':
      fail('InvalidInstructionData')
  }
}

const empty: ChainAccount = { lamports: lamports(0n), owner: systemProgram, data: new Uint8Array(), executable: false }

/** StakeStateV2 in 200 bytes: what `decodeStakeAccount` reads. */
function encodeStake(state: StakeState): Uint8Array {
  const bytes = Buffer.alloc(stakeAccountSpace)
  const tags = { uninitialized: 0, initialized: 1, stake: 2, 'rewards-pool': 3 } as const
  bytes.writeUInt32LE(tags[state.kind])
  if (state.kind === 'initialized' || state.kind === 'stake') encodeMeta(bytes, state.meta)
  if (state.kind === 'stake') {
    const { voter, stake, activationEpoch, deactivationEpoch } = state.delegation
    bytes.set(addressBytes(voter), 124)
    bytes.writeBigUInt64LE(stake, 156)
    bytes.writeBigUInt64LE(activationEpoch, 164)
    bytes.writeBigUInt64LE(deactivationEpoch, 172)
  }
  return new Uint8Array(bytes)
}

function encodeMeta(bytes: Buffer, { rentExemptReserve, staker, withdrawer, lockup }: StakeMeta): void {
  bytes.writeBigUInt64LE(rentExemptReserve, 4)
  bytes.set(addressBytes(staker), 12)
  bytes.set(addressBytes(withdrawer), 44)
  bytes.writeBigInt64LE(lockup.unixTimestamp, 76)
  bytes.writeBigUInt64LE(lockup.epoch, 84)
  bytes.set(addressBytes(lockup.custodian), 92)
}
