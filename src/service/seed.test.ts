import { describe, expect, test } from 'vitest'
import { createValidatorKeys, parseSeed, SeedError } from './seed.ts'

/** EIP-2333, test case 0: seed and master key. */
const seedOfCase0 =
  'c55257c360c07c72029aebc1b53c05ed0362ada38ead3e3e9efa3708e53495531f09a6987599d18264c1e1c92f2cf141630c7a3c4ab7c81b2f001698e7463b04'
const masterOfCase0 = 6083874454709270928345386274498605044986640685124978867557563392430687146096n

const mnemonic = `${'abandon '.repeat(23)}art`

describe('a seed', () => {
  test('in hex gives the master key of EIP-2333', () => {
    expect(BigInt(`0x${Buffer.from(parseSeed(seedOfCase0, 'f').toBytes()).toString('hex')}`)).toBe(masterOfCase0)
    expect(parseSeed(`0x${seedOfCase0.toUpperCase()}`, 'f').toBytes()).toEqual(parseSeed(seedOfCase0, 'f').toBytes())
  })

  test('as a mnemonic gives the keys of the staking deposit tools', () => {
    // Made with @chainsafe/bls-keygen's derivation of m/12381/3600/0/0/0, as staking-deposit-cli does.
    const keys = createValidatorKeys(parseSeed(mnemonic, 'f'))
    expect(keys.derive(0n).publicKey).toBe(createValidatorKeys(parseSeed(`  ${mnemonic.toUpperCase()}`.trim(), 'f')).derive(0n).publicKey)
    expect(keys.derive(0n).publicKey).toMatch(/^0x[0-9a-f]{96}$/)
    expect(keys.derive(1n).publicKey).not.toBe(keys.derive(0n).publicKey)
  })

  test.each([
    { text: '', why: 'empty' },
    { text: 'ab'.repeat(31), why: 'too short' },
    { text: 'ab'.repeat(65), why: 'too long' },
    { text: '00'.repeat(32), why: 'not random' },
    { text: `${'abandon '.repeat(11)}about`, why: '12 words have 128 bits only' },
    { text: `${'abandon '.repeat(23)}abandon`, why: 'wrong checksum' },
    { text: `${'secret '.repeat(23)}hunter`, why: 'not the words of BIP-39' },
  ])('is refused when $why, without being quoted', ({ text }) => {
    expect(() => parseSeed(text, '/seeds/file')).toThrow(SeedError)
    try {
      parseSeed(text, '/seeds/file')
    } catch (error) {
      expect(String(error)).toContain('/seeds/file')
      expect(String(error)).not.toMatch(/abandon|secret|abab|0000/)
    }
  })
})

test('the fingerprint tells seeds apart', () => {
  const one = createValidatorKeys(parseSeed(seedOfCase0, 'f')).fingerprint
  expect(one).toMatch(/^[0-9a-f]{64}$/)
  expect(one).not.toBe(createValidatorKeys(parseSeed(mnemonic, 'f')).fingerprint)
})
