import { describe, expect, test } from 'vitest'
import type { Hex } from '../../../lib/chain-types.ts'
import type { EthereumStakeSpec, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import type { EthereumTransaction } from '../../../resources/ethereum-transaction.ts'
import { nextStep } from '../../engine/step.ts'
import { type EthereumStakeView, ethereumStakeSteps } from './steps.ts'

const root = `0x${'aa'.repeat(32)}` as const
const depositData = {
  pubkey: `0x${'11'.repeat(48)}` as const,
  withdrawalCredentials: root,
  amountGwei: '32000000000',
  signature: `0x${'22'.repeat(96)}` as const,
  depositDataRoot: root,
}
const hash = (of: number): Hex => `0x${of.toString(16).padStart(64, '0')}`
const transaction = (change: Partial<EthereumTransaction> = {}): EthereumTransaction => ({
  chainId: 560048,
  from: `0x${'33'.repeat(20)}` as const,
  to: `0x${'44'.repeat(20)}` as const,
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
  uid: 'u1',
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
  { given: 'a verified stake', status: verified, expected: 'Transaction' },
  { given: 'a prepared transaction', status: { ...verified, transaction: transaction() }, expected: 'Transaction' },
  { given: 'a transaction that was sent', status: { ...verified, transaction: transaction(sent) }, expected: 'Transaction' },
  {
    given: 'one of which another version was reported',
    status: { ...verified, transaction: transaction({ ...sent, state: 'Confirmed', reportedHash: hash(7) }) },
    expected: 'Report',
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
    given: 'one that came second',
    status: { ...verified, transaction: transaction({ ...sent, reportedHash: hash(1), state: 'FrontRun' }) },
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

test('nothing is written ahead in status: the log is', () => {
  expect(ethereumStakeSteps.filter(({ writeAhead }) => writeAhead)).toEqual([])
})

test('only the transaction and its report go on while nothing may be signed, and only with something to watch', () => {
  const watching = (status: EthereumStakeStatus) => ethereumStakeSteps.filter(({ watches }) => watches(status)).map(({ name }) => name)
  expect(watching({})).toEqual([])
  expect(watching(verified)).toEqual(['Transaction'])
  expect(watching({ ...verified, transaction: transaction({ state: 'Confirmed' }) })).toEqual(['Transaction', 'Report'])
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
  test('the deposit, with what status shows of its transaction', () => {
    const shown = transaction()
    expect(stepNamed('Transaction').args(view({ ...verified, transaction: shown }))).toMatchObject({ stakeId: 's1', depositData, shown })
  })
  test('the report of what landed, where that is known', () => {
    expect(stepNamed('Report').args(view({ ...verified, transaction: transaction({ minedHash: hash(3) }) }))).toMatchObject({
      hash: hash(3),
    })
  })
  test('nothing without its evidence: that is a bug', () => {
    expect(() => stepNamed('Transaction').args(view({}))).toThrow('ran before its evidence')
    expect(() => stepNamed('Report').args(view(verified))).toThrow('ran before its evidence')
  })
})

describe('what comes of a look at the log', () => {
  test('is what status shows, and nothing of what it showed before', () => {
    const now = transaction({ hash: hash(2), nonce: 7 })
    expect(absorb('Transaction', { ...verified, transaction: transaction(sent) }, { transaction: now }).transaction).toEqual(now)
    expect(absorb('Transaction', { ...verified, transaction: transaction(sent) }, { transaction: undefined }).transaction).toBeUndefined()
  })
  test('what the staking API said takes the place of what stood there', () => {
    const found = { stakeId: 's2', depositData: { ...depositData, depositDataRoot: hash(8) } }
    expect(absorb('Transaction', verified, { transaction: undefined, found })).toMatchObject({ ...found, verifiedRoot: hash(8) })
  })
})
