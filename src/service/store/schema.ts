import type { ColumnType, Generated } from 'kysely'
import type { Address, BlockHash, Hash, Hex, Pubkey } from '../../chains/ethereum/chain.ts'
import type { SolanaStakesTable, SolanaTransactionsTable } from './solana-schema.ts'
import type { WebhookDeliveriesTable, WebhookEndpointsTable, WebhookSecretsTable } from './webhooks-schema.ts'

/** The tables, as Kysely sees them. `int8` is a bigint, `timestamptz` a Date, `jsonb` a parsed value, on PGlite and on PostgreSQL alike. */
export interface Database {
  api_keys: ApiKeysTable
  audit_log: AuditLogTable
  rate_limits: RateLimitsTable
  idempotency_keys: IdempotencyKeysTable
  external_references: ExternalReferencesTable
  key_counters: KeyCountersTable
  ethereum_stakes: EthereumStakesTable
  ethereum_stake_hashes: EthereumStakeHashesTable
  ethereum_requests: EthereumRequestsTable
  ethereum_request_hashes: EthereumRequestHashesTable
  request_marks: RequestMarksTable
  unreported_requests: UnreportedRequestsTable
  keystore_exports: KeystoreExportsTable
  deposit_marks: DepositMarksTable
  unknown_deposits: UnknownDepositsTable
  solana_stakes: SolanaStakesTable
  solana_transactions: SolanaTransactionsTable
  webhook_endpoints: WebhookEndpointsTable
  webhook_secrets: WebhookSecretsTable
  webhook_deliveries: WebhookDeliveriesTable
}

export interface KeystoreExportsTable {
  pubkey: Pubkey
  exported_at: Date
  /** Host and folder, for people. */
  place: string
}

/** How far the deposits of everybody on a network were gone through. A restored copy is as far as it was then. */
export interface DepositMarksTable {
  network: string
  block: bigint
  /** Of deposits up to that block. */
  count: bigint
  check_at: ColumnType<Date, Date | undefined, Date>
}

/** Deposits to withdrawal addresses of this database's paid stakes, for validator keys that it did not know. */
export interface UnknownDepositsTable {
  network: string
  pubkey: Pubkey
  /** Of the transaction. */
  hash: Hash
  block_number: bigint
  withdrawal_address: Address
  amount_gwei: bigint
  seen_at: Date
  /** A person has said that it is no stake of this service. */
  dismissed_at: Date | null
}

export interface ApiKeysTable {
  id: string
  account: string
  label: string
  /** SHA-256 of the key's text, in hex. The text itself is shown once and stored nowhere. */
  key_hash: string
  scopes: string[]
  created_at: Date
  expires_at: Date | null
  revoked_at: Date | null
  /** Null: all. */
  networks: string[] | null
  /** Operations of the contract; null: all that the scopes permit. */
  operations: string[] | null
  /** Addresses and blocks of them; null: from anywhere. */
  address_ranges: string[] | null
  /** A minute old at most while the key is in use. */
  last_used_at: Date | null
  /** The key that has replaced it. */
  rotated_to: string | null
}

export interface AuditLogTable {
  /** Time-ordered, as a stake's. */
  id: string
  at: Date
  account: string
  /** Null: an administrator, by the command line. */
  key_id: string | null
  /** An operation of the contract, or of the command line (`api-keys create`). */
  operation: string
  method: string | null
  path: string | null
  idempotency_key: string | null
  request_id: string | null
  address: string | null
  /** Null: no answer was sent, or the instance ended before it noted which. */
  status: number | null
  /** What was created or answered about. */
  resource_id: string | null
}

export interface RateLimitsTable {
  subject: string
  window_start: Date
  /** Of this window, by all instances together. */
  taken: bigint
  /** Of the last who asked. */
  granted: bigint
}

export interface IdempotencyKeysTable {
  account: string
  key: string
  /** SHA-256 of method, path and canonical body, in hex. */
  fingerprint: string
  /** Who works on it, while there is no answer yet. */
  owner: string
  /** A holder that crashed is superseded after this. */
  lease_until: ColumnType<Date, Date | undefined, Date>
  /** Null while it is being worked on. */
  status: number | null
  /** The answer's body as it was sent. */
  body: string | null
}

export interface ExternalReferencesTable {
  account: string
  reference: string
  resource_id: string
}

export interface KeyCountersTable {
  /** Names the seed without telling anything of it: SHA-256 of the master public key. */
  seed_fingerprint: string
  /** Of versions that counted; kept for the row's sake. */
  next_index: bigint
}

export type StakeTransactionStatus = 'awaiting_submission' | 'submitted' | 'confirmed' | 'failed'

export interface EthereumStakesTable {
  /** Time-ordered (UUID version 7 without hyphens), so that lists go by it. */
  id: string
  account: string
  network: string
  amount_gwei: bigint
  withdrawal_address: Address
  credentials_type: '0x01' | '0x02'
  key_index: bigint
  pubkey: Pubkey
  /** As it was handed out, verbatim: a stake's deposit data never changes. */
  deposit_data: ColumnType<unknown, string, never>
  unsigned_transaction: ColumnType<unknown, string, never>
  external_reference: string | null
  status: Generated<StakeTransactionStatus | 'cancelled'>
  /** The hash that counts: the one that is mined, else the last one reported. */
  hash: Hash | null
  block_number: bigint | null
  block_hash: BlockHash | null
  failure_reason: string | null
  created_at: Date
  /** When the tracker looks again; moved ahead by whoever takes it, so that several instances share the work. */
  check_at: ColumnType<Date, Date | undefined, Date>
  /** Height of the chain's head at the last look: the same head can tell nothing new. Null: look anyway. */
  checked_head: bigint | null
  /** When a stake that is not confirmed is looked for again among the deposits. */
  look_at: ColumnType<Date, Date | undefined, Date>
  withdrawal_is_contract: boolean | null
  /** What the consensus layer made of the deposit. */
  consensus_status: Generated<ConsensusStatus>
  /** With `dropped`: the rule. With `pending`: where it stands. */
  consensus_reason: string | null
  /** When a confirmed stake that is not decided is looked at again. */
  consensus_at: ColumnType<Date, Date | undefined, Date>
  /** When a validator client was seen to hold the key, after it was pushed there. */
  keys_provisioned_at: ColumnType<Date | null, Date | null | undefined, Date | null>
  /** Under which it was made; null of one from before this was kept. */
  idempotency_key: ColumnType<string | null, string | null | undefined, never>
}

export interface EthereumStakeHashesTable {
  stake_id: string
  hash: Hash
  submitted_at: Date
  /** Known as soon as the chain has shown the transaction. */
  sender: Address | null
  nonce: bigint | null
}

export interface EthereumRequestsTable {
  /** Time-ordered, as a stake's. */
  id: string
  account: string
  network: string
  kind: 'exit' | 'withdrawal'
  pubkey: Pubkey
  /** Null for an exit, which has no amount. */
  amount_gwei: bigint | null
  /** The validator's withdrawal address when the request was made, in EIP-55 form. */
  sender: Address
  /** As it was handed out, verbatim. */
  unsigned_transaction: ColumnType<unknown, string, never>
  /** Wei in digits: a fee may be more than an int8 holds. */
  fee_wei: string
  quoted_at_block: bigint
  external_reference: string | null
  status: Generated<RequestStatus>
  /** The hash that counts: the one that is mined, else the last one reported. */
  hash: Hash | null
  block_number: bigint | null
  block_hash: BlockHash | null
  failure_reason: string | null
  consensus_status: Generated<ConsensusStatus>
  /** With `dropped`: the rules. With `pending`: why it can't be told. */
  consensus_reason: string | null
  /** The block that handed the request on to the consensus layer, which the judgement depends on. */
  consensus_block: bigint | null
  /** Its hash; null of one that was judged before this was kept. */
  consensus_block_hash: BlockHash | null
  /** From Gloas on: the slot and root of the beacon chain's block that processed it. */
  consensus_slot: bigint | null
  consensus_root: Hex | null
  /** While it waits in the EIP-7002 contract's queue: its place, and the block whose turn it is; both hold for `block_hash` alone. */
  queue_position: bigint | null
  queue_turn: bigint | null
  /** Of an exit: deposits for the validator that are queued, and the epoch after which they are credited. */
  queued_deposits_gwei: bigint | null
  queued_deposits_epoch: bigint | null
  /** Of an accepted withdrawal. */
  payment_status: PaymentStatus | null
  /** What is to be paid, or was. */
  payable_gwei: bigint | null
  withdrawable_epoch: bigint | null
  paid_block: bigint | null
  payment_reason: string | null
  /** The slot of the last finalized state that had it in the queue. */
  payment_seen_slot: bigint | null
  /** Nothing can change any more: cancelled, failed, or judged on final blocks. */
  settled: Generated<boolean>
  created_at: Date
  check_at: ColumnType<Date, Date | undefined, Date>
  checked_head: bigint | null
  /** Under which it was made; null of one from before this was kept. */
  idempotency_key: ColumnType<string | null, string | null | undefined, never>
}

/** Up to which block the requests of everybody on a network were read. */
export interface RequestMarksTable {
  network: string
  block: bigint
  check_at: ColumnType<Date, Date | undefined, Date>
}

/** A request that the EIP-7002 contract logged in a final block, and that a stored request may have made which does not know it. */
export interface UnreportedRequestsTable {
  network: string
  hash: Hash
  pubkey: Pubkey
  /** 0 for an exit. */
  amount_gwei: bigint
  /** In lower case. */
  sender: Address
  block_number: bigint
  seen_at: Date
  /** When requests alike were last judged: they have turns. */
  judged_at: ColumnType<Date, Date | undefined, Date>
}

export type RequestStatus = StakeTransactionStatus | 'cancelled'
export type PaymentStatus = 'waiting' | 'paid' | 'void' | 'unknown'
export type ConsensusStatus = 'pending' | 'accepted' | 'dropped'

export interface EthereumRequestHashesTable {
  request_id: string
  hash: Hash
  submitted_at: Date
  /** Known as soon as the chain has shown the transaction. */
  sender: Address | null
  nonce: bigint | null
}
