import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface CollectedSpan {
  readonly service: string
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  /** '' for a root. */
  readonly parentSpanId: string
  readonly attributes: Readonly<Record<string, string | number | boolean>>
}

type Value = {
  readonly stringValue?: string
  readonly intValue?: number | string
  readonly doubleValue?: number
  readonly boolValue?: boolean
}
interface Attribute {
  readonly key: string
  readonly value: Value
}
interface Body {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly Attribute[] }
    readonly scopeSpans?: readonly {
      readonly spans?: readonly {
        readonly name: string
        readonly traceId: string
        readonly spanId: string
        readonly parentSpanId?: string
        readonly attributes?: readonly Attribute[]
      }[]
    }[]
  }[]
}

const attributesOf = (list: readonly Attribute[] = []): CollectedSpan['attributes'] =>
  Object.fromEntries(
    list.map(({ key, value }) => [key, value.stringValue ?? value.boolValue ?? value.doubleValue ?? Number(value.intValue)] as const),
  )

/**
 * A stand-in for an OpenTelemetry collector: it takes OTLP over HTTP as JSON at `/v1/traces` (opentelemetry-proto, `ExportTraceServiceRequest`), and keeps what
 * it was sent. With `collector` it passes all of it on to that, as it came, and answers as that does.
 */
export async function startOtlpStandIn({ collector }: { readonly collector?: string } = {}) {
  const refusals: string[] = []
  const spans: CollectedSpan[] = []
  const bodies: string[] = []
  const headers: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (request.method !== 'POST' || request.url !== '/v1/traces') {
        response.writeHead(404).end()
        return
      }
      const text = Buffer.concat(chunks).toString('utf8')
      bodies.push(text)
      headers.push(JSON.stringify(request.headers))
      for (const { resource, scopeSpans = [] } of (JSON.parse(text) as Body).resourceSpans ?? [])
        for (const { spans: found = [] } of scopeSpans)
          for (const { name, traceId, spanId, parentSpanId = '', attributes } of found)
            spans.push({
              service: String(attributesOf(resource?.attributes)['service.name'] ?? ''),
              name,
              traceId,
              spanId,
              parentSpanId,
              attributes: attributesOf(attributes),
            })
      if (collector === undefined) {
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
        return
      }
      void passOn(collector, request.headers['content-type'] ?? '', text).then(({ status, body }) => {
        if (status !== 200) refusals.push(`${status} ${body}`)
        response.writeHead(status, { 'content-type': 'application/json' }).end(body)
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: (): readonly CollectedSpan[] => spans,
    /** Everything that it was sent, as it was. */
    text: () => bodies.join('\n'),
    headers: () => headers.join('\n'),
    /** What the collector behind it did not take. */
    refusals: (): readonly string[] => refusals,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function passOn(collector: string, type: string, body: string): Promise<{ readonly status: number; readonly body: string }> {
  try {
    const answer = await fetch(`${collector}/v1/traces`, { method: 'POST', headers: { 'content-type': type }, body })
    return { status: answer.status, body: await answer.text() }
  } catch (error) {
    return { status: 502, body: JSON.stringify({ message: String(error) }) }
  }
}
