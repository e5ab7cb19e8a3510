import { expect, test } from 'vitest'
import { StakingApiError } from '../../../contract/client-error.ts'
import { CONFIRM_DELETE_ANNOTATION } from '../../../resources/meta.ts'
import { createWorld, KEY } from '../../testing/world.ts'

/** A stake that was made for no resource here, adopted, sent, and the log lost: the staking API was told of it, and the chain shows nothing yet. */
test.each([{ status: 'kept' }, { status: 'lost' }])(
  'an adopted stake in flight, of which the log is lost and status is $status, stays when it is deleted',
  async ({ status }) => {
    const world = createWorld()
    world.addSigner()
    const operator = world.start()
    world.chain.state.baseFee = 500n * 10n ** 9n
    world.addStake('team-a/gone')
    await world.visit(operator, 'team-a/gone')
    const stakeId = world.status('team-a/gone').stakeId ?? ''
    world.stakes.vanish('team-a/gone')
    world.chain.state.baseFee = 10n ** 10n
    world.addStake(KEY, { adopt: { stakeId } })
    await world.visit(operator, KEY)
    expect(world.chain.everSent()).toHaveLength(1)
    world.loseLog()
    if (status === 'lost') world.editStatus(() => undefined)
    world.remove(KEY)
    const next = world.start()
    await world.visit(next, KEY)
    await world.visit(next, KEY)
    expect(world.object(KEY)).toBeDefined()
    // A node has it: nobody has to look.
    expect(world.stalled()).toBe('')

    world.chain.mine(4)
    world.clock.advance(60_000)
    await world.visit(next, KEY)
    expect(world.object(KEY)).toBeDefined()
    world.assertMoney({ deposits: 1 })
  },
)

test.each([{ status: 'kept' }, { status: 'lost' }])(
  'one whose transaction is nowhere but at the staking API, with the log lost and status $status, asks a person before it goes',
  async ({ status }) => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    await world.visit(world.start(), KEY)
    const [sent] = world.chain.everSent()
    world.chain.forget()
    world.loseLog()
    if (status === 'lost') world.editStatus(() => undefined)
    world.remove(KEY)
    const next = world.start()
    for (let visits = 0; visits < 3; visits++) await world.visit(next, KEY)
    expect(world.stalled(), world.condition('Ready')?.message).toBe('UnknownSubmission')
    const { message = '' } = world.condition('Ready') ?? {}
    expect(message).toContain(sent?.hash)
    expect(message).toContain('staking.dev/confirm-delete')

    world.stakes.edit(KEY, (one) => ({
      ...one,
      metadata: { ...one.metadata, annotations: { ...one.metadata.annotations, [CONFIRM_DELETE_ANNOTATION]: 'stake-1' } },
    }))
    for (let visits = 0; visits < 3 && world.object(KEY) !== undefined; visits++) {
      await world.visit(next, KEY)
      world.clock.advance(60_000)
    }
    expect(world.object(KEY)).toBeUndefined()
  },
)

test.each([{ status: 400 }, { status: 404 }, { code: 'invalid-request' as const }])(
  'a resource whose spec adopts what is no stake at all (%j) goes when it is deleted',
  async (fields) => {
    const world = createWorld()
    world.addSigner()
    world.addStake(KEY, { suspend: true, adopt: { stakeId: 'no-stake' } })
    world.service.api.ethereumStake = async () => {
      throw new StakingApiError('no such stake', { kind: 'problem', ...fields, outcomeUnknown: false })
    }
    await world.visit(world.start(), KEY)
    world.remove(KEY)
    await world.visit(world.start(), KEY)
    expect(world.object(KEY)).toBeUndefined()
  },
)
