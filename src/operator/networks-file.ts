import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { z } from 'zod'
import { ethereumNetworkConfig } from '../chains/ethereum/networks.ts'

/** How the staking API is reached. The key stands in a file of its own, so that it can be a mounted Secret and be rotated. */
const stakingApi = z.strictObject({
  url: z.url({ protocol: /^https?$/, error: 'must be an http(s) URL' }),
  /** Absolute path of the file that holds the API key. */
  apiKeyFile: z.string().min(1).max(4096),
  /** For one call, in ms. */
  timeoutMs: z.int().min(100).max(120_000).default(15_000),
})
export type StakingApiConfig = z.output<typeof stakingApi>

const operatorFields = {
  /** Overrides the file's stakingApi for this network. */
  stakingApi: stakingApi.optional(),
  /** A transaction that has waited this long is looked at for a fee bump, in ms. */
  bumpAfterMs: z.int().min(100).max(86_400_000).default(180_000),
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
export interface NetworksFile {
  readonly ethereum: readonly EthereumNetworkEntry[]
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
  const ethereum = file.data.networks.flatMap((network, index) => {
    if (network.chain !== 'Ethereum') return []
    const { stakingApi: own, bumpAfterMs, ...rest } = network
    const extra = z.object(operatorFields).safeParse({ stakingApi: own, bumpAfterMs })
    const config = ethereumNetworkConfig.safeParse(rest)
    const prefix = `networks[${index}].`
    if (!config.success) throw problems(path, prefix, config.error)
    if (!extra.success) throw problems(path, prefix, extra.error)
    const api = extra.data.stakingApi ?? file.data.stakingApi
    if (api === undefined) throw new NetworksFileError(`${path}: ${prefix}stakingApi: is required, here or for the whole file`)
    return [{ config: config.data, api, bumpAfterMs: extra.data.bumpAfterMs }]
  })
  const names = ethereum.map(({ config }) => config.name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new NetworksFileError(`${path}: network ${twice} is there twice`)
  const chains = new Map<number, string>()
  for (const { config } of ethereum) {
    const other = chains.get(config.chainId)
    // One chain under two names would be two ledgers over one nonce sequence.
    if (other !== undefined)
      throw new NetworksFileError(
        `${path}: networks ${other} and ${config.name} have the same chainId ${config.chainId}: one chain has one name`,
      )
    chains.set(config.chainId, config.name)
  }
  return { ethereum }
}

const problems = (path: string, prefix: string, error: z.ZodError): NetworksFileError =>
  new NetworksFileError(`${path}: ${error.issues.map((issue) => `${prefix}${issue.path.join('.')}: ${issue.message}`).join('; ')}`)
