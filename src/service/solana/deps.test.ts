import { expect, test } from 'vitest'
import { challengeDomain } from './deps.ts'

const policy = { maxPriorityFeeLamports: 0n }

test.each([
  { given: 'a domain', more: { domain: 'staking.example' }, host: 'evil.example', expected: 'staking.example' },
  {
    given: 'hosts',
    more: { hosts: ['staking.example', 'staking.internal:8080'] },
    host: 'Staking.internal:8080',
    expected: 'staking.internal:8080',
  },
  { given: 'nothing', more: {}, host: 'localhost:8080', expected: 'localhost:8080' },
  { given: 'nothing', more: {}, host: '127.0.0.1', expected: '127.0.0.1' },
  { given: 'nothing', more: {}, host: '[::1]:80', expected: '[::1]:80' },
])('with $given, who asks $host is shown $expected', ({ more, host, expected }) => {
  expect(challengeDomain({ ...policy, ...more }, host)).toBe(expected)
})

test.each([
  { more: {}, host: 'evil.example' },
  { more: {}, host: 'localhost.evil.example' },
  { more: {}, host: '127.0.0.1.evil.example' },
  { more: {}, host: '' },
  { more: { hosts: ['staking.example'] }, host: 'evil.example' },
  { more: { hosts: ['staking.example'] }, host: 'staking.example:81' },
])('who asks $host is shown nothing, and told what to configure', ({ more, host }) => {
  expect(() => challengeDomain({ ...policy, ...more }, host)).toThrow(/solana\.domain and solana\.hosts/)
})
