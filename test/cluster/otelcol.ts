import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { builtGoPrograms, ensureGoPrograms } from './go-program.ts'
import { freePort } from './ports.ts'
import { startProcess } from './process.ts'

const program = { module: 'otelcol', programs: { otelcol: '.' } }

/** Builds an OpenTelemetry Collector with Go into the user's cache, once: 740 packages, a minute or two on two cores. @throws with what to do */
export const buildCollector = async (log: (line: string) => void, signal: AbortSignal): Promise<string> =>
  ensureGoPrograms({ ...program, isComplete: true, log, signal })

/** The folder of the collector that was built before (`node scripts/otelcol.ts`, which `.ci/run` does). */
export const findCollector = (): string | undefined => builtGoPrograms(program)

export interface Collector {
  /** Takes OTLP over HTTP at `/v1/traces`. */
  readonly url: string
  /** What it has taken, as its debug exporter writes it. */
  seen(): string
  stop(): Promise<void>
}

/** A real OpenTelemetry Collector: the OTLP receiver, and the debug exporter, which writes each span. */
export async function startCollector(folder: string): Promise<Collector> {
  const dir = mkdtempSync(join(tmpdir(), 'staking-otelcol-'))
  const endpoint = `127.0.0.1:${await freePort()}`
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint } } } },
    exporters: { debug: { verbosity: 'detailed' } },
    service: {
      telemetry: { metrics: { level: 'none' } },
      pipelines: { traces: { receivers: ['otlp'], exporters: ['debug'] } },
    },
  }
  writeFileSync(join(dir, 'config.yaml'), stringify(config))
  const clear = () => rmSync(dir, { recursive: true, force: true })
  try {
    const collector = await startProcess({
      name: 'otelcol',
      command: join(folder, 'otelcol'),
      args: ['--config', `file:${join(dir, 'config.yaml')}`],
      env: { HOME: dir },
      scratch: dir,
      readyWhen: async ({ signal }) => (await fetch(`http://${endpoint}/`, { signal })).status > 0,
    })
    return {
      url: `http://${endpoint}`,
      seen: () => collector.output(),
      async stop() {
        await collector.stop()
        clear()
      },
    }
  } catch (error) {
    clear()
    throw error
  }
}
