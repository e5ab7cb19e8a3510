import type { Turns } from '../kube/queue.ts'
import { parseLaneKey } from './names.ts'
import type { Cache, RecordObject } from './store.ts'

/** Lanes, and records of Solana, that are looked after at a time. */
export const LOG_WORKERS = 16
/** Of one signer: what is slow to sign for (a remote signer) waits for itself, and not before others. */
const MOST_OF_ONE_SIGNER = 4

/** The keys of the log's queue take turns by the address that signs: a lane's, or of a record of Solana who pays for it. By the name of the log's cache. */
export const turnsIn = ({
  records: { cache },
}: {
  readonly records: { readonly cache: Pick<Cache<RecordObject>, 'get'> }
}): { readonly records: Turns } => ({
  records: {
    namespaceOf: (key) => (key.includes('/') ? parseLaneKey(key).address.toLowerCase() : (cache.get(key)?.spec.from ?? '')),
    mostOfOneNamespace: MOST_OF_ONE_SIGNER,
  },
})
