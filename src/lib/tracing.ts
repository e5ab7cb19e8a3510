/** What is told of a span: names, numbers, outcomes. Never a URL, a key, a body or the text of an error. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>

export interface SpanOptions {
  /** `client`: a call of another program; `server`: a request of one. */
  readonly kind?: 'internal' | 'client' | 'server'
  readonly attributes?: SpanAttributes
  /**
   * What the span goes on with: the name of a resource. All work on one resource is one trace, for as long as it is under way, though it is done in many
   * reconciles, and some of it in those of others: see `begins`.
   */
  readonly thread?: string
  /** It is the resource's own reconcile: the trace is begun here, where there is none, and remembered. `id`: of the resource, whose name may pass to another. */
  readonly begins?: { readonly id: string }
  /** Only where there is a span that it can be a part of: what a program does all the time by itself is no trace. */
  readonly isPart?: true
}

/** A span that is open. */
export interface Span {
  /** A function is only asked while somebody traces. */
  set(attributes: SpanAttributes | (() => SpanAttributes)): void
}

/** A span that is ended by hand, where its work is no function. */
export interface OpenSpan extends Span {
  /** Runs what belongs to it. */
  within<T>(work: () => T): T
  /** Once: what comes after that is nothing. */
  end(isFailed?: boolean): void
}

/** W3C Trace Context, as the headers of a request have it. */
export type TraceHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** What spans are made with. What goes wrong with a span is no failure of the work: that is done without it then. */
export interface Tracing {
  run<T>(name: string, options: () => SpanOptions, work: (span: Span) => Promise<T>): Promise<T>
  /** A span of a request, in the trace that its headers name. */
  serve(name: string, options: () => SpanOptions, headers: TraceHeaders): OpenSpan | undefined
  /** Of the span that runs now; undefined where none does. */
  ids(): { readonly trace_id: string; readonly span_id: string } | undefined
  /** What another program is told, so that its spans are a part of the one that runs now. */
  headers(): Readonly<Record<string, string>>
  /** Sends what is left, within a few seconds. Never rejects. */
  close(): Promise<void>
}

/**
 * Like the context that it stands for, tracing goes through all layers and is no argument of any: whoever starts a program installs it (`otel.ts`), and
 * without that every function here does its work and nothing else.
 */
let installed: Tracing | undefined
export function installTracing(tracing: Tracing | undefined): void {
  installed = tracing
}

const nothing: Span = { set: () => {} }

/** Does the work in a span, which ends as the work does. `options` are only asked for while somebody traces. */
export const inSpan = <T>(name: string, options: () => SpanOptions, work: (span: Span) => Promise<T>): Promise<T> =>
  installed === undefined ? work(nothing) : installed.run(name, options, work)

/** Undefined while nobody traces. */
export const serveSpan = (name: string, options: () => SpanOptions, headers: TraceHeaders): OpenSpan | undefined =>
  installed?.serve(name, options, headers)

export const traceIds = () => installed?.ids()

const none: Readonly<Record<string, string>> = {}
export const traceHeaders = (): Readonly<Record<string, string>> => installed?.headers() ?? none
export const isTracing = (): boolean => installed !== undefined
