import { systemClock } from '../../../src/lib/clock.ts'
import { createCaches } from '../../../src/operator/caches.ts'
import type { CacheOptions } from '../../../src/operator/kube/collections.ts'
import type { KubeObject } from '../../../src/operator/kube/objects.ts'
import { createPage } from '../../../src/operator/page/page.ts'
import { rememberEvents } from '../../../src/operator/page/remembered-events.ts'
import { createViews } from '../../../src/operator/page/views.ts'
import { createFakeKube } from '../../../src/operator/testing/fake-kube.ts'
import { createTestClock } from '../../../src/operator/testing/test-clock.ts'
import { ethereumStake } from '../../../src/resources/ethereum-stake.ts'
import type { KindDefinition } from '../../../src/resources/meta.ts'
import { solanaStake } from '../../../src/resources/solana-stake.ts'
import { stakingSigner } from '../../../src/resources/staking-signer.ts'
import { stakingTransaction } from '../../../src/resources/staking-transaction.ts'
import { validatorExit } from '../../../src/resources/validator-exit.ts'
import { validatorWithdrawal } from '../../../src/resources/validator-withdrawal.ts'

const TREASURY = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const VAULT = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const at = (text: string): string => `2030-01-01T${text}Z`
const hex = (bytes: number, digits: string): string => `0x${digits.repeat(bytes).slice(0, bytes * 2)}`

const condition = (type: string, status: string, reason: string, message: string, time: string) => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: at(time),
})
const attempt = (digits: string, nonce: number, time: string, gwei: string, kind = 'Call') => ({
  hash: hex(32, digits),
  kind,
  nonce,
  gas: '72000',
  maxFeePerGasWei: `${gwei}000000000`,
  maxPriorityFeePerGasWei: '1500000000',
  at: at(time),
})
const stakeSpec = (network = 'mainnet') => ({
  network,
  amountEth: '32',
  withdrawalAddress: VAULT,
  credentialsType: 'Compounding',
  signer: 'treasury',
})
const record = (name: string, namespace: string, purpose: string, digits: string, amount = '32 ETH') => ({
  chain: 'Ethereum',
  network: 'mainnet',
  chainId: 1,
  purpose,
  subject: hex(48, digits),
  amount,
  owner: { kind: purpose === 'Deposit' ? 'EthereumStake' : 'ValidatorWithdrawal', namespace, name, originUid: name },
  generation: 0,
  signer: 'treasury',
  from: TREASURY,
  call: { to: VAULT, data: '0x' },
})

/** Of what somebody makes up: only a status may hold it, and only until the operator looks again. */
export const HOSTILE =
  '</p><script>document.title="run"</script><img src=x onerror="document.title=\'run\'"><a href="javascript:alert(1)">a</a>'

/**
 * The page over a fleet in memory that has something of everything, at noon: nothing of it is real, and no clock runs. For what a browser makes of it; the
 * operator's own page over a real API server is tried by `operator/page.test.ts`.
 */
export function exampleFleet({ leads = true } = {}) {
  const clock = createTestClock(Date.parse(at('12:00:00')))
  const kube = createFakeKube(clock)
  const caches = createCaches(<R extends KubeObject>(definition: KindDefinition, options?: CacheOptions<R>) =>
    kube.follow<R>(definition, options),
  )
  const events = rememberEvents({ event: () => {} }, clock)
  const failures: unknown[] = []
  const views = createViews({
    caches,
    events,
    clock,
    instance: () => ({
      version: '0.1.0',
      name: 'staking-operator-7d9c5b-x2x7p',
      leads,
      leader: leads ? 'staking-operator-7d9c5b-x2x7p' : 'staking-operator-7d9c5b-q8k4z',
      unsynced: [],
      suspended: false,
      silentMs: 12_000,
    }),
  })
  const create = (kind: KindDefinition, name: string, namespace: string, spec: object, status: object | undefined, time: string) =>
    kube.collection<KubeObject>(kind).create({
      metadata: { name, ...(namespace === '' ? {} : { namespace }), creationTimestamp: at(time) },
      spec,
      status,
    })
  const waiting = (reason: string, message: string, time: string) => [
    condition('Ready', 'False', reason, message, time),
    condition('Reconciling', 'True', reason, message, time),
    condition('Stalled', 'False', reason, 'Nothing needs a person.', time),
  ]
  const stalled = (reason: string, message: string, time: string) => [
    condition('Ready', 'False', reason, message, time),
    condition('Stalled', 'True', reason, message, time),
  ]
  const done = (time: string) => [
    condition('Ready', 'True', 'Succeeded', '32 ETH are deposited, and the validator is active.', time),
    condition('Created', 'True', 'Succeeded', 'The staking API has the stake.', time),
  ]

  create(
    ethereumStake,
    'validator-017',
    'treasury-team',
    stakeSpec(),
    {
      phase: 'Slashed',
      conditions: [
        ...stalled(
          'ValidatorSlashed',
          'The validator was slashed. It leaves by itself, and its balance goes to the withdrawal address.',
          '09:12:00',
        ),
        condition(
          'Slashed',
          'True',
          'ValidatorSlashed',
          'The validator was slashed. It leaves by itself, and its balance goes to the withdrawal address.',
          '09:12:00',
        ),
      ],
    },
    '01:00:00',
  )
  create(
    ethereumStake,
    'validator-041',
    'growth',
    { ...stakeSpec(), signer: 'tresury' },
    {
      phase: 'Stalled',
      conditions: stalled('SignerNotFound', 'There is no StakingSigner tresury. Create it, or correct spec.signer.', '11:40:00'),
    },
    '11:39:30',
  )
  create(
    ethereumStake,
    'validator-040',
    'growth',
    stakeSpec(),
    {
      phase: 'Created',
      stakeId: '0192f6b2-8f2b',
      conditions: waiting(
        'InsufficientFunds',
        'The signer treasury has 21.4 ETH; 32.003 ETH are needed for this transaction. Fund 0xf39F…2266.',
        '11:20:00',
      ),
    },
    '11:18:00',
  )
  const stake = create(
    ethereumStake,
    'validator-039',
    'treasury-team',
    stakeSpec(),
    {
      phase: 'Broadcast',
      stakeId: '0192f6b2-7c11',
      depositData: { pubkey: hex(48, '8a3f') },
      conditions: [
        ...waiting('AwaitingFinality', 'The deposit of 32 ETH was sent with nonce 1204; its block is not final yet.', '11:31:00'),
        condition('Created', 'True', 'Succeeded', 'The staking API has the stake 0192f6b2-7c11.', '11:30:10'),
        condition('Verified', 'True', 'Succeeded', 'The deposit data is what the spec asks for.', '11:30:12'),
        condition('Broadcast', 'True', 'Succeeded', 'The deposit was sent.', '11:31:00'),
        condition('Confirmed', 'False', 'AwaitingFinality', 'Its block is not final yet.', '11:31:00'),
      ],
    },
    '11:30:00',
  )
  create(
    ethereumStake,
    'hostile',
    'growth',
    stakeSpec(),
    { phase: 'Created', conditions: stalled('VerificationFailed', HOSTILE, '11:00:00') },
    '10:59:00',
  )
  for (let n = 101; n <= 160; n++)
    create(
      ethereumStake,
      `validator-${n}`,
      n % 3 === 0 ? 'growth' : 'treasury-team',
      stakeSpec(n % 5 === 0 ? 'hoodi' : 'mainnet'),
      { phase: 'Active', conditions: done('08:00:00') },
      '07:30:00',
    )
  create(ethereumStake, 'validator-044', 'growth', stakeSpec(), undefined, '11:59:58')
  create(
    validatorExit,
    'leave-003',
    'treasury-team',
    { validator: { stakeRef: { name: 'validator-103' } }, signer: 'treasury', suspend: true },
    {
      phase: 'Suspended',
      network: 'mainnet',
      validator: { network: 'mainnet', pubkey: hex(48, 'b1') },
      conditions: waiting('Suspended', 'spec.suspend is true: nothing is created, signed or sent.', '10:10:00'),
    },
    '10:09:00',
  )
  create(
    validatorWithdrawal,
    'rewards-q4',
    'treasury-team',
    { validator: { stakeRef: { name: 'validator-102' } }, signer: 'treasury', amountEth: '1.25' },
    {
      phase: 'Broadcast',
      network: 'mainnet',
      validator: { network: 'mainnet', pubkey: hex(48, 'b2') },
      conditions: waiting(
        'AwaitingConsensus',
        `The request for validator ${hex(48, 'b1')} is final; the consensus layer has not decided on it yet.`,
        '11:50:00',
      ),
    },
    '11:45:00',
  )
  create(
    solanaStake,
    'sol-1',
    'solana',
    {
      network: 'mainnet-beta',
      amountLamports: '2500000000000',
      desiredState: 'Active',
      stakeAuthority: { signer: 'sol-hot' },
      withdrawAuthority: { signer: 'sol-cold' },
    },
    { phase: 'Active', amountSol: '2500', activeSol: '2499.99', conditions: done('06:00:00') },
    '05:00:00',
  )
  const shown = {
    network: 'mainnet',
    nextNonce: 1206,
    open: 3,
    waiting: 1,
    balanceWei: '21400000000000000000',
    neededWei: '96009000000000000000',
  }
  create(
    stakingSigner,
    'treasury',
    '',
    { chain: 'Ethereum', keyName: 'treasury', address: TREASURY, policy: { maxPerTransaction: '32' } },
    {
      balance: '21.4 ETH on mainnet',
      balanceReadAt: at('11:59:20'),
      lanes: [shown],
      conditions: [
        condition('Ready', 'True', 'Succeeded', 'It can be used by the namespaces that its policy admits.', '01:00:00'),
        condition('Funded', 'False', 'InsufficientFunds', 'It has 21.4 ETH on mainnet; 96.009 ETH wait to be paid.', '11:20:00'),
      ],
    },
    '00:10:00',
  )
  create(
    stakingSigner,
    'sol-hot',
    '',
    {
      chain: 'Solana',
      keyName: 'sol-hot',
      address: '7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU',
      policy: { maxPerTransaction: '5000000000000' },
    },
    {
      balance: '3120.5 SOL on mainnet-beta',
      balanceReadAt: at('11:59:00'),
      lanes: [{ network: 'mainnet-beta', open: 0, waiting: 0, balanceLamports: '3120500000000' }],
      conditions: [condition('Ready', 'True', 'Succeeded', 'It can be used.', '01:00:00')],
    },
    '00:10:00',
  )
  create(
    stakingTransaction,
    'deposit-1-8a3f8a3f8a3f-0c1d',
    '',
    record('validator-039', 'treasury-team', 'Deposit', '8a3f'),
    { state: 'Open', place: 1204, attempts: [attempt('5c1e', 1204, '11:30:30', '18'), attempt('9d02', 1204, '11:36:30', '24')] },
    '11:30:20',
  )
  create(
    stakingTransaction,
    'withdrawal-1-rewards-q4-77aa',
    '',
    record('rewards-q4', 'treasury-team', 'Withdrawal', 'b2', '1.25 ETH'),
    { state: 'Open', place: 1203, attempts: [attempt('77aa', 1203, '11:46:00', '17')] },
    '11:45:30',
  )
  create(
    stakingTransaction,
    'deposit-1-91c0-f00d',
    '',
    record('validator-038', 'growth', 'Deposit', '91c0'),
    { state: 'Open', place: 1205, attempts: [attempt('abcd', 1205, '11:37:00', '18'), attempt('dcba', 1205, '11:52:00', '30', 'Cancel')] },
    '11:36:50',
  )
  create(
    stakingTransaction,
    'deposit-1-4444-beef',
    '',
    record('validator-040', 'growth', 'Deposit', '4444'),
    { state: 'Waiting' },
    '11:19:00',
  )
  clock.setBack(24 * 60_000)
  events.event(stake, {
    type: 'Warning',
    reason: 'FeeTooHigh',
    action: 'Transaction',
    note: 'Gas costs 26 gwei; the cap of the signer treasury allows 25.',
  })
  clock.setBack(-24 * 60_000)
  clock.advance(2_000)
  return { page: createPage({ views, clock: systemClock, onFailure: (error) => void failures.push(error) }), failures }
}
