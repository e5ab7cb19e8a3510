import { randomBytes } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toHex } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import type { Address, Hex } from '../../src/chains/ethereum/chain.ts'
import type { SignedDeposit } from '../../src/chains/ethereum/deposit.ts'
import { callRpc } from '../chains/json-rpc.ts'
import { freePort } from '../cluster/ports.ts'
import { type RunningProcess, startProcess } from '../cluster/process.ts'
import { runToEnd } from '../cluster/run.ts'
import { type DevnetAssets, findDevnetAssets } from './assets.ts'
import { DEVNET_CHAIN_ID, executionGenesis } from './genesis.ts'
import { depositFile, type GenesisValidator, signGenesisDeposit } from './interop.ts'

/** The development mnemonic of Hardhat and anvil: its keys are public. */
const MNEMONIC = 'test test test test test test test test test test test junk'
/** Of config.yml. */
export const DEVNET_FORK_VERSION: Hex = '0x10000038'
const VALIDATORS = 16
const FEE_RECIPIENT = '0x00000000000000000000000000000000feefeefe'

export interface DevnetOptions {
  /** Found, or built, by `findDevnetAssets` when left out. */
  readonly assets?: DevnetAssets
  /** Where it keeps its files and logs. Default: a temporary folder, removed by `stop`. */
  readonly dir?: string
  /** Funded accounts; default 6. */
  readonly accounts?: number
  readonly log?: (line: string) => void
  readonly signal?: AbortSignal
}

export interface DevnetAccount {
  readonly address: Address
  readonly privateKey: Hex
}

export interface Devnet {
  /** JSON-RPC of geth: eth, net, web3, debug, txpool. */
  readonly url: string
  /** Beacon API of Prysm. */
  readonly beaconUrl: string
  /** gRPC of Prysm's beacon node, for a validator client of one's own. */
  readonly beaconRpc: string
  readonly chainId: number
  readonly depositContract: Address
  readonly genesisForkVersion: Hex
  readonly accounts: readonly DevnetAccount[]
  /** Active from genesis. Of the last four, 12 and 13 have 0x01, 14 and 15 0x02 credentials of account 1; the others belong to nobody. */
  readonly genesisValidators: readonly (GenesisValidator & SignedDeposit)[]
  readonly assets: DevnetAssets
  readonly dir: string
  pids(): readonly number[]
  stop(): Promise<void>
}

/**
 * Starts a real proof-of-stake network, geth with Prysm's beacon node and validator client, on free ports of 127.0.0.1: slots of 2 s, epochs of
 * 4 slots, Electra from genesis, 16 validators. Resolves when the first block is there, after 15 to 30 s.
 * @throws with the failing part's last lines.
 */
export async function startDevnet(options: DevnetOptions = {}): Promise<Devnet> {
  const log = options.log ?? ((line: string) => console.error(line))
  const signal = options.signal ?? AbortSignal.timeout(60 * 60_000)
  const assets = options.assets ?? (await findDevnetAssets({ env: process.env, log, signal }))
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'staking-devnet-'))
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const at = (name: string): string => join(dir, name)
  const running: RunningProcess[] = []
  const stop = async (): Promise<void> => {
    // The validator client first, the execution client last: each would complain of the next one's absence.
    for (const each of running.toReversed()) await each.stop(5_000)
    if (options.dir === undefined) rmSync(dir, { recursive: true, force: true, maxRetries: 3 })
  }
  try {
    const accounts = Array.from({ length: options.accounts ?? 6 }, (_, addressIndex): DevnetAccount => {
      const account = mnemonicToAccount(MNEMONIC, { addressIndex })
      return { address: account.address, privateKey: toHex(account.getHdKey().privateKey ?? new Uint8Array()) }
    })
    const owner = accounts[1]?.address ?? (`0x${'11'.repeat(20)}` as const)
    const genesisValidators = Array.from({ length: VALIDATORS }, (_, index) => {
      const validator: GenesisValidator = {
        index,
        type: index >= 14 ? '0x02' : '0x01',
        withdrawalAddress: index >= 12 ? owner : (`0x${'22'.repeat(20)}` as const),
        amountGwei: 32_000_000_000n,
      }
      return { ...validator, ...signGenesisDeposit(validator, DEVNET_FORK_VERSION) }
    })
    await makeGenesis({ assets, dir, accounts, genesisValidators, signal })

    const [http, auth, p2p, rpc, rest, metrics, tcp, udp, quic, validatorRpc, validatorHttp, validatorMetrics] = await ports(12)
    writeFileSync(at('jwt.hex'), randomBytes(32).toString('hex'), { mode: 0o600 })
    writeFileSync(at('geth.toml'), `[Node.P2P]\nListenAddr = "127.0.0.1:${p2p}"\n`)
    const url = `http://127.0.0.1:${http}`
    const beaconUrl = `http://127.0.0.1:${rest}`
    const beaconRpc = `127.0.0.1:${rpc}`
    const start = async (name: string, command: string, args: readonly string[], readyWhen: () => Promise<boolean>): Promise<void> => {
      running.push(
        await startProcess({ name, command, args, logFile: at(`${name}.log`), scratch: dir, readyTimeoutMs: 120_000, readyWhen }),
      )
    }
    log('devnet: starting geth')
    await start(
      'geth',
      assets.geth,
      [
        ...[
          '--datadir',
          at('geth'),
          '--state.scheme',
          'hash',
          '--networkid',
          String(DEVNET_CHAIN_ID),
          '--syncmode',
          'full',
          '--gcmode',
          'archive',
        ],
        ...['--nodiscover', '--maxpeers', '0', '--config', at('geth.toml'), '--ipcdisable'],
        ...['--http', '--http.addr', '127.0.0.1', '--http.port', String(http), '--http.api', 'eth,net,web3,debug,txpool'],
        ...['--authrpc.addr', '127.0.0.1', '--authrpc.port', String(auth), '--authrpc.jwtsecret', at('jwt.hex')],
      ],
      async () => Number(await callRpc<Hex>(url, 'eth_chainId')) === DEVNET_CHAIN_ID,
    )
    log('devnet: starting the beacon node')
    await start(
      'beacon-chain',
      assets['beacon-chain'],
      [
        ...[
          '--datadir',
          at('beacon'),
          '--accept-terms-of-use',
          '--chain-config-file',
          at('config.yml'),
          '--genesis-state',
          at('genesis.ssz'),
        ],
        ...['--contract-deployment-block', '0', '--chain-id', String(DEVNET_CHAIN_ID), '--network-id', String(DEVNET_CHAIN_ID)],
        ...['--execution-endpoint', `http://127.0.0.1:${auth}`, '--jwt-secret', at('jwt.hex')],
        ...['--sync-from', 'head', '--min-sync-peers', '0', '--no-discovery', '--p2p-max-peers', '0', '--p2p-local-ip', '127.0.0.1'],
        ...[
          '--p2p-tcp-port',
          String(tcp),
          '--p2p-udp-port',
          String(udp),
          '--p2p-quic-port',
          String(quic),
          '--minimum-peers-per-subnet',
          '0',
        ],
        ...['--rpc-host', '127.0.0.1', '--rpc-port', String(rpc), '--http-host', '127.0.0.1', '--http-port', String(rest)],
        ...['--monitoring-host', '127.0.0.1', '--monitoring-port', String(metrics), '--suggested-fee-recipient', FEE_RECIPIENT],
      ],
      async () => (await fetch(`${beaconUrl}/eth/v1/beacon/genesis`)).ok,
    )
    log('devnet: starting the validators, and waiting for the first block')
    await start(
      'validator',
      assets.validator,
      [
        ...['--datadir', at('validator'), '--accept-terms-of-use', '--chain-config-file', at('config.yml')],
        ...['--interop-num-validators', String(VALIDATORS), '--interop-start-index', '0', '--beacon-rpc-provider', beaconRpc],
        ...['--suggested-fee-recipient', FEE_RECIPIENT, '--rpc-host', '127.0.0.1', '--rpc-port', String(validatorRpc)],
        ...['--http-host', '127.0.0.1', '--http-port', String(validatorHttp)],
        ...['--monitoring-host', '127.0.0.1', '--monitoring-port', String(validatorMetrics)],
      ],
      async () => Number(await callRpc<Hex>(url, 'eth_blockNumber')) > 0,
    )
    return {
      url,
      beaconUrl,
      beaconRpc,
      chainId: DEVNET_CHAIN_ID,
      depositContract: '0x00000000219ab540356cBB839Cbe05303d7705Fa',
      genesisForkVersion: DEVNET_FORK_VERSION,
      accounts,
      genesisValidators,
      assets,
      dir,
      pids: () => running.map(({ pid }) => pid),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Both layers' genesis: prysmctl makes the beacon state, and writes the time and hash of the execution layer's genesis that belongs to it. */
async function makeGenesis(options: {
  readonly assets: DevnetAssets
  readonly dir: string
  readonly accounts: readonly DevnetAccount[]
  readonly genesisValidators: readonly SignedDeposit[]
  readonly signal: AbortSignal
}): Promise<void> {
  const { assets, dir, accounts, genesisValidators, signal } = options
  const at = (name: string): string => join(dir, name)
  copyFileSync(join(import.meta.dirname, 'config.yml'), at('config.yml'))
  writeFileSync(
    at('in.json'),
    executionGenesis(
      accounts.map(({ address }) => address),
      100_000n * 10n ** 18n,
    ),
  )
  writeFileSync(at('genesis-deposits.json'), depositFile(genesisValidators))
  const run = async (command: string, args: readonly string[]): Promise<void> => {
    const { code, stdout, stderr } = await runToEnd({ command, args, signal })
    if (code !== 0)
      throw new Error(`${args.slice(0, 2).join(' ')} failed:\n${`${stdout}${stderr}`.trimEnd().split('\n').slice(-15).join('\n')}`)
  }
  await run(assets.prysmctl, [
    ...['testnet', 'generate-genesis', '--fork', 'electra', '--num-validators', String(VALIDATORS)],
    ...['--deposit-json-file', at('genesis-deposits.json'), '--genesis-time-delay', '10', '--chain-config-file', at('config.yml')],
    ...['--geth-genesis-json-in', at('in.json'), '--geth-genesis-json-out', at('el-genesis.json'), '--output-ssz', at('genesis.ssz')],
  ])
  await run(assets.geth, ['init', '--datadir', at('geth'), '--state.scheme', 'hash', at('el-genesis.json')])
}

/** So many different free ports. */
async function ports(count: number): Promise<readonly number[]> {
  const found = new Set<number>()
  while (found.size < count) found.add(await freePort())
  return [...found]
}
