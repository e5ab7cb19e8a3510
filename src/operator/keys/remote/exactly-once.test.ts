import { describe, expect, test, vi } from 'vitest'
import { ChainError } from '../../../chains/ethereum/chain.ts'
import { CURVE_ORDER } from '../../../chains/ethereum/signature.ts'
import { systemClock } from '../../../lib/clock.ts'
import { sameHex } from '../../../lib/hex.ts'
import { type Clock, type EthereumKeys, KeyError } from '../../ports.ts'
import { createFakeKeys, testKeys } from '../../testing/fake-keys.ts'
import { createFakeKms, toDer } from '../../testing/fake-kms.ts'
import { misfortune, shuffle } from '../../testing/misfortune.ts'
import { assertOnce, calls, polls, said } from '../../testing/rows.ts'
import { seededRandom } from '../../testing/test-clock.ts'
import { addressOf, createWorld, KEY, type World } from '../../testing/world.ts'

/** A signer that signs in another way each time (AWS KMS): what was signed once is sent once more, and nothing else, whatever befalls the operator. */

// Signatures are made for real, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 })

const [firstKey, secondKey] = testKeys
if (firstKey === undefined || secondKey === undefined) throw new Error('there are keys')

function kmsWorld(options: { readonly nodes?: number; readonly stakes?: number; readonly openKeys?: (clock: Clock) => EthereumKeys } = {}) {
  const kms = createFakeKms(firstKey as `0x${string}`)
  const world = createWorld({ openKeys: (clock) => kms.open(clock), depth: 2, ...options })
  world.addSigner()
  const keys = Array.from({ length: options.stakes ?? 1 }, (_, n) => (n === 0 ? KEY : `team-a/stake-${n + 1}`))
  for (const key of keys) world.addStake(key)
  return { world, kms, keys, signatures: () => kms.asked.filter((one) => one === 'Sign').length }
}
const attempts = (world: World, key = KEY) => world.record(key)?.status?.attempts ?? []
/** Whatever was sent stands in the log, or is a filler of a place that nobody names. */
function assertLogged(world: World, keys: readonly string[]): void {
  const logged = keys.flatMap((key) => attempts(world, key).map(({ hash }) => hash.toLowerCase()))
  for (const { hash, data } of world.chain.everSent()) if (data !== '0x') expect(logged).toContain(hash.toLowerCase())
}

test('the signature stands in the log before anything is sent', async () => {
  const { world, signatures } = kmsWorld()
  const seen: (readonly unknown[])[] = []
  await world.settle(
    world.start((point) => {
      if (point.startsWith('before chain.send')) seen.push(attempts(world).map(({ signature }) => signature))
    }),
  )
  expect(seen).toEqual([[expect.stringMatching(/^0x[0-9a-f]{128}0[01]$/)]])
  expect(signatures()).toBe(1)
  expect(world.ready()).toBe(true)
  world.assertMoney({ deposits: 1 })
  const [{ signature = '' } = {}] = attempts(world)
  expect(BigInt(`0x${signature.slice(66, 130)}`) <= CURVE_ORDER >> 1n).toBe(true)
})

test('ended at every single point of its life and started again, it has paid once, with transactions that all stand in the log', {
  tags: 'whole',
}, async () => {
  const counting = kmsWorld()
  const points: string[] = []
  await counting.world.settle(counting.world.start((point) => void points.push(point)))
  expect(points.some((point) => point.startsWith('after keys.signTransaction'))).toBe(true)
  for (let fatal = 0; fatal < points.length; fatal++) {
    const { world } = kmsWorld()
    let passed = 0
    const doomed = world.start((_point, operator) => {
      if (passed++ === fatal) operator.kill()
    })
    await world.settle(doomed)
    expect(doomed.killed, `ended at ${points[fatal]}`).toBe(true)
    await world.settle(world.start())
    try {
      expect(world.ready()).toBe(true)
      world.assertMoney({ deposits: 1 })
      assertLogged(world, [KEY])
    } catch (error) {
      throw new Error(`after an end at ${points[fatal]}`, { cause: error })
    }
  }
})

test('ended between the log and the network, the very same transaction is sent, and nothing is signed again', async () => {
  const { world, signatures } = kmsWorld()
  const doomed = world.start((point, operator) => {
    if (point.startsWith('before send')) operator.kill()
  })
  await world.settle(doomed, [KEY], 1)
  expect(world.chain.everSent()).toEqual([])
  const [{ hash } = {}] = attempts(world)
  expect(signatures()).toBe(1)
  await world.settle(world.start())
  expect(calls(world).map((one) => one.hash)).toEqual([hash])
  expect(signatures()).toBe(1)
  assertOnce(world, KEY)
})

test('nodes that forget it are given the same bytes again while the signer is gone', async () => {
  const { world, kms, signatures } = kmsWorld()
  await world.visit(world.start())
  const [{ hash } = {}] = attempts(world)
  world.chain.forget()
  kms.state.isGone = true
  const askedBefore = kms.asked.length
  // A new leader, which knows nothing of the signer, and needs nothing of it.
  await world.settle(world.start())
  expect(world.ready()).toBe(true)
  expect(calls(world).every((one) => sameHex(one.hash, hash ?? ''))).toBe(true)
  expect([signatures(), kms.asked.length - askedBefore]).toEqual([1, 0])
  assertOnce(world, KEY)
})

test('ended between the log and the network with the signer gone, it is sent all the same: not if the policy has changed, nor suspended', async () => {
  const { world, kms } = kmsWorld()
  const doomed = world.start((point, operator) => {
    if (point.startsWith('before send')) operator.kill()
  })
  await world.settle(doomed, [KEY], 1)
  kms.state.isGone = true
  world.editPolicy({ allowedNamespaces: { names: ['team-b'] } })
  const operator = world.start()
  await polls(world, operator, KEY, 2)
  expect([world.stalled(), calls(world).length]).toEqual(['NamespaceNotAllowed', 0])
  world.editPolicy({ allowedNamespaces: { names: ['team-a'] } })
  world.editSigner({ suspend: true })
  await polls(world, operator, KEY, 2)
  expect([world.condition('Ready')?.reason, calls(world).length]).toEqual(['SignerSuspended', 0])
  world.editSigner({ suspend: false })
  await world.settle(operator)
  assertOnce(world, KEY)
})

test.each(['a new leader', 'the same leader'])(
  'to %s that would raise its price the signer is gone: nodes that forget it get the same bytes',
  async (who) => {
    const { world, kms } = kmsWorld()
    const first = world.start()
    await world.visit(first)
    const [{ hash, maxFeePerGasWei = '0', maxPriorityFeePerGasWei = '0' } = {}] = attempts(world)
    const operator = who === 'the same leader' ? first : world.start()
    kms.state.isGone = true
    // Above that it pays less than its whole tip.
    world.chain.state.baseFee = BigInt(maxFeePerGasWei) - BigInt(maxPriorityFeePerGasWei) + 1n
    await world.visit(operator)
    world.clock.advance(600_000)
    await world.visit(operator)
    expect(world.condition('Ready')?.reason).toBe('SignerUnavailable')
    world.chain.forget()
    await polls(world, operator, KEY, 2)
    expect(world.condition('Ready')?.reason).toBe('SignerUnavailable')
    expect(world.chain.pool().map((one) => one.hash)).toEqual([hash])
    await world.settle(operator)
    expect(attempts(world)).toHaveLength(1)
    assertOnce(world, KEY)
  },
)

test('one that comes back signs the higher price first, and no cancel, however often the lane is woken between polls', async () => {
  const { world, kms, keys } = kmsWorld({ stakes: 2 })
  const operator = world.start()
  for (const key of keys) await world.visit(operator, key)
  const [{ maxFeePerGasWei = '0', maxPriorityFeePerGasWei = '0' } = {}] = attempts(world)
  expect(keys.map((key) => attempts(world, key).map(({ nonce }) => nonce))).toEqual([[0], [1]])
  kms.state.isGone = true
  world.chain.state.baseFee = BigInt(maxFeePerGasWei) - BigInt(maxPriorityFeePerGasWei) + 1n
  await world.visit(operator)
  world.clock.advance(600_000)
  // Longer than a lane is patient with what passes, though others wait behind it.
  await polls(world, operator, KEY, 6)
  expect(world.condition('Ready')?.reason).toBe('SignerUnavailable')
  kms.state.isGone = false
  for (let second = 0; second < 45; second++) {
    await world.visit(operator)
    world.clock.advance(1_000)
  }
  for (const key of keys)
    expect(
      attempts(world, key).map(({ kind }) => kind),
      said(world, key),
    ).toEqual(['Call', 'Call'])
  await world.settle(operator, keys)
  world.assertMoney({ deposits: 2 })
  assertLogged(world, keys)
})

test('one that signs cancels alone, by a rule of its own, moves the lane all the same: what others wait behind is cancelled', async () => {
  let isStrict = false
  const { world, keys } = kmsWorld({
    stakes: 2,
    openKeys(clock) {
      const remote = createFakeKms(firstKey).open(clock)
      return {
        ...remote,
        async signTransaction(keyName, from, transaction, signal) {
          if (isStrict && transaction.data !== '0x') throw new KeyError('refused', 'The remote signer kms refuses to sign.')
          return remote.signTransaction(keyName, from, transaction, signal)
        },
      }
    },
  })
  const operator = world.start()
  for (const key of keys) await world.visit(operator, key)
  const [{ maxFeePerGasWei = '0', maxPriorityFeePerGasWei = '0' } = {}] = attempts(world)
  isStrict = true
  world.chain.state.baseFee = BigInt(maxFeePerGasWei) - BigInt(maxPriorityFeePerGasWei) + 1n
  await world.visit(operator)
  world.clock.advance(600_000)
  for (let second = 0; second < 60 && attempts(world).length === 1; second++) {
    await world.visit(operator)
    world.clock.advance(1_000)
  }
  expect(
    attempts(world).map(({ kind }) => kind),
    said(world, KEY),
  ).toEqual(['Call', 'Cancel'])
})

test('a cancel whose price would be raised while the signer is gone is given to nodes that forget it, too', async () => {
  const { world, kms, keys } = kmsWorld({ stakes: 2 })
  const first = world.start()
  await world.visit(first)
  world.editSpec({ suspend: true })
  for (let round = 0; round < 3; round++) for (const key of keys) await polls(world, first, key, 1)
  const cancel = attempts(world).findLast(({ kind }) => kind === 'Cancel')
  expect(cancel?.signature).toBeDefined()
  kms.state.isGone = true
  const operator = world.start()
  world.chain.state.baseFee = BigInt(cancel?.maxFeePerGasWei ?? '0') - BigInt(cancel?.maxPriorityFeePerGasWei ?? '0') + 1n
  await world.visit(operator)
  world.clock.advance(600_000)
  world.chain.forget()
  await polls(world, operator, KEY, 2)
  expect(world.chain.pool().map(({ hash }) => hash)).toContain(cancel?.hash)
  expect(attempts(world).filter(({ kind }) => kind === 'Cancel')).toHaveLength(1)
})

test('the same leader gives them the same bytes though the signer is gone', async () => {
  const { world, kms, signatures } = kmsWorld()
  const operator = world.start()
  await world.visit(operator)
  world.chain.forget()
  kms.state.isGone = true
  await world.settle(operator)
  expect(signatures()).toBe(1)
  expect(new Set(calls(world).map((one) => one.hash)).size).toBe(1)
  assertOnce(world, KEY)
})

test('a log that was set back to before it was sent pays nothing twice', async () => {
  const { world, signatures } = kmsWorld({ nodes: 2 })
  await world.visit(world.start())
  const [{ hash } = {}] = attempts(world)
  world.loseLog()
  world.editStatus(({ transaction: _gone, ...status }) => status)
  await world.settle(world.start())
  expect(world.record()?.status?.outcome).toMatchObject({ is: 'Landed', hash })
  expect(signatures()).toBe(1)
  assertOnce(world, KEY)
})

test('a log that was set back between the signature and the network gives the same nonce to another version of it', async () => {
  const { world } = kmsWorld()
  const doomed = world.start((point, operator) => {
    if (point.startsWith('before send')) operator.kill()
  })
  await world.settle(doomed, [KEY], 1)
  const [lost] = attempts(world)
  world.loseLog()
  world.service.state.lie = (body) => ({ ...body, transaction: { status: 'awaiting_submission' } })
  const operator = world.start()
  await world.visit(operator)
  world.service.state.lie = undefined as never
  const sent = calls(world)
  expect(sent).toHaveLength(1)
  expect(sent[0]?.hash).not.toBe(lost?.hash)
  expect(sent[0]?.nonce).toBe(lost?.nonce)
  expect(world.chain.violations).toEqual([])
})

test('somebody changes the signature in the log: nothing is sent', async () => {
  const { world, signatures } = kmsWorld()
  const doomed = world.start((point, operator) => {
    if (point.startsWith('before send')) operator.kill()
  })
  await world.settle(doomed, [KEY], 1)
  world.editRecord((record) => {
    const [first, ...rest] = record.status?.attempts ?? []
    const signature = `${first?.signature?.slice(0, -1)}${first?.signature?.endsWith('0') ? '1' : '0'}`
    return { ...record, status: { ...record.status, attempts: [{ ...first, signature }, ...rest] } }
  })
  await polls(world, world.start(), KEY, 2)
  expect(said(world, KEY)).toMatch(/VerificationFailed.*with its signature, is another one: somebody changed it/)
  expect(calls(world)).toEqual([])
  expect(signatures()).toBe(1)
})

test('a mounted key that moves to the remote signer: what it has signed is followed to its end', async () => {
  const kms = createFakeKms(firstKey)
  const mounted = createFakeKeys()
  let isRemote = false
  const { world } = kmsWorld({ openKeys: (clock) => (isRemote ? kms.open(clock) : mounted.keys) })
  await world.visit(world.start())
  expect(attempts(world)[0]?.signature).toBeUndefined()
  isRemote = true
  const operator = world.start()
  world.chain.forget()
  // What nobody has the bytes of gives way to another version, under the same nonce.
  await polls(world, operator, KEY, 3)
  expect(attempts(world).map(({ nonce, kind, signature }) => [nonce, kind, signature !== undefined])).toEqual([
    [0, 'Call', false],
    [0, 'Call', true],
  ])
  await world.settle(operator)
  assertOnce(world, KEY)
  assertLogged(world, [KEY])
})

test('where no dearer version fits within the cap, what a mounted key has signed and nodes lost is cancelled, and made again', async () => {
  const kms = createFakeKms(firstKey)
  const mounted = createFakeKeys()
  let isRemote = false
  const { world } = kmsWorld({ openKeys: (clock) => (isRemote ? kms.open(clock) : mounted.keys) })
  // 21 gwei are offered, and an eighth more is above the cap.
  world.editPolicy({ maxFeePerGasGwei: '22' })
  await world.visit(world.start())
  isRemote = true
  const operator = world.start()
  world.chain.forget()
  await polls(world, operator, KEY, 3)
  expect(attempts(world).map(({ nonce, kind, signature }) => [nonce, kind, signature !== undefined])).toEqual([
    [0, 'Call', false],
    [0, 'Cancel', true],
  ])
  await world.settle(operator, [KEY], 30)
  expect(attempts(world).at(-1)).toMatchObject({ nonce: 1, kind: 'Call', signature: expect.any(String) })
  assertOnce(world, KEY)
  assertLogged(world, [KEY])
})

describe('a signer that signs something else', () => {
  const otherDigest = `0x${'ab'.repeat(32)}` as const
  test.each<[string, (kms: ReturnType<typeof createFakeKms>['state']) => void]>([
    ['another digest', (state) => Object.assign(state, { digest: () => otherDigest })],
    ['with another key', (state) => Object.assign(state, { key: secondKey })],
    ['what is no signature', (state) => Object.assign(state, { der: () => new Uint8Array([0x30, 0]) })],
    ['numbers off the curve', (state) => Object.assign(state, { der: () => toDer(CURVE_ORDER, 1n) })],
    ['with bytes after it', (state) => Object.assign(state, { der: (der: Uint8Array) => Uint8Array.from([...der, 0]) })],
  ])('%s: it is thrown away, said, and nothing is written or sent', async (_what, change) => {
    const { world, kms, signatures } = kmsWorld()
    const operator = world.start()
    // Its address was asked for while it was well.
    await operator.visitSigner('signer-1')
    change(kms.state)
    await polls(world, operator, KEY, 2)
    expect(signatures()).toBeGreaterThan(0)
    expect(world.condition('Stalled')).toMatchObject({ status: 'True', reason: 'SignerMisbehaves' })
    expect(world.refusals).toContain('SignerMisbehaves')
    expect(attempts(world)).toEqual([])
    expect(world.chain.everSent()).toEqual([])
  })
})

describe('a signer that is gone', () => {
  test('is a wait that takes no nonces, is shown on the signer, and goes on by itself', async () => {
    const { world, kms, keys } = kmsWorld({ stakes: 3 })
    kms.state.isGone = true
    const operator = world.start()
    for (const key of keys) await polls(world, operator, key, 2)
    await operator.visitSigner('signer-1')
    for (const key of keys) {
      expect(world.condition('Ready', key)?.reason).toBe('SignerUnavailable')
      expect(world.condition('Stalled', key)?.status).toBe('False')
    }
    const ready = world.signers.get('signer-1')?.status?.conditions?.find(({ type }) => type === 'Ready')
    expect(ready).toMatchObject({ status: 'False', reason: 'SignerUnavailable' })
    expect(world.places.list()).toEqual([])
    kms.state.isGone = false
    world.clock.advance(60_000)
    await world.settle(operator, keys, 20)
    world.assertMoney({ deposits: 3 })
    await operator.visitSigner('signer-1')
    expect(world.signers.get('signer-1')?.status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
  })

  test('goes between the place and the signature: the same nonce is gone on with', async () => {
    const { world, kms } = kmsWorld()
    const operator = world.start()
    await operator.visitSigner('signer-1')
    kms.state.before = async () => {
      kms.state.isGone = true
    }
    await polls(world, operator, KEY, 3)
    expect(world.places.list()).toHaveLength(1)
    expect(attempts(world)).toEqual([])
    kms.state.before = async () => {}
    kms.state.isGone = false
    world.clock.advance(60_000)
    await world.settle(operator)
    expect(attempts(world).map(({ nonce, kind }) => [nonce, kind])).toEqual([[0, 'Call']])
    assertOnce(world, KEY)
  })

  test('answers that it may not: a person must look, and it goes on once it may', async () => {
    const { world, kms } = kmsWorld()
    const operator = world.start()
    kms.state.error = { status: 400, type: 'AccessDeniedException' }
    await polls(world, operator, KEY, 2)
    expect(world.condition('Stalled')).toMatchObject({ status: 'True', reason: 'SignerRefused' })
    expect(said(world, KEY)).toMatch(/AccessDeniedException/)
    expect(said(world, KEY)).not.toMatch(/secret words/)
    kms.state.error = undefined
    world.clock.advance(300_000)
    await world.settle(operator)
    assertOnce(world, KEY)
  })
})

test('an answer that comes after the lease was lost is dropped: it is neither written down nor sent', async () => {
  const { world, kms } = kmsWorld()
  const operator = world.start()
  kms.state.before = async () => operator.depose()
  await world.visit(operator).catch(() => undefined)
  expect(attempts(world)).toEqual([])
  expect(world.chain.everSent()).toEqual([])
  kms.state.before = async () => {}
  await world.settle(world.start())
  assertOnce(world, KEY)
})

test('one that hangs holds up no other lane, and is asked in vain once, not once for each', { tags: 'whole' }, async () => {
  const kms = createFakeKms(firstKey)
  const mounted = createFakeKeys()
  const world = createWorld({
    openKeys: (clock) => {
      const remote = kms.open(clock, { timeoutMs: 1_500, sleep: systemClock.sleep })
      const of = (keyName: string) => (keyName === 'key-0' ? remote : mounted.keys)
      return {
        address: (keyName, signal) => of(keyName).address(keyName, signal),
        signTransaction: (keyName, ...rest) => of(keyName).signTransaction(keyName, ...rest),
        probe: async (keyName, signal) => of(keyName).probe?.(keyName, signal),
      }
    },
  })
  world.addSigner()
  world.addSigner('signer-2', { keyName: 'key-1', address: addressOf(1) }, {}, 1)
  const hanging = Array.from({ length: 20 }, (_, n) => `team-a/hanging-${n}`)
  for (const key of hanging) world.addStake(key)
  world.addStake('team-a/other', { signer: 'signer-2' })
  const operator = world.start()
  await operator.visitSigner('signer-1')
  kms.state.before = () => new Promise(() => {})
  for (const key of hanging) await world.visit(operator, key)
  const asked = kms.asked.filter((one) => one === 'Sign').length
  expect(asked).toBeGreaterThan(0)
  expect(asked).toBeLessThanOrEqual(20)
  for (const key of hanging) expect(world.condition('Ready', key)?.reason).toBe('SignerUnavailable')
  await world.settle(operator, ['team-a/other'])
  expect(world.ready('team-a/other')).toBe(true)
  // Left alone for a while, a single call tries again.
  expect(kms.asked.filter((one) => one === 'Sign').length - asked).toBeLessThanOrEqual(5)
})

const seeds = Array.from({ length: Number(process.env.FUZZ_SEEDS ?? 2) }, (_, seed) => seed)
test.each(seeds)('two leaders, calls that fail and operators that end: each stake is paid once (seed %i)', async (seed) => {
  const random = seededRandom(7_000 + seed)
  const { world, kms, keys } = kmsWorld({ stakes: 3 })
  const log: string[] = []
  const around = misfortune({
    random,
    log,
    most: 200,
    ends: 0.004,
    fails: 0.015,
    ofChain: () => new ChainError('unavailable', 'no answer'),
    order: () => shuffle(random),
  })
  const start = () => world.start(around, random)
  const leaders = [start(), start()]
  for (let round = 0; round < 120; round++) {
    const isCalm = round > 50
    if (isCalm) Object.assign(kms.state, { isGone: false })
    else {
      kms.state.isGone = random() < 0.2
      if (random() < 0.1) world.chain.forget()
      world.chain.state.baseFee = BigInt([2, 10, 25, 45][Math.floor(random() * 4)] ?? 2) * 1_000_000_000n
    }
    await Promise.all(
      leaders.map((leader) =>
        Promise.all([...keys.map((key) => leader.visit(key).catch(() => undefined)), leader.visitLanes().catch(() => undefined)]),
      ),
    )
    for (const [index, leader] of leaders.entries()) if (leader.killed) leaders[index] = start()
    world.clock.advance(12_000)
    if (random() < 0.6) world.chain.mine(1, (versions) => versions[Math.floor(random() * versions.length)])
    if (isCalm && keys.every((key) => world.ready(key))) break
  }
  try {
    expect(keys.map((key) => (world.ready(key) ? 'ready' : said(world, key)))).toEqual(keys.map(() => 'ready'))
    world.assertMoney({ deposits: keys.length })
    assertLogged(world, keys)
  } catch (error) {
    throw new Error(`seed ${seed}: ${(error as Error).message}\n${log.join('\n')}`, { cause: error })
  }
})
