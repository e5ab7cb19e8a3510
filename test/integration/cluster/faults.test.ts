import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import * as faults from '../../chains/faults.ts'
import { type Fault, type FaultyProxy, startFaultyHttp } from '../../chains/faulty-http.ts'
import { nodeSays, rpcError, rpcResult, startFaultyRpc, wrongChainId } from '../../chains/faulty-rpc.ts'
import { callRpc } from '../../chains/json-rpc.ts'

describe('in front of a node', () => {
  let anvil: Anvil
  let proxy: FaultyProxy
  beforeAll(async () => {
    anvil = await startAnvil({ mining: 'manual' })
  })
  afterAll(async () => {
    await anvil?.stop()
  })
  beforeEach(async () => {
    proxy = await startFaultyRpc(anvil.url)
  })
  afterEach(async () => {
    await proxy.stop()
  })
  const call = <T>(method: string, params: readonly unknown[] = [], timeoutMs = 30_000): Promise<T> =>
    callRpc<T>(proxy.url, method, params, timeoutMs)
  const pay = (timeoutMs?: number): Promise<Hex> =>
    call('eth_sendTransaction', [{ from: anvil.accounts[0]?.address, to: anvil.accounts[1]?.address, value: '0x1' }], timeoutMs)
  /** Payments that the node took. */
  const taken = (): Promise<number> => anvil.transactionCount(anvil.accounts[0]?.address ?? '0x', 'pending')

  test('all passes and is counted by method, until told otherwise', async () => {
    expect(await call('eth_chainId')).toBe('0x7a69')
    expect(await call('eth_chainId')).toBe('0x7a69')
    expect([proxy.calls('eth_chainId'), proxy.calls('eth_blockNumber'), proxy.calls(/^eth_/), proxy.calls()]).toEqual([2, 0, 2, 2])
  })

  test.each<{ given: string; fault: Fault; error: RegExp; worked: boolean }>([
    { given: 'a time-out after the work', fault: faults.timeoutAfterPassing, error: /timeout/, worked: true },
    { given: 'a reset after the work', fault: faults.resetAfterPassing, error: /fetch failed/, worked: true },
    { given: 'an error after the work', fault: rpcError('busy', { afterPassing: true }), error: /busy/, worked: true },
    { given: 'a time-out before it', fault: faults.timeout, error: /timeout/, worked: false },
    { given: 'a reset before it', fault: faults.reset, error: /fetch failed/, worked: false },
    { given: 'HTTP 500', fault: faults.httpStatus(500), error: /HTTP 500/, worked: false },
    { given: 'HTTP 429', fault: faults.tooManyRequests(7), error: /HTTP 429/, worked: false },
    { given: 'a web page', fault: faults.html(), error: /not valid JSON/, worked: false },
    { given: 'a body without end', fault: faults.endlessBody, error: /timeout/, worked: false },
    { given: 'already known', fault: nodeSays.alreadyKnown, error: /already known/, worked: false },
    { given: 'nonce too low', fault: nodeSays.nonceTooLow, error: /nonce too low/, worked: false },
    {
      given: 'replacement underpriced',
      fault: nodeSays.replacementUnderpriced,
      error: /replacement transaction underpriced/,
      worked: false,
    },
    { given: 'insufficient funds', fault: nodeSays.insufficientFunds, error: /insufficient funds/, worked: false },
  ])('$given strikes once: the client sees an error, the node did the work: $worked', async ({ fault, error, worked }) => {
    const before = await taken()
    const active = proxy.when('eth_sendTransaction').once(fault)
    // Only what waits for ever is to be given up soon.
    await expect(pay(String(error) === '/timeout/' ? 1_500 : undefined)).rejects.toThrow(error)
    // What was cut off may still be on its way to the node.
    if (worked) await expect.poll(taken, { timeout: 30_000 }).toBe(before + 1)
    expect(await taken()).toBe(before + (worked ? 1 : 0))
    await expect.poll(() => proxy.passed('eth_sendTransaction'), { timeout: 30_000 }).toBe(worked ? 1 : 0)
    expect(active.hits()).toBe(1)
    await expect(pay()).resolves.toMatch(/^0x/)
    expect(proxy.calls('eth_sendTransaction')).toBe(2)
  })

  test('a fault strikes as often as it was told, in the order given, only where it matches, until it is removed', async () => {
    proxy.when('eth_chainId').times(2, faults.httpStatus(503))
    const always = proxy.when(/^eth_chain/).always(wrongChainId())
    await expect(call('eth_chainId')).rejects.toThrow('HTTP 503')
    await expect(call('eth_chainId')).rejects.toThrow('HTTP 503')
    expect(await call('eth_chainId')).toBe('0x1')
    expect(await call('eth_chainId')).toBe('0x1')
    expect(await call('net_version')).toBe('31337')
    always.remove()
    expect(await call('eth_chainId')).toBe('0x7a69')
    proxy.when('eth_chainId').always(rpcResult('0x2'))
    proxy.clear()
    expect(await call('eth_chainId')).toBe('0x7a69')
  })

  test('latency delays and passes on', async () => {
    proxy.when('eth_chainId').once(faults.latency(200))
    const began = performance.now()
    expect(await call('eth_chainId')).toBe('0x7a69')
    expect(performance.now() - began).toBeGreaterThan(190)
  })

  test('an error answers every call of a batch by its id', async () => {
    proxy.when('eth_chainId').once(rpcError('busy', { code: -5 }))
    const body = JSON.stringify([7, 'x'].map((id) => ({ jsonrpc: '2.0', id, method: 'eth_chainId', params: [] })))
    const response = await fetch(proxy.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    expect(await response.json()).toEqual([7, 'x'].map((id) => ({ jsonrpc: '2.0', id, error: { code: -5, message: 'busy' } })))
    expect(proxy.calls('eth_chainId')).toBe(1)
  })

  test('a node that is gone looks gone', async () => {
    proxy.setTarget('http://127.0.0.1:9')
    await expect(call('eth_chainId')).rejects.toThrow('fetch failed')
    proxy.setTarget(anvil.url)
    expect(await call('eth_chainId')).toBe('0x7a69')
  })
})

describe('in front of any HTTP server', () => {
  let server: Server
  let proxy: FaultyProxy
  beforeEach(async () => {
    server = createServer((request, response) => {
      response.writeHead(request.method === 'DELETE' ? 204 : 201, {
        'content-type': 'application/json',
        'x-seen': request.headers.authorization ?? '',
      })
      response.end(request.method === 'DELETE' ? undefined : JSON.stringify({ path: request.url, amount: '32' }))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    proxy = await startFaultyHttp({ target: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  })
  afterEach(async () => {
    await proxy.stop()
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  })
  const post = (path: string): Promise<Response> =>
    fetch(`${proxy.url}${path}`, { method: 'POST', headers: { authorization: 'Bearer x' }, body: '{}' })

  test('status, headers, path and body pass unchanged', async () => {
    const response = await post('/v1/stakes?limit=1')
    expect([response.status, response.headers.get('x-seen')]).toEqual([201, 'Bearer x'])
    expect(await response.json()).toEqual({ path: '/v1/stakes?limit=1', amount: '32' })
    expect((await fetch(`${proxy.url}/v1/stakes/1`, { method: 'DELETE' })).status).toBe(204)
    expect(proxy.calls('POST /v1/stakes')).toBe(1)
    expect(proxy.history().map(({ names, body }) => [...names, body])).toEqual([
      ['POST /v1/stakes', '{}'],
      ['DELETE /v1/stakes/1', ''],
    ])
  })

  test('a body can be rewritten on its way back', async () => {
    proxy.when(/^POST/).once(faults.rewriteJson<{ amount: string }>((body) => ({ ...body, amount: '64' })))
    expect(await (await post('/v1/stakes')).json()).toEqual({ path: '/v1/stakes', amount: '64' })
    expect(await (await post('/v1/stakes')).json()).toEqual({ path: '/v1/stakes', amount: '32' })
  })

  test('stopping lets go of a client that hangs', async () => {
    proxy.when(() => true).always(faults.timeout)
    const hanging = post('/v1/stakes')
    hanging.catch(() => {})
    await expect.poll(() => proxy.calls(), { timeout: 30_000 }).toBe(1)
    await proxy.stop()
    await expect(hanging).rejects.toThrow('fetch failed')
  })
})
