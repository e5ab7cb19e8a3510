import { z } from 'zod'
import { lastColumns, readyColumns } from './columns.ts'
import { conditions } from './conditions.ts'
import { API_VERSION, type KindDefinition, type Resource } from './meta.ts'
import { mode, planBeforeSigning } from './mode.ts'
import { planField } from './plan.ts'
import {
  cel,
  dnsLabel,
  dnsSubdomain,
  immutable,
  inWords,
  lastHandledReconcileAt,
  observedAt,
  observedGeneration,
  phase,
  solanaAddress,
} from './schema.ts'
import { noDestinations, priorityFeeText, solanaTransaction } from './solana-stake.ts'

const address = () => inWords(solanaAddress(), 'must be a Solana address in base58 (32 to 44 characters)')

/** Who is to have an authority. */
const successor = () =>
  cel(
    z.object({
      signer: dnsSubdomain()
        .optional()
        .describe('Name of the StakingSigner whose key it is. That key signs too, which proves that it is there.'),
      address: cel(address(), {
        rule: `!(self in [${noDestinations.map((one) => `'${one}'`).join(', ')}])`,
        message: 'is a program, a sysvar or the incinerator: nobody can sign for it',
      })
        .optional()
        .describe(
          'Address of a key that no StakingSigner has. Nothing proves that anybody has it, so acceptUnproven must be true; and nothing more is signed for the stake here.',
        ),
    }),
    { rule: 'has(self.signer) != has(self.address)', message: 'must have either signer or address' },
  )

const spec = z.object({
  stakeRef: immutable(z.object({ name: dnsSubdomain().describe('Name of a SolanaStake in the same namespace.') }), 'stakeRef').describe(
    'The stake: a SolanaStake in the same namespace.',
  ),
  stakeAuthority: immutable(successor(), 'stakeAuthority')
    .optional()
    .describe(
      'Who is to be the stake authority, which deactivates and pays the fees. The policy of the present one has to name its address (allowedSuccessors). Left out: it stays.',
    ),
  withdrawAuthority: immutable(successor(), 'withdrawAuthority')
    .optional()
    .describe(
      'Who is to be the withdraw authority, which owns the money. The policy of the present one has to name its address (allowedSuccessors). Left out: it stays.',
    ),
  acceptUnproven: immutable(z.boolean(), 'acceptUnproven')
    .optional()
    .describe('Has to be true where an address is named: nobody else can give the stake back if there is no key for it.'),
  maxPriorityFeeLamports: priorityFeeText()
    .default('10000')
    .describe('Highest priority fee of the transaction, in lamports, on top of the base fee of 5000 lamports a signature.'),
  suspend: z.boolean().optional().describe('Stops everything but watching: nothing is signed or sent.'),
  mode: mode(),
})

const holders = z.object({
  stakeAuthority: address().optional().describe('Stake authority.'),
  withdrawAuthority: address().optional().describe('Withdraw authority.'),
})

const status = z.object({
  observedGeneration: observedGeneration(),
  lastHandledReconcileAt: lastHandledReconcileAt(),
  observedAt: observedAt(),
  phase: phase(),
  network: dnsLabel().optional().describe('Network of the stake.'),
  stakeAccount: address().optional().describe('Address of the stake account.'),
  from: holders.optional().describe('Who had the authorities that are replaced.'),
  to: holders.optional().describe('Who is to have them.'),
  plan: planField(),
  transaction: solanaTransaction.optional().describe('The transaction that replaces them, written down before it is sent.'),
  conditions,
})

export const solanaStakeAuthorization = {
  kind: 'SolanaStakeAuthorization',
  plural: 'solanastakeauthorizations',
  singular: 'solanastakeauthorization',
  shortNames: ['solauth', 'solauths'],
  scope: 'Namespaced',
  description:
    'SolanaStakeAuthorization hands the authorities of a stake over to other keys, once. What was signed with the old keys ends first; afterwards the SolanaStake signs with the new ones, and the old ones are not needed any more. Ready means that it is final on the chain. Deleted before it is sent, nothing happens; afterwards it cannot be taken back but by another one.',
  spec: cel(
    spec,
    {
      rule: 'has(self.stakeAuthority) || has(self.withdrawAuthority)',
      message: 'must have stakeAuthority, withdrawAuthority or both',
    },
    {
      rule: '(has(self.acceptUnproven) && self.acceptUnproven) || !((has(self.stakeAuthority) && has(self.stakeAuthority.address)) || (has(self.withdrawAuthority) && has(self.withdrawAuthority.address)))',
      message: 'must be true where an address is named: whoever has no key for it loses the stake. Name a signer, or confirm it',
      fieldPath: '.acceptUnproven',
    },
  ),
  status,
  rules: [planBeforeSigning({ signed: 'has(self.status.transaction)' })],
  instead: { states: [], otherwise: 'create another SolanaStakeAuthorization under another name' },
  printerColumns: [
    { name: 'Stake', type: 'string', jsonPath: '.spec.stakeRef.name', description: 'The stake.' },
    ...readyColumns('True once it is final on the chain.'),
    { name: 'Account', type: 'string', jsonPath: '.status.stakeAccount', description: 'Address of the stake account.', priority: 1 },
    {
      name: 'Transaction',
      type: 'string',
      jsonPath: '.status.transaction.signature',
      description: 'Signature of the transaction.',
      priority: 1,
    },
    ...lastColumns,
  ],
  selectableFields: ['.spec.stakeRef.name'],
} as const satisfies KindDefinition

export type SolanaStakeAuthorizationSpec = z.output<typeof spec>
export type SolanaStakeAuthorizationStatus = z.output<typeof status>
export type SolanaStakeAuthorization = Resource<SolanaStakeAuthorizationSpec, SolanaStakeAuthorizationStatus>
export const SOLANA_STAKE_AUTHORIZATION_API = { apiVersion: API_VERSION, kind: solanaStakeAuthorization.kind } as const

/** Conditions of a SolanaStakeAuthorization, all present from the first visit. */
export const solanaStakeAuthorizationConditions = ['Ready', 'Reconciling', 'Stalled', 'Verified', 'Broadcast', 'Confirmed'] as const
export type SolanaStakeAuthorizationCondition = (typeof solanaStakeAuthorizationConditions)[number]
