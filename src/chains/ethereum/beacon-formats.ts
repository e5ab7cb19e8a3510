import { getAddress } from 'viem'
import { z } from 'zod'
import { type Gwei, gwei } from '../../lib/amounts.ts'
import {
  type BeaconGenesis,
  type BeaconSpec,
  type BeaconStatus,
  type BeaconValidator,
  type BlockExecution,
  beaconStatuses,
  type PendingConsolidation,
  type PendingDeposit,
  type PendingPartialWithdrawal,
} from './beacon.ts'
import type { Address, Hex } from './chain.ts'

/*
 * The answers of the Beacon API (ethereum/beacon-APIs), as far as they are used; fields that are not known here are passed over. Numbers come as
 * decimal text.
 */
const maxUint64 = (1n << 64n) - 1n
const uint64 = z
  .string()
  .regex(/^(0|[1-9][0-9]{0,19})$/)
  .transform((text) => BigInt(text))
  .refine((value) => value <= maxUint64)
const gweiText = uint64.transform((value): Gwei => gwei(value))
const small = uint64.refine((value) => value <= BigInt(Number.MAX_SAFE_INTEGER)).transform(Number)
/** consensus-specs, FAR_FUTURE_EPOCH = 2**64 − 1: not set. */
const epoch = uint64
  .refine((value) => value === maxUint64 || value <= BigInt(Number.MAX_SAFE_INTEGER))
  .transform((value) => (value === maxUint64 ? undefined : Number(value)))
const hex = (bytes: number) =>
  z
    .string()
    .regex(new RegExp(`^0x[0-9a-fA-F]{${bytes * 2}}$`))
    .transform((text) => text.toLowerCase() as Hex)
const address = hex(20).transform((text): Address => getAddress(text))

const data = <T extends z.ZodType>(schema: T) => z.object({ data: schema })

export const validators = data(
  z.array(
    z
      .object({
        index: small,
        balance: gweiText,
        // A word of a later version is none that is known: `statusAt` tells it from the epochs.
        status: z.string().transform((word) => beaconStatuses.find((status) => status === word)),
        validator: z.object({
          pubkey: hex(48),
          withdrawal_credentials: hex(32),
          effective_balance: gweiText,
          slashed: z.boolean(),
          activation_eligibility_epoch: epoch,
          activation_epoch: epoch,
          exit_epoch: epoch,
          withdrawable_epoch: epoch,
        }),
      })
      .transform(
        ({ index, balance, status, validator }): Omit<BeaconValidator, 'status'> & { readonly status: BeaconStatus | undefined } => ({
          index,
          pubkey: validator.pubkey,
          status,
          balanceGwei: balance,
          effectiveBalanceGwei: validator.effective_balance,
          withdrawalCredentials: validator.withdrawal_credentials,
          slashed: validator.slashed,
          activationEligibilityEpoch: validator.activation_eligibility_epoch,
          activationEpoch: validator.activation_epoch,
          exitEpoch: validator.exit_epoch,
          withdrawableEpoch: validator.withdrawable_epoch,
        }),
      ),
  ),
)

export const pendingDeposits = data(
  z.array(
    z.object({ pubkey: hex(48), withdrawal_credentials: hex(32), amount: gweiText, signature: hex(96), slot: small }).transform(
      ({ withdrawal_credentials, amount, ...rest }): PendingDeposit => ({
        ...rest,
        withdrawalCredentials: withdrawal_credentials,
        amountGwei: amount,
      }),
    ),
  ),
)

export const pendingPartialWithdrawals = data(
  z.array(
    z.object({ validator_index: small, amount: gweiText, withdrawable_epoch: small }).transform(
      ({ validator_index, amount, withdrawable_epoch }): PendingPartialWithdrawal => ({
        validatorIndex: validator_index,
        amountGwei: amount,
        withdrawableEpoch: withdrawable_epoch,
      }),
    ),
  ),
)

export const pendingConsolidations = data(
  z.array(
    z
      .object({ source_index: small, target_index: small })
      .transform(({ source_index, target_index }): PendingConsolidation => ({ sourceIndex: source_index, targetIndex: target_index })),
  ),
)

export const genesis = data(
  z.object({ genesis_time: small, genesis_validators_root: hex(32), genesis_fork_version: hex(4) }).transform(
    (value): BeaconGenesis => ({
      genesisTime: value.genesis_time,
      genesisValidatorsRoot: value.genesis_validators_root,
      genesisForkVersion: value.genesis_fork_version,
    }),
  ),
)

export const depositContract = data(z.object({ chain_id: small, address }))

const positive = small.refine((value) => value > 0)
export const spec = data(
  z
    .object({
      SLOT_DURATION_MS: positive.optional(),
      SECONDS_PER_SLOT: positive.optional(),
      SLOTS_PER_EPOCH: positive,
      SHARD_COMMITTEE_PERIOD: small,
      MIN_VALIDATOR_WITHDRAWABILITY_DELAY: small,
      MAX_SEED_LOOKAHEAD: small,
      MIN_ACTIVATION_BALANCE: gweiText,
      MAX_EFFECTIVE_BALANCE_ELECTRA: gweiText,
      PENDING_PARTIAL_WITHDRAWALS_LIMIT: small,
      DEPOSIT_CHAIN_ID: small,
      DEPOSIT_CONTRACT_ADDRESS: address,
      // Clients that don't know the fork yet leave it out; FAR_FUTURE_EPOCH is one that has no date.
      GLOAS_FORK_EPOCH: epoch.optional(),
    })
    .transform((value, context): BeaconSpec => {
      // Newer clients give milliseconds, older ones seconds; a client may give both.
      const slotDurationMs = value.SLOT_DURATION_MS ?? (value.SECONDS_PER_SLOT ?? 0) * 1000
      if (slotDurationMs === 0) context.addIssue({ code: 'custom', path: ['SECONDS_PER_SLOT'], message: 'is missing' })
      return {
        slotDurationMs,
        slotsPerEpoch: value.SLOTS_PER_EPOCH,
        shardCommitteePeriod: value.SHARD_COMMITTEE_PERIOD,
        minValidatorWithdrawabilityDelay: value.MIN_VALIDATOR_WITHDRAWABILITY_DELAY,
        maxSeedLookahead: value.MAX_SEED_LOOKAHEAD,
        minActivationBalanceGwei: value.MIN_ACTIVATION_BALANCE,
        maxEffectiveBalanceElectraGwei: value.MAX_EFFECTIVE_BALANCE_ELECTRA,
        pendingPartialWithdrawalsLimit: value.PENDING_PARTIAL_WITHDRAWALS_LIMIT,
        depositChainId: value.DEPOSIT_CHAIN_ID,
        depositContractAddress: value.DEPOSIT_CONTRACT_ADDRESS,
        gloasForkEpoch: value.GLOAS_FORK_EPOCH,
      }
    }),
)

export const header = data(z.object({ root: hex(32), canonical: z.boolean(), header: z.object({ message: z.object({ slot: small }) }) }))

/**
 * A signed block, whole or blinded, of whatever fork: of one in a shape that is not known here nothing is told. From Gloas on it has the bid for its payload in place
 * of the payload (consensus-specs, gloas/beacon-chain.md: ExecutionPayloadBid, parent_block_hash).
 */
const payload = z.object({ block_hash: hex(32), parent_hash: hex(32) })
const bid = z.object({ message: z.object({ parent_block_hash: hex(32) }) })
const body = z.object({
  execution_payload: payload.optional().catch(undefined),
  execution_payload_header: payload.optional().catch(undefined),
  signed_execution_payload_bid: bid.optional().catch(undefined),
})
export const blockExecution = data(
  z.object({ message: z.object({ body }) }).transform(({ message: { body: of } }): BlockExecution => {
    const own = of.execution_payload_header ?? of.execution_payload
    return { carries: own?.block_hash, confirms: of.signed_execution_payload_bid?.message.parent_block_hash ?? own?.parent_hash }
  }),
)

export const syncing = data(
  z.object({
    head_slot: small,
    is_syncing: z.boolean(),
    is_optimistic: z.boolean().default(false),
    el_offline: z.boolean().default(false),
  }),
)

const checkpoint = z.object({ epoch: small })
export const finality = data(z.object({ current_justified: checkpoint, finalized: checkpoint }))
