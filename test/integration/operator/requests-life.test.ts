import { beforeAll, describe, expect, test } from 'vitest'
import { findCondition } from '../../../src/resources/conditions.ts'
import { pageCommands } from '../../cluster/page-commands.ts'
import {
  applyAll,
  eventsOf,
  eventually,
  getOne,
  getSigner,
  namespace,
  ownStake,
  SIGNER,
  seen,
  signer,
  stake,
  untilReady,
  untilSeen,
  validatorExit,
  validatorWithdrawal,
} from '../../stack/resources.ts'
import { patch, patchStake, staysFor } from './harness.ts'
import {
  byKey,
  deleteRequest,
  ETH,
  holdBlocks,
  ONE_WEI,
  OVER_ONE_WEI,
  requestsOf,
  serviceRequest,
  untilAccepted,
  untilGone,
  untilShows,
  untilStalls,
  untilWaits,
  useRequestsWorld,
  whileNothingIsAsked,
  YOUNG_EPOCHS,
} from './requests-world.ts'

/** From a stake that isn't there yet to a validator that is gone; several requests for one validator, one after another. */
const world = useRequestsWorld()

beforeAll(async () => {
  const { cluster } = world()
  await applyAll(cluster, [
    namespace('team-a'),
    namespace('team-b'),
    signer({ policy: { allowedNamespaces: { names: ['default', 'team-a', 'team-b'] } } }),
  ])
  await eventually(
    'the signer is ready',
    () => getSigner(cluster, SIGNER),
    (value) => seen(value).ready === 'True',
  )
})

describe('an exit by the name of a stake', () => {
  test('waits for the stake, its deposit, its activation and its age, goes through, and the stake shows it', async () => {
    const { cluster, beacon } = world()
    const exit = validatorExit('leave', { stakeRef: { name: 'one' } })
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, [exit])
      await untilWaits(
        world(),
        'validatorexits',
        'leave',
        'WaitingForStake',
        /There is no EthereumStake one in namespace default\. It goes on when there is/,
      )
      await applyAll(cluster, [ownStake('one', { suspend: true })])
      await untilWaits(
        world(),
        'validatorexits',
        'leave',
        'WaitingForStake',
        /deposit of EthereumStake one is not final yet \(it is Suspended\)/,
      )
    })
    await applyAll(cluster, [
      stake('foreign'),
      validatorExit('leave-foreign', { stakeRef: { name: 'foreign' } }),
      validatorWithdrawal('of-another-namespace', { stakeRef: { name: 'one' } }, String(ETH), {}, { namespace: 'team-a' }),
    ])
    await patchStake(cluster, 'one', { spec: { suspend: false } })
    const one = await untilReady(cluster, 'one')
    // It is active half a minute later.
    await untilWaits(
      world(),
      'validatorexits',
      'leave',
      'ValidatorNotActive',
      /validator of EthereumStake one is not active yet.*It goes on by itself/,
    )
    const foreign = await untilReady(cluster, 'foreign')
    const keyOf = ({ status }: typeof one) => (status?.depositData?.pubkey ?? '0x') as `0x${string}`

    await whileNothingIsAsked(world(), async () => {
      for (const each of [one, foreign]) await beacon.advanceUntil(keyOf(each), ['active_ongoing'])
      await untilWaits(world(), 'validatorexits', 'leave', 'ValidatorTooYoung', /it may from epoch \d+ on\. It goes on by itself/)
      await untilStalls(
        world(),
        'validatorexits',
        'leave-foreign',
        'SignerNotWithdrawalAddress',
        /only the validator's withdrawal address 0x70997970\w+ may ask for this\. Nothing was signed/,
      )
      await untilWaits(
        world(),
        'validatorwithdrawals',
        'of-another-namespace',
        'WaitingForStake',
        /There is no EthereumStake one in namespace team-a/,
        { space: 'team-a' },
      )
    })
    await beacon.advanceEpochs(YOUNG_EPOCHS)
    await untilAccepted(world(), 'validatorexits', 'leave')
    expect(await requestsOf(world(), keyOf(one))).toEqual(['exit'])

    const activeOf = (resource: typeof one) => findCondition(resource.status?.conditions, 'Active')
    const leaving = await untilSeen(cluster, 'ethereumstakes', 'one', 'is exiting', ({ phase }) => phase === 'Exiting')
    expect(activeOf(leaving)).toMatchObject({ reason: 'Exiting', message: expect.stringMatching(/exiting|exited/) })
    await beacon.advanceUntil(keyOf(one), ['withdrawal_done'])
    const gone = await untilSeen(cluster, 'ethereumstakes', 'one', 'has exited', ({ phase }) => phase === 'Exited')
    expect(activeOf(gone)).toMatchObject({ status: 'False', reason: 'ValidatorDone' })
    // The exit itself stays as it ended.
    expect(seen(await getOne(cluster, 'validatorexits', 'leave'))).toMatchObject({ ready: 'True', phase: 'Accepted' })
    const page = await pageCommands(
      cluster,
      { page: 'docs/how-to/exit-and-withdraw.md', placeholders: { 'validator-1': 'leave', 'team-a': 'default' } },
      AbortSignal.timeout(60_000),
    )
    try {
      expect(await page.run('Exit', 2)).toMatch(/ Exit .* leave .* Landed /)
      await page.run('Exit', 1)
    } finally {
      page.stop()
    }
    await untilGone(world(), 'validatorexits', 'leave')
  })

  test('tells the end in one event, and kubectl shows, selects and waits', async () => {
    const { cluster } = world()
    const pubkey = world().fresh()
    await applyAll(cluster, [validatorWithdrawal('told', byKey(pubkey), String(ETH))])
    await untilAccepted(world(), 'validatorwithdrawals', 'told')
    const events = await eventually(
      'the events of the withdrawal',
      () => eventsOf(cluster, 'told'),
      (all) => all.some(({ reason }) => reason === 'Accepted'),
    )
    const told = events.map(({ type, reason }) => `${type} ${reason}`)
    expect(told).toEqual(['Normal Accepted'])
    expect(await cluster.kubectlOk(['wait', '--for=condition=Ready', 'vwd', 'told', '--timeout=60s'])).toContain('condition met')
    expect(await cluster.kubectlOk(['get', 'vwd', 'told'])).toMatch(/told +local +1 +1 +Unknown +Accepted +True +Accepted/)
  })
})

describe('several requests for one validator', () => {
  test('two withdrawals of two namespaces and an exit: one after another, the older first, and each is accepted', async () => {
    const { cluster, beacon } = world()
    const pubkey = world().fresh()
    const at = (space: string) => ({ namespace: space })
    // Nobody's own wish holds others: the oldest waits for its own fee.
    await beacon.setRequestExcess(OVER_ONE_WEI)
    await applyAll(cluster, [validatorWithdrawal('miser', byKey(pubkey), String(ETH), { maxRequestFeeGwei: ONE_WEI }, at('team-a'))])
    await untilWaits(world(), 'validatorwithdrawals', 'miser', 'RequestFeeTooHigh', /the cap is 0\.000000001 gwei/, { space: 'team-a' })
    const goOn = await holdBlocks(world())
    await applyAll(cluster, [validatorWithdrawal('first', byKey(pubkey), String(2n * ETH), {}, at('team-b'))])
    await untilWaits(world(), 'validatorwithdrawals', 'first', 'AwaitingFinality', /was sent/, { space: 'team-b' })
    // Their age is told in whole seconds, and the name decides between equals.
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, [
        validatorWithdrawal('second', byKey(pubkey), String(3n * ETH), {}, at('team-a')),
        validatorExit('third', byKey(pubkey), {}, at('team-b')),
      ])
      const busy = /ValidatorWithdrawal team-b\/first is for the same validator and its outcome is not known yet: this one comes after it/
      await untilWaits(world(), 'validatorwithdrawals', 'second', 'WaitingForValidator', busy, { space: 'team-a' })
      await untilWaits(world(), 'validatorexits', 'third', 'WaitingForValidator', /ValidatorWithdrawal team-/, { space: 'team-b' })
    })
    await goOn()
    await untilAccepted(world(), 'validatorwithdrawals', 'first', { space: 'team-b' })
    await untilAccepted(world(), 'validatorwithdrawals', 'second', { space: 'team-a' })
    await deleteRequest(world(), 'validatorwithdrawals', 'miser', 'team-a')
    await beacon.setRequestExcess(0n)
    await untilWaits(world(), 'validatorexits', 'third', 'PendingWithdrawals', /Partial withdrawals of 5 ETH in all are still to be paid/, {
      space: 'team-b',
    })
    await beacon.advanceEpochs(beacon.spec.MIN_VALIDATOR_WITHDRAWABILITY_DELAY + 4)
    await untilAccepted(world(), 'validatorexits', 'third', { space: 'team-b' })
    expect(await requestsOf(world(), pubkey)).toEqual([String(2n * ETH), String(3n * ETH), 'exit'])
    expect((await beacon.requests()).filter(({ validatorPubkey, accepted }) => validatorPubkey === pubkey && !accepted)).toEqual([])
  })

  test('two exits at once: one is made, and the other is told that the validator exits already', async () => {
    const { cluster } = world()
    const pubkey = world().fresh()
    await applyAll(cluster, [
      validatorExit('twin', byKey(pubkey), {}, { namespace: 'team-a' }),
      validatorExit('twin', byKey(pubkey), {}, { namespace: 'team-b' }),
    ])
    await untilAccepted(world(), 'validatorexits', 'twin', { space: 'team-a' })
    await untilStalls(world(), 'validatorexits', 'twin', 'AlreadyExiting', /exiting already/, { space: 'team-b' })
    expect(await requestsOf(world(), pubkey)).toEqual(['exit'])
  })
})

test('what is suspended is not made at the staking API nor sent, until it is let go; and it makes nobody wait', async () => {
  const { cluster } = world()
  const pubkey = world().fresh()
  await whileNothingIsAsked(world(), async () => {
    await applyAll(cluster, [validatorExit('asleep', byKey(pubkey), { suspend: true })])
    const asleep = await untilShows(
      world(),
      'validatorexits',
      'asleep',
      'Suspended',
      /spec\.suspend is true: nothing is created, signed or sent/,
    )
    expect(seen(asleep)).toMatchObject({ phase: 'Suspended', stalled: false })
    await staysFor(1_500, () => serviceRequest(world(), 'validatorexits', asleep, pubkey))
    expect(await serviceRequest(world(), 'validatorexits', asleep, pubkey)).toBeUndefined()
  })
  await applyAll(cluster, [validatorWithdrawal('awake', byKey(pubkey), String(ETH))])
  await untilAccepted(world(), 'validatorwithdrawals', 'awake')
  await patch(cluster, '/apis/staking.dev/v1alpha1/namespaces/default/validatorexits/asleep', { spec: { suspend: false } })
  await untilWaits(world(), 'validatorexits', 'asleep', 'PendingWithdrawals', /of 1 ETH in all/)
  const { beacon } = world()
  await beacon.advanceEpochs(beacon.spec.MIN_VALIDATOR_WITHDRAWABILITY_DELAY + 4)
  await untilAccepted(world(), 'validatorexits', 'asleep')
})

test('a withdrawal that was not sent, and whose owner has confirmed that it may be forgotten, holds up no exit', async () => {
  const { cluster, beacon } = world()
  const pubkey = world().fresh()
  await beacon.setRequestExcess(OVER_ONE_WEI)
  await applyAll(cluster, [validatorWithdrawal('let-go', byKey(pubkey), String(ETH), { maxRequestFeeGwei: ONE_WEI })])
  const waiting = await untilWaits(world(), 'validatorwithdrawals', 'let-go', 'RequestFeeTooHigh', /the cap is/)
  await cluster.kubectlOk(['annotate', 'validatorwithdrawal', 'let-go', 'staking.dev/confirm-delete=let-go'])
  await deleteRequest(world(), 'validatorwithdrawals', 'let-go')
  await untilGone(world(), 'validatorwithdrawals', 'let-go')
  expect(await serviceRequest(world(), 'validatorwithdrawals', waiting)).toMatchObject({ status: 'cancelled' })
  await beacon.setRequestExcess(0n)
  await applyAll(cluster, [validatorExit('after-it', byKey(pubkey))])
  await untilAccepted(world(), 'validatorexits', 'after-it')
  expect(await requestsOf(world(), pubkey)).toEqual(['exit'])
})
