import { readFile } from 'node:fs/promises'
import { parse, YAMLParseError } from 'yaml'
import { z } from 'zod'
import { ethereumNetworkConfig } from '../chains/ethereum/networks.ts'
import { isAddress } from '../chains/solana/addresses.ts'
import { solanaNetworkConfig } from '../chains/solana/networks.ts'
import { ConfigError, systemCode } from '../lib/config-error.ts'
import { logLevels } from '../lib/log.ts'
import { Secret } from '../lib/secret.ts'
import { isBlock } from './addresses.ts'
import type { DatabaseConfig } from './store/database.ts'

export { ConfigError } from '../lib/config-error.ts'

const port = z.int().min(0).max(65_535)

const hostName = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$/, 'must be a host name in lower case, with a port if need be')

/** The service's configuration file. */
export const serviceConfigFile = z.strictObject({
  listen: z
    .strictObject({
      host: z.string().min(1).max(255).default('0.0.0.0'),
      /** 0 takes a free port. */
      port: port.default(8080),
    })
    .prefault({}),
  /** The API is then served over TLS alone (1.2 and 1.3). Renewed files are seen without a restart. /healthz, /readyz and /metrics on a port of their own stay http. */
  tls: z
    .strictObject({
      /** PEM: the server's certificate first, then the intermediate ones. */
      certFile: z.string().min(1),
      /** PEM: its private key, without a passphrase. */
      keyFile: z.string().min(1),
    })
    .optional(),
  /** A port of its own for /healthz, /readyz and /metrics, which then aren't served beside the API. Default: beside it. */
  operations: z.strictObject({ host: z.string().min(1).max(255).default('0.0.0.0'), port: port }).optional(),
  /** Without a URL, PostgreSQL runs inside the service on `dataDir`, for one instance. `memory://` forgets all at the end: for tests. */
  database: z
    .strictObject({
      /** `postgres://…`; as it holds a password, `urlFile` (a mounted Secret) is the better place. */
      url: z.string().min(1).optional(),
      urlFile: z.string().min(1).optional(),
      dataDir: z.string().min(1).default('/var/lib/staking-service'),
      /** Connections of one instance. */
      poolSize: z.int().min(2).max(200).default(10),
    })
    .prefault({}),
  /** The seed of the validators' keys: 32 to 64 bytes in hex, or a BIP-39 mnemonic of 24 words. */
  seedFile: z.string().min(1),
  /** The first index of a new validator key, where it is to be above 2^24. It is part of what says which key a request gets: leave it as it is. */
  keyIndexFloor: z.int().min(0).max(0xffff_ffff).default(0),
  networks: z
    .array(z.discriminatedUnion('chain', [ethereumNetworkConfig, solanaNetworkConfig]))
    .min(1)
    .max(32),
  solana: z
    .strictObject({
      /** Host name, with its port unless that is the protocol's own, that challenges name. Default: the host that the client asked for, if it is one of `hosts` or this machine. */
      domain: hostName.optional(),
      /** Under which the service is reached, where it has several names. */
      hosts: z.array(hostName).max(64).default([]),
      /** By network: where a stake goes that names no vote account. Without one, each stake must name its own. */
      defaultVoteAccounts: z.record(z.string(), z.string().refine(isAddress, 'must be base58 of 32 bytes')).default({}),
      /** The most that a transaction offers on top of the base fee, in lamports. */
      maxPriorityFeeLamports: z.int().min(0).max(1_000_000_000).default(10_000),
    })
    .prefault({}),
  rateLimit: z
    .strictObject({
      /** Requests of one API key per window, over all instances together. */
      max: z.int().min(1).default(12_000),
      windowMs: z.int().min(1_000).max(3_600_000).default(60_000),
      /** Refused requests of one address per window, for each instance. */
      maxUnauthenticated: z.int().min(1).default(300),
    })
    .prefault({}),
  /**
   * Addresses (or CIDR blocks) of the proxies before the service: only theirs are the `X-Forwarded-*` headers that are believed, for the limits by address
   * and the host that challenges name.
   */
  trustProxy: z
    .array(
      z
        .string()
        .max(64)
        .refine((text) => isBlock(text), 'must be an IP address, or a block of them such as 10.0.0.0/8'),
    )
    .max(64)
    .default([]),
  limits: z
    .strictObject({
      /** From the first byte of a request to its last. */
      requestTimeoutMs: z.int().min(100).max(300_000).default(15_000),
      /** Open connections of one instance. */
      maxConnections: z.int().min(1).max(100_000).default(1_000),
      /** Requests that one instance serves at the same time; further ones answer 503 with Retry-After. */
      maxInFlight: z.int().min(1).max(10_000).default(256),
      /** The same for one account, so that none keeps the others out: half of them, or what many accounts need. */
      maxInFlightPerAccount: z.int().min(1).max(10_000).default(128),
      /** Requests that wait for a change at the same time on one instance, at most half of its connections; further ones are answered at once. */
      maxWaiting: z.int().min(0).max(50_000).default(500),
      /** The same for one API key. */
      maxWaitingPerKey: z.int().min(0).max(50_000).default(100),
    })
    .prefault({}),
  /** Deliveries of changes to the accounts' own endpoints. */
  webhooks: z
    .strictObject({
      /** http too, for tests and networks of your own. */
      allowHttp: z.boolean().default(false),
      /** Addresses (or CIDR blocks) that are not public and may be delivered to all the same. Whoever may make an endpoint reaches them through the service. */
      allowAddresses: z
        .array(
          z
            .string()
            .max(64)
            .refine((text) => isBlock(text), 'must be an IP address, or a block of them such as 10.0.0.0/8'),
        )
        .max(64)
        .default([]),
      /** One attempt, from the first look at the name to the answer's headers. */
      timeoutMs: z.int().min(100).max(30_000).default(10_000),
      /** Endpoints of one account. */
      maxEndpoints: z.int().min(0).max(100).default(10),
      /** Deliveries that wait for one endpoint; of more, the oldest are dropped, which the endpoint and its receiver are told. */
      maxPending: z.int().min(100).max(1_000_000).default(10_000),
    })
    .prefault({}),
  /** Who asked what: every request that changes something, and who was refused it. */
  audit: z
    .strictObject({
      /** Requests that only read are written down too. */
      reads: z.boolean().default(false),
      /** Entries older than that are forgotten. */
      keepDays: z.int().min(1).max(36_500).default(400),
    })
    .prefault({}),
  /** How often the tracker goes through what is due, in ms; each stake is looked at once per block at most. */
  trackerIntervalMs: z.int().min(20).max(3_600_000).default(4_000),
  logLevel: z.enum(logLevels).default('info'),
  /** How long it goes on serving once it was asked to end, while /readyz says that it stops: as long as its clients' way here takes to change, a readiness period. */
  drainMs: z.int().min(0).max(300_000).default(5_000),
  /** How long requests in flight may take at the end, the drain included. Keep it below the pod's terminationGracePeriodSeconds. */
  shutdownGraceMs: z.int().min(0).max(600_000).default(20_000),
})

export type ServiceConfig = Omit<z.output<typeof serviceConfigFile>, 'database'> & { readonly database: DatabaseConfig }

/** What the command line or the environment says instead of the file. */
export interface ServiceOverrides {
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly databaseUrl?: string | undefined
  readonly databaseUrlFile?: string | undefined
  readonly dataDir?: string | undefined
}

/** Flags win over the environment, and that over the file. @throws ConfigError */
export async function loadServiceConfig(
  path: string,
  flags: ServiceOverrides = {},
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<ServiceConfig> {
  const file = parseServiceConfig(await read(path, 'the configuration'), path)
  const given: ServiceOverrides = {
    host: flags.host ?? env.STAKING_SERVICE_HOST,
    port: flags.port ?? portOf(env.STAKING_SERVICE_PORT),
    ...(flags.databaseUrl !== undefined || flags.databaseUrlFile !== undefined
      ? { databaseUrl: flags.databaseUrl, databaseUrlFile: flags.databaseUrlFile }
      : { databaseUrl: env.STAKING_SERVICE_DATABASE_URL, databaseUrlFile: env.STAKING_SERVICE_DATABASE_URL_FILE }),
    dataDir: flags.dataDir ?? env.STAKING_SERVICE_DATA_DIR,
  }
  return {
    ...file,
    listen: { host: given.host ?? file.listen.host, port: given.port ?? file.listen.port },
    database: await databaseOf(file.database, given, path),
  }
}

/** @throws ConfigError with every wrong field. */
export function parseServiceConfig(text: string, path: string): z.output<typeof serviceConfigFile> {
  let document: unknown
  try {
    document = parse(text)
  } catch (error) {
    const where = error instanceof YAMLParseError && error.linePos !== undefined ? ` (line ${error.linePos[0].line})` : ''
    throw new ConfigError(`${path} is not valid YAML${where}`)
  }
  const result = serviceConfigFile.safeParse(document ?? {})
  if (!result.success) {
    const wrong = result.error.issues.map((issue) => `${pathText(issue.path)}: ${issue.message}`)
    throw new ConfigError(`${path} is not a valid configuration of the service: ${wrong.join('; ')}`)
  }
  const names = result.data.networks.map((network) => network.name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new ConfigError(`${path}: networks: "${twice}" is given twice`)
  const solana = result.data.networks.filter((network) => network.chain === 'Solana').map((network) => network.name)
  const unknown = Object.keys(result.data.solana.defaultVoteAccounts).find((name) => !solana.includes(name))
  if (unknown !== undefined)
    throw new ConfigError(`${path}: solana.defaultVoteAccounts: "${unknown.slice(0, 64)}" is not a Solana network of this file`)
  return result.data
}

const pathText = (path: readonly PropertyKey[]): string =>
  path.length === 0
    ? 'the file'
    : path.map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${String(part)}`)).join('')

async function databaseOf(
  file: z.output<typeof serviceConfigFile>['database'],
  given: ServiceOverrides,
  path: string,
): Promise<DatabaseConfig> {
  const overridden = given.databaseUrl !== undefined || given.databaseUrlFile !== undefined
  const { url, urlFile } = overridden ? { url: given.databaseUrl, urlFile: given.databaseUrlFile } : file
  if (url !== undefined && urlFile !== undefined) throw new ConfigError(`${path}: database: give url or urlFile, not both`)
  const text = urlFile === undefined ? url : (await read(urlFile, "the database's URL")).trim()
  if (text === undefined) return { kind: 'embedded', dataDir: given.dataDir ?? file.dataDir }
  if (!/^postgres(ql)?:\/\//.test(text)) {
    // The text is not quoted: it may be a password in the wrong place.
    throw new ConfigError(`${urlFile ?? `${path}: database.url`}: the database's URL must start with postgres://`)
  }
  return { kind: 'postgres', url: new Secret(text), poolSize: file.poolSize }
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const result = port.safeParse(/^[0-9]{1,5}$/.test(text) ? Number(text) : Number.NaN)
  if (!result.success) throw new ConfigError(`STAKING_SERVICE_PORT: "${text.slice(0, 20)}" is not a port`)
  return result.data
}

async function read(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new ConfigError(`${what} ${path} cannot be read (${systemCode(error)})`)
  }
}
