import type { RequestKindName } from './request-kind.ts'

/**
 * The rules of the consensus layer that a request can break (consensus-specs, electra/beacon-chain.md: process_withdrawal_request), by the codes that
 * the staking API gives them, in words. What the API itself writes about them is not copied into status.
 */
const meanings: Readonly<Record<string, string>> = {
  'unknown-validator': 'the beacon chain knows no validator with this public key',
  'credentials-not-execution': "the validator's withdrawal credentials are not 0x01 or 0x02",
  'sender-not-withdrawal-address': "it was not sent from the validator's withdrawal address",
  slashed: 'the validator was slashed and leaves by itself',
  'not-active': 'the validator is not active',
  'already-exiting': 'the validator is exiting already',
  'too-young': 'the validator was not active for long enough (256 epochs on public networks)',
  'pending-withdrawals': 'partial withdrawals of the validator were still to be paid',
  'withdrawal-queue-full': "the network's queue of partial withdrawals was full",
  'credentials-not-compounding': "the validator's withdrawal credentials are not 0x02 (Compounding), which a partial withdrawal needs",
  'effective-balance-too-low': "the validator's effective balance is under 32 ETH",
  'nothing-available': 'nothing over 32 ETH was available',
  'amount-not-positive': 'the amount is not more than 0',
  'amount-over-available': 'the amount is over what is available',
}

const ofAll = [
  'unknown-validator',
  'credentials-not-execution',
  'sender-not-withdrawal-address',
  'slashed',
  'not-active',
  'already-exiting',
  'too-young',
]
/**
 * By which of them each kind can be dropped. Of an amount over what is available the rest is paid, so that nothing is dropped by that; and what waits to be paid
 * keeps only an exit from being taken.
 */
const dropping: Readonly<Record<RequestKindName, ReadonlySet<string>>> = {
  ValidatorExit: new Set([...ofAll, 'pending-withdrawals']),
  ValidatorWithdrawal: new Set([
    ...ofAll,
    'withdrawal-queue-full',
    'credentials-not-compounding',
    'effective-balance-too-low',
    'nothing-available',
  ]),
}

/**
 * The rules that the staking API names as the reason why a request was dropped, as far as they are known and drop one of its kind. Without one it proves nothing
 * that it says so.
 */
export const rulesIn = (kind: RequestKindName, reason: string | undefined): readonly string[] => [
  ...new Set(
    [...(reason ?? '').matchAll(/(?:^|; )([a-z][a-z0-9-]{0,63}): /g)]
      .map(([, code = '']) => code)
      .filter((code) => dropping[kind].has(code)),
  ),
]

export const meaningsOf = (rules: readonly string[] | undefined): string => {
  const known = (rules ?? []).flatMap((code) => (Object.hasOwn(meanings, code) ? [`${meanings[code]} (${code})`] : []))
  return known.length === 0 ? 'by a rule that the staking API does not name' : known.join('; ')
}
