import { expect, test } from 'vitest'
import { parseJson } from '../contract/json.ts'
import { canonicalJson, fingerprint } from './fingerprint.ts'

test.each([
  { a: '{"x":1,"y":[1,2]}', b: '{ "y": [1, 2], "x": 1 }', why: 'the order of fields and white space mean nothing' },
  { a: '{"amountEth":32}', b: '{"amountEth":32.0}', why: 'zeros at the end of decimals mean nothing' },
  { a: '{"amountEth":32.50}', b: '{"amountEth":32.5}', why: 'nor after other decimals' },
  { a: '{"amountEth":32}', b: '{"amountEth":3.2e1}', why: 'nor does an exponent' },
  { a: '{}', b: 'null', why: 'where no field is given, no body is needed' },
])('$a is the same request as $b: $why', ({ a, b }) => {
  expect(canonicalJson(parseJson(a))).toBe(canonicalJson(parseJson(b)))
})

test.each([
  { a: '{"amountEth":32}', b: '{"amountEth":33}' },
  { a: '{"amountEth":32}', b: '{"amountEth":"32"}' },
  { a: '{"amountEth":9007199254.740993}', b: '{"amountEth":9007199254.740992}' },
  { a: '{"a":[1,2]}', b: '{"a":[2,1]}' },
  { a: '{"amountEth":30}', b: '{"amountEth":3}' },
  { a: '{"a":{"b":1}}', b: '{"a":{"b":null}}' },
])('$a is another request than $b', ({ a, b }) => {
  expect(canonicalJson(parseJson(a))).not.toBe(canonicalJson(parseJson(b)))
})

test('method and path count too', () => {
  const all = [fingerprint('POST', '/a', {}), fingerprint('PUT', '/a', {}), fingerprint('POST', '/b', {})]
  expect(new Set(all).size).toBe(3)
})
