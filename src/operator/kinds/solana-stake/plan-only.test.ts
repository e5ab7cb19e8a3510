import { expect, test } from 'vitest'
import { readPlan } from '../../../resources/plan.ts'
import type { Around } from '../../testing/mortal.ts'
import { stakeWorld } from '../../testing/solana-stories.ts'
import { AMOUNT, KEY, payer, voteAccount, withdrawer } from '../../testing/solana-world.ts'

/** `spec.mode: Plan`: everything up to the signature, and nothing of it: not even the staking API's challenge. */
test('a Solana stake that is only planned is verified and shown, and nothing is signed', async () => {
  const world = stakeWorld()
  world.editSpec({ mode: 'Plan' })
  const operator = world.start()
  await world.visit(operator)
  expect(world.status().phase, world.explain()).toBe('Planned')
  expect(world.condition('Ready')).toMatchObject({ status: 'False', reason: 'Planned' })
  expect(readPlan(world.status().plan)).toMatchObject({
    purpose: 'SolanaStake',
    amount: String(AMOUNT),
    from: payer,
    withdrawAuthority: withdrawer,
    voteAccount,
    destination: withdrawer,
    subject: world.status().stakeAccount,
  })
  expect([operator.records(KEY), world.keys.signed]).toEqual([[], []])
  world.assertMoney({ funded: 0, withdrawn: 0 })
})

test('applied, it is paid once, and its withdrawal can be planned before it is done', async () => {
  const world = stakeWorld()
  world.editSpec({ mode: 'Plan' })
  const operator = world.start()
  await world.visit(operator)
  const { stakeId } = world.status()
  world.editSpec({ mode: 'Apply' })
  await world.settle(operator)
  expect([world.ready(), world.status().stakeId, world.status().plan], world.explain()).toEqual([true, stakeId, undefined])
  world.assertMoney({ funded: 1, withdrawn: 0 })
  const signed = world.keys.signed.length
  world.editSpec({ mode: 'Plan', desiredState: 'Withdrawn' })
  await world.visit(operator)
  expect(readPlan(world.status().plan), world.explain()).toMatchObject({ purpose: 'SolanaDeactivation', destination: withdrawer })
  expect(world.keys.signed).toHaveLength(signed)
  world.editSpec({ mode: 'Apply' })
  await world.settle(operator)
  expect(world.status().phase, world.explain()).toBe('Withdrawn')
  world.assertMoney({ funded: 1, withdrawn: 1 })
})

/** Tells each call that an operator makes, by its number. */
const counting = (tell: (count: number) => void): Around => {
  let count = 0
  return (point) => {
    if (!point.startsWith('before ')) return
    count += 1
    tell(count)
  }
}

test('set to Plan at any point of its life, a Solana stake is paid once or not at all, and once in the end', {
  tags: 'whole',
  timeout: 60_000,
}, async () => {
  let calls = 0
  const life = stakeWorld()
  await life.settle(
    life.start(
      counting((count) => {
        calls = count
      }),
    ),
  )
  life.assertMoney({ funded: 1, withdrawn: 0 })
  expect(calls).toBeGreaterThan(30)
  let unpaid = 0
  for (let at = 1; at <= calls; at++) {
    const world = stakeWorld()
    const operator = world.start(counting((count) => void (count === at && world.editSpec({ mode: 'Plan' }))))
    for (let round = 0; round < 3; round++) {
      await world.visit(operator)
      world.cluster.settle()
    }
    if (world.status().phase === 'Planned') unpaid += 1
    world.editSpec({ mode: 'Apply' })
    await world.settle(world.start())
    expect(world.ready(), `at call ${at}: ${world.explain()}`).toBe(true)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  }
  expect(unpaid).toBeGreaterThan(5)
})
