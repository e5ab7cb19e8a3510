import { z } from 'zod'
import { AmountError, parseEth } from '../lib/amounts.ts'
import { API_VERSION, type KindDefinition, type Resource } from './meta.ts'
import { cel, immutable, inWords } from './schema.ts'
import {
  requestColumns,
  requestInstead,
  requestRules,
  requestSelectableFields,
  requestSpecFields,
  requestStatus,
  type ValidatorRequestStatus,
} from './validator-request.ts'

const WHOLE = /^(0|[1-9][0-9]*)$/
const ETH = /^(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?$/
const MAX_UINT64 = '18446744073709551615'
/** A request asks for more than 0: 0 is a full exit. Source: EIP-7002. */
const MORE_THAN_0 = 'must be more than 0: a request for 0 is a full exit (create a ValidatorExit for that)'

const fields = z.object({
  ...requestSpecFields,
  amountEth: immutable(
    cel(
      inWords(
        z.string().min(1).max(19).regex(ETH),
        'must be a plain decimal number of ETH such as "1" or "0.5", with at most 9 decimals (1 gwei)',
      ),
      { rule: "!self.matches(r'^0([.]0+)?$')", message: MORE_THAN_0 },
    ),
    'amountEth',
  )
    .optional()
    .describe('Amount to withdraw in ETH, as text: more than 0. What is over the balance less 32 ETH is refused. Or write amountGwei.'),
  amountGwei: immutable(
    cel(
      inWords(
        z.string().max(64).regex(WHOLE),
        'must be a whole number of gwei in plain digits, such as "1000000000" for 1 ETH: no sign, decimals, exponent or white space',
      ),
      { rule: "self != '0'", message: MORE_THAN_0 },
      {
        // Of texts of the same length the greater number is the later text.
        rule: `!self.matches(r'${WHOLE.source}') || size(self) < 20 || (size(self) == 20 && self <= '${MAX_UINT64}')`,
        message: `must be at most ${MAX_UINT64}: a request cannot carry more`,
      },
    ),
    'amountGwei',
  )
    .optional()
    .describe('Amount to withdraw in gwei, as text, in place of amountEth.'),
  allowSmallAmount: immutable(z.boolean(), 'allowSmallAmount')
    .optional()
    .describe('Admits an amount under 0.001 ETH, which is mostly a mistaken unit: the fee of the request alone may cost as much.'),
})

const isSmall =
  "(has(self.amountGwei) && size(self.amountGwei) < 7) || (has(self.amountEth) && self.amountEth.matches(r'^0([.](0|00|000[0-9]*))?$'))"
const spec = cel(
  fields,
  {
    rule: 'has(self.amountEth) != has(self.amountGwei)',
    message: 'write the amount once: amountEth (such as "1.5") or amountGwei (such as "1500000000")',
  },
  {
    rule: `(has(self.allowSmallAmount) && self.allowSmallAmount) || !(${isSmall})`,
    message:
      'the amount is under 0.001 ETH, which is mostly a mistaken unit: 1 ETH is amountEth "1", or amountGwei "1000000000". If it is meant, set allowSmallAmount: true',
  },
)

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
  rules: requestRules,
  instead: requestInstead,
  printerColumns: requestColumns([
    { name: 'ETH', type: 'string', jsonPath: '.status.amountEth', description: 'Amount in ETH that is asked for.' },
    {
      name: 'Pays-ETH',
      type: 'string',
      jsonPath: '.status.consensus.payment.amountEth',
      description: 'Amount in ETH that the consensus layer pays: less where less was available.',
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

export type ValidatorWithdrawalSpec = z.output<typeof fields>
export type ValidatorWithdrawal = Resource<ValidatorWithdrawalSpec, ValidatorRequestStatus>
/** What a withdrawal asks for, in gwei as text, whichever way it was written. An empty text, which is no amount, where it says neither, both, or nonsense. */
export function askedGwei({ amountEth, amountGwei }: ValidatorWithdrawalSpec): string {
  if (amountEth === undefined) return amountGwei ?? ''
  if (amountGwei !== undefined) return ''
  try {
    return parseEth(amountEth).toString()
  } catch (error) {
    if (error instanceof AmountError) return ''
    throw error
  }
}
export const VALIDATOR_WITHDRAWAL_API = { apiVersion: API_VERSION, kind: validatorWithdrawal.kind } as const
