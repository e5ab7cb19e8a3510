import { z } from 'zod'
import { API_VERSION, type KindDefinition, type Resource } from './meta.ts'
import { cel, immutable, inWords } from './schema.ts'
import {
  requestColumns,
  requestInstead,
  requestSelectableFields,
  requestSpecFields,
  requestStatus,
  type ValidatorRequestStatus,
} from './validator-request.ts'

const WHOLE = /^(0|[1-9][0-9]*)$/
const MAX_UINT64 = '18446744073709551615'

const spec = z.object({
  ...requestSpecFields,
  amountGwei: immutable(
    cel(
      inWords(
        z.string().max(64).regex(WHOLE),
        'must be a whole number of gwei in plain digits, such as "1000000000" for 1 ETH: no sign, decimals, exponent or white space',
      ),
      { rule: "self != '0'", message: 'must be more than 0: a request for 0 is a full exit (create a ValidatorExit for that)' },
      {
        // Of texts of the same length the greater number is the later text.
        rule: `!self.matches(r'${WHOLE.source}') || size(self) < 20 || (size(self) == 20 && self <= '${MAX_UINT64}')`,
        message: `must be at most ${MAX_UINT64}: a request cannot carry more`,
      },
    ),
    'amountGwei',
  ).describe('Amount to withdraw in gwei, as text: more than 0. What is over the balance less 32 ETH is refused.'),
})

export const validatorWithdrawal = {
  kind: 'ValidatorWithdrawal',
  plural: 'validatorwithdrawals',
  singular: 'validatorwithdrawal',
  shortNames: ['vwd', 'vwds'],
  scope: 'Namespaced',
  description:
    'ValidatorWithdrawal asks the consensus layer once (EIP-7002) to pay a part of the balance of a validator with Compounding credentials to its withdrawal address. Ready means that the consensus layer has accepted it.',
  spec,
  status: requestStatus,
  instead: requestInstead,
  printerColumns: requestColumns([
    { name: 'Amount', type: 'string', jsonPath: '.spec.amountGwei', description: 'Amount in gwei that is asked for.' },
    {
      name: 'Pays',
      type: 'string',
      jsonPath: '.status.consensus.payment.amountGwei',
      description: 'Amount in gwei that the consensus layer pays: less where less was available.',
    },
    {
      name: 'Paid',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Paid")].status',
      description: 'True once it is paid; False when it pays nothing.',
    },
  ]),
  selectableFields: requestSelectableFields,
} as const satisfies KindDefinition

export type ValidatorWithdrawalSpec = z.output<typeof spec>
export type ValidatorWithdrawal = Resource<ValidatorWithdrawalSpec, ValidatorRequestStatus>
export const VALIDATOR_WITHDRAWAL_API = { apiVersion: API_VERSION, kind: validatorWithdrawal.kind } as const
