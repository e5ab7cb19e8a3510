/** Finds the controllers of Flux that tests run, or builds them: with Go, about ten minutes on two cores, once. */
import { findFlux } from '../test/cluster/flux.ts'

const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort(new Error(`interrupted by ${name}`)))
try {
  const { programs } = await findFlux((line) => console.error(line), interrupted.signal)
  console.log(programs)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
