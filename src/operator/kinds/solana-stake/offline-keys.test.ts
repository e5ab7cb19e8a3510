import { describe, expect, test, vi } from 'vitest'
import { decodeMessage } from '../../../chains/solana/message.ts'
import { readyStake, stakeWorld } from '../../testing/solana-stories.ts'
import { AMOUNT, payer, type SolanaOperator, type SolanaWorld, withdrawer } from '../../testing/solana-world.ts'

/** One of two keys is kept offline, or lost. */

vi.setConfig({ testTimeout: 60_000 })

let pokes = 0
async function goOn(world: SolanaWorld, operator: SolanaOperator): Promise<void> {
  for (let count = 0; count < 3; count++) {
    world.clock.advance(60_000)
    world.annotate({ 'staking.dev/reconcile-at': String(++pokes) })
    await world.settle(operator)
  }
}
const needs = (world: SolanaWorld) => world.status().requiresKey?.map(({ step, authority, keyName }) => `${step} ${authority} ${keyName}`)
/** Who has signed each of the last transactions. */
const signersOfLanded = (world: SolanaWorld, last: number) =>
  world.cluster
    .landed()
    .slice(-last)
    .map(({ bytes }) => decodeMessage(bytes).signers)

describe('the withdraw key, kept offline', () => {
  test('is missed before anything is made, and only then: what it has approved lands without it', async () => {
    const world = stakeWorld()
    world.keys.break('withdrawer', 'missing')
    const operator = world.start()
    await world.visit(operator)
    expect(world.stalled(), world.explain()).toBe('KeyMissing')
    expect(world.service.stakes()).toEqual([])
    expect(needs(world)).toEqual(['Stake Withdraw withdrawer', 'Stake Stake payer'])
    // Brought for the approval, and taken away again before the transaction lands, which is lost, and made anew.
    world.keys.mend('withdrawer')
    world.cluster.state.forgetful = true
    world.annotate({ 'staking.dev/reconcile-at': String(++pokes) })
    await world.visit(operator)
    world.keys.break('withdrawer', 'missing')
    expect(needs(world)).toEqual(['Stake Stake payer'])
    world.cluster.produce(200)
    world.cluster.state.forgetful = false
    await goOn(world, operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status().transactions?.stake?.attempt).toBe(2)
    expect(world.status().requiresKey).toBeUndefined()
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  test('is not read by a deactivation; the withdrawal asks for it', async () => {
    const { world, operator } = await readyStake()
    world.keys.break('withdrawer', 'missing')
    world.cluster.state.forgetful = true
    world.editSpec({ desiredState: 'Inactive' })
    await world.visit(operator)
    expect(needs(world)).toEqual(['Deactivation Stake payer'])
    world.cluster.produce(200)
    world.cluster.state.forgetful = false
    await goOn(world, operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status().requiresKey).toBeUndefined()
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.settle(operator)
    expect(world.stalled(), world.explain()).toBe('KeyMissing')
    expect(needs(world)).toEqual(['Withdrawal Withdraw withdrawer'])
    world.keys.mend('withdrawer')
    await goOn(world, operator)
    expect(world.ready(), world.explain()).toBe(true)
    world.assertMoney({ funded: 1, withdrawn: 1 })
  })

  test('is not read to see what was done before: the status was lost', async () => {
    const { world, operator } = await readyStake()
    world.keys.break('withdrawer', 'missing')
    world.keys.break('payer', 'missing')
    world.editStatus(() => undefined)
    await goOn(world, operator)
    expect(world.ready(), world.explain()).toBe(true)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })
})

describe('the stake key, lost once the stake is inactive', () => {
  async function inactive() {
    const { world, operator } = await readyStake()
    world.editSpec({ desiredState: 'Inactive' })
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    return { world, operator }
  }
  /** All of it is at the withdraw authority's, less the fees that it paid itself. */
  const assertBack = (world: SolanaWorld, feesOf: number) => {
    const fees = world.cluster
      .landed()
      .slice(-feesOf)
      .reduce((sum, { fee }) => sum + fee, 0n)
    expect(world.cluster.balance(withdrawer)).toBe(1_000n * 1_000_000_000n + AMOUNT - fees)
  }

  test('is not needed: the withdraw authority pays and signs alone', async () => {
    const { world, operator } = await inactive()
    world.keys.break('payer', 'missing')
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.visit(operator)
    expect(needs(world)).toEqual(['Withdrawal Withdraw withdrawer'])
    // Its Secret may be about to be replaced: who pays is not changed for a moment's sake.
    expect(world.stalled(), world.explain()).toBe('KeyMissing')
    await goOn(world, operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(signersOfLanded(world, 1)).toEqual([[withdrawer]])
    assertBack(world, 1)
  })

  test('while its withdrawal was under way: that expires, and another is made which it need not sign', async () => {
    const { world, operator } = await inactive()
    world.cluster.state.forgetful = true
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.visit(operator)
    expect(world.status().transactions?.withdrawal?.attempt).toBe(1)
    world.keys.break('payer', 'missing')
    world.cluster.produce(200)
    world.cluster.state.forgetful = false
    await goOn(world, operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(signersOfLanded(world, 1)).toEqual([[withdrawer]])
    assertBack(world, 1)
  })

  test('though its own policy must still admit the fee', async () => {
    const { world, operator } = await inactive()
    world.keys.break('payer', 'missing')
    world.editPolicy({ maxPriorityFeeLamports: '0' })
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.visit(operator)
    world.clock.advance(60_000)
    world.annotate({ 'staking.dev/reconcile-at': String(++pokes) })
    await world.visit(operator)
    expect(world.condition('Ready')?.reason, world.explain()).toBe('FeeTooHigh')
    expect(world.cluster.balance(withdrawer)).toBe(1_000n * 1_000_000_000n)
  })

  test('of which the wrong one is mounted is no lost key: somebody should mend that', async () => {
    const { world, operator } = await inactive()
    world.keys.mount('payer', 7)
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.settle(operator)
    expect(world.stalled(), world.explain()).toBe('KeyAddressMismatch')
    expect(world.condition('Stalled')?.message).not.toContain('Nothing was signed')
    world.keys.mount('payer', 1)
    await goOn(world, operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(signersOfLanded(world, 1)).toEqual([[payer, withdrawer]])
  })

  test('is made up for by nobody without funds: the withdraw authority is asked for some', async () => {
    const { world, operator } = await inactive()
    world.keys.break('payer', 'missing')
    world.cluster.fund(withdrawer, -world.cluster.balance(withdrawer))
    world.cluster.settle()
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.visit(operator)
    world.clock.advance(60_000)
    world.annotate({ 'staking.dev/reconcile-at': String(++pokes) })
    await world.visit(operator)
    expect(world.condition('Ready')).toMatchObject({ reason: 'InsufficientFunds', message: expect.stringContaining(withdrawer) })
  })
})

test('a wrong key at the very beginning: then nothing was signed, and that is what is said', async () => {
  const world = stakeWorld()
  world.keys.mount('withdrawer', 7)
  await world.settle(world.start())
  expect(world.stalled(), world.explain()).toBe('KeyAddressMismatch')
  expect(world.condition('Stalled')?.message).toContain('Nothing was signed.')
  expect(world.keys.signed).toEqual([])
})
