import { expect, test } from 'vitest'
import type { Deposit, ExecutionRequest, Sent } from './ethereum.ts'
import type { LastEvidence } from './evidence.ts'
import { lastViolations } from './judge.ts'
import type { KubernetesObject } from './kubernetes.ts'
import type { Action } from './solana.ts'
import type { SolanaWish, StakeWish, Wish } from './wishes.ts'

/** A fleet with which nothing is wrong; each row below plants one wrong in it, which must be found. */
const signer = `0x${'11'.repeat(20)}`
const depositContract = `0x${'dd'.repeat(20)}`
const requestContract = `0x${'72'.repeat(20)}`
const key = (digit: string): string => `0x${digit.repeat(96)}`
const credentials = `0x02${'00'.repeat(11)}${'11'.repeat(20)}`
const GWEI = 1_000_000_000n

const stake: StakeWish = { kind: 'EthereumStake', namespace: 'a', name: 'one', amountGwei: 34_000_000_001n, credentials, holds: [] }
const solana: SolanaWish = {
  kind: 'SolanaStake',
  namespace: 'a',
  name: 'sol',
  lamports: 5_000_000_001n,
  staker: 'Staker',
  withdrawer: 'Withdrawer',
  vote: 'Vote',
  desired: 'Active',
  holds: [],
}
const wishes: readonly Wish[] = [
  stake,
  { kind: 'ValidatorExit', namespace: 'a', name: 'exit', validator: { pubkey: key('b') }, holds: [] },
  { kind: 'ValidatorWithdrawal', namespace: 'a', name: 'part', validator: { stake: 'one' }, amountGwei: 100_000_001n, holds: [] },
  solana,
]
const deposit: Deposit = { pubkey: key('a'), credentials, amountGwei: stake.amountGwei, block: 10, hash: '0x01' }
const exit: ExecutionRequest = { source: signer, pubkey: key('b'), amountGwei: 0n, block: 11, hash: '0x02' }
const part: ExecutionRequest = { source: signer, pubkey: key('a'), amountGwei: 100_000_001n, block: 12, hash: '0x03' }
const sent = (nonce: number, more: Partial<Sent>): Sent => ({
  hash: `0x0${nonce + 1}`,
  from: signer,
  to: requestContract,
  valueWei: 1n,
  input: '0x',
  nonce,
  maxFeePerGasWei: GWEI,
  block: 10 + nonce,
  blockTime: 1_000 + nonce,
  ...more,
})
const made: readonly Action[] = [
  { is: 'create', account: 'Account', payer: 'Staker', lamports: solana.lamports },
  { is: 'initialize', account: 'Account', staker: 'Staker', withdrawer: 'Withdrawer' },
  { is: 'delegate', account: 'Account', vote: 'Vote' },
]
const ready = (kind: string, name: string, more: object = {}): KubernetesObject => ({
  kind,
  metadata: { name, namespace: 'a' },
  spec: {},
  status: { conditions: [{ type: 'Ready', status: 'True', reason: 'Succeeded', message: '' }] },
  ...more,
})
const waiting = (kind: string, name: string, reason: string, more: object = {}): KubernetesObject =>
  ready(kind, name, { status: { conditions: [{ type: 'Ready', status: 'False', reason, message: 'm' }] }, ...more })

const good: LastEvidence = {
  terms: {
    signer,
    depositContract,
    requestContract,
    maxFeePerGasWei: 60n * GWEI,
    maxRequestFeeWei: GWEI,
    limit: { count: 2, seconds: 30 },
  },
  wishes,
  objects: [
    ready('EthereumStake', 'one'),
    ready('ValidatorExit', 'exit'),
    ready('ValidatorWithdrawal', 'part'),
    ready('SolanaStake', 'sol'),
    { kind: 'SignerNonce', metadata: { name: 'n3' }, spec: { nonce: 3 } },
    { kind: 'StakingTransaction', metadata: { name: 'tx' }, spec: {}, status: { state: 'Landed' } },
  ],
  ethereum: { finalBlock: 20, deposits: [deposit], requests: [exit, part] },
  solana: {
    landed: [{ signature: 'S1', slot: 5, actions: made }],
    accounts: new Map([['Account', { lamports: solana.lamports, staker: 'Staker', withdrawer: 'Withdrawer', vote: 'Vote' }]]),
  },
  sent: [
    sent(0, { to: depositContract, valueWei: stake.amountGwei * GWEI, input: '0x22895118ff' }),
    sent(1, {}),
    sent(2, {}),
    sent(3, { to: signer, valueWei: 0n }),
  ],
  counts: { latest: 4, pending: 4, final: 4 },
  beacon: { validators: new Map([[key('a'), { credentials, status: 'active_ongoing' }]]), queued: new Set() },
}

const withEthereum = (more: Partial<LastEvidence['ethereum']>): LastEvidence => ({ ...good, ethereum: { ...good.ethereum, ...more } })
const withSolana = (...actions: readonly Action[]): LastEvidence => ({
  ...good,
  solana: { ...good.solana, landed: [...good.solana.landed, { signature: 'S2', slot: 6, actions }] },
})
const withObject = (object: KubernetesObject): LastEvidence => ({
  ...good,
  objects: [...good.objects.filter(({ kind, metadata }) => kind !== object.kind || metadata.name !== object.metadata.name), object],
})
const withWish = (wish: Wish): LastEvidence => ({
  ...good,
  wishes: [...wishes.filter(({ kind, name }) => kind !== wish.kind || name !== wish.name), wish],
})
const without = <T>(list: readonly T[], one: T): readonly T[] => list.filter((each) => each !== one)
const second = (lamports: bigint): readonly Action[] =>
  made.map((one) => ({ ...one, account: 'Another', ...('lamports' in one ? { lamports } : {}) }) as Action)

test('nothing is wrong with a good fleet', () => expect(lastViolations(good)).toEqual([]))

test.each<{ readonly planted: string; readonly evidence: LastEvidence; readonly found: RegExp }>([
  {
    planted: 'a stake is paid twice, for another key',
    evidence: withEthereum({ deposits: [deposit, { ...deposit, pubkey: key('c'), hash: '0x09' }] }),
    found: /EthereumStake\/a\/one was paid 2 times: 0x01 in block 10, 0x09 in block 10/,
  },
  {
    planted: 'a validator is paid twice, by another amount',
    evidence: withEthereum({ deposits: [deposit, { ...deposit, amountGwei: 1n }] }),
    found: /2 deposits for validator 0xaaa/,
  },
  {
    planted: 'a deposit goes to another address',
    evidence: withEthereum({ deposits: [{ ...deposit, credentials: credentials.replace('11', '22') }] }),
    found: /a deposit of 34000000001 gwei to 0x0200.* is nobody's wish/,
  },
  {
    planted: 'a deposit is of another amount',
    evidence: withEthereum({ deposits: [{ ...deposit, amountGwei: 34_000_000_002n }] }),
    found: /a deposit of 34000000002 gwei .* is nobody's wish/,
  },
  {
    planted: 'an exit is asked for twice',
    evidence: withEthereum({ requests: [exit, part, { ...exit, hash: '0x09' }] }),
    found: /ValidatorExit\/a\/exit was paid 2 times/,
  },
  {
    planted: 'a withdrawal becomes a full exit',
    evidence: withEthereum({ requests: [exit, { ...part, amountGwei: 0n }] }),
    found: /a request of 0 gwei for 0xaaa.* is nobody's wish/,
  },
  {
    planted: 'a withdrawal is of another validator',
    evidence: withEthereum({ requests: [exit, { ...part, pubkey: key('b') }] }),
    found: /a request of 100000001 gwei for 0xbbb.* is nobody's wish/,
  },
  {
    planted: 'a request comes from another address',
    evidence: withEthereum({ requests: [{ ...exit, source: `0x${'99'.repeat(20)}` }, part] }),
    found: /which is not the signer/,
  },
  {
    planted: 'a suspended stake is paid',
    evidence: withWish({ ...stake, holds: [{ why: 'suspended', from: 8 }] }),
    found: /EthereumStake\/a\/one was suspended at 8 and was paid at 10/,
  },
  {
    planted: 'a deleted Solana stake is paid',
    evidence: withWish({ ...solana, holds: [{ why: 'deleted', from: 4 }] }),
    found: /SolanaStake\/a\/sol was deleted at 4 and was paid at 5/,
  },
  {
    planted: 'a stake is Ready before its block is final',
    evidence: withEthereum({ finalBlock: 9 }),
    found: /EthereumStake\/a\/one is Ready, and what is on the chain is not final: block 10 of 9/,
  },
  { planted: 'a stake is Ready without a deposit', evidence: withEthereum({ deposits: [] }), found: /a\/one is Ready, and nothing of it/ },
  {
    planted: 'an exit is Ready without its request',
    evidence: withEthereum({ requests: [part] }),
    found: /ValidatorExit\/a\/exit is Ready, and nothing of it is on the chain/,
  },
  {
    planted: 'a stake is Ready that nobody asked for',
    evidence: withObject(ready('EthereumStake', 'two')),
    found: /EthereumStake\/a\/two is Ready, and nobody asked for it/,
  },
  {
    planted: 'a Solana stake is Ready without its account',
    evidence: { ...good, solana: { landed: good.solana.landed, accounts: new Map() } },
    found: /SolanaStake\/a\/sol is Ready, and its account is gone/,
  },
  {
    planted: 'a Solana stake is made twice',
    evidence: withSolana(...second(solana.lamports)),
    found: /SolanaStake\/a\/sol was paid 2 times/,
  },
  {
    planted: 'a Solana stake is of another amount',
    evidence: withSolana(...second(7n)),
    found: /stake account Another of 7 lamports is nobody's wish/,
  },
  {
    planted: 'a Solana stake has another withdraw authority',
    evidence: {
      ...good,
      solana: {
        ...good.solana,
        landed: [
          { signature: 'S1', slot: 5, actions: made.map((one) => (one.is === 'initialize' ? { ...one, withdrawer: 'Thief' } : one)) },
        ],
      },
    },
    found: /stake account Account .* is nobody's wish/,
  },
  {
    planted: 'a Solana stake is delegated elsewhere',
    evidence: {
      ...good,
      solana: {
        ...good.solana,
        landed: [{ signature: 'S1', slot: 5, actions: made.map((one) => (one.is === 'delegate' ? { ...one, vote: 'Other' } : one)) }],
      },
    },
    found: /was delegated to Other, not to Vote/,
  },
  {
    planted: 'a stake account is deactivated unasked',
    evidence: withSolana({ is: 'deactivate', account: 'Account' }),
    found: /Account was deactivated, and nobody asked for that/,
  },
  {
    planted: 'a stake account is withdrawn unasked',
    evidence: withSolana({ is: 'withdraw', account: 'Account', to: 'Withdrawer', lamports: 1n }),
    found: /Account was withdrawn from, and nobody asked for that/,
  },
  {
    planted: 'a withdrawal goes elsewhere',
    evidence: {
      ...withSolana({ is: 'withdraw', account: 'Account', to: 'Thief', lamports: 1n }),
      wishes: [...without(wishes, solana), { ...solana, desired: 'Withdrawn' }],
    },
    found: /Account was withdrawn to Thief/,
  },
  {
    planted: 'lamports go to somebody',
    evidence: withSolana({ is: 'transfer', from: 'Staker', to: 'Thief', lamports: 9n }),
    found: /9 lamports went to Thief/,
  },
  { planted: 'an unknown instruction is signed', evidence: withSolana({ is: 'unknown', what: 'X' }), found: /none of a stake's: X/ },
  {
    planted: 'ETH goes to somebody',
    evidence: { ...good, sent: [...good.sent, sent(4, { to: `0x${'99'.repeat(20)}`, valueWei: 1n })] },
    found: /nonce 4 goes to 0x99/,
  },
  {
    planted: 'a block is lost with what was in it',
    evidence: { ...good, sent: good.sent.filter(({ nonce }) => nonce !== 2) },
    found: /nonces 2 are final, and no block shows what used them/,
  },
  {
    planted: 'a cancel carries money',
    evidence: { ...good, sent: [...good.sent, sent(4, { to: signer, valueWei: 5n })] },
    found: /nonce 4 sends 5 wei to its own address/,
  },
  {
    planted: 'gas is paid above the cap',
    evidence: { ...good, sent: [...good.sent, sent(4, { maxFeePerGasWei: 61n * GWEI })] },
    found: /nonce 4 offers 61000000000 wei for gas/,
  },
  {
    planted: 'a cancel is above twice the cap',
    evidence: { ...good, sent: [...good.sent, sent(4, { to: signer, valueWei: 0n, maxFeePerGasWei: 121n * GWEI })] },
    found: /nonce 4 is a cancel at 121000000000 wei/,
  },
  {
    planted: 'another function of the deposit contract is called',
    evidence: { ...good, sent: [...good.sent, sent(4, { to: depositContract, input: '0xdeadbeef00' })] },
    found: /nonce 4 calls 0xdeadbeef of the deposit contract/,
  },
  {
    planted: 'a request pays too much',
    evidence: { ...good, sent: [...good.sent, sent(4, { valueWei: GWEI + 1n })] },
    found: /nonce 4 pays 1000000001 wei for a request/,
  },
  {
    planted: 'a limit is broken',
    evidence: { ...good, sent: [...good.sent, sent(4, {}), sent(5, {})] },
    found: /5 transactions landed within 30 s from block 10: the limit is 2/,
  },
  {
    planted: 'the consensus layer made no validator',
    evidence: { ...good, beacon: { validators: new Map(), queued: new Set() } },
    found: /the beacon chain made no validator of the deposit 0x01/,
  },
  {
    planted: 'the validator has other credentials',
    evidence: { ...good, beacon: { ...good.beacon, validators: new Map([[key('a'), { credentials: '0x01', status: 'active_ongoing' }]]) } },
    found: /has credentials 0x01, not 0x02/,
  },
  {
    planted: 'a nonce stays open',
    evidence: withObject({ kind: 'SignerNonce', metadata: { name: 'n4' }, spec: { nonce: 4 } }),
    found: /nonces 4 were given out, and the chain is final up to 4/,
  },
  {
    planted: 'something waits in the pool',
    evidence: { ...good, counts: { latest: 4, pending: 5, final: 4 } },
    found: /1 transactions of the signer wait in the pool/,
  },
  {
    planted: 'a record stays open',
    evidence: withObject({ kind: 'StakingTransaction', metadata: { name: 'tx' }, spec: {}, status: { state: 'Open' } }),
    found: /StakingTransaction\/tx is still open/,
  },
  {
    planted: 'a stake does not settle',
    evidence: withObject(waiting('EthereumStake', 'one', 'ChainUnavailable')),
    found: /EthereumStake\/a\/one is not settled: ChainUnavailable, m/,
  },
  {
    planted: 'a signer is stuck',
    evidence: withObject(waiting('StakingSigner', 'treasury', 'UnaccountedTransactions')),
    found: /StakingSigner\/a\/treasury is not settled/,
  },
  {
    planted: 'what holds nothing does not go',
    evidence: withObject(
      waiting('ValidatorExit', 'other', 'Deleting', { metadata: { name: 'other', namespace: 'a', deletionTimestamp: 'now' } }),
    ),
    found: /ValidatorExit\/a\/other was deleted, holds nothing, and is still there/,
  },
])('$planted: it is found', ({ evidence, found }) => {
  const lines = lastViolations(evidence)
  expect(
    lines.filter((line) => found.test(line)),
    lines.join('\n'),
  ).not.toEqual([])
})

test.each<{ readonly what: string; readonly object: KubernetesObject }>([
  { what: 'what its owner has suspended', object: waiting('EthereumStake', 'two', 'Suspended', { spec: { suspend: true } }) },
  {
    what: 'a deleted stake that holds money',
    object: waiting('EthereumStake', 'one', 'Deleting', { metadata: { name: 'one', namespace: 'a', deletionTimestamp: 'now' } }),
  },
  {
    what: 'what has its answer',
    object: ready('ValidatorExit', 'late', {
      status: {
        conditions: ['Ready', 'Stalled'].map((type) => ({
          type,
          status: type === 'Ready' ? 'False' : 'True',
          reason: 'AlreadyExiting',
          message: '',
        })),
      },
    }),
  },
  {
    what: 'a Solana stake that was never paid and is not wanted',
    object: ready('SolanaStake', 'sol', { status: { conditions: [{ type: 'Ready', status: 'True', reason: 'Succeeded', message: '' }] } }),
  },
])('$what is no violation', ({ object }) => expect(lastViolations(withObject(object))).toEqual([]))

test('a limit that was taken away is broken by nothing that lands afterwards', () => {
  const { terms } = good
  const evidence = { ...good, sent: [...good.sent, sent(4, {}), sent(5, {})] }
  const until = (seconds: number) => lastViolations({ ...evidence, terms: { ...terms, limit: { ...terms.limit, until: seconds } } })
  const broken = expect.stringMatching(/landed within 30 s/)
  expect(until(Math.max(...evidence.sent.map(({ blockTime }) => blockTime)))).toContainEqual(broken)
  expect(until(0)).not.toContainEqual(broken)
})
