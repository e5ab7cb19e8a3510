import { keccak256 } from 'viem'
import type { EthereumTransaction } from '../../resources/ethereum-transaction.ts'
import type { TransactionLog } from './log.ts'
import { mirrorOf } from './mirror.ts'
import type { RecordObject } from './store.ts'

/** The mirror of a record as the log knows it now. `shown`: what status shows of it. */
export const mirrored = (
  log: Pick<TransactionLog, 'wasSent' | 'wasTold'>,
  record: RecordObject,
  shown: EthereumTransaction | undefined,
): EthereumTransaction | undefined =>
  mirrorOf(
    {
      record,
      dataHash: keccak256(record.spec.call?.data ?? '0x'),
      wasSent: (hash) => log.wasSent(record, hash),
      wasTold: (hash) => log.wasTold(record, hash),
    },
    shown,
  )
