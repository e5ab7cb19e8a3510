import { describe, expect, test } from 'vitest'
import { SolanaError } from '../../../chains/solana/chain.ts'
import { testAddress } from '../../../chains/solana/testing.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import type { SolanaStakeBody } from '../../../contract/schemas/solana.ts'
import { lamports } from '../../../lib/amounts.ts'
import type { SolanaStakeSpec } from '../../../resources/solana-stake.ts'
import { type StakingTransaction, stakingTransaction } from '../../../resources/staking-transaction.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { stakeWorld } from '../../testing/solana-stories.ts'
import { AMOUNT, KEY, SOL, type SolanaOperator, type SolanaWorld } from '../../testing/solana-world.ts'

describe('a stake that was refused before anything was signed, deleted, goes at once', () => {
  test.each<{
    refused: string
    change?: Partial<SolanaStakeSpec>
    before?: (world: SolanaWorld) => void
    lie?: (body: SolanaStakeBody) => SolanaStakeBody
    reason: string
    /** Of a stake that was verified, it contradicts itself later: then nobody knows. */
    onlyAtFirst?: boolean
  }>([
    {
      refused: 'by the policy, in its namespace',
      before: (world) => world.editPolicy({ allowedNamespaces: { names: ['team-b'] } }),
      reason: 'NamespaceNotAllowed',
    },
    {
      refused: 'by the policy, for its amount',
      before: (world) => world.editPolicy({ maxPerTransaction: '1' }),
      reason: 'OverLimit',
    },
    { refused: 'for its signer', before: (world) => world.signers.vanish('payer'), reason: 'SignerNotFound' },
    { refused: 'for its key', before: (world) => world.keys.break('withdrawer', 'missing'), reason: 'KeyMissing' },
    {
      refused: 'for the amount that the staking API says',
      lie: (body) => ({ ...body, amountLamports: lamports(AMOUNT - SOL) }),
      reason: 'VerificationFailed',
    },
    {
      refused: 'for the stake account that the staking API says',
      lie: (body) => ({ ...body, stakeAccount: testAddress(7) }),
      reason: 'VerificationFailed',
    },
    {
      refused: 'since the staking API gives it the stake of another',
      lie: (body) => ({ ...body, externalReference: 'SolanaStake/team-b/other' }),
      reason: 'VerificationFailed',
      onlyAtFirst: true,
    },
    { refused: 'for its destination', change: { destination: 'not base58 0OIl' }, reason: 'InvalidSpec', onlyAtFirst: true },
    {
      refused: 'for its destination, which takes no money',
      change: { destination: 'Vote111111111111111111111111111111111111111' },
      before: (world) => world.cluster.addProgram('Vote111111111111111111111111111111111111111'),
      reason: 'InvalidSpec',
    },
    { refused: 'for its vote account', before: (world) => (world.cluster.state.delinquent = true), reason: 'RequestRefused' },
  ])('$refused', async ({ change, before, lie, reason, onlyAtFirst = false }) => {
    // From the start, and once its stake was created, verified and written down.
    for (const isLater of onlyAtFirst ? [false] : [false, true]) {
      const world = stakeWorld(change)
      const away = world.start((point) => {
        if (point === 'before chain.stakeView') throw new SolanaError('unavailable', 'no answer')
      })
      if (isLater) {
        await world.visit(away)
        expect(world.status().verifiedStakeId).toBeDefined()
      }
      before?.(world)
      world.service.state.lie = lie
      const operator = world.start()
      await world.visit(operator)
      expect(world.stalled(), world.explain()).toBe(reason)

      world.stakes.remove(KEY)
      // A policy, a signer or a service that refuses doesn't hold it.
      await world.visit(operator)
      expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
      expect(world.keys.signed.filter(({ what }) => what === 'message')).toEqual([])
      world.assertMoney({ funded: 0, withdrawn: 0 })
    }
  })

  test('once the transaction that the staking API has made for it, which nobody has signed, has expired', async () => {
    const world = stakeWorld()
    const operator = world.start((point) => {
      if (point === 'before chain.simulate') throw new SolanaError('unavailable', 'no answer')
    })
    await world.visit(operator)
    expect(world.service.stakes()[0]?.transactions).toHaveLength(1)
    world.editPolicy({ maxPerTransaction: '1' })
    world.stakes.remove(KEY)
    await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeDefined()
    world.cluster.expire()
    await world.visit(operator)
    expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
    world.assertMoney({ funded: 0, withdrawn: 0 })
  })

  test('after what was signed for it can never land, though the policy was taken back', async () => {
    const world = stakeWorld()
    const operator = world.start()
    world.cluster.state.forgetful = true
    await world.visit(operator)
    expect(operator.records(KEY)[0]?.status?.attempts).toHaveLength(1)
    world.editPolicy({ maxPerTransaction: '1' })
    world.stakes.remove(KEY)
    await world.visit(operator)
    expect(world.condition('Ready')?.reason, world.explain()).toBe('Deleting')
    world.cluster.expire()
    await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeUndefined()
    world.assertMoney({ funded: 0, withdrawn: 0 })
  })

  test('though the stake that it was to take over holds money: that stays with whoever has it', async () => {
    const world = stakeWorld()
    const operator = world.start()
    await world.settle(operator)
    const thief = 'team-a/thief'
    world.addStake({ adopt: { stakeId: world.status().stakeId ?? '' } }, thief)
    await world.settle(operator, { key: thief })
    expect(world.stalled(thief)).toBe('AdoptionMismatch')
    world.stakes.remove(thief)
    await world.visit(operator, thief)
    expect(world.stakes.get(thief)).toBeUndefined()
    expect(world.ready()).toBe(true)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })
})

describe('a stake that holds money, deleted, stays', () => {
  test.each<{ what: string; lost: (world: SolanaWorld) => void }>([
    { what: 'with its status', lost: () => {} },
    {
      what: 'with its transaction lost from status',
      lost: (world) => world.editStatus(({ transactions: _lost, protocol: _seen, ...rest }) => rest),
    },
    {
      what: 'with all lost from status but its stake',
      lost: (world) => world.editStatus(({ stakeId }) => ({ stakeId })),
    },
    {
      what: 'with its policy, its signers and its transaction gone',
      lost: (world) => {
        world.editStatus(({ transactions: _lost, protocol: _seen, ...rest }) => rest)
        for (const name of ['payer', 'withdrawer']) world.signers.vanish(name)
      },
    },
  ])('$what', async ({ lost }) => {
    const world = stakeWorld()
    await world.settle(world.start())
    lost(world)
    world.stakes.remove(KEY)
    const operator = world.start()
    for (let round = 0; round < 4; round++) {
      await world.visit(operator)
      world.cluster.expire()
      world.clock.advance(60_000)
    }
    expect(world.stakes.get(KEY), world.explain()).toBeDefined()
    expect(world.condition('Ready')?.reason).toBe('Deleting')
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  test('goes with its money once that is withdrawn, as its spec asks', async () => {
    const world = stakeWorld()
    const operator = world.start()
    await world.settle(operator)
    world.stakes.remove(KEY)
    world.editSpec({ desiredState: 'Withdrawn' })
    for (let round = 0; round < 20 && world.stakes.get(KEY) !== undefined; round++) {
      await world.visit(operator)
      world.cluster.nextEpoch()
      world.clock.advance(60_000)
    }
    expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
    world.assertMoney({ funded: 1, withdrawn: 1 })
  })
})

describe('a stake of which neither its status nor the log is left', () => {
  async function lost(change: (world: SolanaWorld) => void = () => {}): Promise<SolanaWorld> {
    const world = stakeWorld()
    await world.settle(world.start())
    forget(world)
    change(world)
    world.stakes.remove(KEY)
    return world
  }
  function forget(world: SolanaWorld): void {
    const log = world.collection<StakingTransaction & KubeObject>(stakingTransaction)
    for (const { metadata } of [...log.list()]) log.vanish(metadata.name)
    world.editStatus(() => undefined)
  }
  const rounds = async (world: SolanaWorld, operator = world.start()): Promise<void> => {
    for (let round = 0; round < 4; round++) {
      await world.visit(operator)
      world.cluster.expire()
      world.clock.advance(60_000)
    }
  }

  test.each<{ what: string; change?: (world: SolanaWorld) => void }>([
    { what: 'with its origin' },
    { what: 'with its origin lost, too', change: (world) => world.annotate({ 'staking.dev/origin': 'copy/of/another' }) },
    { what: 'and its signers', change: (world) => ['payer', 'withdrawer'].forEach((name) => void world.signers.vanish(name)) },
    {
      what: 'and the staking API lies about its account',
      change: (world) => (world.service.state.lie = (body) => ({ ...body, stakeAccount: testAddress(7) })),
    },
    { what: 'and only one node shows its account', change: (world) => (world.cluster.state.secondAt = 0) },
    {
      what: 'and it has adopted one that was made for no resource',
      change: (world) => {
        world.editSpec({ adopt: { stakeId: world.service.stakes()[0]?.stakeId ?? '' } })
        world.service.state.lie = ({ externalReference: _none, ...body }) => body
      },
    },
  ])('deleted, holds its money: $what', async ({ change }) => {
    const world = await lost(change)
    await rounds(world)
    expect(world.stakes.get(KEY), world.explain()).toBeDefined()
    world.assertMoney({ funded: 1, withdrawn: 0 })
    world.annotate({ 'staking.dev/confirm-delete': 'stake-1' })
    await world.visit(world.start())
    expect(world.stakes.get(KEY)).toBeUndefined()
  })

  test('deleted, gets its money out where its spec asks, and goes', async () => {
    const world = await lost((now) => void now.editSpec({ desiredState: 'Withdrawn' }))
    const operator = world.start()
    for (let round = 0; round < 12 && world.stakes.get(KEY) !== undefined; round++) {
      await world.visit(operator)
      world.cluster.settle()
      world.cluster.nextEpoch()
      world.cluster.expire()
      world.clock.advance(60_000)
    }
    expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
    world.assertMoney({ funded: 1, withdrawn: 1 })
  })

  test('sent and not landed yet, deleted: it stays until that is certain, and goes if nothing came of it', async () => {
    const world = stakeWorld()
    world.cluster.state.forgetful = true
    await world.visit(world.start())
    forget(world)
    world.stakes.remove(KEY)
    const operator = world.start()
    await world.visit(operator)
    expect(world.stakes.get(KEY), world.explain()).toBeDefined()
    world.cluster.state.secondAt = world.cluster.height()
    world.cluster.expire()
    await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeDefined()
    world.cluster.state.secondAt = undefined
    await world.visit(operator)
    expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
    world.assertMoney({ funded: 0, withdrawn: 0 })
  })

  test.each(['the staking API', 'a node'])('while %s does not answer, it stays', async (who) => {
    const world = stakeWorld()
    world.editPolicy({ allowedNamespaces: { names: ['team-b'] } })
    await world.visit(world.start())
    world.editPolicy({ allowedNamespaces: { names: ['team-a'] } })
    await world.visit(
      world.start((point) => {
        if (point === 'before chain.stakeView') throw new SolanaError('unavailable', 'no answer')
      }),
    )
    forget(world)
    world.stakes.remove(KEY)
    let isDown = true
    const operator = world.start((point) => {
      if (isDown && who !== 'a node' && point === 'before api.solanaStakesNamed')
        throw new StakingApiError('no answer', { kind: 'network', outcomeUnknown: true })
    })
    if (who === 'a node') world.cluster.state.secondAt = -1
    await rounds(world, operator)
    expect(world.stakes.get(KEY), world.explain()).toBeDefined()
    isDown = false
    world.cluster.state.secondAt = undefined
    await world.visit(operator)
    expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
  })
})

describe('suspended, it signs nothing', () => {
  test.each(['before marking', 'before createStake', 'before followTransaction', 'before record write', 'before send'])(
    '%s',
    async (at) => {
      const world = stakeWorld()
      const stopped = world.start((point, self) => {
        if (point.startsWith(at)) self.kill()
      })
      await world.settle(stopped)
      expect(stopped.killed).toBe(true)
      const signed = world.keys.signed.length
      world.editSpec({ suspend: true })
      const operator = world.start()
      for (let round = 0; round < 4; round++) {
        await world.visit(operator)
        world.cluster.settle()
        world.clock.advance(60_000)
      }
      expect(world.keys.signed).toHaveLength(signed)
      world.assertMoney({ funded: 0, withdrawn: 0 })

      world.editSpec({ suspend: false })
      await world.settle(operator)
      expect(world.ready(), world.explain()).toBe(true)
      world.assertMoney({ funded: 1, withdrawn: 0 })
    },
  )
})

describe('a stake that was never paid, deleted', () => {
  /** The staking API has it, verified by a node that went silent then: nothing of it is signed. */
  async function unpaid(change: Partial<SolanaStakeSpec> = {}) {
    const world = stakeWorld(change)
    await world.visit(
      world.start((point) => {
        if (point === 'before chain.stakeView') throw new SolanaError('unavailable', 'no answer')
      }),
    )
    const stakeId = world.status().stakeId ?? ''
    expect(stakeId).not.toBe('')
    return { world, stakeId }
  }
  const at = (world: SolanaWorld, stakeId: string) => world.service.stakes().find((one) => one.stakeId === stakeId)
  /** Visits, and lets blocks and time pass, until it is gone. */
  async function untilGone(world: SolanaWorld, operator: SolanaOperator, key = KEY): Promise<void> {
    for (let round = 0; round < 6 && world.stakes.get(key) !== undefined; round++) {
      await world.visit(operator, key)
      world.cluster.expire()
      world.clock.advance(60_000)
    }
  }

  test('is cancelled at the staking API, and its name is free for another amount', async () => {
    const { world, stakeId } = await unpaid({ amountLamports: String(AMOUNT + SOL) })
    world.stakes.remove(KEY)
    const operator = world.start()
    await untilGone(world, operator)
    expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
    expect(at(world, stakeId)?.cancelledAt).toBeDefined()
    world.addStake()
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status().stakeId).not.toBe(stakeId)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  test.each(['with its status lost', 'whose desired state is Withdrawn', 'whose attempt has died on the chain'])(
    '%s, too',
    async (which) => {
      const { world, stakeId } = await unpaid()
      if (which.includes('lost')) world.editStatus(() => undefined)
      if (which.includes('Withdrawn')) world.editSpec({ desiredState: 'Withdrawn' })
      const operator = world.start()
      if (which.includes('died')) {
        world.cluster.state.forgetful = true
        await world.visit(operator)
        expect(operator.records(KEY)[0]?.status?.attempts).toHaveLength(1)
      }
      world.stakes.remove(KEY)
      await untilGone(world, operator)
      expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
      expect(at(world, stakeId)?.cancelledAt).toBeDefined()
      world.assertMoney({ funded: 0, withdrawn: 0 })
    },
  )

  test('confirmed by annotation, it is cancelled first', async () => {
    const { world, stakeId } = await unpaid()
    world.annotate({ 'staking.dev/confirm-delete': 'stake-1' })
    world.stakes.remove(KEY)
    await untilGone(world, world.start())
    expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
    expect(at(world, stakeId)?.cancelledAt).toBeDefined()
  })

  test.each(['nodes that stay silent', 'a stake that was paid'])(
    'confirmed by annotation, %s keep it for no longer than a minute',
    async (what) => {
      const { world, stakeId } = await unpaid()
      if (what.includes('silent')) world.cluster.state.secondAt = -1
      else await world.settle(world.start())
      world.annotate({ 'staking.dev/confirm-delete': 'stake-1' })
      world.stakes.remove(KEY)
      const operator = world.start()
      await world.visit(operator)
      world.clock.advance(60_000)
      if (world.stakes.get(KEY) !== undefined) await world.visit(operator)
      expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
      expect(at(world, stakeId)?.cancelledAt).toBeUndefined()
      world.assertMoney({ funded: what.includes('paid') ? 1 : 0, withdrawn: 0 })
    },
  )

  test('stays while a node is silent or behind, and is not cancelled before', async () => {
    const { world, stakeId } = await unpaid()
    world.cluster.state.secondAt = -1
    world.stakes.remove(KEY)
    const operator = world.start()
    await untilGone(world, operator)
    expect(world.stakes.get(KEY)).toBeDefined()
    expect(at(world, stakeId)?.cancelledAt).toBeUndefined()
    world.cluster.state.secondAt = undefined
    await untilGone(world, operator)
    expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
    expect(at(world, stakeId)?.cancelledAt).toBeDefined()
  })

  test('paid by a transaction that was handed out and landed late: it is not cancelled, and stays', async () => {
    const world = stakeWorld()
    const operator = world.start()
    await world.settle(operator)
    const { stakeId = '' } = world.status()
    const log = world.collection<StakingTransaction & KubeObject>(stakingTransaction)
    for (const { metadata } of [...log.list()]) log.vanish(metadata.name)
    world.editStatus(() => undefined)
    world.stakes.remove(KEY)
    await untilGone(world, world.start())
    expect(world.stakes.get(KEY)).toBeDefined()
    expect(at(world, stakeId)?.cancelledAt).toBeUndefined()
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  test.each(['before api.cancelSolanaStake', 'after api.cancelSolanaStake', 'before release'])(
    'by an operator that ends %s, goes with the next one, cancelled',
    async (where) => {
      const { world, stakeId } = await unpaid()
      world.stakes.remove(KEY)
      const ending = world.start((point, self) => {
        if (point.startsWith(where)) self.kill()
      })
      await untilGone(world, ending)
      expect(ending.killed).toBe(true)
      await untilGone(world, world.start())
      expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
      expect(at(world, stakeId)?.cancelledAt).toBeDefined()
    },
  )

  test('of an API that cancels no stakes goes all the same, and says that its name stays taken', async () => {
    const { world, stakeId } = await unpaid()
    world.service.state.cancelsNone = true
    world.stakes.remove(KEY)
    await untilGone(world, world.start())
    expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
    expect(at(world, stakeId)?.cancelledAt).toBeUndefined()
    expect(world.events.map(({ text }) => text.note).join('\n')).toContain('its name stays taken there')
  })

  test.each<{ what: string; change: (world: SolanaWorld, stakeId: string) => void }>([
    { what: 'adopted', change: (world, stakeId) => void world.editSpec({ adopt: { stakeId } }) },
    {
      what: 'another resource’s by its external reference',
      change: (world) => (world.service.state.lie = (body) => ({ ...body, externalReference: 'SolanaStake/team-b/other' })),
    },
  ])('$what, is left alone', async ({ change }) => {
    const { world, stakeId } = await unpaid()
    change(world, stakeId)
    world.stakes.remove(KEY)
    await untilGone(world, world.start())
    expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
    expect(at(world, stakeId)?.cancelledAt).toBeUndefined()
  })

  test('that a resource elsewhere has taken over and begun to pay is left to that one', async () => {
    const { world, stakeId } = await unpaid()
    const before = world.status()
    world.stakes.vanish(KEY)
    const heir = 'team-a/heir'
    world.addStake({ adopt: { stakeId } }, heir)
    const operator = world.start()
    await world.settle(operator, { key: heir })
    expect(world.ready(heir), world.explain(heir)).toBe(true)
    // The first one is back, by a restore, and is deleted.
    world.addStake({}, KEY, { finalizers: ['staking.dev/holds-money'] })
    world.editStatus(() => before)
    world.stakes.remove(KEY)
    await untilGone(world, operator)
    expect(world.stakes.get(KEY), world.explain()).toBeUndefined()
    expect(at(world, stakeId)?.cancelledAt).toBeUndefined()
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  test('cancelled, and its resource there again as after a restore: it says so, and is not paid', async () => {
    const { world, stakeId } = await unpaid()
    const operator = world.start()
    await world.service.api.cancelSolanaStake(stakeId, new AbortController().signal)
    await world.settle(operator)
    expect(world.stalled(), world.explain()).toBe('RequestCancelled')
    expect(world.keys.signed.filter(({ what }) => what === 'message')).toEqual([])
    world.stakes.remove(KEY)
    await untilGone(world, operator)
    world.addStake()
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })
})
