import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { decrypt } from '@chainsafe/bls-keystore'
import { SecretKey } from '@chainsafe/blst'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import { parseEth } from '../../../src/lib/amounts.ts'
import { createLogger } from '../../../src/lib/log.ts'
import type { Secret } from '../../../src/lib/secret.ts'
import { apiKeysCreate, apiKeysList, apiKeysRename, apiKeysRevoke, apiKeysRotate, auditLogExport } from '../../../src/service/commands.ts'
import { keyIndexOf } from '../../../src/service/key-index.ts'
import { exportKeystores } from '../../../src/service/keystores.ts'
import { type KeySource, recoverKeystore } from '../../../src/service/recover.ts'
import { runService } from '../../../src/service/run.ts'
import { createValidatorKeys, parseSeed } from '../../../src/service/seed.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import { pageCommands } from '../../cluster/page-commands.ts'
import { freePort } from '../../cluster/ports.ts'
import { folderDatabase } from '../../stack/memory-database.ts'
import { callService, withdrawalAddress } from './harness.ts'
import { type ServiceFiles, serviceFiles, spawnService } from './processes.ts'

type LostRequest = Exclude<KeySource, { path: string }>

let anvil: Anvil
let files: ServiceFiles
beforeAll(async () => {
  anvil = await startAnvil()
  files = serviceFiles(anvil)
})
afterAll(async () => {
  files?.remove()
  await anvil?.stop()
})

test('a key made before the service runs and one made while it runs are both good, until they are revoked', async () => {
  const options = { config: files.config }
  const before = await apiKeysCreate({ ...options, account: 'acme', label: 'before' })
  const { process: service, url } = await spawnService(files.config)
  try {
    const during = await apiKeysCreate({ ...options, account: 'acme', label: 'during', scopes: ['read'] })
    for (const { key } of [before, during]) expect((await callService(url, 'GET', '/v1/networks', { key: key.reveal() })).status).toBe(200)
    expect(await apiKeysList(options)).toMatchObject([
      { keyId: before.info.keyId, label: 'before', scopes: ['read', 'write'] },
      { keyId: during.info.keyId, label: 'during', scopes: ['read'] },
    ])
    expect(JSON.stringify(await apiKeysList(options))).not.toContain('sop_')
    expect(await apiKeysRevoke({ ...options, keyId: during.info.keyId })).toBe(true)
    expect((await callService(url, 'GET', '/v1/networks', { key: during.key.reveal() })).status).toBe(401)
    expect(await apiKeysRevoke({ ...options, keyId: 'key_none' })).toBe(false)
    expect(statSync(join(files.folder, 'data')).mode & 0o777).toBe(0o700)
  } finally {
    expect((await service.stop()).code).toBe(0)
  }
})

test('beside a running service a key is renamed and rotated, and the audit log is exported', async () => {
  const options = { config: files.config }
  const { process: service, url } = await spawnService(files.config)
  try {
    const given = { networks: ['devnet'], operations: ['createEthereumStake', 'listEthereumStakes'], addressRanges: ['127.0.0.0/8'] }
    const old = await apiKeysCreate({ ...options, account: 'rotated', ...given })
    expect(await apiKeysRename({ ...options, keyId: old.info.keyId, label: 'new name' })).toBe(true)
    await expect(apiKeysRotate({ ...options, keyId: old.info.keyId, overlapMs: -1 })).rejects.toThrow(/from 0 to 366 days/)
    expect(await apiKeysRotate({ ...options, keyId: 'key_none', overlapMs: 0 })).toBeUndefined()
    const made = await apiKeysRotate({ ...options, keyId: old.info.keyId, overlapMs: 0 })
    expect(made?.info).toMatchObject({ account: 'rotated', label: 'new name', ...given })
    const list = (key: Secret | undefined) => callService(url, 'GET', '/v1/ethereum/stakes', { key: key?.reveal() })
    expect((await list(old.key)).status).toBe(401)
    expect((await list(made?.key)).status).toBe(200)
    const entries: object[] = []
    await auditLogExport({ ...options, account: 'rotated', onEntry: (entry) => entries.push(entry) })
    expect(entries).toMatchObject([
      { account: 'rotated', operation: 'api-keys create', resourceId: old.info.keyId },
      { account: 'rotated', operation: 'api-keys rename' },
      { account: 'rotated', operation: 'api-keys rotate', resourceId: old.info.keyId },
      { account: 'rotated', operation: 'api-keys create', resourceId: made?.info.keyId },
    ])
    entries.length = 0
    await auditLogExport({ ...options, since: new Date('2100-01-01'), onEntry: (entry) => entries.push(entry) })
    expect(entries).toEqual([])
  } finally {
    await service.stop()
  }
})

test('health and metrics have a port of their own, if they are given one, with what the process and its queue do', async () => {
  const port = await freePort()
  const apart = serviceFiles(anvil, { operations: { host: '127.0.0.1', port } })
  await folderDatabase(apart.dataDir)
  const ending = new AbortController()
  const listening = Promise.withResolvers<string>()
  const log = createLogger({ program: 'service', level: 'warn', destination: { write: () => undefined } })
  const running = runService({ config: apart.config, version: '0', log, onListening: listening.resolve }, ending.signal)
  try {
    const url = await Promise.race([listening.promise, running.then(() => 'it ended')])
    const operations = `http://127.0.0.1:${port}`
    expect((await fetch(`${operations}/readyz`)).status).toBe(200)
    const metrics = await (await fetch(`${operations}/metrics`)).text()
    for (const name of ['process_resident_memory_bytes', 'nodejs_eventloop_lag_seconds', 'staking_service_requests_in_flight']) {
      expect(metrics).toMatch(new RegExp(`^${name} `, 'm'))
    }
    for (const path of ['/healthz', '/readyz', '/metrics']) expect((await fetch(url + path)).status).toBe(404)
    expect((await fetch(`${url}/openapi.json`)).status).toBe(200)
  } finally {
    ending.abort()
    await running
    apart.remove()
  }
  await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow()
})

test('two services never share one embedded database', async () => {
  const { process: service } = await spawnService(files.config)
  try {
    await expect(runService({ config: files.config, version: '0' }, AbortSignal.timeout(60_000))).rejects.toThrow(
      /in use by another process/,
    )
  } finally {
    await service.stop()
  }
})

test.each([
  { given: { account: '' }, expected: /an account is/ },
  { given: { account: 'a b' }, expected: /an account is/ },
  { given: { account: 'a', scopes: [] }, expected: /at least one scope/ },
  { given: { account: 'a', expiresAt: new Date(0) }, expected: /a time to come/ },
  { given: { account: 'a', networks: ['devnet', 'nowhere'] }, expected: /"nowhere" is no network of the configuration \(devnet\)/ },
  { given: { account: 'a', networks: [] }, expected: /at least one network/ },
  { given: { account: 'a', operations: ['createStake'] }, expected: /"createStake" is no operation/ },
  { given: { account: 'a', addressRanges: ['10.0.0.0/33'] }, expected: /"10.0.0.0\/33" is no IP address/ },
])('a key like $given is refused', async ({ given, expected }) => {
  await expect(apiKeysCreate({ config: files.config, ...given })).rejects.toThrow(expected)
})

test('a request that has begun is served to its end when the service is asked to stop', async () => {
  const files = serviceFiles(anvil, { drainMs: 1_000 })
  await folderDatabase(files.dataDir)
  const key = (await apiKeysCreate({ config: files.config, account: 'graceful' })).key.reveal()
  const { process: service, url } = await spawnService(files.config)
  const answers = Array.from({ length: 10 }, (_, count) =>
    callService(url, 'POST', '/v1/ethereum/stakes', {
      key,
      idempotencyKey: `graceful/${count}`,
      body: { network: 'devnet', amountEth: 32, withdrawalAddress },
    }),
  )
  let answered = 0
  for (const answer of answers) void answer.then(() => answered++)
  /** Requests that are served now, by the service's own word: who comes after the drain is told to go elsewhere. */
  const served = async () => {
    const before = answered
    const metrics = await (await fetch(`${url}/metrics`)).text()
    return before + Number(/^staking_service_requests_in_flight (\d+)$/m.exec(metrics)?.[1] ?? 0)
  }
  for (let look = 0; look < 600 && answered < answers.length && (await served()) < answers.length; look++) await setTimeout(5)
  const stopped = service.stop()
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 201))
  expect((await stopped).code).toBe(0)
  files.remove()
})

describe('keystores', () => {
  const password = 'correct horse battery'
  const stakes: { stakeId: string; pubkey: string }[] = []
  let passwordFile: string
  const base = () => ({ config: files.config, passwordFile, kdf: 'pbkdf2' as const })
  beforeAll(async () => {
    passwordFile = join(files.folder, 'password')
    writeFileSync(passwordFile, `${password}\n`)
    const key = (await apiKeysCreate({ config: files.config, account: 'keystores' })).key.reveal()
    const { process: service, url } = await spawnService(files.config)
    for (let count = 0; count < 2; count++) {
      const { body } = await callService(url, 'POST', '/v1/ethereum/stakes', {
        key,
        idempotencyKey: `keystores/${count}`,
        body: { network: 'devnet', amountEth: 32, withdrawalAddress },
      })
      stakes.push({ stakeId: body.stakeId, pubkey: body.depositData.pubkey })
    }
    await service.stop()
  })

  test.each(['pbkdf2', 'scrypt'] as const)('with %s hold the very keys of the stakes, for their owner only', async (kdf) => {
    const outDir = join(files.folder, `out-${kdf}`)
    const pubkeys = stakes.map(({ pubkey }) => pubkey)
    const exported = await exportKeystores({ ...base(), outDir, pubkeys, kdf, again: kdf === 'scrypt' })
    expect(exported.map(({ pubkey }) => pubkey).sort()).toEqual([...pubkeys].sort())
    expect(statSync(outDir).mode & 0o777).toBe(0o700)
    for (const { file, pubkey, path } of exported) {
      expect(file).toMatch(/^keystore-m_12381_3600_\d+_0_0-\d+\.json$/)
      expect(statSync(join(outDir, file)).mode & 0o777).toBe(0o600)
      const keystore = JSON.parse(readFileSync(join(outDir, file), 'utf8'))
      expect(keystore).toMatchObject({ version: 4, path, pubkey: pubkey.slice(2), crypto: { kdf: { function: kdf } } })
      const secret = SecretKey.fromBytes(await decrypt(keystore, password))
      expect(`0x${Buffer.from(secret.toPublicKey().toBytes()).toString('hex')}`).toBe(pubkey)
    }
    const summary = readdirSync(outDir).find((file) => file.startsWith('summary-'))
    expect(JSON.parse(readFileSync(join(outDir, summary ?? ''), 'utf8')).keystores).toEqual(exported)
    await expect(exportKeystores({ ...base(), outDir, pubkeys, kdf })).rejects.toThrow(/is there already/)
    // Elsewhere, it says when and where to they were exported before, and asks for a word.
    const elsewhere = join(files.folder, `again-${kdf}`)
    const refused = exportKeystores({ ...base(), outDir: elsewhere, pubkeys, kdf })
    await expect(refused).rejects.toThrow(new RegExp(`exported before: at 20\\d\\d-.*:${outDir}.*two places is slashed.*--again`))
    expect(readdirSync(elsewhere)).toEqual([])
    expect(await exportKeystores({ ...base(), outDir: elsewhere, pubkeys, kdf, again: true })).toHaveLength(exported.length)
  })

  test('of a stake that the database lost are recovered by the request that made it, or by the path in the log', async () => {
    const [stake] = stakes
    if (stake === undefined) throw new Error('no stake')
    const request = {
      account: 'keystores',
      idempotencyKey: 'keystores/0',
      network: 'devnet',
      amountGwei: parseEth('32'),
      withdrawalAddress,
      credentialsType: '0x02',
    } as const
    // Without the database: its folder is not there, and is not made.
    const dataDir = join(files.folder, 'nowhere')
    const env = { STAKING_SERVICE_DATA_DIR: dataDir }
    const without = { env, withoutDatabase: true }
    const recover = (
      outDir: string,
      from: Parameters<typeof recoverKeystore>[0]['from'],
      more: Partial<Parameters<typeof recoverKeystore>[0]> = without,
    ) => recoverKeystore({ ...base(), pubkey: stake.pubkey, ...more, outDir: join(files.folder, outDir), from })
    await expect(recover('recovered', request, { env })).rejects.toThrow(/there is no database in .*--without-database/)
    expect(existsSync(dataDir)).toBe(false)
    const { path, file } = await recover('recovered', request)
    const keystore = JSON.parse(readFileSync(join(files.folder, 'recovered', file), 'utf8'))
    const secret = SecretKey.fromBytes(await decrypt(keystore, password))
    expect(`0x${Buffer.from(secret.toPublicKey().toBytes()).toString('hex')}`).toBe(stake.pubkey)
    expect((await recover('recovered-by-path', { path })).path).toBe(path)
    await expect(recover('recovered', request)).rejects.toThrow(/is there already/)
    await expect(recover('other', { ...request, idempotencyKey: 'keystores/1' })).rejects.toThrow(/no key of this request/)
    await expect(recover('other', { path: 'm/12381/3600/0/0/0' })).rejects.toThrow(/is not the one of/)
    await expect(recover('other', { path: 'm/44' })).rejects.toThrow(/not the path/)

    // By the page's own commands, where the database doesn't know it: one by the path, and one by the request.
    for (const nth of [1, 2]) {
      const forgotten = { ...request, idempotencyKey: `keystores/page-${nth}` }
      const page = await pageCommands(
        undefined,
        {
          page: 'docs/how-to/restore.md',
          placeholders: {
            ...{ PUBKEY: pubkeyOf(forgotten), 'KEY-PATH': pathOf(forgotten), 'IDEMPOTENCY-KEY': forgotten.idempotencyKey },
            ...{ platform: forgotten.account, hoodi: forgotten.network, 'WITHDRAWAL-ADDRESS': withdrawalAddress },
          },
        },
        AbortSignal.timeout(60_000),
      )
      try {
        page.file('service.yaml', readFileSync(files.config, 'utf8'))
        page.file('password', `${password}\n`)
        expect(await page.run("The service's database", nth)).toContain(`(${pathOf(forgotten)}) to ./keystores`)
        expect(readdirSync(join(page.dir, 'keystores'))).toHaveLength(1)
      } finally {
        page.stop()
      }
    }

    // With a database, one place after the other: it knows the stakes and their keys, or it was restored and knows neither.
    await expect(recover('other', request, {})).rejects.toThrow(/exported before/)
    expect(readdirSync(join(files.folder, 'other'))).toEqual([])
    const lost = { ...request, idempotencyKey: 'keystores/lost' }
    const pubkey = pubkeyOf(lost)
    await recover('first', lost, { pubkey })
    await expect(recover('second', lost, { pubkey })).rejects.toThrow(/exported before: .*first\. .*--again/)
    expect((await recover('second', lost, { pubkey, again: true })).file).toMatch(/^keystore-/)
    // Now it is there.
    await expect(recover('first', lost, { pubkey })).rejects.toThrow(/is there already/)
    await expect(recover('third', lost, { pubkey })).rejects.toThrow(/exported before: .*second\./)
  })
  /** Of a request whose stake the database doesn't know. */
  function indexOf({ network, account, idempotencyKey, amountGwei, credentialsType, withdrawalAddress: address }: LostRequest): bigint {
    const order = { account, idempotencyKey, network, amountGwei, withdrawalCredentials: withdrawalCredentials(credentialsType, address) }
    return keyIndexOf(keysOfSeed(), order, 0)
  }
  const keysOfSeed = () => createValidatorKeys(parseSeed(files.seedHex, 'the seed'))
  const pubkeyOf = (request: LostRequest): string => keysOfSeed().derive(indexOf(request)).publicKey
  const pathOf = (request: LostRequest): string => `m/12381/3600/${indexOf(request)}/0/0`

  test('are chosen by network and status', async () => {
    expect(await exportKeystores({ ...base(), outDir: join(files.folder, 'none'), network: 'elsewhere' })).toEqual([])
    expect(await exportKeystores({ ...base(), outDir: join(files.folder, 'none2'), status: 'confirmed' })).toEqual([])
  })

  test.each([
    { what: 'a short password', change: () => ({ passwordFile: write('short', 'short') }), expected: /at least 8 characters/ },
    { what: 'no password file', change: () => ({ passwordFile: '/nowhere' }), expected: /cannot be read/ },
    { what: 'an unknown public key', change: () => ({ pubkeys: [`0x${'ab'.repeat(48)}`] }), expected: /no stake has the public key/ },
  ])('are not written with $what', async ({ change, expected }) => {
    const outDir = join(files.folder, 'refused')
    mkdirSync(outDir, { recursive: true })
    await expect(exportKeystores({ ...base(), outDir, ...change() })).rejects.toThrow(expected)
    expect(readdirSync(outDir)).toEqual([])
  })
  const write = (name: string, text: string) => {
    writeFileSync(join(files.folder, name), text)
    return join(files.folder, name)
  }
})
