import { describe, expect, test } from 'vitest'
import { SolanaError } from '../../../chains/solana/chain.ts'
import { CONFIRM_DELETE_ANNOTATION, RECORD_FINALIZER } from '../../../resources/meta.ts'
import { type StakingTransaction, stakingTransaction } from '../../../resources/staking-transaction.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { stakeWorld } from '../../testing/solana-stories.ts'
import { KEY, type SolanaWorld } from '../../testing/solana-world.ts'

/** Somebody deletes the record of a step by hand: it stays as long as a resource needs it or something of it may land, and says why. */

type Record = StakingTransaction & KubeObject
type Operator = ReturnType<SolanaWorld['start']>

const steps = [
  { purpose: 'SolanaStake', reach: async () => {} },
  { purpose: 'SolanaDeactivation', reach: async (world: SolanaWorld) => void world.editSpec({ desiredState: 'Inactive' }) },
  {
    purpose: 'SolanaWithdrawal',
    async reach(world: SolanaWorld, operator: Operator) {
      world.editSpec({ desiredState: 'Inactive' })
      await world.settle(operator)
      expect(world.ready(), world.explain()).toBe(true)
      world.editSpec({ desiredState: 'Withdrawn' })
    },
  },
] as const

const log = (world: SolanaWorld) => world.collection<Record>(stakingTransaction)
const recordOf = (world: SolanaWorld, purpose: string) =>
  log(world)
    .list()
    .find(({ spec }) => spec.purpose === purpose)
const nameOf = (world: SolanaWorld, purpose: string) => recordOf(world, purpose)?.metadata.name ?? ''
/** Nothing of the step is in a block yet. */
async function sent({ purpose, reach }: (typeof steps)[number]): Promise<{ world: SolanaWorld; operator: Operator; name: string }> {
  const world = stakeWorld()
  const operator = world.start()
  if (purpose !== 'SolanaStake') await world.settle(operator)
  await reach(world, operator)
  world.cluster.state.forgetful = true
  await world.visit(operator)
  expect(recordOf(world, purpose)?.status?.attempts, world.explain()).toHaveLength(1)
  return { world, operator, name: nameOf(world, purpose) }
}
const desired = (world: SolanaWorld) => world.stakes.get(KEY)?.spec.desiredState

describe.each(steps)('$purpose in flight', (step) => {
  const { purpose } = step

  test.each([false, true])('its record stays, says why, and is followed to its end, once (its status lost: %s)', async (isLost) => {
    const { world, operator, name } = await sent(step)
    expect(recordOf(world, purpose)?.metadata.finalizers).toEqual([RECORD_FINALIZER])
    log(world).remove(name)
    if (isLost) world.editStatus(() => undefined)
    await operator.visitRecord(name)
    expect(recordOf(world, purpose)?.status?.held).toContain('team-a/stake-1 is there, and this is the only record')
    const [attempt] = recordOf(world, purpose)?.status?.attempts ?? []
    world.cluster.state.forgetful = false
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(recordOf(world, purpose)?.status).toMatchObject({ attempts: [attempt], outcome: { is: 'Landed', hash: attempt?.hash } })
    world.assertMoney({ funded: 1, withdrawn: desired(world) === 'Withdrawn' ? 1 : 0 })
  })

  test('its resource was taken away by force: it goes once the attempt can not land on any node', async () => {
    const { world, operator, name } = await sent(step)
    world.stakes.vanish(KEY)
    log(world).remove(name)
    await operator.visitRecord(name)
    expect(recordOf(world, purpose)?.status?.held).toContain('may still land')
    world.cluster.state.secondAt = world.cluster.height()
    world.cluster.expire()
    await operator.visitRecord(name)
    expect(recordOf(world, purpose)).toBeDefined()
    world.cluster.state.secondAt = undefined
    await operator.visitRecord(name)
    expect(recordOf(world, purpose), JSON.stringify(recordOf(world, purpose)?.status)).toBeUndefined()
  })

  test('its resource was taken away by force, and it lands: it goes once every node is beyond it', async () => {
    const { world, operator, name } = await sent(step)
    world.cluster.state.forgetful = false
    await operator.visitRecord(name)
    world.stakes.vanish(KEY)
    log(world).remove(name)
    world.cluster.settle()
    await operator.visitRecord(name)
    expect(recordOf(world, purpose)?.status).toMatchObject({
      outcome: { is: 'Landed' },
      held: expect.stringContaining('as far as the RPC nodes'),
    })
    world.cluster.state.secondAt = -1
    world.cluster.expire()
    await operator.visitRecord(name)
    expect(recordOf(world, purpose)).toBeDefined()
    world.cluster.state.secondAt = undefined
    await operator.visitRecord(name)
    expect(recordOf(world, purpose)).toBeUndefined()
  })

  test('its network is not configured any more: it says so, and stays', async () => {
    const { world, operator, name } = await sent(step)
    world.stakes.vanish(KEY)
    log(world).remove(name)
    world.networks.clear()
    world.cluster.expire()
    await operator.visitRecord(name)
    expect(recordOf(world, purpose)?.status?.held).toContain('networks file has no network with genesis')
  })
})

test('a settled stake keeps its records, and they go with it', async () => {
  const world = stakeWorld()
  const operator = world.start()
  await world.settle(operator)
  const name = nameOf(world, 'SolanaStake')
  log(world).remove(name)
  await operator.visitRecord(name)
  expect(recordOf(world, 'SolanaStake')?.status?.held).toContain('is there')
  world.annotate({ [CONFIRM_DELETE_ANNOTATION]: 'stake-1' })
  world.stakes.remove(KEY)
  await world.visit(operator)
  expect(world.stakes.get(KEY)).toBeUndefined()
  world.cluster.expire()
  await operator.visitRecord(name)
  expect(recordOf(world, 'SolanaStake')).toBeUndefined()
})

test('a record that nothing was ever signed for goes at once when its resource does', async () => {
  const world = stakeWorld()
  const operator = world.start((point) => {
    if (point === 'before chain.simulate') throw new SolanaError('unavailable', 'no answer')
  })
  await world.visit(operator)
  const name = nameOf(world, 'SolanaStake')
  expect(recordOf(world, 'SolanaStake')?.status?.attempts).toBeUndefined()
  log(world).remove(name)
  await operator.visitRecord(name)
  expect(recordOf(world, 'SolanaStake')).toBeDefined()
  world.stakes.vanish(KEY)
  await operator.visitRecord(name)
  expect(recordOf(world, 'SolanaStake')).toBeUndefined()
})
