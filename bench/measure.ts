import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** Clock ticks a second in /proc (USER_HZ): 100 on every Linux that Node runs on. */
const TICK_MS = 10

/** CPU time of a process so far, user and system, in ms. Linux only. */
export function cpuMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // After the command's name, which may hold spaces: state is field 3, utime 14, stime 15 (proc(5)).
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

/** Resident memory of a process in bytes. Linux only. */
export const residentBytes = (pid: number): number => statusBytes(pid, 'VmRSS')

/** The most that it ever was. */
export const peakResidentBytes = (pid: number): number => statusBytes(pid, 'VmHWM')

function statusBytes(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  if (kilobytes === undefined) throw new Error(`no ${field} of process ${pid}`)
  return Number(kilobytes) * 1024
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** Prometheus' text format, by series. */
export type Metrics = ReadonlyMap<string, number>

export async function scrape(url: string): Promise<Metrics> {
  const response = await fetch(url, { signal: AbortSignal.timeout(10_000) })
  const series = new Map<string, number>()
  for (const line of (await response.text()).split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const space = line.lastIndexOf(' ')
    series.set(line.slice(0, space), Number(line.slice(space + 1)))
  }
  return series
}

/** Sum over all series of a metric whose labels are as given, by the value of the label `by`. */
export function sumBy(metrics: Metrics, name: string, by: string, labels: Readonly<Record<string, string>> = {}): Map<string, number> {
  const sums = new Map<string, number>()
  for (const [series, value] of metrics) {
    const [metric, text = ''] = series.split('{', 2)
    if (metric !== name) continue
    const found = Object.fromEntries([...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = '', entry = '']) => [key, entry]))
    if (Object.entries(labels).some(([key, wanted]) => found[key] !== wanted)) continue
    const key = found[by] ?? ''
    sums.set(key, (sums.get(key) ?? 0) + value)
  }
  return sums
}

/** By how much each sum grew. */
export function growth(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): Map<string, number> {
  return new Map([...after].map(([key, value]) => [key, value - (before.get(key) ?? 0)] as const).filter(([, value]) => value !== 0))
}

/** Looks every `everyMs` until it is so. @throws after `timeoutMs`. */
export async function until(
  what: string,
  isSo: () => Promise<boolean>,
  { timeoutMs, everyMs = 100, signal }: { timeoutMs: number; everyMs?: number; signal: AbortSignal },
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`)
    await delay(everyMs, undefined, { signal })
  }
}
