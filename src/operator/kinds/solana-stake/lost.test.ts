import { describe, expect, test } from 'vitest'
import { StakingApiError } from '../../../contract/client-error.ts'
import { readyStake, stakeWorld } from '../../testing/solana-stories.ts'
import { KEY, type SolanaOperator, type SolanaWorld } from '../../testing/solana-world.ts'

/** The staking API has lost its data, as after a restore of its database: what was paid is known by the log and by the chain. */

const signed = (world: SolanaWorld): number => world.keys.signed.length
async function visits(world: SolanaWorld, operator: SolanaOperator, count: number): Promise<void> {
  for (let visit = 0; visit < count; visit++) {
    await world.visit(operator)
    world.cluster.settle()
    world.clock.advance(60_000)
  }
}

/** Its money is asked for, and as many epochs pass as that takes. */
async function withdraw(world: SolanaWorld): Promise<void> {
  world.editSpec({ desiredState: 'Withdrawn' })
  const operator = world.start()
  for (let epoch = 0; epoch < 4; epoch++) {
    await world.settle(operator)
    world.cluster.nextEpoch()
  }
  await world.settle(operator)
}

describe('a paid stake that the staking API has lost', () => {
  test('stays Ready, asks for no other, and nothing is signed', async () => {
    const { world, operator } = await readyStake()
    const before = world.status()
    const signatures = signed(world)
    world.service.forget()
    await visits(world, operator, 2)
    await visits(world, world.start(), 3)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status()).toMatchObject({ stakeId: before.stakeId, stakeAccount: before.stakeAccount, voteAccount: before.voteAccount })
    expect(world.service.stakes()).toEqual([])
    expect(signed(world)).toBe(signatures)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  test('is found again by the log and the chain, where its status is gone as well', async () => {
    const { world } = await readyStake()
    const { stakeId, stakeAccount, voteAccount } = world.status()
    world.service.forget()
    world.editStatus(() => undefined)
    await visits(world, world.start(), 4)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status()).toMatchObject({ stakeId, stakeAccount, voteAccount })
    expect(world.service.stakes()).toEqual([])
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  test('is deactivated and withdrawn all the same, by transactions that are made here', async () => {
    const { world, account } = await readyStake()
    world.service.forget()
    await withdraw(world)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status()).toMatchObject({ stakeAccount: account, protocol: { status: 'Withdrawn' } })
    expect(world.service.stakes()).toEqual([])
    world.assertMoney({ funded: 1, withdrawn: 1 })
  })

  test.each(['deactivation', 'withdrawal'] as const)('while its %s is under way, that goes on', async (step) => {
    const { world } = await readyStake()
    world.editSpec({ desiredState: 'Withdrawn' })
    let bringBack: (() => void) | undefined
    const lost = step === 'deactivation' ? 1 : 2
    let told = 0
    const operator = world.start((point) => {
      if (point === 'before api.submitTransaction' && ++told === lost) bringBack = world.service.forget()
    })
    for (let epoch = 0; epoch < 6; epoch++) {
      await world.settle(operator)
      world.cluster.nextEpoch()
    }
    expect(bringBack).toBeDefined()
    expect(world.status().protocol?.status, world.explain()).toBe('Withdrawn')
    expect(world.ready(), world.explain()).toBe(true)
    world.assertMoney({ funded: 1, withdrawn: 1 })
  })

  test('that another has by now in its name: it is left alone', async () => {
    const { world } = await readyStake()
    const before = world.status()
    const [body] = world.service.stakes()
    world.service.forget()
    const { externalReference = '', amountLamports = 0n, stakeAuthority = '', withdrawAuthority = '', network = '' } = body ?? {}
    const other = await world.service.api.createSolanaStake(
      {
        idempotencyKey: 'another',
        network,
        amountLamports: amountLamports as never,
        stakeAuthority,
        withdrawAuthority,
        feePayer: stakeAuthority,
        externalReference,
      },
      new AbortController().signal,
    )
    await withdraw(world)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status()).toMatchObject({ stakeId: before.stakeId, protocol: { status: 'Withdrawn' } })
    expect(world.service.stakes().map(({ stakeId, transactions }) => ({ stakeId, transactions }))).toEqual([
      { stakeId: other.stakeId, transactions: [] },
    ])
    world.assertMoney({ funded: 1, withdrawn: 1 })
  })
})

describe('a stake that was not paid yet', () => {
  test.each([{ when: 'may land' }, { when: 'is final' }, { when: 'may land', adopts: true }])(
    'is not paid beside the one that was made since and $when, when the staking API has its data back (and the spec names it: $adopts)',
    async ({ when, adopts = false }) => {
      const world = stakeWorld()
      const dying = world.start((point, self) => {
        if (point === 'before chain.simulate') self.kill()
      })
      await world.visit(dying)
      const first = world.status().stakeId
      expect(first, world.explain()).toBeDefined()
      const bringBack = world.service.forget()
      world.editStatus(() => undefined)
      const operator = world.start()
      await (when === 'is final' ? world.settle(operator) : world.visit(operator))
      const second = world.status().stakeId
      expect(second).not.toBe(first)
      expect(
        operator.records(KEY).map(({ spec, status }) => [spec.apiId, (status?.attempts ?? []).length > 0 || status?.outcome?.is]),
      ).toEqual(
        expect.arrayContaining([
          [first, undefined],
          [second, true],
        ]),
      )

      bringBack()
      // Whoever may write status, or spec, can't have it paid either.
      world.editStatus(() => undefined)
      if (adopts) world.editSpec({ adopt: { stakeId: first ?? '' } })
      const next = world.start()
      for (let look = 0; look < 3; look++) {
        for (const { metadata } of next.records(KEY)) await next.visitRecord(metadata.name)
        await visits(world, next, 1)
      }
      await world.settle(next)
      world.assertMoney({ funded: 1, withdrawn: 0 })
      if (adopts) return
      expect(world.ready(), world.explain()).toBe(true)
      expect(world.status().stakeId).toBe(second)
    },
  )

  test.each([
    { what: 'was sent', known: [undefined, undefined] },
    { what: 'was ever made', known: [undefined] },
  ])('is not paid by a leader from before that has not heard that the other one $what', async ({ known }) => {
    const world = stakeWorld()
    const dying = world.start((point, self) => {
      if (point === 'before chain.simulate') self.kill()
    })
    await world.visit(dying)
    const first = world.status().stakeId ?? ''
    const bringBack = world.service.forget()
    world.editStatus(() => undefined)
    const before = world.start()
    const [record] = before.records(KEY)
    const look = () => before.visitRecord(record?.metadata.name ?? '')
    await look()
    before.caches.log.frozen = known.length === 1
    const operator = world.start((point) => {
      // By then both are written down, and nothing was signed of either.
      if (point === 'before keys.signMessage') before.caches.log.frozen = true
    })
    await world.visit(operator)
    expect(before.records(KEY).map(({ status }) => status)).toEqual(known)
    expect(operator.records(KEY).some(({ status }) => (status?.attempts ?? []).length > 0)).toBe(true)

    bringBack()
    world.editStatus(() => undefined)
    world.editSpec({ adopt: { stakeId: first } })
    await look()
    await visits(world, world.start(), 3)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  test('waits for a person, where status names one that the staking API does not have any more', async () => {
    const world = stakeWorld()
    const dying = world.start((point, self) => {
      if (point === 'before chain.simulate') self.kill()
    })
    await world.visit(dying)
    world.service.forget()
    const operator = world.start()
    await visits(world, operator, 3)
    expect(world.stalled(), world.explain()).toBe('VerificationFailed')
    expect(world.condition('Ready')?.message).toContain('has lost its data')
    world.assertMoney({ funded: 0, withdrawn: 0 })
  })
})

test.each([{ status: 400 }, { status: 404 }, { code: 'invalid-request' as const }])(
  'a resource whose spec adopts what is no stake at all (%j) goes when it is deleted',
  async (fields) => {
    const world = stakeWorld({ suspend: true, adopt: { stakeId: 'no-stake' } })
    world.service.api.solanaStake = async () => {
      throw new StakingApiError('no such stake', { kind: 'problem', ...fields, outcomeUnknown: false })
    }
    await world.visit(world.start())
    world.stakes.remove(KEY)
    await world.visit(world.start())
    expect(world.stakes.get(KEY)).toBeUndefined()
  },
)
