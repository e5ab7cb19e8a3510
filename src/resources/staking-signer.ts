import { z } from 'zod'
import { lastColumns } from './columns.ts'
import { conditions } from './conditions.ts'
import { gasPriceText, requestFeeText } from './ethereum-stake.ts'
import { API_VERSION, type KindDefinition, type Resource } from './meta.ts'
import {
  cel,
  dnsLabel,
  dnsSubdomain,
  immutable,
  integerText,
  inWords,
  lastHandledReconcileAt,
  listMap,
  listSet,
  observedGeneration,
  pubkey,
  solanaAddress,
  time,
  transactionHash,
  wholeNumber,
} from './schema.ts'
import { signerApproval } from './signer-approval.ts'
import { LIMITS_SHOWN, limitUse, signerLimits } from './signer-limits.ts'
import { LEAST_LAMPORTS } from './solana-stake.ts'

const labelText = () => z.string().max(317)
const labelValue = () => z.string().max(63)

const labelSelector = z.strictObject({
  matchLabels: z
    .record(z.string(), labelValue())
    .optional()
    .describe('Labels that must be there with these values.')
    .meta({ maxProperties: 16 }),
  matchExpressions: z
    .array(
      z.strictObject({
        key: labelText().describe('Label key.'),
        operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('In, NotIn, Exists or DoesNotExist.'),
        values: z.array(labelValue()).max(32).optional().describe('Values for In and NotIn.'),
      }),
    )
    .max(16)
    .optional()
    .describe('Requirements that must all hold.'),
})
export type LabelSelector = z.output<typeof labelSelector>

const solanaAddressText = () => inWords(solanaAddress(), 'must be a Solana address in base58')

/** Strict, and so is all of it: a field that this version does not know may be a limit, so that a policy which has one cannot be read, and admits nothing. */
const policy = z.strictObject({
  allowedNamespaces: z
    .strictObject({
      names: z
        .array(inWords(dnsLabel(), 'must be the name of a namespace: nothing stands for all of them, but a selector finds them by labels'))
        .max(256)
        .meta(listSet)
        .optional()
        .describe('Namespaces by name.'),
      selector: labelSelector.optional().describe('Namespaces by label. An empty selector admits none.'),
    })
    .describe('Namespaces whose resources may use this signer. Empty admits none.'),
  allowedWithdrawalAddresses: z
    .array(
      inWords(
        z
          .string()
          .min(32)
          .max(44)
          .regex(/^(0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$/),
        'must be an Ethereum address (0x and 40 hex digits) or a Solana one (base58)',
      ),
    )
    .max(256)
    .optional()
    .describe(
      'Where money may go in the end: withdrawal addresses of Ethereum stakes, destinations of Solana withdrawals. Left out, any is allowed; an empty list admits none.',
    ),
  allowedVoteAccounts: z
    .array(solanaAddressText())
    .max(256)
    .optional()
    .describe('Vote accounts that stakes may be delegated to. Left out, any is allowed; an empty list admits none. Solana only.'),
  destinationExceptions: z
    .array(solanaAddressText())
    .max(64)
    .optional()
    .describe(
      "Destinations of withdrawals that are accounts of a program, or that no key signs for, and that are meant: a multisig's vault, an escrow. Any other such address is refused, since money that goes to a mint or a token account is lost. Of the withdraw authority's signer. Solana only.",
    ),
  allowedSuccessors: z
    .array(solanaAddressText())
    .max(64)
    .optional()
    .describe(
      'Addresses that this key’s authority over a stake account may be handed over to (SolanaStakeAuthorization). Whoever has the withdraw authority owns the money, so that these are no destinations: an exchange may take a withdrawal and have no use for a stake account. Left out or empty, none. Solana only.',
    ),
  maxCommissionPercent: z
    .int()
    .min(0)
    .max(100)
    .optional()
    .describe(
      'Highest commission in percent of the inflation rewards that a validator may keep when a stake is delegated to it. Left out, any under 100 is allowed. Of the stake authority’s signer. Solana only.',
    ),
  maxPerTransaction: inWords(
    z
      .string()
      .min(1)
      .max(20)
      .regex(/^(0|[1-9][0-9]{0,19})(\.[0-9]{1,9})?$/),
    'must be a plain decimal number such as "32" (ETH for Ethereum, lamports for Solana)',
  ).describe('Highest amount of one transaction: in ETH for Ethereum, in lamports for Solana.'),
  limits: signerLimits
    .meta(listMap('window', 'per'))
    .optional()
    .describe(
      'Rolling limits, by the log of what was signed: deposits, exits, withdrawals and Solana stakes. All of them hold, on each network by itself. What is over a limit waits (LimitReached) and goes on by itself. Left out, there is none.',
    ),
  approval: signerApproval
    .optional()
    .describe(
      'What other users have to approve before it is signed (StakingApproval). What lacks that waits (ApprovalRequired), and holds nobody. Left out, nothing.',
    ),
  maxFeePerGasGwei: gasPriceText()
    .default('100')
    .describe('Highest fee per gas in gwei, also for replacements of a stuck transaction. Ethereum only.'),
  maxRequestFeeGwei: requestFeeText()
    .default('1000000')
    .describe(
      'Highest fee in gwei that one exit or withdrawal request may pay to the EIP-7002 contract, which asks for more the more requests wait (1 wei when none does). Ethereum only.',
    ),
  maxPriorityFeeLamports: inWords(
    z
      .string()
      .min(1)
      .max(10)
      .regex(/^(0|[1-9][0-9]{0,9})$/),
    'must be a whole number of lamports such as "100000"',
  )
    .default('100000')
    .describe(
      'Highest priority fee in lamports of one transaction of a Solana stake, whatever the stake allows, on top of the base fee of 5000 lamports a signature. Solana only.',
    ),
  validators: z
    .enum(['Own', 'Any'])
    .default('Own')
    .describe(
      'Of which validators exits and withdrawals may ask. Own: of those that an EthereumStake of the same namespace has paid for or has adopted. Any: of every validator whose withdrawal address this key has, so that each admitted namespace can exit those of all others. Ethereum only.',
    ),
  sharedKey: z
    .boolean()
    .optional()
    .describe(
      'The key is used elsewhere on purpose: transactions that the log does not know are no reason to stop. Left out or false, they are.',
    ),
})
export type SignerPolicy = z.output<typeof policy>

const spec = z.strictObject({
  chain: immutable(z.enum(['Ethereum', 'Solana']), 'chain').describe('Ethereum or Solana.'),
  keyName: inWords(
    dnsLabel(),
    'must be lower-case letters, digits and hyphens: treasury, where the Secret has treasury.privateKey',
  ).describe('Folder of the mounted key: /var/run/staking/keys/<keyName>/.'),
  address: immutable(z.string().min(32).max(44), 'address').describe(
    'Address of the key: what the mounted key must turn out to be. Ethereum: 20 bytes in hex with 0x. Another key is another signer.',
  ),
  acknowledgedNonce: wholeNumber()
    .optional()
    .describe(
      "All transactions of this key below this nonce were looked at by a person. Needed once where the key was used before the operator's log began.",
    ),
  minimumBalance: inWords(
    z
      .string()
      .min(1)
      .max(20)
      .regex(/^(0|[1-9][0-9]{0,9})(\.[0-9]{1,9})?$/),
    'must be a plain decimal number of ETH or SOL such as "0.5"',
  )
    .optional()
    .describe('Balance in ETH or SOL under which Funded is False, on each network where the address holds anything or is to pay.'),
  suspend: z
    .boolean()
    .optional()
    .describe(
      'Stops the key, in an emergency: nothing more is signed with it but what cancels, and nothing that it has signed is sent again. What was sent is followed.',
    ),
  policy: policy.describe('What this key may be used for. What it does not admit is not signed.'),
})

const inFlight = z.object({
  origin: z.string().max(64).describe('Origin UID of the resource.'),
  kind: z.string().max(63).describe('Kind of the resource.'),
  namespace: dnsLabel().describe('Namespace of the resource.'),
  name: dnsSubdomain().describe('Name of the resource.'),
  step: z.string().max(32).describe('Step of the resource that the transaction belongs to.'),
  pubkey: pubkey().optional().describe('The public key of the validator that is paid, or that is asked to exit or to pay.'),
  nonce: wholeNumber().describe('Nonce given out.'),
  valueWei: integerText().describe('Value in wei.'),
  gas: integerText(20).describe('Gas limit of the current version.'),
  maxFeePerGasWei: integerText().describe('Highest total fee per gas in wei of the current version.'),
  maxPriorityFeePerGasWei: integerText().describe('Highest tip per gas in wei of the current version.'),
  hash: transactionHash().describe('Hash of the current version.'),
  earlierHashes: z.array(transactionHash()).max(32).optional().describe('Hashes of all earlier versions.'),
  recordedAt: time().describe('When the nonce was given out.'),
  displacedPubkeys: z
    .array(pubkey())
    .max(8)
    .optional()
    .describe('Validators that earlier transactions under this nonce would pay: until the nonce is final, one of those may land instead.'),
})
export type InFlight = z.output<typeof inFlight>

const displacedRequest = z.object({
  ...inFlight.pick({ origin: true, kind: true, namespace: true, name: true, pubkey: true, nonce: true }).shape,
  hashes: z.array(transactionHash()).max(33).describe('Hashes of all its versions: any of them may have been sent.'),
})
export type DisplacedRequest = z.output<typeof displacedRequest>

const ledger = z.object({
  network: dnsLabel().describe('Network that these nonces belong to.'),
  nextNonce: wholeNumber().describe('The highest nonce given out, plus one. It never goes down.'),
  balanceWei: integerText().optional().describe('Balance in wei when the ledger was last written.'),
  inFlight: z
    .array(inFlight)
    .max(128)
    .optional()
    .meta(listMap('nonce'))
    .describe('Transactions whose nonce was given out and is not final yet; those of exits and withdrawals until their outcome is known.'),
  displacedRequests: z
    .array(displacedRequest)
    .max(256)
    .optional()
    .describe(
      'Exit and withdrawal requests whose nonce was given to another transaction. They may land in its place, and are kept until their outcome is known: no contract tells whether one was made.',
    ),
})
export type Ledger = z.output<typeof ledger>

const lane = z.object({
  network: dnsLabel().describe('Network that the lane belongs to.'),
  nextNonce: wholeNumber().optional().describe('The nonce that is given out next. Ethereum only.'),
  open: wholeNumber().describe('Transactions that may land yet.'),
  waiting: wholeNumber().describe('Transactions that wait for a nonce; on Solana, that are not signed, or are to be signed again.'),
  oldestNonce: wholeNumber().optional().describe('The lowest nonce that is not settled.'),
  validators: wholeNumber()
    .optional()
    .describe(
      "Validators of this cluster's EthereumStakes that hold money and have this address as withdrawal address, which can never be changed: only this key can ask for their exits and withdrawals. Ethereum only.",
    ),
  balanceWei: integerText().optional().describe('Balance in wei when it was read last. Ethereum only.'),
  balanceLamports: integerText(20).optional().describe('Balance in lamports when it was read last. Solana only.'),
  neededWei: integerText().optional().describe('What waits to be paid from it, fees and all, in wei. Ethereum only.'),
  neededLamports: integerText(20).optional().describe('What waits to be paid from it, in lamports. Solana only.'),
})
export type SignerLane = z.output<typeof lane>

const status = z.object({
  observedGeneration: observedGeneration(),
  lastHandledReconcileAt: lastHandledReconcileAt(),
  address: z.string().max(44).optional().describe('Address of the mounted key.'),
  balance: z.string().max(1024).optional().describe('What it holds on each network, for people, such as "64 ETH on hoodi".'),
  balanceReadAt: time().optional().describe('When its balances were read last: written with every change, and otherwise once an hour.'),
  lanes: z
    .array(lane)
    .max(32)
    .optional()
    .meta(listMap('network'))
    .describe('Where the key stands on each network, for people: what was signed stands in StakingTransactions and SignerNonces.'),
  limits: z
    .array(limitUse)
    .max(LIMITS_SHOWN)
    .optional()
    .describe('What of spec.policy.limits is used, for people, as of the last look: the log decides.'),
  ledgers: z
    .array(ledger)
    .max(32)
    .optional()
    .meta(listMap('network'))
    .describe(
      'Deprecated. Written by versions before the transaction log. What it holds is taken into StakingTransactions and SignerNonces, and then it is removed; until then nothing is signed with this key.',
    ),
  conditions,
})

export const stakingSigner = {
  kind: 'StakingSigner',
  plural: 'stakingsigners',
  singular: 'stakingsigner',
  shortNames: ['signer', 'signers'],
  scope: 'Cluster',
  description:
    'StakingSigner is a key that stakes may be paid with: where it is mounted, whose resources may use it and within which limits. Its transactions are in StakingTransactions. Its condition KeyNeeded says whether its key can be thrown away.',
  spec: cel(
    spec,
    {
      rule: "self.chain != 'Ethereum' || self.address.matches('^0x[0-9a-fA-F]{40}$')",
      message: 'must be an Ethereum address: 20 bytes in hex with 0x',
      fieldPath: '.address',
    },
    {
      rule: "self.chain != 'Solana' || self.address.matches('^[1-9A-HJ-NP-Za-km-z]{32,44}$')",
      message: 'must be a Solana address in base58',
      fieldPath: '.address',
    },
    {
      rule: "self.chain != 'Solana' || !self.policy.maxPerTransaction.contains('.')",
      message: 'must be a whole number of lamports for a Solana signer (1 SOL is 1000000000)',
      fieldPath: '.policy.maxPerTransaction',
    },
    {
      rule: `self.chain != 'Solana' || self.policy.maxPerTransaction.contains('.') || self.policy.maxPerTransaction == '0' || size(self.policy.maxPerTransaction) >= ${LEAST_LAMPORTS.length}`,
      message: `of a Solana signer it is in lamports, and 0 or at least ${LEAST_LAMPORTS}: 10 SOL is "10000000000"`,
      fieldPath: '.policy.maxPerTransaction',
    },
    {
      rule: "self.chain != 'Ethereum' || self.policy.maxPerTransaction.matches('^[0-9]{1,6}([.]|$)')",
      message: 'of an Ethereum signer it is in ETH, and under a million: 32 ETH is "32", not an amount of gwei or wei',
      fieldPath: '.policy.maxPerTransaction',
    },
    {
      rule: "!has(self.policy.limits) || self.policy.limits.all(one, !has(one.maxTotalEth) || one.maxTotalEth.matches('^[0-9]{1,8}([.]|$)'))",
      message: 'maxTotalEth is in ETH, and under a hundred million: 320 ETH is "320", not an amount of gwei or wei',
      fieldPath: '.policy.limits',
    },
    {
      rule: "!has(self.policy.approval) || !has(self.policy.approval.aboveEth) || self.policy.approval.aboveEth.matches('^[0-9]{1,6}([.]|$)')",
      message: 'aboveEth is in ETH, and under a million: 64 ETH is "64", not an amount of gwei or wei',
      fieldPath: '.policy.approval',
    },
    {
      rule: "!has(self.policy.limits) || self.policy.limits.all(one, self.chain == 'Ethereum' ? !has(one.maxTotalSol) : !has(one.maxTotalEth))",
      message: 'limits of an Ethereum signer are in ETH (maxTotalEth), those of a Solana signer in SOL (maxTotalSol)',
      fieldPath: '.policy.limits',
    },
    {
      rule: "!has(self.policy.approval) || (self.chain == 'Ethereum' ? !has(self.policy.approval.aboveSol) : !has(self.policy.approval.aboveEth))",
      message: 'of an Ethereum signer it is in ETH (aboveEth), of a Solana signer in SOL (aboveSol)',
      fieldPath: '.policy.approval',
    },
    {
      rule: "!has(self.policy.approval) || !has(self.policy.approval.kinds) || self.policy.approval.kinds.all(one, one.startsWith('Solana') == (self.chain == 'Solana'))",
      message:
        'an Ethereum signer signs Deposit, Exit and Withdrawal, a Solana signer SolanaStake, SolanaDeactivation and SolanaWithdrawal',
      fieldPath: '.policy.approval.kinds',
    },
    {
      rule: '!has(oldSelf.acknowledgedNonce) || (has(self.acknowledgedNonce) && self.acknowledgedNonce >= oldSelf.acknowledgedNonce)',
      message: 'acknowledgedNonce can only be raised',
      fieldPath: '.acknowledgedNonce',
    },
  ),
  status,
  instead: { states: [], otherwise: 'create another StakingSigner under another name, and keep this one for what it has signed' },
  printerColumns: [
    { name: 'Chain', type: 'string', jsonPath: '.spec.chain', description: 'Chain of the key.' },
    { name: 'Address', type: 'string', jsonPath: '.spec.address', description: 'Address of the key.' },
    { name: 'Balance', type: 'string', jsonPath: '.status.balance', description: 'What it holds on each network.' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status', description: 'Whether it can be used.' },
    {
      name: 'Funded',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Funded")].status',
      description: 'Whether it can pay what waits.',
    },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason', description: 'Why it cannot.' },
    ...lastColumns,
  ],
  selectableFields: ['.spec.chain'],
} as const satisfies KindDefinition

export type StakingSignerSpec = z.output<typeof spec>
export type StakingSignerStatus = z.output<typeof status>
export type StakingSigner = Resource<StakingSignerSpec, StakingSignerStatus>
export const stakingSignerSpec: z.ZodType<StakingSignerSpec> = spec
export const STAKING_SIGNER_API = { apiVersion: API_VERSION, kind: stakingSigner.kind } as const
export const stakingSignerConditions = ['Ready', 'Reconciling', 'Stalled', 'KeyValid', 'Funded', 'KeyUsedElsewhere', 'KeyNeeded'] as const
export type StakingSignerCondition = (typeof stakingSignerConditions)[number]
