import { describe, expect, test } from 'vitest'
import { systemClock } from './clock.ts'
import { createRpcClient, type RpcFailureKind } from './json-rpc.ts'

const never = new AbortController().signal
type Call = { readonly id: number; readonly method: string }

/** A client of a node that answers each HTTP request by a function; `sent` holds the bodies. */
function clientOf(answer: (body: Call | readonly Call[]) => Response) {
  const sent: (Call | readonly Call[])[] = []
  const told: [string, string][] = []
  let now = 0
  const client = createRpcClient({
    url: 'https://node.test/secret',
    clock: { ...systemClock, monotonicMs: () => now },
    timeoutMs: 1000,
    maxBytes: 100_000,
    fetch: async (_, init) => {
      const body = JSON.parse(String(init?.body)) as Call | readonly Call[]
      sent.push(body)
      return answer(body)
    },
    onCall: (method, outcome) => told.push([method, outcome]),
  })
  return { ...client, sent, told, advance: (ms: number) => (now += ms) }
}
const isBatch = (body: Call | readonly Call[]): body is readonly Call[] => Array.isArray(body)
const one = ({ id, method }: Call) => ({ jsonrpc: '2.0', id, result: `of ${method}` })
const honest = (body: Call | readonly Call[]) => Response.json(isBatch(body) ? body.map(one) : one(body))
const requests = (...methods: string[]) => methods.map((method) => ({ method, params: [] }))
const values = (count: number) => Array.from({ length: count }, (_, n) => ({ value: `of m${n}` }))
const many = (count: number) => requests(...Array.from({ length: count }, (_, n) => `m${n}`))

describe('a batch', () => {
  test('is one request, and its answers may come in any order', async () => {
    const { batch, sent, told } = clientOf((body) =>
      Response.json(
        [body]
          .flat()
          .toReversed()
          .map((call) => one(call as Call)),
      ),
    )
    expect(await batch(many(3), never)).toEqual(values(3))
    expect(sent).toHaveLength(1)
    expect(told).toEqual([
      ['m0', 'ok'],
      ['m1', 'ok'],
      ['m2', 'ok'],
    ])
  })

  test('of many calls is several requests', async () => {
    const { batch, sent } = clientOf(honest)
    expect(await batch(many(45), never)).toEqual(values(45))
    expect(sent).toHaveLength(3)
  })

  test('has failures beside results', async () => {
    const { batch } = clientOf((body) =>
      Response.json([
        ...[body]
          .flat()
          .slice(0, 1)
          .map((call) => one(call as Call)),
        { id: 2, error: { code: -32601, message: 'secret' } },
        { id: 3, error: { code: -32000, message: 'secret' } },
      ]),
    )
    const [first, second, third, left] = await batch(many(4), never)
    expect(first).toEqual({ value: 'of m0' })
    expect(second).toMatchObject({ failure: { kind: 'refused', method: 'm1' } })
    expect(third).toMatchObject({ failure: { kind: 'node', method: 'm2' } })
    expect(left).toMatchObject({ failure: { kind: 'no-answer' } })
  })

  test.each<{ name: string; refusal: () => Response }>([
    {
      name: 'one error for all',
      refusal: () => Response.json({ id: null, error: { code: -32600, message: 'batches are not supported' } }),
    },
    { name: 'status 400', refusal: () => new Response('no', { status: 400 }) },
    { name: 'status 413', refusal: () => Response.json({ error: { code: 1, message: 'too large' } }, { status: 413 }) },
  ])('that the node refuses is asked one by one, and so for some minutes ($name)', async ({ refusal }) => {
    const { batch, sent, advance } = clientOf((body) => (isBatch(body) ? refusal() : honest(body)))
    expect(await batch(many(2), never)).toEqual(values(2))
    expect(sent).toHaveLength(3)
    await batch(many(2), never)
    expect(sent).toHaveLength(5)
    advance(600_001)
    await batch(many(2), never)
    expect(sent).toHaveLength(8)
  })

  test.each<{ name: string; answer: () => Response; kind: RpcFailureKind }>([
    { name: '502', answer: () => new Response('<html>', { status: 502 }), kind: 'no-answer' },
    { name: '429', answer: () => Response.json({ error: { code: 429, message: '' } }, { status: 429 }), kind: 'no-answer' },
    { name: 'another shape', answer: () => Response.json([1, 2]), kind: 'no-answer' },
    { name: 'a flood', answer: () => new Response('x'.repeat(200_000)), kind: 'too-large' },
  ])('that gets $name has failed, and no call is repeated', async ({ answer, kind }) => {
    const { batch, sent, told } = clientOf(answer)
    await expect(batch(many(2), never)).rejects.toMatchObject({ kind })
    expect(sent).toHaveLength(1)
    expect(told).toEqual([
      ['m0', kind],
      ['m1', kind],
    ])
  })

  test('that is forbidden as a whole is asked one by one, which names the method that is', async () => {
    const forbidden = () => new Response('', { status: 403 })
    const { batch } = clientOf((body) => (isBatch(body) || body.method === 'm1' ? forbidden() : honest(body)))
    expect(await batch(many(3), never)).toMatchObject([
      { value: 'of m0' },
      { failure: { kind: 'refused', method: 'm1' } },
      { value: 'of m2' },
    ])
  })

  test('asked one by one ends with the first call that has no answer', async () => {
    const { batch, sent } = clientOf((body) => (isBatch(body) ? Response.json({}) : new Response('', { status: 500 })))
    await expect(batch(many(3), never)).rejects.toMatchObject({ kind: 'no-answer' })
    expect(sent).toHaveLength(2)
  })

  test("ends with the caller's signal", async () => {
    await expect(clientOf(honest).batch(many(2), AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop')
  })
})

test.each<{ name: string; answer: Response; kind: RpcFailureKind }>([
  { name: '-32601', answer: Response.json({ error: { code: -32601, message: '' } }), kind: 'refused' },
  { name: '402 with another error', answer: Response.json({ error: { code: -32000, message: '' } }, { status: 402 }), kind: 'refused' },
  { name: '403 without JSON', answer: new Response('<html>', { status: 403 }), kind: 'refused' },
  { name: '500 with an error of its own', answer: Response.json({ error: { code: 3, message: '' } }, { status: 500 }), kind: 'node' },
  { name: '500 without JSON', answer: new Response('<html>', { status: 500 }), kind: 'no-answer' },
  { name: 'neither result nor error', answer: Response.json({}), kind: 'no-answer' },
])('a call that gets $name has failed: $kind, and its message names the method only', async ({ answer, kind }) => {
  const failure = await clientOf(() => answer)
    .call('eth_call', [], never)
    .catch((error: unknown) => error)
  expect(failure).toMatchObject({ kind, message: expect.stringContaining('eth_call') })
  expect(String(failure)).not.toContain('secret')
})
