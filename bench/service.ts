import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { apiKeysCreate } from '../src/service/commands.ts'
import { startAnvil } from '../test/chains/anvil.ts'
import { freePort } from '../test/cluster/ports.ts'
import { startPostgres } from '../test/cluster/postgres.ts'
import { startProcess } from '../test/cluster/process.ts'
import { callService, networkConfig, withdrawalAddress } from '../test/integration/service/harness.ts'
import { serviceFiles, spawnService } from '../test/integration/service/processes.ts'

export interface ServiceSize {
  readonly seconds: number
}

export interface ServiceResult {
  readonly database: 'PostgreSQL' | 'embedded'
  readonly getsPerSecond: number
  readonly bareGetsPerSecond: number
  readonly postsPerSecond: number
  readonly barePostsPerSecond: number
  /** Of reads while creations saturate the service, in ms. */
  readonly getP99Ms: number
  /** Answers that were not what was asked for. */
  readonly failed: number
}

/** What is asked, again and again. */
interface Shots {
  readonly url: string
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}
interface Load {
  readonly connections: number
  readonly seconds: number
}
/** Of what autocannon reports. */
interface Result {
  readonly requests: { readonly average: number }
  /** In ms. */
  readonly latency: { readonly p99: number }
  readonly errors: number
  readonly timeouts: number
  readonly non2xx: number
}

const program = join(import.meta.dirname, '../node_modules/autocannon/autocannon.js')
const connections = 16
const stakes = '/v1/ethereum/stakes'
const body = JSON.stringify({ network: 'devnet', amountEth: 32, withdrawalAddress })

/** The service as a process, and beside it, in turns on the same machine and a database of the same kind, Fastify with nothing around. */
export async function benchService(
  database: ServiceResult['database'],
  { seconds }: ServiceSize,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<ServiceResult> {
  say(`service on ${database}: starting`)
  const [anvil, postgres] = await Promise.all([startAnvil(), database === 'PostgreSQL' ? startPostgres() : undefined])
  const unlimited = { max: 1_000_000_000, windowMs: 60_000, maxUnauthenticated: 1_000_000_000 }
  // Polled as by default: the tests' networks are polled many times a second.
  const networks = [networkConfig('devnet', { rpcUrls: [anvil.url], pollIntervalMs: 12_000 })]
  const settings = { networks, rateLimit: unlimited, logLevel: 'error', trackerIntervalMs: 4_000 }
  const folders = [0, 1].map(() => serviceFiles(anvil, settings))
  const [files, bareFiles] = folders
  if (files === undefined || bareFiles === undefined) throw new Error('no configuration')
  const ending: (() => Promise<unknown>)[] = []
  try {
    const urlFile = async (folder: string, name: string) => {
      if (postgres === undefined) return undefined
      const path = join(folder, 'url')
      writeFileSync(path, await postgres.createDatabase(name))
      return path
    }
    setDatabase(await urlFile(files.folder, 'service'))
    const key = (await apiKeysCreate({ config: files.config, account: 'bench' })).key.reveal()
    const { process: service, url } = await spawnService(files.config)
    ending.push(() => service.stop())
    const made = await callService(url, 'POST', stakes, { key, idempotencyKey: randomUUID(), text: body })
    const bareUrl = `http://127.0.0.1:${await freePort()}`
    setDatabase(await urlFile(bareFiles.folder, 'bare'))
    const bare = await startProcess({
      name: 'bare Fastify',
      command: process.execPath,
      args: [join(import.meta.dirname, 'fakes/bare-service.ts'), bareFiles.config, new URL(bareUrl).port, made.text],
      env: { NODE_NO_WARNINGS: '1' },
      readyTimeoutMs: 180_000,
      readyWhen: async () => (await fetch(`${bareUrl}/stake`)).ok,
    })
    ending.push(() => bare.stop())

    const headers = { authorization: `Bearer ${key}` }
    const load: Load = { connections, seconds }
    const get = { url: `${url}${stakes}/${made.body.stakeId}`, headers, ...load }
    const post = { ...postOf(`${url}${stakes}`, headers), ...load }
    const bareGet = { url: `${bareUrl}/stake`, ...load }
    const barePost = { ...postOf(`${bareUrl}/stake`, {}), ...load }
    // The compiler is at work for some ten seconds of reads.
    for (const shots of [get, post, bareGet, barePost]) await fire(shots, signal)
    say(`service on ${database}: reading`)
    // Each before and after the other, so that what else the machine does falls on both.
    const gets = [await fire(get, signal), await fire(bareGet, signal), await fire(bareGet, signal), await fire(get, signal)]
    say(`service on ${database}: creating`)
    const posts = [await fire(post, signal), await fire(barePost, signal), await fire(barePost, signal), await fire(post, signal)]
    say(`service on ${database}: reading while it creates`)
    const saturating = fire(post, signal)
    await delay(200)
    const reading = await fire({ ...get, connections: 4, seconds: Math.max(1, seconds - 1) }, signal)
    const all = [...gets, ...posts, reading, await saturating]
    const mean = (results: readonly Result[], ...which: number[]) =>
      which.reduce((sum, index) => sum + (results[index]?.requests.average ?? 0), 0) / which.length
    return {
      database,
      getsPerSecond: mean(gets, 0, 3),
      bareGetsPerSecond: mean(gets, 1, 2),
      postsPerSecond: mean(posts, 0, 3),
      barePostsPerSecond: mean(posts, 1, 2),
      getP99Ms: reading.latency.p99,
      failed: all.reduce((sum, { errors, non2xx, timeouts }) => sum + errors + non2xx + timeouts, 0),
    }
  } finally {
    setDatabase(undefined)
    for (const end of ending.reverse()) await end()
    for (const one of folders) one.remove()
    await Promise.all([anvil.stop(), postgres?.stop()])
  }
}

function setDatabase(urlFile: string | undefined): void {
  if (urlFile === undefined) delete process.env.STAKING_SERVICE_DATABASE_URL_FILE
  else process.env.STAKING_SERVICE_DATABASE_URL_FILE = urlFile
}

const postOf = (url: string, headers: Record<string, string>): Shots => ({
  url,
  method: 'POST',
  body,
  // Each its own: autocannon puts an id in its place. (An argument that ends with a bracket is something else to it.)
  headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': '[<id>].' },
})

/** Runs autocannon as a process of its own: a part of this one would wait for what the others do here. */
async function fire({ url, method = 'GET', headers = {}, body, connections, seconds }: Shots & Load, signal: AbortSignal): Promise<Result> {
  const flags = ['--json', '--no-progress', '--connections', connections, '--duration', seconds, '--timeout', 30, '--method', method]
  const given = Object.entries(headers).flatMap(([name, value]) => ['--headers', `${name}=${value}`])
  const sent = body === undefined ? [] : ['--body', body, '--idReplacement']
  const child = spawn(process.execPath, [program, ...flags.map(String), ...given, ...sent, url], {
    stdio: ['ignore', 'pipe', 'ignore'],
    signal,
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`autocannon ended with ${code}`)
  return JSON.parse(text) as Result
}
