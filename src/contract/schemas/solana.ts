import { z } from 'zod'
import {
  count,
  externalReference,
  id,
  lamportsAmount,
  network,
  page,
  positiveLamportsAmount,
  solanaAddress,
  solanaBlockhash,
  solanaSignature,
  time,
} from './common.ts'

export const createSolanaStakeBody = z
  .strictObject({
    network,
    amountLamports: positiveLamportsAmount,
    stakeAuthority: solanaAddress,
    withdrawAuthority: solanaAddress,
    /** Default: the service's own choice for the network. */
    voteAccount: solanaAddress.optional(),
    /** Pays for all transactions of the stake, and signs them. Default: each is paid by the authority that signs it, as the stake authority and for a withdrawal the withdraw authority. */
    feePayer: solanaAddress.optional(),
    externalReference: externalReference.optional(),
  })
  .meta({ id: 'CreateSolanaStake' })

/** A text for the withdraw authority to sign as a Solana off-chain message. */
export const challenge = z
  .object({ challengeId: id, message: z.string().min(1).max(1212), issuedAt: time, expiresAt: time })
  .meta({ id: 'Challenge' })
export type ChallengeBody = z.output<typeof challenge>

/** Base64 of a Solana transaction, which is at most 1232 bytes. */
const transactionBase64 = z.base64().max(1644)

export const solanaTransactionKind = z.enum(['stake', 'deactivation', 'withdrawal'])
export const solanaTransactionStatus = z.enum(['awaiting_submission', 'submitted', 'confirmed', 'failed', 'expired'])

export const solanaTransaction = z
  .object({
    txId: id,
    kind: solanaTransactionKind,
    network,
    /** The message to sign. */
    messageBase64: transactionBase64,
    /** The same message with empty signatures, as wallets take it. */
    transactionBase64,
    requiredSigners: z.array(solanaAddress).min(1).max(16),
    feePayer: solanaAddress,
    recentBlockhash: solanaBlockhash,
    lastValidBlockHeight: count,
    status: solanaTransactionStatus,
    signature: solanaSignature.optional(),
    failureReason: z.string().max(1024).optional(),
    createdAt: time,
  })
  .meta({ id: 'SolanaTransaction' })
export type SolanaTransactionBody = z.output<typeof solanaTransaction>

export const solanaStakeStatus = z.enum(['CREATED', 'ACTIVATING', 'ACTIVE', 'DEACTIVATING', 'INACTIVE', 'WITHDRAWN'])

/** What the chain says of the stake account, computed when asked. */
export const solanaProtocol = z
  .object({
    status: solanaStakeStatus,
    activationEpoch: count.optional(),
    deactivationEpoch: count.optional(),
    activeLamports: lamportsAmount,
    inactiveLamports: lamportsAmount,
    epoch: count,
  })
  .meta({ id: 'SolanaProtocol' })

/** What the stake's validator keeps and is, by its vote account's own data when the stake was created. Beyond the interface. */
export const solanaValidator = z
  .object({
    node: solanaAddress,
    /** Percent of the inflation rewards that it keeps. */
    commissionPercent: z.number().min(0).max(656).optional(),
    /** Percent of the block revenue that it keeps; left out where its account has no such field (before version 4). */
    blockRevenueCommissionPercent: z.number().min(0).max(656).optional(),
    /** Whether it names a BLS key (SIMD-0387); left out where its account has no such field. */
    blsKey: z.boolean().optional(),
  })
  .meta({ id: 'SolanaValidator' })

export const solanaStake = z
  .object({
    stakeId: id,
    network,
    amountLamports: positiveLamportsAmount,
    stakeAccount: solanaAddress,
    stakeAuthority: solanaAddress,
    withdrawAuthority: solanaAddress,
    voteAccount: solanaAddress,
    /** Only in the answer to its creation. */
    validator: solanaValidator.optional(),
    feePayer: solanaAddress,
    externalReference: externalReference.optional(),
    challenge: challenge.optional(),
    protocol: solanaProtocol,
    transactions: z.array(solanaTransaction).max(256),
    /** An addition to the interface: when it was cancelled by DELETE, before anything was paid. A stake that is paid all the same has none any more. */
    cancelledAt: time.optional(),
    createdAt: time,
  })
  .meta({ id: 'SolanaStake' })
export type SolanaStakeBody = z.output<typeof solanaStake>
export const solanaStakePage = page(solanaStake).meta({ id: 'SolanaStakePage' })

/** No field: no body is needed. */
export const emptyBody = z.strictObject({}).nullish()

/**
 * The most that a transaction may offer on top of its base fee, in lamports; the service's own limit holds as well. Without it, the service's limit may be more
 * than the client signs for. Beyond the interface.
 */
const feeCap = { maxPriorityFeeLamports: lamportsAmount.optional() }

/** For operations that make or renew a transaction and need nothing besides. */
export const transactionOptions = z.strictObject(feeCap).nullish().meta({ id: 'SolanaTransactionOptions' })

export const createStakeTransactionBody = z
  .strictObject({ challengeId: id, signature: solanaSignature, ...feeCap })
  .meta({ id: 'SignedChallenge' })

export const createWithdrawalTransactionBody = z
  .strictObject({
    /** Default: the withdraw authority. */
    destination: solanaAddress.optional(),
    /**
     * The destination is off the curve or an account of a program, and meant: a multisig's vault, an escrow. Without it such a destination is refused, since
     * money that goes to a mint or a vote account is lost. Beyond the interface.
     */
    destinationException: z.boolean().optional(),
    /** Pays for this withdrawal, and signs it. Default: the stake's fee payer. Beyond the interface. */
    feePayer: solanaAddress.optional(),
    ...feeCap,
  })
  .nullish()
  .meta({ id: 'CreateWithdrawalTransaction' })

/** The signature of the transaction that was broadcast. */
export const signatureSubmissionBody = z.strictObject({ signature: solanaSignature }).meta({ id: 'SignatureSubmission' })
