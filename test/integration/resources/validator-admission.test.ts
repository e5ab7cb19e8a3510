import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { untilEstablished } from '../../cluster/apply.ts'
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts'
import { validatorExit, validatorWithdrawal } from '../../stack/resources.ts'

/** What people get from a real API server when they apply a ValidatorExit or a ValidatorWithdrawal: it is taken, or the message says what to do. */
let cluster: ControlPlane
beforeAll(async () => {
  cluster = await startControlPlane()
  await cluster.kubectlOk(['apply', '-f', new URL('../../../crds', import.meta.url).pathname])
  await untilEstablished(cluster)
})
afterAll(async () => {
  await cluster?.stop()
})

type Json = Readonly<Record<string, unknown>>
const pubkey = `0x${'ab'.repeat(48)}`
const byKey = { network: 'hoodi', pubkey }
const byStake = { stakeRef: { name: 'one' } }
const kinds = [
  { kind: 'vexit', plural: 'validatorexits', make: (name: string, spec: Json = {}) => validatorExit(name, byKey, spec) },
  {
    kind: 'vwd',
    plural: 'validatorwithdrawals',
    make: (name: string, spec: Json = {}) => validatorWithdrawal(name, byKey, '1000000000', spec),
  },
] as const
const apply = (object: unknown) => cluster.kubectl(['apply', '-f', '-'], { input: JSON.stringify(object) })
let count = 0
const next = () => `m-${++count}`

describe.each(kinds)('one of $plural', ({ kind, make }) => {
  const patch = (name: string, spec: unknown) => cluster.kubectl(['patch', kind, name, '--type=merge', '-p', JSON.stringify({ spec })])

  test.each([
    { what: 'a network and a public key', spec: {} },
    { what: 'a public key in capitals', spec: { validator: { ...byKey, pubkey: `0x${'AB'.repeat(48)}` } } },
    { what: 'a stake of its namespace', spec: { validator: byStake } },
    { what: 'everything', spec: { maxRequestFeeGwei: '0.000000001', suspend: true } },
  ])('with $what is taken', async ({ spec }) => {
    expect(await apply(make(next(), spec))).toMatchObject({ code: 0 })
  })

  const eitherOr = 'must have either stakeRef (an EthereumStake of this namespace), or both network and pubkey'
  const keyRule = "must be a validator's public key: 0x and 96 hex digits"
  const key = (text: string) => ({ validator: { ...byKey, pubkey: text } })
  test.each([
    { what: 'a public key that is a byte short', spec: key(`0x${'ab'.repeat(47)}`), says: keyRule },
    {
      what: 'a public key that is a byte long',
      spec: key(`${pubkey}ab`),
      says: keyRule,
    },
    { what: 'a public key without 0x', spec: key('ab'.repeat(48)), says: keyRule },
    { what: 'a public key that is no hex', spec: key(`0x${'zz'.repeat(48)}`), says: keyRule },
    { what: 'a public key with white space', spec: key(`${pubkey.slice(0, -1)} `), says: keyRule },
    { what: 'an empty public key', spec: key(''), says: keyRule },
    { what: 'an index for a public key', spec: { validator: { ...byKey, pubkey: 7 } }, says: 'spec.validator.pubkey' },
    { what: 'a stake and a public key', spec: { validator: { ...byKey, ...byStake } }, says: eitherOr },
    { what: 'a stake and a network', spec: { validator: { ...byStake, network: 'hoodi' } }, says: eitherOr },
    { what: 'a public key of no network', spec: { validator: { pubkey } }, says: eitherOr },
    { what: 'a network alone', spec: { validator: { network: 'hoodi' } }, says: eitherOr },
    { what: 'an empty validator', spec: { validator: {} }, says: eitherOr },
    { what: 'no validator', spec: { validator: undefined }, says: 'spec.validator: Required value' },
    { what: 'no signer', spec: { signer: undefined }, says: 'spec.signer: Required value' },
    {
      what: 'a stake of another namespace',
      spec: { validator: { stakeRef: { name: 'one', namespace: 'team-b' } } },
      says: 'unknown field "spec.validator.stakeRef.namespace"',
    },
    { what: 'a fee cap with a unit', spec: { maxRequestFeeGwei: '1 gwei' }, says: 'must be a plain decimal number of gwei' },
    { what: 'a negative fee cap', spec: { maxRequestFeeGwei: '-1' }, says: 'must be a plain decimal number of gwei' },
    ...['0', '0.0', '0.000000000'].map((nothing) => ({
      what: `a fee cap of ${nothing}`,
      spec: { maxRequestFeeGwei: nothing },
      says: 'must be more than 0, or no exit and no withdrawal is ever sent',
    })),
    { what: 'a mistyped field', spec: { maxRequestFee: '1' }, says: 'unknown field "spec.maxRequestFee"' },
  ])('with $what is refused, and told why', async ({ spec, says }) => {
    const { code, stderr } = await apply(make(next(), spec))
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(says) })
  })

  test.each([
    { field: 'validator', value: { pubkey: `0x${'cd'.repeat(48)}` } },
    { field: 'validator', value: { network: 'mainnet' } },
    { field: 'validator', value: { network: null, pubkey: null, stakeRef: { name: 'one' } } },
    { field: 'signer', value: 'other' },
  ])('cannot change its $field to $value', async ({ field, value }) => {
    const name = next()
    await apply(make(name))
    const { code, stderr } = await patch(name, { [field]: value })
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining(`${field} cannot be changed: delete this resource and create another`),
    })
  })

  test('may change suspend and its fee cap, is explained, and is found by network and signer', async () => {
    const name = next()
    await apply(make(name, { signer: 'chosen' }))
    expect(await patch(name, { suspend: true, maxRequestFeeGwei: '7' })).toMatchObject({ code: 0 })
    expect(await patch(name, { suspend: null, maxRequestFeeGwei: null })).toMatchObject({ code: 0 })
    expect(await cluster.kubectlOk(['explain', `${kind}.spec`])).not.toContain('<no description>')
    const selector = 'spec.validator.network=hoodi,spec.signer=chosen'
    expect(await cluster.kubectlOk(['get', kind, '--field-selector', selector, '-o', 'jsonpath={.items[*].metadata.name}'])).toBe(name)
  })
})

test('an exit has no amount: one for a part of the money is not taken for one of all of it', async () => {
  const { code, stderr } = await apply(validatorExit(next(), byKey, { amountGwei: '1000000000' }))
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('unknown field "spec.amountGwei"') })
})

describe('the amount of a withdrawal', () => {
  test.each(['1000000', '1000000000', '9999999999999999999', '18446744073709551615'])('of %s gwei is taken', async (amount) => {
    expect(await apply(validatorWithdrawal(next(), byKey, amount))).toMatchObject({ code: 0 })
  })

  const plain = 'must be a whole number of gwei in plain digits, such as "1000000000" for 1 ETH'
  const most = 'must be at most 18446744073709551615: a request cannot carry more'
  test.each([
    { amount: '0', says: 'must be more than 0: a request for 0 is a full exit (create a ValidatorExit for that)' },
    { amount: '', says: plain },
    { amount: '-1', says: plain },
    { amount: '+1', says: plain },
    { amount: '1e9', says: plain },
    { amount: '1E9', says: plain },
    { amount: ' 1', says: plain },
    { amount: '1 ', says: plain },
    { amount: '1\n', says: plain },
    { amount: '1 000', says: plain },
    { amount: '1.5', says: plain },
    { amount: '1.0', says: plain },
    { amount: '1,000', says: plain },
    { amount: '1_000', says: plain },
    { amount: '00', says: plain },
    { amount: '01', says: plain },
    { amount: '0x1', says: plain },
    { amount: '1 ETH', says: plain },
    { amount: '١', says: plain },
    { amount: '18446744073709551616', says: most },
    { amount: '99999999999999999999', says: most },
    { amount: '100000000000000000000', says: most },
  ])('of $amount is refused, and told why', async ({ amount, says }) => {
    const { code, stderr } = await apply(validatorWithdrawal(next(), byKey, amount))
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(says) })
  })

  const once = 'write the amount once: amountEth (such as "1.5") or amountGwei (such as "1500000000")'
  test.each([
    { what: 'a number in place of text', amountGwei: 1_000_000_000, says: 'must be of type string: "integer"' },
    { what: 'none', amountGwei: undefined, says: once },
    { what: 'given twice', amountEth: '1', says: once },
    { what: 'null', amountGwei: null, says: once },
    { what: 'a mistyped one', amountGwei: undefined, amountGWei: '1', says: 'unknown field "spec.amountGWei"' },
  ])('that is $what is refused', async ({ what: _what, says, ...spec }) => {
    const { code, stderr } = await apply(validatorWithdrawal(next(), byKey, '1000000000', spec))
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(says) })
  })

  test('cannot be changed', async () => {
    const name = next()
    await apply(validatorWithdrawal(name, byKey, '1000000000'))
    const { stderr } = await cluster.kubectl(['patch', 'vwd', name, '--type=merge', '-p', JSON.stringify({ spec: { amountGwei: '2' } })])
    expect(stderr).toContain('amountGwei cannot be changed, added or removed: delete this resource and create another')
  })

  const inEth = (amountEth: unknown, spec: Json = {}) =>
    validatorWithdrawal(next(), byKey, '', { amountGwei: undefined, amountEth, ...spec })
  test.each(['1', '0.5', '0.001', '32.000000001', '999999999.999999999'])('of %s ETH is taken', async (amountEth) => {
    expect(await apply(inEth(amountEth))).toMatchObject({ code: 0 })
  })

  const decimal = 'must be a plain decimal number of ETH such as "1" or "0.5", with at most 9 decimals (1 gwei)'
  const small = 'the amount is under 0.001 ETH, which is mostly a mistaken unit: 1 ETH is amountEth "1", or amountGwei "1000000000"'
  test.each([
    { amountEth: '0', says: 'must be more than 0: a request for 0 is a full exit' },
    { amountEth: '0.000', says: 'must be more than 0: a request for 0 is a full exit' },
    { amountEth: '1 ETH', says: decimal },
    { amountEth: '1,5', says: decimal },
    { amountEth: '.5', says: decimal },
    { amountEth: '1e3', says: decimal },
    { amountEth: '-1', says: decimal },
    { amountEth: '0.0000000001', says: decimal },
    { amountEth: '1000000000', says: decimal },
    { amountEth: 1, says: 'must be of type string' },
    { amountEth: '0.000999999', says: small },
    { amountEth: '0.0000', says: small },
    { amountEth: '0.00', says: small },
  ])('of $amountEth ETH is refused, and told why', async ({ amountEth, says }) => {
    const { code, stderr } = await apply(inEth(amountEth))
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(says) })
  })

  test.each(['8', '32', '1', '999999'])('of %s gwei was meant in ETH: it is refused, unless it says that it is meant', async (amount) => {
    const { code, stderr } = await apply(validatorWithdrawal(next(), byKey, amount))
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(small) })
    expect(await apply(validatorWithdrawal(next(), byKey, amount, { allowSmallAmount: true }))).toMatchObject({ code: 0 })
    expect(await apply(validatorWithdrawal(next(), byKey, amount, { allowSmallAmount: false }))).toMatchObject({ code: 1 })
  })
})
