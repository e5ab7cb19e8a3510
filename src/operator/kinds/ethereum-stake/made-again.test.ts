import { describe, expect, test } from 'vitest'
import { StakingApiError } from '../../../contract/client-error.ts'
import { testAddress } from '../../testing/fake-keys.ts'
import { createWorld, EXIT, KEY, type World } from '../../testing/world.ts'

/** A stake that was paid, of which the staking API has lost everything. */
async function forgotten(spec: object = {}) {
  const world = createWorld()
  world.addSigner()
  world.addStake(KEY, { withdrawalAddress: testAddress(0), ...spec })
  const operator = world.start()
  await world.settle(operator, [KEY])
  expect(world.ready(KEY)).toBe(true)
  const before = world.status()
  const signed = world.keys.signed.length
  world.service.forget()
  const look = async () => {
    world.clock.advance(3_600_000)
    await world.visit(operator, KEY)
  }
  const assertPaidOnce = (): void => {
    expect(world.chain.deposits()).toHaveLength(1)
    expect(world.chain.everSent()).toHaveLength(1)
    expect(world.keys.signed).toHaveLength(signed)
  }
  return { world, operator, before, look, assertPaidOnce }
}
describe('a paid stake that a restored staking API has forgotten', () => {
  test('is asked for again under its own key, known under its new id, and looked at like before', async () => {
    const { world, operator, before, look, assertPaidOnce } = await forgotten()
    await look()
    const [stake] = world.service.stakes()
    expect(stake?.stakeId).not.toBe(before?.stakeId)
    expect(world.status()).toMatchObject({ stakeId: stake?.stakeId, depositData: before?.depositData, transaction: before?.transaction })
    expect(world.record(KEY)?.spec.apiId).toBe(stake?.stakeId)
    expect(world.condition('Observed', KEY)).toMatchObject({ status: 'True' })

    world.service.setValidator(stake?.stakeId ?? '', 'active_ongoing', 7)
    await look()
    expect(world.condition('Active', KEY)).toMatchObject({ status: 'True' })
    expect(world.ready(KEY)).toBe(true)
    assertPaidOnce()

    // What others ask for by its name is found again too.
    world.addExit(EXIT, { validator: { stakeRef: { name: 'stake-1' } } })
    await world.settle(operator, [EXIT])
    expect(world.ready(EXIT), world.condition('Ready', EXIT)?.message).toBe(true)
  })

  test.each(['before', 'after'])('is known again, though the operator ends %s the log is told', async (when) => {
    const { world, assertPaidOnce } = await forgotten()
    const mortal = world.start((point, operator) => {
      if (point === `${when} transactions.mergePatch`) operator.kill()
    })
    world.clock.advance(3_600_000)
    await world.visit(mortal, KEY)
    world.clock.advance(3_600_000)
    await world.visit(mortal, KEY)
    expect(mortal.killed).toBe(true)
    const operator = world.start()
    for (let visits = 0; visits < 4; visits++) {
      world.clock.advance(3_600_000)
      await world.visit(operator, KEY)
    }
    const [stake, ...others] = world.service.stakes()
    expect(others).toEqual([])
    expect(world.status()).toMatchObject({ stakeId: stake?.stakeId })
    expect(world.record(KEY)?.spec.apiId).toBe(stake?.stakeId)
    expect(world.ready(KEY), world.condition('Ready', KEY)?.message).toBe(true)
    expect(world.condition('Observed', KEY)).toMatchObject({ status: 'True' })
    assertPaidOnce()
  })

  test.each<{ what: string; prepare: (world: World) => void }>([
    {
      what: 'gives another validator for it',
      prepare: (world) => {
        world.service.state.lie = (body) => ({ ...body, depositData: { ...body.depositData, pubkey: world.validator(5) } })
      },
    },
    {
      what: 'refuses it',
      prepare: ({ service: { api } }) => {
        Object.assign(api, {
          createEthereumStake: () => {
            throw new StakingApiError('no', { kind: 'problem', code: 'reference-exists', status: 409, outcomeUnknown: false })
          },
        })
      },
    },
  ])('and that $what: it stays Ready, and says that it cannot be looked at', async ({ prepare }) => {
    const { world, before, look, assertPaidOnce } = await forgotten()
    prepare(world)
    await look()
    await look()
    expect(world.status()).toMatchObject({ stakeId: before?.stakeId, depositData: before?.depositData })
    expect(world.record(KEY)?.spec.apiId).toBe(before?.stakeId)
    expect(world.condition('Observed', KEY)).toMatchObject({ status: 'Unknown', reason: 'RequestRefused' })
    expect(world.ready(KEY)).toBe(true)
    assertPaidOnce()
  })
})
