import fc from 'fast-check'
import { bytesToHex, hexToBytes } from 'viem'
import { describe, expect, test } from 'vitest'
import { gwei } from '../../lib/amounts.ts'
import type { Hex } from './chain.ts'
import {
  computeDepositDomain,
  DepositEncodingError,
  decodeDepositCalldata,
  decodeDepositLog,
  depositDataRoot,
  depositEventTopic,
  depositMessageRoot,
  encodeDepositCalldata,
  isValidPubkey,
  signDepositMessage,
  verifyDepositSignature,
  withdrawalCredentials,
} from './deposit.ts'

/** Deposits published by other tools, made with the staking deposit CLI or checked against it. */
const published: {
  name: string
  secretKey?: Hex
  pubkey: Hex
  withdrawalCredentials: Hex
  signature: Hex
  messageRoot: Hex
  dataRoot: Hex
  fork: Hex
}[] = [
  {
    name: 'mainnet (eth-staking-smith, existing mnemonic)',
    secretKey: '0x3f3e0a69a6a66aeaec606a2ccb47c703afb2e8ae64f70a1650c03343b06e8f0c',
    pubkey: '0x8666389c3fe6ff0bca9adba81504f380b9e2c719419760d561836472fafe295cb50696524e19cba084e1d788d66c80d6',
    withdrawalCredentials: '0x0100000000000000000000000000000000000000000000000000000000000001',
    signature:
      '0xa1f3ece1cb871e1af29fdaf94cab58d48d128d0ed2342a1f042f49344943c25ec6eab4f2219301e421a88453c6aa29e90b78373a8341c17738bc0ff4d0a724494535b494cd21fd2633a7a12353a5232c9806e1576f1e2447631ec3310db4008b',
    messageRoot: '0xdc224ac1c94d70906d643644f20398bdea5dabea123116a9d6135b8f5f4906bd',
    dataRoot: '0xf5c6b52d2ba608f0df4123e5ed051b5765a636e09d1372668e1ec074430f2279',
    fork: '0x00000000',
  },
  {
    name: 'goerli (P2P depositor, first)',
    pubkey: '0x8d446668dd2f1962a331a08994aec7462a95dbd93c029577a63908b696db65e686389e135be56092879d9ded5bc49a61',
    withdrawalCredentials: '0x010000000000000000000000000a0660fc6c21b6c8638c56f7a8bbe22dcc9000',
    signature:
      '0x8cf1ae5cddb95cbc3f1b9c35af206960b6fe5d0a6077f7a7475f1e66febf3f7360c801d51194be43972ec28351ddb14803f94f8f1182058baeb85fd9fd5ff838aa722a68c4319aab8a0d114ce0fadc74c1c6f5211f0cc1574c5c1d31f8099016',
    messageRoot: '0x06b285a9b9a12e24cf175f8bf3c38bcf161aa552511e8d0a95cb84c5c46b6024',
    dataRoot: '0xd1b80e9a41e757b85f047a204993ecd590910fedf30b5b564505249450e2b433',
    fork: '0x00001020',
  },
  {
    name: 'goerli (Secure-Signer)',
    pubkey: '0xa1a9bd71c9106f54681384710234c39b92ef8f34827409b53bd98a665f58dc36f9ac4d5548cbeb36dc0cdc72485ad745',
    withdrawalCredentials: '0x0100000000000000000000004d68568b8d4e6244233c685b48fea619621b78d2',
    signature:
      '0xa79ed4118518270271f72f01b89d933b1fb8992b74103ce93e24901d467dcca876a8c3b7a7d5c6f60787195d66c5874b0ca79b1bca1d5d18f5b311cccbfdcce70c6262e5c9c5df4dddf24cfcfe118b53561d7313ec2374bd71430a26bdc8d926',
    messageRoot: '0x3c0974bd6b5e82ad0db9f0e35a0f420122aebfc0aa72a1e339a0d7e7947254b0',
    dataRoot: '0x853e1ba19b31d630aa3686d75f4750c436a4782d9b73a651c31f91247bb31592',
    fork: '0x00001020',
  },
  {
    name: 'another network (JOC)',
    pubkey: '0xb428e5e4991b7cc27b0bb70735bdeb736bd95f01e05a2c4326b2eef9e452f478f7b24bb16c65f8d5720df911243e0523',
    withdrawalCredentials: '0x01000000000000000000000004b8a24201bea7aee98406ca25b2a03bab8f435c',
    signature:
      '0xb81b1fe9a374818f04692fd01e35d939bba5a9a9033af88ff9883489db8bdc1ca71456a988db0cb60a6768d5f48c93c00d0e39a81410d51e0c2fee8c9e04cecabe87b645ff802e7c1f872b8b1a9f2fe891ddb2f8946b8cfa5cf661e877e94856',
    messageRoot: '0x893f2f01def1c933f4efcbc816994f0dfa0b64be0c416a18fe5c26d9cb45181b',
    dataRoot: '0x0324c00aa66dbb00587d5c65fa886baf360b7d86955ab3c3d178c6c2ebe7ffb8',
    fork: '0x00000051',
  },
]

describe('published deposits', () => {
  test.each(published)('$name: roots and signature hold', ({ fork, messageRoot, dataRoot, secretKey: _, name: __, ...rest }) => {
    const data = { ...rest, amountGwei: gwei(32_000_000_000n) }
    expect(depositMessageRoot(data)).toBe(messageRoot)
    expect(depositDataRoot(data)).toBe(dataRoot)
    expect(verifyDepositSignature(data, fork)).toBe(true)
    expect(isValidPubkey(data.pubkey)).toBe(true)
    expect(verifyDepositSignature(data, '0x10000910')).toBe(false)
    expect(verifyDepositSignature({ ...data, amountGwei: gwei(32_000_000_001n) }, fork)).toBe(false)
  })

  test('signing with the published key gives the published signature', () => {
    const [
      { secretKey, pubkey, signature, messageRoot, dataRoot, fork, withdrawalCredentials: credentials } = { secretKey: undefined } as never,
    ] = published
    expect(
      signDepositMessage(hexToBytes(secretKey ?? '0x'), {
        withdrawalCredentials: credentials,
        amountGwei: gwei(32_000_000_000n),
        genesisForkVersion: fork,
      }),
    ).toEqual({
      pubkey,
      withdrawalCredentials: credentials,
      amountGwei: 32_000_000_000n,
      signature,
      depositMessageRoot: messageRoot,
      depositDataRoot: dataRoot,
    })
  })
})

test.each([
  { network: 'mainnet', fork: '0x00000000', domain: '0x03000000f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a9' },
  { network: 'hoodi', fork: '0x10000910', domain: '0x03000000719103511efa4f1362ff2a50996cccf329cc84cb410c5e5c7d351d03' },
] as const)('the deposit domain of $network', ({ fork, domain }) => {
  expect(computeDepositDomain(fork)).toBe(domain)
})

describe('withdrawal credentials', () => {
  test.each([
    { type: '0x01', expected: '0x01000000000000000000000000000000219ab540356cbb839cbe05303d7705fa' },
    { type: '0x02', expected: '0x02000000000000000000000000000000219ab540356cbb839cbe05303d7705fa' },
  ] as const)('$type', ({ type, expected }) => {
    expect(withdrawalCredentials(type, '0x00000000219ab540356cBB839Cbe05303d7705Fa')).toBe(expected)
  })
  test.each(['0x', '0x00', `0x${'00'.repeat(21)}`, `0x${'0g'.repeat(20)}`] as const)('%s is no address', (address) => {
    expect(() => withdrawalCredentials('0x01', address)).toThrow(TypeError)
  })
})

describe('public keys that are none', () => {
  test.each([
    { name: 'infinity', pubkey: `0xc0${'00'.repeat(47)}` },
    { name: 'not on the curve', pubkey: `0x8a${'11'.repeat(47)}` },
    { name: 'uncompressed', pubkey: `0x${'00'.repeat(96)}` },
    { name: 'zero', pubkey: `0x${'00'.repeat(48)}` },
    { name: 'too short', pubkey: '0x8666389c' },
    // x = 4 is on the curve, and outside the subgroup of prime order: the cofactor makes almost every point so.
    { name: 'outside the subgroup', pubkey: `0x80${'00'.repeat(46)}04` },
  ] as { name: string; pubkey: Hex }[])('$name', ({ pubkey }) => {
    expect(isValidPubkey(pubkey)).toBe(false)
    expect(
      verifyDepositSignature(
        { pubkey, withdrawalCredentials: `0x${'00'.repeat(32)}`, amountGwei: gwei(1n), signature: `0xc0${'00'.repeat(95)}` },
        '0x00000000',
      ),
    ).toBe(false)
  })
})

test('what is signed verifies, and one bit elsewhere does not', () => {
  const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(bytesToHex)
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 31, maxLength: 31 }),
      bytes(32),
      fc.bigInt(0n, (1n << 64n) - 1n),
      bytes(4),
      fc.nat(255),
      (key, credentials, amount, fork, bit) => {
        const secretKey = Uint8Array.of(0, ...key.subarray(0, 30), 1)
        const signed = signDepositMessage(secretKey, {
          withdrawalCredentials: credentials,
          amountGwei: gwei(amount),
          genesisForkVersion: fork,
        })
        expect(verifyDepositSignature(signed, fork)).toBe(true)
        const flipped = hexToBytes(credentials)
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        expect(verifyDepositSignature({ ...signed, withdrawalCredentials: bytesToHex(flipped) }, fork)).toBe(false)
      },
    ),
    { numRuns: 25 },
  )
})

describe('calldata', () => {
  const first = published[0] as (typeof published)[number]
  const call = {
    pubkey: first.pubkey,
    withdrawalCredentials: first.withdrawalCredentials,
    signature: first.signature,
    depositDataRoot: first.dataRoot,
  }
  const data = encodeDepositCalldata(call)
  const word = (value: number) => value.toString(16).padStart(64, '0')

  test('has the selector, and decodes to what was encoded', () => {
    expect(data.slice(0, 10)).toBe('0x22895118')
    expect(data).toHaveLength(2 + (4 + 13 * 32) * 2)
    expect(decodeDepositCalldata(data)).toEqual(call)
    expect(decodeDepositCalldata(data.toUpperCase().replace('0X', '0x') as Hex)).toEqual(call)
  })

  test.each([
    { name: 'nothing', bad: '0x' },
    { name: 'another selector', bad: data.replace('0x22895118', '0x22895119') },
    { name: 'a read of the contract', bad: '0x621fd130' },
    { name: 'trailing bytes', bad: `${data}00` },
    { name: 'trailing words', bad: `${data}${word(0)}` },
    { name: 'one byte less', bad: data.slice(0, -2) },
    {
      name: 'dirty padding',
      bad: data
        .replace(/0{16}$/, '0000000000000001')
        .replace(`${first.pubkey.slice(2)}${'0'.repeat(32)}`, `${first.pubkey.slice(2)}${'0'.repeat(31)}1`),
    },
    { name: 'the offset of the credentials pointing at the signature', bad: data.replace(word(0xe0), word(0x120)) },
    { name: 'a public key one byte short', bad: data.replace(word(48), word(47)) },
  ])('$name is refused', ({ bad }) => {
    expect(bad).not.toBe(data)
    expect(() => decodeDepositCalldata(bad as Hex)).toThrow(DepositEncodingError)
  })

  test('fields of the wrong length are not encoded', () => {
    expect(() => encodeDepositCalldata({ ...call, pubkey: '0x00' })).toThrow(DepositEncodingError)
  })
})

describe('a DepositEvent', () => {
  test.each([
    { name: 'of another event', log: { topics: [`0x${'00'.repeat(32)}`], data: '0x' } },
    { name: 'without a topic', log: { topics: [], data: '0x' } },
    { name: 'with no data', log: { topics: [depositEventTopic], data: '0x' } },
    { name: 'with data cut off', log: { topics: [depositEventTopic], data: `0x${'00'.repeat(31)}` } },
  ] as { name: string; log: { topics: Hex[]; data: Hex } }[])('$name is refused', ({ log }) => {
    expect(() => decodeDepositLog(log)).toThrow(DepositEncodingError)
  })
})
