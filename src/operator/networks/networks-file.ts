import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { z } from 'zod'
import { ethereumNetworkConfig } from '../../chains/ethereum/networks.ts'
import { solanaNetworkConfig } from '../../chains/solana/networks.ts'

/** How the staking API is reached. The key stands in a file of its own, so that it can be a mounted Secret and be rotated. */
const stakingApi = z.strictObject({
  url: z.url({ protocol: /^https?$/, error: 'must be an http(s) URL' }),
  /** Absolute path of the file that holds the API key. */
  apiKeyFile: z.string().min(1).max(4096),
  /** For one call, in ms. */
  timeoutMs: z.int().min(100).max(120_000).default(15_000),
})
export type StakingApiConfig = z.output<typeof stakingApi>

/** Overrides the file's stakingApi for this network. */
const ownApi = { stakingApi: stakingApi.optional() }
const ethereumFields = {
  ...ownApi,
  /** A transaction that has waited this long is looked at for a fee bump, in ms. */
  bumpAfterMs: z.int().min(100).max(86_400_000).default(180_000),
}
const solanaFields = {
  ...ownApi,
  /** The domain that a challenge must name before it is signed. Default: host and port of the staking API's URL. */
  challengeDomain: z
    .string()
    .regex(/^[a-z0-9.:[\]-]{1,255}$/, 'must be a lower-case host name, with a port if need be')
    .optional(),
}

const fileSchema = z.strictObject({
  stakingApi: stakingApi.optional(),
  networks: z
    .array(z.looseObject({ name: z.string(), chain: z.enum(['Ethereum', 'Solana']) }))
    .min(1)
    .max(32),
})

export interface EthereumNetworkEntry {
  readonly config: z.output<typeof ethereumNetworkConfig>
  readonly api: StakingApiConfig
  readonly bumpAfterMs: number
}
export interface SolanaNetworkEntry {
  readonly config: z.output<typeof solanaNetworkConfig>
  readonly api: StakingApiConfig
  readonly challengeDomain: string
}
export interface NetworksFile {
  readonly ethereum: readonly EthereumNetworkEntry[]
  readonly solana: readonly SolanaNetworkEntry[]
}

/** A networks file that can't be used: the message names each place. Values are not quoted: a URL can be a credential. */
export class NetworksFileError extends Error {
  override readonly name = 'NetworksFileError'
}

/** @throws NetworksFileError */
export async function readNetworksFile(path: string): Promise<NetworksFile> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    throw new NetworksFileError(
      `${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'}): mount the networks file there, or name another with --networks`,
    )
  }
  return parseNetworksFile(text, path)
}

/** @throws NetworksFileError */
export function parseNetworksFile(text: string, path: string): NetworksFile {
  let value: unknown
  try {
    value = parse(text, { prettyErrors: false })
  } catch {
    throw new NetworksFileError(`${path} is not YAML`)
  }
  const file = fileSchema.safeParse(value)
  if (!file.success) throw problems(path, '', file.error)
  const ethereum: EthereumNetworkEntry[] = []
  const solana: SolanaNetworkEntry[] = []
  for (const [index, network] of file.data.networks.entries()) {
    const prefix = `networks[${index}].`
    const checked = <T extends z.ZodType>(schema: T, value: unknown): z.output<T> => {
      const result = schema.safeParse(value)
      if (!result.success) throw problems(path, prefix, result.error)
      return result.data
    }
    const apiOf = (own: StakingApiConfig | undefined): StakingApiConfig => {
      const api = own ?? file.data.stakingApi
      if (api === undefined) throw new NetworksFileError(`${path}: ${prefix}stakingApi: is required, here or for the whole file`)
      return api
    }
    if (network.chain === 'Ethereum') {
      const { stakingApi: own, bumpAfterMs, ...rest } = network
      const config = checked(ethereumNetworkConfig, rest)
      const extra = checked(z.object(ethereumFields), { stakingApi: own, bumpAfterMs })
      ethereum.push({ config, api: apiOf(extra.stakingApi), bumpAfterMs: extra.bumpAfterMs })
    } else {
      const { stakingApi: own, challengeDomain, ...rest } = network
      const config = checked(solanaNetworkConfig, rest)
      const extra = checked(z.object(solanaFields), { stakingApi: own, challengeDomain })
      const api = apiOf(extra.stakingApi)
      solana.push({ config, api, challengeDomain: extra.challengeDomain ?? new URL(api.url).host })
    }
  }
  const names = [...ethereum, ...solana].map(({ config }) => config.name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new NetworksFileError(`${path}: network ${twice} is there twice`)
  // One chain under two names would be two ledgers over one nonce sequence, and two stakes of one name.
  const chains = new Map<string, string>()
  const identities = [
    ...ethereum.map(({ config }) => ({ name: config.name, identity: `chainId ${config.chainId}` })),
    ...solana.map(({ config }) => ({ name: config.name, identity: `genesisHash ${config.genesisHash}` })),
  ]
  for (const { name, identity } of identities) {
    const other = chains.get(identity)
    if (other !== undefined)
      throw new NetworksFileError(`${path}: networks ${other} and ${name} have the same ${identity}: one chain has one name`)
    chains.set(identity, name)
  }
  return { ethereum, solana }
}

const problems = (path: string, prefix: string, error: z.ZodError): NetworksFileError =>
  new NetworksFileError(`${path}: ${error.issues.map((issue) => `${prefix}${issue.path.join('.')}: ${issue.message}`).join('; ')}`)
