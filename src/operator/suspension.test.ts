import { describe, expect, test, vi } from 'vitest'
import { SUSPEND_ANNOTATION } from '../resources/meta.ts'
import { createSuspension, isSuspended } from './suspension.ts'
import { add, none, POLL, said } from './testing/rows.ts'
import { createSolanaWorld, KEY as SOLANA_KEY, type SolanaWorld } from './testing/solana-world.ts'
import { createWorld, EXIT, GWEI, KEY, type Operator, WITHDRAWAL, type World } from './testing/world.ts'

// Signatures are made for real, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 })

describe('the annotation of the lease', () => {
  const assertNotSuspended = (annotations: Readonly<Record<string, string>>) =>
    createSuspension({ leaseAnnotations: () => annotations, log: { warn: () => undefined } })()
  test.each(['true', 'yes', '1', '', 'because of ticket 7', 'False alarm'])('%j stops everything', (value) => {
    expect(isSuspended({ [SUSPEND_ANNOTATION]: value })).toBe(true)
    expect(() => assertNotSuspended({ [SUSPEND_ANNOTATION]: value })).toThrow(/is suspended/)
  })
  test.each([{}, { [SUSPEND_ANNOTATION]: 'false' }, { [SUSPEND_ANNOTATION]: ' False ' }, { 'example.com/suspend': 'true' }])(
    '%j stops nothing',
    (annotations) => {
      expect(isSuspended(annotations)).toBe(false)
      expect(() => assertNotSuspended(annotations)).not.toThrow()
    },
  )
})

/** The two ways to stop in an emergency. */
const stops: readonly {
  readonly how: string
  readonly reason: string
  readonly stop: (world: World, operator: Operator) => void
  readonly goOn: (world: World, operator: Operator) => void
}[] = [
  {
    how: 'the signer is suspended',
    reason: 'SignerSuspended',
    stop: (world) => world.editSigner({ suspend: true }),
    goOn: (world) => world.editSigner({ suspend: false }),
  },
  {
    how: 'the operator is suspended',
    reason: 'OperatorSuspended',
    stop: (_world, operator) => {
      operator.state.leaseAnnotations = { [SUSPEND_ANNOTATION]: 'true' }
    },
    goOn: (_world, operator) => {
      operator.state.leaseAnnotations = {}
    },
  },
]

async function polls(world: World, operator: Operator, key: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    world.clock.advance(POLL)
    await world.visit(operator, key)
  }
}

describe.each(stops)('while $how', ({ reason, stop, goOn }) => {
  test.each([KEY, EXIT, WITHDRAWAL])('nothing is signed for %s; it waits, and goes on afterwards, once', async (key) => {
    const world = createWorld()
    world.addSigner()
    add(world, key)
    const operator = world.start()
    stop(world, operator)
    await polls(world, operator, key, 5)
    expect(world.condition('Ready', key), said(world, key)).toMatchObject({ status: 'False', reason })
    expect(world.condition('Stalled', key)?.status).toBe('False')
    expect(world.chain.everSent()).toEqual([])
    goOn(world, operator)
    await world.settle(operator, [key])
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(world.chain.everSent()).toHaveLength(1)
  })

  test('what was sent before is followed to its end', async () => {
    const world = createWorld()
    world.addSigner()
    add(world, KEY)
    const operator = world.start()
    await world.visit(operator, KEY)
    expect(world.chain.everSent()).toHaveLength(1)
    stop(world, operator)
    await world.settle(operator, [KEY])
    expect(world.ready(KEY), said(world, KEY)).toBe(true)
    expect(world.chain.everSent()).toHaveLength(1)
  })

  test('a price that rises makes no new version, and a node that forgets it is not sent it again', async () => {
    const world = createWorld()
    world.addSigner()
    add(world, KEY)
    const operator = world.start()
    await world.visit(operator, KEY)
    stop(world, operator)
    world.chain.state.baseFee = 60n * GWEI
    world.chain.mine(1, none)
    world.chain.forget()
    const before = world.chain.everSent().length
    await polls(world, operator, KEY, 60)
    expect(world.chain.everSent()).toHaveLength(before)
    expect(world.chain.pool()).toEqual([])
    world.chain.state.baseFee = 10n * GWEI
    goOn(world, operator)
    await world.settle(operator, [KEY])
    expect(world.ready(KEY), said(world, KEY)).toBe(true)
    expect(world.chain.violations).toEqual([])
  })
})

describe('a signer that is suspended while many of its transactions are prepared', () => {
  const keys = Array.from({ length: 20 }, (_, n) => `team-a/stake-${n}`)
  /** Twenty stakes that are ready to be signed, all in one look, and a signer that is suspended at a point of it. */
  async function many(policy: object, isIt: (point: string, world: World) => boolean): Promise<{ world: World; operator: Operator }> {
    const world = createWorld()
    world.addSigner('signer-1', {}, policy)
    for (const key of keys) world.addStake(key)
    const before = world.start()
    // Their records are made, and nobody has looked at the lane yet.
    for (const key of keys) while (world.record(key) === undefined) await before.visit(key)
    before.kill()
    let isDone = false
    const operator = world.start((point) => {
      if (isDone || !isIt(point, world)) return
      isDone = true
      world.editSigner({ suspend: true })
    })
    return { world, operator }
  }
  const policies: readonly [string, object][] = [
    ['without a limit', {}],
    ['under a limit', { limits: [{ window: '24h', per: 'Signer', maxCount: 100 }] }],
  ]

  test.each(policies)('takes no place for them, %s', async (_what, policy) => {
    const { world, operator } = await many(policy, (point) => point === 'after api.ethereumStake')
    await operator.visitLanes()
    expect(world.signers.get('signer-1')?.spec.suspend).toBe(true)
    expect(world.keys.signed).toHaveLength(0)
    expect(world.places.list()).toEqual([])
  })

  test.each(policies)('signs none of them once their places are taken, %s', async (_what, policy) => {
    const { world, operator } = await many(policy, (point) => point.startsWith('after place create'))
    await operator.visitLanes()
    expect(world.places.list().length).toBeGreaterThan(0)
    expect(world.keys.signed).toHaveLength(0)
    world.editSigner({ suspend: false })
    await world.settle(operator, keys, 30)
    expect(keys.filter((key) => !world.ready(key))).toEqual([])
    expect(world.chain.violations).toEqual([])
  })

  test('sends none of those that it has signed', async () => {
    const { world, operator } = await many({}, (point, { keys }) => point.startsWith('after record write') && keys.signed.length > 0)
    await operator.visitLanes()
    expect(world.chain.everSent()).toEqual([])
    const signed = world.keys.signed.length
    for (let n = 0; n < 3; n++) {
      world.clock.advance(POLL)
      await operator.visitLanes()
    }
    expect(world.keys.signed.slice(signed).filter(({ transaction }) => transaction.data !== '0x')).toHaveLength(0)
  })
})

type SolanaWorldOperator = ReturnType<SolanaWorld['start']>
describe('a Solana stake', () => {
  test('of a suspended signer is not signed, and goes on afterwards', async () => {
    const world = createSolanaWorld()
    world.addSigners()
    world.addStake()
    world.editSigner({ suspend: true }, 'payer')
    const operator = world.start()
    for (let n = 0; n < 5; n++) await world.visit(operator, SOLANA_KEY)
    expect(world.condition('Ready', SOLANA_KEY)).toMatchObject({ status: 'False', reason: 'SignerSuspended' })
    expect(world.condition('Stalled', SOLANA_KEY)?.status).toBe('False')
    world.editSigner({ suspend: false }, 'payer')
    await world.settle(operator)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  test('of a suspended operator is not signed, and goes on afterwards', async () => {
    const world = createSolanaWorld()
    world.addSigners()
    world.addStake()
    const operator = world.start()
    operator.state.leaseAnnotations = { [SUSPEND_ANNOTATION]: 'true' }
    for (let n = 0; n < 5; n++) await world.visit(operator, SOLANA_KEY)
    expect(world.condition('Ready', SOLANA_KEY)).toMatchObject({ status: 'False', reason: 'OperatorSuspended' })
    operator.state.leaseAnnotations = {}
    await world.settle(operator)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  describe.each([
    {
      how: 'its payer is suspended',
      reason: 'SignerSuspended',
      set: (world: SolanaWorld, _operator: SolanaWorldOperator, on: boolean) => world.editSigner({ suspend: on }, 'payer'),
    },
    {
      how: 'its withdraw authority is suspended',
      reason: 'SignerSuspended',
      set: (world: SolanaWorld, _operator: SolanaWorldOperator, on: boolean) => world.editSigner({ suspend: on }, 'withdrawer'),
    },
    {
      how: 'the operator is suspended',
      reason: 'OperatorSuspended',
      set: (_world: SolanaWorld, operator: SolanaWorldOperator, on: boolean) => {
        operator.state.leaseAnnotations = on ? { [SUSPEND_ANNOTATION]: 'true' } : {}
      },
    },
  ])('while $how', ({ reason, set }) => {
    const steps = [
      { step: 'stake', desiredState: 'Active', expected: { funded: 1, withdrawn: 0 } },
      { step: 'deactivation', desiredState: 'Inactive', expected: { funded: 1, withdrawn: 0 } },
      { step: 'withdrawal', desiredState: 'Withdrawn', expected: { funded: 1, withdrawn: 1 } },
    ] as const
    async function rightBefore(
      index: number,
      around?: Parameters<SolanaWorld['start']>[0],
    ): Promise<{ world: SolanaWorld; operator: SolanaWorldOperator }> {
      const world = createSolanaWorld()
      world.addSigners()
      world.addStake()
      const before = world.start()
      for (const { desiredState } of steps.slice(0, index)) {
        world.editSpec({ desiredState })
        await world.settle(before)
      }
      before.kill()
      world.editSpec({ desiredState: steps[index]?.desiredState ?? 'Active' })
      return { world, operator: world.start(around) }
    }

    test.each(steps)('nothing is signed of its $step, not even for the staking API', async ({ step, expected }) => {
      const { world, operator } = await rightBefore(steps.findIndex((one) => one.step === step))
      const signed = world.keys.signed.length
      set(world, operator, true)
      for (let n = 0; n < 5; n++) await world.visit(operator, SOLANA_KEY)
      expect(world.condition('Ready', SOLANA_KEY)?.reason, world.explain()).toBe(reason)
      expect(world.stalled()).toBe('')
      expect(world.keys.signed).toHaveLength(signed)
      set(world, operator, false)
      await world.settle(operator)
      world.assertMoney(expected)
    })

    test.each(steps)(
      'what was signed of its $step and not sent is not sent by the next leader; it is done once afterwards',
      async ({ step, expected }) => {
        const { world, operator: dying } = await rightBefore(
          steps.findIndex((one) => one.step === step),
          (point, self) => {
            if (point.startsWith('before send')) self.kill()
          },
        )
        for (let n = 0; n < 5 && !dying.killed; n++) await world.visit(dying, SOLANA_KEY)
        expect(dying.killed).toBe(true)
        const landed = world.cluster.landed().length
        const sent: string[] = []
        const operator = world.start((point) => {
          if (/send/i.test(point)) sent.push(point)
        })
        set(world, operator, true)
        for (let n = 0; n < 5; n++) {
          await world.visit(operator, SOLANA_KEY)
          world.cluster.settle()
          world.clock.advance(5_000)
        }
        expect(sent).toEqual([])
        expect(world.cluster.landed()).toHaveLength(landed)
        set(world, operator, false)
        await world.settle(operator)
        world.assertMoney(expected)
      },
    )

    test('what was sent and lost is not sent again, and is made anew once afterwards', async () => {
      const sent: string[] = []
      const { world, operator } = await rightBefore(0, (point) => {
        if (point.startsWith('before send')) sent.push(point)
      })
      world.cluster.state.forgetful = true
      for (let n = 0; n < 5 && sent.length === 0; n++) await world.visit(operator, SOLANA_KEY)
      expect(sent).toHaveLength(1)
      set(world, operator, true)
      const signed = world.keys.signed.length
      for (let n = 0; n < 5; n++) {
        await world.visit(operator, SOLANA_KEY)
        world.clock.advance(5_000)
      }
      world.cluster.expire()
      world.cluster.state.forgetful = false
      for (let n = 0; n < 3; n++) await world.visit(operator, SOLANA_KEY)
      expect(sent).toHaveLength(1)
      expect(world.keys.signed).toHaveLength(signed)
      set(world, operator, false)
      await world.settle(operator)
      world.assertMoney({ funded: 1, withdrawn: 0 })
    })
  })
})
