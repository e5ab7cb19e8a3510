import type { Context, Span as OtelSpan, SpanContext } from '@opentelemetry/api'
import type { BatchSpanProcessorOptions, Sampler, SpanExporter } from '@opentelemetry/sdk-trace'
import type { Clock } from './clock.ts'
import {
  installTracing,
  type OpenSpan,
  type Span,
  type SpanAttributes,
  type SpanOptions,
  type TraceHeaders,
  type Tracing,
} from './tracing.ts'

type Env = Readonly<Record<string, string | undefined>>

/** The standard variables that turn traces on. Source: OpenTelemetry specification, "Environment Variable Specification", and "OTLP Exporter". */
export const wantsTracing = (env: Env): boolean =>
  env.OTEL_SDK_DISABLED?.trim().toLowerCase() !== 'true' &&
  env.OTEL_TRACES_EXPORTER?.trim() !== 'none' &&
  [env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, env.OTEL_EXPORTER_OTLP_ENDPOINT].some(
    (endpoint) => endpoint !== undefined && endpoint.trim() !== '',
  )

export interface TracingOptions {
  /** `staking-operator` or `staking-service`, unless OTEL_SERVICE_NAME says another. */
  readonly service: string
  readonly version: string
  readonly env: Env
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void }
  /** For tests. Default: OTLP over HTTP, as the environment says. */
  readonly exporter?: SpanExporter
}

/** How long a trace of a resource goes on at most, in ms: what lasts for days has a trace for each hour of work. */
const THREAD_MS = 3_600_000
/** Resources whose trace is remembered at most. */
const MOST_THREADS = 10_000
/** A failed export is told once in so many ms: an exporter that is down must not fill the log. */
const TOLD_EVERY_MS = 60_000
const CLOSE_MS = 3_000
const LONGEST_ATTRIBUTE = 512

/**
 * Starts OpenTelemetry and installs it, where the environment asks for it; the packages are loaded then and not before. A collector that is down, slow or
 * refuses costs nothing but its spans: they are kept in a bounded queue, and dropped.
 * @returns undefined where it is not asked for
 */
export async function startTracing(options: TracingOptions): Promise<Tracing | undefined> {
  const { env, exporter, log } = options
  if (exporter === undefined) {
    if (!wantsTracing(env)) return undefined
    const endpoint = URL.parse((env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT) ?? '')
    if (endpoint === null || !/^https?:$/.test(endpoint.protocol)) {
      log.warn({}, 'traces are not exported: OTEL_EXPORTER_OTLP_ENDPOINT must be an http(s) URL, such as that of a collector at port 4318')
      return undefined
    }
  }
  try {
    return await begin(options)
  } catch (error) {
    // Whoever has mistyped an endpoint wants stakes all the same.
    log.warn({ error: kindOf(error) }, 'traces can not be exported: check the variables OTEL_*')
    return undefined
  }
}

async function begin(options: TracingOptions): Promise<Tracing> {
  const { env, log } = options
  const [api, sdk, core, { AsyncLocalStorageContextManager }, resources] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/core'),
    import('@opentelemetry/context-async-hooks'),
    import('@opentelemetry/resources'),
  ])
  const exporter = options.exporter ?? new (await import('@opentelemetry/exporter-trace-otlp-http')).OTLPTraceExporter()
  core.setGlobalErrorHandler(tellRarely(options))
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  const resource = resources
    .resourceFromAttributes({ 'service.name': options.service, 'service.version': options.version })
    .merge(resources.detectResources({ detectors: [resources.resourceAttributesEnvDetector, resources.serviceNameEnvDetector] }))
  const provider = new sdk.TracerProvider({
    resource,
    sampler: samplerOf(sdk, env),
    spanLimits: { attributeValueLengthLimit: LONGEST_ATTRIBUTE },
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter, ...batchOf(env) })],
  })
  const tracing = createTracing(
    { api, tracer: provider.getTracer('staking-operator', options.version), clock: options.clock },
    new core.W3CTraceContextPropagator(),
  )
  const started: Tracing = {
    ...tracing,
    async close() {
      const late = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS).unref())
      await Promise.race([provider.shutdown().catch(() => {}), late])
      installTracing(undefined)
      api.context.disable()
    },
  }
  installTracing(started)
  log.info({ service: env.OTEL_SERVICE_NAME ?? options.service }, 'traces are exported by OTLP over HTTP')
  return started
}

/** Of what went wrong only its kind: an exporter's error may quote its URL and the headers that it sends. */
function tellRarely({ clock, log }: Pick<TracingOptions, 'clock' | 'log'>): (error: unknown) => void {
  let toldAt = Number.NEGATIVE_INFINITY
  return (error) => {
    if (clock.monotonicMs() - toldAt < TOLD_EVERY_MS) return
    toldAt = clock.monotonicMs()
    log.warn({ error: kindOf(error) }, 'traces could not be exported: they are dropped, and nothing else is')
  }
}

/** The name or code of an error: a word, never its text. */
function kindOf(error: unknown): string {
  const given = error as { readonly code?: unknown; readonly kind?: unknown; readonly name?: unknown } | undefined
  const word = [given?.code, given?.kind, given?.name].find(
    (one) => (typeof one === 'string' && /^[A-Za-z][\w-]{0,63}$/.test(one)) || typeof one === 'number',
  )
  return word === undefined ? 'Error' : String(word)
}

const numberIn = (env: Env, name: string): number | undefined => {
  const value = env[name]
  return value !== undefined && /^[0-9]{1,9}$/.test(value.trim()) ? Number(value) : undefined
}

/** OTEL_BSP_*. */
function batchOf(env: Env): Omit<BatchSpanProcessorOptions, 'exporter'> {
  const given = {
    scheduledDelayMillis: numberIn(env, 'OTEL_BSP_SCHEDULE_DELAY'),
    exportTimeoutMillis: numberIn(env, 'OTEL_BSP_EXPORT_TIMEOUT'),
    maxQueueSize: numberIn(env, 'OTEL_BSP_MAX_QUEUE_SIZE'),
    maxExportBatchSize: numberIn(env, 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE'),
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

/** OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG; parentbased_always_on for what is not one of them. */
function samplerOf(sdk: typeof import('@opentelemetry/sdk-trace'), env: Env): Sampler {
  const argument = Number(env.OTEL_TRACES_SAMPLER_ARG ?? '1')
  const ratio = () => new sdk.TraceIdRatioBasedSampler(argument >= 0 && argument <= 1 ? argument : 1)
  switch (env.OTEL_TRACES_SAMPLER?.trim()) {
    case 'always_on':
      return new sdk.AlwaysOnSampler()
    case 'always_off':
      return new sdk.AlwaysOffSampler()
    case 'traceidratio':
      return ratio()
    case 'parentbased_always_off':
      return new sdk.ParentBasedSampler({ root: new sdk.AlwaysOffSampler() })
    case 'parentbased_traceidratio':
      return new sdk.ParentBasedSampler({ root: ratio() })
    default:
      return new sdk.ParentBasedSampler({ root: new sdk.AlwaysOnSampler() })
  }
}

interface Thread {
  readonly id: string
  readonly context: SpanContext
  readonly since: number
}

/** The traces of resources that are under way, by name. */
function createThreads(clock: Pick<Clock, 'monotonicMs'>) {
  const threads = new Map<string, Thread>()
  const isOver = ({ since }: Thread): boolean => clock.monotonicMs() - since > THREAD_MS
  return {
    /** @param id of the resource, where the name may have passed to another since; undefined takes whoever has it */
    of(name: string, id: string | undefined): SpanContext | undefined {
      const found = threads.get(name)
      if (found === undefined || isOver(found) || (id !== undefined && found.id !== id)) return undefined
      return found.context
    },
    begin(name: string, id: string, context: SpanContext): void {
      threads.delete(name)
      threads.set(name, { id, context, since: clock.monotonicMs() })
      for (const oldest of threads.keys()) {
        if (threads.size <= MOST_THREADS) break
        threads.delete(oldest)
      }
    },
  }
}

type Api = typeof import('@opentelemetry/api')

const nothing: Span = { set: () => {} }
const requestHeaders = {
  get: (carrier: TraceHeaders, key: string) => {
    const value = carrier[key]
    return typeof value === 'string' || value === undefined ? value : [...value]
  },
  keys: (carrier: TraceHeaders) => Object.keys(carrier),
}

/** What can't be traced is done all the same. */
function unharmed<T>(trace: () => T): T | undefined {
  try {
    return trace()
  } catch {
    return undefined
  }
}

function createTracing(
  {
    api,
    tracer,
    clock,
  }: { readonly api: Api; readonly tracer: ReturnType<Api['trace']['getTracer']>; readonly clock: Pick<Clock, 'monotonicMs'> },
  propagator: {
    inject(
      context: Context,
      carrier: Record<string, string>,
      setter: { set(carrier: Record<string, string>, key: string, value: string): void },
    ): void
    extract(
      context: Context,
      carrier: TraceHeaders,
      getter: { get(carrier: TraceHeaders, key: string): string | string[] | undefined; keys(carrier: TraceHeaders): string[] },
    ): Context
  },
): Omit<Tracing, 'close'> {
  const threads = createThreads(clock)
  const kinds = { internal: api.SpanKind.INTERNAL, client: api.SpanKind.CLIENT, server: api.SpanKind.SERVER }
  const attributesOf = (attributes: SpanAttributes = {}) =>
    Object.fromEntries(Object.entries(attributes).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])))

  function open(
    name: string,
    { kind = 'internal', attributes, thread, begins }: SpanOptions,
    around: Context,
  ): { span: OtelSpan; context: Context } {
    const parent = thread === undefined ? undefined : threads.of(thread, begins?.id)
    const active = api.trace.getSpanContext(around)
    const context = parent === undefined ? around : api.trace.setSpanContext(around, parent)
    // What is done for a resource within another's reconcile belongs to its own trace, and says where it was done.
    const links = parent !== undefined && active !== undefined && active.traceId !== parent.traceId ? [{ context: active }] : []
    const span = tracer.startSpan(name, { kind: kinds[kind], attributes: attributesOf(attributes), links }, context)
    if (thread !== undefined && begins !== undefined && parent === undefined) threads.begin(thread, begins.id, span.spanContext())
    return { span, context: api.trace.setSpan(context, span) }
  }
  const shown = (span: OtelSpan): Span => ({
    set: (attributes) => {
      unharmed(() => span.setAttributes(attributesOf(typeof attributes === 'function' ? attributes() : attributes)))
    },
  })
  function fail(span: OtelSpan, error: unknown): void {
    span.setStatus({ code: api.SpanStatusCode.ERROR })
    span.setAttribute('error.type', kindOf(error))
  }
  /** The span of some work; undefined where it is to have none. */
  function opened(name: string, ask: () => SpanOptions, around: Context) {
    const options = ask()
    // Nor of one that is over: a loop that some work has begun, as the reading of a history, goes on for hours.
    if (options.isPart === true && api.trace.getSpan(around)?.isRecording() !== true) return undefined
    return open(name, options, around)
  }

  return {
    async run(name, options, work) {
      const around = api.context.active()
      const found = unharmed(() => opened(name, options, around))
      if (found === undefined) return work(nothing)
      const { span, context } = found
      try {
        return await api.context.with(context, () => work(shown(span)))
      } catch (error) {
        unharmed(() => fail(span, error))
        throw error
      } finally {
        unharmed(() => span.end())
      }
    },
    serve(name, options, headers): OpenSpan | undefined {
      const found = unharmed(() => opened(name, options, propagator.extract(api.ROOT_CONTEXT, headers, requestHeaders)))
      if (found === undefined) return undefined
      const { span, context } = found
      return {
        ...shown(span),
        within: (work) => api.context.with(context, work),
        end: (isFailed = false) => {
          if (!span.isRecording()) return
          if (isFailed) span.setStatus({ code: api.SpanStatusCode.ERROR })
          unharmed(() => span.end())
        },
      }
    },
    ids() {
      const context = api.trace.getSpanContext(api.context.active())
      return context === undefined ? undefined : { trace_id: context.traceId, span_id: context.spanId }
    },
    headers() {
      const carrier: Record<string, string> = {}
      propagator.inject(api.context.active(), carrier, { set: (into, key, value) => void Object.assign(into, { [key]: value }) })
      return carrier
    },
  }
}
