import { encodeAbiParameters, keccak256, parseTransaction, toHex } from 'viem'
import { decodeDepositCalldata, depositEventTopic } from '../../src/chains/ethereum/deposit.ts'
import { fleetDeposit } from '../fleet-object.ts'
import { blockHash, CHAIN_ID, DEPOSIT_CONTRACT, PAYER } from '../network.ts'

type Json = Readonly<Record<string, unknown>>

/**
 * A chain that mines each transaction at once, in the order of nonces, into a block of its own that is final; or, with `blockMs`, whatever its pool holds
 * into a block every so many ms, `finality` blocks before it is final. Every transaction comes from PAYER.
 */
export interface BenchChain {
  call(method: string, params: readonly unknown[]): unknown
  readonly mined: number
  /** Sent, and not final. */
  readonly inFlight: number
}
export interface BenchChainOptions {
  /** So many deposits of the settled fleet are in it already. */
  readonly fleet: number
  readonly blockMs?: number
  readonly finality?: number
}

interface Mined {
  readonly transaction: Json
  readonly receipt: Json
  readonly log: Json
}

const littleEndian = (value: bigint): `0x${string}` => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(value)
  return `0x${bytes.toString('hex')}`
}
const fiveBytes = [{ type: 'bytes' }, { type: 'bytes' }, { type: 'bytes' }, { type: 'bytes' }, { type: 'bytes' }] as const
const twoWords = [{ type: 'bytes' }] as const

export function createBenchChain({ fleet, blockMs, finality = 0 }: BenchChainOptions): BenchChain {
  /** By nonce. */
  const mined: Mined[] = []
  /** How many transactions the chain has up to each block: the first is the genesis. */
  const counts: number[] = [0]
  const pool = new Map<number, { readonly raw: `0x${string}`; readonly hash: string }>()
  const byHash = new Map<string, Mined>()
  const latest = (): number => counts.length - 1
  const final = (): number => Math.max(0, latest() - finality)
  const countAt = (block: number): number => counts[Math.min(block, latest())] ?? 0

  function include(hash: string, call: { readonly data: `0x${string}`; readonly value: bigint; readonly gas: bigint }): void {
    const nonce = mined.length
    const { pubkey, withdrawalCredentials, signature } = decodeDepositCalldata(call.data)
    const at = { blockNumber: toHex(counts.length), blockHash: blockHash(counts.length) }
    const log = {
      address: DEPOSIT_CONTRACT,
      topics: [depositEventTopic],
      data: encodeAbiParameters(fiveBytes, [
        pubkey,
        withdrawalCredentials,
        littleEndian(call.value / 1_000_000_000n),
        signature,
        littleEndian(BigInt(nonce)),
      ]),
      ...at,
      transactionHash: hash,
      removed: false,
    }
    const found = {
      transaction: { hash, from: PAYER, to: DEPOSIT_CONTRACT, nonce: toHex(nonce), input: call.data, value: toHex(call.value), ...at },
      receipt: {
        transactionHash: hash,
        from: PAYER,
        status: '0x1',
        ...at,
        gasUsed: toHex(call.gas / 2n),
        effectiveGasPrice: toHex(1_000_000_001),
        logs: [log],
      },
      log,
    }
    mined.push(found)
    byHash.set(hash, found)
  }
  for (let index = 0; index < fleet; index++) {
    const { hash, data } = fleetDeposit(index)
    include(hash, { data, value: 32n * 10n ** 18n, gas: 72_000n })
    counts.push(mined.length)
  }

  function mine(): void {
    for (let next = pool.get(mined.length); next !== undefined; next = pool.get(mined.length)) {
      pool.delete(mined.length)
      const { data = '0x', value = 0n, gas = 0n } = parseTransaction(next.raw)
      include(next.hash, { data, value, gas })
      if (blockMs === undefined) counts.push(mined.length)
    }
    if (blockMs !== undefined) counts.push(mined.length)
  }
  if (blockMs !== undefined) setInterval(mine, blockMs).unref()

  const block = (number: number): Json => ({
    number: toHex(number),
    hash: blockHash(number),
    baseFeePerGas: toHex(1_000_000_000),
  })

  function send(raw: `0x${string}`): string {
    const { nonce = 0, chainId } = parseTransaction(raw)
    if (chainId !== CHAIN_ID) throw new Error('another chain id')
    if (nonce < mined.length) throw new Error('nonce too low')
    const hash = keccak256(raw)
    if (pool.get(nonce)?.hash === hash) throw new Error('already known')
    pool.set(nonce, { raw, hash })
    if (blockMs === undefined) mine()
    return hash
  }

  const pending = (hash: string): Json | null => {
    for (const [nonce, entry] of pool) {
      if (entry.hash !== hash) continue
      const { data = '0x', value = 0n } = parseTransaction(entry.raw)
      return { hash, from: PAYER, to: DEPOSIT_CONTRACT, nonce: toHex(nonce), input: data, value: toHex(value), blockNumber: null }
    }
    return null
  }

  const numberOf = (at: unknown): number => {
    if (at === 'finalized') return final()
    return typeof at === 'string' && at.startsWith('0x') ? Number(at) : latest()
  }
  const methods: Readonly<Record<string, (params: readonly unknown[]) => unknown>> = {
    eth_chainId: () => toHex(CHAIN_ID),
    eth_blockNumber: () => toHex(latest()),
    eth_getBlockByNumber: ([at]) => block(numberOf(at)),
    eth_getTransactionCount: ([, at]) => toHex(at === 'pending' ? mined.length + pool.size : countAt(numberOf(at))),
    // No address that is paid is a contract.
    eth_getCode: () => '0x',
    eth_getBalance: () => toHex(10n ** 25n),
    eth_maxPriorityFeePerGas: () => toHex(1_000_000_000),
    eth_gasPrice: () => toHex(2_000_000_000),
    eth_estimateGas: () => toHex(60_000),
    eth_sendRawTransaction: ([raw]) => send(raw as `0x${string}`),
    eth_getTransactionByHash: ([hash]) => byHash.get(hash as string)?.transaction ?? pending(hash as string),
    eth_getTransactionReceipt: ([hash]) => byHash.get(hash as string)?.receipt ?? null,
    eth_getLogs: ([filter]) => {
      const { fromBlock, toBlock } = filter as { fromBlock: string; toBlock: string }
      return mined.slice(countAt(Number(fromBlock) - 1), countAt(Number(toBlock))).map(({ log }) => log)
    },
    // get_deposit_count() at a block: every transaction makes one.
    eth_call: ([, at]) => encodeAbiParameters(twoWords, [littleEndian(BigInt(countAt(numberOf(at))))]),
  }
  return {
    call(method, params) {
      const answer = methods[method]
      if (answer === undefined) throw new Error(`the method ${method} does not exist`)
      return answer(params)
    },
    get mined() {
      return mined.length
    },
    get inFlight() {
      return mined.length + pool.size - countAt(final())
    },
  }
}
