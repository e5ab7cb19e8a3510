import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts'
import { freePort } from '../../cluster/ports.ts'
import { startProcess } from '../../cluster/process.ts'
import { type RunResult, runToEnd } from '../../cluster/run.ts'
import { COMPILE_CACHE } from '../../stack/compile-cache.ts'
import { mainEntry } from '../../stack/stack.ts'

/** Both programs started with something wrong: one line that says where and what to do, and exit code 1. What may come yet is waited for. */
const TIMEOUT_MS = 120_000
const dir = mkdtempSync(join(tmpdir(), 'startup-'))
const path = (name: string): string => join(dir, name)
function file(name: string, content: unknown): string {
  writeFileSync(path(name), typeof content === 'string' ? content : stringify(content))
  return path(name)
}
const env = { ...COMPILE_CACHE, KUBECONFIG: undefined, KUBERNETES_SERVICE_HOST: undefined, NODE_OPTIONS: undefined }
const run = (args: readonly string[], more: Readonly<Record<string, string>> = {}): Promise<RunResult> =>
  runToEnd({ command: process.execPath, args: [mainEntry, ...args], env: { ...env, ...more }, signal: AbortSignal.timeout(TIMEOUT_MS) })

const kubeconfig = (cluster: object, user: object = { token: 'hunter2' }) => ({
  clusters: [{ name: 'c', cluster }],
  users: [{ name: 'u', user }],
  contexts: [{ name: 'prod', context: { cluster: 'c', user: 'u' } }],
  'current-context': 'prod',
})
const hoodi = { name: 'hoodi', chain: 'Ethereum', rpcUrls: ['http://127.0.0.1:9'] }
const networks = { stakingApi: { url: 'http://127.0.0.1:9', apiKeyFile: path('api-key') }, networks: [hoodi] }
const service = { seedFile: path('seed'), networks: [hoodi], database: { dataDir: path('data') } }

/** Takes a port, and speaks no TLS on it. */
const taken = createServer((_request, response) => response.end())
let takenPort = 0
beforeAll(async () => {
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  takenPort = (taken.address() as AddressInfo).port
  mkdirSync(path('folder'))
  file('networks.yaml', networks)
  file('api-key', 'hunter2hunter2')
  file('seed', '00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff')
  file('service.yaml', service)
  file('kubeconfig', kubeconfig({ server: 'https://127.0.0.1:9' }))
})
afterAll(() => {
  taken.close()
  rmSync(dir, { recursive: true, force: true })
})

function expectOneLine({ code, stdout, stderr }: RunResult, says: RegExp): void {
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(says) })
  expect(stderr).toMatch(/^error: [^\n]+\n$/)
  expect(stdout + stderr).not.toContain('hunter2')
  expect(stdout + stderr).not.toMatch(/^\s+at /m)
}

interface Mistake {
  readonly what: string
  readonly args: () => readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly says: RegExp
}
const operator = (...more: readonly string[]) => [
  'operator',
  '--kubeconfig',
  path('kubeconfig'),
  '--networks',
  path('networks.yaml'),
  ...more,
]
const serve = (...more: readonly string[]) => ['service', '--config', path('service.yaml'), ...more]

describe.concurrent('a mistake of the configuration ends the program with one line', { timeout: TIMEOUT_MS }, () => {
  test.for<Mistake>([
    {
      what: 'no kubeconfig, outside of a cluster',
      args: () => ['operator'],
      says: /in no pod .* name a kubeconfig with --kubeconfig or KUBECONFIG/,
    },
    {
      what: 'a kubeconfig that is not there',
      args: () => operator('--kubeconfig', path('none')),
      says: /kubeconfig .*none cannot be read \(ENOENT\)/,
    },
    {
      what: 'a kubeconfig without that context',
      args: () =>
        operator('--kubeconfig', file('no-context', { ...kubeconfig({ server: 'https://127.0.0.1:9' }), 'current-context': 'dev' })),
      says: /kubeconfig .*no-context: its current-context "dev" is not in the file: set current-context to one of "prod"/,
    },
    {
      what: 'a CA that is not there',
      args: () =>
        operator('--kubeconfig', file('no-ca', kubeconfig({ server: 'https://127.0.0.1:9', 'certificate-authority': '/none/ca.pem' }))),
      says: /context "prod", server 127\.0\.0\.1:9: its certificate-authority \/none\/ca\.pem cannot be read \(ENOENT\)/,
    },
    {
      what: 'no networks file',
      args: () => operator('--networks', path('none')),
      says: /none cannot be read \(ENOENT\): mount the networks file there/,
    },
    { what: 'a folder in its place', args: () => operator('--networks', path('folder')), says: /folder cannot be read \(EISDIR\)/ },
    { what: 'networks that are no YAML', args: () => operator('--networks', file('n1', 'networks: [')), says: /n1 is not YAML/ },
    {
      what: 'two wrong fields of the networks',
      args: () => operator('--networks', file('n2', { networks: [], stakingApi: { url: 'hunter2', apiKeyFile: '/k' } })),
      says: /n2: stakingApi\.url: must be an http\(s\) URL; networks: /,
    },
    { what: 'an unknown flag', args: () => operator('--netwerks', 'a'), says: /unknown option '--netwerks' \(Did you mean --networks\?\)/ },
    { what: 'a port that is none', args: () => operator('--listen', '127.0.0.1:99999'), says: /--listen .*write host:port/ },
    {
      what: 'a port that is taken',
      args: () => operator('--listen', `127.0.0.1:${takenPort}`),
      says: /--listen 127\.0\.0\.1:\d+: nobody can listen there \(EADDRINUSE\)/,
    },
    {
      what: 'an unknown log level',
      args: () => operator('--log-level', 'loud'),
      says: /--log-level .*'loud' is invalid\. Allowed choices are trace, /,
    },
    {
      what: 'one in the environment',
      args: () => operator(),
      env: { STAKING_LOG_LEVEL: 'loud' },
      says: /'loud' from env 'STAKING_LOG_LEVEL' is invalid/,
    },
    {
      what: 'a duration without a unit',
      args: () => operator('--lease-duration', '15'),
      says: /--lease-duration .*write a duration such as/,
    },
    {
      what: 'a lease that ends before it is renewed',
      args: () => operator('--lease-duration', '5s'),
      says: /--lease-duration \(5000 ms\) must be longer than --renew-deadline \(10000 ms\)/,
    },
    { what: 'a lease of no name', args: () => operator('--lease-name', 'My Lease'), says: /--lease-name .*write a name of Kubernetes/ },
    { what: 'a file for the folder of keys', args: () => operator('--keys-dir', path('seed')), says: /--keys-dir .*seed is no folder/ },
    { what: 'an unknown command', args: () => ['operate'], says: /unknown command 'operate' \(Did you mean operator\?\)/ },
    { what: 'no configuration of the service', args: () => ['service', '--config', path('none')], says: /none cannot be read \(ENOENT\)/ },
    { what: 'a folder in place of that', args: () => ['service', '--config', path('folder')], says: /folder cannot be read \(EISDIR\)/ },
    {
      what: 'two wrong fields of the service',
      args: () => ['service', '--config', file('s1', { ...service, listen: { port: 99_999 }, limit: 1 })],
      says: /s1 is not a valid configuration of the service: listen\.port: .*; the file: Unrecognized key: "limit"/,
    },
    {
      what: 'no seed',
      args: () => ['service', '--config', file('s2', { ...service, seedFile: path('none') })],
      says: /seed file .*none cannot be read \(ENOENT\)/,
    },
    {
      what: 'a seed that is none',
      args: () => ['service', '--config', file('s3', { ...service, seedFile: file('bad-seed', 'hunter2') })],
      says: /bad-seed is neither 32 to 64 bytes in hex nor/,
    },
    {
      what: 'a database URL that is not there',
      args: () => serve('--database-url-file', path('none')),
      says: /the database's URL .*none cannot be read \(ENOENT\)/,
    },
    {
      what: 'a file in place of the folder of the database',
      args: () => ['service', '--config', file('s4', { ...service, database: { dataDir: path('seed') } })],
      says: /database: its folder .*can't be used \((EEXIST|ENOTDIR)\)/,
    },
    {
      what: 'a port of the service that is none',
      args: () => serve(),
      env: { STAKING_SERVICE_PORT: 'http' },
      says: /STAKING_SERVICE_PORT: "http" is not a port/,
    },
    {
      what: 'an unknown format of the log',
      args: () => serve('--log-format', 'xml'),
      says: /--log-format .*Allowed choices are json, text/,
    },
    {
      what: 'an account that is none',
      args: () => ['api-keys', 'create', '--config', path('service.yaml'), '--account', 'a b'],
      says: /an account is 1 to 63/,
    },
    {
      what: 'a network that the file lacks',
      args: () => ['history', 'build', '--networks', path('networks.yaml'), '--network', 'sepolia', '--out', path('out')],
      says: /sepolia/,
    },
    {
      what: 'a password file that is not there',
      args: () => ['keystores', 'export', '--config', path('service.yaml'), '--out', path('out'), '--password-file', path('none')],
      says: /none cannot be read \(ENOENT\)/,
    },
  ])('$what', async ({ args, env: more = {}, says }, { expect: _own }) => {
    expectOneLine(await run(args(), more), says)
  })
})

describe('an API server', { timeout: TIMEOUT_MS }, () => {
  let cluster: ControlPlane
  const stopping = new AbortController()
  beforeAll(async () => {
    cluster = await startControlPlane({ signal: stopping.signal })
  })
  afterAll(async () => {
    stopping.abort()
    await cluster.stop()
  })
  interface Admin {
    readonly clusters: readonly { readonly cluster: { readonly server: string } }[]
    readonly users: readonly { readonly user: object }[]
  }
  /** The administrator's access, with one thing wrong. */
  const admin = (name: string, change: object, user?: object): string => {
    const { clusters, users } = parse(cluster.adminKubeconfig) as Admin
    return file(name, kubeconfig({ ...clusters[0]?.cluster, ...change }, user ?? users[0]?.user))
  }
  const port = () => new URL(cluster.url).port
  const args = (config: string, listen: number) =>
    operator('--kubeconfig', config, '--lease-namespace', 'default', '--listen', `127.0.0.1:${listen}`)

  test.each<{ what: string; config: () => string; says: RegExp }>([
    {
      what: 'that refuses the token',
      config: () => admin('k1', {}, { token: 'hunter2' }),
      says: /the API server refuses the credentials \(401\): give this user a new token/,
    },
    {
      what: 'of another authority',
      config: () => admin('k2', { 'certificate-authority-data': Buffer.from(rootCertificates[0] ?? '').toString('base64') }),
      says: /the server's certificate is not from the authority that is named .*put the CA of this cluster into certificate-authority/,
    },
    {
      what: 'of another name',
      config: () => admin('k3', { 'tls-server-name': 'other.example' }),
      says: /the server's certificate is not for .*set tls-server-name/,
    },
    {
      what: 'asked by http',
      config: () => admin('k4', { server: `http://127.0.0.1:${port()}` }),
      says: /its URL is http, .*: write https/,
    },
    {
      what: 'whose port is that of something else',
      config: () => admin('k5', { server: `https://127.0.0.1:${takenPort}` }),
      says: /speaks no TLS/,
    },
  ])('$what ends the operator with file, context, server and what to do', async ({ config, says }) => {
    const name = config()
    const result = await run(args(name, 0))
    expectOneLine(result, says)
    expect(result.stderr).toMatch(new RegExp(`kubeconfig ${name}, context "prod", server 127\\.0\\.0\\.1:\\d+: `))
  })

  test('that is down is waited for: healthy, not ready, one line; and then worked with', async () => {
    await cluster.stopApiServer()
    const listen = await freePort()
    const url = `http://127.0.0.1:${listen}`
    writeFileSync(path('api-key'), '')
    const program = await startProcess({
      name: 'operator',
      command: process.execPath,
      args: [mainEntry, ...args(admin('k6', {}), listen)],
      env,
      readyTimeoutMs: 60_000,
      readyWhen: async ({ signal }) => (await fetch(`${url}/healthz`, { signal })).ok,
    })
    try {
      await program.waitForOutput(
        /"reason":"it does not answer \(ECONNREFUSED\)","msg":"the API server is not reached: waiting for it"/,
        60_000,
      )
      const ready = await fetch(`${url}/readyz`)
      expect({ status: ready.status, text: await ready.text() }).toEqual({
        status: 503,
        text: 'the API server is not reached: it does not answer (ECONNREFUSED)',
      })
      // A file that may still be put right is no reason to end.
      await program.waitForOutput(
        /"reason":"The API key file .*api-key does not hold an API key.*"msg":"the staking API can't be asked yet"/,
        60_000,
      )
      await cluster.startApiServer()
      await program.waitForOutput(/"msg":"the API server answers"/, 60_000)
      await program.waitForOutput(/"msg":"leading"/, 60_000)
      expect(program.output().match(/waiting for it/g)?.length).toBeLessThan(4)
      expect(program.output()).not.toMatch(/^\s+at /m)
    } finally {
      await program.stop()
    }
  })
})
