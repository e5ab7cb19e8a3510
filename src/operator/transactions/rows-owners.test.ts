import { describe, expect, test, vi } from 'vitest'
import { ORIGIN_ANNOTATION } from '../../resources/meta.ts'
import type { ValidatorExitSpec } from '../../resources/validator-exit.ts'
import { add, assertOnce, calls, kinds, none, POLL, polls, said } from '../testing/rows.ts'
import { addressOf, createWorld, ETH, GWEI, hoodi, KEY, type World } from '../testing/world.ts'
import { laneKey } from './names.ts'

/** Who a transaction is for, who signs it, and what both may do meanwhile. */

// Signatures are made for real, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 })

function worldOf(key: string, policy: object = {}): World {
  const world = createWorld({ nodes: 2 })
  world.addSigner('signer-1', {}, policy)
  add(world, key)
  return world
}
const warnings = (world: World) =>
  world.events.filter(({ text }) => text.type === 'Warning').map(({ key, text }) => `${key} ${text.reason}`)

describe('while its transaction is in the pool', () => {
  const changes: { readonly what: string; readonly change: (world: World) => void }[] = [
    {
      what: 'the signer is deleted and made again with another key',
      change(world) {
        world.signers.vanish('signer-1')
        world.addSigner('signer-1', {}, {}, 1)
      },
    },
    { what: 'the signer is gone', change: (world) => world.signers.vanish('signer-1') },
    {
      what: 'its signer has another address',
      change: (world) => {
        world.chain.fund(addressOf(1), 1_000n * ETH)
        world.signers.edit('signer-1', (signer) => ({ ...signer, spec: { ...signer.spec, keyName: 'key-1', address: addressOf(1) } }))
      },
    },
    {
      what: "the network's name is given to another chain, and its own to none",
      change: (world) => void world.networks.set('hoodi', { ...hoodi, chainId: 424_242 }),
    },
    {
      what: "the network's name is given to another chain, and its own has another name",
      change: (world) => {
        world.networks.set('hoodi', { ...hoodi, chainId: 424_242 })
        world.networks.set('hoodi-before', { ...hoodi, name: 'hoodi-before' })
      },
    },
  ]
  test.each(changes.flatMap((row) => kinds.flatMap((key) => [false, true].map((forgotten) => ({ ...row, key, forgotten })))))(
    '$what: nothing else is signed for $key, and the old one is followed (forgotten by the nodes: $forgotten)',
    async ({ key, change, forgotten }) => {
      const world = worldOf(key)
      await world.visit(world.start(), key)
      const [sent] = calls(world)
      if (sent === undefined) throw new Error('nothing was sent')
      if (forgotten) world.chain.forget()
      change(world)
      const operator = world.start()
      await polls(world, operator, key, 6)
      expect(calls(world).map(({ hash }) => hash)).toEqual([sent.hash])
      expect(new Set(calls(world).map(({ from }) => from))).toEqual(new Set([addressOf(0)]))
      // It lands, whoever sends it, and everything is as it was before.
      world.networks.clear()
      world.networks.set('hoodi', hoodi)
      world.chain.mine(1, (versions) => versions.find(({ hash }) => hash === sent.hash))
      world.chain.mine(3, none)
      await polls(world, operator, key, 4)
      expect(world.record(key)?.status?.outcome).toMatchObject({ is: 'Landed', hash: sent.hash })
      assertOnce(world, key)
    },
  )

  test.each(kinds)('the deletion of its signer waits until %s is settled', async (key) => {
    const world = worldOf(key)
    const operator = world.start()
    await world.visit(operator, key)
    await operator.visitSigner('signer-1')
    world.signers.remove('signer-1')
    for (let n = 0; n < 3; n++) {
      await operator.visitSigner('signer-1')
      expect(world.signers.get('signer-1')?.metadata.deletionTimestamp).toBeDefined()
      world.clock.advance(60_000)
    }
    for (let n = 0; n < 6; n++) {
      await world.visit(operator, key)
      world.clock.advance(POLL)
      world.chain.mine()
    }
    await operator.visitSigner('signer-1')
    expect(world.signers.get('signer-1')).toBeUndefined()
    expect(world.record(key)?.status?.outcome).toBeDefined()
    assertOnce(world, key)
  })

  test.each(kinds)('a signer has its finalizer before the first place is taken for %s', async (key) => {
    const world = worldOf(key)
    const held: boolean[] = []
    const operator = world.start((point) => {
      if (point.startsWith('before place create')) held.push(world.signers.get('signer-1')?.metadata.finalizers?.length === 1)
    })
    await world.visit(operator, key)
    expect(held).toEqual([true])
  })

  test.each(kinds)('a signer that is deleted before a place is taken goes, and nothing is signed for %s', async (key) => {
    const world = worldOf(key)
    const operator = world.start((point) => {
      // What the first look has read is out of date by then.
      if (point.startsWith('after record create')) world.signers.remove('signer-1')
    })
    await polls(world, operator, key, 3)
    expect(world.signers.get('signer-1')).toBeUndefined()
    expect([calls(world), world.places.list()]).toEqual([[], []])
  })

  test.each([
    { what: 'is configured no more', change: (world: World) => void world.networks.delete('hoodi') },
    {
      what: 'has given its name to another chain',
      change: (world: World) => void world.networks.set('hoodi', { ...hoodi, chainId: 424_242 }),
    },
  ])('the deletion of its signer waits though the network $what, and says so', async ({ change }) => {
    const world = worldOf(KEY)
    await world.visit(world.start())
    change(world)
    world.signers.remove('signer-1')
    const operator = world.start()
    for (let n = 0; n < 3; n++) {
      await operator.visitSigner('signer-1')
      world.clock.advance(60_000)
    }
    const ready = world.signers.get('signer-1')?.status?.conditions?.find(({ type }) => type === 'Ready')
    expect(ready).toMatchObject({ status: 'False', reason: 'Deleting' })
    expect(ready?.message).toMatch(/1 on (hoodi|chain-560048)/)
    // Configured again, the transaction is followed to its end, and the signer goes.
    world.networks.clear()
    world.networks.set('hoodi', hoodi)
    world.chain.mine(3)
    await polls(world, operator, KEY, 4)
    await operator.visitSigner('signer-1')
    expect(world.signers.get('signer-1')).toBeUndefined()
    assertOnce(world, KEY)
  })

  test('the deletion of its signer waits though the nodes forget it, and ends: it lands or is cancelled', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.visit(operator)
    await operator.visitSigner('signer-1')
    world.chain.forget()
    world.editSpec({ suspend: true })
    world.signers.remove('signer-1')
    for (let n = 0; n < 10; n++) {
      await world.visit(operator)
      await operator.visitSigner('signer-1')
      world.clock.advance(POLL)
      world.chain.mine()
    }
    expect(world.signers.get('signer-1')).toBeUndefined()
    expect(world.record()?.status?.closed).toMatchObject([{ by: 'Cancel' }])
    world.assertMoney({ deposits: 0 })
  })

  test('a signer whose finalizer is there and whose lane is empty goes at once', async () => {
    const world = createWorld()
    world.addSigner()
    const operator = world.start()
    await operator.visitSigner('signer-1')
    world.signers.remove('signer-1')
    await operator.visitSigner('signer-1')
    expect(world.signers.get('signer-1')).toBeUndefined()
  })
})

test('a record that somebody has made by hand, for what another one is for, is not signed: one deposit', async () => {
  const world = worldOf(KEY)
  const operator = world.start()
  world.chain.state.baseFee = 500n * GWEI
  await world.visit(operator)
  const record = world.record()
  if (record === undefined) throw new Error('the stake has no record')
  const other = 'team-a/other'
  world.addStake(other, { adopt: { stakeId: world.status().stakeId as string } })
  const originUid = world.stakes.get(other)?.metadata.uid ?? ''
  await world.visit(operator, other)
  const owner = { ...record.spec.owner, name: 'other', originUid }
  world.records.create({ metadata: { name: 'by-hand' }, spec: { ...record.spec, owner } })
  world.chain.state.baseFee = 10n * GWEI
  await world.settle(operator, [KEY, other], 6)
  expect(world.ready(), said(world, KEY)).toBe(true)
  expect(world.ready(other)).toBe(false)
  expect(world.records.get('by-hand')?.status?.attempts ?? []).toEqual([])
  assertOnce(world, KEY)
})

describe('the key is used elsewhere', () => {
  const keyUsed = (world: World) => world.signers.get('signer-1')?.status?.conditions?.find(({ type }) => type === 'KeyUsedElsewhere')

  test.each(kinds)(
    'a foreign transaction takes the nonce that was given out to %s: the signer says KeyUsedElsewhere, with one event and one count',
    async (key) => {
      const world = worldOf(key)
      const operator = world.start()
      await operator.visitSigner('signer-1')
      expect(keyUsed(world)).toMatchObject({ status: 'False' })
      await world.visit(operator, key)
      const foreign = world.chain.mineForeign({ from: addressOf(0) })
      world.chain.mine(3, none)
      await polls(world, operator, key, 2)
      for (let n = 0; n < 3; n++) await operator.visitSigner('signer-1')
      expect(keyUsed(world)).toMatchObject({ status: 'True', reason: 'KeyUsedElsewhere' })
      expect(keyUsed(world)?.message).toContain(foreign)
      expect(warnings(world).filter((one) => one === 'signer-1 KeyUsedElsewhere')).toHaveLength(1)
      expect(world.alarms.filter(({ reason }) => reason === 'KeyUsedElsewhere')).toEqual([
        { network: 'hoodi', signer: 'signer-1', reason: 'KeyUsedElsewhere' },
      ])
      // A restart tells nobody twice; a person who has looked ends it; the transaction is made once.
      await world.start().visitSigner('signer-1')
      expect(world.alarms).toHaveLength(1)
      world.signers.edit('signer-1', (signer) => ({ ...signer, spec: { ...signer.spec, acknowledgedNonce: 1 } }))
      await operator.visitSigner('signer-1')
      expect(keyUsed(world)).toMatchObject({ status: 'False' })
      await world.settle(operator, [key])
      assertOnce(world, key)
    },
  )

  test('it is remembered after the transaction has landed', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.visit(operator)
    world.chain.mineForeign({ from: addressOf(0) })
    await world.settle(operator)
    await operator.visitSigner('signer-1')
    expect(keyUsed(world)).toMatchObject({ status: 'True' })
  })

  test('under a number whose transaction is gone: it is told, once, until a person has looked', async () => {
    const world = worldOf(KEY)
    world.addStake('team-a/behind')
    const operator = world.start()
    await world.visit(operator)
    await world.visit(operator, 'team-a/behind')
    // The first one is gone, and its number is a filler's.
    world.chain.forget()
    const [place] = world.places.list()
    world.stakes.vanish(KEY)
    world.records.vanish(world.record()?.metadata.name ?? '')
    world.places.edit(place?.metadata.name ?? '', ({ spec: { transaction: _gone, ...spec }, ...rest }) => ({ ...rest, spec }))
    const next = world.start()
    const foreign = world.chain.mineForeign({ from: addressOf(0) })
    await world.settle(next, ['team-a/behind'])
    world.clock.advance(600_000)
    await next.reconcile('records', laneKey({ chainId: hoodi.chainId, address: addressOf(0) }))
    for (let n = 0; n < 3; n++) await next.visitSigner('signer-1')
    expect(keyUsed(world)).toMatchObject({ status: 'True' })
    expect(keyUsed(world)?.message).toContain(foreign)
    const told = () => warnings(world).filter((one) => one === 'signer-1 KeyUsedElsewhere')
    expect(told()).toHaveLength(1)
    // A restart tells nobody twice, before its lane is looked at and afterwards.
    const last = world.start()
    await last.visitSigner('signer-1')
    expect(keyUsed(world)).toMatchObject({ status: 'True' })
    await last.reconcile('records', laneKey({ chainId: hoodi.chainId, address: addressOf(0) }))
    await last.visitSigner('signer-1')
    expect(keyUsed(world)).toMatchObject({ status: 'True' })
    expect(told()).toHaveLength(1)
    world.signers.edit('signer-1', (signer) => ({ ...signer, spec: { ...signer.spec, acknowledgedNonce: 1 } }))
    await last.visitSigner('signer-1')
    expect(keyUsed(world)).toMatchObject({ status: 'False' })
    world.clock.advance(600_000)
    await last.reconcile('records', laneKey({ chainId: hoodi.chainId, address: addressOf(0) }))
    expect(world.places.list().map(({ spec }) => spec.nonce)).toEqual([1])
  })

  test('its own filler under such a number alarms nobody', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.visit(operator)
    world.chain.forget()
    world.editSpec({ suspend: true })
    world.addStake('team-a/behind')
    await world.settle(operator, ['team-a/behind'])
    world.clock.advance(600_000)
    await operator.reconcile('records', laneKey({ chainId: hoodi.chainId, address: addressOf(0) }))
    await operator.visitSigner('signer-1')
    expect(keyUsed(world)).toMatchObject({ status: 'False' })
    expect(world.alarms).toEqual([])
  })

  test('by another cluster, under numbers that were not given out: nothing is signed, and it is told once', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await operator.visitSigner('signer-1')
    world.chain.mineForeign({ from: addressOf(0) })
    for (let n = 0; n < 3; n++) await operator.visitSigner('signer-1')
    await polls(world, operator, KEY, 3)
    expect(world.stalled()).toBe('UnaccountedTransactions')
    expect(warnings(world).filter((one) => one === 'signer-1 UnaccountedTransactions')).toHaveLength(1)
    expect(world.alarms).toEqual([{ network: 'hoodi', signer: 'signer-1', reason: 'UnaccountedTransactions' }])
    expect(world.keys.signed).toEqual([])
  })
})

/** What is taken back while the operator's caches hear nothing. */
const takenBack: { readonly what: string; readonly reason: string; readonly change: (world: World, key: string) => void }[] = [
  {
    what: 'its namespace is taken out of the policy',
    reason: 'NamespaceNotAllowed',
    change: (world) => world.editPolicy({ allowedNamespaces: { names: ['team-b'] } }),
  },
  { what: 'the fee cap is lowered', reason: 'FeeTooHigh', change: (world) => world.editPolicy({ maxFeePerGasGwei: '1' }) },
  { what: 'the signer is gone', reason: 'SignerNotFound', change: (world) => world.signers.vanish('signer-1') },
  {
    what: 'it is suspended',
    reason: 'Suspended',
    change(world, key) {
      if (key === KEY) world.editSpec({ suspend: true })
      else world.editRequest(key, (one) => ({ ...one, spec: { ...one.spec, suspend: true } as ValidatorExitSpec }))
    },
  },
  { what: 'it is deleted', reason: 'Deleting', change: (world, key) => world.remove(key) },
  {
    what: 'it is another resource of its name',
    reason: 'OwnerGone',
    change(world, key) {
      const change = (one: { metadata: object }) => ({ ...one, metadata: { ...one.metadata, uid: 'uid-of-another', annotations: {} } })
      if (key === KEY) world.stakes.edit(KEY, change as never)
      else world.editRequest(key, change as never)
    },
  },
  {
    what: 'its origin is another',
    reason: 'OwnerGone',
    change(world, key) {
      const annotations = { [ORIGIN_ANNOTATION]: 'uid-9/team-a/another' }
      if (key === KEY) world.annotate(annotations)
      else world.editRequest(key, (one) => ({ ...one, metadata: { ...one.metadata, annotations } }))
    },
  },
]
test.each(kinds)('%s is deleted while it is in flight: that needs nobody, and is no stall', async (key) => {
  const world = worldOf(key)
  const operator = world.start()
  await world.visit(operator, key)
  world.remove(key)
  await polls(world, operator, key, 2)
  expect(world.condition('Ready', key)?.reason).toBe('Deleting')
  expect(world.stalled(key), said(world, key)).toBe('')
})

describe('while the watches are silent', () => {
  const whens = ['before its place is taken', 'between its place and its first sending', 'between its record and its place'] as const
  test.each(takenBack.flatMap((row) => whens.flatMap((when) => kinds.map((key) => ({ ...row, when, key })))))(
    '$what, $when: $key is not sent',
    async ({ change, when, key }) => {
      const world = worldOf(key)
      let done = false
      const operator = world.start((point) => {
        const due =
          when === 'before its place is taken'
            ? point.startsWith('before record create')
            : when === 'between its record and its place'
              ? point.startsWith('before place create')
              : point.startsWith('after record write')
        if (done || !due) return
        done = true
        for (const cache of Object.values(operator.caches)) cache.frozen = true
        change(world, key)
      })
      await polls(world, operator, key, 3)
      expect(done).toBe(true)
      // A new one of its name may ask for itself, as itself.
      const owner = world.record(key)?.spec.owner.originUid
      if (owner !== 'uid-of-another') expect(calls(world)).toEqual([])
      expect(world.chain.violations).toEqual([])
    },
  )

  test.each(kinds)(
    'its namespace loses the label that the policy admits it by, right before the first sending: %s is not sent',
    async (key) => {
      const world = worldOf(key, { allowedNamespaces: { selector: { matchLabels: { team: 'a' } } } })
      let done = false
      const operator = world.start((point) => {
        if (done || !point.startsWith('after record write')) return
        done = true
        world.silenceNamespaces()
        world.namespaces.set('team-a', {})
      })
      await polls(world, operator, key, 3)
      expect(done).toBe(true)
      expect(calls(world)).toEqual([])
      expect(world.stalled(key), said(world, key)).toBe('NamespaceNotAllowed')
    },
  )

  test.each(takenBack.flatMap((row) => kinds.map((key) => ({ ...row, key }))))(
    '$what, after an operator ended right before the first sending: $key is not sent by the next, though its status shows all there is to show',
    async ({ change, key }) => {
      const world = worldOf(key)
      const ended = world.start((point, self) => {
        if (point.startsWith('before send')) self.kill()
      })
      await world.visit(ended, key)
      expect(ended.killed).toBe(true)
      const operator = world.start()
      for (const cache of Object.values(operator.caches)) cache.frozen = true
      change(world, key)
      await operator.visitLanes()
      await polls(world, operator, key, 3)
      expect(calls(world)).toEqual([])
    },
  )

  test.each(takenBack.flatMap((row) => kinds.map((key) => ({ ...row, key }))))(
    '$what, and the nodes have forgotten it: an operator that starts then sends nothing of $key again',
    async ({ change, key }) => {
      const world = worldOf(key)
      await world.visit(world.start(), key)
      world.chain.forget()
      const operator = world.start()
      for (const cache of [operator.caches.stakes, operator.caches.exits, operator.caches.withdrawals, operator.caches.signers])
        cache.frozen = true
      change(world, key)
      await polls(world, operator, key, 3)
      expect(world.chain.pool().filter(({ data }) => data !== '0x')).toEqual([])
    },
  )
})
