import { describe, expect, test, vi } from 'vitest'
import { CONFIRM_DELETE_ANNOTATION, DISREGARD_SUBMISSION_ANNOTATION } from '../../../resources/meta.ts'
import type { Ledger } from '../../../resources/staking-signer.ts'
import { addressOf, createWorld, EXIT, hoodi, KEY, type Operator, WITHDRAWAL, type World } from '../../testing/world.ts'
import { hashIn, pubkeyOf } from '../ethereum-texts.ts'

/** Objects that the version before the log has left, at every point of a life, are taken into the log before anything is signed. */

// Signatures are made for real, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 })

const kinds = [KEY, EXIT, WITHDRAWAL] as const
const steps: Readonly<Record<string, string>> = { EthereumStake: 'stake', ValidatorExit: 'exit', ValidatorWithdrawal: 'withdrawal' }
const said = (world: World, key: string) => JSON.stringify([world.condition('Ready', key), world.record(key)?.status])
const done = (world: World) => world.chain.deposits().length + world.chain.requests().length

function worldOf(key: string, options: Parameters<typeof createWorld>[0] = {}): World {
  const world = createWorld(options)
  world.addSigner()
  if (key === EXIT) world.addExit()
  else if (key === WITHDRAWAL) world.addWithdrawal()
  else world.addStake()
  return world
}

/**
 * As the version before leaves it: what is in flight stands in the signer's ledger, with all its versions, and in the resource's status, whose shape is the
 * same; there is no log.
 */
function asBefore(world: World, keys: readonly string[]): void {
  const inFlight: NonNullable<Ledger['inFlight']> = []
  let nextNonce = 0
  for (const { spec, status } of world.records.list()) {
    const calls = (status?.attempts ?? []).filter(({ kind }) => kind === 'Call')
    const last = calls.at(-1)
    nextNonce = Math.max(nextNonce, (status?.place ?? -1) + 1)
    if (last === undefined || status?.outcome !== undefined) continue
    const { owner } = spec
    inFlight.push({
      origin: owner.originUid,
      kind: owner.kind,
      namespace: owner.namespace,
      name: owner.name,
      step: steps[owner.kind] ?? '',
      pubkey: pubkeyOf({ spec }),
      nonce: last.nonce ?? 0,
      valueWei: last.valueWei ?? '0',
      gas: last.gas ?? '0',
      maxFeePerGasWei: last.maxFeePerGasWei ?? '0',
      maxPriorityFeePerGasWei: last.maxPriorityFeePerGasWei ?? '0',
      hash: hashIn(last),
      ...(calls.length > 1 ? { earlierHashes: calls.slice(0, -1).map(hashIn) } : {}),
      recordedAt: last.at,
    })
  }
  world.loseLog()
  world.signers.edit('signer-1', (signer) => ({
    ...signer,
    status: { ...signer.status, ledgers: [{ network: 'hoodi', nextNonce, inFlight }] },
  }))
  for (const key of keys) expect(world.record(key)).toBeUndefined()
}
/** A new version comes to lead, and takes over. */
async function upgraded(world: World): Promise<Operator> {
  const operator = world.start()
  await operator.visitSigner('signer-1')
  return operator
}
const ledgers = (world: World) => world.signers.get('signer-1')?.status?.ledgers

/** Points of a life: how far the version before has come with it. */
const points: readonly { readonly at: string; readonly reach: (world: World, key: string) => Promise<void> }[] = [
  {
    at: 'written down, not sent',
    async reach(world, key) {
      let isOver = false
      const operator = world.start((point, self) => {
        if (isOver || !point.startsWith('before send')) return
        isOver = true
        self.kill()
      })
      await world.visit(operator, key)
      expect(isOver).toBe(true)
      expect(world.chain.everSent()).toEqual([])
    },
  },
  { at: 'sent', reach: async (world, key) => void (await world.visit(world.start(), key)) },
  {
    at: 'sent, and replaced by a higher price',
    async reach(world, key) {
      const operator = world.start()
      await world.visit(operator, key)
      world.chain.state.baseFee *= 4n
      world.clock.advance(120_000)
      await world.visit(operator, key)
      expect(world.record(key)?.status?.attempts?.length).toBeGreaterThan(1)
    },
  },
  {
    at: 'sent, and forgotten by the nodes',
    async reach(world, key) {
      await world.visit(world.start(), key)
      world.chain.forget()
    },
  },
  {
    at: 'mined, not final',
    async reach(world, key) {
      await world.visit(world.start(), key)
      world.chain.mine()
    },
  },
  {
    at: 'final, and not seen so',
    async reach(world, key) {
      await world.visit(world.start(), key)
      for (let blocks = 0; blocks < 5; blocks++) world.chain.mine()
    },
  },
  { at: 'settled', reach: async (world, key) => void (await world.settle(world.start(), [key], 24)) },
]

describe.each(kinds)('%s', (key) => {
  test.each(points)('$at: it is followed to its end, once', async ({ reach }) => {
    const world = worldOf(key)
    await reach(world, key)
    asBefore(world, [key])
    const operator = await upgraded(world)
    expect(ledgers(world)).toBeUndefined()
    expect(world.events.map(({ text }) => text.reason)).toContain('LedgerImported')
    await world.settle(operator, [key], 24)
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(done(world)).toBe(1)
    expect(world.record(key)?.status).toMatchObject({ outcome: { is: 'Landed', nonce: 0 } })
    expect(world.chain.violations).toEqual([])
  })

  test.each(points.slice(1))('$at, and its status is lost: it is followed, once', async ({ reach }) => {
    const world = worldOf(key)
    await reach(world, key)
    asBefore(world, [key])
    if (key === KEY) world.editStatus(() => undefined)
    else world.editRequestStatus(() => undefined, key)
    world.signers.edit('signer-1', (signer) => ({ ...signer, spec: { ...signer.spec, acknowledgedNonce: 1 } }))
    const operator = await upgraded(world)
    await world.settle(operator, [key], 24)
    expect(world.ready(key), said(world, key)).toBe(true)
    expect(done(world)).toBe(1)
    expect(world.chain.violations).toEqual([])
  })

  test.each(points)('$at, and suspended: what was sent is followed, nothing is signed', async ({ at, reach }) => {
    const world = worldOf(key)
    await reach(world, key)
    asBefore(world, [key])
    const suspend = { suspend: true }
    if (key === KEY) world.editSpec(suspend)
    else world.editRequest(key, (one) => ({ ...one, spec: { ...one.spec, ...suspend } }))
    const signed = world.keys.signed.length
    const operator = await upgraded(world)
    await world.settle(operator, [key], 8)
    const calls = world.keys.signed.slice(signed).filter(({ transaction }) => transaction.data !== '0x')
    expect(calls).toEqual([])
    const isThere = done(world) === 1
    if (at === 'settled' || at.startsWith('final')) expect(world.record(key)?.status?.outcome?.is, said(world, key)).toBe('Landed')
    else expect(isThere || world.record(key)?.status?.closed?.[0]?.by === 'Cancel' || world.record(key)?.status?.place === 0).toBe(true)
    expect(world.chain.violations).toEqual([])
  })

  test.each(points.slice(1))('$at, and deleted at once: it is not let go while it may land or has landed', async ({ at, reach }) => {
    const world = worldOf(key)
    await reach(world, key)
    asBefore(world, [key])
    world.remove(key)
    const operator = world.start()
    // Before anything is taken over.
    await world.visit(operator, key)
    expect(world.object(key)).toBeDefined()
    await operator.visitSigner('signer-1')
    await world.visit(operator, key)
    const isOver = at === 'settled' || at.startsWith('final')
    if (key === KEY || !isOver) expect(world.object(key), at).toBeDefined()
    // Somebody waits behind it: it lands, or its nonce is cancelled.
    world.addStake('team-a/behind')
    await world.settle(operator, [key, 'team-a/behind'], 16)
    if (key === KEY && world.record()?.status?.outcome?.is === 'Landed') {
      expect(world.object(KEY)).toBeDefined()
      world.annotate({ [CONFIRM_DELETE_ANNOTATION]: 'stake-1' })
      await world.visit(operator, KEY)
    }
    expect(world.object(key), said(world, key)).toBeUndefined()
    expect(world.ready('team-a/behind')).toBe(true)
    expect(done(world)).toBeLessThanOrEqual(2)
    expect(world.chain.violations).toEqual([])
  })

  test('the import is cut off after each of its writes: the next leader goes on, and it is done once', async () => {
    for (let cut = 0; cut < 12; cut++) {
      const world = worldOf(key)
      await world.visit(world.start(), key)
      asBefore(world, [key])
      let writes = 0
      const first = world.start((point, self) => {
        if (/^after (record|place|signer) (create|write)/.test(point) && writes++ === cut) self.kill()
      })
      await first.visitSigner('signer-1')
      const isCut = first.killed
      const operator = await upgraded(world)
      await world.settle(operator, [key], 24)
      expect(world.ready(key), `${cut}: ${said(world, key)}`).toBe(true)
      expect(done(world)).toBe(1)
      expect(world.chain.violations).toEqual([])
      if (!isCut) return
    }
    throw new Error('it has more writes than were tried')
  })
})

describe('until it is taken over', () => {
  test('nothing is signed with the key, for nobody', async () => {
    const world = worldOf(KEY)
    await world.visit(world.start(), KEY)
    asBefore(world, [KEY])
    world.addStake('team-a/new')
    const signed = world.keys.signed.length
    const operator = world.start()
    await world.settle(operator, ['team-a/new'], 3)
    expect(world.keys.signed).toHaveLength(signed)
    expect(world.condition('Ready', 'team-a/new')?.reason).toBe('Importing')
    await operator.visitSigner('signer-1')
    await world.settle(operator, [KEY, 'team-a/new'], 24)
    expect([world.ready(), world.ready('team-a/new')]).toEqual([true, true])
    expect(world.chain.deposits()).toHaveLength(2)
  })

  test('a ledger of a network that is not configured stops the key, and says what to do', async () => {
    const world = worldOf(KEY)
    await world.visit(world.start(), KEY)
    asBefore(world, [KEY])
    world.signers.edit('signer-1', (signer) => ({
      ...signer,
      status: { ...signer.status, ledgers: signer.status?.ledgers?.map((one) => ({ ...one, network: 'holesky' })) },
    }))
    world.addStake('team-a/new')
    const operator = await upgraded(world)
    await world.visit(operator, 'team-a/new')
    expect(world.condition('Ready', 'team-a/new')?.message).toContain("the operator's networks file has no such network")
    expect(ledgers(world)).toHaveLength(1)
  })

  test('a settled stake stays Ready all the time', async () => {
    const world = worldOf(KEY)
    await world.settle(world.start(), [KEY], 24)
    asBefore(world, [KEY])
    const operator = world.start()
    const seen = new Set<string | undefined>()
    const look = async () => {
      await world.visit(operator, KEY)
      seen.add(world.condition('Ready')?.status)
    }
    await look()
    await operator.visitSigner('signer-1')
    for (let times = 0; times < 4; times++) await look()
    expect([...seen]).toEqual(['True'])
    expect(world.record()?.status?.outcome?.is).toBe('Landed')
  })
})

describe('what a tenant wrote into a status', () => {
  const OTHER = 'team-a/other'
  /** A stake that claims the transaction of another one. */
  async function forger(): Promise<World> {
    const world = worldOf(KEY)
    world.addStake(OTHER)
    const operator = world.start()
    await world.settle(operator, [KEY], 24)
    const stolen = world.status()
    asBefore(world, [KEY])
    world.stakes.vanish(OTHER)
    world.addStake(OTHER)
    const { uid } = world.stakes.get(OTHER)?.metadata ?? { uid: '' }
    world.annotate({ 'staking.dev/origin': `${uid}/team-a/other` }, OTHER)
    world.editStatus(() => stolen, OTHER)
    return world
  }

  test('takes nothing from the one that made it', async () => {
    const world = await forger()
    const operator = await upgraded(world)
    await world.settle(operator, [KEY, OTHER], 24)
    expect(world.record()?.spec.owner.name).toBe('stake-1')
    expect(world.ready()).toBe(true)
    // The other one is paid as what it is: a stake of its own.
    expect(new Set(world.chain.deposits().map(({ pubkey }) => pubkey)).size).toBe(world.chain.deposits().length)
  })

  test('a hash that no node knows holds its own stake until a person has looked, and nobody else', async () => {
    const world = worldOf(KEY)
    world.addStake(OTHER)
    await world.visit(world.start(), KEY)
    const before = world.status()
    asBefore(world, [KEY])
    world.signers.edit('signer-1', (signer) => ({ ...signer, status: { ...signer.status, ledgers: [{ network: 'hoodi', nextNonce: 0 }] } }))
    world.chain.forget()
    const ghost = `0x${'ab'.repeat(32)}` as const
    world.editStatus((status) => ({ ...status, transaction: { ...before.transaction, hash: ghost, broadcastHash: ghost } }))
    const operator = await upgraded(world)
    await world.settle(operator, [OTHER], 24)
    expect(world.ready(OTHER)).toBe(true)
    await world.settle(operator, [KEY], 4)
    expect(world.stalled()).toBe('UnknownSubmission')
    expect(world.condition('Ready')?.message).toContain(ghost)
    const hashes = (world.record()?.status?.claims ?? []).flatMap(({ hash }) => hash ?? [])
    world.editRecord((record) => ({
      ...record,
      metadata: { ...record.metadata, annotations: { [DISREGARD_SUBMISSION_ANNOTATION]: hashes.join(',') } },
    }))
    await world.settle(operator, [KEY], 8)
    expect(world.stalled(), said(world, KEY)).not.toBe('VerificationFailed')
  })

  test('after the import nothing of a status is believed', async () => {
    const world = worldOf(KEY)
    const operator = world.start()
    await world.visit(operator, KEY)
    asBefore(world, [KEY])
    const next = await upgraded(world)
    world.addStake(OTHER)
    world.editStatus(() => ({ ...world.status(), transaction: { ...world.status().transaction, state: 'Confirmed' } }), OTHER)
    await world.settle(next, [KEY, OTHER], 24)
    expect(world.chain.deposits()).toHaveLength(2)
    expect([world.ready(), world.ready(OTHER)]).toEqual([true, true])
  })
})

test('a nonce whose transaction nobody can tell any more is filled', async () => {
  const world = worldOf(KEY)
  await world.visit(world.start(), KEY)
  asBefore(world, [KEY])
  world.stakes.vanish(KEY)
  world.chain.forget()
  world.addStake('team-a/new')
  const operator = await upgraded(world)
  await world.settle(operator, ['team-a/new'], 24)
  expect(world.ready('team-a/new'), said(world, 'team-a/new')).toBe(true)
  expect(world.chain.nonce(addressOf(0))).toBe(2)
  expect(world.chain.deposits()).toHaveLength(1)
  expect(world.places.list().every(({ spec }) => spec.chainId === hoodi.chainId)).toBe(true)
})

test('what was signed for a resource that is gone may land yet: whoever takes its stake over waits for that nonce', async () => {
  const heir = 'team-a/heir'
  const world = worldOf(KEY)
  const dying = world.start((point, self) => {
    if (point === 'before api.submitEthereumStake') self.kill()
  })
  await world.visit(dying, KEY)
  const [signed] = world.keys.signed
  if (signed === undefined) throw new Error('nothing was signed')
  // The version before sends first and tells later: nobody but a stranger's node has it.
  await world.chain.chain.send(signed.raw, 'all', new AbortController().signal)
  world.chain.forget()
  const stakeId = world.record()?.spec.apiId
  asBefore(world, [KEY])
  world.stakes.vanish(KEY)
  world.addStake(heir, { adopt: { stakeId: stakeId as string } })
  const operator = await upgraded(world)
  const calls = () => world.chain.everSent().filter(({ valueWei }) => valueWei > 0n)
  for (let poll = 0; poll < 6; poll++) {
    await world.visit(operator, heir)
    world.clock.advance(12_000)
    expect(calls(), said(world, heir)).toHaveLength(1)
  }
  expect(world.condition('Ready', heir)?.reason).toBe('WaitingForNonce')
  world.chain.mine(1, (versions) => versions.find(({ valueWei }) => valueWei > 0n))
  await world.settle(operator, [heir], 12)
  expect(world.ready(heir), said(world, heir)).toBe(true)
  world.assertMoney({ deposits: 1 })
})
