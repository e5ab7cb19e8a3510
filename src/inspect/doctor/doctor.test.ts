import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { ethereumNetworkConfig } from '../../chains/ethereum/networks.ts'
import { solanaNetworkConfig } from '../../chains/solana/networks.ts'
import { systemClock } from '../../lib/clock.ts'
import { RpcFailure } from '../../lib/rpc-failure.ts'
import { isSuspended } from '../../operator/suspension.ts'
import type { Cluster } from '../cluster.ts'
import { lookAtLeader } from './cluster-findings.ts'
import { type DoctorOptions, examine } from './doctor.ts'
import { atOneHeight, compareNodes, lookAtEthereumNode } from './ethereum-node.ts'
import type { Finding } from './finding.ts'
import { operatorRules, type Rule } from './permissions.ts'
import { lookAtSolanaNode } from './solana-node.ts'

const never = new AbortController().signal
const NOW = 1_800_000_000_000
const hoodi = ethereumNetworkConfig.parse({ name: 'hoodi', chain: 'Ethereum', rpcUrls: ['https://secret.example/key'] })
const block = (number: number, ageS = 5, hash = 'ab') => ({
  number: `0x${number.toString(16)}`,
  hash: `0x${hash.repeat(32)}`,
  timestamp: `0x${(NOW / 1000 - ageS).toString(16)}`,
  baseFeePerGas: '0x1',
})
const counts = `0x${'20'.padStart(64, '0')}${'8'.padStart(64, '0')}${'0700000000000000'.padEnd(64, '0')}`
/** A node that serves all; `other` answers in its place. */
const node = (other: Readonly<Record<string, (params: readonly unknown[]) => unknown>> = {}) => {
  const answers: Readonly<Record<string, (params: readonly unknown[]) => unknown>> = {
    eth_chainId: () => '0x88bb0',
    eth_getBlockByNumber: ([at]) => (at === 'finalized' ? block(900, 400) : block(1000)),
    eth_call: () => counts,
    ...other,
  }
  return async (method: string, params: readonly unknown[]) => answers[method]?.(params) ?? '0x0'
}
const refuse = () => {
  throw new RpcFailure('refused', 'the node does not serve it', { method: 'x' })
}
const look = (call: ReturnType<typeof node>) => lookAtEthereumNode(hoodi, 1, call, () => NOW, never)
const troubles = (findings: readonly Finding[]) =>
  findings.filter(({ state }) => state !== 'ok').map(({ state, message }) => `${state}: ${message}`)

describe('an Ethereum node', () => {
  test('that serves all is told with its height', async () => {
    const { findings } = await look(node())
    expect(troubles(findings)).toEqual([])
    expect(findings.map(({ message }) => message)).toEqual([
      'it serves chain id 560048, block 1000',
      'the deposit contract counts 7 deposits',
    ])
  })

  test.each<[string, ReturnType<typeof node>, RegExp]>([
    ['of another chain', node({ eth_chainId: () => '0x1' }), /^failed: it serves chain id 1, and hoodi is 560048/],
    ['that is silent', node({ eth_chainId: refuse }), /^failed: it does not answer which chain it serves/],
    [
      'that answers in another shape',
      node({ eth_chainId: () => 560048 }),
      /^failed: it does not answer which chain it serves: its answer has another shape than it should\. Check its URL/,
    ],
    ['without a method', node({ eth_getLogs: refuse }), /^failed: it does not serve eth_getLogs/],
    ['that takes no transactions', node({ eth_sendRawTransaction: refuse }), /^failed: it does not serve eth_sendRawTransaction/],
    ['that stands still', node({ eth_getBlockByNumber: () => block(1000, 900) }), /^warning: its latest block 1000 is 900 s old/],
    [
      'ahead of the clock',
      node({ eth_getBlockByNumber: () => block(1000, -100) }),
      /^failed: its latest block 1000 is 100 s ahead of this machine's clock/,
    ],
    [
      'without a final block',
      node({ eth_getBlockByNumber: ([at]) => (at === 'finalized' ? null : block(1000)) }),
      /^warning: it shows no finalized block yet/,
    ],
    [
      'whose contract is none',
      node({ eth_call: () => '0x' }),
      /^failed: 0x0{8}219ab540356cBB839Cbe05303d7705Fa does not answer as a deposit contract/,
    ],
  ])('%s is told', async (_what, call, message) => {
    const { findings } = await look(call)
    expect(troubles(findings)).toEqual([expect.stringMatching(message)])
    expect(JSON.stringify(findings)).not.toContain('secret.example')
  })

  test('that refuses no bytes serves eth_sendRawTransaction', async () => {
    const wrong = () => {
      throw new RpcFailure('node', 'the node refused', { node: { code: -32602, message: 'rlp: value size exceeds' } })
    }
    expect(troubles((await look(node({ eth_sendRawTransaction: wrong }))).findings)).toEqual([])
  })
})

test('nodes with different final blocks are on two chains', async () => {
  const views = [
    await look(node()),
    await look(node({ eth_getBlockByNumber: ([at]) => (at === 'finalized' ? block(900, 400, 'cd') : block(1000)) })),
  ]
  expect(troubles(compareNodes('hoodi', views))).toEqual([expect.stringMatching(/^failed: nodes 1 and 2 show different final blocks 900/)])
})

test('nodes that are not equally far are compared where both have a final block', async () => {
  // A fork of the chain, as a node of a test makes it: the same chain id and genesis, and its own blocks since.
  const further =
    (hash: string) =>
    ([at]: readonly unknown[]) =>
      at === 'finalized' ? block(932, 20, '11') : at === '0x384' ? block(900, 400, hash) : block(1000)
  for (const [hash, told] of [
    ['ab', []],
    ['cd', [expect.stringMatching(/^failed: nodes 1 and 2 show different final blocks 900/)]],
  ] as const) {
    const calls = [node(), node({ eth_getBlockByNumber: further(hash) })] as const
    const views = [await look(calls[0]), await look(calls[1])]
    expect(troubles(compareNodes('hoodi', await atOneHeight(views, calls, never)))).toEqual(told)
  }
})

test('a network with one node is warned of', async () => {
  expect(troubles(compareNodes('hoodi', [await look(node())]))).toEqual([expect.stringMatching(/^warning: it has one RPC node/)])
})

describe('a Solana node', () => {
  const devnet = solanaNetworkConfig.parse({ name: 'devnet', chain: 'Solana', rpcUrls: ['https://secret.example'] })
  const solana =
    (other: Readonly<Record<string, () => unknown>> = {}) =>
    async (method: string) => {
      const answers: Readonly<Record<string, () => unknown>> = {
        getGenesisHash: () => devnet.genesisHash,
        getEpochInfo: () => ({ epoch: 7, absoluteSlot: 700, slotIndex: 0, slotsInEpoch: 100, blockHeight: 600 }),
        getHealth: () => 'ok',
        ...other,
      }
      return answers[method]?.() ?? null
    }
  const none = () => {
    throw new RpcFailure('node', 'Transaction history is not available from this node', { node: { code: -32011, message: '' } })
  }
  test.each<[string, ReturnType<typeof solana>, string[]]>([
    ['that serves all', solana(), []],
    ['of another cluster', solana({ getGenesisHash: () => 'x' }), ['failed: its genesis is x, and devnet has']],
    [
      'without history',
      solana({ getSignaturesForAddress: none }),
      ['failed: it does not serve getSignaturesForAddress (--enable-rpc-transaction-history)'],
    ],
    ['that is behind', solana({ getHealth: () => 'behind' }), ['warning: it says of itself that it is not healthy: behind']],
  ])('%s', async (_what, call, expected) => {
    const { findings } = await lookAtSolanaNode(devnet, 1, call, never)
    expect(troubles(findings)).toEqual(expected.map((text) => expect.stringContaining(text)))
  })
})

describe('a Solana node is asked for every method that is used', () => {
  const devnet = solanaNetworkConfig.parse({ name: 'devnet', chain: 'Solana', rpcUrls: ['https://secret.example'] })
  const lookWithout = async (refused: string, asked: (params: readonly unknown[]) => unknown) => {
    const call = async (method: string, params: readonly unknown[]) => {
      if (method === refused) return asked(params)
      if (method === 'getEpochInfo') return { epoch: 7, absoluteSlot: 700, slotIndex: 0, slotsInEpoch: 100, blockHeight: 600 }
      return method === 'getGenesisHash' ? devnet.genesisHash : method === 'getHealth' ? 'ok' : null
    }
    return troubles((await lookAtSolanaNode(devnet, 1, call, never)).findings)
  }

  // As chains/solana asks for them.
  const source = readdirSync(new URL('../../chains/solana', import.meta.url))
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => readFileSync(new URL(`../../chains/solana/${name}`, import.meta.url), 'utf8'))
    .join('\n')
  const used = new Set([...source.matchAll(/(?:call|ask|method =)[( ]'((?:get|send|simulate)[A-Z]\w+)'/g)].map(([, method = '']) => method))

  test('of which there are many', () => {
    expect([...used]).toEqual(expect.arrayContaining(['sendTransaction', 'simulateTransaction', 'getTransaction', 'getFeeForMessage']))
  })

  test.each([...used].filter((method) => !['getGenesisHash', 'getEpochInfo'].includes(method)))('%s', async (method) => {
    expect(await lookWithout(method, refuse)).toEqual([expect.stringMatching(new RegExp(`^failed: it does not serve ${method}[ :]`))])
  })

  test('and one that refuses no bytes as a transaction serves that', async () => {
    for (const method of ['sendTransaction', 'simulateTransaction'])
      expect(
        await lookWithout(method, ([text]) => {
          expect(text).toBe('')
          throw new RpcFailure('node', 'the node refused', { node: { code: -32602, message: 'failed to deserialize' } })
        }),
      ).toEqual([])
  })

  test('and one that does not answer is told', async () => {
    const silent = () => {
      throw new RpcFailure('no-answer', 'sendTransaction: no answer')
    }
    expect(await lookWithout('sendTransaction', silent)).toEqual(['warning: sendTransaction: sendTransaction: no answer'])
  })
})

describe('what is configured', () => {
  let dir = ''
  let server: Server | undefined
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'doctor-'))
  })
  afterEach(() => {
    server?.closeAllConnections()
    server?.close()
    server = undefined
    rmSync(dir, { recursive: true, force: true })
  })
  const findings = async (more: Partial<DoctorOptions> = {}) =>
    examine(
      {
        networksFile: join(dir, 'networks.yaml'),
        keysDir: dir,
        lease: { namespace: 'staking-system', name: 'staking-operator' },
        cluster: { missing: 'none' },
        isOperator: false,
        clock: systemClock,
        userAgent: 'test',
        timeoutMs: 1_000,
        ...more,
      },
      never,
    )

  const KEY = 'a-key-of-the-staking-api'
  type Asked = { readonly path: string; readonly hasKey: boolean }
  type Given = { readonly status: number; readonly type?: string; readonly body: string }
  /** What is told of a staking API for these chains, and what it was asked. */
  async function tellOf(answer: (asked: Asked) => Given, chains: readonly string[] = ['Solana']) {
    const asked: Asked[] = []
    const on = createServer(({ url = '', headers }, response) => {
      const one = { path: url, hasKey: headers.authorization === `Bearer ${KEY}` }
      asked.push(one)
      const { status, type = 'application/problem+json', body } = answer(one)
      response.writeHead(status, { 'content-type': type }).end(body)
    })
    server = on.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    writeFileSync(join(dir, 'api-key'), KEY)
    const stakingApi = { url: `http://127.0.0.1:${port}`, apiKeyFile: join(dir, 'api-key') }
    const named = { Solana: 'devnet', Ethereum: 'hoodi' }
    const networks = chains.map((chain) => ({ name: named[chain as keyof typeof named], chain, rpcUrls: ['http://127.0.0.1:1'] }))
    writeFileSync(join(dir, 'networks.yaml'), JSON.stringify({ stakingApi, networks }))
    const told = (await findings()).filter(({ area }) => area === 'staking API')
    expect(JSON.stringify(told)).not.toMatch(/secret|127\.0\.0\.1|a-key-of/)
    return { told: told.map(({ state, message }) => `${state}: ${message}`), asked }
  }
  const problem = (status: number, code: string): Given => ({ status, body: JSON.stringify({ code, status }) })

  test.each<[string, number, string, string, RegExp]>([
    ['a page', 404, 'text/html', '<html>secret</html>', /^failed: it answers 404 with something else than the staking API's own problem/],
    ['no content', 404, 'text/plain', '', /^failed: it answers 404 with something else/],
    ['the JSON of another API', 404, 'application/json', '{"message":"Not found"}', /^failed: it answers 404 with something else/],
    [
      'a problem of other codes',
      404,
      'application/problem+json',
      '{"code":"no-such-route","status":404}',
      /^warning: it answers 404 without a code of/,
    ],
    [
      'the contract’s own 404, whatever the key, as the service does at a wrong path',
      404,
      'application/problem+json',
      '{"code":"not-found","status":404}',
      /^failed: .*with a key that can't be one.* 404 .*stakingApi\.url/,
    ],
  ])('a staking API that answers with %s', async (_what, status, type, body, says) => {
    expect((await tellOf(() => ({ status, type, body }))).told).toEqual([expect.stringMatching(says)])
  })

  const ZEROS = '0'.repeat(32)
  test.each<[string, { readonly withKey?: Given; readonly withNone?: Given }, RegExp]>([
    ['is well where it checks the key', {}, /^ok: it takes the API key; it does not list its networks$/],
    ['that refuses the key', { withKey: problem(401, 'unauthenticated') }, /^failed: it refuses the key in .*api-key \(401\)/],
    ['that forbids it', { withKey: problem(403, 'forbidden') }, /^failed: it refuses the key in .*api-key \(403\)/],
    ['that is down', { withKey: problem(503, 'service-unavailable') }, /^failed: .*a stake of zeros.* 503 .*look again/],
    ['that has every stake', { withKey: { status: 200, body: '{}' } }, /^failed: .*a stake of zeros.*look again/],
    ['that takes no more', { withNone: problem(429, 'rate-limited') }, /^warning: .*with a key that can't be one.* 429 .*look again/],
    ['that has a stake for all', { withNone: { status: 200, body: '{}' } }, /^warning: .*with a key that can't be one.*look again/],
  ])('a staking API that does not list its networks, %s', async (_what, { withKey, withNone }, says) => {
    const { told, asked } = await tellOf(({ path, hasKey }) => {
      if (path === '/v1/networks') return problem(404, 'not-found')
      return hasKey ? (withKey ?? problem(404, 'not-found')) : (withNone ?? problem(401, 'unauthenticated'))
    })
    expect(told).toEqual([expect.stringMatching(says)])
    expect(asked).toHaveLength(3)
    expect(asked.slice(1).map(({ path }) => path)).toEqual([`/v1/solana/stakes/${ZEROS}`, `/v1/solana/stakes/${ZEROS}`])
  })

  test('a staking API that does not list its networks is asked for a stake of a chain that it is named for', async () => {
    const { told, asked } = await tellOf(
      ({ path, hasKey }) => (hasKey || path === '/v1/networks' ? problem(404, 'not-found') : problem(401, 'unauthenticated')),
      ['Ethereum', 'Solana'],
    )
    expect(told).toEqual([expect.stringMatching(/^ok: /)])
    expect(asked.map(({ path }) => path).slice(1)).toEqual([`/v1/ethereum/stakes/${ZEROS}`, `/v1/ethereum/stakes/${ZEROS}`])
  })

  test('a file that is named and not there is a fault; one that nobody named is skipped', async () => {
    const gone = join(dir, 'gone.yaml')
    const stateOf = async (more: Partial<DoctorOptions>) => (await findings(more)).find(({ about }) => about === gone)?.state
    expect(await stateOf({ networksFile: gone })).toBe('skipped')
    expect(await stateOf({ networksFile: gone, isNetworksNamed: true })).toBe('failed')
    expect(await stateOf({ remoteSignersFile: gone })).toBe('failed')
    expect(await stateOf({ keysDir: gone })).toBe('skipped')
    expect(await stateOf({ keysDir: gone, isKeysDirNamed: true })).toBe('failed')
  })
})

test('the permissions that are asked for are those that the chart gives', () => {
  const file = new URL('../../../charts/staking-operator/files/operator-rules.yaml', import.meta.url)
  const flat = (rules: readonly Rule[]) =>
    rules
      .flatMap(({ apiGroups, resources, verbs }) =>
        apiGroups.flatMap((group) => resources.flatMap((one) => verbs.map((verb) => `${group} ${one} ${verb}`))),
      )
      .toSorted()
  expect(flat(operatorRules)).toEqual(flat(parse(readFileSync(file, 'utf8')) as Rule[]))
})

describe('the lease', () => {
  const leaderWith = (annotations: Readonly<Record<string, string>>) => {
    const spec = { holderIdentity: 'operator-1', renewTime: new Date(NOW - 1_000).toISOString() }
    const cluster = { get: async () => ({ metadata: { name: 'staking-operator', annotations }, spec }) } as unknown as Cluster
    return lookAtLeader(cluster, { namespace: 'staking-system', name: 'staking-operator' }, NOW, never)
  }
  test.each([
    ['true', true],
    ['', true],
    ['no', true],
    ['false', false],
    ['False', false],
    [' false ', false],
  ])('with the annotation %o says that signing is stopped where the operator takes it for that', async (value, isStopped) => {
    const findings = await leaderWith({ 'staking.dev/suspend': value })
    expect(troubles(findings)).toEqual(isStopped ? [`warning: all signing is stopped by the annotation staking.dev/suspend=${value}`] : [])
    expect(isSuspended({ 'staking.dev/suspend': value })).toBe(isStopped)
  })
})
