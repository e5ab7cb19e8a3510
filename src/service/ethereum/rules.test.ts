import { describe, expect, test } from 'vitest'
import type { Address } from '../../chains/ethereum/chain.ts'
import { knownNetworks } from '../../chains/ethereum/networks.ts'
import { withdrawalRequestContract } from '../../chains/ethereum/requests.ts'
import { parseEth } from '../../lib/amounts.ts'
import { brokenRules, checksummed } from './rules.ts'

const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const valid: Parameters<typeof brokenRules>[0] = {
  networkName: 'hoodi',
  network: knownNetworks.hoodi,
  amount: parseEth('32'),
  credentialsType: '0x02',
  withdrawalAddress: address,
}
const codes = (change: Partial<typeof valid>) => brokenRules({ ...valid, ...change }).map(({ pointer, code }) => `${pointer} ${code}`)

describe('a new stake', () => {
  test.each([
    { credentialsType: '0x01' as const, amount: '32' },
    { credentialsType: '0x02' as const, amount: '32' },
    { credentialsType: '0x02' as const, amount: '32.000000001' },
    { credentialsType: '0x02' as const, amount: '2048' },
  ])('with $credentialsType may be $amount ETH', ({ credentialsType, amount }) => {
    expect(brokenRules({ ...valid, credentialsType, amount: parseEth(amount) })).toEqual([])
  })

  test.each([
    { credentialsType: '0x01' as const, amount: '31.999999999' },
    { credentialsType: '0x01' as const, amount: '32.000000001' },
    { credentialsType: '0x01' as const, amount: '64' },
    { credentialsType: '0x02' as const, amount: '1' },
    { credentialsType: '0x02' as const, amount: '31.999999999' },
    { credentialsType: '0x02' as const, amount: '2048.000000001' },
  ])('with $credentialsType may not be $amount ETH', ({ credentialsType, amount }) => {
    expect(brokenRules({ ...valid, credentialsType, amount: parseEth(amount) }).map(({ code }) => code)).toEqual(['amount-out-of-range'])
  })

  test.each([
    { withdrawalAddress: address.toLowerCase(), broken: [], why: 'lower case has no checksum' },
    { withdrawalAddress: `0x${address.slice(2).toUpperCase()}`, broken: [], why: 'neither has upper case' },
    {
      withdrawalAddress: address.replace('5aA', '5aa'),
      broken: ['/body/withdrawalAddress address-checksum'],
      why: 'one letter in the wrong case',
    },
    { withdrawalAddress: `0x${'0'.repeat(40)}`, broken: ['/body/withdrawalAddress zero-address'], why: 'nobody has the key' },
    ...[withdrawalRequestContract, '0x00000000219ab540356cBB839Cbe05303d7705Fa', `0x${'0'.repeat(38)}0b`].map((withdrawalAddress) => ({
      withdrawalAddress,
      broken: ['/body/withdrawalAddress unspendable-address'],
      why: 'a contract of the protocol or a precompile pays nothing out',
    })),
  ])('to $withdrawalAddress: $why', ({ withdrawalAddress, broken }) => {
    expect(codes({ withdrawalAddress: withdrawalAddress as Address })).toEqual(broken)
  })

  test('everything that is wrong is said at once', () => {
    expect(codes({ network: undefined, amount: parseEth('1'), withdrawalAddress: `0x${'0'.repeat(40)}` as const })).toEqual([
      '/body/network unknown-network',
      '/body/amountEth amount-out-of-range',
      '/body/withdrawalAddress zero-address',
    ])
  })
})

test('an address is handed on with its checksum', () => {
  expect(checksummed(address.toLowerCase())).toBe(address)
})
