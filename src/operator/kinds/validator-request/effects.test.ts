import { describe, expect, test } from 'vitest'
import { StakingApiError } from '../../../contract/client-error.ts'
import { gwei } from '../../../lib/amounts.ts'
import { testAddress } from '../../testing/fake-keys.ts'
import { assertNothingMoved, message, visited } from '../../testing/request-stories.ts'
import { createWorld, EXIT, GWEI, KEY, WITHDRAWAL, type World } from '../../testing/world.ts'

const upper = (hex: string) => `0x${hex.slice(2).toUpperCase()}` as const

describe('an exit and a withdrawal', () => {
  test.each([
    { key: EXIT, request: { kind: 'exit' } },
    { key: WITHDRAWAL, request: { kind: 'withdrawal', amountGwei: 1_000_000_000n } },
  ])('$request.kind: asked for once, and Ready when the consensus layer has accepted it', async ({ key, request }) => {
    const world = await visited(key)
    expect(world.ready(key), message(world, key)).toBe(true)
    expect(world.chain.requests()).toMatchObject([{ ...request, pubkey: world.validator(), valueWei: 101n }])
    expect(world.requestStatus(key)).toMatchObject({ phase: 'Accepted', consensus: { status: 'Accepted' } })
    // Nothing is left to see, and nothing is written any more.
    const { key: name } = { key: key.split(':')[1] ?? '' }
    const writes = (key === EXIT ? world.exits : world.withdrawals).statusWrites(name)
    await world.settle(world.start(), [key], 2)
    expect((key === EXIT ? world.exits : world.withdrawals).statusWrites(name)).toBe(writes)
    expect(writes).toBeLessThanOrEqual(6)
  })

  test('the public key may be written in upper case', async () => {
    const world = createWorld()
    world.addSigner()
    world.addExit(EXIT, { validator: { network: 'hoodi', pubkey: upper(world.validator()) } })
    await world.settle(world.start(), [EXIT])
    expect(world.ready(EXIT), message(world, EXIT)).toBe(true)
  })
})

describe('by reference to a stake', () => {
  const stakeRef = { validator: { stakeRef: { name: 'stake-1' } } }
  test('it waits for the stake, for its deposit, and until the validator is active, and says which', async () => {
    const world = createWorld()
    world.addSigner()
    world.addExit(EXIT, stakeRef)
    const operator = world.start()
    await world.visit(operator, EXIT)
    expect(world.condition('Ready', EXIT)).toMatchObject({ reason: 'WaitingForStake' })
    expect(message(world, EXIT)).toContain('There is no EthereumStake stake-1')

    world.addStake(KEY, { withdrawalAddress: testAddress(0) })
    await world.visit(operator, EXIT)
    expect(message(world, EXIT)).toContain('is not final yet')
    await world.settle(operator, [KEY])
    await world.visit(operator, EXIT)
    expect(world.condition('Ready', EXIT)).toMatchObject({ reason: 'ValidatorNotActive' })
    expect(world.requestStatus(EXIT).validator).toBeUndefined()

    const [stake] = world.service.stakes()
    world.service.setValidator(stake?.stakeId ?? '', 'pending_queued', 7, 50_000)
    await world.visit(operator, EXIT)
    // 1742213400 s is hoodi's genesis, 384 s an epoch.
    expect(message(world, EXIT)).toContain('active in epoch 50000 (2025-10-25T')

    world.service.setValidator(stake?.stakeId ?? '', 'active_ongoing', 7, 50_000)
    await world.settle(operator, [EXIT])
    expect(world.ready(EXIT), message(world, EXIT)).toBe(true)
    expect(world.chain.requests()).toMatchObject([{ kind: 'exit', pubkey: stake?.depositData.pubkey }])
  })

  test.each([
    { what: 'another stake', change: { stakeId: 'f'.repeat(32) }, reason: 'RequestRefused' },
    { what: 'another validator', change: { depositData: 'other' }, reason: 'VerificationFailed' },
  ])("a stake's status that somebody has forged with $what is not believed", async ({ change, reason }) => {
    const world = createWorld()
    world.addSigner()
    world.addStake(KEY, { withdrawalAddress: testAddress(0) })
    const operator = world.start()
    await world.settle(operator, [KEY])
    world.service.setValidator(world.service.stakes()[0]?.stakeId ?? '', 'active_ongoing')
    world.editStatus((status) =>
      change.depositData === undefined
        ? { ...status, ...change }
        : { ...status, depositData: { ...(status.depositData as object), pubkey: world.validator(5) } },
    )
    world.keys.signed.length = 0
    world.addExit(EXIT, stakeRef)
    await world.settle(operator, [EXIT], 3)
    expect(world.stalled(EXIT)).toBe(reason)
    expect(world.keys.signed).toEqual([])
    expect(world.requests.stored()).toEqual([])
  })

  test('a stake whose withdrawal address is not the signer: nothing is even created', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake(KEY)
    const operator = world.start()
    await world.settle(operator, [KEY])
    world.service.setValidator(world.service.stakes()[0]?.stakeId ?? '', 'active_ongoing')
    world.addExit(EXIT, stakeRef)
    await world.settle(operator, [EXIT], 3)
    expect(world.stalled(EXIT)).toBe('SignerNotWithdrawalAddress')
    expect(world.requests.stored()).toEqual([])
  })
})

describe('what nobody should ask for: nothing is signed, and it says why', () => {
  const offCurve = `0x${'ab'.repeat(48)}` as const
  test.each<{ given: string; key?: string; spec?: object; world?: (world: World) => void; reason: string; says?: string }>([
    {
      given: 'a public key that is no point of the curve',
      spec: { validator: { network: 'hoodi', pubkey: offCurve } },
      reason: 'InvalidSpec',
    },
    { given: 'a public key of 47 bytes', spec: { validator: { network: 'hoodi', pubkey: `0x${'ab'.repeat(47)}` } }, reason: 'InvalidSpec' },
    {
      given: 'stake and public key',
      spec: { validator: { stakeRef: { name: 'a' }, network: 'hoodi', pubkey: offCurve } },
      reason: 'InvalidSpec',
    },
    { given: 'no validator', spec: { validator: {} }, reason: 'InvalidSpec' },
    { given: 'an unknown network', spec: { validator: { network: 'nowhere', pubkey: offCurve } }, reason: 'UnknownNetwork' },
    { given: 'an unknown signer', spec: { signer: 'nobody' }, reason: 'SignerNotFound' },
    { given: 'a fee cap that is no number', spec: { maxRequestFeeGwei: '1e3' }, reason: 'InvalidSpec' },
    ...['0', '', '-1', '+1', '1e9', ' 1', '1.5', '18446744073709551616', '00'].map((amountGwei) => ({
      given: `the amount "${amountGwei}"`,
      key: WITHDRAWAL,
      spec: { amountGwei },
      reason: 'InvalidSpec',
    })),
    // As an older CustomResourceDefinition would leave it: it is never an exit.
    { given: 'no amount', key: WITHDRAWAL, spec: { amountGwei: undefined }, reason: 'InvalidSpec' },
    {
      given: 'a namespace that the policy does not admit',
      world: (world) => world.editPolicy({ allowedNamespaces: { names: ['team-b'] } }),
      reason: 'NamespaceNotAllowed',
    },
    { given: 'a missing key', world: (world) => world.keys.break('key-0', 'missing'), reason: 'KeyMissing' },
    {
      given: 'a signer that is not the withdrawal address',
      world: (world) => {
        world.requests.state.withdrawalAddress = testAddress(1)
      },
      reason: 'SignerNotWithdrawalAddress',
      says: testAddress(1),
    },
    {
      given: 'a chain of another id',
      world: (world) => {
        world.chain.state.wrongChain = true
      },
      reason: 'WrongChain',
    },
    {
      given: 'a contract that costs far more gas than a request',
      world: (world) => {
        world.chain.state.estimate = 5_000_000n
      },
      reason: 'VerificationFailed',
    },
    {
      given: 'transactions of the key that nobody accounts for',
      world: (world) => world.chain.mineForeign({ from: testAddress(0) }),
      reason: 'UnaccountedTransactions',
    },
    {
      given: 'a validator of another account',
      world: (world) => {
        world.requests.state.refusal = new StakingApiError('no', { kind: 'problem', code: 'not-found', status: 404, outcomeUnknown: false })
      },
      reason: 'UnknownValidator',
    },
  ])('$given: $reason', async ({ key = EXIT, spec = {}, world: prepare = () => {}, reason, says }) => {
    const world = await visited(key, prepare, spec)
    expect(world.stalled(key), message(world, key)).toBe(reason)
    if (says !== undefined) expect(message(world, key)).toContain(says)
    assertNothingMoved(world)
  })
})

describe('a rule of the consensus layer that forbids it now', () => {
  test.each<{ rules: string[]; reason: string; stalls: boolean; key?: string; pending?: bigint; available?: bigint; says: string }>([
    { rules: ['unknown-validator'], reason: 'UnknownValidator', stalls: true, says: 'unknown-validator' },
    { rules: ['credentials-not-compounding'], key: WITHDRAWAL, reason: 'ValidatorNotEligible', stalls: true, says: '0x02' },
    { rules: ['not-active', 'already-exiting'], reason: 'AlreadyExiting', stalls: true, says: 'already-exiting' },
    { rules: ['slashed', 'not-active'], reason: 'ValidatorSlashed', stalls: true, says: 'slashed' },
    {
      rules: ['amount-over-available'],
      key: WITHDRAWAL,
      reason: 'OverAvailable',
      stalls: true,
      available: 900_000_000n,
      says: '1000000000 gwei (1 ETH) are asked for, and some 0.9 ETH are available',
    },
    {
      rules: ['amount-over-available'],
      key: WITHDRAWAL,
      reason: 'OverAvailable',
      stalls: true,
      says: 'of some 8 ETH that are available, too much is promised to other withdrawals of this validator that the beacon chain does not show',
    },
    { rules: ['nothing-available'], key: WITHDRAWAL, reason: 'OverAvailable', stalls: true, says: 'the balance is some 40 ETH' },
    { rules: ['effective-balance-too-low'], key: WITHDRAWAL, reason: 'ValidatorNotEligible', stalls: true, says: 'it is 40 ETH' },
    { rules: ['not-active'], reason: 'ValidatorNotActive', stalls: false, says: 'by itself' },
    { rules: ['too-young'], reason: 'ValidatorTooYoung', stalls: false, says: 'epoch 60000 (2025-12-09T' },
    { rules: ['too-young', 'amount-over-available'], key: WITHDRAWAL, reason: 'ValidatorTooYoung', stalls: false, says: 'epoch 60000' },
    { rules: ['pending-withdrawals'], reason: 'PendingWithdrawals', stalls: false, says: '2 ETH in all' },
    // Of those that were promised and not sent yet, the beacon chain shows nothing.
    { rules: ['pending-withdrawals'], pending: 0n, reason: 'PendingWithdrawals', stalls: false, says: 'does not show yet' },
    { rules: ['withdrawal-queue-full'], key: WITHDRAWAL, reason: 'PendingWithdrawals', stalls: false, says: 'full' },
  ])(
    '$rules: $reason, and it goes on when that has passed',
    async ({ rules, reason, stalls, key = EXIT, pending = 2n, available = 8n * GWEI, says }) => {
      let passed = false
      const world = await visited(key, (before) => {
        before.requests.state.broken = () => (passed ? [] : rules)
        before.requests.state.capacity = {
          earliestEligibleEpoch: 60_000,
          pendingWithdrawalsGwei: gwei(pending * GWEI),
          availableGwei: gwei(available),
        }
      })
      expect(world.condition('Ready', key)).toMatchObject({ reason })
      expect(world.stalled(key)).toBe(stalls ? reason : '')
      expect(message(world, key)).toContain(says)
      assertNothingMoved(world)
      passed = true
      await world.settle(world.start(), [key])
      expect(world.ready(key), message(world, key)).toBe(true)
    },
  )

  test.each(['chain-unavailable', 'rate-limited'] as const)('the staking API says %s: that is waited for', async (code) => {
    const world = await visited(EXIT, (before) => {
      before.requests.state.refusal = new StakingApiError('no', {
        kind: 'problem',
        code,
        status: 503,
        retryAfterMs: 3_000,
        outcomeUnknown: false,
      })
    })
    expect(world.condition('Ready', EXIT)).toMatchObject({ reason: 'ServiceUnavailable' })
    expect(world.stalled(EXIT)).toBe('')
  })
})

describe('the contract’s fee', () => {
  test('above the cap, it waits and says the numbers; when the fee falls, it goes on', async () => {
    const world = await visited(EXIT, (before) => {
      before.chain.state.requestFee = 2_000_000n * GWEI
    })
    expect(world.condition('Ready', EXIT)).toMatchObject({ reason: 'RequestFeeTooHigh' })
    expect(message(world, EXIT)).toContain('asks for more than 1000000 gwei')
    expect(message(world, EXIT)).toContain('the cap is 1000000 gwei')
    assertNothingMoved(world)
    world.chain.state.requestFee = 900_000n * GWEI
    await world.settle(world.start(), [EXIT])
    // A quarter of headroom would be above the cap.
    expect(world.chain.requests()).toMatchObject([{ valueWei: 1_000_000n * GWEI }])
  })

  test('the lower of two caps counts, and one that is raised lets it go', async () => {
    const world = await visited(
      EXIT,
      (before) => {
        before.chain.state.requestFee = 500n
      },
      { maxRequestFeeGwei: '0.0000001' },
    )
    expect(message(world, EXIT)).toContain('the cap is 0.0000001 gwei')
    world.editRequest(EXIT, (exit) => ({ ...exit, spec: { ...exit.spec, maxRequestFeeGwei: '1' } }))
    await world.settle(world.start(), [EXIT])
    expect(world.chain.requests()).toMatchObject([{ valueWei: 625n }])
  })

  test('risen between the signature and the broadcast: another version under the same nonce carries more, and the first is never sent', async () => {
    const world = createWorld()
    world.addSigner()
    world.addExit()
    const operator = world.start((point) => {
      if (point === 'after transactions.mergePatch' && world.keys.signed.length === 1) world.chain.state.requestFee = 1_000n
    })
    await world.settle(operator, [EXIT])
    expect(world.chain.everSent()).toMatchObject([{ nonce: 0, valueWei: 1_250n }])
    expect(world.requestStatus(EXIT).transaction).toMatchObject({ valueWei: '1250', replaced: [{ nonce: 0 }] })
    expect(world.ready(EXIT)).toBe(true)
  })

  test('risen while it waits in the pool: it is replaced under its nonce, or waits where the cap is in the way', async () => {
    const world = createWorld()
    world.addSigner()
    world.addExit()
    const operator = world.start()
    await world.visit(operator, EXIT)
    expect(world.chain.pool()).toMatchObject([{ nonce: 0, valueWei: 101n }])
    world.chain.state.requestFee = 10n ** 17n
    await world.visit(operator, EXIT)
    expect(world.condition('Ready', EXIT)).toMatchObject({ reason: 'RequestFeeTooHigh' })
    world.chain.state.requestFee = 1_000n
    // One bump a poll, whoever asks for it.
    world.clock.advance(12_000)
    await world.visit(operator, EXIT)
    expect(world.chain.pool()).toMatchObject([{ nonce: 0, valueWei: 1_250n }])
    await world.settle(operator, [EXIT])
    expect(world.chain.requests()).toHaveLength(1)
  })

  test('risen in the very block that has it: it is reverted, no request was made, and it is made again with what the fee is now', async () => {
    const world = createWorld()
    world.addSigner()
    world.addExit()
    const operator = world.start()
    await world.visit(operator, EXIT)
    world.chain.state.requestFee = 1_000n
    world.chain.mine(4)
    await world.settle(operator, [EXIT])
    expect(world.ready(EXIT), message(world, EXIT)).toBe(true)
    expect(world.record(EXIT)?.status).toMatchObject({ closed: [{ nonce: 0, by: 'Revert' }], outcome: { is: 'Landed', nonce: 1 } })
    expect(world.chain.requests()).toMatchObject([{ nonce: 1, valueWei: 1_250n }])
    expect(world.chain.violations).toEqual([])
  })

  test('risen in each block that has it: the third time it waits for a person, and no request was made', async () => {
    const world = createWorld()
    world.addSigner()
    world.addExit()
    const operator = world.start()
    for (let fee = 1_000n; fee <= 10_000_000n; fee *= 10n) {
      await world.visit(operator, EXIT)
      world.chain.state.requestFee = fee
      world.chain.mine(4)
      world.clock.advance(12_000)
    }
    await world.visit(operator, EXIT)
    expect(world.stalled(EXIT), message(world, EXIT)).toBe('RemadeTooOften')
    expect(world.record(EXIT)?.status?.closed).toHaveLength(3)
    expect(world.chain.requests()).toEqual([])
  })
})

describe('what the consensus layer makes of it', () => {
  test('mined is not accepted: it waits for the decision', async () => {
    const world = await visited(EXIT, (before) => {
      before.requests.state.consensus = () => ({ status: 'pending' })
    })
    expect(world.condition('Confirmed', EXIT)).toMatchObject({ status: 'True' })
    expect(world.condition('Accepted', EXIT)).toMatchObject({ status: 'Unknown', reason: 'AwaitingConsensus' })
    expect(world.ready(EXIT)).toBe(false)
  })
  test('dropped: it needs a person, and says by which rule in its own words', async () => {
    const world = await visited(WITHDRAWAL, (before) => {
      before.requests.state.consensus = () => ({ status: 'dropped', reason: 'too-young: <b>call us at 555</b>; made-up-rule: x' })
    })
    expect(world.stalled(WITHDRAWAL)).toBe('RequestDropped')
    expect(world.requestStatus(WITHDRAWAL)).toMatchObject({ phase: 'Dropped', consensus: { status: 'Dropped', rules: ['too-young'] } })
    expect(JSON.stringify(world.requestStatus(WITHDRAWAL))).not.toContain('call us')
    expect(message(world, WITHDRAWAL)).toContain('(too-young)')
  })
  test.each<{ key?: string; reason: string | undefined; what: string }>([
    { reason: undefined, what: 'nothing' },
    { reason: 'some-later-rule: whatever', what: 'a rule of a later version' },
    { reason: 'the validator is not exiting in epoch 7', what: 'words alone' },
    { key: WITHDRAWAL, reason: 'amount-over-available: 3 gwei are asked for', what: 'what is cut, and never dropped' },
    { key: WITHDRAWAL, reason: 'pending-withdrawals: 2 are to be paid', what: 'what keeps only an exit from being taken' },
    { reason: 'withdrawal-queue-full: it is; nothing-available: 0', what: 'what keeps only a withdrawal from being taken' },
  ])('dropped without a rule ($what) is not believed: it waits, and nobody is told to ask again', async ({ key = EXIT, reason }) => {
    const world = await visited(key, (before) => {
      before.requests.state.consensus = () => ({ status: 'dropped', ...(reason === undefined ? {} : { reason }) })
    })
    expect(world.requestStatus(key).consensus).toBeUndefined()
    expect(world.condition('Accepted', key)).toMatchObject({ status: 'Unknown', reason: 'AwaitingConsensus' })
    expect(message(world, key)).not.toContain('create another resource')
  })
  test('an exit with queued top-ups says what is queued, and when it comes back', async () => {
    const world = await visited(EXIT, (before) => {
      before.requests.state.lie = (body) => ({ ...body, queuedDeposits: { amountGwei: gwei(5_000_000_000n), creditedAfterEpoch: 1_261 } })
    })
    expect(world.requestStatus(EXIT).consensus?.queuedDeposits).toEqual({ amountEth: '5', creditedAfterEpoch: 1_261 })
    expect(message(world, EXIT)).toContain('Deposits of 5 ETH for it are still queued: they are credited after epoch 1261')
  })
  test('a service that does not see the transaction is told of it until it does', async () => {
    const world = await visited(WITHDRAWAL, (before) => {
      before.requests.state.blind = true
    })
    expect(world.requestStatus(WITHDRAWAL).transaction?.reportedHash).toBeUndefined()
    world.requests.state.blind = false
    await world.settle(world.start(), [WITHDRAWAL])
    expect(world.ready(WITHDRAWAL), message(world, WITHDRAWAL)).toBe(true)
  })
})

describe('a request that the staking API forgets before anything of it is signed', () => {
  const rows = [EXIT, WITHDRAWAL].flatMap((key) =>
    ['before transactions.create', 'after transactions.create', 'before chain.estimateGas', 'before nonces.create'].map((at) => ({
      key,
      at,
    })),
  )
  test.each(rows)('$key, $at: it is made again under its own key, and asked for once, without a person', async ({ key, at }) => {
    const world = createWorld()
    world.addSigner()
    if (key === EXIT) world.addExit()
    else world.addWithdrawal()
    await world.visit(
      world.start((point, operator) => {
        if (point === at) operator.kill()
      }),
      key,
    )
    expect(world.requests.stored()).toHaveLength(1)
    world.requests.forget()
    await world.settle(world.start(), [key])
    expect(world.ready(key), message(world, key)).toBe(true)
    expect(world.requests.stored()).toHaveLength(1)
    expect(world.chain.requests()).toHaveLength(1)
  })
})

describe('a request of this name that the staking API has from before', () => {
  async function vanished(when: (world: World) => Promise<void>): Promise<World> {
    const world = createWorld()
    world.addSigner()
    world.addWithdrawal()
    await when(world)
    world.withdrawals.vanish('team-a/withdrawal-1')
    world.addWithdrawal()
    await world.settle(world.start(), [WITHDRAWAL])
    return world
  }
  test('never sent: it is taken over', async () => {
    const world = await vanished(async (before) => {
      await before.visit(
        before.start((point, operator) => {
          if (point === 'before chain.estimateGas') operator.kill()
        }),
        WITHDRAWAL,
      )
    })
    expect(world.ready(WITHDRAWAL), message(world, WITHDRAWAL)).toBe(true)
    expect(world.requests.stored()).toHaveLength(1)
    expect(world.chain.requests()).toHaveLength(1)
  })
  test('sent and reported: nothing is asked again', async () => {
    const world = await vanished((before) => before.settle(before.start(), [WITHDRAWAL]))
    expect(world.stalled(WITHDRAWAL)).toBe('AlreadyRequested')
    expect(message(world, WITHDRAWAL)).toContain('another name')
    expect(world.chain.requests()).toHaveLength(1)
  })
  test('sent, and reported to a staking API that has lost its database: the log knows, and nothing is asked again', async () => {
    const world = await vanished(async (before) => {
      await before.settle(before.start(), [WITHDRAWAL])
      before.requests.forget()
    })
    expect(world.stalled(WITHDRAWAL)).toBe('AlreadyRequested')
    expect(message(world, WITHDRAWAL)).toContain('another name')
    expect(world.chain.requests()).toHaveLength(1)
  })
  test.each([false, true])(
    'written down, and perhaps sent (%s): it waits until that is proven to have come to nothing, or has landed',
    async (lands) => {
      const world = createWorld()
      world.addSigner()
      world.addWithdrawal()
      await world.visit(
        world.start((point, operator) => {
          if (point === (lands ? 'after chain.send' : 'before chain.send')) operator.kill()
        }),
        WITHDRAWAL,
      )
      world.withdrawals.vanish('team-a/withdrawal-1')
      world.addWithdrawal()
      const operator = world.start()
      await world.visit(operator, WITHDRAWAL)
      expect(world.stalled(WITHDRAWAL)).toBe('AlreadyRequested')
      if (lands) world.chain.mine(1, (versions) => versions.find(({ data }) => data !== '0x'))
      await world.settle(operator, [WITHDRAWAL])
      expect(world.chain.violations).toEqual([])
      expect(world.chain.requests()).toHaveLength(1)
      if (lands) expect(world.stalled(WITHDRAWAL)).toBe('AlreadyRequested')
      else expect(world.ready(WITHDRAWAL), message(world, WITHDRAWAL)).toBe(true)
    },
  )
  test('for another amount: nothing is asked', async () => {
    const world = createWorld()
    world.addSigner()
    world.addWithdrawal()
    await world.visit(
      world.start((point, operator) => {
        if (point === 'before chain.estimateGas') operator.kill()
      }),
      WITHDRAWAL,
    )
    world.withdrawals.vanish('team-a/withdrawal-1')
    world.addWithdrawal(WITHDRAWAL, { amountGwei: '7' })
    await world.settle(world.start(), [WITHDRAWAL])
    expect(world.stalled(WITHDRAWAL)).toBe('AlreadyRequested')
    assertNothingMoved(world)
  })
  test('cancelled by somebody: it stalls and says so', async () => {
    const world = createWorld()
    world.addSigner()
    world.addExit()
    world.chain.state.requestFee = 10n ** 18n
    const operator = world.start()
    await world.visit(operator, EXIT)
    world.requests.cancel(world.requestStatus(EXIT).requestId ?? '')
    world.chain.state.requestFee = 1n
    await world.visit(operator, EXIT)
    expect(world.stalled(EXIT)).toBe('RequestCancelled')
    assertNothingMoved(world)
  })
})

describe('suspended', () => {
  test('before it is made: nothing is created or signed, and it goes on when that is over', async () => {
    const world = await visited(EXIT, undefined, { suspend: true })
    expect(world.condition('Ready', EXIT)).toMatchObject({ reason: 'Suspended' })
    expect(world.requests.stored()).toEqual([])
    world.editRequest(EXIT, (exit) => ({ ...exit, spec: { ...exit.spec, suspend: false } }))
    await world.settle(world.start(), [EXIT])
    expect(world.ready(EXIT)).toBe(true)
  })
  test('after it was sent: it is followed to what the consensus layer makes of it, and nothing is signed', async () => {
    const world = createWorld()
    world.addSigner()
    world.addExit()
    const operator = world.start()
    await world.visit(operator, EXIT)
    world.editRequest(EXIT, (exit) => ({ ...exit, spec: { ...exit.spec, suspend: true } }))
    world.keys.signed.length = 0
    await world.settle(operator, [EXIT])
    expect(world.ready(EXIT), message(world, EXIT)).toBe(true)
    expect(world.keys.signed).toEqual([])
  })
})

test('a staking API that is away keeps nothing from being sent again that the node has forgotten', async () => {
  const world = createWorld()
  world.addSigner()
  world.addExit()
  let isAway = false
  const operator = world.start((point) => {
    if (isAway && point.includes('requests.')) throw new StakingApiError('down', { kind: 'network', outcomeUnknown: true })
  })
  await world.visit(operator, EXIT)
  world.chain.forget()
  isAway = true
  await world.visit(operator, EXIT)
  expect(world.chain.pool()).toHaveLength(1)
  // One that has told it nothing yet tells it first.
  world.chain.forget()
  const other = world.start((point) => {
    if (point.includes('requests.')) throw new StakingApiError('down', { kind: 'network', outcomeUnknown: true })
  })
  await world.visit(other, EXIT)
  expect(world.chain.pool()).toEqual([])
  expect(world.condition('Ready', EXIT)).toMatchObject({ reason: 'ServiceUnavailable' })
  await world.settle(world.start(), [EXIT])
  expect(world.chain.requests()).toHaveLength(1)
})

describe('a cluster that is rebuilt from Git', () => {
  async function rebuilt(forget: (world: World) => void): Promise<World> {
    const world = createWorld()
    world.addSigner()
    world.addWithdrawal()
    await world.settle(world.start(), [WITHDRAWAL])
    world.withdrawals.vanish('team-a/withdrawal-1')
    world.signers.vanish('signer-1')
    world.loseLog()
    forget(world)
    world.addSigner()
    world.addWithdrawal()
    await world.settle(world.start(), [WITHDRAWAL])
    return world
  }
  test('asks for nothing twice: the staking API knows', async () => {
    const world = await rebuilt(() => {})
    expect(world.stalled(WITHDRAWAL)).toBe('AlreadyRequested')
    expect(world.chain.requests()).toHaveLength(1)
  })
  test.each([
    { blocks: 0, reason: 'UnknownSubmission' },
    { blocks: 20, reason: 'UnaccountedTransactions' },
  ])('nor with a staking API that has lost its database, $blocks blocks later: the chain knows', async ({ blocks, reason }) => {
    const world = await rebuilt((before) => {
      before.requests.forget()
      before.chain.mine(blocks)
    })
    expect(world.stalled(WITHDRAWAL)).toBe(reason)
    expect(world.chain.requests()).toHaveLength(1)
  })
})

describe('what is paid of an accepted withdrawal', () => {
  const payment = (status: 'waiting' | 'paid' | 'void' | 'unknown', more: object = {}) => ({
    status: 'accepted' as const,
    payment: { status, amountGwei: gwei(600_000_000n), withdrawableEpoch: 1_300, ...more },
  })
  /** Accepted, and cut to 0.6 ETH of the 1 ETH asked for. */
  async function accepted() {
    const world = await visited(WITHDRAWAL, (before) => {
      before.requests.state.consensus = () => payment('waiting')
    })
    const operator = world.start()
    // An operator that has just begun looks at what is settled at a moment of its choice.
    await world.visit(operator, WITHDRAWAL)
    const becomes = async (next: ReturnType<typeof payment>): Promise<void> => {
      world.requests.state.consensus = () => next
      world.clock.advance(3_600_000)
      await world.settle(operator, [WITHDRAWAL])
    }
    return { world, becomes }
  }

  test('is said when it is accepted: less than was asked for', async () => {
    const { world } = await accepted()
    expect(world.requestStatus(WITHDRAWAL)).toMatchObject({
      phase: 'Accepted',
      consensus: { status: 'Accepted', payment: { state: 'Waiting', amountEth: '0.6', withdrawableEpoch: 1_300 } },
    })
    expect(message(world, WITHDRAWAL)).toContain('It pays 0.6 ETH of that, as no more was available')
    expect(world.condition('Paid', WITHDRAWAL)).toMatchObject({ status: 'Unknown', reason: 'AwaitingPayment' })
    expect(world.ready(WITHDRAWAL)).toBe(true)
  })
  test('is looked for until it is paid, and told', async () => {
    const { world, becomes } = await accepted()
    await becomes(payment('paid', { blockNumber: 77 }))
    expect(world.condition('Paid', WITHDRAWAL)).toMatchObject({
      status: 'True',
      reason: 'Paid',
      message: expect.stringContaining('0.6 ETH were paid to the withdrawal address in block 77'),
    })
    expect(world.requestStatus(WITHDRAWAL).phase).toBe('Paid')
    // What an event says of it is how things stand now, not what was to come.
    expect(message(world, WITHDRAWAL)).toMatch(
      /^0\.6 ETH were paid to the withdrawal address in block 77, for a withdrawal of [0-9.]+ ETH of validator 0x/,
    )
    // Then nothing is asked any more.
    await becomes(payment('void'))
    expect(world.condition('Paid', WITHDRAWAL)).toMatchObject({ status: 'True' })
  })
  test('is nothing when the validator is slashed or exits before its turn: it is not ready any more, and a person is told', async () => {
    const { world, becomes } = await accepted()
    await becomes(payment('void', { reason: 'the words of the service' }))
    expect(world.condition('Paid', WITHDRAWAL)).toMatchObject({ status: 'False', reason: 'PaymentVoid' })
    expect(world.ready(WITHDRAWAL)).toBe(false)
    expect(world.stalled(WITHDRAWAL)).toBe('PaymentVoid')
    expect(world.events.at(-1)?.text).toMatchObject({ type: 'Warning', reason: 'PaymentVoid' })
    expect(JSON.stringify(world.requestStatus(WITHDRAWAL))).not.toContain('the words of the service')
  })
  test('is not believed where it is more than was asked for', async () => {
    const more = payment('waiting', { amountGwei: gwei(1_000_000_001n) })
    const world = await visited(WITHDRAWAL, (before) => {
      before.requests.state.consensus = () => more
    })
    expect(world.stalled(WITHDRAWAL)).toBe('VerificationFailed')
    expect(world.ready(WITHDRAWAL)).toBe(false)
    const { world: other, becomes } = await accepted()
    await becomes(payment('paid', { amountGwei: gwei(1_000_000_001n), blockNumber: 77 }))
    expect(other.requestStatus(WITHDRAWAL).consensus?.payment).toMatchObject({ state: 'Waiting', amountEth: '0.6' })
  })
  test('may be known by nobody any more, and is said to be', async () => {
    const { world, becomes } = await accepted()
    await becomes(payment('unknown'))
    expect(world.condition('Paid', WITHDRAWAL)).toMatchObject({ status: 'Unknown', reason: 'PaymentUnknown' })
    expect(world.ready(WITHDRAWAL)).toBe(true)
  })
})

describe('what was decided', () => {
  const HOURS = 7 * 3_600_000

  test.each([EXIT, WITHDRAWAL])('of %s is looked at again: its block is gone, and it is followed and asked for anew, once', async (key) => {
    const world = createWorld()
    world.addSigner()
    if (key === EXIT) world.addExit()
    else world.addWithdrawal()
    const operator = world.start()
    await world.settle(operator, [key], 20)
    expect(world.ready(key), message(world, key)).toBe(true)
    world.chain.reorg(Number(world.chain.height()), false)
    world.chain.mine(4, () => undefined)
    world.clock.advance(HOURS)
    await world.visit(operator, key)
    expect(world.ready(key)).toBe(false)
    await world.settle(operator, [key], 20)
    expect(world.ready(key), message(world, key)).toBe(true)
    expect(world.chain.requests()).toHaveLength(1)
    expect(world.chain.violations).toEqual([])
  })

  test('is what the staking API says of it, also when that changes', async () => {
    const world = createWorld()
    world.addSigner()
    world.addExit()
    const operator = world.start()
    await world.settle(operator, [EXIT], 20)
    expect(world.ready(EXIT)).toBe(true)
    world.requests.state.consensus = () => ({ status: 'dropped', reason: 'too-young: …' })
    world.clock.advance(HOURS)
    await world.visit(operator, EXIT)
    expect(world.ready(EXIT)).toBe(false)
    expect(world.stalled(EXIT)).toBe('RequestDropped')
  })
})
