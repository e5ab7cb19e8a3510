import type { OperatorParts } from '../compose.ts'

type Labels = Readonly<Record<string, string>> | undefined

/** Namespaces with their labels, as the cluster has them and as an operator sees them: the same, until their watch is silent. */
export function createFakeNamespaces(entries: Iterable<readonly [string, Labels]>) {
  const actual = new Map<string, Labels>(entries)
  /** What operators show; undefined while the watch is not silent. */
  let silent: typeof actual | undefined
  const ports: Pick<OperatorParts, 'namespace' | 'refreshNamespace'> = {
    namespace: (name) => ({ name, labels: (silent ?? actual).get(name) }),
    refreshNamespace: async (name) => void silent?.set(name, actual.get(name)),
  }
  return {
    actual,
    ports,
    /** The watch is silent from now on. */
    silence(): void {
      silent = new Map(actual)
    },
  }
}
