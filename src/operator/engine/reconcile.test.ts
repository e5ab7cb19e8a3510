import { describe, expect, test } from 'vitest'
import { ChainError } from '../../chains/ethereum/chain.ts'
import { ethereumStakeConditions } from '../../resources/ethereum-stake.ts'
import { CONFIRM_DELETE_ANNOTATION, FINALIZER, ORIGIN_ANNOTATION, RECONCILE_ANNOTATION } from '../../resources/meta.ts'
import { KubeError } from '../kube/errors.ts'
import { createWorld, GWEI, KEY, type World } from '../testing/world.ts'

function withStake(): { world: World; operator: ReturnType<World['start']> } {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  return { world, operator: world.start() }
}
const hold = () => undefined

describe('first sight', () => {
  test('the finalizer and the origin stand on the resource before anybody is called', async () => {
    const world = createWorld()
    world.addSigner()
    const { metadata } = world.addStake()
    const operator = world.start((point) => {
      if (!point.startsWith('before api.')) return
      const marked = world.stakes.get(KEY)?.metadata
      expect(marked?.finalizers).toEqual([FINALIZER])
      expect(marked?.annotations?.[ORIGIN_ANNOTATION]).toBe(`${metadata.uid}/team-a/stake-1`)
    })
    await world.visit(operator)
    expect(world.service.requests.length).toBeGreaterThan(0)
  })

  test('all conditions are there from the first write, and Ready is not True', async () => {
    const { world, operator } = withStake()
    let first: World['status'] extends (key?: string) => infer S ? S | undefined : never
    const watching = world.start((point) => {
      if (point.startsWith('after status write')) first ??= world.status()
    })
    await world.visit(watching)
    expect(first?.conditions?.map(({ type }) => type)).toEqual([...ethereumStakeConditions])
    expect(first?.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ status: 'False', reason: 'InProgress' })
    expect(first?.observedGeneration).toBe(1)
    await world.settle(operator)
  })

  test('what a visit found is written once: before anything is sent, with the transaction that is about to be', async () => {
    const { world, operator } = withStake()
    const events: string[] = []
    let atSend: ReturnType<World['status']> | undefined
    const watching = world.start((point) => {
      const [, seen] = /^before (record create|status write|send|stakes\.get)/.exec(point) ?? []
      if (seen !== undefined) events.push(seen)
      if (point.startsWith('before send')) atSend ??= world.status()
    })
    await world.visit(watching)
    expect(events.slice(0, 3)).toEqual(['record create', 'status write', 'send'])
    const [attempt] = world.record()?.status?.attempts ?? []
    expect(atSend).toMatchObject({
      stakeId: expect.any(String),
      phase: 'Prepared',
      transaction: { hash: attempt?.hash, state: 'Prepared' },
    })
    expect(atSend?.transaction?.reportedHash).toBe(attempt?.hash)
    await world.settle(operator)
  })

  test('the idempotency key and the reference come from the origin alone', async () => {
    const { world, operator } = withStake()
    await world.settle(operator)
    expect(world.service.requests[0]?.idempotencyKey).toMatch(/^uid-\d+-of-stake-1\/[0-9a-f]{12}\/stake$/)
    expect(world.service.requests[0]?.externalReference).toBe('EthereumStake/team-a/stake-1')
  })

  test('other finalizers and annotations are left alone', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake(KEY, {}, { finalizers: ['example.org/other'], annotations: { note: 'keep' } })
    await world.settle(world.start())
    expect(world.stakes.get(KEY)?.metadata.finalizers).toEqual(['example.org/other', FINALIZER])
    expect(world.stakes.get(KEY)?.metadata.annotations?.note).toBe('keep')
  })
})

describe('writes', () => {
  test('a whole life costs at most eight status writes, and none of the signer', async () => {
    const { world, operator } = withStake()
    await world.settle(operator)
    const { stakeId } = world.status()
    for (const status of ['pending_queued', 'active_ongoing'] as const) {
      world.service.setValidator(stakeId as string, status, 7)
      world.clock.advance(7_200_000)
      await world.visit(operator)
    }
    expect(world.condition('Active')).toMatchObject({ status: 'True' })
    expect(world.status()).toMatchObject({ phase: 'Active', validator: { index: '7' } })
    expect(world.stakes.statusWrites(KEY)).toBeLessThanOrEqual(8)
    expect(world.signers.statusWrites('signer-1')).toBe(0)
    // Named with its first attempt, and its outcome.
    expect(world.records.statusWrites(world.record()?.metadata.name ?? '')).toBe(2)
  })

  test('a settled stake that is visited again and again writes nothing, also by a new operator, and keeps its times', async () => {
    const { world, operator } = withStake()
    await world.settle(operator)
    const before = structuredClone(world.stakes.get(KEY))
    // Once a day the time of the last look is written: observed.test.ts.
    for (let count = 0; count < 10; count++) {
      world.clock.advance(5_400_000)
      await world.visit(operator)
    }
    const next = world.start()
    for (let count = 0; count < 5; count++) {
      world.clock.advance(5_400_000)
      await world.visit(next)
    }
    expect(world.stakes.get(KEY)).toEqual(before)
  })

  test.each<{ wait: string; prepare: (world: World) => void; writes: number }>([
    { wait: 'a high price', prepare: (world) => Object.assign(world.chain.state, { baseFee: 500n * GWEI }), writes: 1 },
    { wait: 'the history', prepare: (world) => Object.assign(world.chain.state, { historySyncing: true }), writes: 1 },
    { wait: 'a person', prepare: (world) => void world.editPolicy({ maxPerTransaction: '1' }), writes: 1 },
    { wait: 'a node', prepare: (world) => Object.assign(world.chain.state, { wrongChain: true }), writes: 1 },
  ])('one that waits for $wait writes no more than that', async ({ prepare, writes }) => {
    const { world, operator } = withStake()
    prepare(world)
    for (let count = 0; count < 20; count++) {
      await world.visit(operator)
      world.clock.advance(30_000)
      world.chain.mine()
    }
    expect(world.stakes.statusWrites(KEY)).toBe(writes)
  })

  test('a node that is down costs one write, and then nothing', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const operator = world.start((point) => {
      if (point === 'before chain.depositsFor') throw new ChainError('unavailable', 'no answer')
    })
    for (let count = 0; count < 10; count++) expect((await world.visit(operator)).kind).toBe('wait')
    expect(world.condition('Ready')).toMatchObject({ reason: 'ChainUnavailable', status: 'False' })
    expect(world.stakes.statusWrites(KEY)).toBe(1)
  })

  test('a write that meets a newer version (409) is dropped, and nothing that it was to hold is sent', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    let interfered = 0
    const operator = world.start((point) => {
      // Somebody writes between what was read and what is written, twice.
      if (point === `before status write ${KEY}` && world.keys.signed.length > 0 && interfered < 2) {
        interfered += 1
        world.annotate({ poke: String(interfered) })
      }
      if (point === 'before chain.send') {
        expect(world.record()?.status?.attempts?.at(-1)?.hash).toBe(world.keys.signed.at(-1)?.hash)
      }
    })
    await world.settle(operator)
    expect(interfered).toBe(2)
    world.assertMoney({ deposits: 1 })
  })

  test('from a stale cache nothing is bought again', async () => {
    const { world, operator } = withStake()
    const late = world.start()
    late.caches.stakes.frozen = true
    late.caches.signers.frozen = true
    await world.settle(operator)
    // It has seen nothing of all that, and thinks that it leads.
    await world.settle(late)
    world.assertMoney({ deposits: 1 })
    expect(world.chain.everSent()).toHaveLength(1)
    expect(world.service.stakes()).toHaveLength(1)
  })
})

describe('copies and restores', () => {
  test('a copy under another name stalls alone, and its original goes on', async () => {
    const { world, operator } = withStake()
    await world.settle(operator)
    const copy = 'team-a/copy'
    world.addStake(copy, {}, { annotations: world.stakes.get(KEY)?.metadata.annotations })
    await world.settle(operator, [copy], 2)
    expect(world.stalled(copy)).toBe('CopiedResource')
    expect(world.ready(KEY)).toBe(true)
    expect(world.service.stakes()).toHaveLength(1)
    // It may go at any time: it holds nothing.
    world.stakes.remove(copy)
    await world.visit(operator, copy)
    expect(world.stakes.get(copy)).toBeUndefined()
  })

  test('without the annotation the copy is a stake of its own', async () => {
    const { world, operator } = withStake()
    const copy = 'team-a/copy'
    world.addStake(copy, {}, { annotations: { [ORIGIN_ANNOTATION]: 'x/team-a/stake-1' } })
    await world.visit(operator, copy)
    world.annotate({ [ORIGIN_ANNOTATION]: undefined }, copy)
    await world.settle(operator, [KEY, copy])
    world.assertMoney({ deposits: 2 })
  })

  test('one restored from a backup under its own name, with another uid and no status, resumes its stake', async () => {
    const { world, operator } = withStake()
    await world.settle(operator)
    const { metadata } = world.stakes.get(KEY) ?? {}
    world.stakes.vanish(KEY)
    world.addStake(KEY, {}, { annotations: metadata?.annotations })
    expect(world.stakes.get(KEY)?.metadata.uid).not.toBe(metadata?.uid)
    const restored = world.start()
    await world.settle(restored)
    expect(world.ready()).toBe(true)
    expect(world.service.stakes()).toHaveLength(1)
    world.assertMoney({ deposits: 1 })
  })

  test('one made anew from Git after the cluster was lost does not buy again: it names the stake to adopt, and adopts it', async () => {
    const { world, operator } = withStake()
    await world.settle(operator)
    const { stakeId } = world.status()
    world.stakes.vanish(KEY)
    world.signers.vanish('signer-1')
    world.loseLog()
    world.addSigner('signer-1', { acknowledgedNonce: 1 })
    world.addStake()
    const rebuilt = world.start()
    await world.visit(rebuilt)
    expect(world.stalled()).toBe('AlreadyStaked')
    expect(world.condition('Stalled')?.message).toContain(stakeId)
    world.editSpec({ adopt: { stakeId: stakeId as string } })
    await world.settle(rebuilt)
    expect(world.ready()).toBe(true)
    world.assertMoney({ deposits: 1 })
  })

  test('a changed annotation does not let a transaction in flight go', async () => {
    const { world, operator } = withStake()
    await world.visit(operator)
    world.annotate({ [ORIGIN_ANNOTATION]: 'broken' })
    await world.visit(operator)
    expect(world.stalled()).toBe('CopiedResource')
    world.stakes.remove(KEY)
    await world.visit(operator)
    await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeDefined()
  })
})

describe('suspended', () => {
  test('from the start: nothing is created, signed or sent; then it goes on', async () => {
    const { world, operator } = withStake()
    world.editSpec({ suspend: true })
    await world.settle(operator, [KEY], 3)
    expect(world.condition('Ready')).toMatchObject({ status: 'False', reason: 'Suspended' })
    expect(world.service.requests).toEqual([])
    expect(world.keys.signed).toEqual([])
    world.editSpec({ suspend: false })
    await world.settle(operator)
    world.assertMoney({ deposits: 1 })
  })

  test('with a transaction in flight: it is watched until it is final, and not sent again', async () => {
    const { world, operator } = withStake()
    await world.visit(operator)
    world.editSpec({ suspend: true })
    world.chain.forget()
    await world.visit(operator)
    expect(world.chain.pool()).toEqual([])
    expect(world.keys.signed).toHaveLength(2)
    world.chain.mine(1, (versions) => versions[0])
    await world.settle(operator)
    expect(world.status().transaction?.state).toBe('Confirmed')
    expect(world.ready()).toBe(true)
  })

  test('with a broadcast whose outcome is unknown: it is watched as well', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const operator = world.start((point) => {
      if (point === 'after chain.send') throw new ChainError('unavailable', 'no answer')
    })
    await world.visit(operator)
    world.editSpec({ suspend: true })
    await world.settle(operator)
    expect(world.status().transaction?.state).toBe('Confirmed')
    world.assertMoney({ deposits: 1 })
  })
})

describe('deletion', () => {
  const gone = (world: World) => world.stakes.get(KEY) === undefined

  test('before anything was made: it goes once the chain says that nothing of it is there', async () => {
    const { world, operator } = withStake()
    world.chain.state.historySyncing = true
    await world.visit(operator)
    world.stakes.remove(KEY)
    await world.visit(operator)
    expect(gone(world)).toBe(false)
    world.chain.state.historySyncing = false
    await world.visit(operator)
    expect(gone(world)).toBe(true)
    world.assertMoney({ deposits: 0 })
  })

  test('never seen: it goes without a trace', async () => {
    const { world, operator } = withStake()
    world.stakes.remove(KEY)
    await world.visit(operator)
    expect(gone(world)).toBe(true)
    expect(world.service.requests).toEqual([])
  })

  test('in flight: nothing more is signed; it waits until the transaction is final, and then for its stake', async () => {
    const { world, operator } = withStake()
    await world.visit(operator)
    const signed = world.keys.signed.length
    world.stakes.remove(KEY)
    world.chain.forget()
    await world.visit(operator)
    expect(gone(world)).toBe(false)
    expect(world.condition('Ready')).toMatchObject({ status: 'False', reason: 'Deleting' })
    expect(world.chain.pool()).toEqual([])
    world.chain.mine(4, (versions) => versions[0])
    await world.visit(operator)
    expect(gone(world)).toBe(false)
    expect(world.status().transaction?.state).toBe('Confirmed')
    expect(world.condition('Ready')?.message).toContain('32 ETH are staked')
    expect(world.keys.signed).toHaveLength(signed)
  })

  test('of a stake: it waits until the validator has left', async () => {
    const { world, operator } = withStake()
    await world.settle(operator)
    world.stakes.remove(KEY)
    world.clock.advance(7_200_000)
    await world.visit(operator)
    expect(gone(world)).toBe(false)
    world.service.setValidator(world.status().stakeId as string, 'withdrawal_done', 7)
    world.clock.advance(7_200_000)
    await world.visit(operator)
    await world.visit(operator)
    expect(gone(world)).toBe(true)
  })

  test('of a transaction that was reverted: it goes', async () => {
    const { world, operator } = withStake()
    await world.visit(operator)
    world.stakes.remove(KEY)
    world.chain.state.contractReverts = true
    world.chain.mine(4)
    await world.visit(operator)
    expect(gone(world)).toBe(true)
    world.assertMoney({ deposits: 0 })
  })

  test('of a transaction that is lost to another: it goes once that is final', async () => {
    const world = createWorld({ depth: 3 })
    world.addSigner('signer-1', {}, { sharedKey: true })
    world.addStake()
    const operator = world.start()
    await world.visit(operator)
    world.stakes.remove(KEY)
    world.chain.mineForeign({ from: world.signers.get('signer-1')?.spec.address as `0x${string}` })
    await world.visit(operator)
    expect(gone(world)).toBe(false)
    world.chain.mine(3, hold)
    await world.visit(operator)
    expect(gone(world)).toBe(true)
    expect(world.keys.signed).toHaveLength(2)
    world.assertMoney({ deposits: 0 })
  })

  test.each(['in flight', 'staked'])('confirmed by annotation, it goes, though it is %s', async (phase) => {
    const { world, operator } = withStake()
    if (phase === 'staked') await world.settle(operator)
    else await world.visit(operator)
    world.stakes.remove(KEY)
    world.annotate({ [CONFIRM_DELETE_ANNOTATION]: 'another-name' })
    await world.visit(operator)
    expect(gone(world)).toBe(false)
    world.annotate({ [CONFIRM_DELETE_ANNOTATION]: 'stake-1' })
    await world.visit(operator)
    expect(gone(world)).toBe(true)
  })

  test('with its status lost and a transaction in the log: it is held, and looked at again', async () => {
    const { world, operator } = withStake()
    await world.visit(operator)
    world.editStatus(() => undefined)
    world.stakes.remove(KEY)
    const result = await world.visit(operator)
    expect(gone(world)).toBe(false)
    expect(result.kind).toBe('wait')
    expect(world.condition('Ready')?.message).toContain('may still land')
  })

  test('of a resource that another controller removed meanwhile is no error', async () => {
    const { world } = withStake()
    const operator = world.start((point) => {
      if (point === `before status write ${KEY}`) world.stakes.vanish(KEY)
    })
    expect((await world.visit(operator)).kind).toBe('done')
  })
})

describe('events and waits', () => {
  test('one event for the phase that people wait for, none for those on the way, none for what stays', async () => {
    const { world, operator } = withStake()
    await world.settle(operator)
    expect(world.events.map(({ text }) => text.reason)).toEqual(['Confirmed'])
    await world.settle(operator)
    expect(world.events).toHaveLength(1)
  })

  test('a stall is told once, and told again when it is another', async () => {
    const { world, operator } = withStake()
    world.editPolicy({ maxPerTransaction: '1' })
    for (let count = 0; count < 3; count++) await world.visit(operator)
    world.editPolicy({ allowedNamespaces: {} })
    for (let count = 0; count < 3; count++) await world.visit(operator)
    expect(world.events.filter(({ text }) => text.type === 'Warning').map(({ text }) => text.reason)).toEqual([
      'OverLimit',
      'NamespaceNotAllowed',
    ])
  })

  test('a settled stake is looked at when poked', async () => {
    const { world, operator } = withStake()
    await world.settle(operator)
    world.service.setValidator(world.status().stakeId as string, 'active_ongoing', 3)
    await world.visit(operator)
    expect(world.condition('Active')?.status).toBe('Unknown')
    world.annotate({ [RECONCILE_ANNOTATION]: 'now' })
    await world.visit(operator)
    expect(world.condition('Active')?.status).toBe('True')
  })

  test('what the service says of another validator is no news', async () => {
    const { world, operator } = withStake()
    await world.settle(operator)
    world.service.state.lie = (body) => ({ ...body, validator: { pubkey: `0x${'11'.repeat(48)}` as const, status: 'withdrawal_done' } })
    world.clock.advance(7_200_000)
    await world.visit(operator)
    expect(world.status().phase).toBe('Confirmed')
  })

  test('a write that the API server refuses for another reason is an error, and tried again', async () => {
    const { world } = withStake()
    let refused = false
    const operator = world.start((point) => {
      if (point === 'before stakes.mergePatch' && !refused) {
        refused = true
        throw new KubeError(500, 'InternalError', 'no leader')
      }
    })
    expect((await world.visit(operator)).kind).toBe('error')
    await world.settle(operator)
    world.assertMoney({ deposits: 1 })
  })
})
