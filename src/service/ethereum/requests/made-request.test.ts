import { describe, expect, test } from 'vitest'
import type { ChainReceipt, Hex } from '../../../chains/ethereum/chain.ts'
import { encodeRequestCalldata, type ValidatorRequest, withdrawalRequestContract } from '../../../chains/ethereum/requests.ts'
import { gwei } from '../../../lib/amounts.ts'
import { madeRequest, requestOf } from './made-request.ts'

const pubkey: Hex = `0x${'ab'.repeat(48)}`
const other: Hex = `0x${'cd'.repeat(48)}`
const source: Hex = `0x${'52'.repeat(20)}`
const exit: ValidatorRequest = { kind: 'exit', pubkey }
const withdrawal = (amount: bigint, of = pubkey): ValidatorRequest => ({ kind: 'withdrawal', pubkey: of, amountGwei: gwei(amount) })

type Log = ChainReceipt['logs'][number]
const log = (request: ValidatorRequest, address: Hex = withdrawalRequestContract): Log => ({
  address,
  topics: [],
  data: `${source}${encodeRequestCalldata(request).slice(2)}`,
})
const outcome = (wanted: ValidatorRequest, logs: readonly Log[]) => madeRequest({ logs }, wanted)

test('a stored request without an amount is an exit, and with one a withdrawal', () => {
  expect(requestOf({ pubkey, amount_gwei: null })).toEqual(exit)
  expect(requestOf({ pubkey, amount_gwei: 5n })).toEqual(withdrawal(5n))
})

describe('a transaction makes the request', () => {
  test.each([
    { what: 'alone', logs: [log(exit)] },
    { what: 'beside others', logs: [log(withdrawal(1n)), log(exit), log({ kind: 'exit', pubkey: other })] },
    { what: 'with logs of other contracts', logs: [log(exit, `0x${'11'.repeat(20)}`), log(exit)] },
    { what: 'whatever the case of the address', logs: [log(exit, withdrawalRequestContract.toLowerCase() as Hex)] },
  ])('$what', ({ logs }) => {
    expect(outcome(exit, logs)).toEqual({ source, request: exit, times: 1 })
  })
})

test('a transaction that makes the request twice has made it, and says how often', () => {
  const logs = [log(withdrawal(2n)), log(withdrawal(1n)), log(withdrawal(1n))]
  expect(outcome(withdrawal(1n), logs)).toEqual({ source, request: withdrawal(1n), times: 2 })
})

describe('a transaction does not make the request', () => {
  test.each([
    { what: 'without logs', wanted: exit, logs: [], mismatch: /makes no request/ },
    { what: 'by a log of another contract', wanted: exit, logs: [log(exit, other.slice(0, 42) as Hex)], mismatch: /makes no request/ },
    {
      what: 'by a log that is none of the contract',
      wanted: exit,
      logs: [{ ...log(exit), data: '0x' as Hex }],
      mismatch: /makes no request/,
    },
    { what: 'of another validator', wanted: exit, logs: [log({ kind: 'exit', pubkey: other })], mismatch: /another request/ },
    { what: 'but a withdrawal', wanted: exit, logs: [log(withdrawal(1n))], mismatch: /another request/ },
    { what: 'but a full exit', wanted: withdrawal(1n), logs: [log(exit)], mismatch: /another request/ },
    { what: 'but of another amount', wanted: withdrawal(1n), logs: [log(withdrawal(2n))], mismatch: /another request/ },
  ])('$what', ({ wanted, logs, mismatch }) => {
    expect(outcome(wanted, logs)).toEqual({ mismatch: expect.stringMatching(mismatch) })
  })
})
