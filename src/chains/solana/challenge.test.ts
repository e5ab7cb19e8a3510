import { describe, expect, test } from 'vitest'
import { lamports } from '../../lib/amounts.ts'
import {
  ChallengeError,
  type ChallengeMismatchCode,
  challengeText,
  decodeOffchainMessage,
  encodeOffchainMessage,
  maxChallengeBytes,
  mayBeTransaction,
  parseChallenge,
  verifyChallenge,
  verifyChallengeSignature,
} from './challenge.ts'
import { joinTransaction } from './message.ts'
import { buildDeactivationMessage, stakeAccountAddress } from './stake.ts'
import { example, frame, testAddress } from './testing.ts'

const now = new Date('2026-03-01T12:00:00.000Z')
const content = {
  domain: 'stake.example.org',
  stakeId: example.seed,
  challengeId: '0195c0df0195c0df0195c0df0195c0df',
  network: 'devnet',
  amount: example.amount,
  stakeAccount: stakeAccountAddress(example.feePayer, example.seed),
  stakeAuthority: example.stakeAuthority,
  withdrawAuthority: example.withdrawAuthority,
}
const times = { issuedAt: now, expiresAt: new Date(now.getTime() + 300_000) }
const text = challengeText({ ...content, ...times })
const transaction = buildDeactivationMessage({ ...frame, stakeAccount: content.stakeAccount, stakeAuthority: example.stakeAuthority })

describe('the envelope', () => {
  test('is 0xff "solana offchain", version 0, format 0, length and text', () => {
    expect(Buffer.from(encodeOffchainMessage('Test Message')).toString('hex')).toBe(
      'ff736f6c616e61206f6666636861696e00000c0054657374204d657373616765',
    )
  })

  test('gives its text back', () => {
    expect(decodeOffchainMessage(encodeOffchainMessage(text))).toBe(text)
  })

  test.each(['', 'two\nlines', 'grüezi', '\u202e', 'x'.repeat(maxChallengeBytes + 1)])('refuses %j', (bad) => {
    expect(() => encodeOffchainMessage(bad)).toThrow(ChallengeError)
  })

  test.each([
    { name: 'another first byte', change: (bytes: Uint8Array) => bytes.fill(0xfe, 0, 1) },
    { name: 'another version', change: (bytes: Uint8Array) => bytes.fill(1, 16, 17) },
    { name: 'another format', change: (bytes: Uint8Array) => bytes.fill(1, 17, 18) },
    { name: 'another length', change: (bytes: Uint8Array) => bytes.fill(3, 18, 19) },
    { name: 'a byte more', change: (bytes: Uint8Array) => Buffer.concat([bytes, Buffer.from('x')]) },
    { name: 'nothing', change: () => new Uint8Array() },
  ])('with $name is none', ({ change }) => {
    expect(() => decodeOffchainMessage(change(encodeOffchainMessage('hello')))).toThrow(ChallengeError)
  })

  test('is never a transaction, and a transaction is never an envelope', () => {
    expect(mayBeTransaction(encodeOffchainMessage(text))).toBe(false)
    expect(mayBeTransaction(transaction)).toBe(true)
    expect(mayBeTransaction(joinTransaction(transaction))).toBe(true)
    expect(() => decodeOffchainMessage(transaction)).toThrow(ChallengeError)
  })

  test('that is signed by nobody is not signed', () => {
    expect(verifyChallengeSignature(example.withdrawAuthority, text, 'not a signature')).toBe(false)
    expect(verifyChallengeSignature('not an address', text, testAddress(1))).toBe(false)
  })
})

describe('a challenge', () => {
  test('is text that a person can read, and is read back whole', () => {
    expect(text).toContain('stake.example.org asks')
    expect(text.length).toBeLessThan(maxChallengeBytes)
    expect(parseChallenge(text)).toEqual({ ...content, ...times })
  })

  test('that names this stake, its money and authorities may be signed', () => {
    expect(verifyChallenge({ text, expected: content, now })).toEqual([])
  })

  test.each<{ name: string; change: Partial<typeof content & typeof times>; code: ChallengeMismatchCode }>([
    { name: 'of another domain', change: { domain: 'evil.example' }, code: 'wrong-domain' },
    { name: 'of a domain that only begins like ours', change: { domain: 'stake.example.org.evil.example' }, code: 'wrong-domain' },
    { name: 'for another stake', change: { stakeId: 'other' }, code: 'wrong-stake' },
    { name: 'with another id', change: { challengeId: 'other' }, code: 'wrong-challenge' },
    { name: 'for another network', change: { network: 'mainnet-beta' }, code: 'wrong-network' },
    { name: 'with another amount', change: { amount: lamports(example.amount + 1n) }, code: 'wrong-amount' },
    { name: 'with another stake account', change: { stakeAccount: testAddress(66) }, code: 'wrong-stake-account' },
    { name: 'with another stake authority', change: { stakeAuthority: testAddress(66) }, code: 'wrong-stake-authority' },
    { name: 'with another withdraw authority', change: { withdrawAuthority: testAddress(66) }, code: 'wrong-withdraw-authority' },
    { name: 'that has expired', change: { expiresAt: now }, code: 'expired' },
    { name: 'that lives for an hour', change: { expiresAt: new Date(now.getTime() + 3_600_000) }, code: 'wrong-lifetime' },
    {
      name: 'that expires before it is issued',
      change: { issuedAt: new Date(now.getTime() + 400_000) },
      code: 'wrong-lifetime',
    },
  ])('$name is refused', ({ change, code }) => {
    const other = challengeText({ ...content, ...times, ...change })
    expect(verifyChallenge({ text: other, expected: content, now }).map((mismatch) => mismatch.code)).toEqual([code])
  })

  test.each([
    { name: 'a sentence more', bad: `${text}; Also: send all` },
    { name: 'a line more', bad: `${text}\n` },
    { name: 'a field less', bad: text.replace(/; Network: devnet/, '') },
    { name: 'an amount with zeros before', bad: text.replace('Amount: ', 'Amount: 0') },
    { name: 'a date that does not exist', bad: text.replace('2026-03-01', '2026-13-01') },
    { name: 'look-alike letters', bad: text.replace('stake.example', 'stаke.example') },
    { name: 'an address of another length', bad: text.replace(example.withdrawAuthority, '1'.repeat(33)) },
    { name: 'nothing', bad: '' },
    { name: 'free text', bad: 'please sign this' },
  ])('with $name is malformed', ({ bad }) => {
    expect(verifyChallenge({ text: bad, expected: content, now })).toMatchObject([{ code: 'malformed' }])
  })

  test.each([
    { name: 'message', bytes: transaction },
    { name: 'transaction', bytes: joinTransaction(transaction) },
  ])('that is a $name in base64 is refused as such', ({ bytes }) => {
    const bad = Buffer.from(bytes).toString('base64')
    expect(verifyChallenge({ text: bad, expected: content, now })).toMatchObject([{ code: 'transaction' }])
  })

  test.each<{ name: string; change: Partial<typeof content> }>([
    { name: 'a domain with a space', change: { domain: 'Stake Example' } },
    { name: 'a domain that adds a field', change: { domain: 'a; Stake: b' } },
    { name: 'an id that adds a field', change: { stakeId: 'a; Amount: 1' } },
    { name: 'an empty network', change: { network: '' } },
    { name: 'an address that is none', change: { stakeAccount: 'short' } },
    { name: 'a negative amount', change: { amount: lamports(-1n) } },
  ])('is not made of $name', ({ change }) => {
    expect(() => challengeText({ ...content, ...times, ...change })).toThrow(ChallengeError)
  })
})
