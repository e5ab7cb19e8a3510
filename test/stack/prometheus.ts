import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { freePort } from '../cluster/ports.ts'
import { findOnPath, startProcess } from '../cluster/process.ts'

/** A series at one moment. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [seconds: number, value: string]
}

/** A series over a while. */
export interface RangeSample {
  readonly metric: Readonly<Record<string, string>>
  readonly values: readonly Sample['value'][]
}

export interface Prometheus {
  /** @throws with what Prometheus says where it can't take the query. */
  query(expr: string): Promise<readonly Sample[]>
  /** Unix times and a step, in seconds. @throws like `query` */
  range(expr: string, during: { readonly start: number; readonly end: number; readonly step: number }): Promise<readonly RangeSample[]>
  /** Health of each rule, by its name: `ok`, `err`, or `unknown` while it was not evaluated yet. */
  rules(): Promise<ReadonlyMap<string, { readonly health: string; readonly state: string }>>
  stop(): Promise<void>
}

/** Prometheus itself, of Debian's package `prometheus`, where it is installed. */
export const prometheusProgram = (): string | undefined => findOnPath('prometheus', process.env.PATH ?? '')

/** What the Prometheus operator adds to each target. By `honorLabels`, as the chart sets it, a series keeps its own namespace. */
const ofTarget = { namespace: 'staking-system', pod: 'staking-operator-0', container: 'operator' }

/** Starts it on targets, which it scrapes every second. `targets`: metrics pages by the name of their job. */
export async function startPrometheus(options: {
  readonly command: string
  readonly targets: Readonly<Record<string, string>>
  readonly rules?: string
}): Promise<Prometheus> {
  const dir = mkdtempSync(join(tmpdir(), 'staking-prometheus-'))
  writeFileSync(join(dir, 'rules.yaml'), options.rules ?? 'groups: []\n')
  const scrapes = Object.entries(options.targets).map(([job_name, url]) => {
    const { host, pathname } = new URL(url)
    return { job_name, metrics_path: pathname, honor_labels: true, static_configs: [{ targets: [host], labels: ofTarget }] }
  })
  writeFileSync(
    join(dir, 'prometheus.yaml'),
    stringify({ global: { scrape_interval: '1s', evaluation_interval: '1s' }, rule_files: ['rules.yaml'], scrape_configs: scrapes }),
  )
  const port = await freePort()
  const base = `http://127.0.0.1:${port}`
  const clear = () => rmSync(dir, { recursive: true, force: true })
  const server = await startProcess({
    name: 'prometheus',
    command: options.command,
    args: [
      `--config.file=${join(dir, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=warn',
    ],
    scratch: dir,
    readyTimeoutMs: 60_000,
    readyWhen: async ({ signal }) => (await fetch(`${base}/-/ready`, { signal })).ok,
  }).catch((error: unknown) => {
    clear()
    throw error
  })
  const get = async <T>(path: string): Promise<T> => {
    const answer = await fetch(base + path, { signal: AbortSignal.timeout(20_000) })
    const body = (await answer.json()) as { readonly status: string; readonly error?: string; readonly data: T }
    if (body.status !== 'success') throw new Error(`prometheus: ${body.error ?? answer.status}`)
    return body.data
  }
  return {
    query: async (expr) => (await get<{ readonly result: readonly Sample[] }>(`/api/v1/query?query=${encodeURIComponent(expr)}`)).result,
    async range(expr, { start, end, step }) {
      const parameters = new URLSearchParams({ query: expr, start: String(start), end: String(end), step: String(step) })
      return (await get<{ readonly result: readonly RangeSample[] }>(`/api/v1/query_range?${parameters}`)).result
    },
    async rules() {
      type Rule = { readonly name: string; readonly health: string; readonly state: string }
      const { groups } = await get<{ readonly groups: readonly { readonly rules: readonly Rule[] }[] }>('/api/v1/rules')
      return new Map(groups.flatMap(({ rules }) => rules.map(({ name, health, state }) => [name, { health, state }] as const)))
    },
    async stop() {
      await server.stop()
      clear()
    },
  }
}
