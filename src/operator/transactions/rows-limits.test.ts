import { describe, expect, test, vi } from 'vitest'
import { DISREGARD_SUBMISSION_ANNOTATION } from '../../resources/meta.ts'
import type { SignerLimit } from '../../resources/signer-limits.ts'
import { shuffle } from '../testing/misfortune.ts'
import { calls, POLL, said } from '../testing/rows.ts'
import { seededRandom } from '../testing/test-clock.ts'
import { type Around, addressOf, createWorld, ETH, hoodi, type Operator, type World } from '../testing/world.ts'
import { laneKey, placeName } from './names.ts'

/** Rolling limits of a signer: what is over them waits, goes on by itself, and is never signed sooner, whoever leads. */

// Signatures are made for real, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 })

const HOUR = 3_600_000
const DAY = 24 * HOUR
const limit = (change: Partial<SignerLimit> = {}): SignerLimit => ({ window: '24h', per: 'Signer', ...change })

function worldOf(limits: readonly SignerLimit[], namespaces: readonly string[] = ['team-a', 'team-b']): World {
  const world = createWorld()
  world.addSigner('signer-1', {}, { allowedNamespaces: { names: [...namespaces] }, limits: [...limits] })
  world.chain.fund(addressOf(0), 100_000n * ETH)
  return world
}
const exits = (count: number, namespace = 'team-a'): readonly string[] =>
  Array.from({ length: count }, (_, n) => `exit:${namespace}/exit-${String(n).padStart(3, '0')}`)
function addExits(world: World, keys: readonly string[], from = 0): void {
  for (const [n, key] of keys.entries()) world.addExit(key, { validator: { network: 'hoodi', pubkey: world.validator(from + n) } })
}
const signedNow = (world: World): number => new Set(calls(world).map(({ data, to }) => `${to} ${data}`)).size
const reasonOf = (world: World, key: string) => world.condition('Ready', key)?.reason
const waiting = (world: World, keys: readonly string[]) => keys.filter((key) => reasonOf(world, key) === 'LimitReached')

/** Looks at everything, and a block with each round. */
async function rounds(world: World, operator: Operator, keys: readonly string[], count: number): Promise<void> {
  for (let round = 0; round < count; round++) {
    for (const key of keys) if (world.object(key) !== undefined) await world.visit(operator, key)
    world.chain.mine()
    world.clock.advance(POLL)
  }
}

test('of hundreds that wait only as many are prepared as one look takes, where a limit leaves room for a few', async () => {
  const world = worldOf([limit({ maxCount: 2 })])
  const keys = exits(200)
  addExits(world, keys)
  world.chain.state.baseFee = 10_000n * 10n ** 9n
  const before = world.start()
  for (const key of keys) await before.visit(key)
  world.chain.state.baseFee = 10n ** 10n
  let estimates = 0
  const operator = world.start((point) => {
    if (point === 'before chain.estimateGas') estimates++
  })
  for (const key of keys) expect(world.record(key)?.status?.place).toBeUndefined()
  await operator.visitLanes()
  expect(calls(world)).toHaveLength(2)
  expect(estimates).toBeGreaterThanOrEqual(2)
  expect(estimates).toBeLessThanOrEqual(64)
})

test('of a hundred that the balance does not pay for only as many are prepared as one look takes, and all say so', async () => {
  const world = worldOf([])
  const keys = Array.from({ length: 100 }, (_, index) => `team-a/stake-${String(index).padStart(3, '0')}`)
  for (const key of keys) world.addStake(key)
  world.chain.state.baseFee = 10_000n * 10n ** 9n
  const before = world.start()
  for (const key of keys) await before.visit(key)
  world.chain.state.baseFee = 10n ** 10n
  world.chain.fund(addressOf(0), 40n * ETH - world.chain.balance(addressOf(0)))
  let estimates = 0
  const operator = world.start((point) => {
    if (point === 'before chain.estimateGas') estimates++
  })
  await operator.visitLanes()
  expect(calls(world)).toHaveLength(1)
  expect(estimates).toBeLessThanOrEqual(64)
  for (const key of keys) await operator.visit(key)
  expect(keys.filter((key) => reasonOf(world, key) === 'InsufficientFunds')).toHaveLength(99)
  // It goes on by itself.
  world.chain.fund(addressOf(0), 100n * 32n * ETH)
  for (let round = 0; round < 6; round++) {
    await rounds(world, operator, keys.slice(0, 1), 1)
    await operator.visitLanes()
  }
  expect(signedNow(world)).toBe(100)
})

describe('twenty exits applied at once by a mistake', () => {
  test('stop at the limit, say until when, and go on as the window frees', async () => {
    const world = worldOf([limit({ maxCount: 4 })])
    const keys = exits(20)
    addExits(world, keys)
    const operator = world.start()
    const begun = world.clock.now().getTime()
    await rounds(world, operator, keys, 6)
    expect(signedNow(world)).toBe(4)
    expect(keys.filter((key) => world.ready(key))).toEqual(keys.slice(0, 4))
    expect(waiting(world, keys)).toEqual(keys.slice(4))
    for (const key of keys.slice(4)) {
      expect(world.condition('Stalled', key)?.status).toBe('False')
      expect(world.condition('Ready', key)?.message).toMatch(
        /may sign 4 transactions in 24h \(spec\.policy\.limits\)\. There is no room for this one now\. It goes on at 2030-01-02T00:0/,
      )
    }
    world.clock.advance(begun + DAY - 5 * 60_000 - world.clock.now().getTime())
    await rounds(world, operator, keys.slice(4), 1)
    expect(signedNow(world)).toBe(4)
    world.clock.advance(5 * 60_000)
    await rounds(world, operator, keys.slice(4), 4)
    expect(signedNow(world)).toBe(8)
    expect(keys.filter((key) => world.ready(key))).toHaveLength(8)
  })

  test('who waits is written once, however far behind the latest block is at each look; where the chain stands, it says so', async () => {
    const world = worldOf([limit({ maxCount: 2 }), limit({ maxCount: 2, window: '23h', per: 'Namespace' })])
    const keys = exits(5)
    addExits(world, keys)
    const operator = world.start()
    world.chain.state.behindSeconds = 5
    for (let round = 0; round < 5; round++) {
      await rounds(world, operator, keys, 1)
      world.chain.state.behindSeconds = 2
    }
    const left = waiting(world, keys)
    expect(left).toEqual(keys.slice(2))
    const versions = () => left.map((key) => world.object(key)?.metadata.resourceVersion)
    const before = versions()
    for (const behind of [3, 11, 0, 7]) {
      world.chain.state.behindSeconds = behind
      await rounds(world, operator, keys, 1)
      expect(versions()).toEqual(before)
    }
    world.chain.state.behindSeconds = 3_600
    await rounds(world, operator, keys, 1)
    expect(world.condition('Ready', left[0])?.message).toMatch(/ It goes on at 2030-01-02T00:0\S* at the earliest\.$/)
    world.clock.advance(DAY)
    await rounds(world, operator, keys, 1)
    expect(world.condition('Ready', left[0])?.message).toMatch(
      / It goes on when the window is over by the chain's own time as well, which is behind the clock\.$/,
    )
    world.clock.advance(HOUR)
    await rounds(world, operator, keys, 4)
    expect(signedNow(world)).toBe(4)
  })

  test('a hundred and twenty-five, all looked at together: ten go, the others say why not, and the next ten a day later', async () => {
    const world = worldOf([limit({ maxCount: 10 })])
    const keys = exits(125)
    addExits(world, keys)
    const operator = world.start()
    const begun = world.clock.now().getTime()
    // Each resource by itself, then their lane: not a look at the lane for each.
    const visit = async (key: string): Promise<void> => {
      for (let step = 0; step < 8; step++) {
        const result = await operator.visit(key)
        if (typeof result === 'symbol' || result.kind !== 'again') return
      }
    }
    const together = async (of: readonly string[], count: number): Promise<void> => {
      for (let round = 0; round < count; round++) {
        await Promise.all(of.map(visit))
        for (let look = 0; look < 3; look++) await operator.visitLanes()
        world.chain.mine()
        world.clock.advance(POLL)
      }
      await Promise.all(of.map(visit))
    }
    await together(keys, 1)
    expect(signedNow(world)).toBe(10)
    const left = waiting(world, keys)
    expect(left).toHaveLength(115)
    expect(left.filter((key) => world.condition('Stalled', key)?.status !== 'False')).toEqual([])
    const gone = keys.filter((key) => !left.includes(key))
    await together(gone, 4)
    expect(gone.filter((key) => world.ready(key))).toEqual(gone)
    world.clock.advance(begun + DAY + POLL - world.clock.now().getTime())
    await together(left, 1)
    expect(signedNow(world)).toBe(20)
    // Taken back: what waits is deleted, and nothing of it is ever signed.
    const rest = waiting(world, left)
    expect(rest).toHaveLength(105)
    for (const key of rest) world.remove(key)
    world.clock.advance(2 * DAY)
    await together(rest, 1)
    await operator.visitLanes()
    expect(signedNow(world)).toBe(20)
    expect(rest.filter((key) => world.object(key) !== undefined)).toEqual([])
  })

  test('are counted as 32 ETH each by a total', async () => {
    const world = worldOf([limit({ maxTotalEth: '100' })])
    const keys = exits(6)
    addExits(world, keys)
    await rounds(world, world.start(), keys, 4)
    expect(signedNow(world)).toBe(3)
  })

  test('nobody is asked about those that wait', async () => {
    const world = worldOf([limit({ maxCount: 1 })])
    const keys = exits(6)
    addExits(world, keys)
    const operator = world.start()
    await rounds(world, operator, keys, 4)
    let asked = 0
    const watched = world.start((point) => {
      if (/^before (requests|chain)\.(exitRequest|estimateGas)/.test(point)) asked++
    })
    const lane = laneKey({ chainId: hoodi.chainId, address: addressOf(0) })
    for (let look = 0; look < 3; look++) await watched.reconcile('records', lane)
    expect(waiting(world, keys)).toHaveLength(5)
    expect(asked).toBe(0)
  })
})

test('what waits for a person says so while there is no room, and waits for room once that person has answered', async () => {
  const world = worldOf([limit({ maxCount: 1 })])
  const [lost, other] = ['team-a/lost', 'team-b/other'] as const
  world.addStake(lost)
  const dying = world.start((point, self) => {
    if (point === 'before chain.send') self.kill()
  })
  await world.visit(dying, lost)
  // The staking API was told of a transaction that nobody else knows of any more.
  world.loseLog()
  const operator = world.start()
  await rounds(world, operator, [lost], 2)
  expect(world.stalled(lost), said(world, lost)).toBe('UnknownSubmission')
  world.addStake(other)
  for (let round = 0; round < 4; round++) {
    await rounds(world, operator, [other, lost], 1)
    expect(world.stalled(lost), said(world, lost)).toBe('UnknownSubmission')
  }
  expect(world.ready(other)).toBe(true)

  const { metadata } = world.record(lost) ?? {}
  const told = /disregard-submission=(0x[0-9a-f]{64})/.exec(said(world, lost))?.[1] ?? ''
  world.records.edit(metadata?.name ?? '', (record) => ({
    ...record,
    metadata: { ...record.metadata, annotations: { [DISREGARD_SUBMISSION_ANNOTATION]: told } },
  }))
  await rounds(world, operator, [lost], 2)
  expect(reasonOf(world, lost), said(world, lost)).toBe('LimitReached')
  world.clock.advance(DAY)
  await rounds(world, operator, [lost], 4)
  expect(world.ready(lost), said(world, lost)).toBe(true)
  expect(world.chain.deposits()).toHaveLength(2)
})

describe('what was signed counts', () => {
  test('after its resource was deleted, and its signer was made anew under another name', async () => {
    const world = worldOf([limit({ maxCount: 2 })])
    const first = exits(2)
    addExits(world, first)
    const operator = world.start()
    await rounds(world, operator, first, 4)
    for (const key of first) world.remove(key)
    await rounds(world, operator, first, 1)
    world.signers.vanish('signer-1')
    world.addSigner('signer-2', {}, { limits: [limit({ maxCount: 2 })] })
    const later = ['exit:team-a/again']
    world.addExit('exit:team-a/again', { validator: { network: 'hoodi', pubkey: world.validator(9) }, signer: 'signer-2' })
    await rounds(world, world.start(), later, 4)
    expect(reasonOf(world, 'exit:team-a/again')).toBe('LimitReached')
    expect(signedNow(world)).toBe(2)
    // Its record is kept for as long as the limit needs it, though nobody else does.
    for (const { metadata } of world.records.list()) world.records.remove(metadata.name)
    await rounds(world, world.start(), later, 2)
    expect(world.records.list().filter(({ status }) => status?.outcome !== undefined)).toHaveLength(2)
    expect(world.records.list().map(({ status }) => status?.held ?? '')).toContainEqual(
      expect.stringContaining('A limit of StakingSigner signer-2 (spec.policy.limits) counts it until 2030-01-02T'),
    )
  })

  /** One that a limit of 60 days counts was signed for and is gone, 45 days ago: longer than records are kept otherwise. */
  async function afterRetention() {
    const world = worldOf([limit({ maxCount: 1, window: '60d' })])
    const [first = '', second = ''] = exits(2)
    addExits(world, [first])
    const operator = world.start()
    await rounds(world, operator, [first], 4)
    world.remove(first)
    await rounds(world, operator, [first], 1)
    const lane = laneKey({ chainId: hoodi.chainId, address: addressOf(0) })
    for (let days = 0; days < 45; days += 5) {
      world.clock.advance(5 * DAY)
      await operator.reconcile('records', lane)
    }
    return { world, operator, lane, second }
  }

  test('for longer than records are kept otherwise', async () => {
    const { world, operator, lane, second } = await afterRetention()
    addExits(world, [second], 1)
    await rounds(world, operator, [second], 3)
    expect(reasonOf(world, second)).toBe('LimitReached')
    world.clock.advance(16 * DAY)
    await rounds(world, operator, [second], 4)
    expect(world.ready(second)).toBe(true)
    world.clock.advance(31 * DAY)
    await operator.reconcile('records', lane)
    expect(world.records.list()).toHaveLength(1)
  })

  test.each<[string, (world: World) => void, RegExp]>([
    ['a clock that is set forward by more than that', (world) => world.clock.setBack(-100 * DAY), /counts it by the chain's own time/],
    ['limits that can not be read', (world) => world.editPolicy({ limits: [{ window: '60d', maxSum: '1' }] as never }), /can't be read/],
    ['a signer that is made anew', (world) => world.signers.vanish('signer-1'), /^$/],
  ])('for longer than records are kept otherwise, whatever is wrong then: %s', async (_what, befall, held) => {
    const { world, operator, lane, second } = await afterRetention()
    const before = world.signers.get('signer-1')
    befall(world)
    for (let look = 0; look < 3; look++) {
      world.clock.advance(HOUR)
      await operator.reconcile('records', lane)
    }
    expect(world.records.list()).toHaveLength(1)
    // Nor when somebody deletes it, as long as there is a signer whose limits count it.
    for (const { metadata } of held.test('') ? [] : world.records.list()) world.records.remove(metadata.name)
    for (let look = 0; look < 3; look++) await operator.reconcile('records', lane)
    expect(world.records.list().map(({ status }) => status?.held ?? '')).toEqual([expect.stringMatching(held)])
    if (before !== undefined && world.signers.get('signer-1') === undefined) world.addSigner('signer-1', {}, before.spec.policy)
    world.editPolicy({ limits: [limit({ maxCount: 1, window: '60d' })] })
    addExits(world, [second], 1)
    await rounds(world, operator, [second], 3)
    expect(signedNow(world)).toBe(1)
    expect(reasonOf(world, second)).toBe('LimitReached')
  })

  test('once, however often its price is raised; and no more when its cancel is final', async () => {
    const world = worldOf([limit({ maxCount: 1 })])
    world.addStake('team-a/first')
    const operator = world.start()
    await world.visit(operator, 'team-a/first')
    for (const _bump of [1, 2]) {
      world.chain.state.baseFee *= 2n
      world.clock.advance(120_000)
      await world.visit(operator, 'team-a/first')
    }
    expect(world.record('team-a/first')?.status?.attempts?.length).toBeGreaterThan(1)
    world.addStake('team-a/second')
    await world.visit(operator, 'team-a/second')
    expect(reasonOf(world, 'team-a/second')).toBe('LimitReached')
    // It is cancelled, as another one waits behind it; until that is final it may land, and counts.
    world.editSpec({ suspend: true }, 'team-a/first')
    world.addStake('team-b/third')
    const keys = ['team-a/first', 'team-a/second', 'team-b/third']
    for (let poll = 0; poll < 8; poll++) {
      for (const key of keys) await world.visit(operator, key)
      world.clock.advance(POLL)
    }
    expect(world.record('team-a/first')?.status?.attempts?.some(({ kind }) => kind === 'Cancel')).toBe(true)
    expect(signedNow(world)).toBe(1)
    world.chain.mine(1, (versions) => versions.find(({ data }) => data === '0x'))
    await rounds(world, operator, keys, 5)
    expect(world.record('team-a/first')?.status?.closed).toMatchObject([{ by: 'Cancel' }])
    expect(world.chain.deposits()).toHaveLength(1)
    expect(waiting(world, keys)).toHaveLength(1)
  })

  test('also a place that was taken for it and that it had no time to name', async () => {
    const world = worldOf([limit({ maxCount: 1 })])
    world.addStake('team-a/first')
    const dying = world.start((point, self) => {
      if (point.startsWith('after place create')) self.kill()
    })
    await world.visit(dying, 'team-a/first')
    expect(world.places.list()).toHaveLength(1)
    world.editSpec({ suspend: true }, 'team-a/first')
    world.addStake('team-a/second')
    const operator = world.start()
    await world.visit(operator, 'team-a/second')
    expect(reasonOf(world, 'team-a/second')).toBe('LimitReached')
    expect(signedNow(world)).toBe(0)
    // The place is filled, and counts no more once that is final.
    for (let round = 0; round < 8; round++) {
      world.chain.mine()
      world.clock.advance(POLL)
      for (const key of ['team-a/first', 'team-a/second']) await world.visit(operator, key)
    }
    expect(signedNow(world)).toBe(1)
    expect(world.record('team-a/first')?.status?.attempts).toBeUndefined()
    expect(world.chain.deposits()).toHaveLength(1)
  })
})

describe('with two leaders', () => {
  test('one whose watches are silent signs nothing beside what the other has signed', async () => {
    const world = worldOf([limit({ maxCount: 3 })])
    const keys = exits(8)
    addExits(world, keys)
    const other = world.start()
    for (const key of keys) {
      const result = await other.visit(key)
      expect(result).not.toBeUndefined()
    }
    const stale = world.start()
    await stale.reconcile('records', laneKey({ chainId: hoodi.chainId, address: addressOf(0) })).catch(() => undefined)
    stale.caches.records.frozen = true
    stale.caches.places.frozen = true
    await rounds(world, other, keys, 2)
    for (let look = 0; look < 4; look++) {
      await stale.visitLanes().catch(() => undefined)
      world.clock.advance(POLL)
    }
    expect(signedNow(world)).toBe(3)
  })

  test.each([1, 2, 3, 4])('that act at once, in any order, no more is signed than the limit (seed %i)', async (seed) => {
    const random = seededRandom(seed)
    const world = worldOf([limit({ maxCount: 2 })])
    const keys = exits(5)
    addExits(world, keys)
    const around: Around = (point) => (point.includes('.') ? shuffle(random) : undefined)
    const leaders = [world.start(around), world.start(around)]
    const lane = laneKey({ chainId: hoodi.chainId, address: addressOf(0) })
    for (let round = 0; round < 8; round++) {
      await Promise.all(
        leaders.map(async (leader) => {
          await Promise.all(keys.map((key) => leader.visit(key).catch(() => undefined)))
          for (let look = 0; look < 3; look++) await leader.reconcile('records', lane).catch(() => undefined)
        }),
      )
      if (round % 2 === 1) world.chain.mine()
      world.clock.advance(POLL)
    }
    expect(signedNow(world)).toBe(2)
    expect(world.chain.violations).toEqual([])
  })

  test('a place that the other has just taken ends the turn: what it was taken for is counted before any more', async () => {
    const world = worldOf([limit({ maxTotalEth: '100' })])
    const small = ['team-a/small-1', 'team-a/small-2', 'team-a/small-3']
    const keys = [...small, 'team-b/large']
    let isTaken = false
    const operator = world.start((point) => {
      if (!point.startsWith('before place create') || isTaken) return
      isTaken = true
      const { metadata } = world.record('team-b/large') ?? {}
      const transaction = { name: metadata?.name ?? '', uid: metadata?.uid ?? '', generation: 0 }
      const where = { chainId: hoodi.chainId, address: addressOf(0) }
      const address = where.address.toLowerCase() as typeof where.address
      world.places.create({ metadata: { name: placeName(where, 0) }, spec: { ...where, address, nonce: 0, transaction } })
    })
    for (const key of keys) {
      world.addStake(key, { amountEth: key === 'team-b/large' ? '64' : '32' })
      for (let step = 0; step < 6; step++) await operator.visit(key).catch(() => undefined)
      expect(world.record(key), key).toBeDefined()
      world.clock.advance(1_000)
    }
    await operator.visitLanes()
    expect(isTaken).toBe(true)
    // Whoever has a place may be signed for by whoever took it.
    expect(world.places.list().map(({ spec }) => world.records.get(spec.transaction?.name ?? '')?.spec.owner.name)).toEqual(['large'])
    await rounds(world, operator, keys, 5)
    const paid = world.chain.everSent().reduce((sum, { valueWei }) => sum + valueWei, 0n)
    expect(paid).toBeLessThanOrEqual(100n * ETH)
  })

  test('ended at every single point and followed by another, no more is signed than the limit', { tags: 'whole' }, async () => {
    const points: string[] = []
    const keys = ['team-a/one', 'team-a/two']
    const begin = () => {
      const world = worldOf([limit({ maxTotalEth: '40' })])
      for (const key of keys) world.addStake(key)
      return world
    }
    const counting = begin()
    await rounds(
      counting,
      counting.start((point) => void points.push(point)),
      keys,
      3,
    )
    expect(counting.chain.deposits()).toHaveLength(1)
    for (let fatal = 0; fatal < points.length; fatal++) {
      if (!/place|record|keys|send/.test(points[fatal] ?? '')) continue
      const world = begin()
      let passed = 0
      const doomed = world.start((_point, self) => {
        if (passed++ === fatal) self.kill()
      })
      await rounds(world, doomed, keys, 3)
      await rounds(world, world.start(), keys, 5)
      expect(signedNow(world), `after an end at ${points[fatal]}`).toBe(1)
      expect(world.chain.deposits(), `after an end at ${points[fatal]}`).toHaveLength(1)
      expect(waiting(world, keys), `after an end at ${points[fatal]}`).toHaveLength(1)
    }
  })
})

describe('a limit that namespaces share', () => {
  /** Each resource by itself, then their lane: nobody is served for having been looked at first. */
  async function together(world: World, operator: Operator, of: readonly string[], count: number): Promise<void> {
    for (let round = 0; round < count; round++) {
      for (const key of of)
        for (let step = 0; step < 8; step++) {
          const result = await operator.visit(key)
          if (typeof result === 'symbol' || result.kind !== 'again') break
        }
      for (let look = 0; look < 3; look++) await operator.visitLanes()
      world.chain.mine()
      world.clock.advance(POLL)
    }
  }
  const signedFor = (world: World, keys: readonly string[]) => keys.filter((key) => world.record(key)?.status?.attempts !== undefined)

  test.each<[string, Partial<SignerLimit>]>([
    ['a count', { maxCount: 4 }],
    ['a total', { maxTotalEth: '128' }],
  ])('is not used up by one that asks for everything first: each has its turn (%s)', async (_what, of) => {
    const world = worldOf([limit(of)])
    const [many, few] = [exits(20, 'team-a'), exits(2, 'team-b')]
    addExits(world, many)
    const operator = world.start()
    for (const key of many) await operator.visit(key)
    world.clock.advance(1_000)
    addExits(world, few, 30)
    await together(world, operator, [...many, ...few], 1)
    expect([signedFor(world, many).length, signedFor(world, few)]).toEqual([2, few])
  })

  test('goes on with whoever has used least of it, whoever has waited longest', async () => {
    const world = worldOf([limit({ maxCount: 3 })])
    const many = exits(8, 'team-a')
    addExits(world, many)
    const operator = world.start()
    await together(world, operator, many, 4)
    expect(signedFor(world, many)).toHaveLength(3)
    const [one = ''] = exits(1, 'team-b')
    addExits(world, [one], 30)
    world.editPolicy({ limits: [limit({ maxCount: 4 })] })
    await together(world, operator, [...many, one], 2)
    expect([signedFor(world, many).length, signedFor(world, [one])]).toEqual([3, [one]])
  })
})

describe('a limit for each namespace', () => {
  test('counts each by itself: one that has used its own keeps nobody else', async () => {
    const world = worldOf([limit({ maxCount: 2, per: 'Namespace' })])
    const [a, b] = [exits(4, 'team-a'), exits(3, 'team-b')]
    addExits(world, a)
    addExits(world, b, 10)
    await rounds(world, world.start(), [...a, ...b], 4)
    expect(waiting(world, [...a, ...b])).toEqual([...a.slice(2), ...b.slice(2)])
    expect(world.condition('Ready', b[2] ?? '')?.message).toContain('2 transactions in 24h for namespace team-b')
    expect(world.condition('Ready', b[2] ?? '')?.message).not.toContain('team-a')
  })

  test('is not freed by passing what was signed to another namespace', async () => {
    const world = worldOf([limit({ maxCount: 1, per: 'Namespace' })])
    const [first = '', second = ''] = exits(2, 'team-a')
    addExits(world, [first])
    const operator = world.start()
    await rounds(world, operator, [first], 4)
    const record = world.record(first)
    world.records.edit(record?.metadata.name ?? '', (one) => ({
      ...one,
      spec: { ...one.spec, owner: { ...one.spec.owner, namespace: 'team-b' }, generation: one.spec.generation + 1 },
    }))
    addExits(world, [second], 1)
    await rounds(world, operator, [second], 2)
    expect(reasonOf(world, second)).toBe('LimitReached')
  })
})

describe('what does not fit', () => {
  /** One after the other, as their records are made in that order. */
  async function amounts(world: World, operator: Operator, of: Readonly<Record<string, string>>): Promise<readonly string[]> {
    for (const [key, amountEth] of Object.entries(of)) {
      world.addStake(key, { amountEth })
      await world.visit(operator, key)
      world.clock.advance(1_000)
    }
    return Object.keys(of)
  }

  test('keeps its turn in its namespace: small ones do not go before it for ever, and those of another namespace do', async () => {
    const world = worldOf([limit({ maxTotalEth: '100' })])
    const operator = world.start()
    const keys = await amounts(world, operator, { 'team-a/begun': '64', 'team-a/large': '64', 'team-a/small': '32', 'team-b/small': '32' })
    await rounds(world, operator, keys, 4)
    expect(waiting(world, keys)).toEqual(['team-a/large', 'team-a/small'])
    world.clock.advance(DAY)
    await rounds(world, operator, keys, 4)
    expect(keys.filter((key) => world.ready(key))).toEqual(keys)
  })

  test('and never would, keeps nobody waiting', async () => {
    const world = worldOf([limit({ maxTotalEth: '100' })])
    const operator = world.start()
    const keys = await amounts(world, operator, { 'team-a/huge': '2048', 'team-a/small': '32' })
    await rounds(world, operator, keys, 4)
    expect(world.condition('Ready', 'team-a/huge')).toMatchObject({
      reason: 'LimitReached',
      message: expect.stringContaining('This one (2048 ETH) is more than that by itself. It waits until the limit is raised.'),
    })
    expect(world.ready('team-a/small')).toBe(true)
  })

  test('and is stopped by something else, keeps nobody waiting', async () => {
    const world = worldOf([limit({ maxTotalEth: '100' })])
    const operator = world.start()
    const keys = await amounts(world, operator, { 'team-a/begun': '64', 'team-a/large': '64' })
    expect(reasonOf(world, 'team-a/large')).toBe('LimitReached')
    world.editSpec({ suspend: true }, 'team-a/large')
    world.addStake('team-a/small')
    await rounds(world, operator, [...keys, 'team-a/small'], 4)
    expect(world.ready('team-a/small')).toBe(true)
  })
})

describe('a limit that is changed', () => {
  test('to less than what is in flight stops nothing that was signed, and the next waits', async () => {
    const world = worldOf([])
    const keys = exits(5)
    addExits(world, keys.slice(0, 4))
    const operator = world.start()
    for (const key of keys.slice(0, 4)) await world.visit(operator, key)
    expect(signedNow(world)).toBe(4)
    world.editPolicy({ limits: [limit({ maxCount: 2 })] })
    addExits(world, keys.slice(4), 4)
    // Whoever leads then.
    await rounds(world, world.start(), keys, 5)
    expect(keys.filter((key) => world.ready(key))).toEqual(keys.slice(0, 4))
    expect(waiting(world, keys)).toEqual(keys.slice(4))
    world.editPolicy({ limits: [limit({ maxCount: 5 })] })
    await rounds(world, world.start(), keys, 4)
    expect(world.ready(keys[4])).toBe(true)
  })

  test('while the watches are silent is seen before anything is sent', async () => {
    const world = worldOf([limit({ maxCount: 5 })])
    const keys = exits(2)
    addExits(world, keys.slice(0, 1))
    const operator = world.start()
    await world.visit(operator, keys[0])
    operator.caches.signers.frozen = true
    world.editPolicy({ limits: [limit({ maxCount: 1 })] })
    addExits(world, keys.slice(1), 1)
    await world.visit(operator, keys[1])
    expect(signedNow(world)).toBe(1)
  })

  test.each([
    ['a total in SOL', { window: '24h', maxTotalSol: '1' }],
    ['neither a count nor a total', { window: '24h' }],
    ['a window of nothing', { window: '0h', maxCount: 1 }],
    ['a window of more than a year', { window: '366d', maxCount: 1 }],
    ['a window in milliseconds', { window: '500ms', maxCount: 1 }],
    ['a window without a unit', { window: '86400', maxCount: 1 }],
    ['a negative window', { window: '-1h', maxCount: 1 }],
    ['a total in wei', { window: '24h', maxTotalEth: '32000000000000000000' }],
    ['a total with its unit', { window: '24h', maxTotalEth: '32 ETH' }],
    ['a total of nothing', { window: '24h', maxTotalEth: '0' }],
    ['a count of nothing', { window: '24h', maxCount: 0 }],
    ['an unknown per', { window: '24h', maxCount: 1, per: 'Team' }],
    ['a field of a later version', { window: '24h', maxCount: 1, kinds: ['ValidatorExit'] }],
  ])('to %s admits nothing, where the API server let it through', async (_what, wrong) => {
    const world = worldOf([])
    world.signers.edit('signer-1', (signer) => ({
      ...signer,
      spec: { ...signer.spec, policy: { ...signer.spec.policy, limits: [{ per: 'Signer', ...wrong }] as never } },
    }))
    world.addStake()
    await world.visit(world.start())
    expect(world.stalled()).toBe('PolicyUnreadable')
    expect(world.keys.signed).toEqual([])
  })
})

describe("the operator's clock", () => {
  const full = async () => {
    const world = worldOf([limit({ maxCount: 1 })])
    const keys = exits(2)
    addExits(world, keys)
    const operator = world.start()
    await rounds(world, operator, keys, 4)
    expect(waiting(world, keys)).toEqual(keys.slice(1))
    return { world, keys, operator }
  }

  test('set forward by two days opens nothing: the blocks say otherwise', async () => {
    const { world, keys } = await full()
    world.clock.setBack(-2 * DAY)
    await rounds(world, world.start(), keys, 3)
    expect(signedNow(world)).toBe(1)
  })

  test('set back by two days, and right again, frees nothing too early', async () => {
    const world = worldOf([limit({ maxCount: 1 })])
    const keys = exits(2)
    addExits(world, keys)
    world.clock.setBack(2 * DAY)
    await rounds(world, world.start(), keys, 4)
    expect(signedNow(world)).toBe(1)
    world.clock.setBack(-2 * DAY)
    await rounds(world, world.start(), keys, 4)
    expect(signedNow(world)).toBe(1)
    world.clock.advance(DAY)
    await rounds(world, world.start(), keys, 4)
    expect(signedNow(world)).toBe(2)
  })
})

test('a signer shows what is used of its limits, what is left, and when that frees', async () => {
  const world = worldOf([limit({ maxCount: 3, maxTotalEth: '320' }), limit({ window: '7d', maxCount: 2, per: 'Namespace' })])
  world.addStake('team-a/one')
  world.addStake('team-b/two', { amountEth: '64' })
  const operator = world.start()
  await rounds(world, operator, ['team-a/one', 'team-b/two'], 4)
  await operator.visitSigner('signer-1')
  const day = { network: 'hoodi', window: '24h', per: 'Signer' }
  const week = { network: 'hoodi', window: '7d', per: 'Namespace' }
  expect(world.signers.get('signer-1')?.status?.limits).toEqual([
    { ...day, count: 2, countLeft: 1, usedEth: '96', leftEth: '224', freesAt: expect.stringMatching(/^2030-01-02T00:0/) },
    { ...week, namespace: 'team-a', count: 1, countLeft: 1, freesAt: expect.stringMatching(/^2030-01-08T00:0/) },
    { ...week, namespace: 'team-b', count: 1, countLeft: 1, freesAt: expect.stringMatching(/^2030-01-08T00:0/) },
  ])
})
