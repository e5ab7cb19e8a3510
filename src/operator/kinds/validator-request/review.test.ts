import { describe, expect, test } from 'vitest'
import { ChainError } from '../../../chains/ethereum/chain.ts'
import { gwei } from '../../../lib/amounts.ts'
import { ORIGIN_ANNOTATION } from '../../../resources/meta.ts'
import { testAddress } from '../../testing/fake-keys.ts'
import { createWorld, EXIT, KEY, type Operator, WITHDRAWAL, type World } from '../../testing/world.ts'

/** Attacks on what is paid and asked once: forged status and lost records where nonces are given up and others wait behind them. */

const suspend = (world: World, key: string, on: boolean) =>
  world.editRequest(key, (one) => ({ ...one, spec: { ...one.spec, suspend: on } }))
const flip = (hash: string): string => hash.slice(0, -1) + (hash.endsWith('0') ? '1' : '0')
const other = (world: World, index: number, name = `other-${index}`) => {
  const key = `withdrawal:team-a/${name}`
  world.addWithdrawal(key, { validator: { network: 'hoodi', pubkey: world.validator(index) } })
  return key
}

describe.each([KEY, WITHDRAWAL])('%s, in flight and suspended', (key) => {
  test("with another sender in status whose nonces are used, is not taken for lost, and its nonce stays the log's", async () => {
    const world = createWorld()
    world.addSigner()
    if (key === KEY) world.addStake()
    else world.addWithdrawal()
    const operator = world.start()
    await world.visit(operator, key)
    expect(world.chain.pool()).toHaveLength(1)
    const busy = testAddress(2)
    for (let count = 0; count < 4; count++) world.chain.mineForeign({ from: busy })
    suspend(world, key, true)
    world.editRequest(key, ({ status, ...one }) => {
      const transaction = status?.transaction as { hash: string }
      return { ...one, status: { ...status, transaction: { ...transaction, from: busy, hash: flip(transaction.hash) } } }
    })
    await world.visit(operator, key)
    expect(world.record(key)?.status).toMatchObject({ place: 0, attempts: [{ nonce: 0 }] })
    suspend(world, key, false)
    world.editRequest(key, ({ status: { transaction: _gone, ...status } = {}, ...one }) => ({ ...one, status }))
    await world.settle(world.start(), [key])
    expect(world.chain.violations).toEqual([])
    expect(world.ready(key), JSON.stringify(world.condition('Ready', key))).toBe(true)
  })
})

describe('a withdrawal that was made long ago', () => {
  test.each(['Prepared', 'Broadcast', 'Failed', 'FrontRun'] as const)(
    'is not made again where status says that its transaction is %s',
    async (state) => {
      const world = createWorld()
      world.addSigner()
      world.addWithdrawal()
      const operator = world.start()
      await world.settle(operator, [WITHDRAWAL])
      await world.settle(operator, [other(world, 1)])
      world.editRequestStatus(({ transaction, consensus: _gone, ...status }) => {
        if (transaction === undefined) throw new Error('it was made')
        return { ...status, transaction: { ...transaction, state, hash: flip(transaction.hash) } }
      }, WITHDRAWAL)
      await world.settle(world.start(), [WITHDRAWAL])
      expect(world.chain.violations).toEqual([])
      expect(world.chain.requests()).toHaveLength(2)
      expect(world.ready(WITHDRAWAL), JSON.stringify(world.condition('Ready', WITHDRAWAL))).toBe(true)
    },
  )
})

describe('a request that waits behind the place of a suspended deposit', () => {
  test.each([false, true])('doesn’t keep the deposit from being made after it is final (its resource gone: %s)', async (gone) => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    world.requests.state.consensus = () => ({ status: 'pending' })
    let nodeIsAway = true
    const operator = world.start((point) => {
      if (point === 'before chain.send' && nodeIsAway) throw new ChainError('unavailable', 'no answer')
    })
    await world.visit(operator, KEY)
    nodeIsAway = false
    expect(world.record()?.status?.place).toBe(0)
    suspend(world, KEY, true)
    await world.visit(operator, KEY)
    world.addWithdrawal()
    await world.settle(operator, [WITHDRAWAL], 5)
    expect(world.record(WITHDRAWAL)?.status?.outcome?.is).toBe('Landed')
    expect(world.chain.deposits()).toEqual([])
    suspend(world, KEY, false)
    if (gone) world.withdrawals.vanish('team-a/withdrawal-1')
    await world.settle(operator, [KEY])
    expect(world.ready(KEY), JSON.stringify(world.condition('Ready', KEY))).toBe(true)
    expect(world.chain.deposits()).toHaveLength(1)
    expect(world.chain.violations).toEqual([])
  })
})

describe('a request that was sent, and whose place was cancelled since a deposit waits behind it', () => {
  async function worldWithSent(): Promise<World> {
    const world = createWorld()
    world.addSigner()
    world.addWithdrawal()
    // Sent, and ended before anything more was written down.
    await world.visit(
      world.start((point, operator) => {
        if (point === 'after chain.send') operator.kill()
      }),
      WITHDRAWAL,
    )
    expect(world.chain.pool()).toHaveLength(1)
    return world
  }
  /** The deposit waits behind it, and of the request and its cancel one is mined. */
  async function oneLands(world: World, operator: Operator, which: 'request' | 'cancel', rounds = 4): Promise<void> {
    world.addStake()
    await world.visit(operator, KEY)
    await world.visit(operator, KEY)
    expect(world.record(WITHDRAWAL)?.status?.attempts?.map(({ kind }) => kind)).toEqual(['Call', 'Cancel'])
    world.chain.mine(1, (versions) => versions.find(({ data }) => (data === '0x') === (which === 'cancel')))
    for (let round = 0; round < rounds; round++) {
      world.clock.advance(12_000)
      world.chain.mine()
      await world.visit(operator, KEY)
    }
    expect(world.chain.requests()).toHaveLength(which === 'request' ? 1 : 0)
  }

  test('is not made again where its status is lost and the request has landed', async () => {
    const world = await worldWithSent()
    suspend(world, WITHDRAWAL, true)
    const operator = world.start()
    await world.visit(operator, WITHDRAWAL)
    await oneLands(world, operator, 'request')
    world.editRequestStatus(() => ({}), WITHDRAWAL)
    suspend(world, WITHDRAWAL, false)
    await world.settle(operator, [WITHDRAWAL, KEY])
    expect(world.chain.violations).toEqual([])
    expect(world.chain.requests()).toHaveLength(1)
    expect(world.ready(WITHDRAWAL), JSON.stringify(world.condition('Ready', WITHDRAWAL))).toBe(true)
    expect(world.ready()).toBe(true)
  })

  test.each([0, 4])('is not made again by a resource of its name, %i blocks later', async (rounds) => {
    const world = await worldWithSent()
    world.withdrawals.vanish('team-a/withdrawal-1')
    const operator = world.start()
    await oneLands(world, operator, 'request', rounds)
    world.addWithdrawal()
    await world.settle(operator, [WITHDRAWAL, KEY])
    expect(world.chain.violations).toEqual([])
    expect(world.chain.requests()).toHaveLength(1)
    expect(world.stalled(WITHDRAWAL)).toBe('AlreadyRequested')
  })

  test.each([0, 4])('is made once by a resource of its name where the cancel has landed, %i blocks later', async (rounds) => {
    const world = await worldWithSent()
    world.withdrawals.vanish('team-a/withdrawal-1')
    const operator = world.start()
    await oneLands(world, operator, 'cancel', rounds)
    world.addWithdrawal()
    await world.settle(operator, [WITHDRAWAL, KEY])
    expect(world.chain.violations).toEqual([])
    expect(world.chain.requests()).toHaveLength(1)
    expect(world.ready(WITHDRAWAL), JSON.stringify(world.condition('Ready', WITHDRAWAL))).toBe(true)
    expect(world.ready()).toBe(true)
  })
})

describe('what it waits for changes a little all the time, and nothing is written', () => {
  test.each<{ waits: string; key: string; reason: string; change: (world: World, round: number) => void }>([
    {
      waits: 'a fee that falls',
      key: EXIT,
      reason: 'RequestFeeTooHigh',
      change: (world, round) => {
        world.chain.state.requestFee = 9_000_000_000_000_000n - 1_000_000_000_000n * BigInt(round * 700)
      },
    },
    {
      waits: 'a balance that grows',
      key: WITHDRAWAL,
      reason: 'OverAvailable',
      change: (world, round) => {
        world.requests.state.broken = () => ['amount-over-available']
        world.requests.state.capacity = {
          balanceGwei: gwei(40_000_000_000n + BigInt(round * 14_000)),
          availableGwei: gwei(8_000_000_000n + BigInt(round * 14_000)),
        }
      },
    },
  ])('$waits', async ({ key, reason, change }) => {
    const world = createWorld()
    world.addSigner()
    if (key === EXIT) world.addExit()
    else world.addWithdrawal()
    const operator = world.start()
    const writes = () => (key === EXIT ? world.exits.statusWrites('team-a/exit-1') : world.withdrawals.statusWrites('team-a/withdrawal-1'))
    const seen: number[] = []
    for (let round = 0; round < 10; round++) {
      change(world, round)
      world.clock.advance(300_000)
      world.chain.mine()
      await world.visit(operator, key)
      expect(world.condition('Ready', key)?.reason).toBe(reason)
      seen.push(writes())
    }
    expect(new Set(seen).size).toBe(1)
  })
})

describe("a resource whose annotation names the UID of another namespace's", () => {
  const worldOfTwo = () => {
    const world = createWorld()
    world.addSigner('signer-1', {}, { allowedNamespaces: { names: ['team-a', 'team-b'] } })
    return world
  }
  const naming = (uid: string | undefined, place: string) => ({ annotations: { [ORIGIN_ANNOTATION]: `${uid}/${place}` } })

  test('does not stall its stake, nor is stalled', async () => {
    const world = worldOfTwo()
    const { uid } = world.addStake().metadata
    world.addStake('team-b/copy', {}, naming(uid, 'team-b/copy'))
    const operator = world.start()
    await world.visit(operator, 'team-b/copy')
    await world.settle(operator, [KEY, 'team-b/copy'])
    expect([world.ready(KEY), world.ready('team-b/copy')]).toEqual([true, true])
    world.assertMoney({ deposits: 2 })
  })

  test('does not take its request for its own', async () => {
    const world = worldOfTwo()
    const { uid } = world.addWithdrawal().metadata
    const operator = world.start()
    await world.visit(operator, WITHDRAWAL)
    const copy = 'withdrawal:team-b/copy'
    world.addWithdrawal(copy, {}, naming(uid, 'team-b/copy'))
    await world.visit(operator, copy)
    expect(world.condition('Ready', copy)?.reason).toBe('WaitingForValidator')
    expect(world.requestStatus(copy).transaction).toBeUndefined()
    await world.settle(operator, [WITHDRAWAL, copy], 20)
    expect(world.chain.requests()).toHaveLength(2)
  })
})

test('a fee that rises above the cap before a request is sent keeps no deposit waiting behind its nonce', async () => {
  const world = createWorld()
  world.addSigner()
  world.addExit()
  await world.visit(
    world.start((point, operator) => {
      if (point === 'before chain.send') operator.kill()
    }),
    EXIT,
  )
  world.chain.state.requestFee = 9_000_000_000_000_000n
  const operator = world.start()
  await world.visit(operator, EXIT)
  expect(world.condition('Ready', EXIT)?.reason).toBe('RequestFeeTooHigh')
  world.addStake()
  await world.settle(operator, [KEY, EXIT], 6)
  expect(world.ready(KEY), JSON.stringify(world.condition('Ready', KEY))).toBe(true)
  world.chain.state.requestFee = 1n
  await world.settle(operator, [EXIT])
  expect(world.ready(EXIT), JSON.stringify(world.condition('Ready', EXIT))).toBe(true)
  expect(world.chain.requests()).toHaveLength(1)
  expect(world.chain.violations).toEqual([])
})

test('a deleted request whose network is gone says how to have it forgotten', async () => {
  const world = createWorld()
  world.addSigner()
  world.addExit()
  const operator = world.start()
  await world.visit(operator, EXIT)
  world.networks.delete('hoodi')
  world.remove(EXIT)
  await world.visit(operator, EXIT)
  expect(world.condition('Ready', EXIT)?.reason).toBe('Deleting')
  expect(world.condition('Ready', EXIT)?.message).toContain('kubectl annotate validatorexit exit-1 -n team-a')
})

test('an exit that was cancelled at the staking API between its signature and its broadcast is not sent', async () => {
  const world = createWorld()
  world.addSigner()
  world.addExit()
  await world.visit(
    world.start((point, operator) => {
      if (point === 'before chain.send') operator.kill()
    }),
    EXIT,
  )
  world.requests.cancel(world.requestStatus(EXIT).requestId ?? '')
  await world.settle(world.start(), [EXIT], 4)
  expect(world.stalled(EXIT)).toBe('RequestCancelled')
  expect(world.chain.everSent()).toEqual([])
})

test('a request that waits for one whose outcome a person must find out says so', async () => {
  const world = createWorld()
  world.addSigner()
  world.addWithdrawal()
  const operator = world.start()
  await world.visit(operator, WITHDRAWAL)
  world.requests.state.lie = (body) => ('amountGwei' in body ? { ...body, status: 'failed' } : body)
  for (let round = 0; round < 4; round++) {
    world.clock.advance(12_000)
    world.chain.mine()
    await world.visit(operator, WITHDRAWAL)
  }
  expect(world.stalled(WITHDRAWAL)).toBe('RequestMissing')
  world.addExit()
  await world.visit(operator, EXIT)
  expect(world.condition('Ready', EXIT)?.message).toContain('needs a person')
})
