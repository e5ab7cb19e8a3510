import { createCipheriv, pbkdf2Sync, randomBytes, scryptSync } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { inspect } from 'node:util'
import { concat, keccak256, parseTransaction, recoverTransactionAddress } from 'viem'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { UnsignedTransaction } from '../../chains/ethereum/chain.ts'
import { wei } from '../../lib/amounts.ts'
import { KeyError } from '../ports.ts'
import { createEthereumKeys } from './ethereum-keys.ts'
import { decryptKeystore } from './ethereum-keystore.ts'

const never = new AbortController().signal
/** The first two of the mnemonic "test test … junk": public keys of every development chain. */
const secret = 'ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const address = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const secondSecret = '59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d'
const secondAddress = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
/** The order of secp256k1. */
const order = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141'
const canary = 'canary-1d2c'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'staking-keys-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

type Files = Record<string, string | Buffer>
function put(files: Files, name = 'hot') {
  mkdirSync(join(dir, name), { recursive: true })
  for (const [file, content] of Object.entries(files)) writeFileSync(join(dir, name, file), content)
}

/** A keystore as Web3 Secret Storage defines it, made here with Node's own cryptography. */
function keystoreOf(
  key: string,
  password: string,
  change: (json: Record<string, unknown> & { crypto: Record<string, unknown> }) => void = () => {},
  kdf: 'scrypt' | 'pbkdf2' = 'scrypt',
) {
  const salt = randomBytes(32)
  const iv = randomBytes(16)
  const derived = kdf === 'scrypt' ? scryptSync(password, salt, 32, { N: 16, r: 1, p: 1 }) : pbkdf2Sync(password, salt, 2, 32, 'sha256')
  const cipher = createCipheriv('aes-128-ctr', derived.subarray(0, 16), iv)
  const ciphertext = Buffer.concat([cipher.update(Buffer.from(key, 'hex')), cipher.final()])
  const mac = keccak256(concat([derived.subarray(16, 32), ciphertext])).slice(2)
  const params = { dklen: 32, salt: salt.toString('hex') }
  const json = {
    version: 3,
    id: '3198bc9c-6672-5ab3-d995-4942343ae5b6',
    crypto: {
      cipher: 'aes-128-ctr',
      ciphertext: ciphertext.toString('hex'),
      cipherparams: { iv: iv.toString('hex') },
      kdf,
      kdfparams: kdf === 'scrypt' ? { ...params, n: 16, r: 1, p: 1 } : { ...params, c: 2, prf: 'hmac-sha256' },
      mac,
    },
  }
  change(json)
  return JSON.stringify(json)
}

const addressOf = (name = 'hot') => createEthereumKeys({ dir }).address(name, never)

describe('a key is read from', () => {
  test.each<{ name: string; files: Files }>([
    { name: 'hex', files: { privateKey: secret } },
    { name: 'hex with 0x', files: { privateKey: `0x${secret}` } },
    { name: 'hex with a newline', files: { privateKey: `${secret}\n` } },
    { name: 'hex with a Windows newline', files: { privateKey: `0x${secret}\r\n` } },
    { name: 'hex in capitals', files: { privateKey: secret.toUpperCase() } },
    { name: 'a keystore by scrypt', files: { 'keystore.json': keystoreOf(secret, 'pass'), password: 'pass\n' } },
    { name: 'a keystore by pbkdf2', files: { 'keystore.json': keystoreOf(secret, 'pass', undefined, 'pbkdf2'), password: 'pass' } },
    {
      name: 'a keystore that names its address',
      files: {
        'keystore.json': keystoreOf(secret, 'pass', (json) => Object.assign(json, { address: address.slice(2) })),
        password: 'pass',
      },
    },
    { name: 'a keystore with an empty password', files: { 'keystore.json': keystoreOf(secret, ''), password: '' } },
    {
      name: 'a keystore with a password of spaces and accents',
      files: { 'keystore.json': keystoreOf(secret, ' pässwörd '), password: ' pässwörd ' },
    },
    { name: 'a folder with other files too', files: { privateKey: secret, 'README.md': 'x' } },
  ])('$name', async ({ files }) => {
    put(files)
    expect(await addressOf()).toBe(address)
  })

  // Published with the definition of the format: Web3 Secret Storage, test vectors (scrypt with n = 262144).
  test('the published keystore', async () => {
    put({
      password: 'testpassword',
      'keystore.json':
        '{"crypto":{"cipher":"aes-128-ctr","cipherparams":{"iv":"83dbcc02d8ccb40e466191a123791e0e"},"ciphertext":"d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c","kdf":"scrypt","kdfparams":{"dklen":32,"n":262144,"p":8,"r":1,"salt":"ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19"},"mac":"2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097"},"id":"3198bc9c-6672-5ab3-d995-4942343ae5b6","version":3}',
    })
    expect(await addressOf()).toBe('0x008AeEda4D805471dF9b2A5B0f38A0C3bCBA786b')
    // Its key derivation is slow by design: seconds of a processor that others use too.
  }, 60_000)

  test('a Secret as Kubernetes mounts it, and as it swaps it', async () => {
    const folder = join(dir, 'hot')
    mkdirSync(join(folder, '..2026_01'), { recursive: true })
    writeFileSync(join(folder, '..2026_01', 'privateKey'), secret)
    symlinkSync('..2026_01', join(folder, '..data'))
    symlinkSync('..data/privateKey', join(folder, 'privateKey'))
    const keys = createEthereumKeys({ dir })
    expect(await keys.address('hot', never)).toBe(address)

    mkdirSync(join(folder, '..2026_02'))
    writeFileSync(join(folder, '..2026_02', 'privateKey'), secondSecret)
    symlinkSync('..2026_02', join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
    expect(await keys.address('hot', never)).toBe(secondAddress)
  })

  test('one version of a mounted Secret, though a swap is half seen', async () => {
    const folder = join(dir, 'hot')
    for (const [version, password] of [
      ['..1', 'old'],
      ['..2', 'new'],
    ] as const) {
      mkdirSync(join(folder, version), { recursive: true })
      writeFileSync(join(folder, version, 'keystore.json'), keystoreOf(secret, password))
      writeFileSync(join(folder, version, 'password'), password)
    }
    symlinkSync('..2', join(folder, '..data'))
    symlinkSync('..1/keystore.json', join(folder, 'keystore.json'))
    symlinkSync('..2/password', join(folder, 'password'))
    expect(await addressOf()).toBe(address)
  })
})

/** A volume of many keys, as Kubernetes mounts it and puts a new version in its place. */
function mount(version: string, files: Files) {
  for (const [file, content] of Object.entries(files)) {
    const path = join(dir, version, file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
    const [top = ''] = file.split('/')
    if (!readdirSync(dir).includes(top)) symlinkSync(`..data/${top}`, join(dir, top))
  }
  symlinkSync(version, join(dir, '..data_tmp'))
  renameSync(join(dir, '..data_tmp'), join(dir, '..data'))
}

describe('one volume holds many keys', () => {
  test('each as <keyName>.<file>, as a whole Secret has them', async () => {
    mount('..1', { 'hot.privateKey': secret, 'cold.keystore.json': keystoreOf(secondSecret, 'pass'), 'cold.password': 'pass\n' })
    expect(await addressOf('hot')).toBe(address)
    expect(await addressOf('cold')).toBe(secondAddress)
  })

  test('or each in a folder, as items of many Secrets', async () => {
    mount('..1', { 'hot/privateKey': secret, 'cold/privateKey': secondSecret })
    expect(await addressOf('hot')).toBe(address)
    expect(await addressOf('cold')).toBe(secondAddress)
  })

  test('a key that comes, one that is rotated and one that goes are seen at the next use', async () => {
    const keys = createEthereumKeys({ dir })
    mount('..1', { 'hot.privateKey': secret })
    expect(await keys.address('hot', never)).toBe(address)
    await expect(keys.address('late', never)).rejects.toMatchObject({ code: 'missing' })
    mount('..2', { 'hot.privateKey': secondSecret, 'late.privateKey': secret })
    rmSync(join(dir, '..1'), { recursive: true })
    expect(await keys.address('hot', never)).toBe(secondAddress)
    expect(await keys.address('late', never)).toBe(address)
    mount('..3', { 'hot.privateKey': secondSecret })
    rmSync(join(dir, '..2'), { recursive: true })
    await expect(keys.address('late', never)).rejects.toMatchObject({ code: 'missing' })
  })

  test.each(['hot.', 'hot/'])('a keystore as %s… is read with the password of its own version', async (prefix) => {
    mount('..1', { [`${prefix}keystore.json`]: keystoreOf(secret, 'old'), [`${prefix}password`]: 'old' })
    const keys = createEthereumKeys({ dir })
    const reads = [keys.address('hot', never)]
    // While the first is read.
    mount('..2', { [`${prefix}keystore.json`]: keystoreOf(secondSecret, 'new'), [`${prefix}password`]: 'new' })
    reads.push(keys.address('hot', never))
    for (const found of await Promise.all(reads)) expect([address, secondAddress]).toContain(found)
    expect(await addressOf()).toBe(secondAddress)
  })

  test('a key of another name that begins alike is another key', async () => {
    mount('..1', { 'hot-2.privateKey': secret, 'hot.2.privateKey': secret })
    await expect(addressOf('hot')).rejects.toMatchObject({ code: 'missing' })
  })

  test('a key that is there twice is not guessed at', async () => {
    mount('..1', { 'hot.privateKey': secret, 'hot/privateKey': secondSecret })
    await expect(addressOf('hot')).rejects.toMatchObject({
      code: 'malformed',
      message: expect.stringMatching(/the key hot is there twice.*choose one/),
    })
  })
})

describe('a bad key file is named, with the mend, and never quoted', () => {
  const truncated = keystoreOf(secret, 'pass').slice(0, -9)
  test.each<{ name: string; files?: Files; code: string; says: RegExp }>([
    {
      name: 'no folder',
      code: 'missing',
      says: /no key hot in .*mount its Secret as the folder .*hot, or add the file as hot\.privateKey/,
    },
    { name: 'an empty folder', files: {}, code: 'missing', says: /needs privateKey, or keystore\.json with password/ },
    {
      name: 'a keystore without its password',
      files: { 'keystore.json': keystoreOf(secret, 'pass') },
      code: 'missing',
      says: /file named password/,
    },
    { name: 'a password alone', files: { password: canary }, code: 'missing', says: /needs privateKey/ },
    {
      name: 'both kinds',
      files: { privateKey: secret, 'keystore.json': keystoreOf(secret, 'pass'), password: 'pass' },
      code: 'malformed',
      says: /choose one/,
    },
    { name: 'an empty file', files: { privateKey: '' }, code: 'malformed', says: /privateKey is empty/ },
    { name: 'a file of white space', files: { privateKey: ' \n' }, code: 'malformed', says: /privateKey is empty/ },
    { name: 'a digit too few', files: { privateKey: secret.slice(1) }, code: 'malformed', says: /64 hex digits/ },
    { name: 'a digit too many', files: { privateKey: `${secret}0` }, code: 'malformed', says: /64 hex digits/ },
    { name: 'two keys', files: { privateKey: `${secret}\n${secret}` }, code: 'malformed', says: /64 hex digits/ },
    { name: 'words', files: { privateKey: `test test ${canary}` }, code: 'malformed', says: /64 hex digits/ },
    { name: 'raw bytes', files: { privateKey: Buffer.from(secret, 'hex') }, code: 'malformed', says: /64 hex digits/ },
    { name: 'zero', files: { privateKey: '0'.repeat(64) }, code: 'malformed', says: /not a private key of secp256k1/ },
    { name: "the curve's order", files: { privateKey: order }, code: 'malformed', says: /not a private key of secp256k1/ },
    { name: 'more than the order', files: { privateKey: 'f'.repeat(64) }, code: 'malformed', says: /not a private key of secp256k1/ },
    { name: 'a large file', files: { privateKey: secret.repeat(40) }, code: 'malformed', says: /larger than 1024 bytes/ },
    { name: 'no JSON', files: { 'keystore.json': `{"${canary}`, password: 'pass' }, code: 'malformed', says: /not JSON/ },
    { name: 'half of a keystore', files: { 'keystore.json': truncated, password: 'pass' }, code: 'malformed', says: /not JSON/ },
    {
      name: 'other JSON',
      files: { 'keystore.json': `{"version":4,"crypto":"${canary}"}`, password: 'pass' },
      code: 'malformed',
      says: /version, crypto/,
    },
    { name: 'a list', files: { 'keystore.json': '[1]', password: 'pass' }, code: 'malformed', says: /look at its top/ },
    {
      name: 'another cipher',
      files: { 'keystore.json': keystoreOf(secret, 'pass', ({ crypto }) => Object.assign(crypto, { cipher: canary })), password: 'pass' },
      code: 'malformed',
      says: /crypto\.cipher/,
    },
    {
      name: 'a derivation that would take all memory',
      files: {
        'keystore.json': keystoreOf(secret, 'pass', ({ crypto }) => Object.assign(crypto.kdfparams as object, { n: 1 << 30 })),
        password: 'pass',
      },
      code: 'malformed',
      says: /crypto\.kdfparams\.n/,
    },
    {
      name: 'a wrong password',
      files: { 'keystore.json': keystoreOf(secret, 'pass'), password: canary },
      code: 'wrong-password',
      says: /does not decrypt/,
    },
    {
      name: 'a changed ciphertext',
      files: {
        'keystore.json': keystoreOf(secret, 'pass', ({ crypto }) => Object.assign(crypto, { ciphertext: '00'.repeat(32) })),
        password: 'pass',
      },
      code: 'wrong-password',
      says: /does not decrypt/,
    },
    {
      name: 'a keystore of zero',
      files: { 'keystore.json': keystoreOf('0'.repeat(64), 'pass'), password: 'pass' },
      code: 'malformed',
      says: /not a key/,
    },
    {
      name: 'a keystore that names another address',
      files: {
        'keystore.json': keystoreOf(secret, 'pass', (json) => Object.assign(json, { address: secondAddress.slice(2) })),
        password: 'pass',
      },
      code: 'malformed',
      says: /another address/,
    },
  ])('$name', async ({ files, code, says }) => {
    if (files !== undefined) put(files)
    const error = await addressOf().then(
      () => undefined,
      (caught: unknown) => caught,
    )
    expect(error).toBeInstanceOf(KeyError)
    expect(error).toMatchObject({ code, message: expect.stringMatching(says) })
    const shown = inspect(error, { depth: 9 })
    for (const hidden of [canary, secret, secret.slice(0, 12), 'pass\n', order.slice(0, 40)]) expect(shown).not.toContain(hidden)
  })

  test('a folder instead of the file', async () => {
    mkdirSync(join(dir, 'hot', 'privateKey'), { recursive: true })
    await expect(addressOf()).rejects.toMatchObject({ code: 'malformed', message: expect.stringContaining('is not a file') })
  })

  test.each(['', '.', '..', '../hot', 'hot/../hot', 'Hot', 'a'.repeat(64), '-a', 'a b', 'hot\n', '..data'])(
    'the name "%s" is none',
    async (name) => {
      put({ privateKey: secret })
      await expect(addressOf(name)).rejects.toMatchObject({ name: 'KeyError', code: 'malformed' })
    },
  )
})

describe('a transaction', () => {
  const transaction: UnsignedTransaction = {
    chainId: 560048,
    nonce: 7,
    to: '0x00000000219ab540356cBB839Cbe05303d7705Fa',
    data: '0x22895118',
    valueWei: wei(32n * 10n ** 18n),
    gas: 200_000n,
    maxFeePerGas: wei(30n * 10n ** 9n),
    maxPriorityFeePerGas: wei(10n ** 9n),
  }

  test('is signed with every field as it stands, the same bytes each time', async () => {
    put({ privateKey: secret })
    const keys = createEthereumKeys({ dir })
    const signed = await keys.signTransaction('hot', address, transaction, never)
    expect(parseTransaction(signed.raw)).toMatchObject({
      type: 'eip1559',
      chainId: 560048,
      nonce: 7,
      value: 32n * 10n ** 18n,
      gas: 200_000n,
      maxFeePerGas: 30n * 10n ** 9n,
      maxPriorityFeePerGas: 10n ** 9n,
      data: '0x22895118',
    })
    expect(await recoverTransactionAddress({ serializedTransaction: signed.raw as `0x02${string}` })).toBe(address)
    expect(signed.hash).toBe(keccak256(signed.raw))
    expect(await keys.signTransaction('hot', address, transaction, never)).toEqual(signed)
    expect(await createEthereumKeys({ dir }).signTransaction('hot', address.toLowerCase() as `0x${string}`, transaction, never)).toEqual(
      signed,
    )
  })

  test('is not signed with the key of another address', async () => {
    put({ privateKey: secret })
    const keys = createEthereumKeys({ dir })
    await expect(keys.signTransaction('hot', secondAddress, transaction, never)).rejects.toMatchObject({
      code: 'address-mismatch',
      message: expect.stringContaining(address),
    })
  })

  test('is not signed with a key that was rotated or removed a moment ago', async () => {
    put({ privateKey: secret })
    const keys = createEthereumKeys({ dir })
    await keys.signTransaction('hot', address, transaction, never)
    put({ privateKey: secondSecret })
    await expect(keys.signTransaction('hot', address, transaction, never)).rejects.toMatchObject({ code: 'address-mismatch' })
    rmSync(join(dir, 'hot'), { recursive: true })
    await expect(keys.signTransaction('hot', address, transaction, never)).rejects.toMatchObject({ code: 'missing' })
  })

  test('is not signed after the abort', async () => {
    put({ privateKey: secret })
    const reason = new Error('lease lost')
    await expect(createEthereumKeys({ dir }).signTransaction('hot', address, transaction, AbortSignal.abort(reason))).rejects.toBe(reason)
  })
})

test('a keystore is decrypted once while it stays the same, and again when its password changes', async () => {
  put({ 'keystore.json': keystoreOf(secret, 'pass'), password: 'pass' })
  let decrypted = 0
  const keys = createEthereumKeys({
    dir,
    decrypt: (...given) => {
      decrypted += 1
      return decryptKeystore(...given)
    },
  })
  expect(await Promise.all(Array.from({ length: 50 }, () => keys.address('hot', never)))).toEqual(Array(50).fill(address))
  expect(decrypted).toBe(1)
  put({ password: 'other' })
  for (let n = 0; n < 3; n++) await expect(keys.address('hot', never)).rejects.toMatchObject({ code: 'wrong-password' })
  expect(decrypted).toBe(2)
  put({ password: 'pass' })
  expect(await keys.address('hot', never)).toBe(address)
})
