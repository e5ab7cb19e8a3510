import { expect, test } from 'vitest'
import { columnsOf } from './columns.ts'

const table = `NAME                      PURPOSE      AMOUNT          NAMESPACE   RESOURCE          SIGNER        NONCE   STATE     AGE
deposit-560048-b70809      Deposit      48.5 ETH        team-b      compounding       treasury      1       Landed    30s
exit-560048-0123456789ab   Exit         whole balance   team-a      changed-my-mind   withdrawals           Waiting   13s
`.replace('NAME                      ', 'NAME                       ')

test('without a terminal all columns but the names are there, cells that hold nothing too', () => {
  expect(columnsOf(undefined, table).split('\n')).toEqual([
    'PURPOSE  AMOUNT         NAMESPACE  RESOURCE         SIGNER       NONCE  STATE    AGE',
    'Deposit  48.5 ETH       team-b     compounding      treasury     1      Landed   30s',
    'Exit     whole balance  team-a     changed-my-mind  withdrawals         Waiting  13s',
  ])
})

test('a terminal of eighty columns holds what it is, for what, and where it stands', () => {
  const lines = columnsOf(80, table).split('\n')
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(80)
  expect(lines[0]).toBe('PURPOSE  AMOUNT         NAMESPACE  RESOURCE         NONCE  STATE    AGE')
})
