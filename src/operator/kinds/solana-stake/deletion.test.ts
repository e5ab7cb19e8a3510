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
import { AMOUNT, KEY, SOL, type SolanaWorld } from '../../testing/solana-world.ts'

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

  test('though the staking API has made a transaction for it, which nobody has signed', async () => {
    const world = stakeWorld()
    const operator = world.start((point) => {
      if (point === 'before chain.simulate') throw new SolanaError('unavailable', 'no answer')
    })
    await world.visit(operator)
    expect(world.service.stakes()[0]?.transactions).toHaveLength(1)
    world.editPolicy({ maxPerTransaction: '1' })
    world.stakes.remove(KEY)
    await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeUndefined()
    world.cluster.expire()
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
