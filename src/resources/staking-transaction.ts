import { z } from 'zod'
import type { Hex } from '../lib/chain-types.ts'
import { API_VERSION, type KindDefinition, type Resource } from './meta.ts'
import { planHashText } from './plan-hash.ts'
import {
  address,
  cel,
  dnsLabel,
  dnsSubdomain,
  hexBytes,
  integerText,
  observedGeneration,
  solanaAddress,
  texts,
  time,
  wholeNumber,
  writtenOnce,
} from './schema.ts'

/** Versions of one transaction that its record holds. No place is given out under which not all of its own would fit. */
export const MOST_ATTEMPTS = 128

/** What a StakingTransaction is for. Each purpose is carried out once: the object's name is made of it. */
export const transactionPurposes = [
  'Deposit',
  'Exit',
  'Withdrawal',
  'SolanaStake',
  'SolanaDeactivation',
  'SolanaWithdrawal',
  'SolanaAuthorization',
] as const
export type TransactionPurpose = (typeof transactionPurposes)[number]

const owner = z.object({
  kind: z.string().max(63).describe('Kind of the resource.'),
  namespace: dnsLabel().describe('Namespace of the resource.'),
  name: dnsSubdomain().describe('Name of the resource.'),
  originUid: z.string().max(64).describe("UID of the resource at first sight. It outranks the resource's own annotation."),
})
export type TransactionOwner = z.output<typeof owner>

const authority = z.object({
  address: solanaAddress().describe('Its address.'),
  signer: dnsSubdomain().optional().describe('Name of the StakingSigner that has its key; left out where none has.'),
})
/** An authority of a stake account. */
export type StakeAuthority = z.output<typeof authority>

const authorities = z.object({
  stakeAuthority: authority.optional().describe('Stake authority.'),
  withdrawAuthority: authority.optional().describe('Withdraw authority.'),
})

const earlier = z.object({
  generation: wholeNumber().describe('The generation.'),
  owner: owner.describe('The resource that it was made for.'),
  signer: dnsSubdomain().describe('Name of the StakingSigner.'),
  from: z.string().max(64).describe("The signer's address."),
  network: dnsLabel().describe("Name of the network in the operator's configuration then."),
})

const spec = z.object({
  chain: writtenOnce(z.enum(['Ethereum', 'Solana']), 'chain').describe('Ethereum or Solana.'),
  network: dnsLabel().describe(
    "Name of the network in the operator's configuration when the transaction was made. For people: the chain id or genesis hash counts.",
  ),
  chainId: writtenOnce(wholeNumber(), 'chainId').optional().describe('EIP-155 chain id. Ethereum only.'),
  genesisHash: writtenOnce(z.string().max(66), 'genesisHash').optional().describe('Genesis hash of the cluster. Solana only.'),
  purpose: writtenOnce(z.enum(transactionPurposes), 'purpose').describe('What is to be done, once.'),
  subject: writtenOnce(z.string().min(1).max(98), 'subject').describe("The validator's public key, or the stake account."),
  amount: z.string().max(64).describe('Amount in words, such as "32 ETH".'),
  apiId: z
    .string()
    .max(64)
    .optional()
    .describe('Id of the stake or request in the staking API, which is told every hash before it is sent.'),
  owner: owner.describe('The resource that it is made for.'),
  generation: wholeNumber().describe(
    'Counts hand-overs: raised whenever what has not landed passes to another resource or to another signer. What has landed stays with the signer that has signed it, whichever resource shows it.',
  ),
  earlier: z
    .array(earlier)
    .max(MOST_ATTEMPTS)
    .optional()
    .describe(
      'Whose it was when something of a generation was signed, where it has passed on since: attempts of that generation are theirs.',
    ),
  signer: dnsSubdomain().describe('Name of the StakingSigner.'),
  from: z.string().max(64).describe("The signer's address: with the chain, the lane that the transaction takes its places in."),
  call: z
    .object({
      to: address().describe('Contract.'),
      data: texts<Hex>(
        z
          .string()
          .max(4096)
          .regex(/^0x([0-9a-fA-F]{2})*$/),
      ).describe('Calldata.'),
      valueWei: integerText().optional().describe('Value in wei, where the purpose fixes it.'),
    })
    .optional()
    .describe('What is called. Ethereum only.'),
  handOver: writtenOnce(
    z.object({
      from: authorities.describe('Who had the authorities before.'),
      to: authorities.describe('Who is to have them. What is left out stays.'),
    }),
    'handOver',
  )
    .optional()
    .describe('Of a SolanaAuthorization: the authorities of the stake account that it replaces.'),
  madeAtBlock: wholeNumber().optional().describe('A block before which nothing of it can have been sent: history is searched from there.'),
})

const attempt = z.object({
  hash: z.string().max(96).describe('Transaction hash, or signature.'),
  kind: z
    .enum(['Call', 'Cancel'])
    .describe('Call does what the transaction is for; Cancel sends 0 wei to the signer itself under the same nonce.'),
  nonce: wholeNumber().optional().describe('Nonce. Ethereum only.'),
  generation: wholeNumber()
    .optional()
    .describe(
      'spec.generation when it was written down: another generation may use another lane, and may be of another resource and signer.',
    ),
  gas: integerText(20).optional().describe('Gas limit.'),
  maxFeePerGasWei: integerText().optional().describe('Highest total fee per gas in wei.'),
  maxPriorityFeePerGasWei: integerText().optional().describe('Highest tip per gas in wei.'),
  valueWei: integerText().optional().describe('Value in wei.'),
  signature: hexBytes(65)
    .optional()
    .describe(
      'Its signature (r, s, recovery id), where the signer may give another one the next time: after a restart this very transaction is sent again. Ethereum, of remote signers only.',
    ),
  message: z.string().max(2048).optional().describe('The message in base64. Solana only.'),
  lastValidBlockHeight: wholeNumber().optional().describe('The block height after which it can never land. Solana only.'),
  sinceSlot: wholeNumber().optional().describe('A slot before which it can not have landed: history is searched from there. Solana only.'),
  apiId: z.string().max(64).optional().describe('Id of the transaction in the staking API. Solana only.'),
  namespace: dnsLabel()
    .optional()
    .describe('Namespace of the resource that it was signed for: limits go by it, whoever the transaction passes to.'),
  blockAt: time()
    .optional()
    .describe('Time of the latest block when it was written down: limits go by it as well as by the clock. Ethereum only.'),
  approval: z
    .object({
      planHash: planHashText().describe('The plan that was approved.'),
      approvers: z.array(z.string().max(256)).max(64).describe('Who had approved it by then.'),
      maxFeePerGasWei: integerText().optional().describe('Highest fee per gas in wei that was approved. Ethereum only.'),
      maxRequestFeeWei: integerText().optional().describe('Highest fee in wei for the EIP-7002 contract that was approved. Ethereum only.'),
    })
    .optional()
    .describe('By which approvals it was signed, where a policy asks for any: later versions stay within what these say.'),
  found: z.boolean().optional().describe('It was not made from this record: a witness (a node, the staking API, the chain) knew of it.'),
  at: time().describe('When it was written down, which was before it was sent.'),
})
export type TransactionAttempt = z.output<typeof attempt>
export type AttemptApproval = NonNullable<TransactionAttempt['approval']>

const landing = {
  hash: z.string().max(96).describe('Transaction hash, or signature.'),
  blockNumber: wholeNumber().describe('Block, or slot.'),
  blockHash: z.string().max(96).optional().describe('Hash of that block.'),
}
const closed = z.object({
  nonce: wholeNumber().describe('Nonce; of Solana, where there is none, the place of the attempt among all of them, from 0.'),
  generation: wholeNumber().optional().describe('spec.generation when it was closed.'),
  by: z
    .enum(['Cancel', 'Revert', 'Foreign', 'Dropped', 'Expired', 'Unrelated'])
    .describe(
      "What closed the place without doing what it is for: its own cancel, a revert, another user's transaction (on Solana: that undid what had landed), its own transaction, which the consensus layer dropped, or, on Solana, that it has expired on every node, or that it is a transaction which a witness named and which does something else.",
    ),
  failure: z.string().max(128).optional().describe("The cluster's name for why it failed. Solana only."),
  ...landing,
  owner: owner
    .optional()
    .describe('Of a dropped one: the resource that it was made for. That resource has had its answer, and asks no more.'),
})
export type ClosedPlace = z.output<typeof closed>

const outcome = z.object({
  is: z
    .enum(['Landed', 'Reverted', 'FrontRun'])
    .describe('Landed: done. Reverted: nothing was made. FrontRun: paid, but second to somebody else.'),
  nonce: wholeNumber().optional().describe('Nonce. Ethereum only.'),
  ...landing,
})
export type TransactionOutcome = z.output<typeof outcome>

const claim = z.object({
  hash: z.string().max(96).optional().describe('Transaction hash.'),
  nonce: wholeNumber().optional().describe("The nonce that it was sent under, where the operator's own records say so."),
})
export type TransactionClaim = z.output<typeof claim>

const status = z.object({
  observedGeneration: observedGeneration(),
  state: z
    .enum(['Waiting', 'Unclaimed', 'Open', 'Landed', 'Reverted', 'FrontRun'])
    .optional()
    .describe(
      'Waiting (nothing of it can land), Unclaimed (nor is a resource there that it was made for, so that nothing will), Open (an attempt may land), or its outcome. For people: derived from the rest.',
    ),
  place: wholeNumber().optional().describe('The nonce in use. A place of the lane that no transaction names is a filler.'),
  attempts: z
    .array(attempt)
    .max(MOST_ATTEMPTS)
    .optional()
    .describe('Every version that was ever signed, oldest first. None is ever forgotten.'),
  closed: z.array(closed).max(MOST_ATTEMPTS).optional().describe('Earlier places, each proven closed by what used its nonce.'),
  outcome: outcome.optional().describe('What came of it, final and proven.'),
  claims: z
    .array(claim)
    .max(1024)
    .optional()
    .describe(
      'Transactions that an earlier version of the operator may have sent for this, as its ledger or the resource had them. Each is looked for before anything is signed.',
    ),
  unclaimedSince: time()
    .optional()
    .describe(
      'Since when nothing of it can land and no resource that it was made for is there. The record is deleted some time after that.',
    ),
  held: z
    .string()
    .max(512)
    .optional()
    .describe('Why a record that somebody deletes is still there. It goes by itself when that has passed.'),
})

/** The record of one transaction: what is to be done, once. Only the operator writes it. */
export const stakingTransaction = {
  kind: 'StakingTransaction',
  plural: 'stakingtransactions',
  singular: 'stakingtransaction',
  shortNames: ['stx'],
  scope: 'Cluster',
  description:
    'StakingTransaction is the record of one thing to be done on a chain, once: a deposit, an exit, a withdrawal, a step of a Solana stake. It is named by its purpose and written before anything is signed. Only the operator writes it: do not edit or delete it. One that is deleted stays as long as something of it may land or a resource that it was made for is there; status.held says why.',
  spec: cel(
    spec,
    {
      rule: "(self.purpose == 'SolanaAuthorization') == has(self.handOver)",
      message: 'a SolanaAuthorization, and nothing else, has handOver',
    },
    {
      rule: "self.chain != 'Ethereum' || (has(self.chainId) && has(self.call))",
      message: 'an Ethereum transaction has chainId and call',
    },
    { rule: 'self.generation >= oldSelf.generation', message: 'generation can only be raised', fieldPath: '.generation' },
    {
      rule: 'self.generation > oldSelf.generation || (self.from == oldSelf.from && self.signer == oldSelf.signer)',
      message: 'signer and from change by a hand-over only, which raises generation',
    },
  ),
  status: cel(status, {
    rule: '!has(oldSelf.attempts) || (has(self.attempts) && size(self.attempts) >= size(oldSelf.attempts))',
    message: 'no attempt is ever forgotten',
    fieldPath: '.attempts',
  }),
  // Written by nobody yet, it waits for its place.
  initialStatus: { state: 'Waiting' },
  printerColumns: [
    { name: 'Purpose', type: 'string', jsonPath: '.spec.purpose', description: 'What it is for.' },
    { name: 'Amount', type: 'string', jsonPath: '.spec.amount', description: 'Amount.' },
    { name: 'Namespace', type: 'string', jsonPath: '.spec.owner.namespace', description: 'Namespace of its resource.' },
    { name: 'Resource', type: 'string', jsonPath: '.spec.owner.name', description: 'Its resource.' },
    { name: 'Signer', type: 'string', jsonPath: '.spec.signer', description: 'The signer.' },
    { name: 'Nonce', type: 'integer', jsonPath: '.status.place', description: 'The nonce in use.' },
    { name: 'State', type: 'string', jsonPath: '.status.state', description: 'Where it stands.' },
    { name: 'Hash', type: 'string', jsonPath: '.status.outcome.hash', description: 'What landed.', priority: 1 },
    {
      name: 'Price',
      type: 'string',
      jsonPath: '.status.attempts[-1:].maxFeePerGasWei',
      description: 'Highest fee per gas in wei of the last version.',
      priority: 1,
    },
    { name: 'From', type: 'string', jsonPath: '.spec.from', description: "The signer's address.", priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Time since creation.' },
  ],
  selectableFields: ['.spec.purpose', '.spec.signer', '.spec.owner.namespace', '.spec.owner.name', '.spec.subject'],
} as const satisfies KindDefinition

export type StakingTransactionSpec = z.output<typeof spec>
export type StakingTransactionStatus = z.output<typeof status>
export type StakingTransaction = Resource<StakingTransactionSpec, StakingTransactionStatus>
export const stakingTransactionSpec: z.ZodType<StakingTransactionSpec> = spec
export const stakingTransactionStatus: z.ZodType<StakingTransactionStatus> = status
export const STAKING_TRANSACTION_API = { apiVersion: API_VERSION, kind: stakingTransaction.kind } as const
