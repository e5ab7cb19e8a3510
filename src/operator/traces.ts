import type { SpanAttributes } from '../lib/tracing.ts'
import type { Caches } from './caches.ts'
import type { Reconciled } from './compose.ts'
import type { Traces } from './controllers.ts'
import { type KubeObject, refOf } from './kube/objects.ts'
import { ownerKey } from './transactions/store.ts'

/** A resource as far as a trace tells of it. */
type Traced = KubeObject & { readonly status?: { readonly phase?: string | undefined } | undefined }

/**
 * What traces say of a reconcile. All that is done for one resource is one trace, begun by its first reconcile: what its lane signs and sends for it goes on with
 * that, by the name of the transaction's owner.
 */
export const tracesOf =
  (caches: Caches): Traces<Reconciled> =>
  (name) => {
    const found = (key: string): Traced | undefined => caches[name].cache.get(key) as Traced | undefined
    const { kind } = caches[name].client.definition
    if (name === 'records') return { spanOf: (key) => ({ attributes: { 'staking.kind': kind, 'staking.lane': key } }) }
    return {
      spanOf(key) {
        const { name: called, namespace } = refOf(key)
        const uid = found(key)?.metadata.uid
        const attributes: SpanAttributes = {
          'staking.kind': kind,
          'staking.name': called,
          'staking.namespace': namespace,
          'staking.uid': uid,
        }
        if (uid === undefined || namespace === undefined) return { attributes }
        return { attributes, thread: ownerKey({ kind, namespace, name: called }), begins: { id: uid } }
      },
      spanEnd: (key) => ({ 'staking.phase': found(key)?.status?.phase }),
    }
  }
