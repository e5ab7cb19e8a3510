import { expect, test } from 'vitest'
import type { Resources } from './resources.ts'
import { createTable } from './table.ts'

const resources = {
  stakes: [
    {
      metadata: { namespace: 'team-with-a-long-name', name: 'validator-with-a-long-name' },
      spec: { amountEth: '48.5' },
      status: {
        phase: 'Confirming',
        conditions: [{ type: 'Ready', status: 'False', reason: 'WithdrawalAddressNotAllowed', message: '' }],
        transaction: { hash: `0x${'ab'.repeat(32)}` },
      },
    },
  ],
  withdrawals: [],
  exits: [],
  solana: [],
} as unknown as Resources

const drawn = (columns: number): readonly string[] => {
  const parts: string[] = []
  const out = { isTTY: true, columns, write: (part: string) => parts.push(part) }
  createTable(out as never).show(resources)
  return parts.join('').trimEnd().split('\n')
}

test.each([40, 80, 100, 200])('no line of the table is wider than a terminal of %i columns', (columns) => {
  for (const text of drawn(columns)) expect(text.length).toBeLessThanOrEqual(columns)
})

test('eighty columns hold what a resource is, where it stands and why; a hundred its transaction too', () => {
  expect(drawn(80)[0]).toMatch(/^RESOURCE +AMOUNT +PHASE +REASON$/)
  expect(drawn(100)[0]).toMatch(/TRANSACTION$/)
})
