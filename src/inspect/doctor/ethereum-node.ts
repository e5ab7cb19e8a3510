import { z } from 'zod'
import type { EthereumNetworkConfig } from '../../chains/ethereum/networks.ts'
import { block, quantity } from '../../chains/ethereum/rpc-formats.ts'
import { sameHex } from '../../lib/hex.ts'
import { type RpcCall, RpcFailure } from '../../lib/json-rpc.ts'
import { type Finding, failed, ok, saying, warning } from './finding.ts'

/** What one node shows of its chain. */
export interface NodeView {
  readonly findings: readonly Finding[]
  readonly head: { readonly number: bigint; readonly final: { readonly number: bigint; readonly hash: string } | undefined } | undefined
}

const nobody = '0x0000000000000000000000000000000000000001'
const noHash = `0x${'00'.repeat(32)}`
/** get_deposit_count(): eight bytes as an ABI bytes, of the deposit contract alone. */
const getDepositCount = '0x621fd130'
/** A head that is older than this says that the node is behind, or that a clock is wrong, s. */
const OLDEST_HEAD_S = 180

/** Looks at one node alone, with calls that change nothing. @param now in ms since 1970 */
export async function lookAtEthereumNode(
  config: EthereumNetworkConfig,
  node: number,
  call: RpcCall,
  now: () => number,
  signal: AbortSignal,
): Promise<NodeView> {
  const about = `${config.name}, node ${node}`
  const findings: Finding[] = []
  const found = (finding: Finding) => findings.push(finding)
  let chainId: number
  try {
    chainId = Number(quantity.parse(await call('eth_chainId', [], signal)))
  } catch (error) {
    return {
      findings: [failed('node', about, `it does not answer which chain it serves: ${saying(error)}. Check its URL in the networks file`)],
      head: undefined,
    }
  }
  if (chainId !== config.chainId)
    return {
      findings: [
        failed(
          'node',
          about,
          `it serves chain id ${chainId}, and ${config.name} is ${config.chainId}: correct its URL in the networks file`,
        ),
      ],
      head: undefined,
    }
  if (config.genesisHash !== undefined) {
    const genesis = await block.safeParseAsync(await call('eth_getBlockByNumber', ['0x0', false], signal).catch(() => undefined))
    if (!genesis.success) found(warning('node', about, 'it does not show block 0: its genesis cannot be compared'))
    else if (!sameHex(genesis.data.hash, config.genesisHash))
      found(
        failed('node', about, `its genesis is ${genesis.data.hash}, and ${config.name} has ${config.genesisHash}: it serves another chain`),
      )
  }
  const head = await headOf(config, about, call, now, found, signal)
  if (head !== undefined) await methodsOf(config, about, call, head, found, signal)
  return { findings, head }
}

async function headOf(
  config: EthereumNetworkConfig,
  about: string,
  call: RpcCall,
  now: () => number,
  found: (finding: Finding) => void,
  signal: AbortSignal,
): Promise<NodeView['head']> {
  try {
    const latest = block.parse(await call('eth_getBlockByNumber', ['latest', false], signal))
    const ageS = latest.timestamp === undefined ? undefined : Math.round(now() / 1000) - latest.timestamp
    if (ageS !== undefined && ageS > OLDEST_HEAD_S)
      found(
        warning(
          'node',
          about,
          `its latest block ${latest.number} is ${ageS} s old: it is behind, the chain stands still, or this clock is wrong`,
        ),
      )
    else if (ageS !== undefined && ageS < -15)
      found(failed('node', about, `its latest block ${latest.number} is ${-ageS} s ahead of this machine's clock: set the clock (NTP)`))
    else found(ok('node', about, `it serves chain id ${config.chainId}, block ${latest.number}`))
    const tag = typeof config.confirmations === 'number' ? undefined : 'finalized'
    if (tag === undefined) return { number: latest.number, final: undefined }
    const final = block.safeParse(await call('eth_getBlockByNumber', [tag, false], signal))
    if (!final.success) {
      found(warning('node', about, 'it shows no finalized block yet: nothing is confirmed before it does'))
      return { number: latest.number, final: undefined }
    }
    if (latest.number - final.data.number > 160n)
      found(
        warning(
          'node',
          about,
          `its finalized block is ${latest.number - final.data.number} blocks behind its latest: the chain does not finalize, or the node is behind`,
        ),
      )
    return { number: latest.number, final: { number: final.data.number, hash: final.data.hash } }
  } catch (error) {
    found(failed('node', about, `it does not show its head: ${saying(error)}`))
    return undefined
  }
}

/** Every method that operator and service use, asked so that nothing comes of it. */
async function methodsOf(
  config: EthereumNetworkConfig,
  about: string,
  call: RpcCall,
  head: NonNullable<NodeView['head']>,
  found: (finding: Finding) => void,
  signal: AbortSignal,
): Promise<void> {
  const contract = config.depositContractAddress
  const at = `0x${(head.final?.number ?? head.number).toString(16)}`
  const latest = `0x${head.number.toString(16)}`
  const methods: readonly (readonly [method: string, params: readonly unknown[]])[] = [
    ['eth_getTransactionCount', [nobody, 'pending']],
    ['eth_getTransactionCount', [nobody, at]],
    ['eth_getBalance', [nobody, 'latest']],
    ['eth_getCode', [contract, 'latest']],
    ['eth_getStorageAt', [contract, '0x0', latest]],
    ['eth_getTransactionByHash', [noHash]],
    ['eth_getTransactionReceipt', [noHash]],
    ['eth_getBlockByHash', [noHash, false]],
    ['eth_getLogs', [{ address: contract, fromBlock: latest, toBlock: latest }]],
    ['eth_estimateGas', [{ from: nobody, to: nobody, value: '0x0' }]],
    ['eth_maxPriorityFeePerGas', []],
    // No bytes are no transaction: whatever serves the method refuses them.
    ['eth_sendRawTransaction', ['0x']],
  ]
  const refused: string[] = []
  for (const [method, params] of methods) {
    try {
      await call(method, params, signal)
    } catch (error) {
      if (isNotServed(error)) refused.push(method)
      else if (!(error instanceof RpcFailure) || error.kind !== 'node') found(warning('node', about, `${method}: ${saying(error)}`))
    }
  }
  if (refused.length > 0)
    found(
      failed('node', about, `it does not serve ${[...new Set(refused)].join(', ')}: have it served, or add an RPC URL of a node that does`),
    )
  await lookAtContract(config, about, call, found, signal)
}

/** Not served, or not to us. A node that knows the method refuses what is meaningless with another error. */
export const isNotServed = (error: unknown): boolean =>
  error instanceof RpcFailure && (error.kind === 'refused' || error.node?.code === -32601)

async function lookAtContract(
  config: EthereumNetworkConfig,
  about: string,
  call: RpcCall,
  found: (finding: Finding) => void,
  signal: AbortSignal,
): Promise<void> {
  const answer = z
    .string()
    .regex(/^0x[0-9a-f]{192}$/i)
    .safeParse(
      await call('eth_call', [{ to: config.depositContractAddress, data: getDepositCount }, 'latest'], signal).catch(() => undefined),
    )
  if (!answer.success) {
    found(
      failed(
        'node',
        about,
        `${config.depositContractAddress} does not answer as a deposit contract: check depositContractAddress of ${config.name}`,
      ),
    )
    return
  }
  const count = Buffer.from(answer.data.slice(130, 146), 'hex').readBigUInt64LE()
  found(ok('node', about, `the deposit contract counts ${count} deposits`))
}

/** The same views with a final block that all nodes have: the lowest of theirs. A node that doesn't show it keeps its own. */
export async function atOneHeight(
  views: readonly NodeView[],
  calls: readonly RpcCall[],
  signal: AbortSignal,
): Promise<readonly NodeView[]> {
  const finals = views.flatMap(({ head }) => head?.final?.number ?? [])
  const lowest = finals.reduce<bigint | undefined>((least, number) => (least === undefined || number < least ? number : least), undefined)
  return Promise.all(
    views.map(async (view, index): Promise<NodeView> => {
      const { head } = view
      if (lowest === undefined || head?.final === undefined || head.final.number === lowest) return view
      const asked = await calls[index]?.('eth_getBlockByNumber', [`0x${lowest.toString(16)}`, false], signal).catch(() => undefined)
      const found = block.safeParse(asked)
      if (!found.success || found.data.number !== lowest) return view
      return { ...view, head: { ...head, final: { number: lowest, hash: found.data.hash } } }
    }),
  )
}

/** Whether the nodes of one network show one chain. */
export function compareNodes(network: string, views: readonly NodeView[]): readonly Finding[] {
  const heads = views.flatMap(({ head }, index) => (head === undefined ? [] : [{ node: index + 1, ...head }]))
  if (views.length === 1)
    return [
      warning(
        'node',
        network,
        'it has one RPC node: what that says is believed. Add a second one, of another operator, so that one that lies or stands still is found out',
      ),
    ]
  const highest = heads.reduce((most, { number }) => (number > most ? number : most), 0n)
  const behind = heads.filter(({ number }) => highest - number > 5n)
  const finals = new Map<bigint, { node: number; hash: string }[]>()
  for (const { node, final } of heads)
    if (final !== undefined) finals.set(final.number, [...(finals.get(final.number) ?? []), { node, hash: final.hash }])
  const split = [...finals].find(([, same]) => new Set(same.map(({ hash }) => hash.toLowerCase())).size > 1)
  return [
    ...behind.map(({ node, number }) => warning('node', network, `node ${node} is ${highest - number} blocks behind the highest`)),
    ...(split === undefined
      ? []
      : [
          failed(
            'node',
            network,
            `nodes ${split[1].map(({ node }) => node).join(' and ')} show different final blocks ${split[0]}: one is on another chain. Take it out of the networks file`,
          ),
        ]),
  ]
}
