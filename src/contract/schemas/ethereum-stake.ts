import { z } from 'zod'
import {
  blockHash,
  count,
  ethereumAddress,
  ethNumber,
  externalReference,
  gweiAmount,
  hex,
  hexData,
  id,
  network,
  page,
  pageQuery,
  pubkey,
  time,
  transactionHash,
  weiAmount,
} from './common.ts'

/** `0x01`: execution withdrawal credentials, 32 ETH. `0x02`: compounding (EIP-7251), up to 2048 ETH. */
export const credentialsType = z.enum(['0x01', '0x02'])
export type CredentialsType = z.output<typeof credentialsType>

/** What a stake is created from. The bounds of the amount and the address's checksum are rules of the chain: the service answers 422. */
export const createEthereumStakeBody = z
  .strictObject({
    network,
    amountEth: ethNumber.meta({
      minimum: 32,
      maximum: 2048,
      description: 'An amount in ETH, with at most 9 decimals: 32 with 0x01 credentials, 32 to 2048 with 0x02.',
    }),
    withdrawalAddress: ethereumAddress,
    credentialsType: credentialsType.default('0x02'),
    externalReference: externalReference.optional(),
  })
  .meta({ id: 'CreateEthereumStake' })

/** What the deposit contract is to be called with, and what its signature was made over. */
export const depositData = z
  .object({
    pubkey,
    withdrawalCredentials: hex(32),
    amountGwei: gweiAmount,
    signature: hex(96),
    depositMessageRoot: hex(32),
    depositDataRoot: hex(32),
    forkVersion: hex(4),
    networkName: network,
    depositContractAddress: ethereumAddress,
    chainId: z.int().positive(),
  })
  .meta({ id: 'DepositData' })
export type DepositDataBody = z.output<typeof depositData>

/** A transaction for the client to sign; nonce, gas and fees are the client's. */
export const unsignedTransaction = z
  .object({ chainId: z.int().positive(), to: ethereumAddress, data: hexData(4096), valueWei: weiAmount })
  .meta({ id: 'UnsignedEthereumTransaction' })

export const transactionStatus = z.enum(['awaiting_submission', 'submitted', 'confirmed', 'failed'])

export const minedFields = {
  hash: transactionHash.optional(),
  blockNumber: count.optional(),
  blockHash: blockHash.optional(),
  failureReason: z.string().max(1024).optional(),
}

/** `cancelled` is an addition to the interface: by DELETE, before anything was paid. A stake that is paid all the same leaves it again. */
export const depositTransaction = z
  .object({ status: z.enum([...transactionStatus.options, 'cancelled']), ...minedFields })
  .meta({ id: 'DepositTransaction' })

const validatorStatuses = [
  'unknown',
  'pending_initialized',
  'pending_queued',
  'active_ongoing',
  'active_exiting',
  'active_slashed',
  'exited_unslashed',
  'exited_slashed',
  'withdrawal_possible',
  'withdrawal_done',
] as const
/**
 * The Beacon API's validator status, or `unknown` before the beacon chain has seen it. A word of a later version (drafts have some: beacon-APIs#617) is read as
 * `unknown`: it is for people, and hides nothing else of an answer.
 */
export const validatorStatus = z.codec(z.string().meta({ enum: [...validatorStatuses] }), z.enum(validatorStatuses), {
  decode: (word) => validatorStatuses.find((status) => status === word) ?? 'unknown',
  encode: (status) => status,
})
export type ValidatorStatus = z.output<typeof validatorStatus>

export const validator = z
  .object({
    pubkey,
    index: count.optional(),
    status: validatorStatus,
    balanceGwei: gweiAmount.optional(),
    activationEpoch: count.optional(),
    exitEpoch: count.optional(),
  })
  .meta({ id: 'Validator' })

/**
 * What the consensus layer made of a deposit that is final. It queues each one, and drops one for a new key whose signature is not valid when its turn comes:
 * then the money is lost. Beyond the interface.
 */
export const depositConsensus = z
  .object({
    status: z.enum(['pending', 'accepted', 'dropped']),
    /** With `dropped`: the rule's code and words. With `pending`: where it stands. */
    reason: z.string().max(1024).optional(),
  })
  .meta({ id: 'DepositConsensus' })

/** What is not refused, and a person should know before the stake is paid. Beyond the interface. */
const stakeWarning = z.object({ code: z.string().max(64), detail: z.string().max(1024) }).meta({
  id: 'StakeWarning',
  description: '`withdrawal-address-is-contract`: the withdrawal address has code, and whether that can pay out is not known.',
})

export const ethereumStake = z
  .object({
    stakeId: id,
    network,
    amountEth: ethNumber,
    withdrawalAddress: ethereumAddress,
    credentialsType,
    externalReference: externalReference.optional(),
    depositData,
    unsignedTransaction,
    transaction: depositTransaction,
    consensus: depositConsensus.optional(),
    /** Beyond the interface. True once a validator client was seen to hold the key, after it was pushed there. */
    keysProvisioned: z.boolean().optional(),
    warnings: z.array(stakeWarning).max(8).optional(),
    validator,
    createdAt: time,
  })
  .meta({ id: 'EthereumStake' })
export type EthereumStakeBody = z.output<typeof ethereumStake>

export const ethereumStakePage = page(ethereumStake).meta({ id: 'EthereumStakePage' })

export const stakesQuery = pageQuery.extend({ network: network.optional(), externalReference: externalReference.optional() })

/**
 * The hash of the transaction that pays. It may be reported before the transaction is sent: then `from` and `nonce` say what no node can say yet, so that
 * a later hash is known for a replacement of this one. Both or neither; beyond the interface, optional.
 */
export const hashSubmissionBody = z
  .strictObject({ transactionHash, from: ethereumAddress.optional(), nonce: count.optional() })
  .refine(({ from, nonce }) => (from === undefined) === (nonce === undefined), {
    message: 'from and nonce go together: give both or neither',
    path: ['nonce'],
  })
  .meta({
    id: 'TransactionHashSubmission',
    description:
      'A hash may be reported before its transaction is sent; it is recorded, and never dropped by itself. `from` and `nonce` (both or neither; an addition to the interface) name the sender and nonce, which a further hash must share while an earlier one could still land.',
    dependentRequired: { from: ['nonce'], nonce: ['from'] },
  })
export type HashSubmission = z.output<typeof hashSubmissionBody>
