import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { Keypair } from '@solana/web3.js'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { encodeBase58 } from '../../chains/solana/base58.ts'
import { encodeOffchainMessage } from '../../chains/solana/challenge.ts'
import { verifySignature } from '../../chains/solana/message.ts'
import { buildDeactivationMessage } from '../../chains/solana/stake.ts'
import { KeyError } from '../ports.ts'
import { createSolanaKeys } from './solana-keys.ts'

const never = new AbortController().signal
/** Of the seed of 32 sevens: a key that is nobody's. */
const keypair = Keypair.fromSeed(new Uint8Array(32).fill(7))
const address = keypair.publicKey.toBase58()
const other = Keypair.fromSeed(new Uint8Array(32).fill(8))
const numbers = JSON.stringify([...keypair.secretKey])
const text58 = encodeBase58(keypair.secretKey)
const canary = 'canary-77d1'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'staking-keys-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

function put(files: Record<string, string>, name = 'hot') {
  mkdirSync(join(dir, name), { recursive: true })
  for (const [file, content] of Object.entries(files)) writeFileSync(join(dir, name, file), content)
}
const keys = () => createSolanaKeys({ dir })
const message = buildDeactivationMessage({
  feePayer: address,
  recentBlockhash: other.publicKey.toBase58(),
  computeUnitLimit: 25_000,
  computeUnitPriceMicroLamports: 0n,
  stakeAccount: other.publicKey.toBase58(),
  stakeAuthority: address,
})

describe('a key is read from', () => {
  test.each([
    { name: "solana-keygen's file", files: { 'keypair.json': numbers } },
    { name: "solana-keygen's file, indented", files: { 'keypair.json': `${JSON.stringify([...keypair.secretKey], undefined, 2)}\n` } },
    { name: 'base58', files: { privateKey: text58 } },
    { name: 'base58 under the name keypair.json', files: { 'keypair.json': `${text58}\n` } },
    { name: 'base58 with a newline', files: { privateKey: `${text58}\r\n` } },
  ])('$name', async ({ files }) => {
    put(files)
    expect(await keys().address('hot', never)).toBe(address)
  })

  test('another Secret, once it is rotated', async () => {
    put({ 'keypair.json': numbers })
    const store = keys()
    await store.address('hot', never)
    put({ 'keypair.json': JSON.stringify([...other.secretKey]) })
    expect(await store.address('hot', never)).toBe(other.publicKey.toBase58())
  })
})

describe('a key is refused, and its content is not quoted, when', () => {
  const half = [...keypair.secretKey.subarray(0, 32), ...other.secretKey.subarray(32)]
  test.each([
    { name: 'there is no file', files: {}, code: 'missing' },
    { name: 'it is not JSON', files: { 'keypair.json': `${canary} [1,2` }, code: 'malformed' },
    { name: 'it is a text', files: { 'keypair.json': `"${canary}"` }, code: 'malformed' },
    { name: 'it holds 63 numbers', files: { 'keypair.json': JSON.stringify([...keypair.secretKey].slice(1)) }, code: 'malformed' },
    { name: 'it holds 65 numbers', files: { 'keypair.json': JSON.stringify([...keypair.secretKey, 1]) }, code: 'malformed' },
    { name: 'a number is 256', files: { 'keypair.json': JSON.stringify([256, ...keypair.secretKey.subarray(1)]) }, code: 'malformed' },
    {
      name: 'a number is a fraction',
      files: { 'keypair.json': JSON.stringify([0.5, ...keypair.secretKey.subarray(1)]) },
      code: 'malformed',
    },
    { name: 'its halves are of two keys', files: { 'keypair.json': JSON.stringify(half) }, code: 'malformed' },
    { name: 'base58 has a wrong letter', files: { privateKey: `${canary}0OIl` }, code: 'malformed' },
    { name: 'base58 is only a seed', files: { privateKey: encodeBase58(keypair.secretKey.subarray(0, 32)) }, code: 'malformed' },
    { name: 'the file is empty', files: { privateKey: '' }, code: 'malformed' },
    { name: 'the file is too large', files: { 'keypair.json': canary.repeat(1000) }, code: 'malformed' },
    { name: 'there are two', files: { 'keypair.json': numbers, privateKey: text58 }, code: 'malformed' },
  ])('$name', async ({ files, code }) => {
    put(files)
    const error = await keys()
      .address('hot', never)
      .catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(KeyError)
    expect(error).toMatchObject({ code })
    const shown = inspect(error, { depth: 9 })
    expect(shown).not.toContain(canary)
    expect(shown).not.toContain(text58)
    expect(shown).not.toMatch(/7,\s*7,\s*7/)
  })
})

describe('signing', () => {
  test('a transaction gives the same valid signature each time', async () => {
    put({ 'keypair.json': numbers })
    const first = await keys().signMessage('hot', address, message, never)
    expect(await keys().signMessage('hot', address, message, never)).toEqual(first)
    expect(verifySignature(address, message, first)).toBe(true)
  })

  test('is refused for another address than the key has', async () => {
    put({ 'keypair.json': JSON.stringify([...other.secretKey]) })
    await expect(keys().signMessage('hot', address, message, never)).rejects.toMatchObject({ code: 'address-mismatch' })
    await expect(keys().signOffchainMessage('hot', address, 'hello', never)).rejects.toMatchObject({ code: 'address-mismatch' })
  })

  test('is refused for a transaction that does not need this signature', async () => {
    put({ 'keypair.json': JSON.stringify([...other.secretKey]) })
    await expect(keys().signMessage('hot', other.publicKey.toBase58(), message, never)).rejects.toThrow(RangeError)
  })

  test('of bytes that are no transaction is refused', async () => {
    put({ 'keypair.json': numbers })
    await expect(keys().signMessage('hot', address, Buffer.from('hello'), never)).rejects.toMatchObject({ code: 'malformed' })
    await expect(keys().signMessage('hot', address, encodeOffchainMessage('hello'), never)).rejects.toMatchObject({ code: 'malformed' })
  })

  test('a text signs its off-chain envelope, not the text', async () => {
    put({ privateKey: text58 })
    const signature = await keys().signOffchainMessage('hot', address, 'hello', never)
    expect(verifySignature(address, encodeOffchainMessage('hello'), signature)).toBe(true)
    expect(verifySignature(address, Buffer.from('hello'), signature)).toBe(false)
  })

  test('ends when it is aborted', async () => {
    put({ 'keypair.json': numbers })
    await expect(keys().signMessage('hot', address, message, AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop')
  })
})
