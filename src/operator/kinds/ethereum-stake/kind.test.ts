import { expect, test } from 'vitest'
import type { EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import type { Networks } from '../../ports.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { ethereumStakeKind } from './kind.ts'

const leaving = `0x${'aa'.repeat(48)}`
const kind = ethereumStakeKind({
  log: {} as TransactionLog,
  networks: {} as Networks,
  intervals: { activatingMs: 1, settledMs: 100 },
  exitAccepted: (pubkey) => pubkey === leaving,
})

test.each<{ validator: string; pubkey?: string; every: number | undefined }>([
  { validator: 'pending_queued', every: 1 },
  { validator: 'active_ongoing', every: 100 },
  { validator: 'active_ongoing', pubkey: leaving, every: 1 },
  { validator: 'active_exiting', every: 1 },
  { validator: 'active_slashed', every: 1 },
  { validator: 'exited_unslashed', every: 1 },
  { validator: 'withdrawal_possible', every: 1 },
  { validator: 'withdrawal_done', pubkey: leaving, every: undefined },
])(
  'a validator that is $validator is looked at every $every ms: often while it moves',
  ({ validator: status, pubkey = `0x${'bb'.repeat(48)}`, every }) => {
    const stake = { transaction: { state: 'Confirmed' }, depositData: { pubkey }, validator: { pubkey, status } } as EthereumStakeStatus
    expect(kind.observeEvery(stake)).toBe(every)
  },
)
