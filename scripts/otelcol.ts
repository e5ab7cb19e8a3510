/** Finds the OpenTelemetry Collector that tests use where it is there, or builds it: with Go, a minute or two on two cores, once. `.ci/run` does. */
import { buildCollector } from '../test/cluster/otelcol.ts'

const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort(new Error(`interrupted by ${name}`)))
try {
  console.log(await buildCollector((line) => console.error(line), interrupted.signal))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
