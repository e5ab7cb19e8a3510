import { shareCall } from '../../lib/shared-call.ts'
import { silentLog } from '../kube/log.ts'
import type { KubeObject } from '../kube/objects.ts'
import { createPageSize } from '../kube/page-size.ts'
import { createPagedList } from '../kube/paged-list.ts'
import type { ResourceClient } from '../kube/resource-client.ts'
import type { Cache, PlaceObject, RecordObject } from './store.ts'

interface Followed<T extends KubeObject> {
  readonly client: Pick<ResourceClient<T>, 'definition' | 'list'>
  readonly cache: Pick<Cache<T>, 'put'>
}

export interface CatchUpDeps {
  readonly records: Followed<RecordObject>
  readonly places: Followed<PlaceObject>
  /** The kinds whose resources show transactions of an earlier version: read as well where something is to be imported, which goes by what they show. */
  readonly sources: readonly Followed<KubeObject>[]
  /** Names of the signers whose ledger of an earlier version is not in the log yet, by the cache. */
  readonly importing: () => Iterable<string>
  /** Of the leadership. */
  readonly signal: AbortSignal
}

/**
 * ▸ A leader decides by what is not in the log: no place was taken for a record, no record was made for a resource, nothing of a key is open. Most of those
 * decisions end in the creation of a name, which is refused where the cache was wrong; the others do not. A new leader's cache is as old as its watch is
 * silent, so the whole log is read past it once, before anything is looked at; what is written after that, this leader writes itself.
 *
 * Places are read once more when the ledger of an earlier version is gone, whoever imported it: each of its places was made before it went.
 * @returns what every reconcile waits for; it rejects with the API server's error, and is tried again by whoever asks next
 */
export function createCatchUp({
  records,
  places,
  sources,
  importing,
  signal: leading,
}: CatchUpDeps): (signal: AbortSignal) => Promise<void> {
  let hasRecords = false
  /** Signers whose ledger was there when the places were read last, or since. */
  let pending: Set<string> | undefined

  const isBehind = (): boolean => {
    if (!hasRecords || pending === undefined) return true
    const now = new Set(importing())
    for (const name of now) pending.add(name)
    return pending.size > now.size
  }
  const catchUp = shareCall(async () => {
    // Whose ledger goes while the places are read is among them, and they are read again.
    const before = new Set(importing())
    const first = hasRecords ? [] : [takeIn(records, leading), ...(before.size > 0 ? sources.map((one) => takeIn(one, leading)) : [])]
    await Promise.all([...first, takeIn(places, leading)])
    hasRecords = true
    pending = before
  })

  return async (signal) => {
    // Each turn follows a ledger that went meanwhile: they are few, and none comes anew.
    while (isBehind()) await catchUp(signal)
  }
}

async function takeIn<T extends KubeObject>({ client, cache }: Followed<T>, signal: AbortSignal): Promise<void> {
  const pages = createPagedList({ client, scope: {}, pageSize: createPageSize(), log: silentLog })
  for await (const { items } of pages(signal)) for (const item of items) cache.put(item)
}
