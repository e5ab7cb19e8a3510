import { describe, expect, test } from 'vitest'
import { StakingApiError } from '../../contract/client-error.ts'
import { RECONCILE_ANNOTATION } from '../../resources/meta.ts'
import { createWorld, GWEI, KEY, type World } from '../testing/world.ts'

const HOUR = 3_600_000
const MINUTE = 60_000
const EXIT = 'exit:team-a/exit-1'

async function settled() {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  const operator = world.start()
  await world.settle(operator)
  const later = async (hours: number): Promise<void> => {
    for (let hour = 0; hour < hours; hour++) {
      world.clock.advance(HOUR)
      await world.visit(operator)
    }
  }
  return { world, operator, later }
}
const fails = (world: World, status: number | undefined): void => {
  world.service.state.lie = () => {
    throw status === undefined
      ? new StakingApiError('no answer', { kind: 'network', outcomeUnknown: false })
      : new StakingApiError('refused', { kind: 'problem', status, outcomeUnknown: false })
  }
}
const warnings = (world: World) => world.events.flatMap(({ text }) => (text.type === 'Warning' ? [text.reason] : []))

describe('what is settled says whether it is still looked at', () => {
  test('from the first look on, with its time', async () => {
    const { world } = await settled()
    expect(world.condition('Observed')).toMatchObject({ status: 'True', reason: 'Succeeded' })
    expect(Date.parse(world.status().observedAt ?? '')).toBeLessThanOrEqual(world.clock.now().getTime())
  })

  test('with news comes its time; without, the time of the last look is written once a day', async () => {
    const { world, later } = await settled()
    const first = world.status().observedAt
    await later(20)
    expect(world.status().observedAt).toBe(first)
    world.service.setValidator(world.status().stakeId as string, 'active_ongoing', 3)
    await later(2)
    const second = world.status().observedAt
    expect(second).not.toBe(first)
    const writes = world.stakes.statusWrites(KEY)
    await later(20)
    expect(world.stakes.statusWrites(KEY)).toBe(writes)
    await later(5)
    expect(world.stakes.statusWrites(KEY)).toBe(writes + 1)
  })

  test('one failed look is no news; when they go on failing it says so, once, and since when', async () => {
    const { world, later } = await settled()
    const { observedAt } = world.status()
    fails(world, undefined)
    await later(1)
    expect(world.condition('Observed')?.status).toBe('True')
    const writes = world.stakes.statusWrites(KEY)
    await later(12)
    expect(world.condition('Observed')).toMatchObject({
      status: 'Unknown',
      reason: 'ServiceUnavailable',
      message: expect.stringContaining(observedAt ?? 'no time'),
    })
    expect(world.stakes.statusWrites(KEY)).toBe(writes + 1)
    // The money is where it was.
    expect(world.condition('Ready')?.status).toBe('True')
    world.service.state.lie = undefined
    await later(2)
    expect(world.condition('Observed')?.status).toBe('True')
    expect(world.status().observedAt).not.toBe(observedAt)
  })

  test.each([
    { what: 'a revoked API key', status: 401, reason: 'Unauthorized' },
    { what: 'an API key without the right', status: 403, reason: 'Unauthorized' },
  ])('$what is seen at the first look', async ({ status, reason }) => {
    const { world, later } = await settled()
    fails(world, status)
    await later(2)
    expect(world.condition('Observed')).toMatchObject({ status: 'Unknown', reason })
  })

  test('a defect of the program is logged, and what is settled stays', async () => {
    const { world, operator, later } = await settled()
    world.service.state.lie = () => {
      throw new TypeError('a defect')
    }
    await later(3)
    expect((await world.visit(operator)).kind).not.toBe('error')
    expect(world.condition('Observed')?.status).toBe('True')
    expect(world.condition('Ready')?.status).toBe('True')
  })

  test('a network that has left the configuration is told', async () => {
    const { world, later } = await settled()
    world.networks.delete('hoodi')
    await later(2)
    expect(world.condition('Observed')).toMatchObject({ status: 'Unknown', reason: 'UnknownNetwork' })
    expect(world.condition('Ready')?.status).toBe('True')
  })
})

describe('a reconcile that somebody asks for is acknowledged', () => {
  test('by what is settled, after it was looked at', async () => {
    const { world, operator } = await settled()
    world.annotate({ [RECONCILE_ANNOTATION]: '2030-01-01T00:00:00Z' })
    await world.visit(operator)
    expect(world.status().lastHandledReconcileAt).toBe('2030-01-01T00:00:00Z')
    const writes = world.stakes.statusWrites(KEY)
    await world.visit(operator)
    expect(world.stakes.statusWrites(KEY)).toBe(writes)
  })

  test('by what waits, and by an operator that starts only then', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    world.chain.state.baseFee = 500n * GWEI
    await world.visit(world.start())
    world.annotate({ [RECONCILE_ANNOTATION]: 'again' })
    await world.visit(world.start())
    expect(world.status().lastHandledReconcileAt).toBe('again')
  })

  test('a text of any length is cut, and looked at once', async () => {
    const { world, operator } = await settled()
    world.annotate({ [RECONCILE_ANNOTATION]: 'x'.repeat(10_000) })
    await world.visit(operator)
    expect(world.status().lastHandledReconcileAt).toBe('x'.repeat(64))
    const writes = world.stakes.statusWrites(KEY)
    await world.visit(operator)
    expect(world.stakes.statusWrites(KEY)).toBe(writes)
  })
})

describe('what waits for something that may need a person', () => {
  async function waits(minutes: number, given: { readonly key: string; readonly prepare: (world: World) => void }) {
    const world = createWorld()
    world.addSigner()
    given.prepare(world)
    const operator = world.start()
    for (let minute = 0; minute <= minutes; minute++) {
      await world.visit(operator, given.key)
      world.clock.advance(MINUTE)
    }
    return { world, operator }
  }
  const dear = {
    key: KEY,
    prepare(world: World) {
      world.addStake()
      world.chain.state.baseFee = 500n * GWEI
    },
  }

  test('and is over within a minute is no event', async () => {
    const world = createWorld()
    world.addSigner()
    dear.prepare(world)
    const operator = world.start()
    for (let look = 0; look < 3; look++) {
      await world.visit(operator)
      expect(world.condition('Ready')?.reason).toBe('FeeTooHigh')
      world.clock.advance(10_000)
    }
    world.chain.state.baseFee = 10n * GWEI
    await world.settle(operator)
    expect(world.events.map(({ text }) => `${text.type} ${text.reason}`)).toEqual(['Normal Confirmed'])
  })

  test('is told once it has lasted, with the reason', async () => {
    const { world } = await waits(5, dear)
    expect(world.events.map(({ text }) => `${text.type} ${text.reason}`)).toEqual(['Normal FeeTooHigh'])
  })

  test('is warned of after a while, and rarely again', async () => {
    const { world } = await waits(40, dear)
    expect(warnings(world)).toEqual(['FeeTooHigh'])
    expect((await waits(170, dear)).world.events.filter(({ text }) => text.type === 'Warning')).toHaveLength(3)
  })

  test('a mistyped stakeRef does not wait in silence', async () => {
    const { world } = await waits(20, {
      key: EXIT,
      prepare: (world) => void world.addExit(EXIT, { validator: { stakeRef: { name: 'stake-l' } } }),
    })
    expect(warnings(world)).toEqual(['WaitingForStake'])
  })

  test('reasons that take turns, as in a total outage, are one wait', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const operator = world.start()
    for (let minute = 0; minute < 12; minute++) {
      world.chain.state.baseFee = minute % 2 === 0 ? 500n * GWEI : 10n * GWEI
      world.chain.state.historySyncing = minute % 2 === 1
      await world.visit(operator)
      world.clock.advance(5 * MINUTE)
    }
    expect([...new Set(warnings(world))].toSorted()).toEqual(['FeeTooHigh', 'HistorySyncing'])
  })

  test('the time counts anew after it has gone on', async () => {
    const { world, operator } = await waits(25, dear)
    world.chain.state.baseFee = 10n * GWEI
    await world.settle(operator)
    world.addStake('team-a/stake-2')
    world.chain.state.baseFee = 500n * GWEI
    for (let minute = 0; minute < 20; minute++) {
      await world.visit(operator, 'team-a/stake-2')
      world.clock.advance(MINUTE)
    }
    expect(warnings(world)).toEqual([])
  })
})
