import { bytesOf, hexOf, rpc } from './bytes.ts'

/** Of the deposit contract, read from its log. Amounts in gwei. */
export interface Deposit {
  readonly pubkey: string
  readonly credentials: string
  readonly amountGwei: bigint
  readonly block: number
  readonly hash: string
}

/** Of the EIP-7002 contract, read from its log. An amount of 0 is a full exit. */
export interface ExecutionRequest {
  readonly source: string
  readonly pubkey: string
  readonly amountGwei: bigint
  readonly block: number
  readonly hash: string
}

/** A mined transaction of a signer. */
export interface Sent {
  readonly hash: string
  readonly from: string
  readonly to: string
  readonly valueWei: bigint
  readonly input: string
  readonly nonce: number
  readonly maxFeePerGasWei: bigint
  readonly block: number
  /** Seconds since 1970. */
  readonly blockTime: number
}

export interface Counts {
  readonly latest: number
  readonly pending: number
  readonly final: number
}

/** What a node's raw answers say. Addresses and hex texts in lower case. */
export interface EthereumFacts {
  readonly finalBlock: number
  readonly deposits: readonly Deposit[]
  readonly requests: readonly ExecutionRequest[]
}

/** By public key: what the beacon chain has. Of a deposit whose turn has not come, `queued`. */
export interface BeaconFacts {
  readonly validators: ReadonlyMap<string, { readonly credentials: string; readonly status: string }>
  readonly queued: ReadonlySet<string>
}

export interface EthereumSource {
  /** A node that nothing is wrong with. */
  readonly rpcUrl: string
  readonly depositContract: string
  /** EIP-7002. */
  readonly requestContract: string
}

interface RawLog {
  readonly data: string
  readonly blockNumber: string
  readonly transactionHash: string
}

/** The contracts' logs, all of them, and how far the chain is final. The final block is read last: what is final then was there before. */
export async function readEthereum({ rpcUrl, depositContract, requestContract }: EthereumSource): Promise<EthereumFacts> {
  const logsOf = (address: string) => rpc<readonly RawLog[]>(rpcUrl, 'eth_getLogs', [{ address, fromBlock: '0x0', toBlock: 'latest' }])
  const [deposits, requests] = await Promise.all([logsOf(depositContract), logsOf(requestContract)])
  const { number } = await rpc<{ readonly number: string }>(rpcUrl, 'eth_getBlockByNumber', ['finalized', false])
  return { finalBlock: Number(number), deposits: deposits.map(decodeDeposit), requests: requests.map(decodeRequest) }
}

/** DepositEvent: five byte strings, as the ABI lays them out (an offset each, then length and content); the numbers in them are little-endian. */
export function decodeDeposit({ data, blockNumber, transactionHash }: RawLog): Deposit {
  const bytes = bytesOf(data)
  const word = (at: number): number => Number(BigInt(hexOf(bytes.subarray(at, at + 32))))
  const field = (index: number): Buffer => {
    const at = word(32 * index)
    return bytes.subarray(at + 32, at + 32 + word(at))
  }
  return {
    pubkey: hexOf(field(0)),
    credentials: hexOf(field(1)),
    amountGwei: field(2).readBigUInt64LE(),
    block: Number(blockNumber),
    hash: transactionHash.toLowerCase(),
  }
}

/** The log of EIP-7002: source address (20 bytes), public key (48), amount (8, big-endian). */
export function decodeRequest({ data, blockNumber, transactionHash }: RawLog): ExecutionRequest {
  const bytes = bytesOf(data)
  return {
    source: hexOf(bytes.subarray(0, 20)),
    pubkey: hexOf(bytes.subarray(20, 68)),
    amountGwei: bytes.readBigUInt64BE(68),
    block: Number(blockNumber),
    hash: transactionHash.toLowerCase(),
  }
}

interface RawBlock {
  readonly timestamp: string
  readonly transactions: readonly {
    readonly hash: string
    readonly from: string
    readonly to: string | null
    readonly value: string
    readonly input: string
    readonly nonce: string
    readonly maxFeePerGas?: string
    readonly gasPrice?: string
  }[]
}

/**
 * Reads every mined transaction of an address, block by block; what is final is read once. A block that the node has lost, as anvil may the last one before it
 * is killed, has none: whatever the address sent in it is missed by its nonce.
 */
export function createSentReader(rpcUrl: string, from: string): () => Promise<readonly Sent[]> {
  const final: Sent[] = []
  let next = 0
  const sentIn = async (number: number): Promise<readonly Sent[]> => {
    const block = await rpc<RawBlock | null>(rpcUrl, 'eth_getBlockByNumber', [`0x${number.toString(16)}`, true])
    return (block?.transactions ?? [])
      .filter((one) => one.from.toLowerCase() === from.toLowerCase())
      .map((one) => ({
        hash: one.hash.toLowerCase(),
        from: one.from.toLowerCase(),
        to: (one.to ?? '').toLowerCase(),
        valueWei: BigInt(one.value),
        input: one.input.toLowerCase(),
        nonce: Number(one.nonce),
        maxFeePerGasWei: BigInt(one.maxFeePerGas ?? one.gasPrice ?? '0x0'),
        block: number,
        blockTime: Number(block?.timestamp),
      }))
  }
  return async () => {
    const { number } = await rpc<{ readonly number: string }>(rpcUrl, 'eth_getBlockByNumber', ['finalized', false])
    for (; next <= Number(number); next++) final.push(...(await sentIn(next)))
    const newer: Sent[] = []
    const latest = Number(await rpc<string>(rpcUrl, 'eth_blockNumber'))
    for (let block = next; block <= latest; block++) newer.push(...(await sentIn(block)))
    return [...final, ...newer]
  }
}

/** How many transactions of an address the chain counts. */
export async function readCounts(rpcUrl: string, address: string): Promise<Counts> {
  const count = async (block: string) => Number(await rpc<string>(rpcUrl, 'eth_getTransactionCount', [address, block]))
  return { final: await count('finalized'), latest: await count('latest'), pending: await count('pending') }
}

/** The validators and the queue of deposits, by the Beacon API. */
export async function readBeacon(beaconUrl: string): Promise<BeaconFacts> {
  const get = async <T>(path: string): Promise<T> => {
    const answer = await fetch(`${beaconUrl}/eth/v1/beacon/states/head/${path}`, { signal: AbortSignal.timeout(20_000) })
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`)
    return ((await answer.json()) as { readonly data: T }).data
  }
  const validators =
    await get<
      readonly { readonly status: string; readonly validator: { readonly pubkey: string; readonly withdrawal_credentials: string } }[]
    >('validators')
  const queued = await get<readonly { readonly pubkey: string }[]>('pending_deposits')
  return {
    validators: new Map(
      validators.map(({ status, validator }) => [
        validator.pubkey.toLowerCase(),
        { credentials: validator.withdrawal_credentials.toLowerCase(), status },
      ]),
    ),
    queued: new Set(queued.map(({ pubkey }) => pubkey.toLowerCase())),
  }
}
