import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { toHex } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import type { Address, Hex } from '../../src/chains/ethereum/chain.ts'
import { freePort } from '../cluster/ports.ts'
import { type RunningProcess, startProcess } from '../cluster/process.ts'
import { saveAnvilState } from './anvil-state.ts'
import { DEPOSIT_CONTRACT, decodeDeposit, littleEndian, type RpcLog, type SeenDeposit } from './deposit-contract.ts'
import { callRpc } from './json-rpc.ts'

/** The development mnemonic of Hardhat and anvil: its keys are public. */
const MNEMONIC = 'test test test test test test test test test test test junk'
export const ANVIL_CHAIN_ID = 31337

export interface AnvilOptions {
  /**
   * `automine` (default): a block for each transaction, shortly after `eth_sendRawTransaction` answered. A number: a block every so many seconds, full or empty, as a real chain has them.
   * `manual`: blocks come from `mine` only.
   */
  readonly mining?: 'automine' | 'manual' | number
  /** Number of funded accounts; default 10. */
  readonly accounts?: number
  /** ETH of each; default 100,000. */
  readonly balanceEth?: number
  /**
   * Whether the states of earlier blocks outlive `crash`; default true. Without them what is final can be asked about again a moment after `restart`, as of a real
   * node that was killed; with them the file holds each state as a whole, and takes minutes to write after an hour of blocks.
   */
  readonly keepsStates?: boolean
  /** Where the chain is kept over `stop` and a later start. Default: nowhere. */
  readonly stateFile?: string
  readonly logFile?: string
  /** More flags. */
  readonly extra?: readonly string[]
}

export interface AnvilAccount {
  readonly address: Address
  readonly privateKey: Hex
}

export interface Anvil {
  /** http://127.0.0.1:<port>; the same over `crash` and `restart`. */
  readonly url: string
  readonly chainId: number
  readonly depositContract: Address
  readonly accounts: readonly AnvilAccount[]
  pid(): number
  rpc<T>(method: string, params?: readonly unknown[]): Promise<T>
  /** Mines blocks. Two on top of a block make it `finalized` (see startAnvil). */
  mine(blocks?: number): Promise<void>
  blockNumber(): Promise<number>
  finalizedBlockNumber(): Promise<number>
  /**
   * Replaces the last `depth` blocks by empty ones, or by ones with the given signed transactions (each with the index of its block, from 0). What was in
   * the old blocks is neither in the chain nor in the pool afterwards: whoever wants it there sends it again.
   */
  reorg(depth: number, transactions?: readonly { readonly raw: Hex; readonly block: number }[]): Promise<void>
  /** Takes a transaction out of the pool, as nodes do with those that pay too little. */
  dropTransaction(hash: Hex): Promise<void>
  /** Of the next block only. anvil then throws what pays less out of its pool (geth would keep it waiting), and refuses it until the base fee is lower. */
  setNextBlockBaseFee(wei: bigint): Promise<void>
  setAutomine(on: boolean): Promise<void>
  setBalance(address: Address, wei: bigint): Promise<void>
  balance(address: Address): Promise<bigint>
  transactionCount(address: Address, block?: 'latest' | 'pending'): Promise<number>
  /** Hashes in the pool. */
  pending(): Promise<readonly Hex[]>
  /** The deposit contract's own count. */
  depositCount(): Promise<number>
  /** Every deposit in the chain, in order. */
  deposits(): Promise<readonly SeenDeposit[]>
  /** Ends the node at once (SIGKILL). The blocks are kept, the pool is lost, as with a node that lost its power. */
  crash(): Promise<void>
  /** Starts it again with the same blocks on the same port; crashes it first if it runs. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** Within this a block that was begun is stored, in ms. */
const STORED_MS = 300

/**
 * Starts a real anvil with the real deposit contract and the EIP-7002 and EIP-7251 contracts. With one slot an epoch, `safe` is one block
 * below `latest` and `finalized` two, so that finality moves with the blocks.
 */
export async function startAnvil(options: AnvilOptions = {}): Promise<Anvil> {
  const { mining = 'automine', accounts: count = 10, balanceEth = 100_000, keepsStates = true, extra = [] } = options
  const dir = mkdtempSync(join(tmpdir(), 'staking-anvil-'))
  const stateFile = options.stateFile ?? join(dir, 'state.json')
  const logFile = options.logFile ?? join(dir, 'anvil.log')
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const rpc = <T>(method: string, params: readonly unknown[] = []): Promise<T> => callRpc<T>(url, method, params)

  const start = (): Promise<RunningProcess> =>
    startProcess({
      name: 'anvil',
      command: anvilBinary(),
      args: [
        // anvil takes a genesis or a state, not both; a state holds what the genesis gave.
        ...(existsSync(stateFile) ? ['--load-state', stateFile] : ['--init', join(import.meta.dirname, 'ethereum-genesis.json')]),
        ...['--hardfork', 'osaka', '--chain-id', String(ANVIL_CHAIN_ID), '--slots-in-an-epoch', '1'],
        ...['--host', '127.0.0.1', '--port', String(port)],
        ...['--mnemonic', MNEMONIC, '--accounts', String(count), '--balance', String(balanceEth)],
        ...(mining === 'automine' ? [] : mining === 'manual' ? ['--no-mining'] : ['--block-time', String(mining)]),
        ...extra,
      ],
      logFile,
      scratch: dir,
      readyWhen: async () => Number(await rpc<Hex>('eth_chainId')) === ANVIL_CHAIN_ID,
    })
  const removeDir = (): void => rmSync(dir, { recursive: true, force: true })
  let node = await start().catch((error: unknown) => {
    removeDir()
    throw error
  })

  const blockNumber = async (): Promise<number> => Number(await rpc<Hex>('eth_blockNumber'))

  /**
   * Only a graceful end makes anvil write its state: ask for it instead, before every end. No block comes any more: of what is mined while a large state is written,
   * final blocks would be gone afterwards, as from no network.
   */
  const saveState = async (): Promise<void> => {
    if (mining === 'automine') await rpc('evm_setAutomine', [false])
    else await rpc('evm_setIntervalMining', [0])
    for (let time = 0; time < 5; time++) {
      // One that is being mined has its number before it is stored: a state that is written meanwhile lacks it.
      if (typeof mining === 'number') await sleep(STORED_MS)
      const before = await blockNumber()
      await saveAnvilState(url, stateFile, keepsStates)
      if ((await blockNumber()) === before) return
    }
    throw new Error('anvil goes on mining while its state is saved: blocks would be lost')
  }
  const crash = async (): Promise<void> => {
    await saveState()
    node.kill('SIGKILL')
    await node.exited
  }

  return {
    url,
    chainId: ANVIL_CHAIN_ID,
    depositContract: DEPOSIT_CONTRACT,
    accounts: Array.from({ length: count }, (_, addressIndex) => {
      const account = mnemonicToAccount(MNEMONIC, { addressIndex })
      return { address: account.address, privateKey: toHex(account.getHdKey().privateKey ?? new Uint8Array()) }
    }),
    pid: () => node.pid,
    rpc,
    mine: async (blocks = 1) => {
      await rpc('anvil_mine', [toHex(blocks)])
    },
    blockNumber,
    finalizedBlockNumber: async () => Number((await rpc<{ number: Hex }>('eth_getBlockByNumber', ['finalized', false])).number),
    reorg: async (depth, transactions = []) => {
      await rpc('anvil_reorg', [depth, transactions.map(({ raw, block }) => [raw, block])])
    },
    dropTransaction: async (hash) => {
      await rpc('anvil_dropTransaction', [hash])
    },
    setNextBlockBaseFee: async (wei) => {
      await rpc('anvil_setNextBlockBaseFeePerGas', [toHex(wei)])
    },
    setAutomine: async (on) => {
      await rpc('evm_setAutomine', [on])
    },
    setBalance: async (address, wei) => {
      await rpc('anvil_setBalance', [address, toHex(wei)])
    },
    balance: async (address) => BigInt(await rpc<Hex>('eth_getBalance', [address, 'latest'])),
    transactionCount: async (address, block = 'latest') => Number(await rpc<Hex>('eth_getTransactionCount', [address, block])),
    pending: async () => {
      const { pending, queued } = await rpc<Record<'pending' | 'queued', Record<string, Record<string, { hash: Hex }>>>>('txpool_content')
      return [pending, queued].flatMap((part) => Object.values(part).flatMap((byNonce) => Object.values(byNonce).map(({ hash }) => hash)))
    },
    depositCount: async () => {
      const answer = await rpc<Hex>('eth_call', [{ to: DEPOSIT_CONTRACT, data: '0x621fd130' }, 'latest'])
      // ABI `bytes`: offset, length 8, then the count in 8 bytes.
      return Number(littleEndian(`0x${answer.slice(2 + 128, 2 + 128 + 16)}`))
    },
    deposits: async () => {
      const logs = await rpc<readonly RpcLog[]>('eth_getLogs', [{ address: DEPOSIT_CONTRACT, fromBlock: '0x0', toBlock: 'latest' }])
      return logs.map(decodeDeposit)
    },
    crash,
    restart: async () => {
      if (node.alive()) await crash()
      node = await start()
      // Until the final block is one of those whose state is known again.
      if (!keepsStates) await rpc('anvil_mine', [toHex(3)])
    },
    stop: async () => {
      try {
        if (options.stateFile !== undefined && node.alive()) await saveState()
      } finally {
        await node.stop(3_000)
        removeDir()
      }
    },
  }
}

/** The program itself, not npm's JavaScript in front of it: signals must reach it, and its pid be the one we know. */
function anvilBinary(): string {
  const require = createRequire(import.meta.url)
  const arch = process.arch === 'x64' ? 'amd64' : process.arch
  const os = process.platform === 'win32' ? 'win32' : process.platform
  // The platform's package stands beside the wrapper's, or in its node_modules: resolve from there.
  const wrapper = createRequire(join(dirname(require.resolve('@foundry-rs/anvil/package.json')), 'package.json'))
  const name = `@foundry-rs/anvil-${os}-${arch}`
  try {
    return join(dirname(wrapper.resolve(`${name}/package.json`)), 'bin', os === 'win32' ? 'anvil.exe' : 'anvil')
  } catch (cause) {
    throw new Error(`anvil for ${os}-${arch} is not installed: npm install brings ${name} as an optional dependency`, { cause })
  }
}
