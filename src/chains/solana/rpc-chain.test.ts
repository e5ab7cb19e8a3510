import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { encodeBase58 } from './base58.ts'
import { SolanaError, type SolanaErrorCode } from './chain.ts'
import { decideLanding } from './expiry.ts'
import { joinTransaction } from './message.ts'
import { knownGenesisHashes, solanaNetworkConfig } from './networks.ts'
import { createSolanaChain } from './rpc-chain.ts'
import { buildDeactivationMessage } from './stake.ts'
import { example, frame, testAddress } from './testing.ts'

const never = new AbortController().signal
const canary = 'canary-5f3a'
const devnet = knownGenesisHashes.devnet
const message = buildDeactivationMessage({ ...frame, stakeAccount: testAddress(7), stakeAuthority: example.stakeAuthority })
const signature = new Uint8Array(64).fill(9)
const raw = joinTransaction(message, new Map([[example.feePayer, signature]]))

type Reply = { result: unknown } | { error: object; status?: number } | { text: string } | { html: number } | 'hang' | 'refuse'
type Script = Record<string, Reply>
const good: Script = { getGenesisHash: { result: devnet } }

const isClock = (one: Script | Clock): one is Clock => typeof one.monotonicMs === 'function'

/** A chain over nodes that answer by script; `seen` lists each call as `node:method`. */
function chainOver(given: Script | readonly Script[], ...more: (Script | Clock)[]) {
  const scripts = [given, ...more.filter((one): one is Script => !isClock(one))].flat()
  const clock = more.find(isClock) ?? systemClock
  const seen: string[] = []
  const bodies: unknown[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const node = Number(new URL(String(input)).hostname.slice(1, 2))
    const { method, params, id } = JSON.parse(String(init?.body)) as { method: string; params: unknown; id: number }
    seen.push(`${node}:${method}`)
    bodies.push(params)
    const reply = scripts[node - 1]?.[method] ?? { error: { code: -32601, message: 'Method not found' } }
    if (reply === 'refuse') throw new TypeError(`fetch failed ${canary}`, { cause: new Error(String(input)) })
    if (reply === 'hang')
      return new Promise<Response>((_, reject) => init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)))
    if ('html' in reply) return new Response(`<html>${canary}</html>`, { status: reply.html })
    if ('text' in reply) return new Response(reply.text)
    const { status = 200, ...body } = reply as { status?: number }
    return Response.json({ jsonrpc: '2.0', id, ...body }, { status })
  }
  const config = solanaNetworkConfig.parse({
    name: 'devnet',
    chain: 'Solana',
    rpcUrls: scripts.map((_, index) => `https://n${index + 1}.test/${canary}`),
  })
  return { chain: createSolanaChain({ config, clock, fetch, timeoutMs: 200 }), seen, bodies }
}
async function codeOf(promise: Promise<unknown>): Promise<SolanaErrorCode | undefined> {
  const error = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  )
  expect(inspect(error, { depth: 9 })).not.toContain(canary)
  return error instanceof SolanaError ? error.code : undefined
}
const preflight = (err: unknown): Reply => ({
  error: { code: -32002, message: `Transaction simulation failed ${canary}`, data: { err, logs: [canary] } },
})

describe('what was lately paid for a place in a block', () => {
  const served: Script = {
    ...good,
    getRecentPrioritizationFees: { result: [1, 5, 9, 7].map((fee) => ({ slot: 1, prioritizationFee: fee })) },
  }
  const refusing = (reply: Reply): Script => ({ ...good, getRecentPrioritizationFees: reply })
  test.each<{ name: string; reply: Reply }>([
    { name: 'no such method', reply: { error: { code: -32601, message: canary } } },
    { name: 'not with these parameters', reply: { error: { code: -32602, message: canary } } },
    { name: 'not to us', reply: { error: { code: 403, message: canary }, status: 403 } },
    { name: 'something that nobody knows', reply: { error: { code: -32099, message: canary } } },
  ])('a node that says $name knows nothing, and that holds up nothing; another one is asked', async ({ reply }) => {
    expect(await chainOver(refusing(reply)).chain.recentPriorityFee([], never)).toBe(0n)
    expect(await chainOver(refusing(reply), refusing('refuse')).chain.recentPriorityFee([], never)).toBe(0n)
    expect(await chainOver(refusing(reply), served).chain.recentPriorityFee([], never)).toBe(9n)
  })
  test('a node that gives no answer is asked again', async () => {
    expect(await codeOf(chainOver(refusing('refuse')).chain.recentPriorityFee([], never))).toBe('unavailable')
  })
})

describe('what a node says of a transaction that is sent', () => {
  test.each<{ name: string; reply: Reply; code: SolanaErrorCode }>([
    { name: 'blockhash not found', reply: preflight('BlockhashNotFound'), code: 'blockhash-not-found' },
    { name: 'Custom 16 of the stake program', reply: preflight({ InstructionError: [2, { Custom: 16 }] }), code: 'epoch-rewards' },
    { name: 'Custom 2 of the stake program', reply: preflight({ InstructionError: [2, { Custom: 2 }] }), code: 'already-deactivated' },
    { name: 'Custom 2 of the compute budget', reply: preflight({ InstructionError: [0, { Custom: 2 }] }), code: 'failed' },
    { name: 'no account of the fee payer', reply: preflight('AccountNotFound'), code: 'insufficient-funds' },
    { name: 'a preflight without a reason', reply: { error: { code: -32002, message: canary } }, code: 'failed' },
    { name: 'a wrong signature', reply: { error: { code: -32003, message: canary } }, code: 'signature-failure' },
    {
      name: 'that it lags',
      reply: { error: { code: -32005, message: canary, data: { numSlotsBehind: 5 } } },
      code: 'node-behind',
    },
    { name: 'that its slot is too old', reply: { error: { code: -32016, message: canary } }, code: 'node-behind' },
    { name: 'an internal error', reply: { error: { code: -32603, message: canary } }, code: 'unavailable' },
    { name: 'too many requests', reply: { error: { code: 429, message: 'Too many requests' }, status: 429 }, code: 'unavailable' },
    { name: 'wrong parameters', reply: { error: { code: -32602, message: canary } }, code: 'rejected' },
    { name: 'HTML', reply: { html: 502 }, code: 'unavailable' },
    { name: 'nothing in time', reply: 'hang', code: 'unavailable' },
    { name: 'nothing at all', reply: 'refuse', code: 'unavailable' },
  ])('$name is $code', async ({ reply, code }) => {
    const { chain } = chainOver({ ...good, sendTransaction: reply })
    expect(await codeOf(chain.sendTransaction(raw, { skipPreflight: false }, never))).toBe(code)
  })

  test('that it was processed already is a success', async () => {
    const { chain } = chainOver({ ...good, sendTransaction: preflight('AlreadyProcessed') })
    expect(await chain.sendTransaction(raw, { skipPreflight: false }, never)).toBe(encodeBase58(signature))
  })

  test('is a success when one of two nodes takes it', async () => {
    const { chain } = chainOver({ ...good, sendTransaction: 'refuse' }, { ...good, sendTransaction: { result: encodeBase58(signature) } })
    expect(await chain.sendTransaction(raw, { skipPreflight: true }, never)).toBe(encodeBase58(signature))
  })

  test('has a fee as long as one node knows its blockhash', async () => {
    const fee = (value: number | null): Script => ({ ...good, getFeeForMessage: { result: { context: { slot: 1 }, value } } })
    expect(await chainOver(fee(null), fee(5000)).chain.feeFor(message, never)).toBe(5000n)
    expect(await chainOver(fee(null), fee(null)).chain.feeFor(message, never)).toBeUndefined()
    expect(await codeOf(chainOver({ ...good, getFeeForMessage: 'refuse' }).chain.feeFor(message, never))).toBe('unavailable')
  })

  test('of two refusals, the one that says more counts', async () => {
    const { chain } = chainOver(
      { ...good, sendTransaction: preflight('BlockhashNotFound') },
      { ...good, sendTransaction: preflight({ InstructionError: [2, { Custom: 16 }] }) },
    )
    expect(await codeOf(chain.sendTransaction(raw, { skipPreflight: false }, never))).toBe('epoch-rewards')
  })

  test('is not asked for a transaction that nobody signed', async () => {
    const { chain, seen } = chainOver(good)
    await expect(chain.sendTransaction(joinTransaction(message), { skipPreflight: true }, never)).rejects.toThrow('not signed')
    expect(seen).toEqual([])
  })
})

describe('a node that lets us in for nothing', () => {
  const replies: Reply[] = [{ html: 401 }, { html: 403 }, { error: { code: 402, message: canary } }]
  const balanceOf = (chain: ReturnType<typeof chainOver>['chain']) => chain.balance(testAddress(1), 'confirmed', never)
  test.each(replies)('is said for what it is, by its number (%o)', async (reply) => {
    const { chain } = chainOver({ getGenesisHash: reply, getBalance: reply })
    expect(await codeOf(balanceOf(chain))).toBe('access-denied')
    await expect(balanceOf(chain)).rejects.toThrow(/node 1 of devnet answers 40[123] even to getGenesisHash/)
  })
  test.each<{ what: string; first: Script; second: Script; says: RegExp; code?: SolanaErrorCode }>([
    {
      what: 'the other is down',
      first: { getGenesisHash: { html: 403 } },
      second: { getGenesisHash: 'refuse' },
      says: /node 1 of devnet answers 403 .*; node 2 of devnet gives no usable answer now$/,
    },
    {
      what: 'the first is down',
      first: { getGenesisHash: 'refuse' },
      second: { getGenesisHash: { html: 401 } },
      says: /node 1 of devnet gives no usable answer now; node 2 of devnet answers 401 /,
    },
    {
      what: 'the other lags',
      first: { getGenesisHash: { html: 403 } },
      second: { ...good, getBalance: { error: { code: -32005, message: canary } } },
      says: /node 1 of devnet answers 403 .*; node 2 of devnet lags behind the cluster$/,
    },
    {
      what: 'the other is under a wrong path',
      first: { getGenesisHash: 'refuse' },
      second: { getGenesisHash: { html: 404 } },
      says: /node 1 of devnet gives no usable answer now; node 2 of devnet answers 404 to every request: check the URL's path$/,
    },
  ])('is told beside the other, each for what it is: $what', async ({ first, second, says }) => {
    const asks = [balanceOf, (chain: ReturnType<typeof chainOver>['chain']) => chain.landingFacts([], never)]
    for (const ask of asks.slice(0, 'getBalance' in second ? 1 : 2)) {
      const { chain } = chainOver(first, second)
      const error = await ask(chain).then(String, (caught: unknown) => caught)
      expect(error).toMatchObject({ code: 'access-denied', isOfEach: true, retryAfterMs: 10_000, message: expect.stringMatching(says) })
      expect(inspect(error, { depth: 9 })).not.toContain(canary)
    }
  })
  test.each([{ html: 404 }, { error: { code: -32601, message: canary }, status: 404 }] satisfies Reply[])(
    'because nothing is served under its path is told so (%o)',
    async (reply) => {
      await expect(balanceOf(chainOver({ getGenesisHash: reply }).chain)).rejects.toThrow(
        "node 1 of devnet answers 404 to every request: check the URL's path",
      )
    },
  )
  test('is not waited for where another serves', async () => {
    const { chain } = chainOver({ getGenesisHash: { html: 401 } }, { ...good, getBalance: { result: { context: { slot: 1 }, value: 5 } } })
    expect(await balanceOf(chain)).toBe(5n)
  })
})

describe('what a node would refuse again', () => {
  const balance: Script = { ...good, getBalance: { result: { context: { slot: 1 }, value: 5 } } }
  const refusing = (reply: Reply): Script => ({ ...good, getBalance: reply })
  const cases: { what: string; reply: Reply; says: string }[] = [
    { what: 'no such method', reply: { error: { code: -32601, message: canary } }, says: 'getBalance' },
    { what: 'parameters', reply: { error: { code: -32602, message: canary } }, says: 'getBalance with code -32602' },
    { what: 'a length', reply: { error: { code: -32013, message: canary } }, says: 'getBalance with code -32013' },
    { what: 'an index', reply: { error: { code: -32010, message: canary } }, says: 'getBalance with code -32010' },
    { what: 'its plan', reply: { html: 403 }, says: 'getBalance' },
  ]
  const failure = async (chain: ReturnType<typeof chainOver>['chain']) => {
    const error = await chain.balance(testAddress(1), 'confirmed', never).then(String, (caught: unknown) => caught)
    expect(inspect(error, { depth: 9 })).not.toContain(canary)
    return error
  }
  test.each(cases)('($what) is asked of the next one', async ({ reply }) => {
    expect(await chainOver(refusing(reply), balance).chain.balance(testAddress(1), 'confirmed', never)).toBe(5n)
  })
  test.each(cases)(
    '($what), refused by every node, lasts, and is told with the method and the option that serves it',
    async ({ reply, says }) => {
      expect(await failure(chainOver(refusing(reply), refusing(reply)).chain)).toMatchObject({
        code: 'rejected',
        isLasting: true,
        message: expect.stringMatching(new RegExp(`${says}.*--full-rpc-api`)),
      })
    },
  )
  test.each(cases)('($what) says nothing while another node gives no answer', async ({ reply }) => {
    expect(await failure(chainOver(refusing(reply), refusing('refuse')).chain)).toMatchObject({ code: 'unavailable', isLasting: false })
  })
  test('is one of the history, and the option is another', async () => {
    const { chain } = chainOver({ ...good, getSignaturesForAddress: { error: { code: -32601, message: canary } } })
    await expect(chain.past(testAddress(1), 1n, never)).rejects.toThrow('--enable-rpc-transaction-history')
  })
  test('is not what nobody here knows: that may pass', async () => {
    expect(await failure(chainOver(refusing({ error: { code: -32099, message: `a mood at https://${canary}` } })).chain)).toMatchObject({
      code: 'rejected',
      isLasting: false,
      message: expect.stringContaining('code -32099: "a mood at'),
    })
  })
})

describe('a node', () => {
  test('of another genesis is not used, another is', async () => {
    const { chain, seen } = chainOver(
      { getGenesisHash: { result: testAddress(1) }, getBlockHeight: { result: 1 } },
      { ...good, getBlockHeight: { result: 2 } },
    )
    expect(await chain.blockHeight('finalized', never)).toBe(2n)
    expect(seen).not.toContain('1:getBlockHeight')
  })

  test('of another genesis, alone, is a wrong cluster', async () => {
    const { chain } = chainOver({ getGenesisHash: { result: testAddress(1) } })
    expect(await codeOf(chain.blockHeight('finalized', never))).toBe('wrong-cluster')
  })

  test('gives lamports beyond 2^53 without loss', async () => {
    const text = '{"jsonrpc":"2.0","id":1,"result":{"context":{"slot":1},"value":9007199254740993}}'
    const { chain } = chainOver({ ...good, getBalance: { text } })
    expect(await chain.balance(testAddress(1), 'confirmed', never)).toBe(9_007_199_254_740_993n)
  })

  test.each<Reply>([
    { result: { context: { slot: 1 }, value: '5' } },
    { result: { context: { slot: 1 }, value: -5 } },
    { result: { context: { slot: 1 }, value: 1.5 } },
    { result: { value: 5 } },
    { result: null },
  ])('whose answer has another shape is no answer: %j', async (reply) => {
    const { chain } = chainOver({ ...good, getBalance: reply })
    expect(await codeOf(chain.balance(testAddress(1), 'confirmed', never))).toBe('unavailable')
  })

  test('says what it knows of a signature; the height is read before the history', async () => {
    const status = { slot: 5, confirmations: null, err: { InstructionError: [1, { Custom: 0 }] }, confirmationStatus: 'finalized' }
    const { chain, seen, bodies } = chainOver({
      ...good,
      getBlockHeight: { result: 100 },
      getSignatureStatuses: { result: { context: { slot: 9 }, value: [status, null] } },
    })
    expect(await chain.landingFacts(['a', 'b'], never)).toEqual([
      {
        finalizedBlockHeight: 100n,
        statuses: [{ slot: 5n, commitment: 'finalized', failure: { name: 'Custom', instruction: 1, custom: 0 } }, undefined],
      },
    ])
    expect(seen).toEqual(['1:getGenesisHash', '1:getBlockHeight', '1:getSignatureStatuses'])
    expect(bodies.at(-1)).toEqual([['a', 'b'], { searchTransactionHistory: true }])
  })

  test('that leaves a signature out has not answered', async () => {
    const { chain } = chainOver({
      ...good,
      getBlockHeight: { result: 100 },
      getSignatureStatuses: { result: { context: { slot: 9 }, value: [] } },
    })
    expect(await codeOf(chain.landingFacts(['a'], never))).toBe('unavailable')
  })

  test('need not serve getFirstAvailableBlock', async () => {
    const script = { ...good, getBlockHeight: { result: 100 }, getSignatureStatuses: { result: { context: { slot: 9 }, value: [null] } } }
    expect(await chainOver(script).chain.landingFacts(['a'], never)).toEqual([{ finalizedBlockHeight: 100n, statuses: [undefined] }])
    const telling = { ...script, getFirstAvailableBlock: { result: 42 } }
    expect(await chainOver(telling).chain.landingFacts(['a'], never)).toMatchObject([{ historySince: 42n }])
  })

  test("ends with the caller's signal", async () => {
    const { chain } = chainOver({ ...good, getBlockHeight: 'hang' })
    await expect(chain.blockHeight('finalized', AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop')
  })
})

describe('a network of the configuration', () => {
  const config = { name: 'devnet', chain: 'Solana', rpcUrls: ['https://n1.test'] }
  test('has its genesis hash built in', () => {
    expect(solanaNetworkConfig.parse(config)).toMatchObject({ genesisHash: devnet, pollIntervalMs: 5000 })
    expect(solanaNetworkConfig.parse({ ...config, name: 'local', genesisHash: testAddress(1) }).genesisHash).toBe(testAddress(1))
  })
  test.each([
    { name: 'another genesis under a known name', change: { genesisHash: testAddress(1) } },
    { name: 'no genesis under a new name', change: { name: 'local' } },
    { name: 'a genesis that is none', change: { name: 'local', genesisHash: 'abc' } },
    { name: 'no URL', change: { rpcUrls: [] } },
    { name: 'a URL of another scheme', change: { rpcUrls: ['ws://n1.test'] } },
    { name: 'an unknown field', change: { chainId: 1 } },
  ])('is refused with $name', ({ change }) => {
    expect(solanaNetworkConfig.safeParse({ ...config, ...change }).success).toBe(false)
  })
})

describe('a first node that stands still while the second goes on', () => {
  const clockData = (slot: number, seconds: number): string => {
    // Clock sysvar: slot, start of the epoch, epoch, epoch of the leader schedule, time; little endian.
    const data = Buffer.alloc(40)
    data.writeBigUInt64LE(BigInt(slot), 0)
    data.writeBigInt64LE(BigInt(seconds), 32)
    return data.toString('base64')
  }
  /** A node at a slot; the clock's time is 400 ms a slot. */
  const nodeAt = (slot: () => number, more: Script = {}): Script =>
    new Proxy({} as Script, {
      get: (_, method: string): Reply | undefined => {
        const at = slot()
        const context = { slot: at }
        const answers: Script = {
          getGenesisHash: { result: devnet },
          getAccountInfo: {
            result: {
              context,
              value: {
                lamports: 1,
                owner: testAddress(1),
                data: [clockData(at, start + at * 0.4), 'base64'],
                executable: false,
              },
            },
          },
          getLatestBlockhash: { result: { context, value: { blockhash: testAddress(3), lastValidBlockHeight: at + 150 } } },
          getBalance: { result: { context, value: at } },
          getBlockHeight: { result: at },
          ...more,
        }
        return answers[method]
      },
    })
  const start = 1_700_000_000
  function stuckFirst() {
    let now = 0
    const clock = { ...systemClock, monotonicMs: () => now, now: () => new Date((start + 400) * 1000 + now) }
    const slots = [1000, 1000] as [number, number]
    const over = chainOver([nodeAt(() => slots[0]), nodeAt(() => slots[1])], clock)
    return {
      ...over,
      slots,
      pass: (seconds: number) => {
        now += seconds * 1000
        slots[1] += Math.floor(seconds / 0.4)
      },
    }
  }

  test('is out: blockhashes and balances come from the second; it comes back when it moves', async () => {
    const { chain, slots, pass } = stuckFirst()
    expect((await chain.latestBlockhash(never)).slot).toBe(1000n)
    for (let poll = 0; poll < 4; poll++) {
      pass(6)
      await chain.blockHeight('finalized', never)
    }
    expect((await chain.latestBlockhash(never)).slot).toBe(1060n)
    expect(await chain.balance(testAddress(5), 'confirmed', never)).toBe(1060n)
    pass(6)
    slots[0] = slots[1]
    expect(await chain.balance(testAddress(5), 'confirmed', never)).toBe(BigInt(slots[1]))
    expect((await chain.landingFacts([], never)).map((fact) => fact?.finalizedBlockHeight)).toEqual([1075n, 1075n])
  })

  test('gives no blockhash that is dead on arrival, though it is not out yet', async () => {
    const { chain, pass } = stuckFirst()
    await chain.latestBlockhash(never)
    pass(12)
    expect((await chain.latestBlockhash(never)).slot).toBe(1030n)
  })

  test('keeps a transaction alive until it has come along: another one could land beside it', async () => {
    const { chain, pass } = stuckFirst()
    pass(120)
    const facts = await chain.landingFacts([], never)
    expect(decideLanding({ lastValidBlockHeight: 1100n, facts })).toMatchObject({ kind: 'may-land' })
  })
})

describe('a method that the first node refuses', () => {
  test.each<Reply>([
    { error: { code: -32601, message: canary } },
    { error: { code: 403, message: canary }, status: 403 },
    { error: { code: -32001, message: `not on your plan ${canary}` } },
    { html: 402 },
  ])('is asked of the second, which is asked first from then on: %j', async (reply) => {
    const { chain, seen } = chainOver([
      { ...good, getBlockHeight: reply },
      { ...good, getBlockHeight: { result: 5 } },
    ])
    expect(await chain.blockHeight('finalized', never)).toBe(5n)
    seen.length = 0
    expect(await chain.blockHeight('finalized', never)).toBe(5n)
    expect(seen).not.toContain('1:getBlockHeight')
    await expect(chainOver([{ ...good, getBlockHeight: reply }]).chain.blockHeight('finalized', never)).rejects.toThrow(/getBlockHeight/)
  })
})
