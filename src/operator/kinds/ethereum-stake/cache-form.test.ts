import { expect, test } from 'vitest'
import type { EthereumStake, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import { diffMergePatch } from '../../kube/merge-patch.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { createStakeCacheForm } from './cache-form.ts'
import { ethereumStakeStatus } from './status.ts'

const hash = (digit: string): string => `0x${digit.repeat(64)}`
const transaction = {
  chainId: 1,
  from: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  to: '0x00000000219ab540356cBB839Cbe05303d7705Fa',
  valueWei: '32000000000000000000',
  dataHash: hash('d'),
  hash: hash('a'),
  nonce: 7,
  gas: '72000',
  maxFeePerGasWei: '3',
  maxPriorityFeePerGasWei: '1',
  preparedAt: '2026-01-01T00:00:00Z',
  broadcastHash: hash('a'),
  reportedHash: hash('a'),
  state: 'Confirmed',
  minedHash: hash('a'),
  blockNumber: 20,
  blockHash: hash('b'),
} as const
const evidence: EthereumStakeStatus = {
  stakeId: 's'.repeat(32),
  depositData: {
    pubkey: `0x${'1'.repeat(96)}`,
    withdrawalCredentials: hash('2'),
    amountGwei: '32000000000',
    signature: `0x${'3'.repeat(192)}`,
    depositDataRoot: hash('4'),
  },
  verifiedRoot: hash('4'),
  transaction,
}
const NOW = new Date('2026-01-02T00:00:00Z')
const bare = {
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'EthereumStake',
  metadata: { name: 'one', namespace: 'team', uid: 'u', resourceVersion: '1', generation: 1 },
  spec: { network: 'hoodi', amountEth: '32', withdrawalAddress: transaction.from, credentialsType: 'Compounding', signer: 'treasury' },
} as const
const stake = (status: EthereumStakeStatus): EthereumStake & KubeObject => ({
  ...bare,
  status: ethereumStakeStatus(bare, status, { at: 'settled' }, NOW),
})

test('of a stake whose every step is done, what only a signature needs is not held', () => {
  const held = createStakeCacheForm()(stake(evidence))
  expect(held.status?.depositData).toMatchObject({ signature: '', pubkey: evidence.depositData?.pubkey })
  expect(held.status?.transaction).toMatchObject({ dataHash: '', blockHash: '', hash: transaction.hash, nonce: 7 })
})

test('nothing would be written for it: what is said of the held form is what stands in it', () => {
  const held = createStakeCacheForm()(stake(evidence))
  const status = held.status as EthereumStakeStatus
  const next = ethereumStakeStatus(held, status, { at: 'settled' }, new Date('2026-03-01T00:00:00Z'))
  expect(diffMergePatch(status, next)).toBeUndefined()
  expect(next.conditions).toEqual(stake(evidence).status?.conditions)
})

test('a patch made from it names only what changed, never what was left empty', () => {
  const status = createStakeCacheForm()(stake(evidence)).status as EthereumStakeStatus
  const validator = { pubkey: `0x${'1'.repeat(96)}`, status: 'active_ongoing' }
  expect(diffMergePatch(status, { ...status, validator })).toEqual({ validator })
})

test.each<{ given: string; change: Partial<NonNullable<EthereumStakeStatus['transaction']>> }>([
  { given: 'is not final yet', change: { state: 'Broadcast' } },
  { given: 'was reverted', change: { state: 'Failed' } },
  { given: 'is not reported yet', change: { reportedHash: hash('c') } },
])('a stake whose transaction $given is held whole', ({ change }) => {
  const given = stake({ ...evidence, transaction: { ...transaction, ...change } })
  expect(createStakeCacheForm()(given)).toEqual(given)
})

test('a stake whose deposit was verified otherwise than it reads now still shows that', () => {
  const given = stake({ ...evidence, verifiedRoot: hash('5') })
  const held = createStakeCacheForm()(given).status as EthereumStakeStatus
  expect(held.verifiedRoot).toBe(hash('5'))
  expect(ethereumStakeStatus(bare, held, { at: 'settled' }, NOW).conditions).toEqual(given.status?.conditions)
})

test('the object given is left as it is, and equal specs of those that are under way are one', () => {
  const hold = createStakeCacheForm()
  const underWay = { ...evidence, transaction: { ...transaction, state: 'Broadcast' } } as const
  const given = stake(underWay)
  const held = hold(given)
  expect(given).toEqual(stake(underWay))
  expect(hold(structuredClone(given)).spec).toBe(held.spec)
  expect(held.spec).toEqual(given.spec)
})
