import { describe, expect, test, vi } from 'vitest'
import type { Hex } from '../../chains/ethereum/chain.ts'
import { withdrawalRequestContract } from '../../chains/ethereum/requests.ts'
import { makeStake } from '../testing/fake-staking-api.ts'
import { add, assertOnce, calls, kinds, node, none, POLL, polls, said } from '../testing/rows.ts'
import { addressOf, createWorld, GWEI, hoodi, KEY, WITHDRAWAL, type World } from '../testing/world.ts'

/** What nodes say wrongly, late or not at all: two of them unless a title says otherwise, and either may be the bad one. */

// Signatures are made for real, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 })

const either = [0, 1] as const

function worldOf(key: string, nodes = 2, depth = 2): World {
  const world = createWorld({ nodes, depth })
  world.addSigner()
  add(world, key)
  return world
}

describe.each(kinds)('a node answers for a final block as for its pool: one transaction for %s', (key) => {
  test.each(either)('it is node %i', async (bad) => {
    const world = worldOf(key)
    node(world, bad).liesAboutFinal = true
    const operator = world.start()
    await polls(world, operator, key, 20)
    expect(calls(world)).toHaveLength(1)
    expect(world.record(key)?.status?.attempts).toHaveLength(1)
    await world.settle(operator, [key])
    expect(world.ready(key), said(world, key)).toBe(true)
    assertOnce(world, key)
  })

  test.each(either)('it is node %i, the other is silent, and the operator is started again between all visits', async (bad) => {
    const world = worldOf(key)
    await world.visit(world.start(), key)
    node(world, bad).liesAboutFinal = true
    node(world, 1 - bad).silent = true
    for (let n = 0; n < 6; n++) await polls(world, world.start(), key, 2)
    expect(calls(world)).toHaveLength(1)
    node(world, 1 - bad).silent = false
    await world.settle(world.start(), [key])
    assertOnce(world, key)
  })

  test('both do: nothing is sent at all, or once', async () => {
    const world = worldOf(key)
    for (const index of either) node(world, index).liesAboutFinal = true
    await polls(world, world.start(), key, 10)
    expect(calls(world).length).toBeLessThanOrEqual(1)
    for (const index of either) node(world, index).liesAboutFinal = false
    await world.settle(world.start(), [key])
    assertOnce(world, key)
  })
})

describe.each(kinds)('a node is on another fork, and shows the receipt of %s there', (key) => {
  test.each(either)('it is node %i: it waits and says NodesDisagree; who lacks the transaction gets it again', async (bad) => {
    const world = worldOf(key)
    const operator = world.start()
    await world.visit(operator, key)
    const hash = world.record(key)?.status?.attempts?.[0]?.hash as Hex
    world.chain.mine()
    // The other one's chain, which is the one that counts, does not hold it.
    node(world, 1 - bad).fork = { from: 1, without: [hash] }
    const sentTo: unknown[] = []
    const { send } = world.chain.chain
    world.chain.chain.send = (raw, nodes, signal) => {
      sentTo.push(...(nodes === 'all' ? either : nodes))
      return send(raw, nodes, signal)
    }
    world.chain.mine(5, none)
    await polls(world, operator, key, 6)
    expect(world.condition('Ready', key), said(world, key)).toMatchObject({ status: 'False', reason: 'NodesDisagree' })
    expect(world.record(key)?.status?.outcome).toBeUndefined()
    expect(sentTo).toContain(1 - bad)
    expect(calls(world)).toHaveLength(1)
    // The bad one comes over: the transaction is where it was, and lands.
    node(world, 1 - bad).fork = undefined
    await world.settle(operator, [key])
    expect(world.ready(key), said(world, key)).toBe(true)
    assertOnce(world, key)
  })

  test.each(either)(
    'node %i is stuck on an orphaned block: what it shows is not the chain, and others of the signer go on',
    async (bad) => {
      const world = worldOf(key)
      const operator = world.start()
      await world.visit(operator, key)
      world.chain.mine(4)
      node(world, bad).stillAt = world.chain.height()
      const hash = world.record(key)?.status?.attempts?.[0]?.hash as Hex
      const orphaned = await world.chain.chain.receipt(hash, AbortSignal.timeout(1_000))
      if (orphaned === undefined) throw new Error('the transaction was not mined')
      world.chain.reorg(4, true)
      node(world, bad).stale.set(hash.toLowerCase(), orphaned)
      world.chain.mine(8, none)
      await polls(world, operator, key, 3)
      expect(world.ready(key), said(world, key)).toBe(false)
      expect(world.chain.pool().map((one) => one.hash)).toEqual([hash])
      node(world, bad).stale.clear()
      node(world, bad).stillAt = undefined
      await world.settle(operator, [key])
      expect(world.record(key)?.status?.outcome?.hash).toBe(hash)
      assertOnce(world, key)
    },
  )

  test('a place is not made a second time while one node says that its cancel is final and the other has another block there', async () => {
    const world = worldOf(key)
    const operator = world.start()
    await world.visit(operator, key)
    // A stranger's transaction has its nonce, on the first node's fork.
    const foreign = world.chain.mineForeign({ from: addressOf(0) })
    node(world, 1).fork = { from: 1, without: [foreign] }
    world.chain.mine(6, none)
    await polls(world, operator, key, 6)
    expect(world.record(key)?.status?.closed ?? []).toEqual([])
    expect(calls(world)).toHaveLength(1)
  })
})

describe('a receipt of a block that left the chain, at a height below the final one', () => {
  test.each(kinds)('of the only node: %s is not taken for done, and lands elsewhere', async (key) => {
    const world = worldOf(key, 1)
    const operator = world.start()
    await world.visit(operator, key)
    const hash = world.record(key)?.status?.attempts?.[0]?.hash as Hex
    world.chain.mine(2)
    const left = await world.chain.chain.receipt(hash, AbortSignal.timeout(1_000))
    if (left === undefined) throw new Error('the transaction was not mined')
    world.chain.reorg(2, true)
    node(world, 0).stale.set(hash.toLowerCase(), left)
    world.chain.mine(6, none)
    await polls(world, operator, key, 4)
    expect(world.record(key)?.status?.outcome).toBeUndefined()
    expect(world.ready(key), said(world, key)).toBe(false)
    node(world, 0).stale.clear()
    await world.settle(operator, [key])
    expect(world.record(key)?.status?.outcome?.blockHash).not.toBe(left.blockHash)
    assertOnce(world, key)
  })
})

describe('a node makes up what became of a transaction', () => {
  test.each(either.flatMap((bad) => kinds.map((key) => ({ bad, key }))))(
    'node $bad says of $key, which has landed, that it was reverted: it is not made again, and NodesDisagree is said',
    async ({ bad, key }) => {
      const world = worldOf(key)
      const operator = world.start()
      await world.visit(operator, key)
      const hash = world.record(key)?.status?.attempts?.[0]?.hash as Hex
      node(world, bad).distorts.set(hash.toLowerCase(), { success: false, logs: [] })
      world.chain.mine(6)
      await polls(world, operator, key, 6)
      expect(world.record(key)?.status).not.toHaveProperty('closed')
      expect(world.record(key)?.status).not.toHaveProperty('outcome')
      expect(world.condition('Ready', key), said(world, key)).toMatchObject({ status: 'False', reason: 'NodesDisagree' })
      expect(calls(world)).toHaveLength(1)
      node(world, bad).distorts.clear()
      await world.settle(operator, [key])
      expect(world.ready(key), said(world, key)).toBe(true)
      assertOnce(world, key)
    },
  )
})

describe('a node stands still while the other goes on', () => {
  test.each(either)('node %i: a key that others have deposited for since is not paid', async (bad) => {
    const world = worldOf(KEY)
    const operator = world.start()
    world.chain.state.baseFee = 200n * GWEI
    await world.visit(operator)
    expect(world.condition('Ready')?.reason).toBe('FeeTooHigh')
    node(world, bad).stillAt = world.chain.height()
    const [stake] = world.service.stakes()
    if (stake === undefined) throw new Error('there is no stake')
    const thief = makeStake(
      hoodi,
      { ...stake, amountGwei: stake.amountEth, withdrawalAddress: addressOf(1), externalReference: 'x' },
      'x',
      0,
    )
    expect(thief.depositData.pubkey).toBe(stake.depositData.pubkey)
    const { to, data, valueWei } = thief.unsignedTransaction
    world.chain.fund(addressOf(2), 100n * 10n ** 18n)
    world.chain.mineForeign({ from: addressOf(2), to: to as Hex, data: data as Hex, valueWei })
    world.chain.mine(8, none)
    world.chain.state.baseFee = 10n * GWEI
    await polls(world, operator, KEY, 4)
    expect(world.stalled()).toBe('PubkeyAlreadyDeposited')
    expect(world.keys.signed).toEqual([])
  })

  test.each(either.flatMap((bad) => kinds.map((key) => ({ bad, key }))))(
    'node $bad, after $key was sent: it becomes final by the other',
    async ({ bad, key }) => {
      const world = worldOf(key)
      const operator = world.start()
      await world.visit(operator, key)
      node(world, bad).stillAt = world.chain.height()
      await world.settle(operator, [key])
      expect(world.ready(key), said(world, key)).toBe(true)
      assertOnce(world, key)
    },
  )

  test.each(either)('node %i: what makes a second one possible waits until it moves, and says so', async (bad) => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.visit(operator)
    node(world, bad).stillAt = world.chain.height()
    world.chain.mineForeign({ from: addressOf(0) })
    world.chain.mine(8, none)
    await polls(world, operator, KEY, 5)
    expect(calls(world)).toHaveLength(1)
    expect(['NonceUseUnproven', 'AwaitingFinality']).toContain(world.condition('Ready')?.reason)
    node(world, bad).stillAt = undefined
    await polls(world, operator, KEY, 2)
    expect(world.record()?.status?.closed).toMatchObject([{ nonce: 0, by: 'Foreign' }])
    await world.settle(operator)
    world.assertMoney({ deposits: 1 })
  })
})

const methods = [
  'eth_getTransactionCount',
  'eth_getTransactionByHash',
  'eth_getTransactionReceipt',
  'eth_getBlockByNumber',
  'eth_estimateGas',
  'eth_getLogs',
  'eth_sendRawTransaction',
]
describe.each(either)('node %i refuses a method: the other is asked', (bad) => {
  test.each(methods.flatMap((method) => kinds.map((key) => ({ method, key }))))('$method, for $key', async ({ method, key }) => {
    const world = worldOf(key)
    node(world, bad).refuses.add(method)
    const operator = world.start()
    await world.settle(operator, [key])
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(calls(world)).toHaveLength(1)
    assertOnce(world, key)
  })
})

describe('a node keeps the transaction in its pool and tells nobody', () => {
  test.each(kinds)('%s is sent to each node that lacks it, the same bytes, and lands', async (key) => {
    const world = worldOf(key)
    node(world, 0).keepsToItself = true
    node(world, 1).silent = true
    const operator = world.start()
    await polls(world, operator, key, 4)
    expect(world.chain.pool()).toEqual([])
    node(world, 1).silent = false
    await polls(world, operator, key, 1)
    expect(world.chain.pool()).toHaveLength(1)
    await world.settle(operator, [key])
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(calls(world)).toHaveLength(1)
    assertOnce(world, key)
  })

  test('and the other forgets it each time: it gets it each time', async () => {
    const world = worldOf(KEY)
    node(world, 0).keepsToItself = true
    const operator = world.start()
    for (let n = 0; n < 5; n++) {
      await polls(world, operator, KEY, 1)
      expect(world.chain.pool()).toHaveLength(1)
      const [held] = world.chain.pool()
      // Of the first node's own pool nothing is forgotten.
      const kept = [...node(world, 0).own]
      world.chain.forget(held?.hash)
      for (const [hash, one] of kept) node(world, 0).own.set(hash, one)
    }
    await polls(world, operator, KEY, 1)
    await world.settle(operator)
    expect(calls(world)).toHaveLength(1)
    world.assertMoney({ deposits: 1 })
  })

  test('of two versions the cheaper is kept by one and the dearer by the other: whichever lands is the deposit', async () => {
    const world = worldOf(KEY)
    node(world, 0).keepsToItself = true
    const operator = world.start()
    await polls(world, operator, KEY, 1)
    node(world, 0).silent = true
    world.chain.state.baseFee = 40n * GWEI
    world.clock.advance(61_000)
    await polls(world, operator, KEY, 1)
    expect(calls(world)).toHaveLength(2)
    node(world, 0).silent = false
    world.chain.state.baseFee = 10n * GWEI
    world.chain.mine(1, (versions) => versions[0])
    await world.settle(operator)
    expect(world.record()?.status?.outcome?.hash).toBe(world.record()?.status?.attempts?.[0]?.hash)
    world.assertMoney({ deposits: 1 })
  })
})

describe.each(['replacement-underpriced', 'underpriced', 'nonce-too-low'] as const)(
  'a node answers "%s" though it took the bytes',
  (answer) => {
    test.each(kinds)('one version of %s, however often it is looked at', async (key) => {
      const world = worldOf(key)
      for (const index of either) node(world, index).answersTaken = answer
      const operator = world.start()
      await polls(world, operator, key, 40)
      expect(world.record(key)?.status?.attempts).toHaveLength(1)
      await world.settle(operator, [key])
      assertOnce(world, key)
    })

    test('and forgets them: one more version a poll at most, within the cap, and every hash is kept', async () => {
      const world = worldOf(WITHDRAWAL)
      for (const index of either) Object.assign(node(world, index), { answersTaken: answer, forgetful: true })
      const operator = world.start()
      const hashes = new Set<string>()
      for (let n = 0; n < 18; n++) {
        const before = world.record(WITHDRAWAL)?.status?.attempts?.length ?? 0
        for (let look = 0; look < 2; look++) await world.visit(operator, WITHDRAWAL)
        const attempts = world.record(WITHDRAWAL)?.status?.attempts ?? []
        expect(attempts.length - before).toBeLessThanOrEqual(1)
        for (const { hash } of attempts) hashes.add(hash)
        world.clock.advance(POLL)
      }
      expect(new Set(world.record(WITHDRAWAL)?.status?.attempts?.map(({ hash }) => hash))).toEqual(hashes)
      expect(hashes.size).toBeLessThanOrEqual(16)
      for (const { maxFeePerGas } of world.chain.everSent()) expect(maxFeePerGas).toBeLessThanOrEqual(200n * GWEI)
      // The very first lands after all.
      for (const index of either) Object.assign(node(world, index), { answersTaken: undefined, forgetful: false })
      world.chain.mine(1, (versions) => versions.find(({ to }) => to === withdrawalRequestContract))
      await world.settle(operator, [WITHDRAWAL])
      assertOnce(world, WITHDRAWAL)
    })
  },
)

describe('the clock is set back after a transaction was written down', () => {
  test.each(kinds)('%s is bumped all the same: its wait is measured in monotonic time', async (key) => {
    const world = worldOf(key)
    const operator = world.start()
    await world.visit(operator, key)
    world.clock.setBack(10 * 3_600_000)
    world.chain.state.baseFee = 40n * GWEI
    world.clock.advance(61_000)
    await world.visit(operator, key)
    expect(world.record(key)?.status?.attempts).toHaveLength(2)
    await world.settle(operator, [key])
    assertOnce(world, key)
  })

  test('a cancel is bumped all the same', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.visit(operator)
    world.editSpec({ suspend: true })
    world.addStake('team-a/stake-2')
    await world.visit(operator, 'team-a/stake-2')
    const cancels = () => world.record()?.status?.attempts?.filter(({ kind }) => kind === 'Cancel').length
    expect(cancels()).toBe(1)
    world.clock.setBack(10 * 3_600_000)
    world.chain.state.baseFee = 60n * GWEI
    world.clock.advance(61_000)
    await world.visit(operator, 'team-a/stake-2')
    world.clock.advance(61_000)
    await world.visit(operator, 'team-a/stake-2')
    expect(cancels()).toBe(2)
  })
})

describe('no block becomes final for hours', () => {
  const HALF_AN_HOUR = 30 * 60_000
  async function stuck(key: string) {
    const world = worldOf(key)
    const operator = world.start()
    await world.visit(operator, key)
    world.chain.mine()
    world.chain.state.depth = 100_000
    await world.visit(operator, key)
    return { world, operator }
  }
  const warnings = (world: World) =>
    world.events.filter(({ text }) => text.type === 'Warning').map(({ key, text }) => `${key} ${text.reason}`)

  test.each(kinds)('after half an hour the condition of %s says so, and there is one event and one count', async (key) => {
    const { world, operator } = await stuck(key)
    for (let n = 0; n < 149; n++) {
      world.clock.advance(POLL)
      world.chain.mine(1, none)
      await world.visit(operator, key)
    }
    expect(world.condition('Ready', key)?.reason).toBe('AwaitingFinality')
    const writes = () => [world.stakes, world.exits, world.withdrawals].reduce((sum, one) => sum + one.statusWrites('team-a/stake-1'), 0)
    const before = writes()
    for (let n = 0; n < 600; n++) {
      world.clock.advance(POLL)
      await world.visit(operator, key)
    }
    expect(world.condition('Ready', key), said(world, key)).toMatchObject({ status: 'False', reason: 'NoFinality' })
    expect(warnings(world)).toEqual(['signer-1 NoFinality'])
    expect(world.alarms).toEqual([{ network: 'hoodi', signer: 'signer-1', reason: 'NoFinality' }])
    expect(writes() - before).toBeLessThanOrEqual(1)
    // It moves again.
    world.chain.state.depth = 2
    await world.settle(operator, [key])
    expect(world.ready(key), said(world, key)).toBe(true)
    assertOnce(world, key)
  })

  test('an operator that starts meanwhile says so at its first look', async () => {
    const { world } = await stuck(KEY)
    world.chain.mine(150, none)
    const next = world.start()
    await world.visit(next)
    await world.visit(next)
    expect(world.condition('Ready')?.reason, said(world, KEY)).toBe('NoFinality')
    expect(world.alarms).toEqual([{ network: 'hoodi', signer: 'signer-1', reason: 'NoFinality' }])
  })

  test('the clock set back meanwhile changes nothing of it', async () => {
    const { world, operator } = await stuck(KEY)
    world.clock.setBack(24 * 3_600_000)
    world.clock.advance(HALF_AN_HOUR + POLL)
    await world.visit(operator)
    expect(world.condition('Ready')?.reason).toBe('NoFinality')
  })

  test('where nothing waits for it nobody is alarmed', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.settle(operator)
    world.addStake('team-a/stake-2', { maxFeePerGasGwei: '5' })
    for (let n = 0; n < 4; n++) {
      world.clock.advance(HALF_AN_HOUR)
      await world.visit(operator, 'team-a/stake-2')
    }
    expect(warnings(world).filter((one) => one.endsWith('NoFinality'))).toEqual([])
    expect(world.alarms).toEqual([])
  })

  test('others of the signer go on meanwhile: their transactions are sent', async () => {
    const { world, operator } = await stuck(KEY)
    world.clock.advance(2 * HALF_AN_HOUR)
    await world.visit(operator)
    world.addStake('team-a/stake-2')
    await world.visit(operator, 'team-a/stake-2')
    expect(world.chain.pool()).toHaveLength(1)
  })
})
