import { describe, expect, test } from 'vitest'
import { ChainError, type ChainErrorCode } from '../../../chains/ethereum/chain.ts'
import { testAddress } from '../../testing/fake-keys.ts'
import { createWorld, ETH, GWEI, KEY, type World } from '../../testing/world.ts'

const second = 'team-a/stake-2'
const third = 'team-a/stake-3'
function withStake(options: Parameters<typeof createWorld>[0] = {}, policy: object = {}) {
  const world = createWorld(options)
  world.addSigner('signer-1', {}, policy)
  world.addStake()
  return { world, operator: world.start() }
}
const transaction = (world: World, key = KEY) => world.status(key).transaction
const hold = () => undefined

describe('fees', () => {
  test('a transaction that has become too cheap is replaced under its nonce, at least an eighth dearer, written down before it is sent', async () => {
    const { world, operator } = withStake({ bumpAfterMs: 60_000 })
    await world.visit(operator)
    const first = transaction(world)
    world.chain.state.baseFee = 40n * GWEI
    world.clock.advance(61_000)
    await world.visit(operator)
    const now = transaction(world)
    expect(now).toMatchObject({ nonce: 0, state: 'Broadcast' })
    expect(now?.hash).not.toBe(first?.hash)
    expect(now?.replaced?.map(({ hash }) => hash)).toEqual([first?.hash])
    expect(BigInt(now?.maxFeePerGasWei ?? 0) * 100n).toBeGreaterThanOrEqual(BigInt(first?.maxFeePerGasWei ?? 0) * 112n)
    expect(BigInt(now?.maxPriorityFeePerGasWei ?? 0) * 100n).toBeGreaterThanOrEqual(BigInt(first?.maxPriorityFeePerGasWei ?? 0) * 112n)
    expect(world.record()?.status?.attempts?.map(({ hash, nonce }) => ({ hash, nonce }))).toEqual([
      { hash: first?.hash, nonce: 0 },
      { hash: now?.hash, nonce: 0 },
    ])
    await world.settle(operator)
    expect(transaction(world)).toMatchObject({ state: 'Confirmed', minedHash: now?.hash })
    world.assertMoney({ deposits: 1 })
  })

  test('it is not replaced before it has waited, nor when it pays enough', async () => {
    const { world, operator } = withStake({ bumpAfterMs: 60_000 })
    await world.visit(operator)
    world.chain.state.baseFee = 40n * GWEI
    world.clock.advance(30_000)
    await world.visit(operator)
    world.chain.state.baseFee = 10n * GWEI
    world.clock.advance(100_000)
    await world.visit(operator)
    expect(world.chain.everSent()).toHaveLength(1)
  })

  test('the cheaper version may land all the same: it is the deposit', async () => {
    const { world, operator } = withStake({ bumpAfterMs: 60_000 })
    await world.visit(operator)
    const first = transaction(world)
    world.chain.state.baseFee = 40n * GWEI
    world.clock.advance(61_000)
    await world.visit(operator)
    world.chain.state.baseFee = 10n * GWEI
    world.chain.mine(1, (versions) => versions.find(({ hash }) => hash === first?.hash))
    await world.settle(operator)
    expect(transaction(world)).toMatchObject({ state: 'Confirmed', minedHash: first?.hash, reportedHash: first?.hash })
    world.assertMoney({ deposits: 1 })
  })

  test("never above the signer's cap, nor above the resource's own", async () => {
    for (const [policy, own] of [
      [{ maxFeePerGasGwei: '30' }, undefined],
      [{}, '30'],
    ] as const) {
      const world = createWorld({ bumpAfterMs: 60_000 })
      world.addSigner('signer-1', {}, policy)
      world.addStake(KEY, own === undefined ? {} : { maxFeePerGasGwei: own })
      const operator = world.start()
      await world.visit(operator)
      world.chain.state.baseFee = 60n * GWEI
      for (let count = 0; count < 6; count++) {
        world.clock.advance(61_000)
        await world.visit(operator)
      }
      expect(world.condition('Ready')?.reason).toBe('FeeTooHigh')
      for (const { maxFeePerGas } of world.chain.everSent()) expect(maxFeePerGas).toBeLessThanOrEqual(30n * GWEI)
      for (const { transaction: signed } of world.keys.signed) expect(signed.maxFeePerGas).toBeLessThanOrEqual(30n * GWEI)
      world.chain.state.baseFee = 10n * GWEI
      await world.settle(operator)
      world.assertMoney({ deposits: 1 })
    }
  })

  test('while the price is over the cap, nothing is prepared; when it falls, it goes on', async () => {
    const { world, operator } = withStake()
    world.chain.state.baseFee = 150n * GWEI
    await world.visit(operator)
    expect(world.condition('Ready')).toMatchObject({ status: 'False', reason: 'FeeTooHigh' })
    expect(world.stalled()).toBe('')
    expect(world.places.list()).toEqual([])
    world.chain.state.baseFee = 10n * GWEI
    await world.settle(operator)
    world.assertMoney({ deposits: 1 })
  })

  test('a node that says "underpriced" gets a dearer version of the same nonce, within the cap', async () => {
    const { world, operator } = withStake()
    world.chain.state.minTip = 3n * GWEI
    await world.visit(operator)
    // One a poll, whoever asks for it.
    expect(world.record()?.status?.attempts).toHaveLength(1)
    await world.settle(operator, [KEY], 20)
    expect(transaction(world)).toMatchObject({ nonce: 0, state: 'Confirmed' })
    world.assertMoney({ deposits: 1 })
    expect(world.stakes.statusWrites(KEY)).toBeLessThan(25)
  })

  test('ended right after a replacement was written down, the next operator sends it', async () => {
    const { world, operator } = withStake({ bumpAfterMs: 60_000 })
    await world.visit(operator)
    world.chain.state.baseFee = 40n * GWEI
    world.clock.advance(61_000)
    const doomed = world.start((point, self) => {
      if (point.startsWith('after record write')) self.kill()
    })
    world.clock.advance(61_000)
    // What it has seen first it has seen just now: a restart waits once more.
    await world.visit(doomed)
    world.clock.advance(61_000)
    await world.visit(doomed)
    expect(doomed.killed).toBe(true)
    const entry = world.record()?.status?.attempts?.at(-1)
    expect(entry?.hash).not.toBe(transaction(world)?.hash)
    world.chain.forget()
    const next = world.start()
    await world.visit(next)
    expect(transaction(world)).toMatchObject({ hash: entry?.hash, state: 'Broadcast' })
    await world.settle(next)
    world.assertMoney({ deposits: 1 })
  })
})

describe('what nodes say', () => {
  test.each<{ says: ChainErrorCode; takes: boolean }>([
    { says: 'already-known', takes: true },
    { says: 'nonce-too-low', takes: true },
    { says: 'replacement-underpriced', takes: true },
    { says: 'underpriced', takes: true },
    { says: 'unavailable', takes: false },
    { says: 'rejected', takes: false },
    { says: 'insufficient-funds', takes: false },
  ])('$says, and it took the bytes: $takes; the same bytes again, and no other', async ({ says, takes }) => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    let refusals = 2
    if (takes) Object.assign(world.chain.nodes[0] as object, { answersTaken: says })
    const operator = world.start((point) => {
      if (!takes && point === 'before chain.send' && refusals-- > 0) throw new ChainError(says, says)
    })
    await world.visit(operator)
    expect(transaction(world)?.broadcastHash !== undefined).toBe(takes)
    await world.settle(operator)
    expect(new Set(world.keys.signed.map(({ hash }) => hash)).size).toBe(1)
    world.assertMoney({ deposits: 1 })
  })

  test('what every node refuses for a reason that nobody here knows is told in the node’s own words', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const said =
      'no node took the transaction: the node refused eth_sendRawTransaction for a reason that is not known here (code -32000: "tx type off")'
    const operator = world.start((point) => {
      if (point === 'before chain.send') throw new ChainError('rejected', said)
    })
    await world.visit(operator)
    expect(world.condition('Ready')).toMatchObject({
      reason: 'ChainUnavailable',
      message: expect.stringContaining('(code -32000: "tx type off")'),
    })
    world.assertMoney({ deposits: 0 })
  })

  test('a node that says "underpriced" and did not take it: a dearer version under the same nonce, one a poll', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const operator = world.start()
    world.chain.state.minTip = 1_100_000_000n
    for (let count = 0; count < 5; count++) await world.visit(operator)
    expect(world.record()?.status?.attempts).toHaveLength(1)
    await world.settle(operator)
    expect(transaction(world)).toMatchObject({ nonce: 0, state: 'Confirmed' })
    expect(transaction(world)?.replaced).toHaveLength(1)
    expect(world.chain.everSent()).toHaveLength(1)
    world.assertMoney({ deposits: 1 })
  })

  test('a signer without enough funds: it waits, its nonce is not taken, and it goes on when funded', async () => {
    const world = createWorld()
    world.chain.fund(testAddress(0), ETH)
    world.addSigner()
    world.addStake()
    const operator = world.start()
    for (let count = 0; count < 4; count++) {
      await world.visit(operator)
      world.clock.advance(30_000)
      world.chain.state.baseFee += GWEI
    }
    expect(world.condition('Ready')).toMatchObject({ status: 'False', reason: 'InsufficientFunds' })
    expect(world.stalled()).toBe('')
    expect(world.keys.signed).toEqual([])
    // The stake and its wait: what changes with the price is no news.
    expect(world.stakes.statusWrites(KEY)).toBe(1)
    world.chain.fund(testAddress(0), 100n * ETH)
    await world.settle(operator)
    world.assertMoney({ deposits: 1 })
  })

  test('what transactions in flight may cost is not spent twice', async () => {
    const world = createWorld()
    world.chain.fund(testAddress(0), 33n * ETH)
    world.addSigner()
    world.addStake(KEY)
    world.addStake(second)
    const operator = world.start()
    await Promise.all([world.visit(operator, KEY), world.visit(operator, second)])
    expect([transaction(world, KEY), transaction(world, second)].filter(Boolean)).toHaveLength(1)
    expect(world.chain.everSent()).toHaveLength(1)
  })

  test('a transaction that the node has forgotten is sent again, the same bytes', async () => {
    const { world, operator } = withStake()
    await world.visit(operator)
    world.chain.forget()
    await world.visit(operator)
    expect(world.chain.pool().map(({ hash }) => hash)).toEqual([transaction(world)?.hash])
    expect(world.chain.everSent()).toHaveLength(1)
  })

  test('the history of deposits is still being read: nothing is signed before', async () => {
    const { world, operator } = withStake()
    world.chain.state.historySyncing = true
    await world.visit(operator)
    expect(world.condition('Ready')).toMatchObject({ reason: 'HistorySyncing' })
    expect(world.keys.signed).toEqual([])
  })
})

describe('blocks', () => {
  test('a deposit is confirmed when its block is final, not before', async () => {
    const { world, operator } = withStake({ depth: 3 })
    await world.visit(operator)
    for (let depth = 0; depth < 3; depth++) {
      world.chain.mine()
      await world.visit(operator)
      expect(transaction(world)?.state).toBe('Broadcast')
      expect(world.condition('Confirmed')).toMatchObject({ status: 'Unknown', reason: 'AwaitingFinality' })
    }
    world.chain.mine()
    await world.visit(operator)
    expect(transaction(world)).toMatchObject({ state: 'Confirmed', blockNumber: 1 })
  })

  test('a reorg takes it out again: it waits, is sent again, the same bytes, and lands in another block', async () => {
    const { world, operator } = withStake({ depth: 3 })
    await world.visit(operator)
    const { hash } = transaction(world) ?? {}
    world.chain.mine(2)
    await world.visit(operator)
    world.chain.reorg(2, true)
    world.chain.mine(2)
    await world.visit(operator)
    expect(transaction(world)).toMatchObject({ state: 'Broadcast', hash })
    await world.settle(operator)
    expect(transaction(world)).toMatchObject({ state: 'Confirmed', hash })
    expect(transaction(world)?.blockNumber).toBeGreaterThan(2)
    world.assertMoney({ deposits: 1 })
  })

  test('a deposit that reverts moves no money, is told, and is not tried again', async () => {
    const { world, operator } = withStake()
    await world.visit(operator)
    world.chain.state.contractReverts = true
    world.chain.mine(3)
    world.chain.state.contractReverts = false
    await world.settle(operator, [KEY], 3)
    expect(transaction(world)?.state).toBe('Failed')
    expect(world.condition('Confirmed')).toMatchObject({ status: 'False', reason: 'TransactionReverted' })
    expect(world.stalled()).toBe('TransactionReverted')
    expect(world.chain.everSent()).toHaveLength(1)
    world.assertMoney({ deposits: 0 })
  })

  test('a nonce that another transaction used is given up at finality only, and then taken anew', async () => {
    const { world, operator } = withStake({ depth: 3 }, { sharedKey: true })
    await world.visit(operator)
    const lost = transaction(world)
    // The key is used elsewhere: another transaction has the nonce.
    world.chain.mineForeign({ from: testAddress(0) })
    for (let depth = 0; depth < 3; depth++) {
      await world.visit(operator)
      expect(transaction(world)).toMatchObject({ nonce: 0, hash: lost?.hash })
      world.chain.mine(1, hold)
    }
    await world.settle(operator)
    expect(transaction(world)).toMatchObject({ nonce: 1, state: 'Confirmed' })
    expect(transaction(world)?.replaced?.map(({ hash }) => hash)).toEqual([lost?.hash])
    expect(world.record()?.status?.closed).toMatchObject([{ nonce: 0, by: 'Foreign' }])
    world.assertMoney({ deposits: 1 })
  })

  test('while one node is not there yet, it waits: no second nonce', async () => {
    const world = createWorld({ depth: 1, nodes: 2 })
    world.addSigner('signer-1', {}, { sharedKey: true })
    world.addStake()
    const operator = world.start()
    await world.visit(operator)
    const [, behind] = world.chain.nodes
    if (behind === undefined) throw new Error('there is no second node')
    behind.stillAt = 0
    world.chain.mineForeign({ from: testAddress(0) })
    world.chain.mine(2, hold)
    const writes = world.stakes.statusWrites(KEY)
    for (let count = 0; count < 5; count++) {
      await world.visit(operator)
      world.clock.advance(12_000)
      world.chain.mine(1, hold)
    }
    expect(world.condition('Ready')?.status).toBe('False')
    expect(world.record()?.status?.attempts).toHaveLength(1)
    expect(world.stakes.statusWrites(KEY) - writes).toBeLessThanOrEqual(2)
    behind.stillAt = undefined
    await world.settle(operator)
    expect(transaction(world)).toMatchObject({ nonce: 1, state: 'Confirmed' })
    world.assertMoney({ deposits: 1 })
  })

  test('one that reverted while nobody knew whether it was sent is told as well', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    let silent = true
    const operator = world.start((point) => {
      if (point === 'after chain.send' && silent) throw new ChainError('unavailable', 'no answer')
    })
    await world.visit(operator)
    silent = false
    world.chain.state.contractReverts = true
    world.chain.mine()
    world.chain.state.contractReverts = false
    world.chain.mine(3)
    world.addStake(second)
    await world.visit(operator, second)
    await world.visit(operator)
    expect(transaction(world)?.state).toBe('Failed')
  })

  test('a nonce that another transaction used in a block that a reorg takes back is kept', async () => {
    const { world, operator } = withStake({ depth: 3 }, { sharedKey: true })
    await world.visit(operator)
    world.chain.mineForeign({ from: testAddress(0) })
    world.chain.mine(1, hold)
    await world.visit(operator)
    world.chain.reorg(2, true)
    world.chain.mine()
    await world.settle(operator)
    expect(transaction(world)).toMatchObject({ nonce: 0, state: 'Confirmed' })
    world.assertMoney({ deposits: 1 })
  })
})

describe('nonces', () => {
  test('many at once get one after the other, and the signer is not written for it', { timeout: 60_000 }, async () => {
    const world = createWorld()
    const signer = world.addSigner()
    const keys = Array.from({ length: 20 }, (_, index) => `team-a/many-${index}`)
    for (const key of keys) world.addStake(key)
    const operator = world.start()
    await Promise.all(keys.map((key) => operator.visit(key)))
    await operator.visitLanes()
    await Promise.all(keys.map((key) => operator.visit(key)))
    const nonces = keys.map((key) => transaction(world, key)?.nonce)
    expect(nonces.toSorted((a = 0, b = 0) => a - b)).toEqual(keys.map((_, nonce) => nonce))
    expect(world.places.list()).toHaveLength(20)
    expect(world.signers.statusWrites(signer.metadata.name)).toBe(0)
    await world.settle(operator, keys)
    world.assertMoney({ deposits: 20 })
  })

  /** A stake whose transaction was written down and could not be sent, and then may not be sent any more. */
  async function held(world: World, key: string, stop: () => void) {
    let down = true
    const operator = world.start((point) => {
      if (point === 'before chain.send' && down) throw new ChainError('unavailable', 'no answer')
    })
    await world.visit(operator, key)
    expect(transaction(world, key)).toMatchObject({ nonce: 0, state: 'Prepared' })
    down = false
    stop()
    await world.visit(operator, key)
    return operator
  }
  const cancelled = [{ nonce: 0, by: 'Cancel' }]

  test('what a stalled resource wrote down makes room: nobody waits behind it, and it is made again once it may be', async () => {
    const world = createWorld()
    world.addSigner('signer-1', {}, { allowedNamespaces: { names: ['team-a', 'team-b'] } })
    const other = 'team-b/held'
    world.addStake(other)
    const operator = await held(world, other, () => world.editPolicy({ allowedNamespaces: { names: ['team-a'] } }))
    expect(world.stalled(other)).toBe('NamespaceNotAllowed')
    world.addStake()
    await world.settle(operator)
    expect(transaction(world)).toMatchObject({ nonce: 1, state: 'Confirmed' })
    expect(world.record(other)?.status?.closed).toMatchObject(cancelled)
    world.assertMoney({ deposits: 1 })
    // Admitted again, it takes another place.
    world.editPolicy({ allowedNamespaces: { names: ['team-a', 'team-b'] } })
    await world.settle(operator, [other])
    expect(transaction(world, other)).toMatchObject({ nonce: 2, state: 'Confirmed' })
    world.assertMoney({ deposits: 2 })
  })

  test.each(['suspended', 'deleted'])('so does what a resource wrote down that is then %s', async (how) => {
    const world = createWorld()
    world.addSigner()
    world.addStake(second)
    const operator = await held(world, second, () =>
      how === 'suspended' ? world.editSpec({ suspend: true }, second) : world.stakes.remove(second),
    )
    world.addStake(third)
    await world.settle(operator, [third])
    expect(transaction(world, third)).toMatchObject({ nonce: 1, state: 'Confirmed' })
    world.assertMoney({ deposits: 1 })
    await world.settle(operator, [second], 4)
    if (how === 'deleted') expect(world.stakes.get(second)).toBeUndefined()
    else expect(world.condition('Ready', second)?.reason).toBe('Suspended')
  })

  test('what was sent and then suspended is left to land, until somebody waits behind it', async () => {
    const { world, operator } = withStake({ bumpAfterMs: 60_000 })
    await world.visit(operator)
    const first = transaction(world)
    world.editSpec({ suspend: true })
    world.chain.forget()
    for (let count = 0; count < 4; count++) {
      await world.visit(operator)
      world.clock.advance(12_000)
    }
    expect(world.record()?.status?.attempts?.map(({ hash }) => hash)).toEqual([first?.hash])
    world.addStake(second)
    await world.settle(operator, [second])
    expect(transaction(world, second)).toMatchObject({ nonce: 1, state: 'Confirmed' })
    expect(world.record()?.status?.closed).toMatchObject(cancelled)
    world.editSpec({ suspend: false })
    await world.settle(operator, [KEY, second])
    world.assertMoney({ deposits: 2 })
  })

  test('and what a resource wrote down that is gone', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake(second)
    const operator = world.start((point) => {
      if (point === 'before chain.send' && world.stakes.get(second) !== undefined) throw new ChainError('unavailable', 'no answer')
    })
    await world.visit(operator, second)
    world.stakes.vanish(second)
    world.addStake()
    await world.settle(operator)
    expect(transaction(world)).toMatchObject({ nonce: 1, state: 'Confirmed' })
    world.assertMoney({ deposits: 1 })
  })
})

test('with the lease lost, nothing more is signed, sent or written', async () => {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  const operator = world.start((point) => {
    if (point === 'after api.createEthereumStake') operator.depose()
  })
  const result = await world.visit(operator)
  expect(result.kind).toBe('error')
  expect(world.keys.signed).toEqual([])
  expect(world.chain.everSent()).toEqual([])
  expect(world.places.list()).toEqual([])
  await world.settle(world.start())
  world.assertMoney({ deposits: 1 })
})

test('a policy that is narrowed between the write ahead and the broadcast keeps the money where it is', async () => {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  const operator = world.start((point) => {
    if (point.startsWith('after record write')) world.editPolicy({ maxPerTransaction: '1' })
  })
  await world.visit(operator)
  expect(world.record()?.status?.attempts).toHaveLength(2)
  expect(world.stalled()).toBe('OverLimit')
  expect(world.chain.everSent().map(({ valueWei }) => valueWei)).toEqual([0n])
  world.assertMoney({ deposits: 0 })
})
