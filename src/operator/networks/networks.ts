import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createEthereumChain } from '../../chains/ethereum/rpc-chain.ts'
import type { NodeBoard } from '../../chains/nodes/board.ts'
import type { NodeReading } from '../../chains/nodes/nodes.ts'
import { createSolanaChain } from '../../chains/solana/rpc-chain.ts'
import { createStakingClient, type StakingClient } from '../../contract/client.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import { createHttpAgent } from '../../lib/network-defaults.ts'
import { Secret } from '../../lib/secret.ts'
import { wrongShape } from '../../lib/secret-shape.ts'
import { shareNextCall } from '../../lib/shared-call.ts'
import { type EthereumNetwork, KeyError, type Networks, type SolanaNetwork } from '../ports.ts'
import { type NetworksFile, NetworksFileError, readNetworksFile, type StakingApiConfig } from './networks-file.ts'
import { apiOver } from './staking-api.ts'

export interface LiveNetworks extends Networks {
  /** Looks at the file and the API key files now and then (mounted ones are swapped, not written); `onReload` is told when something has changed. */
  watch(onReload: () => void, signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

interface Wiring {
  readonly clock: Clock
  readonly log: Logger
  readonly userAgent: string
  readonly onRpc?: (network: string, method: string, outcome: string, ms: number) => void
  /** A file that this follows has changed: it is in use, or can't be used. Once for each change. */
  readonly onReload?: (what: 'networks' | 'api-keys', isUsed: boolean) => void
  readonly onApi?: (operation: string, outcome: string, ms: number) => void
  /** Shows the nodes' health, for metrics. */
  readonly nodes?: NodeBoard
}

/** The networks of a file, reloaded when it changes. A file that can't be used any more is told and the last good one stays. */
export async function createNetworks(path: string, wiring: Wiring): Promise<LiveNetworks> {
  const { clock, log } = wiring
  const dispatcher = createHttpAgent({ connections: 64, keepAliveTimeout: 10_000 })
  let clients = new Map<string, StakingClient>()
  let ethereum = new Map<string, EthereumNetwork>()
  let solana = new Map<string, SolanaNetwork>()
  let shown = ''
  let keyFiles: readonly string[] = []
  // A file is read in no time, and others wait for the same.
  const never = new AbortController().signal

  /** One client, and so one gate for Retry-After, for each URL and key file. */
  function clientOf(api: StakingApiConfig, kept: Map<string, StakingClient>): StakingClient {
    const id = JSON.stringify(api)
    const readKey = shareNextCall(() => readApiKey(api.apiKeyFile))
    const client =
      kept.get(id) ??
      clients.get(id) ??
      createStakingClient({
        baseUrl: api.url,
        timeoutMs: api.timeoutMs,
        apiKey: () => readKey(never),
        dispatcher,
        clock,
        userAgent: wiring.userAgent,
      })
    kept.set(id, client)
    return client
  }

  function take(file: NetworksFile): void {
    const kept = new Map<string, StakingClient>()
    ethereum = new Map(
      file.ethereum.map(({ config, api, bumpAfterMs }) => [
        config.name,
        {
          config,
          bumpAfterMs,
          chain: chainOf(ethereum.get(config.name), config, createEthereumChain, wiring),
          ...apiOver(clientOf(api, kept), wiring).ethereum,
        },
      ]),
    )
    solana = new Map(
      file.solana.map(({ config, api, challengeDomain }) => [
        config.name,
        {
          config,
          challengeDomain,
          chain: chainOf(solana.get(config.name), config, createSolanaChain, wiring),
          ...apiOver(clientOf(api, kept), wiring).solana,
        },
      ]),
    )
    clients = kept
    wiring.nodes?.keep([...ethereum.keys(), ...solana.keys()])
  }

  async function load(): Promise<boolean> {
    const file = await readNetworksFile(path)
    keyFiles = [...new Set([...file.ethereum, ...file.solana].map((entry) => entry.api.apiKeyFile))]
    const text = JSON.stringify(file)
    if (text === shown) return false
    take(file)
    shown = text
    return true
  }

  /** What the API key files hold, as a digest: a rotated key wakes what the old one stopped. */
  async function keysDigest(): Promise<string> {
    const hash = createHash('sha256')
    for (const file of keyFiles) hash.update(await readFile(file).catch(() => 'absent')).update('\n')
    return hash.digest('hex')
  }

  await load()
  // They may come later; until then this is what its stakes wait for.
  for (const file of keyFiles)
    await readApiKey(file).catch((error: unknown) =>
      log.warn({ reason: error instanceof Error ? error.message : 'unknown' }, "the staking API can't be asked yet"),
    )
  return {
    ethereum: (name) => ethereum.get(name),
    solana: (name) => solana.get(name),
    names: (chain) => [...(chain === 'Ethereum' ? ethereum : solana).keys()],
    async watch(onReload, signal) {
      let told = ''
      let digest = await keysDigest()
      while (!signal.aborted) {
        await clock.sleep(2_000, signal).catch(() => undefined)
        if (signal.aborted) return
        try {
          if (await load()) {
            log.info({ networks: [...ethereum.keys(), ...solana.keys()] }, 'the networks file changed and is in use')
            wiring.onReload?.('networks', true)
            onReload()
          } else if (told !== '') wiring.onReload?.('networks', true)
          told = ''
          const now = await keysDigest()
          if (now !== digest) {
            digest = now
            log.info({}, 'an API key file changed')
            wiring.onReload?.('api-keys', true)
            onReload()
          }
        } catch (error) {
          const message = error instanceof NetworksFileError ? error.message : 'the networks file cannot be used'
          if (message !== told) {
            log.error({ reason: message }, 'the networks file changed and cannot be used: the last good one stays in use')
            wiring.onReload?.('networks', false)
          }
          told = message
        }
      }
    },
    close: () => dispatcher.close(),
  }
}

interface ChainOptions<Config> {
  readonly config: Config
  readonly clock: Clock
  readonly log: Logger
  readonly onCall: (method: string, outcome: string, ms: number) => void
  readonly onNodes: (read: () => readonly NodeReading[]) => void
}

/** A chain whose configuration stays keeps what it has read. */
function chainOf<Config extends { name: string }, Chain>(
  before: { readonly config: Config; readonly chain: Chain } | undefined,
  config: Config,
  create: (options: ChainOptions<Config>) => Chain,
  { clock, log, onRpc, nodes }: Wiring,
): Chain {
  if (before !== undefined && JSON.stringify(before.config) === JSON.stringify(config)) return before.chain
  return create({
    config,
    clock,
    log,
    onCall: (...call) => onRpc?.(config.name, ...call),
    onNodes: (read) => nodes?.set(config.name, read),
  })
}

/** @throws KeyError; the message names the file and never quotes it. */
export async function readApiKey(path: string): Promise<Secret> {
  let content: Buffer
  try {
    content = await readFile(path)
  } catch (error) {
    throw new KeyError(
      'api-key',
      `The API key file ${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'}). Mount the Secret that holds it.`,
    )
  }
  const text = content.toString('utf8').trim()
  // No token of RFC 6750 has quotes.
  if (!/^[\x21-\x7e]{8,512}$/.test(text) || /["'`]/.test(text))
    throw new KeyError(
      'api-key',
      `The API key file ${path} does not hold an API key, one line of printable characters${wrongShape(content)}.`,
    )
  return new Secret(text)
}
