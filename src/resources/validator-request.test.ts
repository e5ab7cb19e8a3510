import { describe, expect, test } from 'vitest'
import { customResourceDefinition, structuralSchema } from './crd.ts'
import type { KindDefinition } from './meta.ts'
import { validatorExit } from './validator-exit.ts'
import { askedGwei, type ValidatorWithdrawalSpec, validatorWithdrawal } from './validator-withdrawal.ts'

const validator = { network: 'hoodi', pubkey: `0x${'ab'.repeat(48)}` } as const

/** Fields of the spec that a rule at the root of the definition keeps as they were. */
const fixedFields = (kind: KindDefinition): readonly string[] =>
  [...JSON.stringify(customResourceDefinition(kind)).matchAll(/self\.spec\.\??(\w+) == oldSelf\.spec\.\??\1\b/g)].map(
    ([, name = '']) => name,
  )

describe.each([validatorExit, validatorWithdrawal])('of a $kind', (kind: KindDefinition) => {
  const { spec } = kind
  test('only suspend, mode and the fee cap can be changed', () => {
    const { properties } = structuralSchema(kind.spec) as { properties: Record<string, object> }
    const fixed = fixedFields(kind)
    const changeable = Object.keys(properties).filter((name) => !fixed.includes(name))
    expect(changeable.toSorted()).toEqual(['maxRequestFeeGwei', 'mode', 'suspend'])
  })
  test.each(['0x12', `0x${'ab'.repeat(47)}`, `${validator.pubkey}00`, 'ab'.repeat(48), `0X${'ab'.repeat(48)}`])(
    'the public key %j is refused',
    (pubkey) => {
      expect(spec.safeParse({ validator: { ...validator, pubkey }, signer: 's', amountGwei: '1' }).success).toBe(false)
      expect(spec.safeParse({ validator, signer: 's', amountGwei: '1' }).success).toBe(true)
    },
  )
})

test.each(['', ' 1', '1 ', '-1', '+1', '1.5', '1e9', '01', '0x1', '1_000'])('the amount %j is refused', (amountGwei) => {
  expect(validatorWithdrawal.spec.safeParse({ validator, signer: 's', amountGwei }).success).toBe(false)
})

test.each(['', ' 1', '1 ', '-1', '+1', '1.', '.5', '1,5', '1e9', '01', '0x1', '1_000', '1.0000000001', '1000000000'])(
  'the amount %j in ETH is refused',
  (amountEth) => {
    expect(validatorWithdrawal.spec.safeParse({ validator, signer: 's', amountEth }).success).toBe(false)
  },
)

describe('what a withdrawal asks for', () => {
  const asked = (amounts: Pick<ValidatorWithdrawalSpec, 'amountEth' | 'amountGwei'>) => askedGwei({ validator, signer: 's', ...amounts })
  test.each([
    { amountEth: '1', is: '1000000000' },
    { amountEth: '0.5', is: '500000000' },
    { amountEth: '0.000000001', is: '1' },
    { amountEth: '2016.10', is: '2016100000000' },
    { amountGwei: '1000000000', is: '1000000000' },
  ])('$amountEth ETH, $amountGwei gwei is $is gwei', ({ is, ...amounts }) => {
    expect(asked(amounts)).toBe(is)
  })
  test.each([{}, { amountEth: '1', amountGwei: '1000000000' }, { amountEth: '1e3' }, { amountEth: '1'.repeat(20) }, { amountEth: '' }])(
    'of %j is no amount',
    (amounts) => {
      expect(asked(amounts)).toBe('')
    },
  )
})

test('an exit has no amount', () => {
  expect(validatorExit.spec.parse({ validator, signer: 's', amountGwei: '1' })).not.toHaveProperty('amountGwei')
})
