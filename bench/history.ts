import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeAbiParameters, toHex } from 'viem'
import type { Hex } from '../src/chains/ethereum/chain.ts'
import { readCheckpointFile, writeCheckpointFile } from '../src/chains/ethereum/checkpoint-file.ts'
import { depositDataRoot } from '../src/chains/ethereum/deposit.ts'
import { decodeDepositLog, depositEventTopic } from '../src/chains/ethereum/deposit-abi.ts'
import { createDepositHistory, type DepositHistory } from '../src/chains/ethereum/deposit-history.ts'
import type { DepositNode } from '../src/chains/ethereum/deposit-node.ts'
import { createDepositTree } from '../src/chains/ethereum/deposit-tree.ts'
import { ethereumNetworkConfig } from '../src/chains/ethereum/networks.ts'
import type { RawLog } from '../src/chains/ethereum/rpc-formats.ts'
import { gwei } from '../src/lib/amounts.ts'
import { systemClock } from '../src/lib/clock.ts'
import { createWorld } from '../src/operator/testing/world.ts'

export interface HistoryResult {
  readonly deposits: number
  readonly fileBytes: number
  /** From the start until a key is known to be new, all deposits since the file included. */
  readonly firstAnswerMs: number
  /** From the start until the first transaction is signed: the same, and all that is verified of a stake. */
  readonly firstSignatureMs: number
  readonly lookupMs: number
  /** What the process holds more for it, garbage collected. */
  readonly heldBytes: number
  /** The most that it held meanwhile. */
  readonly peakBytes: number
}

const littleEndian = (value: number): Hex => toHex(Buffer.from(BigInt(value).toString(16).padStart(16, '0'), 'hex').reverse())
const bytes = (text: string, length: number): Buffer =>
  Buffer.concat(
    Array.from({ length: Math.ceil(length / 32) }, (_, part) => createHash('sha256').update(`${text} ${part}`).digest()),
  ).subarray(0, length)
const keyOf = (index: number): Hex => toHex(bytes(`key ${index}`, 48))

function logOf(index: number, block: number): RawLog {
  const data = encodeAbiParameters(
    Array.from({ length: 5 }, () => ({ type: 'bytes' }) as const),
    [keyOf(index), `0x${'01'.repeat(32)}`, littleEndian(32_000_000_000), `0x${'02'.repeat(96)}`, littleEndian(index)],
  )
  const transactionHash = toHex(bytes(`transaction ${index}`, 32))
  return { address: `0x${'00'.repeat(20)}` as const, topics: [depositEventTopic], data, blockNumber: BigInt(block), transactionHash }
}

/** An operator in memory that asks this history. @returns when it signs first */
async function firstSignature(depositsFor: (key: Hex) => ReturnType<DepositHistory['depositsFor']>): Promise<number> {
  const world = createWorld()
  const { chain } = world.chain
  const own = chain.depositsFor.bind(chain)
  chain.depositsFor = async (key, signal) => [...(await depositsFor(key)), ...(await own(key, signal))]
  let signedAt: number | undefined
  const operator = world.start((point) => {
    if (point === 'after keys.signTransaction') signedAt ??= performance.now()
  })
  world.addSigner()
  world.addStake()
  await world.settle(operator)
  if (signedAt === undefined) throw new Error('nothing was signed')
  return signedAt
}

/**
 * A synthetic history of so many deposits in a file, and so many more since: the chain answers at once, so that what is measured is ours. The tree of what is in
 * the file is made up, and the contract goes on from it.
 */
export async function benchHistory(
  size: { readonly deposits: number; readonly since: number },
  say: (line: string) => void,
): Promise<HistoryResult> {
  const { deposits, since } = size
  const dir = mkdtempSync(join(tmpdir(), 'staking-bench-history-'))
  try {
    say(`history: making ${deposits} deposits`)
    const [block, perBlock] = [20_000_000, 4]
    const network = ethereumNetworkConfig.parse({
      name: 'mainnet',
      chain: 'Ethereum',
      rpcUrls: ['http://127.0.0.1:1'],
      depositHistoryFile: join(dir, 'history'),
    })
    const entries = new Uint32Array(deposits * 3)
    for (let index = 0; index < deposits; index += 1) {
      // As evenly as keys are, in order: what is looked for is found by halves all the same.
      entries[index * 3] = Math.floor((index / deposits) * 2 ** 32)
      entries[index * 3 + 1] = (index * 2_654_435_761) >>> 0
      entries[index * 3 + 2] = 11_052_984 + (index % 8_000_000)
    }
    const branch = Array.from({ length: 32 }, (_, level) => toHex(bytes(`branch ${level}`, 32)))
    const blockHash = toHex(bytes('block', 32))
    const identity = { chainId: network.chainId, contract: network.depositContractAddress.toLowerCase() as Hex }
    writeCheckpointFile(join(dir, 'history'), {
      ...identity,
      ...{ block: BigInt(block), blockHash, lastDepositBlock: BigInt(block), count: BigInt(deposits), branch, entries },
    })
    const logs = Array.from({ length: since }, (_, number) => logOf(deposits + number, block + 1 + Math.floor(number / perBlock)))
    const latest = block + Math.ceil(since / perBlock) + 100
    const tree = createDepositTree({ count: BigInt(deposits), branch })
    for (const log of logs) tree.add(depositDataRoot({ ...decodeDepositLog(log), amountGwei: gwei(32_000_000_000n) }))
    const root = tree.root()
    const node: DepositNode = {
      head: async () => ({ latest: BigInt(latest), hash: toHex(bytes('head', 32)), settled: BigInt(latest - 64) }),
      logs: async (from, to) => logs.filter(({ blockNumber }) => blockNumber >= from && blockNumber <= to),
      depositCount: async () => BigInt(deposits + since),
      depositRoot: async () => root,
      blockHash: async () => blockHash,
    }

    const held = (): number => {
      globalThis.gc?.()
      const { heapUsed, arrayBuffers } = process.memoryUsage()
      return heapUsed + arrayBuffers
    }
    const before = held()
    let peak = 0
    const watch = (): void => {
      const { heapUsed, arrayBuffers } = process.memoryUsage()
      peak = Math.max(peak, heapUsed + arrayBuffers - before)
    }
    const timer = setInterval(watch, 5)
    const started = performance.now()
    const checkpoint = readCheckpointFile(network, undefined)
    watch()
    const { signal } = new AbortController()
    const history = createDepositHistory({
      first: (use) => use(node),
      fromBlock: 11_052_984n,
      network: 'mainnet',
      clock: systemClock,
      waitMs: 60_000,
      signal,
      checkpoint,
    })
    const none = await history.depositsFor(keyOf(-1), signal)
    const firstAnswerMs = performance.now() - started
    watch()
    const firstSignatureMs = (await firstSignature((key) => history.depositsFor(key, signal))) - started
    watch()
    clearInterval(timer)
    if (checkpoint === undefined || none.length > 0) throw new Error('the history was not used')
    const again = performance.now()
    for (let number = 0; number < 1_000; number += 1) await history.depositsFor(keyOf(-2 - number), signal)
    const lookupMs = (performance.now() - again) / 1_000
    const heldBytes = held() - before
    // It is held until here.
    if ((await history.depositsFor(keyOf(deposits), signal)).length !== 1) throw new Error('a deposit since the file was not found')
    return { deposits, fileBytes: entries.byteLength, firstAnswerMs, firstSignatureMs, lookupMs, heldBytes, peakBytes: peak }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
