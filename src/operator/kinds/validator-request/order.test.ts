import { describe, expect, test } from 'vitest'
import { testAddress } from '../../testing/fake-keys.ts'
import { createWorld, KEY, type Operator, type World } from '../../testing/world.ts'

/** Two withdrawals, or a withdrawal and an exit, on one validator follow one another, whoever asks for them. */
const OLDER = 'withdrawal:team-a/b-older'
const YOUNGER = 'exit:team-a/a-younger'
const at = (seconds: string) => ({ creationTimestamp: `2030-01-01T00:00:${seconds}Z` })

function worldWithBoth(policy: object = {}): World {
  const world = createWorld()
  world.addSigner('signer-1', {}, { allowedNamespaces: { names: ['team-a', 'team-b'] }, ...policy })
  world.addWithdrawal(OLDER, {}, at('01'))
  world.addExit(YOUNGER, {}, at('02'))
  return world
}
const reason = (world: World, key: string) => world.condition('Ready', key)?.reason
const asked = (world: World) => world.chain.requests().map(({ kind }) => kind)

describe('two requests on one validator', () => {
  test('the younger waits until the consensus layer has decided on the older, and is not even created before', async () => {
    const world = worldWithBoth()
    world.requests.state.consensus = ({ kind }) => ({ status: kind === 'withdrawal' ? 'pending' : 'accepted' })
    const operator = world.start()
    await world.settle(operator, [YOUNGER, OLDER], 8)
    expect(world.condition('Confirmed', OLDER)?.status).toBe('True')
    expect(reason(world, YOUNGER)).toBe('WaitingForValidator')
    expect(world.condition('Ready', YOUNGER)?.message).toContain('ValidatorWithdrawal team-a/b-older')
    expect(world.requests.stored()).toHaveLength(1)
    world.requests.state.consensus = () => ({ status: 'accepted' })
    await world.settle(operator, [YOUNGER, OLDER])
    expect(asked(world)).toEqual(['withdrawal', 'exit'])
    expect(world.ready(YOUNGER)).toBe(true)
  })

  test('the younger waits as well where the staking API has the older as dropped and names no rule that drops it', async () => {
    const world = worldWithBoth()
    world.requests.state.consensus = ({ kind }) =>
      kind === 'withdrawal' ? { status: 'dropped', reason: 'amount-over-available: too much' } : { status: 'accepted' }
    const operator = world.start()
    await world.settle(operator, [YOUNGER, OLDER], 12)
    expect(reason(world, OLDER)).toBe('AwaitingConsensus')
    expect(reason(world, YOUNGER)).toBe('WaitingForValidator')
    expect(asked(world)).toEqual(['withdrawal'])
  })

  test.each([
    {
      why: 'whose signer is suspended',
      waitsFor: 'SignerSuspended',
      policy: {},
      prepare: async (world: World) => {
        world.addSigner('signer-2', { suspend: true }, {}, 1)
        world.editRequest(OLDER, (one) => ({ ...one, spec: { ...one.spec, signer: 'signer-2' } }))
      },
    },
    {
      why: 'whose namespace has used up its limit',
      waitsFor: 'LimitReached',
      policy: { limits: [{ window: '24h', maxCount: 1, per: 'Namespace' }] },
      prepare: async (world: World, operator: Operator) => {
        const before = 'withdrawal:team-a/before'
        world.addWithdrawal(before, { amountGwei: '7' }, at('00'))
        await world.settle(operator, [before])
      },
    },
  ])('the younger goes at once before an older one $why', async ({ waitsFor, policy, prepare }) => {
    const world = worldWithBoth(policy)
    const operator = world.start()
    await prepare(world, operator)
    for (let visit = 0; visit < 3; visit += 1) await world.visit(operator, OLDER)
    expect(reason(world, OLDER), JSON.stringify(world.condition('Ready', OLDER))).toBe(waitsFor)
    world.remove(YOUNGER)
    const other = 'exit:team-b/younger'
    world.addExit(other, {}, at('02'))
    for (let visit = 0; visit < 3; visit += 1) await world.visit(operator, other)
    expect(world.requestStatus(other).transaction?.state, JSON.stringify(world.condition('Ready', other))).toBe('Broadcast')
  })

  test.each([
    { answer: 'has come', loses: false },
    { answer: 'was lost', loses: true },
  ])(
    'an older exit that the staking API refuses for what a younger withdrawal has asked for is not waited for by that, whose answer $answer',
    async ({ loses }) => {
      const world = createWorld()
      world.addSigner()
      const [exit, withdrawal] = ['exit:team-a/a-older', 'withdrawal:team-a/b-younger']
      // As the service has it: an exit comes after what was promised.
      world.requests.state.broken = ({ kind }) =>
        kind === 'exit' && world.requests.stored().some(({ request, hashes }) => request.kind === 'withdrawal' && hashes.length === 0)
          ? ['pending-withdrawals']
          : []
      world.addExit(exit, { suspend: true }, at('01'))
      world.addWithdrawal(withdrawal, {}, at('02'))
      world.chain.state.requestFee = 10n ** 18n
      world.requests.state.losesAnswer = loses
      const operator = world.start()
      await world.settle(operator, [exit, withdrawal], loses ? 1 : 3)
      expect(world.requests.stored()).toHaveLength(1)
      expect(reason(world, withdrawal)).toBe(loses ? 'ServiceUnavailable' : 'RequestFeeTooHigh')
      world.editRequest(exit, (one) => ({ ...one, spec: { ...one.spec, suspend: false } }))
      await world.settle(operator, [exit, withdrawal], 3)
      expect(reason(world, exit)).toBe('PendingWithdrawals')
      world.requests.state.losesAnswer = false
      world.chain.state.requestFee = 1n
      await world.settle(operator, [exit, withdrawal])
      expect([reason(world, withdrawal), reason(world, exit)], JSON.stringify(world.condition('Ready', withdrawal))).toEqual([
        'Accepted',
        'Accepted',
      ])
      expect(asked(world)).toEqual(['withdrawal', 'exit'])
    },
  )

  test('what came of the older can not be told any more: both say so, and a person who deletes it lets the younger go', async () => {
    const world = worldWithBoth()
    world.requests.state.consensus = ({ kind }) =>
      kind === 'withdrawal' ? { status: 'pending', reason: 'the states are gone at https://secret' } : { status: 'accepted' }
    const operator = world.start()
    await world.settle(operator, [YOUNGER, OLDER], 8)
    const said = world.condition('Ready', OLDER)?.message
    expect(said).toMatch(/or it can't be told: the staking API gives its reason with request/)
    expect(said).not.toContain('secret')
    expect(world.condition('Ready', YOUNGER)?.message).toMatch(
      /its outcome is not known yet.*delete that one, and confirm it as its message says/,
    )
    world.remove(OLDER)
    await world.settle(operator, [YOUNGER, OLDER], 8)
    const [, annotation = ''] = /kubectl annotate \S+ \S+ -n \S+ (\S+)=b-older/.exec(world.condition('Ready', OLDER)?.message ?? '') ?? []
    world.editRequest(OLDER, (one) => ({
      ...one,
      metadata: { ...one.metadata, annotations: { ...(one.metadata as { annotations?: object }).annotations, [annotation]: 'b-older' } },
    }))
    await world.settle(operator, [YOUNGER, OLDER], 20)
    expect(world.ready(YOUNGER), JSON.stringify(world.condition('Ready', YOUNGER))).toBe(true)
  })

  test.each<{ while: string; change: (world: World) => void }>([
    { while: 'is suspended', change: (world) => world.editRequest(OLDER, (one) => ({ ...one, spec: { ...one.spec, suspend: true } })) },
    {
      while: 'needs a person',
      change: (world) => {
        world.requests.state.broken = ({ kind }) => (kind === 'withdrawal' ? ['amount-over-available'] : [])
      },
    },
    {
      while: 'was dropped',
      change: (world) => {
        world.requests.state.consensus = ({ kind }) =>
          kind === 'withdrawal' ? { status: 'dropped', reason: 'too-young: …' } : { status: 'accepted' }
      },
    },
    { while: 'is deleted', change: (world) => world.remove(OLDER) },
  ])('the younger goes while the older $while', async ({ change }) => {
    const world = worldWithBoth()
    change(world)
    const operator = world.start()
    await world.settle(operator, [OLDER, YOUNGER], 20)
    expect(world.ready(YOUNGER), JSON.stringify(world.condition('Ready', YOUNGER))).toBe(true)
    expect(asked(world).at(-1)).toBe('exit')
  })

  test('an older one that comes to work late waits for the younger, which is under way', async () => {
    const world = worldWithBoth()
    world.editRequest(OLDER, (one) => ({ ...one, spec: { ...one.spec, suspend: true } }))
    const operator = world.start()
    await world.visit(operator, OLDER)
    await world.visit(operator, YOUNGER)
    expect(world.requestStatus(YOUNGER).transaction?.state).toBe('Broadcast')
    world.editRequest(OLDER, (one) => ({ ...one, spec: { ...one.spec, suspend: false } }))
    await world.visit(operator, OLDER)
    expect(reason(world, OLDER)).toBe('WaitingForValidator')
    await world.settle(operator, [OLDER, YOUNGER])
    expect(asked(world)).toEqual(['exit', 'withdrawal'])
  })

  test('created in the same second, the one that is first by name goes first', async () => {
    const world = createWorld()
    world.addSigner()
    for (const name of ['b', 'a', 'c']) world.addWithdrawal(`withdrawal:team-a/${name}`, { amountGwei: `${name.charCodeAt(0)}` })
    await world.settle(world.start(), ['withdrawal:team-a/c', 'withdrawal:team-a/b', 'withdrawal:team-a/a'], 30)
    expect(world.chain.requests().map((request) => ('amountGwei' in request ? Number(request.amountGwei) : 0))).toEqual([97, 98, 99])
  })

  test('by public key in one namespace and by reference to the stake in another, it is the same validator', async () => {
    const world = createWorld()
    world.addSigner('signer-1', {}, { allowedNamespaces: { names: ['team-a', 'team-b'] } })
    world.addStake(KEY, { withdrawalAddress: testAddress(0) })
    const operator = world.start()
    await world.settle(operator, [KEY])
    const [stake] = world.service.stakes()
    world.service.setValidator(stake?.stakeId ?? '', 'active_ongoing')
    world.addWithdrawal('withdrawal:team-a/by-stake', { validator: { stakeRef: { name: 'stake-1' } } }, at('01'))
    world.addExit(
      'exit:team-b/by-key',
      { validator: { network: 'hoodi', pubkey: `0x${stake?.depositData.pubkey.slice(2).toUpperCase()}` as const } },
      at('02'),
    )
    await world.visit(operator, 'exit:team-b/by-key')
    expect(reason(world, 'exit:team-b/by-key')).toBe('WaitingForValidator')
    await world.settle(operator, ['exit:team-b/by-key', 'withdrawal:team-a/by-stake'], 20)
    expect(asked(world)).toEqual(['withdrawal', 'exit'])
  })

  test('with a cache that does not know of the older, the ledger keeps the younger waiting', async () => {
    const world = worldWithBoth()
    const operator = world.start()
    operator.caches.withdrawals.frozen = true
    const other = world.start()
    await world.visit(other, OLDER)
    expect(world.requestStatus(OLDER).transaction?.state).toBe('Broadcast')
    // As if it had no transaction and were no older.
    operator.caches.withdrawals.put({
      ...(world.object(OLDER) as never as object),
      spec: { ...world.object(OLDER)?.spec, suspend: true },
      status: {},
    } as never)
    await world.visit(operator, YOUNGER)
    expect(reason(world, YOUNGER)).toBe('WaitingForValidator')
    expect(world.keys.signed.filter(({ transaction }) => transaction.data.endsWith('0000000000000000'))).toEqual([])
  })

  test('a deposit for the validator in the ledger keeps nobody waiting', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake(KEY, { withdrawalAddress: testAddress(0) })
    const operator = world.start()
    await world.visit(operator, KEY)
    const [stake] = world.service.stakes()
    world.addExit('exit:team-a/early', { validator: { network: 'hoodi', pubkey: stake?.depositData.pubkey } })
    await world.visit(operator, 'exit:team-a/early')
    expect(world.chain.pool()).toHaveLength(2)
  })
})
