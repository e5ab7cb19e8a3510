import { describe, expect, test } from 'vitest'
import { readPlan } from '../../../resources/plan.ts'
import { type Around, addressOf, createWorld, EXIT, KEY, withdrawalAddress } from '../../testing/world.ts'

/** `spec.mode: Plan`: everything up to the signature, and nothing of it. */
const planned = async (change: object = {}) => {
  const world = createWorld()
  world.addSigner()
  world.addStake(KEY, { mode: 'Plan', ...change })
  const operator = world.start()
  await world.visit(operator)
  return { world, operator }
}

describe('a stake that is only planned', () => {
  test('is verified and shown with its plan, and nothing is signed or written to the log', async () => {
    const { world, operator } = await planned()
    expect(world.status().phase).toBe('Planned')
    expect(['Ready', 'Reconciling', 'Stalled'].map((type) => world.condition(type)?.status)).toEqual(['False', 'False', 'False'])
    expect(world.condition('Ready')).toMatchObject({
      reason: 'Planned',
      message: expect.stringMatching(/would deposit 32 ETH for 0x.*on hoodi/),
    })
    expect(world.condition('Verified')?.status).toBe('True')
    expect(readPlan(world.status().plan)).toMatchObject({
      purpose: 'Deposit',
      resource: { kind: 'EthereumStake', namespace: 'team-a', name: 'stake-1', uid: world.stakes.get(KEY)?.metadata.uid },
      amount: '32000000000',
      from: addressOf(0),
      withdrawalAddress,
      maxFeePerGasWei: '100000000000',
      subject: world.status().depositData?.pubkey.toLowerCase(),
    })
    await world.settle(operator, [KEY], 4)
    expect([world.records.list(), world.places.list(), world.keys.signed]).toEqual([[], [], []])
    expect(world.events.filter(({ text }) => text.reason === 'Planned')).toHaveLength(1)
    world.assertMoney({ deposits: 0 })
  })

  test('is paid once when it is applied, the same stake, and shows no plan any more', async () => {
    const { world, operator } = await planned()
    const { stakeId } = world.status()
    world.editSpec({ mode: 'Apply' })
    await world.settle(operator)
    expect(world.ready()).toBe(true)
    expect(world.status().stakeId).toBe(stakeId)
    expect(world.status().plan).toBeUndefined()
    world.assertMoney({ deposits: 1 })
  })

  test('says so anew when a cap changes, and forgets its plan when the policy does not admit it any more', async () => {
    const { world, operator } = await planned()
    const before = world.status().plan?.hash
    world.editSpec({ maxFeePerGasGwei: '7' })
    await world.visit(operator)
    expect(readPlan(world.status().plan)).toMatchObject({ maxFeePerGasWei: '7000000000' })
    expect(world.status().plan?.hash).not.toBe(before)
    world.editPolicy({ allowedNamespaces: { names: ['team-b'] } })
    await world.visit(operator)
    expect([world.stalled(), world.status().plan]).toEqual(['NamespaceNotAllowed', undefined])
  })

  test('is not shown with a plan that somebody else wrote', async () => {
    const { world, operator } = await planned()
    const own = world.status().plan
    world.editStatus((status) => ({ ...status, plan: { ...own, withdrawalAddress: addressOf(1) } }))
    await world.visit(operator)
    expect(world.status().plan).toEqual(own)
  })

  test('is cancelled at the staking API and goes when it is deleted', async () => {
    const { world, operator } = await planned()
    world.stakes.remove(KEY)
    await world.settle(operator)
    expect(world.stakes.get(KEY)).toBeUndefined()
    expect(world.service.stakes().map(({ transaction }) => transaction.status)).toEqual(['cancelled'])
    world.assertMoney({ deposits: 0 })
  })

  test('that is suspended too does nothing at all', async () => {
    const { world } = await planned({ suspend: true })
    expect(world.condition('Ready')?.reason).toBe('Suspended')
    expect(world.service.stakes()).toEqual([])
  })
})

/** Tells each call that an operator makes, by its number. */
const counting = (tell: (count: number) => void): Around => {
  let count = 0
  return (point) => {
    if (!point.startsWith('before ')) return
    count += 1
    tell(count)
  }
}

test('set to Plan at any point of its life, a stake is paid once or not at all, and once in the end', {
  tags: 'whole',
  timeout: 60_000,
}, async () => {
  let calls = 0
  const life = createWorld()
  life.addSigner()
  life.addStake()
  await life.settle(
    life.start(
      counting((count) => {
        calls = count
      }),
    ),
  )
  life.assertMoney({ deposits: 1 })
  expect(calls).toBeGreaterThan(30)
  let unpaid = 0
  for (let at = 1; at <= calls; at++) {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const operator = world.start(counting((count) => void (count === at && world.editSpec({ mode: 'Plan' }))))
    await world.settle(operator, [KEY], 4)
    const deposits = world.chain.deposits().length
    expect(deposits, `at call ${at}`).toBeLessThanOrEqual(1)
    if (deposits === 0) {
      unpaid += 1
      expect([world.condition('Ready')?.reason, readPlan(world.status().plan)?.amount], `at call ${at}`).toEqual(['Planned', '32000000000'])
    }
    world.editSpec({ mode: 'Apply' })
    // A fresh operator: what was decided is not remembered.
    await world.settle(world.start(), [KEY], 24)
    expect(world.ready(), `at call ${at}`).toBe(true)
    world.assertMoney({ deposits: 1 })
  }
  expect(unpaid).toBeGreaterThan(5)
})

test.each([
  ['before anything was made', 'before api.createEthereumStake'],
  ['when its record was made', 'after transactions.create'],
  ['when it has its place', 'after signernonces.create'],
])('set to Plan %s, while the watch is silent, it is not sent', async (_when, when) => {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  const seen: string[] = []
  const operator = world.start((point) => {
    seen.push(point)
    if (point !== when || operator.caches.stakes.frozen) return
    operator.caches.stakes.frozen = true
    world.editSpec({ mode: 'Plan' })
  })
  await world.visit(operator)
  expect(seen).toContain(when)
  world.chain.mine()
  world.chain.mine()
  world.assertMoney({ deposits: 0 })
})

describe('an exit that is only planned', () => {
  const world = () => {
    const one = createWorld()
    one.addSigner()
    one.addExit(EXIT, { mode: 'Plan' })
    return one
  }

  test('is verified and shown, asks the staking API for nothing, and holds up no other', async () => {
    const one = world()
    const operator = one.start()
    await one.visit(operator, EXIT)
    expect(one.requestStatus(EXIT).phase).toBe('Planned')
    expect(readPlan(one.requestStatus(EXIT).plan)).toMatchObject({
      purpose: 'Exit',
      subject: one.validator(),
      maxRequestFeeWei: '1000000000000000',
    })
    expect([one.requestStatus(EXIT).requestId, one.records.list(), one.keys.signed]).toEqual([undefined, [], []])
    one.addExit('exit:team-a/exit-2')
    await one.settle(operator, ['exit:team-a/exit-2'])
    expect(one.ready('exit:team-a/exit-2')).toBe(true)
  })

  test('is asked for once when it is applied', async () => {
    const one = world()
    const operator = one.start()
    await one.visit(operator, EXIT)
    one.editRequest(EXIT, (exit) => ({ ...exit, spec: { ...exit.spec, mode: 'Apply' } }))
    await one.settle(operator, [EXIT])
    expect(one.ready(EXIT)).toBe(true)
    expect(one.requestStatus(EXIT).plan).toBeUndefined()
    expect(new Set(one.keys.signed.map(({ transaction }) => transaction.nonce)).size).toBe(1)
  })
})
