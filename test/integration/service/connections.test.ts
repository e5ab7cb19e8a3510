import { execFile } from 'node:child_process'
import { randomBytes, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates, connect as tlsConnect } from 'node:tls'
import { promisify } from 'node:util'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { createLogger } from '../../../src/lib/log.ts'
import { Secret } from '../../../src/lib/secret.ts'
import { apiKeysCreate } from '../../../src/service/commands.ts'
import type { Certificate } from '../../../src/service/http/certificate.ts'
import { runService } from '../../../src/service/run.ts'
import type { DatabaseConfig } from '../../../src/service/store/database.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import { createAuthority, type Issued } from '../../cluster/certificates.ts'
import { freePort } from '../../cluster/ports.ts'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
import { drains } from '../../soak/drains.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { startService, type TestService, withdrawalAddress } from './harness.ts'
import { serviceFiles } from './processes.ts'
import { countStalls } from './stalls.ts'

let postgres: Postgres
let anvil: Anvil
beforeAll(async () => {
  ;[postgres, anvil] = await Promise.all([startPostgres(), startAnvil()])
})
afterAll(async () => {
  await Promise.all([postgres?.stop(), anvil?.stop()])
})

const authority = createAuthority()
// As NODE_EXTRA_CA_CERTS does, for this process.
setDefaultCACertificates([...getCACertificates('default'), authority.cert])

const certificateOf = ({ cert: chain, key }: Issued): Certificate => {
  const { subjectAltName: names = '', validToDate: validTo, fingerprint256: fingerprint } = new X509Certificate(chain)
  return { chain, key: new Secret(key), names, validTo, fingerprint }
}

function open(url: string, onReady: (socket: Socket) => void): Socket {
  const { protocol, hostname: host, port } = new URL(url)
  const to = { host, port: Number(port) }
  const socket: Socket = protocol === 'https:' ? tlsConnect(to, () => onReady(socket)) : connect(to, () => onReady(socket))
  return socket
}

const stalls = countStalls()

/** A connection of its own: what was read until it ended, and how long that took. */
function raw(url: string, send: (socket: Socket) => void): Promise<{ text: string; ms: number; error: string | undefined }> {
  return new Promise((done) => {
    const begun = performance.now() - stalls()
    let [text, error] = ['', undefined as string | undefined]
    const socket = open(url, send)
    socket.setTimeout(60_000, () => socket.destroy(new Error('still open')))
    socket.on('data', (chunk) => {
      text += chunk.toString()
    })
    socket.on('error', (failure: NodeJS.ErrnoException) => {
      error = failure.code ?? failure.message
    })
    socket.on('close', () => done({ text, ms: performance.now() - stalls() - begun, error }))
  })
}

const inMemory = memoryDatabase

describe.each([
  { scheme: 'http', database: 'PGlite', openDatabase: inMemory },
  {
    scheme: 'http',
    database: 'PostgreSQL',
    openDatabase: async (): Promise<DatabaseConfig> => ({
      kind: 'postgres',
      url: new Secret(await postgres.createDatabase(`connections_${randomBytes(4).toString('hex')}`)),
      poolSize: 5,
    }),
  },
  { scheme: 'https', database: 'PGlite', openDatabase: inMemory },
])('a connection by $scheme to the service on $database', ({ scheme, openDatabase }) => {
  let service: TestService
  let key: string
  beforeAll(async () => {
    service = await startService(await openDatabase(), {
      httpLimits: { requestTimeoutMs: 1_000, maxConnections: 20, maxInFlight: 40 },
      certificate: scheme === 'https' ? certificateOf(authority.issue()) : undefined,
    })
    expect(service.url).toMatch(new RegExp(`^${scheme}://`))
    key = await service.key()
  })
  /** Requests that hold a place. Not by /metrics, which asks the database too, and on a busy machine takes longer than a place is held. */
  const inFlight = async () =>
    (await service.service.metrics.registry.getSingleMetric('staking_service_requests_in_flight')?.get())?.values[0]?.value
  const within = { timeout: 30_000, interval: 50 }
  afterAll(() => service?.close())
  const head = (more: string) =>
    `POST /v1/ethereum/stakes HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\nidempotency-key: k\r\n${more}`

  test.each([
    { what: 'half a body', send: () => head('content-length: 100\r\n\r\n{"network"') },
    { what: 'half of its headers', send: () => head('x-half') },
    { what: 'nothing after the first line', send: () => 'GET /healthz HTTP/1.1\r\n' },
  ])('that sends $what is answered 408 within the configured time', async ({ send }) => {
    const { text, ms } = await raw(service.url, (socket) => socket.write(send()))
    expect(text).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/)
    expect(text).toContain('content-type: application/problem+json')
    expect(text).toMatch(/"code":"request-timeout"/)
    expect(text).toMatch(/x-request-id: [0-9a-f-]{36}/)
    expect(ms).toBeLessThan(4_000)
  })

  test('that drips its body is answered 408, however often a byte comes', async () => {
    let timer: NodeJS.Timeout | undefined
    const { text, ms } = await raw(service.url, (socket) => {
      socket.write(head('content-length: 60000\r\n\r\n'))
      timer = setInterval(() => socket.write('{'), 100)
      socket.on('close', () => clearInterval(timer))
    })
    expect(text).toMatch(/^HTTP\/1\.1 408 /)
    expect(ms).toBeLessThan(4_000)
  })

  test('that does not read what it asked for keeps no place from others', async () => {
    // Answers that no system takes ahead of their reader: pages of 200 stakes.
    const { stakeId } = (await service.stake(key)).body
    await sql`
      insert into ethereum_stakes (id, account, network, amount_gwei, withdrawal_address, credentials_type, key_index, pubkey, deposit_data, unsigned_transaction, created_at)
        select md5(n::text), account, network, amount_gwei, withdrawal_address, credentials_type, n, '0x' || repeat(md5(n::text), 3),
          deposit_data, unsigned_transaction, created_at
        from ethereum_stakes, generate_series(1, 199) as n where id = ${stakeId}`.execute(service.store.db)
    const get = `GET /v1/ethereum/stakes?limit=200 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`
    const socket = open(service.url, () => socket.write(get.repeat(40))).on('error', () => undefined)
    try {
      socket.pause()
      await expect.poll(inFlight, within).toBeGreaterThan(0)
      await expect.poll(inFlight, within).toBe(0)
      expect((await service.stake(key)).status).toBe(201)
    } finally {
      socket.destroy()
    }
  })

  test('that is cut gives back the places of all requests that it had sent at once', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    service.chain.hold = promise
    const text = JSON.stringify({ network: 'devnet', amountEth: 32, withdrawalAddress })
    const ask = (count: number) => `${head(`content-length: ${text.length}\r\n\r\n`).replace('key: k', `key: cut-${count}`)}${text}`
    const socket = open(service.url, () => socket.write(Array.from({ length: 8 }, (_, count) => ask(count)).join('')))
    socket.on('error', () => undefined)
    try {
      await expect.poll(inFlight, within).toBe(8)
      socket.destroy()
      await expect.poll(inFlight, within).toBe(0)
    } finally {
      socket.destroy()
      service.chain.hold = Promise.resolve()
      resolve()
    }
    expect((await service.stake(key)).status).toBe(201)
  })

  test('with headers of 20 kB is answered 431', async () => {
    const { text } = await raw(service.url, (socket) => socket.write(head(`x-large: ${'x'.repeat(20_000)}\r\n\r\n`)))
    expect(text).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/)
    expect(text).toMatch(/"code":"headers-too-large"/)
  })

  test('to the port of its own for health and metrics is bounded in time, too', async () => {
    const apart = await startService(service.store, { operationsApart: true, httpLimits: { requestTimeoutMs: 1_000 } })
    try {
      const url = (await apart.service.operations?.listen({ host: '127.0.0.1', port: 0 })) ?? expect.fail('there is no such port')
      const { text, ms } = await raw(url, (socket) => socket.write('GET /healthz HTTP/1.1\r\nx-half'))
      expect(text).toMatch(/^HTTP\/1\.1 408 /)
      expect(ms).toBeLessThan(4_000)
    } finally {
      await apart.service.operations?.close()
      await apart.close()
    }
  })

  test('that speaks no HTTP is answered 400', async () => {
    const { text } = await raw(service.url, (socket) => socket.write('hello\r\n\r\n'))
    expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(text).toMatch(/"code":"invalid-request"/)
  })

  test.each([
    { what: 'names no host', head: ['GET /v1/networks HTTP/1.1'], says: 'a request of HTTP/1.1 has the header Host' },
    {
      what: 'has a body under a coding that is not undone',
      head: ['POST /v1/ethereum/stakes HTTP/1.1', 'host: x', 'content-type: application/json', 'transfer-encoding: gzip, chunked'],
      body: '2\r\n{}\r\n0\r\n\r\n',
      says: 'of transfer codings, chunked alone is taken',
    },
    {
      what: 'expects what nobody knows',
      head: ['GET /v1/networks HTTP/1.1', 'host: x', 'expect: 200-ok'],
      says: 'of expectations, 100-continue alone is met',
    },
    { what: 'takes it for a proxy', head: ['CONNECT example:443 HTTP/1.1', 'host: x'], says: 'this is no proxy' },
  ])('whose request $what is answered with a problem, as all are, and closed', async ({ head, body = '', says }) => {
    const key = await service.key()
    const fields = [...head, `authorization: Bearer ${key}`, 'idempotency-key: odd']
    const { text, ms } = await raw(service.url, (socket) => socket.write(`${fields.join('\r\n')}\r\n\r\n${body}`))
    expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(text).toMatch(/content-type: application\/problem\+json/i)
    expect(text).toMatch(/x-request-id: /i)
    expect(text).toContain(`"detail":"${says}"`)
    expect(ms).toBeLessThan(5_000)
  })

  test('is one of a bounded number, and is served again when others have gone', async () => {
    const { hostname, port } = new URL(service.url)
    const idle = Array.from({ length: 20 }, () => connect(Number(port), hostname).on('error', () => undefined))
    const ask = async () =>
      (await raw(service.url, (socket) => socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'))).text
    // They are taken one after another; one that is closed makes room a moment later.
    await expect.poll(ask, within).toBe('')
    for (const socket of idle) socket.destroy()
    await expect.poll(ask, within).toMatch(/^HTTP\/1\.1 200 OK/)
  })
})

describe('the service with a certificate', () => {
  const at = mkdtempSync(join(tmpdir(), 'tls-'))
  const [certFile, keyFile] = [join(at, 'tls.crt'), join(at, 'tls.key')]
  const put = ({ cert, key }: Issued) => {
    for (const [file, text] of [[certFile, cert] as const, [keyFile, key] as const]) {
      writeFileSync(`${file}.next`, text)
      renameSync(`${file}.next`, file)
    }
  }
  const first = authority.issue({ names: ['staking-operator-service.staking-system'] })
  const lines: string[] = []
  const ending = new AbortController()
  let files: ReturnType<typeof serviceFiles>
  let url: string
  let running: Promise<void>
  beforeAll(async () => {
    put(first)
    files = serviceFiles(anvil, {
      tls: { certFile, keyFile },
      database: { url: await postgres.createDatabase(`tls_${randomBytes(4).toString('hex')}`) },
      operations: { host: '127.0.0.1', port: await freePort() },
      limits: { requestTimeoutMs: 1_000 },
    })
    writeFileSync(join(at, 'ca.crt'), authority.cert)
    url = await new Promise((onListening, failed) => {
      const log = createLogger({ program: 'service', level: 'info', destination: { write: (line) => lines.push(line) } })
      running = runService({ config: files.config, version: '0', log, onListening, certificateLookMs: 50 }, ending.signal)
      running.catch(failed)
    })
  })
  afterAll(async () => {
    ending.abort()
    await running
    files.remove()
    rmSync(at, { recursive: true })
  })
  const saying = (text: string) => lines.filter((line) => line.includes(text)).length
  /** Fingerprint of what it shows to a new connection. */
  const shown = async () => {
    const socket = tlsConnect({ host: '127.0.0.1', port: Number(new URL(url).port) })
    await once(socket, 'secureConnect')
    const fingerprint = socket.getPeerX509Certificate()?.fingerprint256
    socket.destroy()
    return fingerprint
  }
  const fingerprintOf = ({ cert }: Issued) => new X509Certificate(cert).fingerprint256
  const within = { timeout: 30_000, interval: 50 }

  /** The operator's client in a process of its own, as the chart starts it. */
  async function networksByClient(key: string, env: Readonly<Record<string, string>>): Promise<string> {
    const source = (file: string) => JSON.stringify(new URL(`../../../src/${file}`, import.meta.url).href)
    const script = `
      const { createStakingClient } = await import(${source('contract/client.ts')})
      const { systemClock } = await import(${source('lib/clock.ts')})
      const { Secret } = await import(${source('lib/secret.ts')})
      const client = createStakingClient({ baseUrl: process.env.API, apiKey: () => new Secret(process.env.KEY), clock: systemClock })
      const said = await client.listNetworks({}, AbortSignal.timeout(60_000)).then(({ body }) => body.networks[0].network, (error) => error.message)
      console.log(said)
      await client.close()`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
      env: { PATH: process.env.PATH, NODE_NO_WARNINGS: '1', API: url, KEY: key, ...env },
    })
    return stdout.trim()
  }

  test("serves the operator's client that knows its authority, and no other", async () => {
    expect(url).toMatch(/^https:/)
    const { key } = await apiKeysCreate({ config: files.config, account: 'acme' })
    const [knowing, other] = await Promise.all([
      networksByClient(key.reveal(), { NODE_EXTRA_CA_CERTS: join(at, 'ca.crt') }),
      networksByClient(key.reveal(), {}),
    ])
    expect(knowing).toBe('devnet')
    // The second where the server sends the authority along, as it does when its process trusts that, too.
    expect(other).toMatch(/UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN/)
  })

  test('speaks neither http nor an old TLS on its port, keeps no connection without a handshake, and health stays http', async () => {
    const { text } = await raw(url.replace('https', 'http'), (socket) => socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n'))
    expect(text).toBe('')
    const silent = await raw(url.replace('https', 'http'), () => undefined)
    expect(silent).toMatchObject({ text: '' })
    expect(silent.ms).toBeLessThan(4_000)
    const old = tlsConnect({
      ...{ host: '127.0.0.1', port: Number(new URL(url).port) },
      ...{ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
    })
    // The server's own refusal.
    await expect(once(old, 'secureConnect')).rejects.toThrow(/alert protocol version/)
    const { port } = parse(readFileSync(files.config, 'utf8')).operations
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200)
  })

  test('shows a renewed certificate without a restart, and keeps it when the next pair is broken', async () => {
    expect(await shown()).toBe(fingerprintOf(first))
    const second = authority.issue()
    put(second)
    await expect.poll(shown, within).toBe(fingerprintOf(second))
    await expect.poll(() => saying('the staking API shows a renewed certificate'), within).toBe(1)
    put({ cert: authority.issue().cert, key: second.key })
    const refusal = 'the renewed certificate of the staking API cannot be used'
    await expect.poll(() => saying(refusal), within).toBe(1)
    // One more look, with the time that a second file is waited for.
    await new Promise((done) => setTimeout(done, 1_300))
    expect(saying(refusal)).toBe(1)
    expect(await shown()).toBe(fingerprintOf(second))
    const third = authority.issue()
    put(third)
    await expect.poll(shown, within).toBe(fingerprintOf(third))
    expect(lines.join('')).not.toContain('PRIVATE KEY')
  })
})

describe.each([
  { database: 'the embedded database', times: 1, configure: async () => undefined },
  { database: 'PostgreSQL', times: 3, configure: async () => postgres.createDatabase(`drain_${randomBytes(4).toString('hex')}`) },
])('a service on $database that is asked to stop under load', ({ times, configure }) => {
  test('says that it is not ready, drains, tells who still comes to go elsewhere, and resets nothing', { timeout: 400_000 }, async () => {
    // `npm run test:soak` does it ten times on each.
    for (const outcome of await drains({ anvil, databaseUrl: await configure(), times })) {
      expect(outcome.code).toBe(0)
      expect(outcome.servedWhileEnding).toBeGreaterThan(0)
      expect(outcome.saidUnready).toBe(true)
      expect(outcome.toldToGoElsewhere).toBeGreaterThan(0)
      expect(outcome.unexpected).toEqual([])
    }
  })
})

test.each([
  {
    what: 'an address that is taken',
    change: (port: number) => ({ listen: { host: '127.0.0.1', port } }),
    expected: /listen: .*EADDRINUSE/,
  },
  {
    what: 'a certificate that is not there',
    change: () => ({ tls: { certFile: '/nowhere/tls.crt', keyFile: '/nowhere/tls.key' } }),
    expected: /^tls\.certFile: \/nowhere\/tls\.crt cannot be read \(ENOENT\)$/,
  },
  {
    what: 'a database that refuses the password',
    change: () => ({ database: { url: postgres.url.replace(/:[^:@/]+@/, ':wrong@') } }),
    expected: /database: the server refuses .*28P01/,
  },
  {
    what: 'a database that is not there',
    change: () => ({ database: { url: postgres.url.replace(/postgres$/, 'nowhere') } }),
    expected: /database: the server refuses .*3D000/,
  },
])('$what is said in one line, as a mistake of the configuration', async ({ change, expected }) => {
  const files = serviceFiles(anvil, change(Number(new URL(anvil.url).port)))
  try {
    await expect(runService({ config: files.config, version: '0' }, AbortSignal.timeout(60_000))).rejects.toThrow(
      expect.objectContaining({ name: 'ConfigError', message: expect.stringMatching(expected) }),
    )
  } finally {
    files.remove()
  }
})
