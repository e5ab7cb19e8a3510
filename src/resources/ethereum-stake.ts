import { z } from 'zod'
import { reservedAddress, systemContracts } from '../lib/system-addresses.ts'
import { adoption, adoptUntilThereIsAStake, stakeIdText } from './adoption.ts'
import { lastColumns, readyColumns } from './columns.ts'
import { conditions } from './conditions.ts'
import { transactionFields } from './ethereum-transaction.ts'
import { API_VERSION, type KindDefinition, type Resource } from './meta.ts'
import { mode, planBeforeSigning } from './mode.ts'
import { planField } from './plan.ts'
import {
  address,
  cel,
  dnsSubdomain,
  hexBytes,
  immutable,
  integerText,
  inWords,
  lastHandledReconcileAt,
  networkText,
  observedAt,
  observedGeneration,
  phase,
  pubkey,
} from './schema.ts'

/** ETH as text. */
const ETH = /^(0|[1-9][0-9]{0,3})(\.[0-9]{1,9})?$/
const ethText = inWords(
  z.string().min(1).max(14).regex(ETH),
  'must be a plain decimal number of ETH such as "32" or "32.5", with at most 9 decimals (1 gwei), not of gwei or wei',
)
const gweiDecimalText = () =>
  inWords(
    z
      .string()
      .min(1)
      .max(20)
      .regex(/^(0|[1-9][0-9]{0,9})(\.[0-9]{1,9})?$/),
    'must be a plain decimal number of gwei such as "30" or "2.5", not of wei',
  )
/** A cap of 0 stops what it is for, and says so to nobody who doesn't look. */
const moreThanNothing = (what: string) => ({
  rule: "!self.matches(r'^0([.]0+)?$')",
  message: `must be more than 0, or ${what}. To stop, set spec.suspend`,
})
/**
 * A cap on what a gas unit may cost. A base fee is at least 7 wei (EIP-1559), so that a cap of 0 would stop what it is for without a word; and no gas has ever
 * cost a hundredth of a million gwei, so that more than that is an amount of wei, and caps nothing.
 */
export const gasPriceText = () =>
  cel(
    gweiDecimalText(),
    moreThanNothing('nothing is ever sent: leave it out, or write a cap such as "100"'),
    // Longer texts are told about by the rule that has all in words.
    {
      rule: "!self.matches(r'^[1-9][0-9]{6,9}([.]|$)')",
      message: 'must be under a million gwei: it is in gwei, not in wei, and 1 gwei is "1"',
    },
  )
/** A cap on the fee of a request, of which the EIP-7002 contract asks for 1 wei at least. */
export const requestFeeText = () =>
  cel(
    gweiDecimalText(),
    moreThanNothing(
      'no exit and no withdrawal is ever sent: the EIP-7002 contract asks for 0.000000001 gwei (1 wei) at least. Leave it out, or write a cap such as "1000000"',
    ),
  )

const spec = z.object({
  network: immutable(networkText(), 'network').describe("Name of a network in the operator's configuration, such as mainnet or hoodi."),
  amountEth: immutable(
    cel(
      ethText,
      {
        rule: `!self.matches(r'${ETH.source}') || double(self) >= 32.0`,
        message: 'must be at least 32 ETH: a validator needs 32 ETH to become active',
      },
      {
        rule: `!self.matches(r'${ETH.source}') || double(self) <= 2048.0`,
        message: 'must be at most 2048 ETH: more than that earns nothing',
      },
    ),
    'amountEth',
  ).describe('Amount to deposit in ETH, as text: 32 for Execution credentials, 32 to 2048 for Compounding ones, at most 9 decimals.'),
  withdrawalAddress: immutable(
    cel(
      inWords(address(), 'must be an Ethereum address: 0x and 40 hex digits'),
      {
        rule: "!self.matches('^0x0{40}$')",
        message: 'must not be the zero address: nobody can withdraw from there',
      },
      {
        rule: `self.matches('^0x0{40}$') || !self.matches('${reservedAddress.source}')`,
        message: 'must not be a precompile (EIP-1352: 0x0001 to 0xffff): nobody can withdraw from there',
      },
      {
        rule: `!(self.lowerAscii() in [${Object.keys(systemContracts)
          .map((contract) => `'${contract}'`)
          .join(', ')}])`,
        message:
          'must not be a contract of the protocol (deposit contract, EIP-7002, EIP-7251, EIP-4788, EIP-2935): it never pays anything out',
      },
    ),
    'withdrawalAddress',
  ).describe(
    'Address that the stake and its rewards are paid to: 20 bytes in hex with 0x. It becomes part of the withdrawal credentials (0x01 or 0x02) and can never be changed, nor moved to another key: exits and withdrawals can be asked for with this address’s key alone, for as long as the validator lives. Mixed case must be a valid EIP-55 checksum.',
  ),
  credentialsType: immutable(z.enum(['Compounding', 'Execution']), 'credentialsType')
    .default('Compounding')
    .describe(
      'Compounding (0x02: balance may grow to 2048 ETH, partial withdrawals on request) or Execution (0x01: 32 ETH, everything above is swept).',
    ),
  signer: immutable(dnsSubdomain(), 'signer').describe('Name of the StakingSigner whose key pays the deposit.'),
  maxFeePerGasGwei: gasPriceText().optional().describe('Highest fee per gas in gwei for this stake; the signer’s own cap holds as well.'),
  adopt: adoption(),
  suspend: z.boolean().optional().describe('Stops everything but watching: nothing is created, signed or sent.'),
  mode: mode(),
})

const status = z.object({
  observedGeneration: observedGeneration(),
  lastHandledReconcileAt: lastHandledReconcileAt(),
  observedAt: observedAt(),
  phase: phase(),
  stakeId: stakeIdText().optional().describe("The stake's id in the staking API."),
  depositData: z
    .object({
      pubkey: pubkey().describe("The validator's BLS public key."),
      withdrawalCredentials: hexBytes(32).describe('Withdrawal credentials.'),
      amountGwei: integerText(20).describe('Amount in gwei.'),
      signature: hexBytes(96).describe('BLS signature of the deposit message.'),
      depositDataRoot: hexBytes(32).describe('SSZ root of the deposit data.'),
    })
    .optional()
    .describe('What the deposit transaction carries, as the staking API gave it.'),
  verifiedRoot: hexBytes(32)
    .optional()
    .describe('The deposit data root that was verified against the spec. It is verified again at every signature.'),
  cancelled: z
    .boolean()
    .optional()
    .describe('The stake was cancelled at the staking API, unpaid, since this resource is being deleted: its name is free.'),
  withdrawalAddressIsContract: z
    .boolean()
    .optional()
    .describe(
      'The withdrawal address is a contract that the operator does not know: whether it can pay out is for its owner to make sure.',
    ),
  ...transactionFields('The deposit transaction', 'The deposit contract.'),
  plan: planField(),
  validator: z
    .object({
      pubkey: pubkey().describe('BLS public key.'),
      index: integerText(20).optional().describe('Index on the beacon chain.'),
      status: z.string().max(64).describe("The Beacon API's validator status, or unknown before it is seen."),
      slashed: z.boolean().optional().describe('It was slashed. This stays when it has left.'),
    })
    .optional()
    .describe('The validator on the beacon chain.'),
  consensus: z
    .object({
      status: z
        .enum(['Accepted', 'Dropped'])
        .describe('Accepted: the registry has the validator. Dropped: nothing was made of the deposit.'),
      rule: z.string().max(64).optional().describe('The rule that a dropped deposit broke.'),
    })
    .optional()
    .describe('What the consensus layer made of the deposit, as the staking API tells it. Left out while it is queued.'),
  conditions,
})

export const ethereumStake = {
  kind: 'EthereumStake',
  plural: 'ethereumstakes',
  singular: 'ethereumstake',
  shortNames: ['ethstake', 'ethstakes'],
  scope: 'Namespaced',
  description:
    'EthereumStake is one validator: a deposit of 32 to 2048 ETH, paid once by a StakingSigner to the deposit contract, with the withdrawal address given here. Ready means that the deposit is in a final block, and that the validator was not slashed.',
  spec: cel(spec, {
    rule: "!has(self.credentialsType) || self.credentialsType != 'Execution' || double(self.amountEth) <= 32.0",
    message: 'must be 32 with credentialsType Execution: a 0x01 validator earns nothing on more (use Compounding for 32 to 2048 ETH)',
    fieldPath: '.amountEth',
  }),
  status,
  rules: [
    adoptUntilThereIsAStake({ stake: 'has(self.status.verifiedRoot) || has(self.status.transaction)' }),
    planBeforeSigning({ signed: 'has(self.status.transaction)' }),
  ],
  instead: {
    states: [
      {
        when: "self.?status.?transaction.hasValue() && self.status.transaction.state != 'Failed' && self.status.?validator.?status.orValue('') != 'withdrawal_done'",
        advice:
          'the deposit of this resource was made, or may be, as it was. Put the old value back and keep this resource; for another stake, create another resource under another name',
      },
    ],
    otherwise: 'delete this resource and create another',
  },
  printerColumns: [
    { name: 'Network', type: 'string', jsonPath: '.spec.network', description: 'Network of the stake.' },
    { name: 'ETH', type: 'string', jsonPath: '.spec.amountEth', description: 'Amount in ETH.' },
    ...readyColumns('True once the deposit is final.'),
    {
      name: 'Transaction',
      type: 'string',
      jsonPath: '.status.transaction.hash',
      description: 'Hash of the deposit transaction.',
      priority: 1,
    },
    { name: 'Validator', type: 'string', jsonPath: '.status.depositData.pubkey', description: 'Public key of the validator.', priority: 1 },
    ...lastColumns,
  ],
  selectableFields: ['.spec.network', '.spec.signer'],
} as const satisfies KindDefinition

export type EthereumStakeSpec = z.output<typeof spec>
export type EthereumStakeStatus = z.output<typeof status>
export type EthereumStake = Resource<EthereumStakeSpec, EthereumStakeStatus>
export const ethereumStakeSpec: z.ZodType<EthereumStakeSpec> = spec
export const ETHEREUM_STAKE_API = { apiVersion: API_VERSION, kind: ethereumStake.kind } as const

/** Conditions of an EthereumStake, all present from the first visit. */
export const ethereumStakeConditions = [
  'Ready',
  'Reconciling',
  'Stalled',
  'Created',
  'Verified',
  'Broadcast',
  'Confirmed',
  'Active',
  'Slashed',
] as const
export type EthereumStakeCondition = (typeof ethereumStakeConditions)[number]
