import { expect, test } from 'vitest'
import { addressCheck, anywhere, isBlock } from './addresses.ts'

test.each([
  {
    range: '10.0.0.0/8',
    inside: ['10.9.9.9', '::ffff:10.0.0.1', '::FFFF:10.0.0.1', '::ffff:a00:1', '0:0:0:0:0:ffff:a00:1'],
    outside: ['11.0.0.1', '::ffff:b00:1', '::1'],
  },
  { range: '::ffff:10.0.0.0/104', inside: ['10.9.9.9', '::ffff:10.0.0.1', '::ffff:a00:1'], outside: ['11.0.0.1', '::ffff:11.0.0.1'] },
  { range: '::ffff:10.0.0.1', inside: ['10.0.0.1'], outside: ['10.0.0.2'] },
  { range: '2001:db8::/32', inside: ['2001:DB8::1'], outside: ['2001:db9::1', '10.0.0.1'] },
  { range: 'fe80::/10', inside: ['fe80::1', 'fe80::1%eth0'], outside: ['fec0::1'] },
])('$range holds its addresses, however they are written, and no others', ({ range, inside, outside }) => {
  const check = addressCheck([range])
  expect(inside.filter((address) => !check(address))).toEqual([])
  expect(outside.filter(check)).toEqual([])
})

test('what is no address is in no block, a list that names none permits none, and no list permits all', () => {
  for (const text of ['', 'localhost', '10.0.0.1:80', '10.0.0.1 ', 'unknown', '_hidden'])
    expect(addressCheck(['0.0.0.0/0', '::/0'])(text)).toBe(false)
  expect(addressCheck([])('10.0.0.1')).toBe(false)
  expect(addressCheck(undefined)).toBe(anywhere)
  expect(anywhere('10.0.0.1')).toBe(true)
})

test.each([
  '10.1',
  '010.0.0.1',
  ' 10.0.0.1',
  '10.0.0.1/33',
  '10.0.0.1/',
  '10.0.0.1/8/8',
  '::1/129',
  'fe80::1%eth0',
  'fe80::%eth0/64',
  'localhost',
])('%s is no block', (text) => expect(isBlock(text)).toBe(false))
