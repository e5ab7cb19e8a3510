import { InvalidArgumentError, Option } from 'commander'
import { InspectError } from '../inspect/error.ts'
import { type LogFormat, logFormats, logLevels } from '../lib/log.ts'
import { Interrupted } from './end.ts'

/** Milliseconds from a duration as people write it: `500ms`, `15s`, `2m`, `1h`. */
export function duration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text)
  const unit = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[match?.[2] ?? '']
  if (match === null || unit === undefined) throw new InvalidArgumentError('write a duration such as 500ms, 15s, 2m or 1h')
  return Number(match[1]) * unit
}

/** How long something is to count, in ms: at most a year. What is over before anybody has seen it is none. */
export function lifetime(text: string): number {
  const ms = duration(text)
  if (ms < 1_000 || ms > 365 * 86_400_000) throw new InvalidArgumentError('write a duration from 1s to 8760h (365 days), such as 30m or 4h')
  return ms
}

/** `host:port`; port 0 takes a free one. */
export function listenAddress(text: string): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port > 65_535) throw new InvalidArgumentError('write host:port, such as 0.0.0.0:8080')
  return { host: match[1] ?? (match[2] || '0.0.0.0'), port }
}

/** Name of an object or a namespace (RFC 1123). */
export function dnsName(text: string): string {
  if (!/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(text))
    throw new InvalidArgumentError('write a name of Kubernetes: lower-case letters, digits, hyphens and dots')
  return text
}

/** What a command is about, as kubectl takes it: NAME, KIND/NAME or KIND NAME. @throws InspectError */
export function targetOf(words: readonly string[]): string {
  if (words.length > 2) throw new InspectError(`"${words.join(' ')}" is not NAME, KIND/NAME or KIND NAME: one at a time`)
  return words.join('/')
}

export function count(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new InvalidArgumentError('write a whole number from 1 to 9999')
  return Number(text)
}

/** RFC 3339, or a day alone, which begins at midnight of UTC. A time without its zone would be another one on each machine; undefined for that, and for a day that no month has. */
function timeOf(text: string): Date | undefined {
  const day = /^(\d{4}-\d{2}-\d{2})(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:[Zz]|[+-]\d{2}:\d{2}))?$/.exec(text)?.[1]
  if (day === undefined) return undefined
  const [begins, date] = [new Date(day), new Date(text.replace(' ', 'T').toUpperCase())]
  const isThere = !Number.isNaN(begins.getTime()) && begins.toISOString().startsWith(day) && !Number.isNaN(date.getTime())
  return isThere ? date : undefined
}

/** A time to come: RFC 3339, or a duration in days such as `90d`. */
export function expiry(text: string): Date {
  const days = /^([1-9]\d{0,3})d$/.exec(text)
  const date = days === null ? timeOf(text) : new Date(Date.now() + Number(days[1]) * 86_400_000)
  if (date === undefined) throw new InvalidArgumentError('write a date such as 2030-01-31 or a number of days such as 90d')
  return date
}

/** A date or a time: RFC 3339. */
export function moment(text: string): Date {
  const date = timeOf(text)
  if (date === undefined)
    throw new InvalidArgumentError('write a date such as 2030-01-31, or a time with its zone such as 2030-01-31T12:00:00Z')
  return date
}

export const logLevel = () => new Option('--log-level <level>', 'what to log').choices([...logLevels]).env('STAKING_LOG_LEVEL')

export const logFormat = () =>
  new Option('--log-format <format>', 'json: one object a line; text: lines for people (default: text on a terminal, else json)')
    .choices([...logFormats])
    .env('STAKING_LOG_FORMAT')
export const defaultLogFormat = (): LogFormat => (process.stdout.isTTY ? 'text' : 'json')

/** Aborted by SIGTERM or SIGINT, with an Interrupted as its reason; a second signal ends the process at once. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(130)
      controller.abort(new Interrupted(name))
    })
  }
  return controller.signal
}
