import { shareNextCallBy } from '../lib/shared-call.ts'
import type { Follow } from './kube/collections.ts'
import { createCompact } from './kube/compact.ts'
import type { KubeObject } from './kube/objects.ts'
import type { ResourceDefinition } from './kube/resource-client.ts'
import type { NamespaceFacts } from './transactions/policy.ts'

const namespaces: ResourceDefinition = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false }

export interface Namespaces {
  /** A namespace as policy sees it now, by the cache. */
  facts(name: string): NamespaceFacts
  /** Reads it past the cache. */
  refresh(name: string, signal: AbortSignal): Promise<void>
}

/** Follows the namespaces, as far as policies look at them. `onLabels` is told of each whose labels have changed. */
export function followNamespaces(follow: Follow, onLabels: (name: string) => void): Namespaces {
  const kept = { labels: true }
  const compact = createCompact(kept)
  const { client, cache, onChange } = follow<KubeObject>(namespaces, {
    kept,
    transform: ({ apiVersion, kind, metadata }) => compact({ apiVersion, kind, metadata }),
  })
  onChange((name, change) => {
    if (change.type === 'updated' && JSON.stringify(change.old.metadata.labels) === JSON.stringify(change.new.metadata.labels)) return
    onLabels(name)
  })
  // The client has a time-out of its own; others wait for the same answer.
  const never = new AbortController().signal
  /** What was read stays in the cache, so that a refusal outlasts a watch that is silent. Many resources of one namespace share a read. */
  const refresh = shareNextCallBy(async (name: string) => cache.put(await client.get({ name }, never)))
  return {
    facts: (name) => ({ name, labels: cache.get(name)?.metadata.labels }),
    refresh,
  }
}
