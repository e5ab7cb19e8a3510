import { z } from 'zod'
import { adoption, adoptUntilThereIsAStake, stakeIdText } from './adoption.ts'
import { lastColumns, readyColumns } from './columns.ts'
import { conditions } from './conditions.ts'
import { API_VERSION, type KindDefinition, type Resource } from './meta.ts'
import { mode, planBeforeSigning } from './mode.ts'
import { planField } from './plan.ts'
import {
  blockhash,
  cel,
  coinText,
  dnsSubdomain,
  immutable,
  integerText,
  inWords,
  lastHandledReconcileAt,
  networkText,
  observedAt,
  observedGeneration,
  phase,
  signature,
  solanaAddress,
  time,
  wholeNumber,
} from './schema.ts'

/** u64::MAX lamports. */
const maxLamports = '18446744073709551615'
/**
 * No stake account is made with less: its rent reserve is 2282880 lamports, and 228288 at the lowest rate that is proposed (SIMD-0437). What it is now, only
 * the cluster can say. An amount under it is SOL that was written for lamports.
 */
export const LEAST_LAMPORTS = '100000'
const words = 'must be a Solana address in base58 (32 to 44 characters)'
const address = () => inWords(solanaAddress(), words)
const lamportsText = () => integerText(20)

/**
 * Addresses of the cluster itself that a withdrawal credits and nobody gets anything back from. What else is unfit, only the chain can say. Source: Solana
 * documentation, "Native Programs" and "Sysvars"; Solana SDK, `incinerator::ID`; solana-program/token.
 */
export const noDestinations = [
  '11111111111111111111111111111111',
  '1nc1nerator11111111111111111111111111111111',
  'Stake11111111111111111111111111111111111111',
  'StakeConfig11111111111111111111111111111111',
  'Vote111111111111111111111111111111111111111',
  'Config1111111111111111111111111111111111111',
  'ComputeBudget111111111111111111111111111111',
  'Feature111111111111111111111111111111111111',
  'BPFLoader1111111111111111111111111111111111',
  'BPFLoader2111111111111111111111111111111111',
  'BPFLoaderUpgradeab1e11111111111111111111111',
  'NativeLoader1111111111111111111111111111111',
  'AddressLookupTab1e1111111111111111111111111',
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
  'Sysvar1111111111111111111111111111111111111',
  'SysvarC1ock11111111111111111111111111111111',
  'SysvarRent111111111111111111111111111111111',
  'SysvarStakeHistory1111111111111111111111111',
  'SysvarEpochSchedu1e111111111111111111111111',
  'SysvarEpochRewards1111111111111111111111111',
  'SysvarRecentB1ockHashes11111111111111111111',
  'SysvarS1otHashes111111111111111111111111111',
  'SysvarS1otHistory11111111111111111111111111',
  'SysvarLastRestartS1ot1111111111111111111111',
  'Sysvar1nstructions1111111111111111111111111',
] as const

/** A cap on the priority fee of a transaction, in lamports. */
export const priorityFeeText = () =>
  inWords(
    z
      .string()
      .min(1)
      .max(10)
      .regex(/^(0|[1-9][0-9]{0,9})$/),
    'must be a whole number of lamports such as "10000"',
  )

const spec = z.object({
  network: immutable(networkText(), 'network').describe("Name of a Solana network in the operator's configuration, such as mainnet-beta."),
  amountLamports: immutable(
    cel(
      inWords(
        z
          .string()
          .min(1)
          .max(20)
          .regex(/^[1-9][0-9]{0,19}$/),
        'must be a whole number of lamports such as "5000000000" (5 SOL)',
      ),
      { rule: `self.size() < 20 || self <= '${maxLamports}'`, message: `must be at most ${maxLamports} lamports` },
      {
        rule: `!self.matches(r'^[1-9][0-9]*$') || size(self) >= ${LEAST_LAMPORTS.length}`,
        message: `must be at least ${LEAST_LAMPORTS} lamports: it is in lamports, of which a stake account alone takes more. 5 SOL is "5000000000"`,
      },
    ),
    'amountLamports',
  ).describe(
    'What the stake authority pays into the stake account, in lamports, as text. The cluster’s rent reserve for a stake account is part of it and is not delegated; it comes back with the rest.',
  ),
  voteAccount: immutable(address(), 'voteAccount')
    .optional()
    .describe("Vote account that the stake is delegated to. Left out, the staking API chooses, and the signer's policy is asked."),
  stakeAuthority: z
    .object({
      signer: immutable(dnsSubdomain(), 'stakeAuthority.signer').describe(
        'Name of the StakingSigner that pays the amount and all fees, delegates and deactivates. A SolanaStakeAuthorization hands that over to another.',
      ),
    })
    .describe('Who pays, and who decides whether the stake is delegated.'),
  withdrawAuthority: z
    .object({
      signer: immutable(dnsSubdomain(), 'withdrawAuthority.signer').describe(
        'Name of the StakingSigner that approves the stake and withdraws it. It may be the same; keep it colder if you can. A SolanaStakeAuthorization hands that over to another.',
      ),
    })
    .describe('Who owns the money.'),
  desiredState: z
    .enum(['Active', 'Inactive', 'Withdrawn'])
    .default('Active')
    .describe(
      'Active (delegated and earning), Inactive (deactivated, the money stays in the stake account) or Withdrawn (deactivated, all money at the destination, the account closed). It only goes forward.',
    ),
  destination: immutable(
    cel(address(), {
      rule: `!(self in [${[...noDestinations].map((one) => `'${one}'`).join(', ')}])`,
      message: 'is a program, a sysvar or the incinerator: money that goes there is lost',
    }),
    'destination',
  )
    .optional()
    .describe("Where the money goes when it is withdrawn: a Solana address. Left out: the withdraw authority's own."),
  maxPriorityFeeLamports: priorityFeeText()
    .default('10000')
    .describe('Highest priority fee of one transaction, in lamports, on top of the base fee of 5000 lamports a signature.'),
  adopt: adoption(),
  suspend: z.boolean().optional().describe('Stops everything but watching: nothing is created, signed or sent.'),
  mode: mode(),
})

const earlier = z.object({
  signature: signature().describe('Signature of an earlier attempt.'),
  attempt: wholeNumber().describe('Its number.'),
  outcome: z
    .enum(['Expired', 'Failed'])
    .describe('Expired (it can never land) or Failed (it is in a block, and moved nothing but its fee).'),
})

/** A transaction of a stake account, as status shows it. */
export const solanaTransaction = z.object({
  txId: z.string().min(1).max(64).optional().describe("The transaction's id in the staking API."),
  attempt: wholeNumber().describe('Number of this attempt, from 1.'),
  message: z
    .string()
    .max(1644)
    .regex(/^[A-Za-z0-9+/]*={0,2}$/)
    .optional()
    .describe('The message that is signed, in base64, until it is final. It is verified against the spec again at every signature.'),
  signature: signature().optional().describe("The fee payer's signature of the message: the transaction's name on the chain."),
  blockhash: inWords(blockhash(), words).optional().describe('Blockhash that it is valid by.'),
  lastValidBlockHeight: wholeNumber().optional().describe('Block height after which it can no longer land.'),
  preparedAtSlot: wholeNumber().optional().describe('A slot at or before the one in which its blockhash was read.'),
  preparedAt: time().optional().describe('When it was made.'),
  earlier: z
    .array(earlier)
    .max(32)
    .optional()
    .describe('Earlier attempts, oldest first. Each is looked for as long as the transaction is not final.'),
  broadcastSignature: signature().optional().describe('The attempt that a node has accepted last.'),
  reportedSignature: signature().optional().describe('The attempt that the staking API was told last.'),
  state: z
    .enum(['Prepared', 'Broadcast', 'Confirmed', 'Expired', 'Failed'])
    .describe(
      'Prepared (sent to nobody yet), Broadcast, Confirmed (final), Expired (it can never land; another attempt follows) or Failed (it landed and did nothing).',
    ),
  landedSignature: signature().optional().describe('The attempt that landed.'),
  slot: wholeNumber().optional().describe('Slot in which it landed, or at which its effect was seen final.'),
  failure: z.string().max(128).optional().describe("The cluster's name for why it failed."),
})
export type SolanaTransaction = z.output<typeof solanaTransaction>
export type EarlierAttempt = z.output<typeof earlier>

const protocol = z.object({
  status: z
    .enum(['Created', 'Activating', 'Active', 'Deactivating', 'Inactive', 'Withdrawn'])
    .describe('Created (nothing is on the chain yet), Activating, Active, Deactivating, Inactive or Withdrawn.'),
  activationEpoch: wholeNumber().optional().describe('Epoch in which it began to warm up.'),
  deactivationEpoch: wholeNumber().optional().describe('Epoch in which it began to cool down.'),
  activeLamports: lamportsText().describe('Lamports that earn.'),
  inactiveLamports: lamportsText().describe('Lamports of the account that do not earn, the rent reserve among them.'),
  epoch: wholeNumber().describe('Epoch in which this was seen.'),
  slot: wholeNumber().describe('Final slot at which the rest was seen first.'),
  stakeAuthority: address().optional().describe('Stake authority as it stands on the chain.'),
  withdrawAuthority: address().optional().describe('Withdraw authority as it stands on the chain.'),
  voteAccount: address().optional().describe('Vote account as it stands on the chain.'),
  // A time and an epoch may both be the last that there is.
  lockedUntil: z.string().max(128).optional().describe('A lockup in force: no withdrawal before.'),
  lockupCustodian: address().optional().describe('Who alone can lift the lockup in force.'),
  validator: z
    .enum(['Voting', 'EarnsNothing', 'Delinquent', 'Closed'])
    .optional()
    .describe(
      'The vote account of an active stake when it was looked at last. Anyone may deactivate a stake whose vote account is closed, or has been delinquent for five epochs.',
    ),
  unreadable: z.string().max(256).optional().describe('Why the stake account cannot be read: the rest is what was seen before.'),
})
export type SolanaProtocol = z.output<typeof protocol>

const requiredKey = z.object({
  step: z.enum(['Stake', 'Deactivation', 'Withdrawal']).describe('The transaction that it signs, or approves.'),
  authority: z.enum(['Stake', 'Withdraw']).describe('Whose key it is: the stake authority’s or the withdraw authority’s.'),
  signer: z.string().max(253).describe('The StakingSigner whose key it is.'),
  keyName: z
    .string()
    .max(63)
    .optional()
    .describe('Folder below /var/run/staking/keys where the Secret with the key is mounted; left out where the signer is not there.'),
})
export type SolanaRequiredKey = z.output<typeof requiredKey>

const status = z.object({
  observedGeneration: observedGeneration(),
  lastHandledReconcileAt: lastHandledReconcileAt(),
  observedAt: observedAt(),
  phase: phase(),
  stakeId: stakeIdText().optional().describe("The stake's id in the staking API. The stake account's address is made of it."),
  amountSol: coinText().optional().describe('spec.amountLamports in SOL, for people.'),
  activeSol: coinText().optional().describe('protocol.activeLamports in SOL, for people.'),
  stakeAccount: address().optional().describe('Address of the stake account.'),
  stakeAuthority: address().optional().describe('Address of the stake authority, which pays: as the operator knows it, by its own log.'),
  withdrawAuthority: address().optional().describe('Address of the withdraw authority.'),
  handOver: z
    .object({
      slot: wholeNumber().optional().describe('Slot in which the last one became final.'),
      stakeSigner: z
        .string()
        .max(253)
        .optional()
        .describe('Name of the StakingSigner that has the stake authority now, in place of the one in spec; empty where none has.'),
      withdrawSigner: z
        .string()
        .max(253)
        .optional()
        .describe('Name of the StakingSigner that has the withdraw authority now, in place of the one in spec; empty where none has.'),
      expected: z
        .object({
          stakeAuthority: address().optional().describe('Stake authority.'),
          withdrawAuthority: address().optional().describe('Withdraw authority.'),
        })
        .optional()
        .describe('What one that is in flight makes of the authorities.'),
    })
    .optional()
    .describe('What SolanaStakeAuthorizations have made of the authorities.'),
  voteAccount: address().optional().describe('Vote account that the stake is delegated to.'),
  verifiedStakeId: stakeIdText()
    .optional()
    .describe('The stake whose terms were verified against the spec. They are verified again at every signature.'),
  looked: z
    .boolean()
    .optional()
    .describe('The chain and the staking API were looked at for a stake that is not wanted any more, and there is none.'),
  cancelled: z
    .boolean()
    .optional()
    .describe(
      'Of a resource that is being deleted and was never paid: whether its stake was cancelled at the staking API, so that its name is free (true), or could not be, since that API cancels none (false).',
    ),
  plan: planField(),
  transactions: z
    .object({
      stake: solanaTransaction.optional().describe('Makes, funds and delegates the stake account.'),
      deactivation: solanaTransaction.optional().describe('Begins the cool-down.'),
      withdrawal: solanaTransaction.optional().describe('Withdraws everything and closes the account.'),
    })
    .optional()
    .describe('The transactions of this stake, each written down before it is sent.'),
  requiresKey: z
    .array(requiredKey)
    .max(2)
    .optional()
    .describe(
      'The keys without which the next transaction cannot go; all others may be kept offline. A withdrawal needs the withdraw authority’s alone: it pays too, where the stake authority’s is not mounted.',
    ),
  protocol: protocol.optional().describe('Where the stake is in its life, as the operator reads it from the chain.'),
  conditions,
})

export const solanaStake = {
  kind: 'SolanaStake',
  plural: 'solanastakes',
  singular: 'solanastake',
  shortNames: ['solstake', 'solstakes'],
  scope: 'Namespaced',
  description:
    'SolanaStake is one stake account: funded once, delegated to one vote account, deactivated and withdrawn as desiredState says. Ready means that it is in its desired state.',
  spec: cel(spec, {
    rule: "self.desiredState == oldSelf.desiredState || oldSelf.desiredState == 'Active' || self.desiredState == 'Withdrawn'",
    message: 'desiredState only goes forward: Active, Inactive, Withdrawn. To stake again, create another resource',
    fieldPath: '.desiredState',
  }),
  status,
  rules: [
    adoptUntilThereIsAStake({ stake: 'has(self.status.verifiedStakeId) || has(self.status.transactions)' }),
    // What has landed is done: what comes after it can be planned.
    planBeforeSigning({
      signed: `has(self.status.transactions) && (${['stake', 'deactivation', 'withdrawal'].map((step) => `(has(self.status.transactions.${step}) && self.status.transactions.${step}.state in ['Prepared', 'Broadcast'])`).join(' || ')})`,
    }),
  ],
  instead: {
    states: [
      {
        when: "self.?status.?transactions.?stake.hasValue() && !(self.status.transactions.stake.state in ['Failed', 'Expired']) && self.status.?protocol.?status.orValue('') != 'Withdrawn'",
        advice:
          'the stake of this resource was paid, or may be, as it was. Put the old value back and keep this resource; for another stake, create another resource under another name',
      },
    ],
    otherwise: 'delete this resource and create another',
  },
  printerColumns: [
    { name: 'Network', type: 'string', jsonPath: '.spec.network', description: 'Network of the stake.' },
    { name: 'SOL', type: 'string', jsonPath: '.status.amountSol', description: 'Amount in SOL.' },
    { name: 'Desired', type: 'string', jsonPath: '.spec.desiredState', description: 'Where it should be.' },
    ...readyColumns('True once it is in its desired state.'),
    { name: 'Account', type: 'string', jsonPath: '.status.stakeAccount', description: 'Address of the stake account.', priority: 1 },
    {
      name: 'Transaction',
      type: 'string',
      jsonPath: ".status.transactions['withdrawal','deactivation','stake'].signature",
      description: 'Signature of the latest transaction.',
      priority: 1,
    },
    {
      name: 'Active-SOL',
      type: 'string',
      jsonPath: '.status.activeSol',
      description: 'SOL that earn.',
      priority: 1,
    },
    ...lastColumns,
  ],
  selectableFields: ['.spec.network', '.spec.stakeAuthority.signer', '.spec.withdrawAuthority.signer', '.spec.desiredState'],
} as const satisfies KindDefinition

export type SolanaStakeSpec = z.output<typeof spec>
export type SolanaStakeStatus = z.output<typeof status>
export type SolanaStake = Resource<SolanaStakeSpec, SolanaStakeStatus>
export const solanaStakeSpec: z.ZodType<SolanaStakeSpec> = spec
export const SOLANA_STAKE_API = { apiVersion: API_VERSION, kind: solanaStake.kind } as const

/** Conditions of a SolanaStake, all present from the first visit. */
export const solanaStakeConditions = [
  'Ready',
  'Reconciling',
  'Stalled',
  'Created',
  'Verified',
  'Broadcast',
  'Confirmed',
  'Active',
  'Inactive',
  'Withdrawn',
] as const
export type SolanaStakeCondition = (typeof solanaStakeConditions)[number]
