import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino'
import { traceIds } from './tracing.ts'

export type { Logger } from 'pino'

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** Addresses of nodes and databases often are credentials, and errors of their clients quote them; API keys have a prefix to be found by. */
const urls = /\b([a-z][a-z0-9+.-]*):\/\/[^\s"'<>]+/gi
/** Where a line of a stack is from. */
const places: ReadonlySet<string> = new Set(['file', 'node'])
const apiKeys = /\bsop_[A-Za-z0-9_-]{20,}/g
const bearer = /\bbearer\s+[^\s"']+/gi
export const scrub = (text: string): string =>
  text
    .replace(urls, (url: string, scheme: string) => (places.has(scheme.toLowerCase()) ? url : `${scheme}://[hidden]`))
    .replace(apiKeys, 'sop_[hidden]')
    .replace(bearer, 'Bearer [hidden]')

export const logFormats = ['json', 'text'] as const
export type LogFormat = (typeof logFormats)[number]

/** An error for the log: its own text and stack, scrubbed, and of what it carries only its code. Bodies and requests that clients attach stay out. */
function errorOf(value: unknown, depth = 0): unknown {
  if (!(value instanceof Error)) return typeof value === 'string' ? scrub(value) : stdSerializers.err(value as Error)
  return {
    type: value.name,
    message: scrub(value.message),
    ...('code' in value && typeof value.code === 'string' ? { code: value.code } : {}),
    ...(value.stack === undefined ? {} : { stack: scrub(value.stack) }),
    ...(value.cause instanceof Error && depth < 4 ? { cause: errorOf(value.cause, depth + 1) } : {}),
  }
}

export interface LogOptions {
  /** Which of the two programs writes: `operator` or `service`. */
  readonly program: string
  readonly level: LogLevel
  /** `json`: one object a line, for machines; `text`: lines for people. */
  readonly format?: LogFormat
  readonly destination?: DestinationStream
}

/**
 * JSON lines with fixed keys. Headers are never serialised; what slips in under a known name is taken out, and URLs, API keys and bearer
 * tokens in the text of errors are hidden.
 */
export function createLogger({ program, level, format = 'json', destination }: LogOptions): Logger {
  const options = {
    level,
    base: { program },
    timestamp: pino.stdTimeFunctions.isoTime,
    // Which span a line was written in, while somebody traces.
    mixin: () => traceIds() ?? {},
    redact: {
      paths: [
        'authorization',
        'headers',
        'req.headers',
        'res.headers',
        '*.authorization',
        '*.apiKey',
        '*.seed',
        '*.secretKey',
        '*.privateKey',
        '*.password',
      ],
      censor: '[hidden]',
    },
    serializers: {
      err: (error: unknown) => errorOf(error),
      error: (error: unknown) => errorOf(error),
      req: (request: { method?: string; url?: string; id?: unknown }) => ({ method: request.method, url: request.url, id: request.id }),
      res: (reply: { statusCode?: number }) => ({ statusCode: reply.statusCode }),
    },
  }
  const formatters = { level: (label: string) => ({ level: label }) }
  if (destination !== undefined) return pino({ ...options, formatters }, destination)
  if (format === 'text')
    return pino({ ...options, transport: { target: 'pino-pretty', options: { ignore: 'program,pid,hostname', singleLine: true } } })
  return pino({ ...options, formatters })
}
