import { z } from 'zod'
import { stakeIdText } from './adoption.ts'
import { lastColumns, readyColumns } from './columns.ts'
import { conditions } from './conditions.ts'
import { requestFeeText } from './ethereum-stake.ts'
import { transactionFields } from './ethereum-transaction.ts'
import type { PrinterColumn } from './meta.ts'
import { mode, planBeforeSigning } from './mode.ts'
import { planField } from './plan.ts'
import {
  coinText,
  dnsLabel,
  dnsSubdomain,
  hexBytes,
  immutable,
  lastHandledReconcileAt,
  observedAt,
  observedGeneration,
  phase,
  pubkey,
  wholeNumber,
} from './schema.ts'
import { type ValidatorRef, validatorRef } from './validator-ref.ts'

/** What the specs of ValidatorExit and ValidatorWithdrawal have in common. */
export const requestSpecFields = {
  validator: validatorRef(),
  signer: immutable(dnsSubdomain(), 'signer').describe(
    "Name of the StakingSigner that sends the request. Its address must be the validator's withdrawal address.",
  ),
  maxRequestFeeGwei: requestFeeText()
    .optional()
    .describe('Highest fee in gwei that the EIP-7002 contract may ask for this request; the signer’s own cap holds as well.'),
  suspend: z.boolean().optional().describe('Stops everything but watching: nothing is created, signed or sent.'),
  mode: mode(),
}
/** CEL rules over the whole object, of both kinds. */
export const requestRules = [planBeforeSigning({ signed: 'has(self.status.transaction)' })]

/** What their statuses are. */
export const requestStatus = z.object({
  observedGeneration: observedGeneration(),
  lastHandledReconcileAt: lastHandledReconcileAt(),
  observedAt: observedAt(),
  phase: phase(),
  network: dnsLabel().optional().describe('Network of the validator, as the spec has it, or the stake that it names.'),
  validator: z
    .object({
      network: dnsLabel().describe('Network of the validator.'),
      pubkey: pubkey().describe('BLS public key.'),
    })
    .optional()
    .describe('The validator that spec.validator names, as it was found.'),
  amountEth: coinText().optional().describe('What a withdrawal asks for, in ETH, whichever way the spec has it.'),
  requestId: stakeIdText().optional().describe("The request's id in the staking API."),
  verifiedCalldata: hexBytes(56)
    .optional()
    .describe('The calldata that was verified against the spec: public key, amount in gwei. It is verified again at every signature.'),
  cancelled: z.boolean().optional().describe('The request was taken back at the staking API, since this resource is being deleted.'),
  ...transactionFields('The transaction that makes the request', 'The EIP-7002 contract.'),
  plan: planField(),
  consensus: z
    .object({
      status: z.enum(['Accepted', 'Dropped']).describe('Accepted or Dropped. A mined request is not an accepted one.'),
      rules: z
        .array(z.string().max(64))
        .max(16)
        .optional()
        .describe('The rules of the consensus layer that a dropped request broke, as far as they are known.'),
      payment: z
        .object({
          state: z
            .enum(['Waiting', 'Paid', 'Void', 'Unknown'])
            .describe('Waiting in the queue; Paid; Void: it pays nothing; or Unknown: it left the queue, and nobody can tell any more.'),
          amountEth: coinText().describe('What is to be paid, or was, in ETH: less than asked for where less was available.'),
          withdrawableEpoch: wholeNumber().describe('From this epoch on it can be paid.'),
          blockNumber: wholeNumber().optional().describe('Block of the execution layer that paid it.'),
        })
        .optional()
        .describe('What becomes of an accepted withdrawal.'),
      queuedDeposits: z
        .object({
          amountEth: coinText().describe('Sum of the deposits in ETH.'),
          creditedAfterEpoch: wholeNumber().optional().describe('After this epoch they are credited.'),
        })
        .optional()
        .describe('Deposits for a validator that exits, which were still queued: they come back after the exit.'),
    })
    .optional()
    .describe('What the consensus layer made of the request, as the staking API tells it.'),
  conditions,
})
export type ValidatorRequestStatus = z.output<typeof requestStatus>

/** The network of a request's validator: by its spec, or as the stake that it names was found to have; undefined before that. */
export const networkOfRequest = ({
  spec,
  status,
}: {
  readonly spec: { readonly validator: ValidatorRef }
  readonly status?: Pick<ValidatorRequestStatus, 'validator'> | undefined
}): string | undefined => spec.validator.network ?? status?.validator?.network

/** Conditions of both kinds, all present from the first visit. */
export const validatorRequestConditions = [
  'Ready',
  'Reconciling',
  'Stalled',
  'Created',
  'Verified',
  'Broadcast',
  'Confirmed',
  'Accepted',
] as const
/** A withdrawal is paid some time after it was accepted, or not at all. */
export const validatorWithdrawalConditions = [...validatorRequestConditions, 'Paid'] as const
export type ValidatorRequestCondition = (typeof validatorWithdrawalConditions)[number]

/** What `kubectl get` shows of both, around a kind's own columns. */
export const requestColumns = (own: readonly PrinterColumn[]): readonly PrinterColumn[] => [
  { name: 'Network', type: 'string', jsonPath: '.status.network', description: 'Network of the validator.' },
  ...own,
  ...readyColumns('True once the consensus layer has accepted it.'),
  { name: 'Stake', type: 'string', jsonPath: '.spec.validator.stakeRef.name', description: 'The EthereumStake it names.', priority: 1 },
  { name: 'Transaction', type: 'string', jsonPath: '.status.transaction.hash', description: 'Hash of its transaction.', priority: 1 },
  { name: 'Validator', type: 'string', jsonPath: '.status.validator.pubkey', description: 'Public key of the validator.', priority: 1 },
  ...lastColumns,
]
export const requestSelectableFields = ['.spec.validator.network', '.spec.signer'] as const

/** What to do in place of changing what can't be. */
export const requestInstead = {
  states: [
    {
      when: "self.?status.?transaction.hasValue() && self.status.transaction.state != 'Failed'",
      advice:
        'the request of this resource was made, or may be, as it was. Put the old value back; for another request, create another resource under another name',
    },
  ],
  otherwise: 'delete this resource and create another',
} as const
