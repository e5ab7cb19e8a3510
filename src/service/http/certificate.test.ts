import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createAuthority } from '../../../test/cluster/certificates.ts'
import { readCertificate } from './certificate.ts'

const folder = mkdtempSync(join(tmpdir(), 'certificate-'))
afterAll(() => rmSync(folder, { recursive: true }))
const [certFile, keyFile] = ['tls.crt', 'tls.key'].map((name) => join(folder, name)) as [string, string]
const authority = createAuthority()
const one = authority.issue({ names: ['staking.example'] })
const other = authority.issue()
const encrypted = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'hunter2' },
}).privateKey
/** It ends at a time that is none. */
const timeless = (() => {
  const der = Buffer.from(new X509Certificate(authority.issue({ validTo: new Date('2031-05-06T07:08:09Z') }).cert).raw)
  der.write('319999999999Z', der.indexOf('310506070809Z'))
  return `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`
})()
const put = (cert: string | undefined, key: string | undefined) => {
  for (const [file, text] of [
    [certFile, cert],
    [keyFile, key],
  ] as const) {
    rmSync(file, { force: true, recursive: true })
    if (text !== undefined) writeFileSync(file, text)
  }
}

test('a certificate with those of its authorities and its key are read', async () => {
  put(one.cert + authority.cert, one.key)
  const read = await readCertificate({ certFile, keyFile })
  expect(read.names).toContain('DNS:staking.example')
  expect(read.validTo.getTime()).toBeGreaterThan(Date.now())
  expect(JSON.stringify(read)).not.toContain('PRIVATE KEY')
})

describe('what can not be used is said in one line, and nothing of it is quoted', () => {
  const body = one.key.split('\n')[1] ?? ''
  test.each([
    { what: 'no certificate', cert: undefined, key: one.key, says: 'tls.certFile: FOLDER/tls.crt cannot be read (ENOENT)' },
    { what: 'no key', cert: one.cert, key: undefined, says: 'tls.keyFile: FOLDER/tls.key cannot be read (ENOENT)' },
    { what: 'an empty certificate', cert: '', key: one.key, says: 'tls.certFile: FOLDER/tls.crt is empty' },
    { what: 'an empty key', cert: one.cert, key: ' \n', says: 'tls.keyFile: FOLDER/tls.key is empty' },
    { what: 'text for a certificate', cert: 'hello', key: one.key, says: 'tls.certFile: FOLDER/tls.crt holds no certificate in PEM' },
    { what: 'the key for the certificate', cert: one.key, key: one.key, says: 'tls.certFile: FOLDER/tls.crt holds no certificate in PEM' },
    {
      what: 'a certificate that was cut off',
      cert: one.cert.slice(0, 200),
      key: one.key,
      says: 'tls.certFile: FOLDER/tls.crt holds no certificate in PEM',
    },
    {
      what: 'a certificate that ends at no time',
      cert: timeless,
      key: one.key,
      says: 'tls.certFile: FOLDER/tls.crt holds no certificate in PEM',
    },
    {
      what: 'half of an intermediate certificate',
      cert: one.cert + authority.cert.replace(/(-----\n.{40})[\s\S]*(\n-----END)/, '$1$2'),
      key: one.key,
      says: 'tls: FOLDER/tls.crt and FOLDER/tls.key are refused by the TLS library (',
    },
    { what: 'the certificate for the key', cert: one.cert, key: one.cert, says: 'tls.keyFile: FOLDER/tls.key holds no private key in PEM' },
    {
      what: 'a key that was cut off',
      cert: one.cert,
      key: one.key.slice(0, 100),
      says: 'tls.keyFile: FOLDER/tls.key holds no private key in PEM',
    },
    {
      what: 'a key under a passphrase',
      cert: one.cert,
      key: encrypted,
      says: 'tls.keyFile: FOLDER/tls.key holds a key under a passphrase',
    },
    {
      what: 'the key of another certificate',
      cert: one.cert,
      key: other.key,
      says: 'tls.keyFile: FOLDER/tls.key is not the key of the first certificate in FOLDER/tls.crt',
    },
    {
      what: 'the authority before the server',
      cert: authority.cert + one.cert,
      key: one.key,
      says: 'tls.keyFile: FOLDER/tls.key is not the key of the first certificate in FOLDER/tls.crt',
    },
  ])('$what', async ({ cert, key, says }) => {
    put(cert, key)
    const error = await readCertificate({ certFile, keyFile }).then(
      () => undefined,
      (failure: Error) => failure,
    )
    expect(error).toMatchObject({ name: 'ConfigError', message: expect.stringContaining(says.replaceAll('FOLDER', folder)) })
    expect(error?.message).not.toMatch(/\n/)
    expect(error?.message).not.toContain(body)
  })

  test('a folder', async () => {
    put(undefined, one.key)
    mkdirSync(certFile)
    await expect(readCertificate({ certFile, keyFile })).rejects.toThrow(`tls.certFile: ${certFile} cannot be read (EISDIR)`)
  })
})
