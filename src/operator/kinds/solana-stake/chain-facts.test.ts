import { describe, expect, test, vi } from 'vitest'
import { addressBytes } from '../../../chains/solana/addresses.ts'
import type { ChainAccount } from '../../../chains/solana/chain.ts'
import { burnAddress, stakeProgram, systemProgram, voteProgram } from '../../../chains/solana/programs.ts'
import { stakeAccountAddress } from '../../../chains/solana/stake.ts'
import { testAddress } from '../../../chains/solana/testing.ts'
import { lamports } from '../../../lib/amounts.ts'
import { solanaStake } from '../../../resources/solana-stake.ts'
import { readyStake, stakeWorld } from '../../testing/solana-stories.ts'
import { AMOUNT, KEY, payer, type SolanaOperator, type SolanaWorld, withdrawer } from '../../testing/solana-world.ts'

/** What chains really do, and what is made of it. */

vi.setConfig({ testTimeout: 60_000 })

let pokes = 0
async function lookAgain(world: SolanaWorld, operator: SolanaOperator): Promise<void> {
  world.cluster.settle()
  world.annotate({ 'staking.dev/reconcile-at': String(++pokes) })
  await world.visit(operator)
}
const ofProgram = (owner: string): ChainAccount => ({ lamports: lamports(1n), owner, data: new Uint8Array(82), executable: false })
const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
const offCurve = stakeAccountAddress(payer, 'a-vault')
const messages = (world: SolanaWorld) => world.keys.signed.filter(({ what }) => what === 'message')
/** Offsets in a stake account's data: the lockup of its meta, the deactivation epoch of its delegation. */
const LOCKUP = 76
const DEACTIVATION = 172

describe('a destination', () => {
  test.each<{ what: string; destination: string; account?: ChainAccount; meant: boolean }>([
    { what: 'a mint or a token account', destination: testAddress(50), account: ofProgram(tokenProgram), meant: true },
    { what: 'the incinerator', destination: burnAddress, meant: false },
    { what: 'a vote account', destination: testAddress(51), account: ofProgram(voteProgram), meant: true },
    { what: 'an address off the curve where nothing is', destination: offCurve, meant: true },
    { what: 'a program', destination: testAddress(52), account: { ...ofProgram(tokenProgram), executable: true }, meant: false },
  ])('that is $what is refused before anything is paid; as an exception of the policy: $meant', async ({ destination, account, meant }) => {
    const world = stakeWorld({ destination })
    if (account !== undefined) world.cluster.put(destination, account)
    world.cluster.settle()
    const operator = world.start()
    await world.settle(operator)
    expect(world.stalled(), world.explain()).toBe('InvalidSpec')
    expect(world.condition('Stalled')?.message?.includes('destinationExceptions')).toBe(meant)
    world.assertMoney({ funded: 0, withdrawn: 0 })
    // Of the stake authority's signer it says nothing: the money is the withdraw authority's.
    world.editPolicy({ destinationExceptions: [destination] })
    await world.visit(operator)
    expect(world.stalled()).toBe('InvalidSpec')
    world.editPolicy({ destinationExceptions: [destination] }, 'withdrawer')
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(meant)
    world.assertMoney({ funded: meant ? 1 : 0, withdrawn: 0 })
  })
})

describe('the withdraw authority’s own address', () => {
  test.each<{ what: string; account: ChainAccount }>([
    { what: 'a mint', account: ofProgram(tokenProgram) },
    { what: 'a nonce account', account: { ...ofProgram(systemProgram), data: new Uint8Array(80) } },
  ])('that is $what is refused before anything is paid, as any destination', async ({ account }) => {
    const world = stakeWorld()
    world.cluster.put(withdrawer, { ...account, lamports: lamports(world.cluster.balance(withdrawer)) })
    world.cluster.settle()
    await world.settle(world.start())
    expect(world.stalled(), world.explain()).toBe('InvalidSpec')
    expect(world.condition('Stalled')?.message).toContain(`own address ${withdrawer}`)
    world.assertMoney({ funded: 0, withdrawn: 0 })
  })
})

describe('a vote account', () => {
  test.each<{ what: string; vote: object; policy?: object; stalled: string }>([
    { what: 'that keeps everything', vote: { commission: 100 }, stalled: 'RequestRefused' },
    { what: 'that keeps over 100 %', vote: { commission: 150 }, stalled: 'RequestRefused' },
    {
      what: 'that keeps more than the policy admits',
      vote: { commission: 10 },
      policy: { maxCommissionPercent: 8 },
      stalled: 'VoteAccountNotAllowed',
    },
    { what: 'that keeps just as much', vote: { commission: 8 }, policy: { maxCommissionPercent: 8 }, stalled: '' },
    {
      what: 'that does not tell what it keeps',
      vote: { commission: undefined },
      policy: { maxCommissionPercent: 8 },
      stalled: 'VoteAccountNotAllowed',
    },
    { what: 'that does not tell, where nobody asks', vote: { commission: undefined }, stalled: '' },
    { what: 'without a BLS key where the cluster asks for one', vote: { needsBlsKey: true, blsKey: false }, stalled: 'RequestRefused' },
    { what: 'of a version that has none where the cluster asks for one', vote: { needsBlsKey: true }, stalled: 'RequestRefused' },
    { what: 'with a BLS key', vote: { needsBlsKey: true, blsKey: true }, stalled: '' },
    { what: 'without a BLS key where the cluster asks for none', vote: { blsKey: false }, stalled: '' },
  ])('$what: $stalled', async ({ vote, policy = {}, stalled }) => {
    const world = stakeWorld()
    world.editPolicy(policy)
    world.cluster.state.vote = vote
    await world.settle(world.start())
    expect(world.stalled(), world.explain()).toBe(stalled)
    world.assertMoney({ funded: stalled === '' ? 1 : 0, withdrawn: 0 })
  })

  test('that stops voting is told while the stake is active, and who deactivates the stake then needs no key', async () => {
    const { world, operator, account } = await readyStake()
    world.cluster.state.delinquent = true
    await lookAgain(world, operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.condition('Active')).toMatchObject({ status: 'True', reason: 'ValidatorDelinquent' })
    // A warning for each episode, however long that lasts, and whatever the stake has earned meanwhile.
    const warnings = () => world.events.filter(({ text }) => text.type === 'Warning' && text.reason === 'ValidatorDelinquent').length
    expect(warnings()).toBe(1)
    await lookAgain(world, operator)
    const other = world.start()
    await lookAgain(world, other)
    expect(warnings()).toBe(1)
    world.cluster.state.delinquent = false
    await lookAgain(world, operator)
    world.cluster.state.delinquent = true
    await lookAgain(world, operator)
    expect(warnings()).toBe(2)
    world.cluster.edit(account, (data) => data.writeBigUInt64LE(100n, DEACTIVATION))
    await lookAgain(world, operator)
    expect(world.stalled(), world.explain()).toBe('DelegationChanged')
    expect(world.condition('Stalled')?.message).toContain('no key of this resource need have been used')
  })

  test.each([
    { what: 'keeps everything', vote: { commission: 100 } },
    { what: 'keeps over 100 %', vote: { commission: 150 } },
    { what: 'has no BLS key where the cluster has begun to ask for one', vote: { needsBlsKey: true, blsKey: false } },
  ])('that $what once the stake is active: it is warned of, for as long as that lasts', async ({ vote }) => {
    const { world, operator } = await readyStake()
    world.cluster.state.vote = vote
    await lookAgain(world, operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.condition('Active')).toMatchObject({ status: 'True', reason: 'ValidatorEarnsNothing' })
    expect(world.events.filter(({ text }) => text.type === 'Warning' && text.reason === 'ValidatorEarnsNothing')).toHaveLength(1)
    world.cluster.state.vote = {}
    await lookAgain(world, operator)
    expect(world.condition('Active')).toMatchObject({ status: 'True', reason: 'Active' })
  })

  test('that votes: whoever deactivates the stake then has a key, as far as can be told', async () => {
    const { world, operator, account } = await readyStake()
    world.cluster.edit(account, (data) => data.writeBigUInt64LE(100n, DEACTIVATION))
    await lookAgain(world, operator)
    expect(world.stalled(), world.explain()).toBe('DelegationChanged')
    expect(world.condition('Stalled')?.message).toContain('find out who has it')
  })
})

describe('the priority fee', () => {
  test('has its cap told to the staking API for every transaction', async () => {
    const { world, operator } = await readyStake()
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.service.state.caps).toEqual([10_000n, 10_000n, 10_000n])
  })

  test('over the cap is FeeTooHigh, no forgery; it goes on once that transaction has expired and the API keeps to the cap', async () => {
    const world = stakeWorld()
    world.service.state.price = 10_000_000_000n
    const operator = world.start()
    await world.visit(operator)
    expect(world.stalled(), world.explain()).toBe('')
    expect(world.condition('Ready')).toMatchObject({ reason: 'FeeTooHigh' })
    expect(messages(world)).toEqual([])
    world.service.state.price = 1_000n
    world.cluster.expire()
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.service.state.caps).toEqual([10_000n, 10_000n])
  })
})

describe('compute units', () => {
  test.each([
    { what: 'a withdrawal after ninety epochs of partial cool-down, which needs them', units: 600_000, used: 450_000n, stalled: '' },
    { what: 'a transaction that needs few', units: 600_000, used: 20_000n, stalled: 'VerificationFailed' },
    { what: 'a transaction that asks for few', units: 190_000, used: 20_000n, stalled: '' },
    { what: 'more than the cluster allows', units: 1_500_000, used: 1_400_000n, stalled: 'VerificationFailed' },
  ])('asked for by $what ($units, $used used): $stalled', async ({ units, used, stalled }) => {
    const world = stakeWorld()
    world.service.state.units = units
    world.service.state.price = 0n
    world.cluster.state.unitsConsumed = used
    await world.settle(world.start())
    expect(world.stalled(), world.explain()).toBe(stalled)
  })
})

describe('a lockup', () => {
  const lock = (world: SolanaWorld, account: string, until: bigint) =>
    world.cluster.edit(account, (data) => {
      data.writeBigInt64LE(until, LOCKUP)
      Buffer.from(addressBytes(testAddress(60))).copy(data, LOCKUP + 16)
    })

  test('that somebody sets on an active stake is told: until when, and whose; lifted, it is Ready again', async () => {
    const { world, operator, account } = await readyStake()
    lock(world, account, 2_000_000_000n)
    await lookAgain(world, operator)
    expect(world.stalled(), world.explain()).toBe('LockupInForce')
    expect(world.ready()).toBe(false)
    expect(world.condition('Stalled')?.message).toContain('2033-05-18T03:33:20.000Z')
    expect(world.condition('Stalled')?.message).toContain(testAddress(60))
    expect(world.condition('Stalled')?.message).not.toContain('epoch')
    lock(world, account, 0n)
    await lookAgain(world, operator)
    expect(world.ready(), world.explain()).toBe(true)
  })

  test('of which the time is over is told by its epoch alone', async () => {
    const { world, operator, account } = await readyStake()
    world.cluster.edit(account, (data) => {
      data.writeBigInt64LE(1n, LOCKUP)
      data.writeBigUInt64LE(100_000n, LOCKUP + 8)
    })
    await lookAgain(world, operator)
    expect(world.stalled(), world.explain()).toBe('LockupInForce')
    expect(world.condition('Stalled')?.message).toContain('in force until the end of epoch 99999,')
  })

  test('until the last second and epoch that there are is told as any other, in a status that the API server takes', async () => {
    const { world, operator, account } = await readyStake()
    world.cluster.edit(account, (data) => {
      data.writeBigInt64LE((1n << 63n) - 1n, LOCKUP)
      data.writeBigUInt64LE((1n << 64n) - 1n, LOCKUP + 8)
    })
    await lookAgain(world, operator)
    expect(world.stalled(), world.explain()).toBe('LockupInForce')
    expect(world.status().protocol?.lockedUntil).toBe('second 9223372036854775807 and the end of epoch 18446744073709551614')
    expect(solanaStake.status.safeParse(world.status()).error).toBeUndefined()
  })

  test('keeps a stake from being adopted', async () => {
    const { world, account } = await readyStake()
    lock(world, account, 2_000_000_000n)
    world.cluster.settle()
    const { stakeId = '' } = world.status()
    world.stakes.vanish(KEY)
    const other = 'team-a/other'
    world.addStake({ adopt: { stakeId } }, other)
    await world.settle(world.start(), { key: other })
    expect(world.stalled(other), world.explain(other)).toBe('LockupInForce')
    expect(world.condition('Stalled', other)?.message).toContain(testAddress(60))
  })
})

describe('the stake account', () => {
  test('that is there, initialised and not delegated, is told for what it is, and nothing is paid into it', async () => {
    const { world: first, account: made } = await readyStake()
    first.cluster.edit(made, (data) => {
      data.writeUInt32LE(1, 0)
    })
    const copy = await first.cluster.chain.account(made, 'confirmed', new AbortController().signal)
    if (copy === undefined) throw new Error('no account')
    const world = stakeWorld()
    await world.visit(
      world.start((point) => {
        if (point === 'before chain.simulate') throw new Error('not now')
      }),
    )
    world.cluster.put(world.status().stakeAccount ?? '', copy)
    world.cluster.settle()
    await world.settle(world.start())
    expect(world.stalled(), world.explain()).toBe('DelegationChanged')
    expect(world.condition('Stalled')?.message).toContain('initialised and not delegated')
    expect(world.cluster.landed()).toEqual([])
  })

  test('that cannot be read any more is not Ready; readable again, it is', async () => {
    const { world, operator, account } = await readyStake()
    const before = await world.cluster.chain.account(account, 'confirmed', new AbortController().signal)
    if (before === undefined) throw new Error('no account')
    world.cluster.put(account, { ...before, data: new Uint8Array([9, 0, 0, 0]) })
    await lookAgain(world, operator)
    expect(world.stalled(), world.explain()).toBe('VerificationFailed')
    expect(world.ready()).toBe(false)
    world.cluster.put(account, before)
    await lookAgain(world, operator)
    expect(world.ready(), world.explain()).toBe(true)
  })

  test('that cannot be read when its transaction is looked for stalls, and is not made anew', async () => {
    const world = stakeWorld()
    const operator = world.start()
    await world.visit(operator)
    world.cluster.produce(1)
    world.cluster.put(world.status().stakeAccount ?? '', { ...ofProgram(stakeProgram), data: new Uint8Array([9, 0, 0, 0]) })
    world.cluster.settle()
    await world.visit(operator)
    expect(world.stalled(), world.explain()).toBe('VerificationFailed')
    expect(new Set(messages(world).map(({ bytes }) => Buffer.from(bytes).toString('hex'))).size).toBe(1)
  })

  test('of which the staking API’s withdrawal leaves a lamport is told for what it is, and stalls', async () => {
    const { world, operator } = await readyStake()
    world.service.state.leaves = 1n
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.settle(operator)
    world.cluster.expire()
    await world.settle(operator)
    expect(world.stalled(), world.explain()).toBe('VerificationFailed')
    expect(world.condition('Stalled')?.message).toContain(`${AMOUNT - 1n} of the ${AMOUNT} lamports`)
    world.service.state.leaves = 0n
    world.cluster.expire()
    for (let n = 0; n < 3; n++) {
      world.annotate({ 'staking.dev/reconcile-at': String(++pokes) })
      await world.settle(operator)
      world.cluster.settle()
    }
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.cluster.balance(withdrawer)).toBe(1_000n * 1_000_000_000n + AMOUNT)
  })
})

test.each([
  { what: 'behind', minutes: -6, says: 'has expired' },
  { what: 'ahead', minutes: 6, says: 'lives too long' },
])("the staking API's clock, six minutes $what, is told as a clock; set right, it goes on", async ({ what, minutes, says }) => {
  const world = stakeWorld()
  world.service.state.clockOffsetMs = minutes * 60_000
  const operator = world.start()
  await world.settle(operator)
  expect(world.stalled(), world.explain()).toBe('ClockSkew')
  expect(world.condition('Stalled')?.message).toMatch(new RegExp(`differ by 6 min: the API's is ${what}.*${says}`))
  expect(world.keys.signed).toEqual([])
  world.service.state.clockOffsetMs = 0
  world.annotate({ 'staking.dev/reconcile-at': String(++pokes) })
  await world.settle(operator)
  await world.settle(operator)
  expect(world.ready(), world.explain()).toBe(true)
})

test('a challenge that was made at another time than the Date of the answer has it is no clock’s fault', async () => {
  const world = stakeWorld()
  world.service.state.clockOffsetMs = -360_000
  world.service.state.dateOffsetMs = 1_200
  const operator = world.start()
  await world.settle(operator)
  expect(world.stalled(), world.explain()).toBe('VerificationFailed')
  expect(world.keys.signed).toEqual([])
})
