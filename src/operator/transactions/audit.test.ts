import { expect, test } from 'vitest'
import { auditOf } from './audit.ts'
import type { TransactionEvent } from './moment.ts'
import type { RecordObject } from './store.ts'

const record = {
  metadata: { name: 'deposit-1-ab' },
  spec: {
    purpose: 'Deposit',
    amount: '32 ETH',
    signer: 'treasury',
    from: '0x12',
    network: 'hoodi',
    owner: { kind: 'EthereumStake', namespace: 'team-a', name: 'one', originUid: 'uid-1' },
  },
} as RecordObject
const common = { hash: '0x1', nonce: 7 }

test.each<{ event: TransactionEvent; counted: string; says: object }>([
  {
    event: { is: 'attempt', kind: 'Cancel', maxFeePerGasWei: '9', ...common },
    counted: 'attempt',
    says: { version: 'Cancel', maxFeePerGasWei: '9' },
  },
  {
    event: { is: 'attempt', kind: 'Call', maxFeePerGasWei: '9', replaces: '0x0', ...common },
    counted: 'replaced',
    says: { version: 'Call', maxFeePerGasWei: '9', replaces: '0x0' },
  },
  { event: { is: 'sent', kind: 'Call', nodes: 2, ...common }, counted: 'sent', says: { version: 'Call', nodes: 2 } },
  { event: { is: 'closed', by: 'Foreign', ...common }, counted: 'closed:Foreign', says: { by: 'Foreign' } },
  { event: { is: 'outcome', outcome: 'Landed', ...common }, counted: 'Landed', says: { outcome: 'Landed' } },
])('$counted is told with whose it is, what for and under which nonce', ({ event, counted, says }) => {
  const line = auditOf(record, event)
  expect(line.about).toEqual({ kind: 'EthereumStake', namespace: 'team-a', name: 'one', uid: 'uid-1' })
  expect(line.fields).toEqual({
    transaction: 'deposit-1-ab',
    purpose: 'Deposit',
    amount: '32 ETH',
    signer: 'treasury',
    from: '0x12',
    network: 'hoodi',
    is: event.is,
    ...common,
    ...says,
  })
  expect(line.counted).toBe(counted)
  expect(
    Object.keys(line.fields).filter((key) => key in line.about),
    'keys that a line would have twice',
  ).toEqual([])
})

test('of Solana, which has neither nonces nor a price of gas, none is told', () => {
  const solana = { ...record, spec: { ...record.spec, chain: 'Solana', network: 'devnet' } } as RecordObject
  const { fields } = auditOf(solana, { is: 'attempt', kind: 'Call', hash: '5sig', nonce: 1, maxFeePerGasWei: '' })
  expect(fields).toMatchObject({ hash: '5sig', attempt: 1, network: 'devnet' })
  expect(Object.keys(fields).filter((key) => /nonce|gas/i.test(key))).toEqual([])
})
