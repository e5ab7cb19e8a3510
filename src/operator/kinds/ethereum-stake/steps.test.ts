import { describe, expect, test } from 'vitest'
import type { EthereumStakeSpec, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import type { EthereumTransaction, TransactionAttempt } from '../../../resources/ethereum-transaction.ts'
import { nextStep } from '../../engine/step.ts'
import { attemptsOf } from '../../transactions/transaction-evidence.ts'
import { type EthereumStakeView, ethereumStakeSteps } from './steps.ts'

const root = `0x${'aa'.repeat(32)}`
const depositData = {
  pubkey: `0x${'11'.repeat(48)}`,
  withdrawalCredentials: root,
  amountGwei: '32000000000',
  signature: `0x${'22'.repeat(96)}`,
  depositDataRoot: root,
}
const hash = (of: number): string => `0x${of.toString(16).padStart(64, '0')}`
const transaction = (change: Partial<EthereumTransaction> = {}): EthereumTransaction => ({
  chainId: 560048,
  from: `0x${'33'.repeat(20)}`,
  to: `0x${'44'.repeat(20)}`,
  valueWei: '32000000000000000000',
  dataHash: hash(9),
  hash: hash(1),
  nonce: 4,
  gas: '72000',
  maxFeePerGasWei: '10',
  maxPriorityFeePerGasWei: '1',
  preparedAt: '2030-01-01T00:00:00Z',
  state: 'Prepared',
  ...change,
})
const created = { stakeId: 's1', depositData }
const verified = { ...created, verifiedRoot: root }
const sent = { broadcastHash: hash(1), state: 'Broadcast' as const }
const spec = {
  network: 'hoodi',
  amountEth: '32',
  withdrawalAddress: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  credentialsType: 'Compounding',
  signer: 'main',
} as EthereumStakeSpec
const view = (status: EthereumStakeStatus, change: Partial<EthereumStakeSpec> = {}): EthereumStakeView => ({
  origin: { uid: 'u1', kind: 'EthereumStake', namespace: 'team-a', name: 'one' },
  spec: { ...spec, ...change },
  status,
})
const stepNamed = (name: string) => {
  const step = ethereumStakeSteps.find((candidate) => candidate.name === name)
  if (step === undefined) throw new Error(`no step ${name}`)
  return step
}
const absorb = (name: string, status: EthereumStakeStatus, result: unknown) => stepNamed(name).absorb(status, result as never)

test.each<{ given: string; status: EthereumStakeStatus; expected: string | undefined }>([
  { given: 'nothing yet', status: {}, expected: 'CreateStake' },
  { given: 'a phase alone, which says nothing', status: { phase: 'Confirmed' }, expected: 'CreateStake' },
  { given: 'a stake without deposit data', status: { stakeId: 's1' }, expected: 'CreateStake' },
  { given: 'deposit data without a stake', status: { depositData }, expected: 'CreateStake' },
  { given: 'a stake', status: created, expected: 'VerifyDeposit' },
  { given: 'a stake of which something else was verified', status: { ...created, verifiedRoot: hash(5) }, expected: 'VerifyDeposit' },
  { given: 'a verified stake', status: verified, expected: 'PrepareDeposit' },
  { given: 'a prepared transaction', status: { ...verified, transaction: transaction() }, expected: 'Broadcast' },
  {
    given: 'a version that was not sent',
    status: { ...verified, transaction: transaction({ ...sent, hash: hash(2) }) },
    expected: 'Broadcast',
  },
  { given: 'a transaction that was sent', status: { ...verified, transaction: transaction(sent) }, expected: 'Report' },
  {
    given: 'one of which another version was reported',
    status: { ...verified, transaction: transaction({ ...sent, reportedHash: hash(7) }) },
    expected: 'Report',
  },
  {
    given: 'one that was reported',
    status: { ...verified, transaction: transaction({ ...sent, reportedHash: hash(1) }) },
    expected: 'Confirm',
  },
  {
    given: 'one that is final in another version than was reported',
    status: { ...verified, transaction: transaction({ ...sent, reportedHash: hash(1), state: 'Confirmed', minedHash: hash(3) }) },
    expected: 'Report',
  },
  {
    given: 'a final deposit',
    status: { ...verified, transaction: transaction({ ...sent, reportedHash: hash(1), state: 'Confirmed' }) },
    expected: undefined,
  },
  {
    given: 'a reverted one',
    status: { ...verified, transaction: transaction({ ...sent, reportedHash: hash(1), state: 'Failed' }) },
    expected: undefined,
  },
])('with $given, the next step is $expected', ({ status, expected }) => {
  expect(nextStep(ethereumStakeSteps, status)?.name).toBe(expected)
})

test('what cannot be taken back is written ahead: the broadcast', () => {
  expect(ethereumStakeSteps.filter(({ writeAhead }) => writeAhead).map(({ name }) => name)).toEqual(['Broadcast'])
})

test('only Confirm goes on while nothing may be signed, and only with something to watch', () => {
  const watching = (status: EthereumStakeStatus) => ethereumStakeSteps.filter(({ watches }) => watches(status)).map(({ name }) => name)
  expect(watching({})).toEqual([])
  expect(watching(verified)).toEqual([])
  expect(watching({ ...verified, transaction: transaction() })).toEqual(['Confirm'])
})

describe('what is asked of the effects', () => {
  test('the stake, by a key that is made from the origin alone', () => {
    const one = stepNamed('CreateStake').args(view({}))
    expect(one).toMatchObject({ network: 'hoodi', amountEth: '32', signer: 'main', externalReference: 'EthereumStake/team-a/one' })
    expect(one).not.toHaveProperty('adoptStakeId')
    expect(stepNamed('CreateStake').args(view({ ...created, phase: 'X' }))).toEqual(one)
  })
  test('with adopt, the stake of that id', () => {
    expect(stepNamed('CreateStake').args(view({}, { adopt: { stakeId: 'x' } }))).toMatchObject({ adoptStakeId: 'x' })
  })
  test('the deposit, with the cap and the versions that were superseded', () => {
    const lost: TransactionAttempt = {
      hash: hash(8),
      nonce: 1,
      gas: '1',
      maxFeePerGasWei: '1',
      maxPriorityFeePerGasWei: '1',
      preparedAt: 'x',
    }
    expect(stepNamed('PrepareDeposit').args(view({ ...verified, superseded: [lost] }, { maxFeePerGasGwei: '7' }))).toMatchObject({
      stakeId: 's1',
      depositData,
      maxFeePerGasGwei: '7',
      superseded: [lost],
    })
  })
  test('the report of what landed, where that is known', () => {
    expect(stepNamed('Report').args(view({ ...verified, transaction: transaction({ minedHash: hash(3) }) }))).toMatchObject({
      hash: hash(3),
    })
  })
  test('nothing without its evidence: that is a bug', () => {
    expect(() => stepNamed('PrepareDeposit').args(view({}))).toThrow('ran before its evidence')
    expect(() => stepNamed('Broadcast').args(view(verified))).toThrow('ran before its evidence')
  })
})

describe('what comes of a broadcast or a look', () => {
  const status = { ...verified, transaction: transaction({ ...sent, reportedHash: hash(1) }) }
  const attempt: TransactionAttempt = {
    hash: hash(2),
    nonce: 4,
    gas: '72000',
    maxFeePerGasWei: '11',
    maxPriorityFeePerGasWei: '2',
    preparedAt: '2030-01-01T00:10:00Z',
  }

  test('sent', () => {
    const after = absorb('Broadcast', { ...verified, transaction: transaction() }, { is: 'sent', broadcastHash: hash(1) })
    expect(after.transaction).toMatchObject({ broadcastHash: hash(1), state: 'Broadcast' })
  })
  test.each(['Broadcast', 'Confirm'])('replaced, seen by %s: the version before is kept, the new one is to be sent', (step) => {
    const after = absorb(step, status, { is: 'replaced', attempt, valueWei: '7' })
    expect(after.transaction).toMatchObject({ ...attempt, valueWei: '7', state: 'Prepared', broadcastHash: hash(1) })
    expect(after.transaction?.replaced?.map((version) => version.hash)).toEqual([hash(1)])
    expect(nextStep(ethereumStakeSteps, after)?.name).toBe('Broadcast')
    expect(attemptsOf(after.transaction as EthereumTransaction).map((version) => version.hash)).toEqual([hash(1), hash(2)])
  })
  test.each(['Broadcast', 'Confirm'])('superseded, seen by %s: it is made anew, and no version is forgotten', (step) => {
    const after = absorb(
      step,
      { ...status, transaction: { ...status.transaction, replaced: [{ ...attempt, hash: hash(6) }] } },
      { is: 'superseded' },
    )
    expect(after.transaction).toBeUndefined()
    expect(after.superseded?.map((version) => version.hash)).toEqual([hash(6), hash(1)])
    expect(nextStep(ethereumStakeSteps, after)?.name).toBe('PrepareDeposit')
  })
  test.each(['Broadcast', 'Confirm'])('found on the chain, seen by %s: that one takes its place, and is not sent', (step) => {
    const found = transaction({ hash: hash(5), nonce: 2, broadcastHash: hash(5), state: 'Broadcast' })
    const after = absorb(step, status, { is: 'found', transaction: found })
    expect(after.transaction).toEqual(found)
    expect(after.superseded?.map((version) => version.hash)).toEqual([hash(1)])
    expect(nextStep(ethereumStakeSteps, after)?.name).toBe('Report')
  })
  test('more versions than the schema takes: the oldest go', () => {
    let after: EthereumStakeStatus = status
    for (let count = 10; count < 60; count++)
      after = absorb('Confirm', after, { is: 'replaced', attempt: { ...attempt, hash: hash(count) }, valueWei: '7' })
    expect(after.transaction?.replaced).toHaveLength(32)
    expect(after.transaction?.hash).toBe(hash(59))
    expect(absorb('Confirm', after, { is: 'superseded' }).superseded).toHaveLength(32)
  })
  test.each([
    { is: 'confirmed', state: 'Confirmed' },
    { is: 'reverted', state: 'Failed' },
  ])('$is', ({ is, state }) => {
    const after = absorb('Confirm', status, { is, minedHash: hash(1), blockNumber: 7, blockHash: hash(70) })
    expect(after.transaction).toMatchObject({ state, minedHash: hash(1), blockNumber: 7, blockHash: hash(70) })
  })
})
