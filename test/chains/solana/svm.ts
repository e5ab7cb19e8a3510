import { type Address, type EncodedAccount, getTransactionDecoder, type Lamports } from '@solana/kit'
import { Clock, EpochSchedule, FailedTransactionMetadata, LiteSVM, StakeHistory, StakeHistoryEntry } from 'litesvm'
import { systemProgram } from '../../../src/chains/solana/programs.ts'
import type { StakeHistoryEntry as Entry } from '../../../src/chains/solana/sysvars.ts'
import { errorJson, type TransactionErrorJson } from './error-json.ts'

/** An account as the runtime holds it. */
export interface Account {
  readonly lamports: bigint
  readonly owner: string
  readonly data: Uint8Array
  readonly executable: boolean
}

export interface Execution {
  readonly err: TransactionErrorJson | null
  readonly logs: readonly string[]
  readonly unitsConsumed: bigint
  /** After a simulation that succeeds. */
  readonly accounts?: ReadonlyMap<string, Account>
}

/** The real system, stake and vote programs in the real runtime, by litesvm; without blocks, blockhashes or history, which ledger.ts adds. */
export interface Svm {
  account(address: string): Account | undefined
  setAccount(address: string, account: Account | undefined): void
  execute(transaction: Uint8Array): Execution
  simulate(transaction: Uint8Array): Execution
  rentExemption(bytes: number): bigint
  setEpochSchedule(slotsPerEpoch: bigint): void
  setClock(clock: { slot: bigint; epoch: bigint; epochStart: bigint; unixTimestamp: bigint }): void
  setStakeHistory(history: ReadonlyMap<bigint, Entry>): void
  setEpochRewards(active: boolean): void
}

export function createSvm(): Svm {
  // The ledger knows which blockhash lives and which transaction was processed.
  const svm = new LiteSVM().withBlockhashCheck(false).withTransactionHistory(0n)
  const decoder = getTransactionDecoder()

  const executionOf = (result: ReturnType<LiteSVM['sendTransaction']>): Execution => {
    const failed = result instanceof FailedTransactionMetadata
    const meta = failed ? result.meta() : result
    return { err: failed ? errorJson(result.err()) : null, logs: meta.logs(), unitsConsumed: meta.computeUnitsConsumed() }
  }

  return {
    account: (address) => {
      const found = svm.getAccount(address as Address)
      return found.exists ? accountOf(found) : undefined
    },
    setAccount: (address, account) => {
      svm.setAccount({
        address: address as Address,
        lamports: (account?.lamports ?? 0n) as Lamports,
        programAddress: (account?.owner ?? systemProgram) as Address,
        data: account?.data ?? new Uint8Array(),
        executable: account?.executable ?? false,
        space: BigInt(account?.data.length ?? 0),
      })
    },
    execute: (transaction) => executionOf(svm.sendTransaction(decoder.decode(transaction))),
    simulate: (transaction) => {
      svm.withSigverify(false)
      try {
        const result = svm.simulateTransaction(decoder.decode(transaction))
        if (result instanceof FailedTransactionMetadata) return executionOf(result)
        const meta = result.meta()
        const accounts = new Map(result.postAccounts().map((account) => [account.address as string, accountOf(account)]))
        return { err: null, logs: meta.logs(), unitsConsumed: meta.computeUnitsConsumed(), accounts }
      } finally {
        svm.withSigverify(true)
      }
    },
    rentExemption: (bytes) => svm.minimumBalanceForRentExemption(BigInt(bytes)),
    setEpochSchedule: (slotsPerEpoch) => svm.setEpochSchedule(new EpochSchedule(slotsPerEpoch, slotsPerEpoch, false, 0n, 0n)),
    setClock: ({ slot, epoch, epochStart, unixTimestamp }) => svm.setClock(new Clock(slot, epochStart, epoch, epoch + 1n, unixTimestamp)),
    setStakeHistory: (history) => {
      const object = new StakeHistory()
      for (const [epoch, { effective, activating, deactivating }] of history)
        object.add(epoch, new StakeHistoryEntry(effective, activating, deactivating))
      svm.setStakeHistory(object)
    },
    setEpochRewards: (active) => {
      const rewards = svm.getEpochRewards()
      rewards.active = active
      svm.setEpochRewards(rewards)
    },
  }
}

const accountOf = ({ lamports, programAddress, data, executable }: EncodedAccount): Account => ({
  lamports,
  owner: programAddress,
  data: Uint8Array.from(data),
  executable,
})
