import type { SpanOptions } from '../../lib/tracing.ts'
import { ownerKey, type RecordObject } from './store.ts'

/** A span of what is done with a record's transaction: it goes on with the trace of the resource that the transaction is for. */
export const spanOf = (record: RecordObject | undefined): SpanOptions =>
  record === undefined
    ? {}
    : {
        thread: ownerKey(record.spec.owner),
        attributes: {
          'staking.transaction': record.metadata.name,
          'staking.purpose': record.spec.purpose,
          'staking.network': record.spec.network,
        },
      }
