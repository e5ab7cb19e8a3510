import { describe, expect, test } from 'vitest'
import type { SignerNonce } from '../resources/signer-nonce.ts'
import type { StakingTransaction, StakingTransactionStatus, TransactionAttempt } from '../resources/staking-transaction.ts'
import { auditColumns, auditTrail } from './audit-trail.ts'
import { csv } from './output.ts'

const FROM = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const attempt = (hash: string, nonce: number, more: Partial<TransactionAttempt> = {}): TransactionAttempt => ({
  hash,
  kind: 'Call',
  nonce,
  at: `2026-11-29T10:00:0${nonce}Z`,
  maxFeePerGasWei: '2500000000',
  generation: 1,
  ...more,
})
const record = (status: StakingTransactionStatus, name = 'deposit-1'): StakingTransaction => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'StakingTransaction',
  metadata: { name, uid: name, resourceVersion: '1' },
  spec: {
    chain: 'Ethereum',
    network: 'hoodi',
    chainId: 560048,
    purpose: 'Deposit',
    subject: '0xab',
    amount: '32 ETH',
    owner: { kind: 'EthereumStake', namespace: 'team-a', name: 'validator-1', originUid: 'u' },
    generation: 1,
    signer: 'treasury',
    from: FROM,
    call: { to: '0x00000000219ab540356cBB839Cbe05303d7705Fa', data: '0x' },
  },
  status,
})
const filler = (nonce: number): SignerNonce => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'SignerNonce',
  metadata: { name: `n-${nonce}`, uid: `n-${nonce}`, resourceVersion: '1', creationTimestamp: '2026-11-29T09:00:00Z' },
  spec: { chainId: 560048, address: FROM.toLowerCase() as `0x${string}`, nonce },
})
const place = { blockNumber: 7, blockHash: '0xbb' }
const resultsOf = (status: StakingTransactionStatus) =>
  auditTrail([record(status)], []).map(({ hash, result, block }) => [hash, result, block])

describe('what came of each version', () => {
  test.each<[string, StakingTransactionStatus, unknown[][]]>([
    ['it may land yet', { attempts: [attempt('0x1', 4)] }, [['0x1', 'Open', undefined]]],
    [
      'a dearer version landed in its place',
      { attempts: [attempt('0x1', 4), attempt('0x2', 4)], outcome: { is: 'Landed', hash: '0x2', nonce: 4, ...place } },
      [
        ['0x1', 'Replaced', undefined],
        ['0x2', 'Landed', 7],
      ],
    ],
    [
      'it was cancelled, and made again',
      {
        attempts: [attempt('0x1', 4), attempt('0x2', 4, { kind: 'Cancel' }), attempt('0x3', 5)],
        closed: [{ nonce: 4, generation: 1, by: 'Cancel', hash: '0x2', ...place }],
      },
      [
        ['0x1', 'Replaced', undefined],
        ['0x2', 'Cancelled', 7],
        ['0x3', 'Open', undefined],
      ],
    ],
    [
      'a stranger used its nonce',
      { attempts: [attempt('0x1', 4)], closed: [{ nonce: 4, generation: 1, by: 'Foreign', hash: '0xff', ...place }] },
      [['0x1', 'NonceUsedElsewhere', undefined]],
    ],
    [
      'another signer’s lane closed the same number: this one is open',
      { attempts: [attempt('0x1', 4, { generation: 2 })], closed: [{ nonce: 4, generation: 1, by: 'Foreign', hash: '0xff', ...place }] },
      [['0x1', 'Open', undefined]],
    ],
    [
      'second to somebody else',
      { attempts: [attempt('0x1', 4)], outcome: { is: 'FrontRun', hash: '0x1', nonce: 4, ...place } },
      [['0x1', 'FrontRun', 7]],
    ],
  ])('%s', (_what, status, results) => {
    expect(resultsOf(status)).toEqual(results)
  })
})

test('a cancel moves nothing, and goes to the signer itself', () => {
  expect(auditTrail([record({ attempts: [attempt('0x1', 4, { kind: 'Cancel' })] })], [])).toMatchObject([
    { action: 'Cancel', amount: '0 ETH', to: FROM },
  ])
})

test('nonces that no transaction names are in it, oldest first, with the signer of their address', () => {
  expect(auditTrail([record({ attempts: [attempt('0x1', 4)] })], [filler(3)])).toMatchObject([
    { action: 'Filler', nonce: 3, signer: 'treasury', network: 'hoodi' },
    { action: 'Call', nonce: 4, maxFeePerGasGwei: '2.5', transaction: 'deposit-1' },
  ])
})

describe('a nonce that no version of a transaction names', () => {
  const takenFor = (nonce: number, transaction: Partial<NonNullable<SignerNonce['spec']['transaction']>> = {}): SignerNonce => {
    const { spec, ...rest } = filler(nonce)
    return { ...rest, spec: { ...spec, transaction: { name: 'deposit-1', uid: 'deposit-1', generation: 1, ...transaction } } }
  }
  const rows = (status: StakingTransactionStatus, ...places: readonly SignerNonce[]) =>
    auditTrail([record(status)], places).map(({ nonce, action, result, transaction }) => [nonce, action, result, transaction])
  const call = [4, 'Call', 'Open', 'deposit-1']

  test('is a filler, and what came of it is not written down', () => {
    expect(rows({ attempts: [attempt('0x1', 4)] }, filler(3))).toEqual([[3, 'Filler', 'NotRecorded', undefined], call])
  })

  test('and was taken for one that went on with another nonce is filled too', () => {
    expect(rows({ place: 4, attempts: [attempt('0x1', 4)] }, takenFor(3), takenFor(4))).toEqual([
      [3, 'Filler', 'NotRecorded', 'deposit-1'],
      call,
    ])
  })

  test('and was taken for one that has none is told as that', () => {
    expect(rows({}, takenFor(3))).toEqual([[3, 'Filler', 'NotRecorded', 'deposit-1']])
  })

  test('of the generation that took it, though another generation names the same number in its own lane', () => {
    expect(rows({ attempts: [attempt('0x1', 4, { generation: 2 })] }, takenFor(4, { generation: 1 }))).toEqual([
      [4, 'Filler', 'NotRecorded', 'deposit-1'],
      [4, 'Call', 'Open', 'deposit-1'],
    ])
  })

  test('is in it once, by the transaction that names it: open, concluded, closed, or found by a witness', () => {
    const landed: StakingTransactionStatus = { attempts: [attempt('0x1', 4)], outcome: { is: 'Landed', hash: '0x1', nonce: 4, ...place } }
    expect(rows(landed, takenFor(4))).toEqual([[4, 'Call', 'Landed', 'deposit-1']])
    const closed: StakingTransactionStatus = {
      attempts: [attempt('0x1', 4)],
      closed: [{ nonce: 4, generation: 1, by: 'Foreign', hash: '0xff', ...place }],
    }
    expect(rows(closed, takenFor(4))).toEqual([[4, 'Call', 'NonceUsedElsewhere', 'deposit-1']])
    // Written before there was any hand-over.
    const { generation: _none, ...old } = attempt('0x1', 4)
    expect(rows({ attempts: [old] }, takenFor(4))).toEqual([call])
    // Taken for another one, or for none, and followed since.
    for (const of of [filler(4), takenFor(4, { uid: 'gone', name: 'gone' })])
      expect(rows({ place: 4, attempts: [attempt('0x1', 4, { found: true })] }, of)).toEqual([call])
  })

  test('and was taken for one that is not in the log any more: what was sent is not known', () => {
    expect(auditTrail([], [takenFor(3)])).toMatchObject([
      { nonce: 3, action: 'Unknown', amount: '', to: undefined, result: 'NotRecorded', transaction: 'deposit-1' },
    ])
  })

  test('is another lane’s where chain or address are', () => {
    const { spec, ...rest } = filler(4)
    const elsewhere = { ...rest, spec: { ...spec, chainId: 1 } }
    expect(rows({ attempts: [attempt('0x1', 4)] }, elsewhere)).toEqual([[4, 'Filler', 'NotRecorded', undefined], call])
  })
})

test('as CSV it has all columns', () => {
  expect(csv(auditColumns, auditTrail([record({ attempts: [attempt('0x1', 4)] })], []))).toBe(
    'TIME,NETWORK,SIGNER,NONCE,ACTION,AMOUNT,NAMESPACE,RESOURCE,RESULT,BLOCK,HASH,MAX FEE (GWEI),FROM,TO,KIND,TRANSACTION\r\n' +
      `2026-11-29T10:00:04Z,hoodi,treasury,4,Deposit,32 ETH,team-a,validator-1,Open,,0x1,2.5,${FROM},0x00000000219ab540356cBB839Cbe05303d7705Fa,EthereumStake,deposit-1\r\n`,
  )
})

test('of a hand-over of authorities it is told who gets them', () => {
  const [staker, withdrawer] = ['9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM', 'FtrFpXmPLFS1VNMEqNRdYbWK8Q6KZ1zZmdYV3zFFpCwM'] as const
  const { spec, ...given } = record({ attempts: [attempt('s1', 0)] }, 'authorization-1')
  const { call: _none, chainId: _no, ...solana } = spec
  const handedTo = (to: NonNullable<StakingTransaction['spec']['handOver']>['to']) =>
    auditTrail([{ ...given, spec: { ...solana, chain: 'Solana', purpose: 'SolanaAuthorization', handOver: { from: {}, to } } }], [])[0]?.to
  expect(handedTo({ stakeAuthority: { address: staker }, withdrawAuthority: { address: withdrawer } })).toBe(withdrawer)
  expect(handedTo({ stakeAuthority: { address: staker } })).toBe(staker)
})

test('what was signed before the record passed on is told as that of the signer and resource that it was for then', () => {
  const other = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
  const passed = record({
    attempts: [
      attempt('0x1', 4, { generation: 0 }),
      attempt('0x2', 4, { generation: 0, kind: 'Cancel' }),
      attempt('0x3', 5, { generation: 1 }),
    ],
    closed: [{ nonce: 4, generation: 0, by: 'Cancel', hash: '0x2', ...place }],
  })
  const before = {
    generation: 0,
    owner: { ...passed.spec.owner, name: 'validator-0' },
    signer: 'reserve',
    from: other,
    network: 'hoodi-before',
  }
  const told = auditTrail([{ ...passed, spec: { ...passed.spec, earlier: [before] } }], [])
  expect(told.map(({ hash, network, signer, from, resource, to }) => [hash, network, signer, from, resource, to])).toEqual([
    ['0x1', 'hoodi-before', 'reserve', other, 'validator-0', passed.spec.call?.to],
    ['0x2', 'hoodi-before', 'reserve', other, 'validator-0', other],
    ['0x3', 'hoodi', 'treasury', FROM, 'validator-1', passed.spec.call?.to],
  ])
})

test.each([
  { written: 'that says its generation', generations: [0, 1] },
  { written: 'that says none, as earlier versions wrote it', generations: [undefined, 1] },
])('a Solana attempt $written is told as that of the key that signed it, though the record has passed on', ({ generations }) => {
  const [old, now] = ['9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM', 'FtrFpXmPLFS1VNMEqNRdYbWK8Q6KZ1zZmdYV3zFFpCwM']
  const attempts = generations.map(
    (generation, number): TransactionAttempt => ({
      hash: `s${number}`,
      kind: 'Call',
      at: `2026-11-29T10:00:0${number}Z`,
      ...(generation === undefined ? {} : { generation }),
    }),
  )
  const passed = record({ attempts, closed: [{ nonce: 0, by: 'Expired', hash: 's0', blockNumber: 7 }] }, 'withdrawal-1')
  const { call: _none, chainId: _no, owner, ...spec } = passed.spec
  const before = { generation: 0, owner: { ...owner, name: 'stake-0' }, signer: 'reserve', from: old ?? '', network: 'mainnet' }
  const solana: StakingTransaction['spec'] = {
    ...spec,
    chain: 'Solana',
    purpose: 'SolanaWithdrawal',
    network: 'mainnet',
    owner,
    from: now ?? '',
    earlier: [before],
  }
  expect(
    auditTrail([{ ...passed, spec: solana }], []).map(({ hash, signer, from, resource, result }) => [hash, signer, from, resource, result]),
  ).toEqual([
    ['s0', 'reserve', old, 'stake-0', 'Expired'],
    ['s1', 'treasury', now, 'validator-1', 'Open'],
  ])
})

test('what was signed for a resource of another namespace is told as that, though the record is somebody else’s now', () => {
  const signedFor = {
    attempts: [attempt('0x1', 4, { namespace: 'team-b' }), attempt('0x2', 5, { namespace: 'team-a' }), attempt('0x3', 6)],
  }
  expect(auditTrail([record(signedFor)], []).map(({ namespace, resource, hash }) => [hash, namespace, resource])).toEqual([
    ['0x1', 'team-b', ''],
    ['0x2', 'team-a', 'validator-1'],
    ['0x3', 'team-a', 'validator-1'],
  ])
})
