import { describe, expect, test, vi } from 'vitest'
import { testAddress } from '../../src/chains/solana/testing.ts'
import { StakingApiError } from '../../src/contract/client-error.ts'
import type { ActionKind } from '../../src/operator/kinds/solana-stake/steps.ts'
import type { KubeObject } from '../../src/operator/kube/objects.ts'
import { pointsAt, stakeWorld } from '../../src/operator/testing/solana-stories.ts'
import { KEY, type SolanaOperator, type SolanaWorld } from '../../src/operator/testing/solana-world.ts'
import type { SolanaStakeStatus, SolanaTransaction } from '../../src/resources/solana-stake.ts'
import { type StakingTransaction, stakingTransaction } from '../../src/resources/staking-transaction.ts'

/** What versions before the log have left: stakes whose transactions stand in their status, and no record of any. */

// Whole lives, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 })

const purposes = { stake: 'SolanaStake', deactivation: 'SolanaDeactivation', withdrawal: 'SolanaWithdrawal' } as const
const kinds = Object.keys(purposes) as ActionKind[]
type Transactions = Partial<Record<ActionKind, SolanaTransaction>>

const logOf = (world: SolanaWorld) => world.collection<StakingTransaction & KubeObject>(stakingTransaction)

/** A step as a version before the log had it in status, at the same point of its life. */
function asBefore({ status = {} }: StakingTransaction, shown: SolanaTransaction | undefined): SolanaTransaction | undefined {
  const { attempts = [], outcome } = status
  const last = attempts.at(-1)
  if (last === undefined) return outcome && { attempt: 0, state: 'Confirmed', slot: outcome.blockNumber }
  const { hash, message, lastValidBlockHeight, apiId, at } = last
  return {
    attempt: attempts.length,
    ...(apiId === undefined ? {} : { txId: apiId }),
    ...(message === undefined || outcome !== undefined ? {} : { message }),
    signature: hash,
    blockhash: testAddress(5),
    ...(lastValidBlockHeight === undefined ? {} : { lastValidBlockHeight }),
    preparedAt: at,
    ...(attempts.length < 2
      ? {}
      : { earlier: attempts.slice(0, -1).map((one, index) => ({ signature: one.hash, attempt: index + 1, outcome: 'Expired' as const })) }),
    ...(shown?.broadcastSignature === undefined ? {} : { broadcastSignature: shown.broadcastSignature }),
    ...(outcome === undefined
      ? { state: shown?.broadcastSignature === hash ? 'Broadcast' : 'Prepared' }
      : { state: 'Confirmed', landedSignature: outcome.hash, slot: outcome.blockNumber }),
  }
}

/** Makes of the world what a version before the log would have left of it. `change`: what somebody has made of status since. */
function leaveAsBefore(world: SolanaWorld, change: (status: SolanaStakeStatus) => object | undefined = (status) => status): void {
  const records = [...logOf(world).list()]
  const transactions: Transactions = {}
  for (const kind of kinds) {
    const record = records.find(({ spec }) => spec.purpose === purposes[kind])
    const before = record && asBefore(record, world.status().transactions?.[kind])
    if (before !== undefined) transactions[kind] = before
  }
  for (const { metadata } of records) logOf(world).vanish(metadata.name)
  if (world.stakes.get(KEY) === undefined) return
  world.editStatus(({ transactions: _mirror, looked: _looked, ...rest }) =>
    change({ ...rest, ...(Object.keys(transactions).length === 0 ? {} : { transactions }) }),
  )
}

const order = ['Active', 'Inactive', 'Withdrawn'] as const
async function live(world: SolanaWorld, operator: SolanaOperator): Promise<void> {
  for (const desiredState of order) {
    const now = world.stakes.get(KEY)?.spec.desiredState ?? 'Active'
    if (order.indexOf(now) > order.indexOf(desiredState)) continue
    world.editSpec({ desiredState })
    for (let round = 0; round < 4; round++) {
      await world.settle(operator)
      if (operator.killed || world.ready()) break
      // Whatever status names may land for as long as a transaction lives that was signed a moment ago.
      world.cluster.expire()
      world.cluster.expire()
    }
    if (operator.killed) return
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status().phase).toBe(desiredState)
  }
}

/** Where something has just been changed, or is about to be. */
const changes =
  /^(before|after) (stakes\.mergePatch|api\.(create|renew|refresh|submit)|chain\.sendTransaction)|^(before|after) record write/
const { of: pointsOf, endAt, deletedAfterEach } = pointsAt(changes)
const stepOf = (operator: SolanaOperator, kind: ActionKind) => operator.records(KEY).find(({ spec }) => spec.purpose === purposes[kind])

const remains: { readonly what: string; readonly change: (status: SolanaStakeStatus) => object | undefined }[] = [
  { what: 'with its transactions in status', change: (status) => status },
  { what: 'with its status lost: chain and staking API alone', change: () => undefined },
  { what: 'with its transactions lost from status', change: ({ transactions: _lost, ...rest }) => rest },
  {
    what: 'with its status forged to be over',
    change: (status) => ({
      ...status,
      transactions: Object.fromEntries(
        Object.entries(status.transactions ?? {}).map(([kind, one]) => [
          kind,
          { ...one, state: 'Expired', lastValidBlockHeight: 1, preparedAtSlot: 1_000_000 },
        ]),
      ),
    }),
  },
]

// Every point for what such a version leaves; of the rest, some of each kind.
describe.each(remains)('a stake of the version before, $what,', ({ what, change }) => {
  const stride = what === 'with its transactions in status' ? 1 : 4
  test('at any point of its life, is taken into the log, and is lived once to its end', async () => {
    const points = await pointsOf(live)
    expect(points.length).toBeGreaterThan(40)
    let imports = 0
    for (let fatal = 0; fatal < points.length; fatal += stride) {
      const world = stakeWorld()
      await live(world, world.start(endAt(fatal)))
      leaveAsBefore(world, change)
      const shown = kinds.filter((kind) => world.status().transactions?.[kind] !== undefined)
      const signed = world.keys.signed.length
      const operator = world.start()
      try {
        await world.visit(operator)
        // Before anything is signed, everything that status names stands in the log, and it is said.
        for (const kind of shown) expect(stepOf(operator, kind), kind).toBeDefined()
        const said = world.events.filter(({ text }) => text.reason === 'Imported')
        expect(said).toHaveLength(shown.length)
        if (said.length > 0) imports++
        // The same bytes are signed again, to be sent again; nothing else is while something may land.
        const known = new Set(world.keys.signed.slice(0, signed).map(({ bytes }) => Buffer.from(bytes).toString('hex')))
        if (shown.length > 0 && world.status().phase !== 'Withdrawn')
          for (const { bytes, what: is } of world.keys.signed.slice(signed))
            if (is === 'message' && shown.some((kind) => stepOf(operator, kind)?.status?.outcome === undefined))
              expect(known).toContain(Buffer.from(bytes).toString('hex'))
        await live(world, operator)
        world.assertMoney({ funded: 1, withdrawn: 1 })
        expect(world.service.stakes()).toHaveLength(1)
        expect(world.cluster.landed().map(({ failure }) => failure)).toEqual([undefined, undefined, undefined])
      } catch (error) {
        throw new Error(`left ${what} at ${points[fatal]}`, { cause: error })
      }
    }
    if (what.includes('in status') || what.includes('forged')) expect(imports).toBeGreaterThan(20 / stride)
  })

  test('deleted at any point before it is active, holds its money, or goes with nothing staked', async () => {
    const ends = await deletedAfterEach({ leave: (world) => leaveAsBefore(world, change), expiries: 2 })
    expect(Math.min(ends.held, ends.gone)).toBeGreaterThan(3)
  })
})

/** A stake whose transaction was handed to a node, and stands in status alone. */
async function sentBefore(given: { readonly forgotten?: boolean } = {}): Promise<{ world: SolanaWorld; signature: string }> {
  const world = stakeWorld()
  await world.visit(world.start())
  if (given.forgotten === true) world.cluster.forget()
  leaveAsBefore(world)
  const signature = world.status().transactions?.stake?.signature ?? ''
  expect(signature).not.toBe('')
  return { world, signature }
}
async function activeBefore(): Promise<SolanaWorld> {
  const world = stakeWorld()
  await world.settle(world.start())
  expect(world.ready(), world.explain()).toBe(true)
  leaveAsBefore(world)
  return world
}
const messages = (world: SolanaWorld) => world.keys.signed.filter(({ what }) => what === 'message')

describe('what an earlier version has left', () => {
  test('is taken in whole, though the operator ends at any point of that', async () => {
    const { world: first } = await sentBefore()
    const points: string[] = []
    await first.visit(first.start((point) => void (/record (create|write)/.test(point) && points.push(point))))
    for (let fatal = 0; fatal < points.length; fatal++) {
      const { world, signature } = await sentBefore()
      let passed = 0
      await world.visit(
        world.start((point, doomed) => {
          if (/record (create|write)/.test(point) && passed++ === fatal) doomed.kill()
        }),
      )
      // The record's own controller comes first this time.
      const operator = world.start()
      for (const { metadata } of operator.records(KEY)) await operator.visitRecord(metadata.name)
      await world.settle(operator)
      expect(world.ready(), world.explain()).toBe(true)
      expect(
        logOf(world)
          .list()[0]
          ?.status?.attempts?.map(({ hash }) => hash),
      ).toEqual([signature])
      world.assertMoney({ funded: 1, withdrawn: 0 })
    }
    expect(points.length).toBeGreaterThan(3)
  })

  test('that is Active stays so, whatever its policy admits now, and though it is suspended: nothing is signed to take it in', async () => {
    const world = await activeBefore()
    world.editPolicy({ maxPerTransaction: '100000', allowedNamespaces: { names: [] } })
    world.editSpec({ suspend: true })
    const signed = world.keys.signed.length
    const operator = world.start()
    for (let n = 0; n < 3; n++) await world.visit(operator)
    expect(stepOf(operator, 'stake')?.status?.outcome?.is, world.explain()).toBe('Landed')
    expect(world.status().protocol?.status).toBe('Active')
    expect(world.keys.signed).toHaveLength(signed)
  })

  test('waits while the staking API is away: nothing is signed, its status stays, and deleted it is held', async () => {
    const { world, signature } = await sentBefore()
    let isAway = true
    const operator = world.start((point) => {
      if (isAway && point.startsWith('before api.')) throw new StakingApiError('no answer', { kind: 'network', outcomeUnknown: true })
    })
    const signed = world.keys.signed.length
    for (let n = 0; n < 3; n++) await world.visit(operator)
    expect(world.status().transactions?.stake?.signature).toBe(signature)
    expect(world.keys.signed).toHaveLength(signed)
    expect(operator.records(KEY)).toEqual([])
    world.stakes.remove(KEY)
    for (let n = 0; n < 3; n++) await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeDefined()
    isAway = false
    world.cluster.settle()
    for (let n = 0; n < 3; n++) await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeDefined()
    expect(world.condition('Ready')?.message, world.explain()).toContain('not withdrawn')
  })

  test('and can be made anew is so only once every node is beyond what may land, whatever status says of its end', async () => {
    const { world, signature } = await sentBefore({ forgotten: true })
    world.cluster.state.forgetful = true
    world.editStatus((status) => ({
      ...status,
      transactions: { stake: { ...status.transactions?.stake, state: 'Expired', lastValidBlockHeight: 1 } },
    }))
    const operator = world.start()
    for (let n = 0; n < 3; n++) await world.visit(operator)
    expect(new Set(messages(world).map(({ bytes }) => Buffer.from(bytes).toString('hex'))).size).toBe(1)
    expect(stepOf(operator, 'stake')?.status).toMatchObject({ state: 'Open', attempts: [{ hash: signature, found: true }] })
    world.cluster.state.forgetful = false
    for (let n = 0; n < 3; n++) {
      world.cluster.expire()
      await world.visit(operator)
    }
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  test('is stalled where the staking API has lost the stake: nothing is signed, and nothing of status is lost', async () => {
    const { world, signature } = await sentBefore()
    const operator = world.start((point) => {
      if (point === 'before api.solanaStake')
        throw new StakingApiError('not-found', { kind: 'problem', code: 'not-found', status: 404, outcomeUnknown: false })
    })
    const signed = world.keys.signed.length
    for (let n = 0; n < 3; n++) await world.visit(operator)
    expect(world.stalled(), world.explain()).toBe('VerificationFailed')
    expect(world.status().transactions?.stake?.signature).toBe(signature)
    expect(world.keys.signed).toHaveLength(signed)
    world.stakes.remove(KEY)
    await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeDefined()
    world.annotate({ 'staking.dev/confirm-delete': 'stake-1' })
    // Whether it was paid can't be told: what is at the staking API is not cancelled, and keeps it for no longer than a minute.
    await world.visit(operator)
    world.clock.advance(60_000)
    await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeUndefined()
    expect(world.service.stakes()[0]?.cancelledAt).toBeUndefined()
  })
})

describe('what somebody has written into the status of an earlier version', () => {
  test.each(['Broadcast', 'Confirmed'] as const)(
    "a transaction of another resource, as its own (%s), doesn't count as its own",
    async (state) => {
      const world = stakeWorld()
      const other = 'team-a/stake-2'
      world.addStake({}, other)
      await world.settle(world.start(), { key: other })
      const landed = world.status(other).transactions?.stake?.signature ?? ''
      const operator = world.start((point) => {
        if (point === 'before chain.simulate') throw new Error('not now')
      })
      await world.visit(operator)
      for (const { metadata, spec } of [...logOf(world).list()]) if (spec.owner.name === 'stake-1') logOf(world).vanish(metadata.name)
      world.editStatus((status) => ({
        ...status,
        transactions: { stake: { attempt: 1, state, signature: landed, landedSignature: landed, slot: 1 } },
      }))
      const next = world.start()
      await world.visit(next)
      expect(world.ready()).toBe(false)
      await world.settle(next)
      expect(world.ready(), world.explain()).toBe(true)
      expect(stepOf(world.start(), 'stake')?.status).toMatchObject({
        closed: [{ by: 'Unrelated', hash: landed }],
        outcome: { is: 'Landed' },
      })
      expect(stepOf(world.start(), 'stake')?.status?.outcome?.hash).not.toBe(landed)
      world.assertMoney({ funded: 2, withdrawn: 0 })
    },
  )

  test('the stake of another resource is not taken: that one goes on', async () => {
    const { world } = await sentBefore()
    world.namespaces.set('team-b', {})
    for (const name of ['payer', 'withdrawer']) world.editPolicy({ allowedNamespaces: { names: ['team-a', 'team-b'] } }, name)
    const thief = 'team-b/stake-1'
    world.addStake({ destination: testAddress(77) }, thief)
    const operator = world.start()
    // It has its origin, and then the other's status.
    await world.visit(
      world.start((point) => {
        if (point === 'before api.createSolanaStake') throw new StakingApiError('no answer', { kind: 'network', outcomeUnknown: true })
      }),
      thief,
    )
    world.editStatus(() => ({ ...world.status() }), thief)
    await world.visit(operator, thief)
    expect(world.stalled(thief), world.explain(thief)).toBe('VerificationFailed')
    expect(operator.records(thief)).toEqual([])
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })
})

test('a stake that was withdrawn before is over, and goes when it is deleted', async () => {
  const world = stakeWorld()
  await live(world, world.start())
  leaveAsBefore(world)
  const signed = world.keys.signed.length
  const operator = world.start()
  await world.settle(operator)
  expect(world.ready(), world.explain()).toBe(true)
  expect(world.status().phase).toBe('Withdrawn')
  expect(world.keys.signed).toHaveLength(signed)
  world.stakes.remove(KEY)
  await world.visit(operator)
  expect(world.stakes.get(KEY)).toBeUndefined()
})
