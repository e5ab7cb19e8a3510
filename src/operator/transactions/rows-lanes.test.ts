import { describe, expect, test, vi } from 'vitest'
import { ChainError } from '../../chains/ethereum/chain.ts'
import { StakingApiError } from '../../contract/client-error.ts'
import type { ValidatorExitSpec } from '../../resources/validator-exit.ts'
import { add, assertOnce, kinds, none, POLL, said } from '../testing/rows.ts'
import { addressOf, createWorld, EXIT, GWEI, hoodi, KEY, type Operator, WITHDRAWAL, type World } from '../testing/world.ts'
import { laneKey, placeName } from './names.ts'

/** Nobody's wish holds what others share: the lane of a signer moves, whatever becomes of one transaction in it. */

// Signatures are made for real, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 })

const OTHER = 'team-a/other'

function worldOf(key: string, options: Parameters<typeof createWorld>[0] = {}, spec: object = {}): World {
  const world = createWorld(options)
  world.addSigner('signer-1', {}, { allowedNamespaces: { names: ['team-a', 'team-b'] } })
  add(world, key, spec)
  return world
}
/** As its owner does, by kubectl. */
function edit(world: World, key: string, change: object): void {
  if (key.startsWith('exit:') || key.startsWith('withdrawal:'))
    world.editRequest(key, (one) => ({ ...one, spec: { ...one.spec, ...change } as ValidatorExitSpec }))
  else world.editSpec(change, key)
}
const cancels = (world: World, nonce = 0) => world.chain.everSent().filter((one) => one.data === '0x' && one.nonce === nonce)
const lane = laneKey({ chainId: hoodi.chainId, address: addressOf(0) })

/** Whoever waits is served: within a minute the nonce is cancelled or used, and then the other one is Ready. */
async function assertMoves(world: World, operator: Operator): Promise<void> {
  add(world, OTHER)
  const since = world.clock.monotonicMs()
  let moved = false
  for (let n = 0; n < 8 && !moved; n++) {
    await world.visit(operator, OTHER)
    moved = cancels(world).length > 0 || world.chain.nonce(addressOf(0)) > 0
    if (!moved) world.clock.advance(POLL)
  }
  expect(moved, said(world, OTHER)).toBe(true)
  expect(world.clock.monotonicMs() - since).toBeLessThanOrEqual(60_000)
  await world.settle(operator, [OTHER])
  expect(world.ready(OTHER), said(world, OTHER)).toBe(true)
  expect(world.chain.violations).toEqual([])
}

/** What its owner, the signer's owner or nobody does to a transaction after it was sent. */
const afterwards: { readonly what: string; readonly change: (world: World, key: string) => void; readonly keys?: readonly string[] }[] = [
  { what: 'suspended', change: (world, key) => edit(world, key, { suspend: true }) },
  { what: 'deleted', change: (world, key) => world.remove(key) },
  { what: 'gone, its finalizers stripped', change: (world, key) => vanish(world, key) },
  {
    what: 'gone, and made again under its name',
    change: (world, key) => {
      vanish(world, key)
      add(world, key, { suspend: true })
    },
  },
  { what: 'not admitted by the policy any more', change: (world) => world.editPolicy({ allowedNamespaces: { names: ['team-b'] } }) },
  {
    what: 'capped below what it pays',
    change: (world, key) => edit(world, key, { [key === KEY ? 'maxFeePerGasGwei' : 'maxRequestFeeGwei']: '0.000000001' }),
  },
  { what: 'given the origin of another resource', change: (world, key) => annotate(world, key) },
]
function vanish(world: World, key: string): void {
  const name = key.replace(/^[a-z]+:/, '')
  if (key.startsWith('exit:')) world.exits.vanish(name)
  else if (key.startsWith('withdrawal:')) world.withdrawals.vanish(name)
  else world.stakes.vanish(name)
}
function annotate(world: World, key: string): void {
  const stolen = { 'staking.dev/origin': 'uid-9/team-a/another' }
  if (key === KEY) world.annotate(stolen)
  else world.editRequest(key, (one) => ({ ...one, metadata: { ...one.metadata, annotations: stolen } }))
}

describe('after it was sent, the nodes forget it, and somebody waits behind it', () => {
  test.each(afterwards.flatMap((row) => kinds.map((key) => ({ ...row, key }))))(
    '$key, $what: cancelled within a minute',
    async ({ key, what, change }) => {
      const world = worldOf(key, { bumpAfterMs: 60_000 })
      const operator = world.start()
      await world.visit(operator, key)
      expect(world.chain.pool()).toHaveLength(1)
      world.chain.forget()
      change(world, key)
      // Who waits is of the other namespace where the first one's is refused.
      if (what.startsWith('not admitted')) {
        add(world, 'team-b/other')
        for (let n = 0; n < 4; n++) {
          await world.visit(operator, 'team-b/other')
          world.clock.advance(POLL)
        }
        expect(cancels(world).length).toBeGreaterThan(0)
        await world.settle(operator, ['team-b/other'])
        expect(world.ready('team-b/other'), said(world, 'team-b/other')).toBe(true)
      } else await assertMoves(world, operator)
    },
  )
})

describe('its own cap is just above the price, and the price rises', () => {
  test.each(kinds)('%s is cancelled, and made again once the price falls', async (key) => {
    // As long as production waits before it replaces one.
    const world = worldOf(key, { bumpAfterMs: 180_000 }, key === KEY ? { maxFeePerGasGwei: '13' } : { maxRequestFeeGwei: '0.00000001' })
    const operator = world.start()
    await world.visit(operator, key)
    expect(world.chain.pool()).toHaveLength(1)
    world.chain.state.baseFee = 40n * GWEI
    world.chain.state.requestFee = 50n
    await assertMoves(world, operator)
    world.chain.state.baseFee = 10n * GWEI
    world.chain.state.requestFee = 1n
    await world.settle(operator, [key])
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(world.chain.violations).toEqual([])
  })

  test('a peak of one poll cancels nothing, however long it has waited before', async () => {
    const world = worldOf(KEY, { bumpAfterMs: 180_000 }, { maxFeePerGasGwei: '13' })
    const operator = world.start()
    await world.visit(operator)
    add(world, OTHER)
    for (let n = 0; n < 30; n++) {
      world.chain.state.baseFee = (n % 3 === 0 ? 40n : 10n) * GWEI
      await world.visit(operator, OTHER)
      world.clock.advance(POLL)
    }
    expect(cancels(world)).toEqual([])
    world.chain.state.baseFee = 10n * GWEI
    await world.settle(operator, [KEY, OTHER])
    world.assertMoney({ deposits: 2 })
  })

  test('twenty such stakes before one that pays: the lane moves within some polls for all of them, not for each', async () => {
    const world = createWorld({ bumpAfterMs: 60_000 })
    world.addSigner()
    const keys = Array.from({ length: 20 }, (_, index) => `team-a/low-${index}`)
    for (const key of keys) world.addStake(key, { maxFeePerGasGwei: '13' })
    const operator = world.start()
    for (const key of keys) await operator.visit(key)
    await operator.visitLanes()
    expect(world.chain.pool()).toHaveLength(20)
    world.chain.state.baseFee = 40n * GWEI
    add(world, OTHER)
    await world.settle(operator, [OTHER], 12)
    expect(world.ready(OTHER), said(world, OTHER)).toBe(true)
    world.assertMoney({ deposits: 1 })
  })
})

describe('between the writes of the log', () => {
  const points = ['after record create', 'after place create', 'after record write'] as const
  const changes = afterwards.filter(({ what }) => !what.startsWith('not admitted') && !what.startsWith('capped'))
  test.each(points.flatMap((point) => changes.flatMap((row) => kinds.map((key) => ({ point, key, ...row })))))(
    '$point, $key is $what: nobody waits for it, and nothing of it is sent',
    async ({ point, key, change }) => {
      const world = worldOf(key)
      let done = false
      const operator = world.start((at) => {
        if (done || !at.startsWith(point)) return
        done = true
        change(world, key)
      })
      await world.visit(operator, key)
      expect(done).toBe(true)
      add(world, OTHER)
      await world.settle(operator, [OTHER])
      expect(world.ready(OTHER), said(world, OTHER)).toBe(true)
      expect(world.chain.everSent().filter(({ data }) => data !== '0x')).toHaveLength(1)
      expect(world.chain.violations).toEqual([])
    },
  )

  test.each(kinds)(
    '%s is patched at every one of its writes, so that none of its own succeeds: it is made once, and others go on',
    async (key) => {
      const world = worldOf(key)
      let storm = true
      let patches = 0
      const operator = world.start((point) => {
        if (!storm || !/^before (status write|marking)/.test(point) || world.object(key) === undefined) return
        patches++
        const noise = (one: { metadata: { annotations?: object } }) => ({
          ...one,
          metadata: { ...one.metadata, annotations: { ...one.metadata.annotations, noise: String(patches) } },
        })
        if (key === KEY) world.stakes.edit(KEY, noise as never)
        else world.editRequest(key, noise as never)
      })
      // Its finalizer and its origin are written once.
      storm = false
      await operator.visit(key)
      storm = true
      for (let n = 0; n < 20; n++) {
        await operator.visit(key)
        await operator.visitLanes()
      }
      expect(patches).toBeGreaterThan(15)
      add(world, OTHER)
      for (let n = 0; n < 12; n++) {
        await operator.visit(key)
        await world.visit(operator, OTHER)
        world.clock.advance(POLL)
        world.chain.mine()
      }
      expect(world.ready(OTHER), said(world, OTHER)).toBe(true)
      expect(world.chain.violations).toEqual([])
      storm = false
      await world.settle(operator, [key])
      expect(world.ready(key), said(world, key)).toBe(true)
    },
  )
})

describe('what is written down and can’t be sent, since somebody does not answer', () => {
  test.each(kinds)(
    '%s waits for the staking API, is cancelled within a minute where somebody waits, and made once afterwards',
    async (key) => {
      const world = worldOf(key)
      let down = true
      const operator = world.start((point) => {
        if (down && /^before (api|requests)\.submit/.test(point))
          throw new StakingApiError('down', { kind: 'network', outcomeUnknown: true })
      })
      await world.visit(operator, key)
      expect(world.record(key)?.status?.place).toBe(0)
      expect(world.chain.everSent()).toEqual([])
      add(world, OTHER)
      for (let n = 0; n < 5; n++) {
        await world.visit(operator, OTHER)
        world.clock.advance(POLL)
      }
      expect(cancels(world).length).toBeGreaterThan(0)
      down = false
      await world.settle(operator, [OTHER, key], 20)
      expect([world.ready(OTHER), world.ready(key)]).toEqual([true, true])
      expect(world.chain.violations).toEqual([])
    },
  )

  test('the key of the signer is away while a cancel is due: it goes on when that is back', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.visit(operator)
    world.chain.forget()
    world.editSpec({ suspend: true })
    world.keys.break('key-0', 'missing')
    add(world, OTHER)
    for (let n = 0; n < 3; n++) {
      await world.visit(operator, OTHER)
      world.clock.advance(POLL)
    }
    expect(cancels(world)).toEqual([])
    world.keys.mend('key-0')
    await world.settle(operator, [OTHER])
    expect(world.ready(OTHER), said(world, OTHER)).toBe(true)
  })
})

describe('nine given-up preparations', () => {
  test('of nine stakes, one after the other: no nonce is nobody’s, and the tenth goes', async () => {
    const world = createWorld()
    world.addSigner()
    let down = true
    const operator = world.start((point) => {
      if (down && point === 'before chain.send') throw new ChainError('unavailable', 'no answer')
    })
    const keys = Array.from({ length: 9 }, (_, index) => `team-a/given-up-${index}`)
    for (const key of keys) {
      world.addStake(key)
      await world.visit(operator, key)
      world.remove(key)
      await world.visit(operator, key)
    }
    down = false
    add(world, OTHER)
    await world.settle(operator, [OTHER, ...keys], 20)
    expect(world.ready(OTHER), said(world, OTHER)).toBe(true)
    expect(keys.map((key) => world.stakes.get(key))).toEqual(keys.map(() => undefined))
    world.assertMoney({ deposits: 1 })
  })

  test('of one stake: each is later than the one before, their nonces are used, and it goes when it may', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    let refused = true
    const operator = world.start((point) => {
      if (refused && point.startsWith('after place create')) world.editPolicy({ maxPerTransaction: '1' })
    })
    for (let n = 0; n < 9; n++) {
      world.editPolicy({ maxPerTransaction: '2048' })
      await world.settle(operator, [KEY], 5)
    }
    const closed = world.record()?.status?.closed ?? []
    expect(closed.map(({ by }) => by)).toEqual(closed.map(() => 'Cancel'))
    // Without waiting there would be one for each of the nine times.
    expect(closed.length).toBeGreaterThanOrEqual(3)
    expect(closed.length).toBeLessThan(7)
    refused = false
    world.editPolicy({ maxPerTransaction: '2048' })
    add(world, OTHER)
    await world.settle(operator, [OTHER])
    expect(world.ready(OTHER), said(world, OTHER)).toBe(true)
    await world.settle(operator, [KEY], 80)
    expect(world.ready(), said(world, KEY)).toBe(true)
    world.assertMoney({ deposits: 2 })
  })
})

describe('the price rises above what was sent, and the nodes drop it', () => {
  test.each(kinds)('%s: it is not handed to them at every poll, and again when the price has fallen', async (key) => {
    const world = worldOf(key)
    let sends = 0
    const operator = world.start((point) => {
      if (point === 'before chain.send') sends += 1
    })
    world.editPolicy({ maxFeePerGasGwei: '25' })
    await world.visit(operator, key)
    expect(sends).toBe(1)
    world.chain.state.baseFee = 40n * GWEI
    world.chain.forget()
    for (let n = 0; n < 6; n++) {
      world.clock.advance(POLL)
      await world.visit(operator, key)
    }
    expect(sends).toBeLessThanOrEqual(1)
    world.chain.state.baseFee = 10n * GWEI
    await world.settle(operator, [key], 20)
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(world.chain.violations).toEqual([])
  })
})

describe('the staking API answers 409 to the hash that it is told', () => {
  test.each(kinds)('%s: nothing is sent, nothing is cancelled while nobody waits, and it goes when the API takes it', async (key) => {
    let refuses = true
    const world = worldOf(key)
    const operator = world.start((point) => {
      if (refuses && /^before (api|requests)\.submit/.test(point))
        throw new StakingApiError('no', { kind: 'problem', code: 'invalid-state', status: 409, outcomeUnknown: false })
    })
    for (let n = 0; n < 6; n++) {
      await world.visit(operator, key)
      world.clock.advance(POLL)
      world.chain.mine()
    }
    expect(world.chain.everSent()).toEqual([])
    expect(world.record(key)?.status?.attempts).toHaveLength(1)
    refuses = false
    await world.settle(operator, [key])
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(world.record(key)?.status?.closed).toBeUndefined()
    expect(world.chain.violations).toEqual([])
  })
})

describe('the staking API does not see that a cancelled one came to nothing: its node keeps no states so old', () => {
  test.each(kinds)('%s: it is told of the cancel, which shows that, and of the next one', async (key) => {
    const world = worldOf(key, { bumpAfterMs: 180_000 }, key === KEY ? { maxFeePerGasGwei: '13' } : { maxRequestFeeGwei: '0.00000001' })
    /** What it was told, as it takes them: beside one of another nonce only where a transaction that it was told of has used the nonce of that. */
    const told: { readonly hash: string; readonly nonce: number }[] = []
    const isClosed = ({ nonce }: { readonly nonce: number }): boolean =>
      told.some((one) => one.nonce === nonce && world.chain.outcome(one.hash)?.final === true)
    function take(hash: string, nonce: number): void {
      if (told.some((one) => one.hash === hash)) return
      const next = { hash, nonce }
      const isOpen = (one: { readonly nonce: number }) => one.nonce !== nonce && !isClosed(one)
      if (told.some(isOpen))
        throw new StakingApiError('no', { kind: 'problem', code: 'already-submitted', status: 409, outcomeUnknown: false })
      told.push(next)
    }
    const { api } = world.service
    const { api: requests } = world.requests
    const [stake, exit, withdrawal] = [api.submitEthereumStake, requests.submitExitRequest, requests.submitWithdrawalRequest]
    const apiId = (): string | undefined => world.record(key)?.spec.apiId
    vi.spyOn(api, 'submitEthereumStake').mockImplementation(async (id, hash, signal, sent) => {
      if (key === KEY && id === apiId()) take(hash, sent?.nonce ?? -1)
      return stake(id, hash, signal, sent)
    })
    vi.spyOn(requests, 'submitExitRequest').mockImplementation(async (pubkey, id, hash, signal, sent) => {
      take(hash, sent?.nonce ?? -1)
      return exit(pubkey, id, hash, signal, sent)
    })
    vi.spyOn(requests, 'submitWithdrawalRequest').mockImplementation(async (pubkey, id, hash, signal, sent) => {
      take(hash, sent?.nonce ?? -1)
      return withdrawal(pubkey, id, hash, signal, sent)
    })
    const operator = world.start()
    await world.visit(operator, key)
    world.chain.state.baseFee = 40n * GWEI
    world.chain.state.requestFee = 50n
    await assertMoves(world, operator)
    world.chain.state.baseFee = 10n * GWEI
    world.chain.state.requestFee = 1n
    await world.settle(operator, [key], 24)
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(told.map(({ nonce }) => nonce)).toEqual([0, 0, expect.any(Number)])
    expect(cancels(world).map(({ hash }) => hash)).toContain(told[1]?.hash)
    expect(world.chain.violations).toEqual([])
  })
})

describe('a hole in the sequence, and no new stake', () => {
  async function holed(): Promise<World> {
    const world = createWorld()
    world.addSigner()
    world.addStake(KEY)
    world.addStake(OTHER)
    const operator = world.start()
    await world.visit(operator, KEY)
    await world.visit(operator, OTHER)
    expect(world.places.list().map(({ spec }) => spec.nonce)).toEqual([0, 1])
    const first = world.record(KEY)
    world.chain.forget(world.chain.pool().find(({ nonce }) => nonce === 0)?.hash)
    world.stakes.vanish(KEY)
    world.records.vanish(first?.metadata.name ?? '')
    return world
  }
  const placeOf = (world: World, nonce: number) => world.places.list().find(({ spec }) => spec.nonce === nonce)?.metadata.name ?? ''

  test.each([true, false])('is filled by the signer itself (the place is still there: %s)', async (isThere) => {
    const world = await holed()
    if (!isThere) world.places.vanish(placeOf(world, 0))
    const operator = world.start()
    await world.settle(operator, [OTHER])
    expect(world.ready(OTHER), said(world, OTHER)).toBe(true)
    expect(cancels(world)).toHaveLength(1)
    world.assertMoney({ deposits: 1 })
  })

  test('its filler is bumped where the price rises, and sent again where the nodes forget it', async () => {
    const world = await holed()
    const operator = world.start()
    await operator.reconcile('records', lane)
    expect(cancels(world)).toHaveLength(1)
    world.chain.forget(cancels(world)[0]?.hash)
    await operator.reconcile('records', lane)
    expect(world.chain.pool().some(({ nonce }) => nonce === 0)).toBe(true)
    world.chain.state.baseFee = 60n * GWEI
    world.clock.advance(61_000)
    await operator.reconcile('records', lane)
    expect(cancels(world).length).toBeGreaterThan(1)
    await world.settle(operator, [OTHER])
    world.assertMoney({ deposits: 1 })
  })

  test('where a node still holds what used it, that lands and nothing else does', async () => {
    const world = createWorld({ nodes: 2 })
    world.addSigner()
    world.addStake(KEY)
    world.addStake(OTHER)
    const operator = world.start()
    await world.visit(operator, KEY)
    await world.visit(operator, OTHER)
    world.records.vanish(world.record(KEY)?.metadata.name ?? '')
    world.places.vanish(placeOf(world, 0))
    const next = world.start()
    await world.settle(next, [OTHER, KEY], 20)
    expect([world.ready(KEY), world.ready(OTHER)]).toEqual([true, true])
    world.assertMoney({ deposits: 2 })
  })

  test('two leaders at once fill it, and give the next numbers out once', async () => {
    const world = await holed()
    const operators = [world.start(), world.start()]
    for (const key of ['team-a/a', 'team-a/b']) add(world, key)
    for (let n = 0; n < 12; n++) {
      await Promise.all(
        operators.map(async (operator) => {
          for (const key of [OTHER, 'team-a/a', 'team-a/b']) await operator.visit(key)
          await operator.visitLanes()
        }),
      )
      world.clock.advance(POLL)
      world.chain.mine()
    }
    await world.settle(operators[0] as Operator, [OTHER, 'team-a/a', 'team-a/b'])
    world.assertMoney({ deposits: 3 })
  })
})

describe('somebody makes a place by hand', () => {
  const place = (name: string, nonce: number) => ({
    metadata: { name },
    spec: { chainId: hoodi.chainId, address: addressOf(0).toLowerCase() as `0x${string}`, nonce },
  })

  test('under a name that is not its number’s: it gives out nothing, and holds nobody', async () => {
    const world = worldOf(KEY)
    world.places.create(place('by-hand', 1_000_000))
    await world.settle(world.start(), [KEY])
    expect(world.ready(KEY), said(world, KEY)).toBe(true)
    expect(cancels(world)).toEqual([])
  })

  test.each([1_000_000, Number.MAX_SAFE_INTEGER])('far above all others (%i): nothing is filled, and it is told which', async (nonce) => {
    const world = worldOf(KEY)
    const name = placeName({ chainId: hoodi.chainId, address: addressOf(0) }, nonce)
    world.places.create(place(name, nonce))
    const operator = world.start()
    for (let n = 0; n < 4; n++) {
      await world.visit(operator, KEY)
      world.clock.advance(POLL)
    }
    expect(world.stalled(KEY), said(world, KEY)).toBe('UnaccountedTransactions')
    expect(said(world, KEY)).toContain(`kubectl delete signernonce ${name}`)
    expect(world.keys.signed).toEqual([])
    expect(world.places.list()).toHaveLength(1)
    world.places.vanish(name)
    await world.settle(operator, [KEY])
    expect(world.ready(KEY), said(world, KEY)).toBe(true)
    assertOnce(world, KEY)
  })

  test('and the key of a filler is gone: what else there is to do in the lane is done', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.visit(operator, KEY)
    world.chain.mine()
    world.places.create(place(placeName({ chainId: hoodi.chainId, address: addressOf(0) }, 1), 1))
    world.places.create(place(placeName({ chainId: hoodi.chainId, address: addressOf(0) }, 2), 2))
    world.signers.vanish('signer-1')
    await expect(operator.reconcile('records', lane)).resolves.toMatchObject({ kind: 'wait' })
    expect(world.keys.signed.filter(({ transaction }) => transaction.data === '0x')).toEqual([])
  })
})

describe('many stakes for one signer', () => {
  const COUNT = 125
  test('those that may not go hold no turn, however many they are and however old', async () => {
    const world = createWorld({ depth: 64 })
    world.addSigner()
    world.chain.fund(addressOf(0), 100_000n * 10n ** 18n)
    const operator = world.start()
    const held = Array.from({ length: COUNT }, (_, index) => `team-a/held-${index}`)
    // They pay no more than is asked at the quietest hour.
    for (const key of held) world.addStake(key, { maxFeePerGasGwei: '0.000000001' })
    for (const key of held) await operator.visit(key)
    world.clock.advance(POLL)
    world.addStake('team-a/free')
    await operator.visit('team-a/free')
    await operator.visitLanes()
    expect(world.chain.pool()).toHaveLength(1)
    expect(world.record('team-a/free')?.status?.place).toBe(0)
  })

  test('are all in flight at once, and their waits cost nothing', async () => {
    const world = createWorld({ depth: 64 })
    world.addSigner()
    world.chain.fund(addressOf(0), 100_000n * 10n ** 18n)
    const keys = Array.from({ length: COUNT }, (_, index) => `team-a/many-${index}`)
    for (const key of keys) world.addStake(key)
    const calls = new Map<string, number>()
    const operator = world.start((point) => {
      const [, call] = /^before ([a-z]+\.\w+)$/i.exec(point) ?? []
      if (call !== undefined) calls.set(call, (calls.get(call) ?? 0) + 1)
    })
    /** As production does: whoever has news is looked at, and the lane once a poll. */
    const poll = async () => {
      await operator.visitLanes()
      for (const key of keys) if (operator.hasNews(key)) await operator.visit(key)
      world.clock.advance(POLL)
    }
    for (const key of keys) await operator.visit(key)
    await poll()
    expect(world.chain.pool()).toHaveLength(COUNT)
    expect(calls.get('api.createEthereumStake')).toBeLessThanOrEqual(2 * COUNT)
    expect(calls.get('api.submitEthereumStake')).toBe(COUNT)

    await poll()
    calls.clear()
    for (let n = 0; n < 5; n++) await poll()
    const sum = (what: RegExp) => [...calls].reduce((total, [call, count]) => total + (what.test(call) ? count : 0), 0)
    expect(sum(/^api\./)).toBe(0)
    // Of the chain: counts, head and price, shared by all.
    expect(sum(/^chain\.(?!depositsFor)/)).toBeLessThanOrEqual(5 * 4)
    expect(sum(/mergePatch|create|\.get$/i)).toBe(0)

    world.chain.mine()
    await poll()
    await poll()
    calls.clear()
    for (let n = 0; n < 16; n++) {
      world.chain.mine(1, none)
      await poll()
    }
    expect(sum(/^api\./)).toBe(0)
    // Mined, each is looked at every eighth poll.
    expect(sum(/^chain\.trace/)).toBeLessThanOrEqual(2 * COUNT)
    expect(sum(/mergePatch|create|\.get$/i)).toBe(0)

    world.chain.mine(64, none)
    await poll()
    expect(keys.filter((key) => !world.ready(key))).toEqual([])
    expect(world.chain.deposits()).toHaveLength(COUNT)
    expect(world.chain.violations).toEqual([])
  })
})

describe('what closes a place is final on one node, and the other does not answer', () => {
  async function closedOnOne(world: World, key: string): Promise<Operator> {
    const operator = world.start()
    await world.visit(operator, key)
    world.chain.forget()
    edit(world, key, { suspend: true })
    add(world, OTHER)
    await world.visit(operator, OTHER)
    expect(cancels(world)).toHaveLength(1)
    return operator
  }
  const second = (world: World) => {
    const [, found] = world.chain.nodes
    if (found === undefined) throw new Error('the chain has two nodes')
    return found
  }

  test.each(kinds)('%s, cancelled: it is not made again before both have that', async (key) => {
    const world = worldOf(key, { nodes: 2 })
    const operator = await closedOnOne(world, key)
    world.chain.mine(6)
    second(world).silent = true
    edit(world, key, { suspend: false })
    for (let n = 0; n < 6; n++) {
      await world.visit(operator, key)
      world.clock.advance(POLL)
    }
    expect(world.record(key)?.status?.closed ?? []).toEqual([])
    expect(world.condition('Ready', key), said(world, key)).toMatchObject({ status: 'False', reason: 'AwaitingFinality' })
    expect(world.chain.everSent().filter(({ data }) => data !== '0x')).toHaveLength(2)
    second(world).silent = false
    await world.settle(operator, [key, OTHER])
    expect([world.ready(key), world.ready(OTHER)]).toEqual([true, true])
    expect(world.record(key)?.status?.closed).toMatchObject([{ nonce: 0, by: 'Cancel' }])
    expect(world.chain.violations).toEqual([])
  })

  test.each([EXIT, WITHDRAWAL])('%s, reverted: it is not asked for again before both have that', async (key) => {
    const world = worldOf(key, { nodes: 2 })
    const operator = world.start()
    await world.visit(operator, key)
    world.chain.state.requestsRevert = true
    world.chain.mine()
    world.chain.state.requestsRevert = false
    world.chain.mine(5)
    second(world).silent = true
    for (let n = 0; n < 6; n++) {
      await world.visit(operator, key)
      world.clock.advance(POLL)
    }
    expect(world.chain.everSent()).toHaveLength(1)
    second(world).silent = false
    await world.settle(operator, [key])
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(world.chain.requests()).toHaveLength(1)
  })
})

describe('a record that is nearly full', () => {
  /** So many versions of it were signed before, four under each nonce that something else has used. */
  function fill(world: World, count: number): void {
    const hash = (digit: string, at: number) => `0x${digit}${at.toString(16).padStart(63, '0')}`
    world.editRecord((one) => ({
      ...one,
      status: {
        ...one.status,
        attempts: Array.from({ length: count }, (_, at) => ({
          hash: hash('1', at),
          kind: 'Call' as const,
          nonce: Math.floor(at / 4),
          generation: one.spec.generation,
          at: '2030-01-01T00:00:00Z',
        })),
        closed: Array.from({ length: Math.ceil(count / 4) }, (_, nonce) => ({
          nonce,
          generation: one.spec.generation,
          by: 'Foreign' as const,
          hash: hash('2', nonce),
          blockNumber: 1,
          blockHash: hash('3', nonce),
        })),
      },
    }))
  }
  /** With a stake that waits for the price, whose record holds so many, and which a person has allowed to go on. */
  async function worldWith(count: number): Promise<{ readonly world: World; readonly operator: Operator }> {
    const world = worldOf(KEY, {}, { maxFeePerGasGwei: '1' })
    const operator = world.start()
    await world.visit(operator)
    fill(world, count)
    world.editRecord((one) => ({ ...one, metadata: { ...one.metadata, annotations: { 'staking.dev/allow-remakes': '99' } } }))
    world.clock.advance(POLL)
    edit(world, KEY, { maxFeePerGasGwei: '100' })
    return { world, operator }
  }

  test('and given up under its last place is cancelled, for whoever waits behind it', async () => {
    const { world, operator } = await worldWith(96)
    await world.visit(operator)
    expect(world.record(KEY)?.status?.attempts).toHaveLength(97)
    world.chain.forget()
    edit(world, KEY, { suspend: true })
    await assertMoves(world, operator)
  })

  test('takes no place under which its versions may not have room, whatever a person allows: it says so, and holds nobody', async () => {
    const { world, operator } = await worldWith(97)
    await world.visit(operator)
    expect(world.condition('Stalled')).toMatchObject({ status: 'True', reason: 'RemadeTooOften' })
    expect(said(world, KEY)).toMatch(/holds 97 versions of it, and has no room for more .* create the resource anew/)
    expect(world.places.list()).toEqual([])
    expect(world.keys.signed).toEqual([])
    add(world, OTHER)
    await world.settle(operator, [OTHER])
    expect(world.ready(OTHER), said(world, OTHER)).toBe(true)
  })
})
