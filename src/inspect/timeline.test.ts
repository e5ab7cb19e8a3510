import { expect, test } from 'vitest'
import type { StakingTransaction } from '../resources/staking-transaction.ts'
import { timeline } from './timeline.ts'

const condition = (
  type: string,
  status: 'True' | 'False' | 'Unknown',
  lastTransitionTime: string,
  reason = 'Because',
  message = 'Said.',
) => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime,
})

test('a life is told in order: applied, signed, confirmed, warned of', () => {
  const moments = timeline(
    {
      kind: 'EthereumStake',
      metadata: { name: 'v1', namespace: 'team-a', uid: 'u', creationTimestamp: '2026-11-29T10:00:00Z' },
      status: {
        phase: 'Confirmed',
        conditions: [
          condition('Confirmed', 'True', '2026-11-29T10:00:30Z', 'Final', 'The deposit is final.'),
          condition('Reconciling', 'False', '2026-11-29T10:00:31Z'),
          condition('Stalled', 'False', '2026-11-29T10:00:01Z'),
          condition('Active', 'Unknown', '2026-11-29T10:00:01Z'),
        ],
      },
    },
    [
      {
        metadata: { name: 'deposit-1', uid: 'r', resourceVersion: '1', creationTimestamp: '2026-11-29T10:00:02Z' },
        spec: { purpose: 'Deposit', amount: '32 ETH', signer: 'treasury', network: 'hoodi' },
        status: {
          attempts: [{ hash: '0x1', kind: 'Call', nonce: 4, at: '2026-11-29T10:00:03Z' }],
          outcome: { is: 'Landed', hash: '0x1', nonce: 4, blockNumber: 7 },
        },
      } as unknown as StakingTransaction,
    ],
    [
      {
        type: 'Warning',
        reason: 'FeeTooHigh',
        note: 'Gas is dear.',
        eventTime: '2026-11-29T10:00:04.000000Z',
        metadata: {},
        series: { count: 3, lastObservedTime: '2026-11-29T10:00:20.000000Z' },
      },
    ],
  )
  expect(moments.map(({ what, text }) => `${what}: ${text}`)).toEqual([
    'Created: EthereumStake was applied',
    'Deposit: 32 ETH by treasury on hoodi is in the transaction log as deposit-1',
    'Signed: 0x1 with nonce 4: Landed in block 7',
    'Warning: FeeTooHigh: Gas is dear. (3 times)',
    'Confirmed=True: Final: The deposit is final.',
  ])
  expect(moments.filter(({ isWarning }) => isWarning)).toHaveLength(1)
})
