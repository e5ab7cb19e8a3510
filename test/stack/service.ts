import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createStakingClient, type StakingClient } from '../../src/contract/client.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Secret } from '../../src/lib/secret.ts'
import { freePort } from '../cluster/ports.ts'
import { type RunningProcess, startProcess } from '../cluster/process.ts'
import { COMPILE_CACHE } from './compile-cache.ts'
import { createProgram, type Program } from './program.ts'
import { writeJson } from './write-json.ts'

/** The seed of the validators' keys in tests and the demo: well known, so worthless. */
export const TEST_SEED = '7465737420736565642c20776f7274686c6573733a206e6576657220757365206974212121'

export interface StackServiceOptions {
  readonly dir: string
  /** The program's entry. */
  readonly entry: string
  readonly networks: readonly Readonly<Record<string, unknown>>[]
  /** Fields of the configuration's section `solana`. */
  readonly solana?: Readonly<Record<string, unknown>>
  /** Of the program and its commands. */
  readonly env?: Readonly<Record<string, string>>
  /** Default: `TEST_SEED`. Two services before one chain need one each, or they may give out the same key. */
  readonly seed?: string
}

export interface StackService {
  readonly program: Program
  readonly serviceUrl: string
  readonly configFile: string
  /** Holds an API key of the account `platform`. */
  readonly apiKeyFile: string
  /** Runs one of the program's commands on this service's configuration to its end, and gives what it printed. @throws with that when it fails */
  command(...args: readonly string[]): Promise<string>
}

/** The staking service as a process of its own, on its embedded database, with an API key. */
export async function startStackService({
  dir,
  entry,
  networks,
  solana,
  env = {},
  seed = TEST_SEED,
}: StackServiceOptions): Promise<StackService> {
  const port = await freePort()
  const configFile = join(dir, 'service.yaml')
  writeFileSync(join(dir, 'seed'), `${seed}\n`, { mode: 0o600 })
  writeJson(configFile, {
    listen: { host: '127.0.0.1', port },
    database: { dataDir: join(dir, 'service-data') },
    seedFile: join(dir, 'seed'),
    networks,
    ...(solana === undefined ? {} : { solana }),
    rateLimit: { max: 1_000_000 },
    trackerIntervalMs: 500,
    drainMs: 200,
  })
  const serviceUrl = `http://127.0.0.1:${port}`
  const program = createProgram({
    name: 'service',
    command: process.execPath,
    args: [entry, 'service', '--config', configFile],
    env,
    logFile: join(dir, 'service.log'),
    readyUrl: `${serviceUrl}/readyz`,
  })
  const command = (...args: readonly string[]) => runCommand([entry, ...args, '--config', configFile], env)
  const apiKeyFile = join(dir, 'api-key')
  // A database of another server is made by whoever names it.
  const isOwn = env.STAKING_SERVICE_DATABASE_URL_FILE === undefined
  if (!isOwn || !takePrepared(dir, seed)) {
    const key = (await command('api-keys', 'create', '--account', 'platform', '--label', 'operator')).trim().split('\n').at(-1)
    writeFileSync(apiKeyFile, `${key}\n`, { mode: 0o600 })
    if (isOwn) keepPrepared(dir, seed)
  }
  await program.start()
  return { program, serviceUrl, configFile, apiKeyFile, command }
}

/**
 * A database that was just made, with its API key, is kept for all stacks of one run of the tests: to make one takes longer than all else that a service does at
 * its start. Left out where the run gives no folder for it, and with a seed of its own.
 */
const PREPARED = ['service-data', 'api-key']
const prepared = (seed: string): string | undefined => {
  const folder = process.env.STAKING_TEST_PREPARED
  return folder === undefined || seed !== TEST_SEED ? undefined : join(folder, 'service')
}

function takePrepared(dir: string, seed: string): boolean {
  const from = prepared(seed)
  if (from === undefined || !existsSync(from)) return false
  for (const each of PREPARED) cpSync(join(from, each), join(dir, each), { recursive: true })
  return true
}

function keepPrepared(dir: string, seed: string): void {
  const to = prepared(seed)
  if (to === undefined) return
  try {
    mkdirSync(`${to}-lock`)
  } catch {
    return // another file of the run keeps its own
  }
  const making = `${to}-making`
  for (const each of PREPARED) cpSync(join(dir, each), join(making, each), { recursive: true })
  renameSync(making, to)
}

/** A client of a stack's service, with the operator's own API key. */
export const clientOf = ({ serviceUrl, apiKeyFile }: { readonly serviceUrl: string; readonly apiKeyFile: string }): StakingClient =>
  createStakingClient({ baseUrl: serviceUrl, apiKey: () => new Secret(readFileSync(apiKeyFile, 'utf8').trim()), clock: systemClock })

async function runCommand(args: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const run: RunningProcess = await startProcess({
    name: args.slice(1, 3).join(' '),
    command: process.execPath,
    args,
    env: { ...COMPILE_CACHE, ...env },
  })
  const { code } = await run.exited
  if (code !== 0) throw new Error(`${args.slice(1).join(' ')} failed: ${run.output()}`)
  return run.output()
}
