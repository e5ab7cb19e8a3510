/** Finds the program of Argo CD’s own code that tests run where it is there, or builds it: with Go, some minutes on two cores, once. `.ci/run` does. */
import { buildArgoCd } from '../test/cluster/argocd.ts'

const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort(new Error(`interrupted by ${name}`)))
try {
  console.log(await buildArgoCd((line) => console.error(line), interrupted.signal))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
