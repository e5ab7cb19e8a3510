import { z } from 'zod'
import type { BeaconValidator } from '../../chains/ethereum/beacon.ts'
import { depositData, type EthereumStakeBody, unsignedTransaction } from '../../contract/schemas/ethereum-stake.ts'
import { gwei } from '../../lib/amounts.ts'
import type { NewStake, StakeRow } from '../store/stakes.ts'

/** What is shown of a row, beside its deposit. */
type ShownStake = Omit<
  StakeRow,
  'check_at' | 'checked_head' | 'look_at' | 'consensus_at' | 'idempotency_key' | 'deposit_data' | 'unsigned_transaction'
>
type NewRow = Omit<NewStake, 'deposit_data' | 'unsigned_transaction'>

type Deposit = Pick<EthereumStakeBody, 'depositData' | 'unsignedTransaction'>

/** The deposit of a stored stake. */
const depositOf = (row: Pick<StakeRow, 'deposit_data' | 'unsigned_transaction'>): Deposit => ({
  depositData: z.decode(depositData, row.deposit_data as z.input<typeof depositData>),
  unsignedTransaction: z.decode(unsignedTransaction, row.unsigned_transaction as z.input<typeof unsignedTransaction>),
})

/** A stored stake as the contract's resource, with what the beacon chain last showed of its validator, if anything. */
export const stakeBody = (row: StakeRow, seen: BeaconValidator | undefined): EthereumStakeBody => bodyOf(row, depositOf(row), seen)

/** A stake that is about to be stored. */
export const newStakeBody = (row: NewRow, deposit: Deposit): EthereumStakeBody =>
  bodyOf(
    {
      ...{ ...row, status: 'awaiting_submission', hash: null, block_number: null, block_hash: null, failure_reason: null },
      ...{ consensus_status: 'pending', consensus_reason: null, keys_provisioned_at: null },
    },
    deposit,
    undefined,
  )

const bodyOf = (row: ShownStake, deposit: Deposit, seen: BeaconValidator | undefined): EthereumStakeBody => ({
  stakeId: row.id,
  network: row.network,
  amountEth: gwei(row.amount_gwei),
  withdrawalAddress: row.withdrawal_address,
  credentialsType: row.credentials_type,
  ...(row.external_reference === null ? {} : { externalReference: row.external_reference }),
  ...deposit,
  transaction: {
    status: row.status,
    ...(row.hash === null ? {} : { hash: row.hash }),
    ...(row.block_number === null ? {} : { blockNumber: Number(row.block_number) }),
    ...(row.block_hash === null ? {} : { blockHash: row.block_hash as `0x${string}` }),
    ...(row.failure_reason === null ? {} : { failureReason: row.failure_reason }),
  },
  ...(row.withdrawal_is_contract === true
    ? {
        warnings: [
          {
            code: 'withdrawal-address-is-contract',
            detail: `${row.withdrawal_address} is a contract that is not known here: credentials can never be changed, and what it can't pay out is lost`,
          },
        ],
      }
    : {}),
  ...(row.status === 'confirmed'
    ? { consensus: { status: row.consensus_status, ...(row.consensus_reason === null ? {} : { reason: row.consensus_reason }) } }
    : {}),
  keysProvisioned: row.keys_provisioned_at !== null,
  validator:
    seen === undefined
      ? { pubkey: row.pubkey, status: 'unknown' }
      : {
          pubkey: row.pubkey,
          index: seen.index,
          status: seen.status,
          balanceGwei: seen.balanceGwei,
          ...(seen.activationEpoch === undefined ? {} : { activationEpoch: seen.activationEpoch }),
          ...(seen.exitEpoch === undefined ? {} : { exitEpoch: seen.exitEpoch }),
        },
  createdAt: row.created_at.toISOString(),
})
