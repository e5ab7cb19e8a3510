import { expect, test } from 'vitest'
import type { StakeMeta } from '../../chains/solana/stake-account.ts'
import { testAddress } from '../../chains/solana/testing.ts'
import { ProblemError } from '../errors.ts'
import { refuseOthers } from './create-transaction.ts'

const [staker, withdrawer, custodian] = [testAddress(1), testAddress(2), testAddress(3)]
const clock = { slot: 1n, epoch: 600n, unixTimestamp: 1_800_000_000n }
function refusal(lockup: Pick<StakeMeta['lockup'], 'unixTimestamp' | 'epoch'>): unknown {
  const meta = { rentExemptReserve: 1n, staker, withdrawer, lockup: { ...lockup, custodian } }
  try {
    const stake = { stake_authority: staker, withdraw_authority: withdrawer }
    refuseOthers('withdrawal', stake as never, { account: { kind: 'initialized', meta }, clock } as never)
    return undefined
  } catch (error) {
    return error
  }
}

test.each([
  { what: 'a day', lockup: { unixTimestamp: 1_900_000_000n, epoch: 0n }, says: '2030-03-17T17:46:40.000Z' },
  { what: 'an epoch', lockup: { unixTimestamp: 0n, epoch: 700n }, says: 'the end of epoch 699' },
  { what: 'the last second that there is', lockup: { unixTimestamp: (1n << 63n) - 1n, epoch: 0n }, says: 'second 9223372036854775807' },
  { what: 'the last epoch that there is', lockup: { unixTimestamp: 0n, epoch: (1n << 64n) - 1n }, says: 'the end of epoch' },
])('no withdrawal is handed out of an account that is locked until $what, and it is said until when', ({ lockup, says }) => {
  const refused = refusal(lockup)
  expect(refused).toBeInstanceOf(ProblemError)
  expect(refused).toMatchObject({ code: 'invalid-state', message: expect.stringContaining(says) })
})

test.each([
  { what: 'none', lockup: { unixTimestamp: 0n, epoch: 0n } },
  { what: 'one that is just over', lockup: { unixTimestamp: 1_800_000_000n, epoch: 600n } },
])('$what refuses nothing', ({ lockup }) => {
  expect(refusal(lockup)).toBeUndefined()
})
