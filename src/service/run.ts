import type { FastifyInstance } from 'fastify'
import { createBeaconChain } from '../chains/ethereum/beacon-chain.ts'
import { createEthereumChain } from '../chains/ethereum/rpc-chain.ts'
import { createNodeBoard, type NodeBoard } from '../chains/nodes/board.ts'
import { type Clock, jitter, systemClock } from '../lib/clock.ts'
import { createLogger, type LogFormat, type Logger } from '../lib/log.ts'
import { startTracing } from '../lib/otel.ts'
import { createAdmin, serveAdmin } from './admin.ts'
import { ConfigError, loadServiceConfig, type ServiceConfig, type ServiceOverrides } from './config.ts'
import { createDepositMaker } from './ethereum/deposit-maker.ts'
import { startDepositWorkers } from './ethereum/deposit-workers.ts'
import type { EthereumNetworks } from './ethereum/networks.ts'
import { type Certificate, readCertificate } from './http/certificate.ts'
import { gentleClose } from './http/close.ts'
import { certificateLookMs, renewCertificate } from './http/renew-certificate.ts'
import { showCertificate } from './http/tls-server.ts'
import { releaseAllClaims } from './idempotency.ts'
import { readSeedFile } from './seed.ts'
import { createService } from './service.ts'
import { connectSolanaNetworks } from './solana/connect.ts'
import { DatabaseFullError, DatabaseInUseError, isOutage, openStore, type Store } from './store/database.ts'
import { openKeyIndices } from './store/key-index.ts'
import { isSmall, memoryLimit, tooLittleMemory } from './store/memory.ts'
import { giveBackAll } from './store/webhooks.ts'

export interface RunServiceOptions {
  /** Path of the configuration file. */
  readonly config: string
  /** What the command line says instead of the file. */
  readonly flags?: ServiceOverrides
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly version: string
  readonly clock?: Clock
  /** Default: lines to standard output, in `logFormat`. */
  readonly log?: Logger
  /** Default: `json`. */
  readonly logFormat?: LogFormat
  /** Called once it listens, with the address. */
  readonly onListening?: (url: string) => void
  /** How often the files of the certificate are looked at. Only tests want it shorter. */
  readonly certificateLookMs?: number
}

/** So long it tells whoever still comes that it is stopping, before it stops listening. */
const lastWordsMs = 500

/**
 * Runs the service until the signal is aborted: then it says that it isn't ready, soon takes no
 * new connections, serves what it has begun, and ends.
 * @throws ConfigError, SeedError, or the database's error, when it can't start. Their messages say what to mend.
 */
export async function runService(options: RunServiceOptions, signal: AbortSignal): Promise<void> {
  const { clock = systemClock, env = process.env, version } = options
  const config = await loadServiceConfig(options.config, options.flags, env)
  const log = options.log ?? createLogger({ program: 'service', level: config.logLevel, format: options.logFormat ?? 'json' })
  const keys = await readSeedFile(config.seedFile)
  const certificate = config.tls === undefined ? undefined : await readCertificate(config.tls)
  const little = config.database.kind === 'embedded' ? tooLittleMemory(memoryLimit()) : undefined
  if (little !== undefined) throw new ConfigError(`database: ${little}`)
  const tracing = await startTracing({ service: 'staking-service', version, env, clock, log })
  const store = await waitForStore(config.database, { clock, log }, signal)
  if (store === undefined) return
  const ending = new AbortController()
  const inline = createDepositMaker(keys)
  const deposits = startDepositWorkers({
    ...{ seedFile: config.seedFile, fingerprint: keys.fingerprint, inline, log },
    // Each takes some 60 MiB, which the embedded database leaves for one in a small container.
    ...(config.database.kind === 'embedded' && isSmall(memoryLimit()) ? { size: 1 } : {}),
  })
  let closeOperations = async () => undefined as unknown
  try {
    if (config.database.kind === 'embedded') await Promise.all([releaseAllClaims(store), giveBackAll(store.db)])
    const indices = await openKeyIndices({ store, seedFingerprint: keys.fingerprint, floor: BigInt(config.keyIndexFloor) })
    const nodes = createNodeBoard()
    const { app, operations, tracker, deliverer, solanaFollower, metrics, refuse } = await createService({
      store,
      keys,
      deposits,
      indices,
      networks: connectNetworks(config, clock, log, ending.signal, nodes),
      solanaNetworks: connectSolanaNetworks({
        networks: config.networks.filter((network) => network.chain === 'Solana'),
        defaultVoteAccounts: config.solana.defaultVoteAccounts,
        clock,
        log,
        nodes,
      }),
      nodes,
      solanaPolicy: {
        domain: config.solana.domain,
        hosts: config.solana.hosts,
        maxPriorityFeeLamports: BigInt(config.solana.maxPriorityFeeLamports),
      },
      clock,
      log,
      version,
      rateLimit: config.rateLimit,
      audit: config.audit,
      httpLimits: config.limits,
      operationsApart: config.operations !== undefined,
      trustProxy: config.trustProxy,
      certificate,
      trackerIntervalMs: config.trackerIntervalMs,
      webhooks: config.webhooks,
      stopping: signal,
    })
    const closeAdmin =
      config.database.kind === 'embedded' && !config.database.dataDir.startsWith('memory://')
        ? await serveAdmin(createAdmin({ store, clock }), config.database.dataDir)
        : async () => undefined
    const tracking = Promise.all([tracker, deliverer, solanaFollower].map((one) => one.run(ending.signal)))
    metrics.watchProcess()
    closeOperations = async () => operations?.close()
    if (operations !== undefined && config.operations !== undefined) await listen(operations, 'operations', config.operations)
    const close = gentleClose(app, clock)
    const url = await listen(app, 'listen', config.listen)
    log.info(
      { url, networks: config.networks.map(({ name }) => name), database: config.database.kind, version },
      'the staking service listens',
    )
    if (config.tls !== undefined && certificate !== undefined) {
      const show = (next: Certificate) => showCertificate(app.server, next)
      const lookMs = options.certificateLookMs ?? certificateLookMs
      void renewCertificate({ files: config.tls, first: certificate, show, clock, log, lookMs }, ending.signal)
    }
    options.onListening?.(url)

    await aborted(signal)
    log.info('the staking service ends: requests in flight are served')
    // Whoever routes to it learns that it isn't ready; what is on its way here still finds it, and is told to go elsewhere next time.
    await clock.sleep(Math.min(config.drainMs, config.shutdownGraceMs / 2), ending.signal)
    refuse()
    await clock.sleep(lastWordsMs, ending.signal)
    const graceMs = Math.max(config.shutdownGraceMs - config.drainMs, config.shutdownGraceMs / 2)
    await Promise.all([close(graceMs), within(graceMs, clock, closeAdmin())])
    ending.abort()
    await tracking
  } finally {
    ending.abort()
    await closeOperations()
    await deposits.close()
    await store.close()
    await tracing?.close()
  }
  log.info('the staking service has ended')
}

/** Waits for a database that isn't there yet; undefined when it was asked to end before. @throws what no waiting mends: a wrong password, a newer version */
async function waitForStore(
  database: ServiceConfig['database'],
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): Promise<Store | undefined> {
  for (let attempt = 1; !signal.aborted; attempt++) {
    try {
      return await openStore(database, (error) => log.warn({ err: error }, 'a connection of the database was lost'))
    } catch (error) {
      if (!isOutageAtStart(error)) throw asConfigError(error)
      if (attempt === 1) log.warn({ reason: reasonOf(error) }, 'the database does not answer: waiting for it')
      await clock.sleep(jitter(Math.min(250 * 2 ** Math.min(attempt, 4), 4_000)), signal).catch(() => undefined)
    }
  }
  return undefined
}

/** @throws ConfigError when nobody can listen there */
const listen = (app: FastifyInstance, field: string, { host, port }: { readonly host: string; readonly port: number }): Promise<string> =>
  app.listen({ host, port }).catch((error: NodeJS.ErrnoException) => {
    throw error.syscall === 'listen' || error.syscall === 'getaddrinfo'
      ? new ConfigError(`${field}: ${host}:${port} can't be listened at (${error.code ?? 'unknown error'})`)
      : error
  })

/** What a person must mend before the service starts, in one line. */
function asConfigError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof DatabaseInUseError) return error
  if (error instanceof DatabaseFullError) return new ConfigError(`database: ${error.message}`)
  const code = reasonOf(error)
  if (/^(28...|3D000|42501)$/.test(code))
    return new ConfigError(`database: the server refuses the user, its password or the database (${code})`)
  if (/^E[A-Z]+$/.test(code)) return new ConfigError(`database: its folder can't be used (${code})`)
  return error.message.startsWith('the database could not be brought up to date') ? new ConfigError(error.message) : error
}

const reasonOf = (error: unknown): string => {
  for (let current = error, depth = 0; current instanceof Error && depth < 5; current = current.cause, depth++) {
    if ('code' in current && typeof current.code === 'string') return current.code
  }
  return error instanceof Error ? error.message : 'unknown'
}

/** Also as the cause of a migration that failed. */
const isOutageAtStart = (error: unknown): boolean => isOutage(error) || (error instanceof Error && isOutage(error.cause))

const isEthereum = (network: ServiceConfig['networks'][number]) => network.chain === 'Ethereum'

/** What every new stake asks the nodes is asked so often at most, however many are made. */
const askEveryMs = 25

/** Of one call to a beacon node: several fit into the time that a request has. */
const beaconTimeoutMs = 6_000

const connectNetworks = (config: ServiceConfig, clock: Clock, log: Logger, signal: AbortSignal, nodes: NodeBoard): EthereumNetworks =>
  new Map(
    config.networks.filter(isEthereum).map((network) => {
      const onNodes = (read: Parameters<NodeBoard['set']>[1]) => nodes.set(network.name, read)
      const chain = createEthereumChain({ config: network, clock, log, signal, historyEveryMs: askEveryMs, onNodes })
      const urls = network.beaconApiUrls
      const validators =
        urls.length === 0
          ? {}
          : {
              validators: {
                reads: chain,
                beacon: createBeaconChain({
                  network,
                  urls,
                  clock,
                  log,
                  timeoutMs: beaconTimeoutMs,
                  onNodes: (read) => nodes.set(network.name, read, { beacon: true }),
                }),
              },
            }
      return [network.name, { config: network, chain, deposits: chain, requests: chain, ...validators }]
    }),
  )

const aborted = (signal: AbortSignal) =>
  new Promise<void>((done) => {
    if (signal.aborted) done()
    else signal.addEventListener('abort', () => done(), { once: true })
  })

/** Waits for work, but not longer than `ms`. */
async function within(ms: number, clock: Clock, work: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  await Promise.race([work.catch(() => undefined), clock.sleep(ms, done.signal).catch(() => undefined)])
  done.abort()
}
