import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { keccak256 } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { FaultyProxy } from '../../chains/faulty-http.ts'
import { startFaultyRpc } from '../../chains/faulty-rpc.ts'
import { callRpc } from '../../chains/json-rpc.ts'
import { hidesLogs, hidesReceipts, keepsToItself, orphanedReceipts, otherChain, poolAsFinal, standingStill } from './wrong-node.ts'

/** A node that says what it was asked, and has one receipt and one transaction, of block 12. */
const asked: { method: string; params: readonly unknown[] }[] = []
const results: Readonly<Record<string, (params: readonly unknown[]) => unknown>> = {
  eth_blockNumber: () => '0xc',
  eth_chainId: () => '0x7a69',
  eth_getBlockByNumber: ([tag]) => ({ number: tag }),
  eth_getTransactionReceipt: () => ({ blockNumber: '0xc', blockHash: '0x1' }),
  eth_getTransactionByHash: () => ({ hash: '0x2', blockNumber: '0xc', blockHash: '0x1', transactionIndex: '0x0' }),
  eth_getTransactionCount: ([, tag]) => tag,
  eth_getLogs: ([filter]) => [filter],
  eth_sendRawTransaction: () => '0x3',
}
const node = createServer((request, response) => {
  let text = ''
  request.on('data', (chunk) => {
    text += String(chunk)
  })
  request.on('end', () => {
    const answer = ({ id, method, params }: { id: unknown; method: string; params: readonly unknown[] }) => {
      asked.push({ method, params })
      return { jsonrpc: '2.0', id, result: results[method]?.(params) ?? null }
    }
    const body = JSON.parse(text)
    response.end(JSON.stringify(Array.isArray(body) ? body.map(answer) : answer(body)))
  })
})
let proxy: FaultyProxy
beforeAll(async () => {
  await new Promise<void>((done) => node.listen(0, '127.0.0.1', done))
  proxy = await startFaultyRpc(`http://127.0.0.1:${(node.address() as AddressInfo).port}`)
})
afterEach(() => {
  proxy.clear()
  asked.length = 0
})
afterAll(async () => {
  await proxy?.stop()
  node.close()
})
const ask = (method: string, ...params: readonly unknown[]) => callRpc<unknown>(proxy.url, method, params)

test('a node that stands still knows of nothing above its block', async () => {
  proxy.when(/./).always(standingStill(10))
  expect(await ask('eth_blockNumber')).toBe('0xa')
  expect(await ask('eth_getBlockByNumber', 'latest', false)).toEqual({ number: '0xa' })
  expect(await ask('eth_getBlockByNumber', 'finalized', false)).toEqual({ number: '0x8' })
  expect(await ask('eth_getBlockByNumber', '0xb', false)).toBeNull()
  expect(await ask('eth_getTransactionReceipt', '0x2')).toBeNull()
  expect(await ask('eth_getTransactionByHash', '0x2')).toEqual({ hash: '0x2', blockNumber: null, blockHash: null, transactionIndex: null })
  expect(await ask('eth_getTransactionCount', '0x4', 'pending')).toBe('0xa')
  expect(await ask('eth_getLogs', { address: '0x5', fromBlock: '0x1', toBlock: '0xc' })).toEqual([
    { address: '0x5', fromBlock: '0x1', toBlock: '0xa' },
  ])
})

test('and so in a batch', async () => {
  proxy.when(/./).always(standingStill(10))
  const answer = await fetch(proxy.url, {
    method: 'POST',
    body: JSON.stringify(
      ['eth_blockNumber', 'eth_getTransactionReceipt'].map((method, id) => ({ jsonrpc: '2.0', id, method, params: [] })),
    ),
  })
  expect(await answer.json()).toMatchObject([
    { id: 0, result: '0xa' },
    { id: 1, result: null },
  ])
})

test.each([
  { what: 'hides receipts', fault: hidesReceipts, method: 'eth_getTransactionReceipt', result: null },
  { what: 'hides logs', fault: hidesLogs, method: 'eth_getLogs', result: [] },
  { what: 'is of another chain', fault: otherChain, method: 'eth_chainId', result: '0x1' },
  {
    what: 'has receipts of blocks in no chain',
    fault: orphanedReceipts,
    method: 'eth_getTransactionReceipt',
    result: { blockNumber: '0xc', blockHash: `0x${'ab'.repeat(32)}` },
  },
])('a node that $what', async ({ fault, method, result }) => {
  proxy.when(/./).always(fault)
  expect(await ask(method, {})).toEqual(result)
  expect(await ask('eth_blockNumber')).toBe('0xc')
})

test('a node that answers for a final block as for its pool', async () => {
  proxy.when(/./).always(poolAsFinal)
  expect(await ask('eth_getTransactionCount', '0x4', 'finalized')).toBe('pending')
})

test('a node that keeps what it is sent to itself says its hash', async () => {
  proxy.when('eth_sendRawTransaction').always(keepsToItself)
  expect(await ask('eth_sendRawTransaction', '0xabcd')).toBe(keccak256('0xabcd'))
  expect(asked).toEqual([])
})
