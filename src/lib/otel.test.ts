import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { context } from '@opentelemetry/api'
import type { ExportResult } from '@opentelemetry/core'
import { InMemorySpanExporter, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace'
import { afterEach, describe, expect, test } from 'vitest'
import { createLogger } from './log.ts'
import { startTracing, wantsTracing } from './otel.ts'
import { inSpan, isTracing, serveSpan, type Tracing, traceHeaders } from './tracing.ts'

let tracing: Tracing | undefined
afterEach(async () => {
  await tracing?.close()
  tracing = undefined
  expect(isTracing()).toBe(false)
})

/** Keeps what was exported after it is shut down, which the SDK's own does not. */
class Kept extends InMemorySpanExporter {
  override shutdown = async (): Promise<void> => {}
}

async function start(given: { readonly exporter?: SpanExporter; readonly env?: Record<string, string> } = {}) {
  const exporter = new Kept()
  const clock = { ms: 0, monotonicMs: () => clock.ms }
  const told: string[] = []
  const tell = (fields: object, message: string): void => void told.push(JSON.stringify({ ...fields, message }))
  tracing = await startTracing({
    service: 'staking-operator',
    version: '1.2.3',
    env: given.env ?? {},
    clock,
    log: { info: tell, warn: tell },
    exporter: given.exporter ?? exporter,
  })
  /** All spans that have ended, in the order of their ends. */
  async function spans(): Promise<readonly ReadableSpan[]> {
    await tracing?.close()
    tracing = undefined
    return exporter.getFinishedSpans()
  }
  return { clock, told, spans }
}

const nothing = async () => undefined
const reconcile = (uid: string, work: () => Promise<unknown> = nothing) =>
  inSpan('reconcile', () => ({ thread: 'EthereumStake/team-a/one', begins: { id: uid } }), work)
const named = (all: readonly ReadableSpan[], name: string): ReadableSpan => {
  const found = all.find((span) => span.name === name)
  if (found === undefined) throw new Error(`there is no span ${name}`)
  return found
}
const traceOf = (span: ReadableSpan): string => span.spanContext().traceId

describe('traces are off', () => {
  test.each([
    { env: {}, on: false },
    { env: { OTEL_EXPORTER_OTLP_ENDPOINT: '' }, on: false },
    { env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }, on: true },
    { env: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }, on: true },
    { env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_SDK_DISABLED: 'true' }, on: false },
    { env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_TRACES_EXPORTER: 'none' }, on: false },
  ])('unless an endpoint is set: $env', ({ env, on }) => {
    expect(wantsTracing(env)).toBe(on)
  })

  test.each(['collector:4318', 'nonsense', 'http://', 'grpc://collector:4317'])(
    'where the endpoint is none (%s), which the log says without it',
    async (endpoint) => {
      const told: string[] = []
      const log = { info: () => {}, warn: (fields: object, message: string) => void told.push(JSON.stringify(fields) + message) }
      const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }
      expect(await startTracing({ service: 's', version: '1', env, clock: { monotonicMs: () => 0 }, log })).toBeUndefined()
      expect(told).toEqual([expect.stringContaining('must be an http(s) URL')])
    },
  )

  test('and then work is done as it is: nothing is asked, nothing is told', async () => {
    const log = { info: () => {}, warn: () => {} }
    expect(await startTracing({ service: 's', version: '1', env: {}, clock: { monotonicMs: () => 0 }, log })).toBeUndefined()
    const asked = () => {
      throw new Error('nobody traces')
    }
    expect(await inSpan('work', asked, async (span) => span.set({ a: 1 }))).toBeUndefined()
    expect(serveSpan('request', asked, {})).toBeUndefined()
    expect(traceHeaders()).toEqual({})
  })
})

test('no module loads the packages before somebody asks for traces', () => {
  const source = join(import.meta.dirname, '..')
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
  )
  expect(files).toContain('lib/otel.ts')
  const loading = files.filter((file) => /^(import|export) (?!type ).*'@opentelemetry\//m.test(readFileSync(join(source, file), 'utf8')))
  expect(loading).toEqual([])
})

describe('a span', () => {
  test('is part of the one that runs, over everything that is awaited, and has its attributes and its outcome', async () => {
    const { spans } = await start()
    await inSpan(
      'outer',
      () => ({ attributes: { 'staking.kind': 'EthereumStake', absent: undefined } }),
      async (span) => {
        await new Promise((resolve) => setImmediate(resolve))
        await inSpan('inner', () => ({ kind: 'client', isPart: true }), nothing)
        span.set({ 'staking.result': 'done' })
      },
    )
    const [inner, outer] = await spans()
    expect(inner?.parentSpanContext?.spanId).toBe(outer?.spanContext().spanId)
    expect(outer?.attributes).toEqual({ 'staking.kind': 'EthereumStake', 'staking.result': 'done' })
    expect(outer?.resource.attributes).toMatchObject({ 'service.name': 'staking-operator', 'service.version': '1.2.3' })
  })

  test('of what a program does all the time by itself is none', async () => {
    const { spans } = await start()
    await inSpan('eth_blockNumber', () => ({ isPart: true }), nothing)
    expect(await spans()).toEqual([])
  })

  test('is no part of one that is over: what some work has begun may go on for hours', async () => {
    const { spans } = await start()
    const over = Promise.withResolvers<void>()
    let later: Promise<unknown> = nothing()
    await inSpan(
      'begins',
      () => ({}),
      async () => {
        later = over.promise.then(() => inSpan('eth_getLogs', () => ({ isPart: true }), nothing))
      },
    )
    over.resolve()
    await later
    expect((await spans()).map(({ name }) => name)).toEqual(['begins'])
  })

  test('that fails tells the kind of the failure, and not its text', async () => {
    const { spans } = await start()
    const failure = Object.assign(new Error('https://user:canary@rpc.example/key'), { kind: 'timeout' })
    await expect(
      inSpan(
        'call',
        () => ({}),
        () => Promise.reject(failure),
      ),
    ).rejects.toBe(failure)
    const [span] = await spans()
    expect(span?.attributes).toEqual({ 'error.type': 'timeout' })
    expect(JSON.stringify([span?.status, span?.events, span?.attributes])).not.toContain('canary')
  })

  test('that can not be made, or told of, holds nothing up', async () => {
    const { spans } = await start()
    const broken = () => {
      throw new Error('no attributes')
    }
    expect(await inSpan('work', broken, async () => 1)).toBe(1)
    expect(
      await inSpan(
        'work',
        () => ({}),
        async (span) => {
          span.set(broken)
          return 2
        },
      ),
    ).toBe(2)
    expect(serveSpan('request', broken, {})).toBeUndefined()
    expect(await spans()).toHaveLength(1)
  })

  test('is named in each line of the log that is written in it, and in no other', async () => {
    await start()
    const lines: { msg: string; trace_id?: string; span_id?: string }[] = []
    const log = createLogger({ program: 'test', level: 'info', destination: { write: (line) => void lines.push(JSON.parse(line)) } })
    log.info({}, 'before')
    await inSpan(
      'work',
      () => ({}),
      async () => log.child({ kind: 'a' }).info({}, 'inside'),
    )
    expect(lines[0]).not.toHaveProperty('trace_id')
    expect(lines[1]).toMatchObject({
      msg: 'inside',
      kind: 'a',
      trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
      span_id: expect.stringMatching(/^[0-9a-f]{16}$/),
    })
  })
})

describe('all work on a resource', () => {
  test('is one trace, begun by its first reconcile: what its lane does for it too, with a link to the lane', async () => {
    const { spans } = await start()
    await reconcile('uid-1')
    await inSpan(
      'lane',
      () => ({}),
      () =>
        inSpan(
          'broadcast',
          () => ({ thread: 'EthereumStake/team-a/one' }),
          () => inSpan('eth_sendRawTransaction', () => ({ isPart: true }), nothing),
        ),
    )
    await reconcile('uid-1')
    const all = await spans()
    const [first, second] = all.filter(({ name }) => name === 'reconcile')
    const [lane, broadcast, call] = ['lane', 'broadcast', 'eth_sendRawTransaction'].map((name) => named(all, name))
    if (first === undefined || second === undefined || broadcast === undefined || call === undefined || lane === undefined)
      throw new Error('a span is missing')
    expect(first.parentSpanContext).toBeUndefined()
    expect([second, broadcast, call].map(traceOf)).toEqual([first, first, first].map(traceOf))
    expect([second, broadcast].map((span) => span.parentSpanContext?.spanId)).toEqual(
      [first, first].map((span) => span.spanContext().spanId),
    )
    expect(traceOf(lane)).not.toBe(traceOf(first))
    expect(broadcast.links.map(({ context: { spanId } }) => spanId)).toEqual([lane.spanContext().spanId])
  })

  test('begins another trace for another resource of its name, and after an hour', async () => {
    const { spans, clock } = await start()
    await reconcile('uid-1')
    await reconcile('uid-2')
    clock.ms = 3_600_001
    await reconcile('uid-2')
    expect(new Set((await spans()).map(traceOf)).size).toBe(3)
  })
})

describe('a request', () => {
  test('goes on with the trace that its traceparent names, and what it does is a part of it', async () => {
    const { spans } = await start()
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const span = serveSpan('POST /v1/ethereum/stakes', () => ({ kind: 'server' }), { traceparent })
    await span?.within(() => inSpan('postgresql insert', () => ({ isPart: true }), nothing))
    const told = span?.within(traceHeaders)
    span?.end()
    span?.end(true)
    const all = await spans()
    const [statement, request] = [named(all, 'postgresql insert'), named(all, 'POST /v1/ethereum/stakes')]
    expect(all).toHaveLength(2)
    expect([request.parentSpanContext?.spanId, traceOf(request)]).toEqual(['b7ad6b7169203331', '0af7651916cd43dd8448eb211c80319c'])
    expect(statement.parentSpanContext?.spanId).toBe(request.spanContext().spanId)
    expect(told).toEqual({ traceparent: `00-${traceOf(request)}-${request.spanContext().spanId}-01` })
    expect(context.active()).toBeDefined()
  })

  test.each([undefined, '', 'nonsense', '00-00000000000000000000000000000000-b7ad6b7169203331-01', ['a', 'b']])(
    'with a traceparent that is none (%s) begins its own',
    async (traceparent) => {
      const { spans } = await start()
      serveSpan('request', () => ({}), { traceparent })?.end()
      expect((await spans())[0]?.parentSpanContext).toBeUndefined()
    },
  )
})

test('an exporter that fails costs nothing but its spans, and is told rarely, without what its error says', async () => {
  const failing: SpanExporter = {
    export: (_spans, done: (result: ExportResult) => void) =>
      done({ code: 1, error: Object.assign(new Error('https://collector.example/canary'), { code: 'ECONNREFUSED' }) }),
    shutdown: async () => {},
  }
  const { told, clock } = await start({
    exporter: failing,
    env: { OTEL_BSP_SCHEDULE_DELAY: '1', OTEL_BSP_MAX_QUEUE_SIZE: '8', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4' },
  })
  for (let n = 0; n < 1_000; n++)
    expect(
      await inSpan(
        'work',
        () => ({}),
        async () => n,
      ),
    ).toBe(n)
  await expect.poll(() => told.filter((line) => line.includes('could not be exported')).length).toBe(1)
  clock.ms = 60_001
  for (let n = 0; n < 10; n++) await inSpan('work', () => ({}), nothing)
  await expect.poll(() => told.filter((line) => line.includes('could not be exported')).length).toBe(2)
  expect(told.join()).not.toContain('canary')
  expect(told.join()).toContain('ECONNREFUSED')
})

test.each([
  { env: { OTEL_TRACES_SAMPLER: 'always_off' }, exported: 0 },
  { env: { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }, exported: 0 },
  { env: { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '1' }, exported: 1 },
  { env: { OTEL_TRACES_SAMPLER: 'nonsense' }, exported: 1 },
])('the sampler is as the environment says: $env', async ({ env, exported }) => {
  const { spans } = await start({ env })
  await inSpan('work', () => ({}), nothing)
  expect(await spans()).toHaveLength(exported)
})
