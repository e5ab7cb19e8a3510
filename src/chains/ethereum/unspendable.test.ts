import { privateKeyToAddress } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import type { Address } from './chain.ts'
import { knownNetworks } from './networks.ts'
import { withdrawalRequestContract } from './requests.ts'
import { isContract, unspendable } from './unspendable.ts'

const short = (digits: string): Address => `0x${digits.padStart(40, '0')}` as const
const own: Address = '0x1234567890123456789012345678901234567890'

describe('money is never sent to', () => {
  test.each<{ what: string; address: Address; why: RegExp }>([
    { what: 'the zero address', address: short(''), why: /zero address/ },
    { what: 'the first precompile', address: short('1'), why: /precompiles/ },
    { what: 'the last of the BLS precompiles', address: short('11'), why: /precompiles/ },
    { what: 'the secp256r1 precompile', address: short('100'), why: /precompiles/ },
    { what: 'the usual burn address', address: short('dEaD'), why: /precompiles/ },
    { what: "mainnet's and hoodi's deposit contract", address: '0x00000000219ab540356cBB839Cbe05303d7705Fa', why: /deposit contract/ },
    { what: 'the EIP-7002 contract', address: withdrawalRequestContract, why: /7002/ },
    { what: 'the EIP-7251 contract', address: '0x0000BBdDc7CE488642fb579F8B00f3a590007251', why: /7251/ },
    { what: "the contract of builders' deposits", address: '0x0000BFF46984E3725691FA540A8C7589300D8282', why: /8282/ },
    { what: "the contract of builders' exits", address: '0x000064D678505AD48F8CCB093BC65613800E8282', why: /8282/ },
    { what: 'the EIP-4788 contract', address: '0x000F3df6D732807Ef1319fB7B8bB8522d0Beac02', why: /4788/ },
    { what: 'the EIP-2935 contract', address: '0x0000F90827F1C53a10cb7A02335B175320002935', why: /2935/ },
    { what: 'the system address', address: '0xfffffffffffffffffffffffffffffffffffffffe', why: /SYSTEM_ADDRESS/ },
    { what: "a private network's deposit contract", address: own, why: /deposit contract/ },
  ])('$what, however it is written', ({ address, why }) => {
    for (const written of [address, address.toLowerCase() as Address, `0x${address.slice(2).toUpperCase()}` as Address]) {
      expect(unspendable(written, { depositContractAddress: own })).toMatch(why)
    }
  })
})

test("a wallet's address is spendable, and so is a contract that nothing is known of", () => {
  expect(unspendable(privateKeyToAddress(`0x${'11'.repeat(32)}`), { depositContractAddress: own })).toBeUndefined()
  expect(unspendable(own)).toBeUndefined()
})

test("every known network's deposit contract is refused without being told the network", () => {
  for (const { depositContractAddress } of Object.values(knownNetworks)) expect(unspendable(depositContractAddress)).toBeDefined()
})

test.each([
  { what: 'an account without code', code: '0x', is: false },
  { what: 'an account with a key that has named a contract (EIP-7702)', code: `0xef0100${'11'.repeat(20)}`, is: false },
  { what: 'a contract', code: '0x6080604052', is: true },
  { what: 'a contract that only looks like a delegation', code: `0xef0100${'11'.repeat(21)}`, is: true },
] as const)('$what is a contract: $is', ({ code, is }) => {
  expect(isContract(code)).toBe(is)
})
