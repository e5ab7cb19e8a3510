import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Collector, findCollector, startCollector } from '../../cluster/otelcol.ts'
import { pageCommands } from '../../cluster/page-commands.ts'
import { type CollectedSpan, startOtlpStandIn } from '../../stack/otlp-stand-in.ts'
import { applyAll, eventually, signer, stake, untilHolds } from '../../stack/resources.ts'
import { TEST_SEED } from '../../stack/stack.ts'
import { untilPaidOnce, useStack } from './harness.ts'

/**
 * Traces of both programs, as they export them where the environment asks for it, sent to a stand-in for a collector, which keeps them: from a stake's reconcile
 * through the staking API into its service and its database, and from the lane to the node. Where a real OpenTelemetry Collector was built
 * (`node scripts/otelcol.ts`, which `.ci/run` does), the stand-in passes all of it on to that, and answers as it does.
 */
const CANARY = 'otlp-header-canary-17'
const variables = [
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_BSP_SCHEDULE_DELAY',
  'OTEL_RESOURCE_ATTRIBUTES',
] as const
const program = findCollector()
let real: Collector | undefined
let collector: Awaited<ReturnType<typeof startOtlpStandIn>>
// Before the stack is started: both programs inherit the environment.
beforeAll(async () => {
  real = program === undefined ? undefined : await startCollector(program)
  collector = await startOtlpStandIn(real === undefined ? {} : { collector: real.url })
  Object.assign(process.env, {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer ${CANARY}`,
    OTEL_BSP_SCHEDULE_DELAY: '200',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
  })
})
afterAll(async () => {
  for (const name of variables) delete process.env[name]
  await collector?.stop()
  await real?.stop()
})
const stack = useStack()

/** The spans of the trace that the stake's first reconcile has begun. */
function traceOf(name: string): readonly CollectedSpan[] {
  const reconcile = collector.spans().find((span) => span.name === 'reconcile EthereumStake' && span.attributes['staking.name'] === name)
  return collector.spans().filter(({ traceId }) => traceId === reconcile?.traceId)
}
const inTrace = (trace: readonly CollectedSpan[], service: string, pattern: RegExp): readonly CollectedSpan[] =>
  trace.filter((span) => span.service === service && pattern.test(span.name))

test('a stake, from end to end, is one connected trace: reconcile, staking API, its database, API server, signature, node', async () => {
  await applyAll(stack().cluster, [signer(), stake('traced')])
  await untilPaidOnce(stack(), 'traced', { timeoutMs: 150_000 })
  const wanted = [
    ['staking-operator', /^reconcile EthereumStake$/],
    ['staking-operator', /^staking API createEthereumStake$/],
    ['staking-service', /^POST \/v1\/ethereum\/stakes$/],
    ['staking-service', /^postgresql (insert|select)$/],
    ['staking-operator', /^kubernetes create stakingtransactions$/],
    ['staking-operator', /^kubernetes patch ethereumstakes$/],
    ['staking-operator', /^sign$/],
    ['staking-operator', /^broadcast$/],
    ['staking-operator', /^eth_sendRawTransaction$/],
  ] as const
  const trace = await eventually(
    'all spans are there, and each but the first has its parent',
    async () => traceOf('traced'),
    (spans) => {
      const ids = new Set(spans.map(({ spanId }) => spanId))
      const roots = spans.filter(({ parentSpanId }) => !ids.has(parentSpanId))
      // The reconcile that saw the deposit final is exported last.
      const isSeenToTheEnd = spans.some(({ attributes }) => attributes['staking.phase'] === 'Confirmed')
      return isSeenToTheEnd && roots.length === 1 && wanted.every(([service, name]) => inTrace(spans, service, name).length > 0)
    },
  )
  const one = (service: string, pattern: RegExp): CollectedSpan => {
    const [found] = inTrace(trace, service, pattern)
    if (found === undefined) throw new Error(`no span ${pattern}`)
    return found
  }
  const asked = one('staking-operator', /^staking API createEthereumStake$/)
  const served = one('staking-service', /^POST \/v1\/ethereum\/stakes$/)
  expect(served.parentSpanId, "the service's span is a part of the operator's").toBe(asked.spanId)
  expect(served.attributes).toMatchObject({ 'http.route': '/v1/ethereum/stakes', 'http.response.status_code': 201 })
  const send = one('staking-operator', /^eth_sendRawTransaction$/)
  expect(send.parentSpanId).toBe(one('staking-operator', /^broadcast$/).spanId)
  expect(send.attributes).toMatchObject({ 'rpc.method': 'eth_sendRawTransaction', 'staking.network': 'local', 'staking.node': 1 })
  const first = trace.find(({ parentSpanId }) => parentSpanId === '')
  expect(first).toMatchObject({
    name: 'reconcile EthereumStake',
    attributes: { 'staking.kind': 'EthereumStake', 'staking.namespace': 'default', 'staking.name': 'traced' },
  })
  expect(first?.attributes['staking.uid']).toMatch(/^[0-9a-f-]{36}$/)
})

const why = program === undefined ? ' (skipped: node scripts/otelcol.ts builds it)' : ''
test.skipIf(program === undefined)(`a real OpenTelemetry Collector takes all of it, span by span${why}`, async () => {
  const seen = () => real?.seen() ?? ''
  const [{ traceId = '' } = {}] = traceOf('traced')
  // A span that comes meanwhile comes to one before the other.
  await untilHolds(
    'the collector has every span of the trace, once',
    async () => seen().split(`Trace ID       : ${traceId}`).length - 1,
    (taken) => expect(taken).toBe(traceOf('traced').length),
  )
  expect(collector.refusals()).toEqual([])
  for (const text of [
    'Name           : broadcast',
    'service.name: Str(staking-service)',
    'staking.node: Int(1)',
    'rpc.method: Str(eth_sendRawTransaction)',
  ])
    expect(seen()).toContain(text)
  expect(seen()).not.toMatch(/"level":"(error|warn)"|\t(error|warn)\t/)
})

test('lines of the log name the trace that they were written in, as the page finds it', async () => {
  const [span] = traceOf('traced')
  const page = await pageCommands(
    stack().cluster,
    {
      page: 'docs/how-to/trace.md',
      placeholders: { 'stake-1': 'traced' },
      pod: { serviceConfig: '', logs: [join(stack().dir, 'operator.log')] },
    },
    AbortSignal.timeout(60_000),
  )
  try {
    expect((await page.run('From a log line to its trace')).split('\n')).toContain(`"trace_id":"${span?.traceId}"`)
  } finally {
    page.stop()
  }
  const lines = stack()
    .logs()
    .split('\n')
    .filter((line) => line.includes(`"trace_id":"${span?.traceId}"`))
  expect(lines.some((line) => line.includes('"program":"operator"') && line.includes('"span_id":"'))).toBe(true)
  expect(lines.some((line) => line.includes('"program":"service"') && line.includes('"path":"/v1/ethereum/stakes"'))).toBe(true)
})

test('nothing that is sent holds a URL, a key or a token, and the collector has got its header', () => {
  const text = collector.text()
  const secrets = [
    readFileSync(stack().apiKeyFile, 'utf8').trim(),
    TEST_SEED,
    CANARY,
    ...stack().anvil.accounts.map(({ privateKey }) => privateKey.slice(2)),
    '://',
    'sop_',
    'Bearer',
  ]
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([])
  expect(collector.headers()).toContain(CANARY)
  expect(stack().logs()).not.toContain(CANARY)
})

test('a collector that is gone costs nothing: stakes are paid, and the log says it once, without an address', async () => {
  const port = new URL(collector.url).port
  await collector.stop()
  await applyAll(stack().cluster, [stake('untraced')])
  await untilPaidOnce(stack(), 'untraced', { timeoutMs: 150_000 })
  const told = await eventually(
    'the operator tells it',
    async () =>
      stack()
        .logs()
        .split('\n')
        .filter((line) => line.includes('traces could not be exported') && line.includes('"program":"operator"')),
    (lines) => lines.length > 0,
    60_000,
  )
  expect(told.join('\n')).not.toContain(port)
})
