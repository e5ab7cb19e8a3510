import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { systemProgram } from '../chains/solana/programs.ts'
import { loadServiceConfig, parseServiceConfig } from './config.ts'

const folder = mkdtempSync(join(tmpdir(), 'service-config-'))
afterAll(() => rmSync(folder, { recursive: true }))
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

const minimal = `
seedFile: /seed
networks:
  - {name: hoodi, chain: Ethereum, rpcUrls: ['http://localhost:8545']}
`

test('the least configuration serves one network from the embedded database', () => {
  expect(parseServiceConfig(minimal, 'c.yaml')).toMatchObject({
    listen: { host: '0.0.0.0', port: 8080 },
    database: { dataDir: '/var/lib/staking-service' },
    networks: [{ name: 'hoodi', chainId: 560048 }],
    rateLimit: { max: 12_000 },
    logLevel: 'info',
  })
})

test('a certificate is named by its two files', () => {
  expect(parseServiceConfig(minimal, 'c.yaml').tls).toBeUndefined()
  const files = { certFile: '/tls/tls.crt', keyFile: '/tls/tls.key' }
  expect(parseServiceConfig(`${minimal}tls: ${JSON.stringify(files)}`, 'c.yaml').tls).toEqual(files)
})

test('networks of both chains stand side by side', () => {
  const text = `${minimal}  - {name: devnet, chain: Solana, rpcUrls: ['http://localhost:8899']}
solana: {domain: 'staking.example:8443', defaultVoteAccounts: {devnet: '${systemProgram}'}}`
  expect(parseServiceConfig(text, 'c.yaml')).toMatchObject({
    networks: [
      { name: 'hoodi', chain: 'Ethereum' },
      { name: 'devnet', chain: 'Solana', genesisHash: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG' },
    ],
    solana: { domain: 'staking.example:8443', defaultVoteAccounts: { devnet: systemProgram }, maxPriorityFeeLamports: 10_000 },
  })
})

describe('what is wrong is said with the file and the field', () => {
  test.each([
    { text: 'a: [', expected: 'c.yaml is not valid YAML (line 1)' },
    { text: '', expected: 'seedFile: ' },
    { text: `${minimal}listn: {}`, expected: 'Unrecognized key: "listn"' },
    { text: `${minimal}listen: {port: 99999}`, expected: ' listen.port: ' },
    { text: `${minimal}tls: {certFile: /tls.crt}`, expected: ' tls.keyFile: ' },
    { text: `${minimal}tls: {keyFile: /tls.key}`, expected: ' tls.certFile: ' },
    { text: `${minimal}tls: {certFile: '', keyFile: /tls.key}`, expected: ' tls.certFile: ' },
    { text: `${minimal}tls: {certFile: /tls.crt, keyFile: /tls.key, secretName: x}`, expected: 'Unrecognized key: "secretName"' },
    { text: minimal.replace("'http://localhost:8545'", "'localhost'"), expected: ' networks[0].rpcUrls[0]: must be an http(s) URL' },
    { text: minimal.replace('hoodi', 'devnet'), expected: ' networks[0].chainId: is required' },
    { text: `${minimal}  - {name: devnet, chain: Solana, rpcUrls: ['x']}`, expected: ' networks[1].rpcUrls[0]: must be an http(s) URL' },
    { text: `${minimal}  - {name: local, chain: Solana, rpcUrls: ['http://b']}`, expected: ' networks[1].genesisHash: is required' },
    { text: `${minimal}  - {name: a, chain: Bitcoin}`, expected: ' networks[1].chain: ' },
    { text: `${minimal}solana: {domain: 'https://a.b'}`, expected: ' solana.domain: must be a host name' },
    {
      text: `${minimal}solana: {defaultVoteAccounts: {hoodi: '${systemProgram}'}}`,
      expected: 'c.yaml: solana.defaultVoteAccounts: "hoodi" is not a Solana network of this file',
    },
    { text: `${minimal}solana: {defaultVoteAccounts: {hoodi: abc}}`, expected: ' solana.defaultVoteAccounts.hoodi: must be base58' },
    {
      text: `${minimal}  - {name: hoodi, chain: Solana, rpcUrls: ['http://b'], genesisHash: '${systemProgram}'}`,
      expected: '"hoodi" is given twice',
    },
    { text: `${minimal}  - {name: hoodi, chain: Ethereum, rpcUrls: ['http://b']}`, expected: 'c.yaml: networks: "hoodi" is given twice' },
  ])('$expected', ({ text, expected }) => {
    expect(() => parseServiceConfig(text, 'c.yaml')).toThrow(expected)
  })
})

describe('flags win over the environment, and that over the file', () => {
  const path = file('c.yaml', `${minimal}listen: {host: file, port: 1}\ndatabase: {url: 'postgres://file'}\n`)
  const urlFile = file('url', 'postgres://from-file\n')
  test.each([
    { flags: {}, env: {}, expected: { host: 'file', port: 1, url: 'postgres://file' } },
    {
      flags: {},
      env: { STAKING_SERVICE_HOST: 'env', STAKING_SERVICE_PORT: '2', STAKING_SERVICE_DATABASE_URL: 'postgres://env' },
      expected: { host: 'env', port: 2, url: 'postgres://env' },
    },
    {
      flags: { host: 'flag', port: 0, databaseUrlFile: urlFile },
      env: { STAKING_SERVICE_HOST: 'env', STAKING_SERVICE_PORT: '2', STAKING_SERVICE_DATABASE_URL: 'postgres://env' },
      expected: { host: 'flag', port: 0, url: 'postgres://from-file' },
    },
  ])('$expected', async ({ flags, env, expected }) => {
    const { listen, database } = await loadServiceConfig(path, flags, env)
    expect({ ...listen, url: database.kind === 'postgres' ? database.url.reveal() : undefined }).toEqual(expected)
  })

  test('a URL that is none is not quoted', async () => {
    await expect(loadServiceConfig(path, { databaseUrlFile: file('bad', 'hunter2') })).rejects.toThrow(/must start with postgres:\/\/$/)
    await expect(loadServiceConfig(path, { databaseUrlFile: file('bad', 'hunter2') })).rejects.not.toThrow(/hunter2/)
  })
  test('a missing file is named', async () => {
    await expect(loadServiceConfig('/nowhere/c.yaml')).rejects.toThrow('/nowhere/c.yaml cannot be read (ENOENT)')
    await expect(loadServiceConfig(path, { databaseUrlFile: '/nowhere/url' })).rejects.toThrow('/nowhere/url cannot be read (ENOENT)')
  })
  test('the password of the database does not show', async () => {
    const { database } = await loadServiceConfig(path, { databaseUrl: 'postgres://u:hunter2@h/d' })
    expect(JSON.stringify(database)).not.toContain('hunter2')
  })
})
