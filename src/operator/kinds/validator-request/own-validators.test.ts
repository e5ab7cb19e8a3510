import { describe, expect, test } from 'vitest'
import type { Hex } from '../../../chains/ethereum/chain.ts'
import { testAddress } from '../../testing/fake-keys.ts'
import { createWorld, EXIT, KEY, type World } from '../../testing/world.ts'

const message = (world: World, key: string) => world.condition('Ready', key)?.message ?? ''
const EXIT_OF_B = 'exit:team-b/exit-1'

/** team-a has paid a stake; team-b may use the same key, and its policy is that of the default: requests for own validators only. */
async function paid(): Promise<{ world: World; operator: ReturnType<World['start']>; pubkey: Hex }> {
  const world = createWorld()
  world.addSigner('signer-1', {}, { allowedNamespaces: { names: ['team-a', 'team-b'] }, validators: 'Own' })
  world.addStake(KEY, { withdrawalAddress: testAddress(0) })
  const operator = world.start()
  await world.settle(operator)
  const pubkey = world.status().depositData?.pubkey as Hex
  expect(world.ready(), message(world, KEY)).toBe(true)
  const [stake] = world.service.stakes()
  world.service.setValidator(stake?.stakeId ?? '', 'active_ongoing', 7, 10)
  return { world, operator, pubkey }
}
const byKey = (pubkey: Hex) => ({ validator: { network: 'hoodi', pubkey } })

describe('a signer whose policy admits requests for own validators', () => {
  test('asks for the exit of a stake of the namespace, by its name and by its key', async () => {
    for (const validator of ['by name', 'by key'] as const) {
      const { world, operator, pubkey } = await paid()
      world.addExit(EXIT, validator === 'by key' ? byKey(pubkey) : { validator: { stakeRef: { name: 'stake-1' } } })
      await world.settle(operator, [EXIT])
      expect(world.ready(EXIT), message(world, EXIT)).toBe(true)
      expect(world.chain.requests()).toMatchObject([{ kind: 'exit', pubkey }])
    }
  })

  test('asks for no exit of another namespace’s validator, whose owner’s own exit it does not hold up', async () => {
    const { world, operator, pubkey } = await paid()
    world.addExit(EXIT_OF_B, { ...byKey(pubkey), maxRequestFeeGwei: '0' })
    await world.settle(operator, [EXIT_OF_B], 4)
    expect(world.stalled(EXIT_OF_B), message(world, EXIT_OF_B)).toBe('ValidatorNotOwned')
    expect(world.requests.calls, 'nothing was asked of the staking API').toEqual([])
    expect(world.record(EXIT_OF_B)).toBeUndefined()
    world.addExit(EXIT, byKey(pubkey))
    await world.settle(operator, [EXIT, EXIT_OF_B])
    expect(world.ready(EXIT), message(world, EXIT)).toBe(true)
    expect(world.chain.requests()).toHaveLength(1)
  })

  test('is not misled by a stake whose status was forged, adopted or not', async () => {
    for (const adopt of [undefined, true] as const) {
      const { world, operator, pubkey } = await paid()
      const forged = world.status()
      world.addStake('team-b/fake', {
        withdrawalAddress: testAddress(0),
        suspend: true,
        ...(adopt === undefined ? {} : { adopt: { stakeId: forged.stakeId ?? '' } }),
      })
      const { conditions: _, ...status } = forged
      world.editStatus(() => status, 'team-b/fake')
      for (const validator of [{ network: 'hoodi', pubkey }, { stakeRef: { name: 'fake' } }]) {
        const key = `exit:team-b/by-${'stakeRef' in validator ? 'name' : 'key'}`
        world.addExit(key, { validator })
        await world.settle(operator, [key], 4)
        expect(['ValidatorNotOwned', 'VerificationFailed'], message(world, key)).toContain(world.stalled(key))
      }
      expect(world.chain.requests()).toEqual([])
    }
  })

  test.each([
    { reference: 'that of another system', externalReference: 'customer-7' },
    { reference: 'none', externalReference: undefined },
  ])('asks only the namespace that has paid, of two that adopt a stake whose reference is $reference', async ({ externalReference }) => {
    const world = createWorld()
    world.addSigner('signer-1', {}, { allowedNamespaces: { names: ['team-a', 'team-b'] }, validators: 'Own' })
    const made = await world.service.api.createEthereumStake(
      {
        ...{ idempotencyKey: 'by hand', network: 'hoodi', amountGwei: (32n * 10n ** 9n) as never, withdrawalAddress: testAddress(0) },
        ...{ credentialsType: '0x02', externalReference: 'customer-7' },
      },
      new AbortController().signal,
    )
    world.service.state.lie = ({ externalReference: _, ...body }) => ({
      ...body,
      ...(externalReference === undefined ? {} : { externalReference }),
    })
    world.addStake(KEY, { withdrawalAddress: testAddress(0), adopt: { stakeId: made.stakeId } })
    const operator = world.start()
    await world.settle(operator)
    expect(world.ready(), message(world, KEY)).toBe(true)
    world.service.setValidator(made.stakeId, 'active_ongoing', 7, 10)
    world.addStake('team-b/thief', { withdrawalAddress: testAddress(0), suspend: true, adopt: { stakeId: made.stakeId } })
    const { conditions: _, ...status } = world.status()
    world.editStatus(() => status, 'team-b/thief')
    for (const validator of [{ network: 'hoodi', pubkey: made.depositData.pubkey }, { stakeRef: { name: 'thief' } }]) {
      const key = `exit:team-b/by-${'stakeRef' in validator ? 'name' : 'key'}`
      world.addExit(key, { validator })
      await world.settle(operator, [key], 4)
      expect(['ValidatorNotOwned', 'VerificationFailed'], message(world, key)).toContain(world.stalled(key))
    }
    expect(world.chain.requests()).toEqual([])
    world.addExit(EXIT, { validator: { stakeRef: { name: 'stake-1' } } })
    await world.settle(operator, [EXIT])
    expect(world.ready(EXIT), message(world, EXIT)).toBe(true)
  })

  test('asks for no exit of one stake of the namespace in the name of another, whose status was forged', async () => {
    const { world, operator } = await paid()
    const { conditions: _, ...status } = world.status()
    world.addStake('team-a/stake-2', { withdrawalAddress: testAddress(0), suspend: true })
    world.editStatus(() => status, 'team-a/stake-2')
    world.addExit(EXIT, { validator: { stakeRef: { name: 'stake-2' } } })
    await world.settle(operator, [EXIT], 4)
    expect(world.stalled(EXIT), message(world, EXIT)).toBe('VerificationFailed')
    expect(world.chain.requests()).toEqual([])
  })

  test('asks for the exit of a stake that the namespace has adopted', async () => {
    const world = createWorld()
    world.addSigner('signer-1', {}, { validators: 'Own' })
    world.addStake(KEY, { withdrawalAddress: testAddress(0) })
    const operator = world.start()
    await world.settle(operator)
    const pubkey = world.status().depositData?.pubkey as Hex
    const [stake] = world.service.stakes()
    world.service.setValidator(stake?.stakeId ?? '', 'active_ongoing', 7, 10)
    // The log of before is lost, as is the resource; another takes the stake over.
    world.loseLog()
    world.stakes.vanish(KEY)
    world.addStake('team-a/adopted', { withdrawalAddress: testAddress(0), adopt: { stakeId: stake?.stakeId ?? '' } })
    await world.settle(operator, ['team-a/adopted'])
    world.addExit(EXIT, byKey(pubkey))
    await world.settle(operator, [EXIT])
    expect(world.ready(EXIT), `${message(world, 'team-a/adopted')} | ${message(world, EXIT)}`).toBe(true)
  })

  test('signs nothing more when the policy becomes narrower before the first broadcast, and goes on when it is wide again', async () => {
    const { world, operator, pubkey } = await paid()
    world.editPolicy({ validators: 'Any' })
    world.addExit(EXIT_OF_B, byKey(pubkey))
    await operator.visit(EXIT_OF_B)
    world.editPolicy({ validators: 'Own' })
    await world.settle(operator, [EXIT_OF_B], 4)
    expect(world.stalled(EXIT_OF_B), message(world, EXIT_OF_B)).toBe('ValidatorNotOwned')
    expect(world.chain.requests()).toEqual([])
    world.editPolicy({ validators: 'Any' })
    world.clock.advance(600_000)
    await world.settle(operator, [EXIT_OF_B])
    expect(world.ready(EXIT_OF_B), message(world, EXIT_OF_B)).toBe(true)
  })
})
