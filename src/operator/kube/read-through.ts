import type { Cache } from './collections.ts'
import { isNotFound } from './errors.ts'
import type { KubeObject, Ref } from './objects.ts'
import type { ResourceClient } from './resource-client.ts'

/**
 * An object as the API server has it now, past the cache, and into it: what was read afresh stays, where a watch that is silent would show the old one at the
 * next look. Undefined where it is gone.
 */
export async function readThrough<T extends KubeObject>(
  { client, cache }: { readonly client: Pick<ResourceClient<T>, 'get'>; readonly cache: Pick<Cache<T>, 'put'> },
  ref: Ref,
  signal: AbortSignal,
): Promise<T | undefined> {
  try {
    const found = await client.get(ref, signal)
    cache.put(found)
    return found
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
