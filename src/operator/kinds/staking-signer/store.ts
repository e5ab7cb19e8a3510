import type { Clock } from '../../../lib/clock.ts'
import { shareNextCallBy } from '../../../lib/shared-call.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { conflict } from '../../engine/verdict.ts'
import { isConflict } from '../../kube/errors.ts'
import type { Informer } from '../../kube/informer.ts'
import { diffMergePatch } from '../../kube/merge-patch.ts'
import { readThrough } from '../../kube/read-through.ts'
import type { ResourceClient } from '../../kube/resource-client.ts'
import type { SignerStore } from '../../transactions/signer-store.ts'

/** Under load a transaction waits so long for the look at its signer, in ms: nothing beside a block. */
const READ_EVERY_MS = 100

/** The fenced store of signers: reads from the cache, writes with the resourceVersion of what was read. */
export function createSignerStore(deps: {
  readonly client: ResourceClient<StakingSigner>
  readonly informer: Pick<Informer<StakingSigner>, 'get' | 'list' | 'put'>
  readonly fieldManager: string
  readonly clock: Clock
  readonly assertHeld: () => void
  readonly onWrite: () => void
  readonly onPoint?: (point: string, key: string) => void
}): SignerStore {
  const { client, informer } = deps
  // Each read has a time-out of its own, and no caller's signal: others wait for it too.
  const never = new AbortController().signal
  /** Many transactions of one signer are about to be signed at once: one read that begins after all of them asked serves them all. */
  const read = shareNextCallBy((name: string) => readThrough({ client, cache: informer }, { name }, never), {
    clock: deps.clock,
    everyMs: READ_EVERY_MS,
  })
  return {
    get: (name) => informer.get(name),
    list: () => informer.list(),
    read,
    async writeStatus(signer, status, signal) {
      const patch = diffMergePatch(signer.status as Record<string, unknown> | undefined, status as Record<string, unknown>)
      if (patch === undefined) return signer
      deps.assertHeld()
      deps.onPoint?.('before signer write', signer.metadata.name)
      try {
        const written = await client.mergePatch(
          { name: signer.metadata.name },
          { status: patch },
          { resourceVersion: signer.metadata.resourceVersion, subresource: 'status', fieldManager: deps.fieldManager },
          signal,
        )
        deps.onPoint?.('after signer write', signer.metadata.name)
        deps.onWrite()
        informer.put(written)
        return written
      } catch (error) {
        if (isConflict(error)) throw conflict()
        throw error
      }
    },
  }
}
