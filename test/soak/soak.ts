import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Secret } from '../../src/lib/secret.ts'
import { apiKeysCreate } from '../../src/service/commands.ts'
import type { DatabaseConfig } from '../../src/service/store/database.ts'
import { type Anvil, startAnvil } from '../chains/anvil.ts'
import { freePort } from '../cluster/ports.ts'
import { startPostgres } from '../cluster/postgres.ts'
import { type RunningProcess, startProcess } from '../cluster/process.ts'
import { startToxiproxy, type Toxiproxy } from '../cluster/toxiproxy.ts'
import { createRandom, type Random } from '../crash/random.ts'
import { type ServiceFiles, serviceFiles } from '../integration/service/processes.ts'
import { folderDatabase } from '../stack/memory-database.ts'
import { createClients, type Known } from './clients.ts'
import { startReceiver, undelivered, untilDelivered } from './deliveries.ts'
import { differences } from './differences.ts'
import { type Fault, faultKinds, type Instance, longFaults, type Targets } from './faults.ts'

export interface SoakResult {
  readonly created: number
  readonly submitted: number
  /** Webhooks that came, repetitions included. */
  readonly delivered: number
  /** Requests that had to be sent again. */
  readonly repeated: number
  /** From the first attempt to the answer, at most. */
  readonly slowestMs: number
  readonly faults: readonly string[]
  /** What must never be: a stake lost or made twice, an answer that changed, a refusal of what is right, a process that ends by itself. */
  readonly violations: readonly string[]
}
export interface SoakOptions {
  readonly database: 'postgres' | 'embedded'
  /** At least; every round of faults is done whole. 0: one round, of short ones. */
  readonly seconds: number
  readonly seed: number
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

const clientCount = 6
/** For what is open when the faults are over: the lease of a key that a killed instance left behind, and a few requests. */
const settleMs = 120_000
/** Of a whole end: the drain, and what requests may take. */
const drainWithinMs = 60_000
/** In every so many-th round, a fault that takes long. */
const longEvery = 4

/**
 * Two instances of the service on one PostgreSQL, or one with its embedded database, with toxiproxy before each and before the database. Clients create stakes and
 * report hashes, while processes are killed, ended and frozen and the network fails, one fault at a time, each kind once a round. Afterwards each request must have
 * had its effect once.
 */
export async function soak({ database, seconds, seed, say, signal }: SoakOptions): Promise<SoakResult> {
  const random = createRandom(seed)
  const [anvil, toxiproxy] = await Promise.all([startAnvil(), startToxiproxy(signal)])
  const closing: (() => Promise<unknown>)[] = [() => anvil.stop(), () => toxiproxy.stop()]
  const violations: string[] = []
  try {
    const { files, env, config, server } = await (database === 'postgres' ? withServer(anvil, toxiproxy) : withEmbedded(anvil))
    closing.push(async () => files.remove())
    if (server !== undefined) closing.push(() => server.server.stop())
    const key = (await apiKeysCreate({ config: files.config, account: 'soak', env })).key.reveal()
    const receiver = await startReceiver()
    closing.push(() => receiver.close())
    const ports = await Promise.all(Array.from({ length: database === 'postgres' ? 2 : 1 }, freePort))
    const instances = ports.map((port, index) => createInstance(`instance ${index}`, files, port, env, violations))
    closing.unshift(() => Promise.all(instances.map((one) => one.stop())))
    await Promise.all(instances.map((one) => one.start()))
    const toInstances = await Promise.all(ports.map((port, index) => toxiproxy.proxy(`instance${index}`, `127.0.0.1:${port}`)))
    const { state } = await receiver.follow(() => `http://127.0.0.1:${ports[0]}`, key)
    const clients = createClients({ urls: toInstances.map(({ address }) => `http://${address}`), key })
    const working = Array.from({ length: clientCount }, (_, number) => clients.run(number))

    const targets: Targets = { instances, toInstances, ...(server === undefined ? {} : { database: server }) }
    const faults = await strike(targets, { random, say, signal, seconds })
    say('all faults are over: what is open is finished')
    clients.stop()
    const over = setTimeout(clients.giveUp, settleMs)
    await Promise.all(working)
    clearTimeout(over)
    const late = await untilDelivered(state, settleMs)
    await Promise.all(instances.map((one) => one.stop()))
    return {
      created: clients.known.answers.size,
      submitted: clients.known.reported.size,
      repeated: clients.repeated(),
      slowestMs: clients.slowestMs(),
      faults,
      delivered: receiver.received.length,
      violations: [
        ...[...violations, ...clients.violations, ...late],
        ...undelivered(newsOf(clients.known), receiver.received),
        ...(await differences(config, clients.known)),
      ],
    }
  } finally {
    for (const close of closing) await close()
  }
}

/** What the account's endpoint must have been told. */
function newsOf({ answers, reported }: Known): readonly string[] {
  const made = [...answers.values()].map((text) => (JSON.parse(text) as { stakeId: string }).stakeId)
  return [...made.map((id) => `${id} awaiting_submission`), ...[...reported.keys()].map((id) => `${id} submitted`)]
}

/** Does faults, until it is time. @returns their names */
async function strike(
  targets: Targets,
  { random, say, signal, seconds }: { random: Random } & Pick<SoakOptions, 'say' | 'signal' | 'seconds'>,
): Promise<readonly string[]> {
  const done: string[] = []
  const kinds = faultKinds(targets)
  const untilMs = performance.now() + seconds * 1_000
  const longest = seconds === 0 ? 1_500 : 4_000
  for (let round = 0; round === 0 || (performance.now() < untilMs && !signal.aborted); round++) {
    const chosen = [...kinds, ...(round % longEvery === longEvery - 1 ? [longFaults(targets)] : [])].map((kind) =>
      random.pick(kind as [Fault]),
    )
    for (const fault of shuffled(chosen, random)) {
      if (signal.aborted) break
      say(fault.name)
      done.push(fault.name)
      await fault.run(random.between(500, longest))
      // Long enough for some to be served in between, by instances that have seen all be well.
      await new Promise((go) => setTimeout(go, random.between(200, longest / 2)))
    }
  }
  return done
}

function shuffled<T>(list: readonly T[], random: Random): T[] {
  const left = [...list]
  return list.flatMap(() => left.splice(random.between(0, left.length), 1))
}

interface Setup {
  readonly files: ServiceFiles
  readonly env: Readonly<Record<string, string>>
  /** As it is reached without faults. */
  readonly config: DatabaseConfig
  readonly server?: { readonly server: Awaited<ReturnType<typeof startPostgres>>; readonly link: NonNullable<Targets['database']>['link'] }
}
const webhooks = { allowHttp: true, allowAddresses: ['127.0.0.0/8'], timeoutMs: 2_000 }
const settings = { drainMs: 500, trackerIntervalMs: 1_000, webhooks }

async function withServer(anvil: Anvil, toxiproxy: Toxiproxy): Promise<Setup> {
  const server = await startPostgres()
  const files = serviceFiles(anvil, settings)
  const direct = new URL(await server.createDatabase('soak'))
  const link = await toxiproxy.proxy('database', direct.host)
  const through = new URL(direct)
  through.host = link.address
  const urlFile = join(files.folder, 'url')
  writeFileSync(urlFile, through.href)
  const config: DatabaseConfig = { kind: 'postgres', url: new Secret(direct.href), poolSize: 2 }
  return { files, env: { STAKING_SERVICE_DATABASE_URL_FILE: urlFile }, config, server: { server, link } }
}

async function withEmbedded(anvil: Anvil): Promise<Setup> {
  const files = serviceFiles(anvil, settings)
  await folderDatabase(files.dataDir)
  return { files, env: {}, config: { kind: 'embedded', dataDir: files.dataDir } }
}

/** An instance of the service, as a process. One that ends without being told to, or says that it did not expect something, is a violation. */
function createInstance(
  name: string,
  files: ServiceFiles,
  port: number,
  env: Readonly<Record<string, string>>,
  violations: string[],
): Instance & { stop(): Promise<void> } {
  let running: RunningProcess | undefined
  const told = new WeakSet<RunningProcess>()
  const lastLines = (process: RunningProcess) => process.output().trimEnd().split('\n').slice(-5).join('\n')
  const end = async (signal: NodeJS.Signals) => {
    const ended = running
    if (ended === undefined) return
    running = undefined
    told.add(ended)
    if (signal === 'SIGTERM') {
      const { code, signal: by } = await ended.stop(drainWithinMs)
      if (code !== 0) violations.push(`${name} was told to end, and ended by ${code ?? by}:\n${lastLines(ended)}`)
    } else {
      ended.kill(signal)
      await ended.exited
    }
    const unexpected = ended.output().match(/^.*a request failed for a reason that was not expected.*$/m)
    if (unexpected !== null) violations.push(`${name}: ${unexpected[0].slice(0, 2_000)}`)
  }
  return {
    name,
    kill: (signal) => running?.kill(signal),
    end,
    start: async () => {
      const started = await startProcess({
        name: 'staking service',
        command: process.execPath,
        args: [join(import.meta.dirname, '../integration/service/child.ts'), files.config],
        env: { ...env, STAKING_SERVICE_PORT: String(port), NODE_NO_WARNINGS: '1' },
        readyTimeoutMs: 120_000,
        readyWhen: async () => (await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(5_000) })).ok,
      })
      running = started
      void started.exited.then(({ code, signal }) => {
        if (!told.has(started)) violations.push(`${name} ended by itself (${code ?? signal}):\n${lastLines(started)}`)
      })
    },
    stop: () => end('SIGTERM'),
  }
}
