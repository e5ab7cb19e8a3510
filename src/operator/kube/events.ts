import { randomBytes } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import { createAllowance } from './allowance.ts'
import { isConflict, isNotFound } from './errors.ts'
import { type KubeLog, silentLog } from './log.ts'
import { microTime } from './micro-time.ts'
import type { KubeObject } from './objects.ts'
import type { ResourceClient, ResourceDefinition } from './resource-client.ts'

export interface ObjectReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
}

export interface KubeEvent extends KubeObject {
  readonly type?: string
  readonly reason?: string
  readonly action?: string
  readonly note?: string
  readonly eventTime: string
  readonly reportingController?: string
  readonly reportingInstance?: string
  readonly regarding?: ObjectReference
  readonly related?: ObjectReference
  readonly series?: { readonly count: number; readonly lastObservedTime: string }
}

export const events: ResourceDefinition = { group: 'events.k8s.io', version: 'v1', plural: 'events', kind: 'Event', namespaced: true }

/** What happened, for people who look at the object (`kubectl describe`, `kubectl events`). */
export interface EventText {
  readonly type: 'Normal' | 'Warning'
  /** Why, in UpperCamelCase, at most 128 characters. */
  readonly reason: string
  /** What was done or tried, in UpperCamelCase, at most 128 characters. */
  readonly action: string
  /** For people. Cut at 1024 bytes. */
  readonly note: string
  readonly related?: KubeObject
}

export interface EventRecorder {
  /** Notes it and returns. Never throws, never blocks: events are best effort. */
  event(regarding: KubeObject, text: EventText): void
  /** Writes events until aborted, then what is left, for at most `flushMs`. Never rejects. */
  run(signal: AbortSignal): Promise<void>
}

export interface EventRecorderOptions {
  readonly client: ResourceClient<KubeEvent>
  /** Such as `staking.dev/operator`. */
  readonly reportingController: string
  /** The pod. */
  readonly reportingInstance: string
  readonly clock: Clock
  readonly log?: KubeLog
  /** Events that wait to be written, at most; what comes on top is dropped. */
  readonly capacity?: number
  /** How often the count of a repeated event is written, ms. */
  readonly seriesMs?: number
  readonly flushMs?: number
  /** Normal events of a namespace: so many at once, and so many a second after that. What is beyond is told by one event for each kind and reason. */
  readonly normal?: { readonly burst: number; readonly perSecond: number }
  readonly onDropped?: () => void
}

/** An event and its repeats. */
interface Series {
  readonly key: string
  readonly body: Omit<KubeEvent, 'metadata' | 'series'>
  readonly namespace: string
  readonly name: string
  count: number
  lastAt: Date
  lastAtMs: number
  /** When it may be written for the first time, monotonic ms. */
  readonly notBeforeMs: number
  /** Objects of its kind and namespace that had the same to say while it waited: it speaks for them, and they have no event of their own. */
  others: number
  /** What the server has. */
  written: { readonly count: number; readonly resourceVersion: string; readonly atMs: number } | undefined
}

/** After so long without a repeat, the next one is a new event (as in client-go). */
const SERIES_END_MS = 6 * 60_000
const NOTE_BYTES = 1024
const LONGEST_WAIT_MS = 3_600_000
/** A person reads no more of one namespace, and the API server keeps each for an hour. */
const NORMAL = { burst: 50, perSecond: 5 }

export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { client, clock, log = silentLog, capacity = 1000, seriesMs = 10_000, flushMs = 3_000, normal = NORMAL, onDropped } = options
  /** By what makes events the same; the one that repeated last comes last. */
  const known = new Map<string, Series>()
  const pending = new Set<Series>()
  const allowance = createAllowance({ clock, ...normal })
  /** Normal events that wait for their namespace's allowance, by what others of their kind say too. */
  const crowds = new Map<string, Series>()
  let wake = (): void => {}

  const note = (regarding: KubeObject, text: EventText): void => {
    const about = reference(regarding)
    const body = bodyOf(options, about, text)
    const key = JSON.stringify([about.uid, body.type, body.reason, body.action, body.note, text.related?.metadata.uid])
    const found = known.get(key)
    const now = clock.monotonicMs()
    const old = found !== undefined && now - found.lastAtMs < SERIES_END_MS ? found : undefined
    const namespace = about.namespace ?? 'default'
    const crowd = crowdOf(namespace, body)
    const spokesman = old === undefined && text.type === 'Normal' ? crowds.get(crowd) : undefined
    if (spokesman !== undefined && spokesman.body.regarding?.uid !== about.uid) {
      spokesman.others++
      return
    }
    if ((old === undefined || !pending.has(old)) && pending.size >= capacity) {
      onDropped?.()
      return
    }
    const waitMs = old === undefined && text.type === 'Normal' ? allowance.claim(namespace) : 0
    const series: Series = old ?? {
      key,
      body,
      namespace,
      name: eventName(about.name),
      count: 0,
      lastAt: clock.now(),
      lastAtMs: now,
      notBeforeMs: now + waitMs,
      others: 0,
      written: undefined,
    }
    if (waitMs > 0) crowds.set(crowd, series)
    series.count++
    series.lastAt = clock.now()
    series.lastAtMs = now
    known.delete(key)
    known.set(key, series)
    forgetOldest(known, 2 * capacity)
    pending.add(series)
    wake()
  }

  /** When the series may be written again, monotonic ms. */
  const dueAt = ({ written, notBeforeMs }: Series): number => (written === undefined ? notBeforeMs : written.atMs + seriesMs)

  async function write(series: Series, signal: AbortSignal): Promise<void> {
    pending.delete(series)
    const { namespace, name, count, written } = series
    const crowd = crowdOf(namespace, series.body)
    if (crowds.get(crowd) === series) crowds.delete(crowd)
    const body = spoken(series)
    const lastObservedTime = microTime(series.lastAt)
    try {
      const stored =
        written === undefined
          ? await client.create(
              { ...body, metadata: { name, namespace }, ...(count > 1 && { series: { count, lastObservedTime } }) },
              signal,
            )
          : await client.mergePatch(
              { namespace, name },
              { series: { count, lastObservedTime } },
              { resourceVersion: written.resourceVersion },
              signal,
            )
      series.written = { count, resourceVersion: stored.metadata.resourceVersion, atMs: clock.monotonicMs() }
    } catch (error) {
      // The server forgets events after an hour; the next occurrence begins a new one.
      known.delete(series.key)
      if (!isNotFound(error) && !isConflict(error)) {
        onDropped?.()
        log.debug({ err: error, reason: body.reason }, 'an event could not be written')
      }
    }
  }

  async function writeDue(ended: AbortSignal, signal: AbortSignal): Promise<void> {
    for (const series of [...pending]) {
      if (ended.aborted) return
      if (dueAt(series) <= clock.monotonicMs()) await write(series, signal)
    }
  }

  return {
    event(regarding, text) {
      try {
        note(regarding, text)
      } catch (error) {
        log.debug({ err: error }, 'an event could not be noted')
      }
    },
    async run(signal) {
      // One that is on its way when all ends is waited for: broken off, it may have come, and its repeats would be refused as a conflict.
      const last = abortedAfter(signal, flushMs, clock)
      while (!signal.aborted) {
        await writeDue(signal, last.signal)
        const waitMs = Math.min(LONGEST_WAIT_MS, ...[...pending].map((series) => dueAt(series) - clock.monotonicMs()))
        if (waitMs <= 0) continue
        const stop = new AbortController()
        wake = () => stop.abort()
        await clock.sleep(waitMs, AbortSignal.any([signal, stop.signal])).catch(() => {})
        wake = () => {}
      }
      for (const series of [...pending]) if (!last.signal.aborted) await write(series, last.signal)
      last.abort()
    },
  }
}

function forgetOldest(known: Map<string, unknown>, most: number): void {
  for (const oldest of known.keys()) {
    if (known.size <= most) break
    known.delete(oldest)
  }
}

/** Aborted so long after a signal, in ms, unless it is aborted before. */
function abortedAfter(signal: AbortSignal, ms: number, clock: EventRecorderOptions['clock']): AbortController {
  const last = new AbortController()
  const ending = (): void =>
    void clock.sleep(ms, last.signal).then(
      () => last.abort(),
      () => {},
    )
  if (signal.aborted) ending()
  else signal.addEventListener('abort', ending, { once: true })
  return last
}

/** What is written of it at the API server, without its name. */
const bodyOf = (
  { client, clock, reportingController, reportingInstance }: EventRecorderOptions,
  regarding: ObjectReference,
  { type, reason, action, note, related }: EventText,
): Series['body'] => ({
  apiVersion: client.apiVersion,
  kind: client.definition.kind,
  type,
  reason: reason.slice(0, 128),
  action: action.slice(0, 128),
  note: cutToBytes(note, NOTE_BYTES),
  eventTime: microTime(clock.now()),
  reportingController,
  reportingInstance: reportingInstance.slice(0, 128),
  regarding,
  ...(related !== undefined && { related: reference(related) }),
})

function reference({ apiVersion, kind, metadata }: KubeObject): ObjectReference {
  const { name, namespace, uid, resourceVersion } = metadata
  return { apiVersion, kind, name, uid, resourceVersion, ...(namespace !== undefined && { namespace }) }
}

/** Events of one crowd say the same of many objects. */
const crowdOf = (namespace: string, { regarding, reason }: Series['body']): string => JSON.stringify([namespace, regarding?.kind, reason])

/** With how many it speaks for. */
function spoken({ body, others }: Series): Series['body'] {
  if (others === 0) return body
  const more = ` (${others} more of kind ${body.regarding?.kind} in this namespace: ${body.reason})`
  return { ...body, note: `${cutToBytes(body.note ?? '', NOTE_BYTES - Buffer.byteLength(more))}${more}` }
}

/** Names have at most 253 characters. */
const eventName = (name: string): string => `${name.slice(0, 230)}.${randomBytes(8).toString('hex')}`

/** Cuts at a character's border, with an ellipsis. */
export function cutToBytes(text: string, bytes: number): string {
  const encoded = Buffer.from(text, 'utf8')
  if (encoded.length <= bytes) return text
  let end = bytes - 3
  // Not in the middle of a character: its further bytes are 10xxxxxx.
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end--
  return `${encoded.toString('utf8', 0, end)}…`
}
