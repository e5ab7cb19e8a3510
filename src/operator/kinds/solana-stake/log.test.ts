import { sign as signBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { SolanaError } from '../../../chains/solana/chain.ts'
import { joinTransaction } from '../../../chains/solana/message.ts'
import { buildDeactivationMessage, buildWithdrawalMessage } from '../../../chains/solana/stake.ts'
import { testAddress, testKey } from '../../../chains/solana/testing.ts'
import type { SolanaStakeBody } from '../../../contract/schemas/solana.ts'
import { lamports } from '../../../lib/amounts.ts'
import type { SolanaStakeStatus } from '../../../resources/solana-stake.ts'
import type { Around } from '../../testing/mortal.ts'
import { readyStake, stakeWorld } from '../../testing/solana-stories.ts'
import { AMOUNT, KEY, payer, type SolanaOperator, type SolanaWorld, withdrawer } from '../../testing/solana-world.ts'

const signal = new AbortController().signal
const thief = testAddress(77)

const stepOf = (operator: SolanaOperator, purpose: string, key = KEY) => operator.records(key).find(({ spec }) => spec.purpose === purpose)
const poke = (world: SolanaWorld, value: string) => world.annotate({ 'staking.dev/reconcile-at': value })

/** An Ed25519 signature by one of the keys of tests. */
function signedBy(number: number, message: Uint8Array): Uint8Array {
  const prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
  const der = Buffer.concat([prefix, testKey(number).secretKey.slice(0, 32)])
  return new Uint8Array(signBytes(null, message, { key: der, format: 'der', type: 'pkcs8' }))
}
/** As somebody does who holds the keys: the stake is deactivated, and all of it withdrawn. */
async function withdrawnBySomebody(world: SolanaWorld, stakeAccount: string, destination: string): Promise<void> {
  const frame = async () => ({
    feePayer: payer,
    recentBlockhash: (await world.cluster.chain.latestBlockhash(signal)).blockhash,
    computeUnitLimit: 100_000,
    computeUnitPriceMicroLamports: 0n,
  })
  const send = async (message: Uint8Array) => {
    const signatures = new Map([
      [payer, signedBy(1, message)],
      [withdrawer, signedBy(2, message)],
    ])
    await world.cluster.chain.sendTransaction(joinTransaction(message, signatures), { skipPreflight: false }, signal)
    world.cluster.settle()
  }
  await send(buildDeactivationMessage({ ...(await frame()), stakeAccount, stakeAuthority: payer }))
  world.cluster.nextEpoch()
  const amount = lamports(AMOUNT)
  await send(buildWithdrawalMessage({ ...(await frame()), stakeAccount, withdrawAuthority: withdrawer, destination, amount }))
}

describe('a first node that stands still', () => {
  test.each([
    { how: 'behind', secondAt: (height: number) => height },
    { how: 'silent', secondAt: () => -1 },
  ])('($how) has nothing made anew before it comes along: every node must be beyond what has expired', async ({ how, secondAt }) => {
    const world = stakeWorld()
    const operator = world.start()
    world.cluster.state.forgetful = true
    await world.visit(operator)
    world.cluster.state.secondAt = secondAt(world.cluster.height())
    world.cluster.expire()
    await world.visit(operator)
    expect(stepOf(operator, 'SolanaStake')?.status, how).toMatchObject({ state: 'Open', attempts: [{ kind: 'Call' }] })
    expect(world.condition('Ready')?.message).toContain('node 2 of')
    expect(world.stalled()).toBe('')

    world.cluster.state.secondAt = undefined
    world.cluster.state.forgetful = false
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(stepOf(world.start(), 'SolanaStake')?.status).toMatchObject({ closed: [{ by: 'Expired', nonce: 0 }], outcome: { is: 'Landed' } })
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  test('of the staking API: what it makes is dead on arrival, and not signed', async () => {
    const world = stakeWorld()
    world.cluster.produce(400)
    const stale = BigInt(world.cluster.height() - 300)
    const operator = world.start()
    world.cluster.state.apiBehind = 300
    await world.visit(operator)
    expect(world.condition('Ready'), world.explain()).toMatchObject({ reason: 'ServiceUnavailable' })
    expect(world.condition('Ready')?.message).toContain(`valid up to block height ${stale + 150n}`)
    expect(world.keys.signed.filter(({ what }) => what === 'message')).toEqual([])
    world.cluster.state.apiBehind = 0
    world.cluster.expire()
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })
})

describe('no slot becomes final for half an hour', () => {
  const alarms = (world: SolanaWorld) => world.events.filter(({ text }) => text.reason === 'NoFinality').map(({ key }) => key)

  test.each([
    { purpose: 'the stake', begin: async () => ({ world: stakeWorld() }) },
    {
      purpose: 'the deactivation',
      begin: async () => {
        const { world } = await readyStake()
        world.editSpec({ desiredState: 'Inactive' })
        return { world }
      },
    },
  ])('the condition says so while $purpose waits for one, and whoever owns the key is told once', async ({ begin }) => {
    const { world } = await begin()
    const operator = world.start()
    for (let minute = 0; minute < 29; minute += 1) {
      await world.visit(operator)
      world.clock.advance(60_000)
    }
    expect(world.condition('Ready'), world.explain()).toMatchObject({ reason: 'AwaitingFinality' })
    for (let minute = 0; minute < 5; minute += 1) {
      await world.visit(operator)
      world.clock.advance(60_000)
    }
    expect(world.condition('Ready'), world.explain()).toMatchObject({ status: 'False', reason: 'NoFinality' })
    expect(alarms(world)).toEqual(['payer'])
    world.cluster.settle()
    await world.visit(operator)
    expect(world.condition('Ready')?.reason, world.explain()).not.toBe('NoFinality')
    expect(alarms(world)).toEqual(['payer'])
  })

  test('a cluster on which nothing waits alarms nobody', async () => {
    const { world, operator } = await readyStake()
    for (let minute = 0; minute < 40; minute += 1) {
      await world.visit(operator)
      world.clock.advance(60_000)
    }
    expect(world.ready(), world.explain()).toBe(true)
    expect(alarms(world)).toEqual([])
  })
})

describe('a Solana stake withdrawn by others', () => {
  test('to elsewhere is theft, stalled, and not Withdrawn; it is held when it is deleted', async () => {
    const { world, operator, account } = await readyStake()
    await withdrawnBySomebody(world, account, thief)
    const before = world.keys.signed.length
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.settle(operator)
    expect(world.stalled(), world.explain()).toBe('WithdrawnElsewhere')
    expect(world.condition('Stalled')?.message).toContain(thief)
    expect(world.condition('Withdrawn')?.status).not.toBe('True')
    expect(world.status().phase).toBe('Closed')
    expect(world.keys.signed).toHaveLength(before)
    world.stakes.remove(KEY)
    await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeDefined()
  })

  test('to where the resource says is Withdrawn, by the transaction that the chain names', async () => {
    const { world, operator, account } = await readyStake()
    await withdrawnBySomebody(world, account, withdrawer)
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status()).toMatchObject({ phase: 'Withdrawn', transactions: { withdrawal: { state: 'Confirmed' } } })
    world.stakes.remove(KEY)
    await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeUndefined()
  })

  test('is not Ready any more when it is looked at again, though it is settled', async () => {
    const { world, operator, account } = await readyStake()
    await withdrawnBySomebody(world, account, thief)
    poke(world, '1')
    await world.visit(operator)
    expect(world.ready(), world.explain()).toBe(false)
    expect(world.stalled()).toBe('AlreadyWithdrawn')
  })
})

describe('status is a mirror:', () => {
  test.each<{ what: string; forge: (status: SolanaStakeStatus) => object }>([
    {
      what: 'a transaction forged to Confirmed, and a protocol to Active',
      forge: (status) => ({
        ...status,
        transactions: { stake: { attempt: 1, state: 'Confirmed', slot: 1, landedSignature: '3'.repeat(87) } },
        protocol: { status: 'Active', activeLamports: '5', inactiveLamports: '0', epoch: 1, slot: 1 },
      }),
    },
    { what: 'that nothing was staked', forge: ({ transactions: _lost, ...status }) => ({ ...status, looked: true }) },
    { what: 'another stake', forge: (status) => ({ ...status, stakeId: 'forged', stakeAccount: thief, stakeAuthority: thief }) },
    { what: 'that it expired', forge: (status) => ({ ...status, transactions: { stake: { attempt: 1, state: 'Expired' } } }) },
  ])('$what is corrected', async ({ forge }) => {
    const world = stakeWorld()
    const operator = world.start()
    world.cluster.state.forgetful = true
    await world.visit(operator)
    const { stakeId, stakeAccount, stakeAuthority, transactions } = world.status()
    world.editStatus(forge)
    await world.visit(operator)
    expect(world.ready(), world.explain()).toBe(false)
    expect(world.status()).toMatchObject({ stakeId, stakeAccount, stakeAuthority, transactions })
    expect(world.status().looked).toBeUndefined()
    world.cluster.state.forgetful = false
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  test('a protocol forged to Active before it is, is looked at again', async () => {
    const world = stakeWorld()
    const operator = world.start()
    await world.visit(operator)
    world.cluster.settle()
    await world.visit(operator)
    expect(world.status().phase, world.explain()).toBe('Activating')
    world.editStatus((status) => ({ ...status, protocol: { ...status.protocol, status: 'Active' } }))
    await world.visit(operator)
    expect(world.status().protocol?.status).toBe('Activating')
    expect(world.ready()).toBe(false)
  })

  test('and lost after finality, the stake that is deleted then is held by the log', async () => {
    const { world } = await readyStake()
    world.editStatus(() => undefined)
    world.stakes.remove(KEY)
    const operator = world.start()
    await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeDefined()
    expect(world.condition('Ready')?.message).toContain('not withdrawn')
  })
})

describe('one stake of the API', () => {
  test('given to two resources is paid for one, once: the record’s name is the guard', async () => {
    const world = stakeWorld()
    const operator = world.start()
    await world.visit(operator)
    const body = await world.service.api.solanaStake(world.status().stakeId ?? '', signal)
    const { externalReference: _hidden, ...stake } = body
    const twin = 'team-a/twin'
    world.service.state.lie = (answer: SolanaStakeBody) => (answer.externalReference === `SolanaStake/${twin}` ? stake : answer)
    world.addStake({ destination: thief }, twin)
    await world.settle(world.start(), { key: twin })
    expect(world.stalled(twin), world.explain(twin)).toBe('VerificationFailed')
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    world.assertMoney({ funded: 1, withdrawn: 0 })
  })

  test('is not adopted from another namespace, whether its resource is there or gone', async () => {
    const world = stakeWorld()
    world.namespaces.set('team-b', {})
    world.editPolicy({ allowedNamespaces: { names: ['team-a', 'team-b'] } })
    world.editPolicy({ allowedNamespaces: { names: ['team-a', 'team-b'] } }, 'withdrawer')
    const operator = world.start((point) => {
      if (point === 'before chain.simulate') throw new SolanaError('unavailable', 'no answer')
    })
    await world.visit(operator)
    const { stakeId = '' } = world.status()
    expect(stakeId, world.explain()).not.toBe('')
    const other = 'team-b/taker'
    world.addStake({ adopt: { stakeId }, destination: thief }, other)
    for (const isThere of [true, false]) {
      if (!isThere) world.stakes.vanish(KEY)
      await world.settle(world.start(), { key: other })
      expect(world.stalled(other), world.explain(other)).toBe('AdoptionMismatch')
    }
    world.assertMoney({ funded: 0, withdrawn: 0 })
  })
})

test.each([
  { to: 'elsewhere', destination: thief, reason: 'WithdrawnElsewhere' },
  { to: 'to where this one says', destination: undefined, reason: '' },
])('what a resource that is gone has withdrawn $to is told so by the one that adopts the stake', async ({ destination, reason }) => {
  const { world, operator } = await readyStake()
  world.editSpec({ desiredState: 'Withdrawn' })
  await world.settle(operator, { rounds: 30 })
  expect(world.condition('Withdrawn')?.status, world.explain()).toBe('True')
  const { stakeId = '' } = world.status()
  world.stakes.vanish(KEY)
  const heir = 'team-a/heir'
  world.addStake({ adopt: { stakeId }, desiredState: 'Withdrawn', ...(destination && { destination }) }, heir)
  await world.settle(operator, { key: heir, rounds: 4 })
  // Whatever was signed for the account before can land no more.
  world.cluster.expire()
  await world.settle(operator, { key: heir, rounds: 8 })
  expect(world.stalled(heir), world.explain(heir)).toBe(reason)
  expect(world.ready(heir), world.explain(heir)).toBe(reason === '')
  world.assertMoney({ funded: 1, withdrawn: 1 })
})

test.each([
  { to: 'elsewhere', destination: thief, reason: 'WithdrawnElsewhere' },
  { to: 'to where this one says', destination: undefined, reason: '' },
])(
  'so it is where lamports that came meanwhile kept the account open, and this one has withdrawn them ($to)',
  async ({ destination, reason }) => {
    const { world, account } = await readyStake()
    const operator = world.start()
    world.editSpec({ desiredState: 'Inactive' })
    await world.settle(operator)
    const { stakeId = '' } = world.status()
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.visit(operator)
    const record = stepOf(operator, 'SolanaWithdrawal')
    const [signed] = record?.status?.attempts ?? []
    world.cluster.fund(account, 1n)
    world.cluster.settle()
    world.stakes.vanish(KEY)
    await operator.visitRecord(record?.metadata.name ?? '')
    const before = world.cluster.balance(destination ?? withdrawer)
    const heir = 'team-a/heir'
    world.addStake({ adopt: { stakeId }, desiredState: 'Withdrawn', ...(destination && { destination }) }, heir)
    await world.settle(operator, { key: heir, rounds: 12 })
    expect(stepOf(operator, 'SolanaWithdrawal', heir), world.explain(heir)).toMatchObject({
      spec: { generation: 1, earlier: [{ generation: 0, owner: { name: 'stake-1' } }] },
      status: { closed: [{ hash: signed?.hash, by: 'Revert', failure: 'AccountNotClosed' }], outcome: { is: 'Landed' } },
    })
    expect(world.cluster.balance(destination ?? withdrawer) - before).toBe(1n)
    expect(world.stalled(heir), world.explain(heir)).toBe(reason)
    expect(world.ready(heir), world.explain(heir)).toBe(reason === '')
    if (reason !== '') expect(world.condition('Stalled', heir)?.message).toContain(`Transaction ${signed?.hash} has withdrawn`)
  },
)

test('where no node has what withdrew it any more, whether that went to where this one says cannot be told: it is neither said nor denied', async () => {
  const { world, operator, account } = await readyStake()
  await withdrawnBySomebody(world, account, withdrawer)
  world.editSpec({ desiredState: 'Withdrawn' })
  await world.settle(operator)
  expect(stepOf(operator, 'SolanaWithdrawal')?.status, world.explain()).toMatchObject({
    attempts: [{ found: true }],
    outcome: { is: 'Landed' },
  })
  const { stakeId = '' } = world.status()
  world.stakes.vanish(KEY)
  const { message } = world.cluster.chain
  const heir = 'team-a/heir'
  world.addStake({ adopt: { stakeId }, desiredState: 'Withdrawn' }, heir)
  Object.assign(world.cluster.chain, { message: async () => undefined })
  await world.settle(operator, { key: heir, rounds: 4 })
  world.cluster.expire()
  await world.settle(operator, { key: heir, rounds: 8 })
  expect(world.stalled(heir), world.explain(heir)).toBe('HistoryMissing')
  expect(world.ready(heir)).toBe(false)
  Object.assign(world.cluster.chain, { message })
  world.annotate({ 'staking.dev/reconcile-at': '1' }, heir)
  await world.visit(operator, heir)
  expect(world.stalled(heir), world.explain(heir)).toBe('')
  expect(world.ready(heir), world.explain(heir)).toBe(true)
})

describe('the log of a step', () => {
  test('has each attempt before it is sent, told before it is sent, and asked for once more past the cache', async () => {
    const world = stakeWorld()
    const order: string[] = []
    const around: Around = (point) => {
      if (/^(before api.submit|after (stakes|signers).get|after record write|before send)/.test(point))
        order.push(point.replace(/ stake-.*/, ''))
    }
    await world.visit(world.start(around))
    const before = order.slice(0, order.indexOf('before send'))
    expect(before.indexOf('after record write')).toBeGreaterThanOrEqual(0)
    expect(before.slice(before.indexOf('after record write'))).toEqual([
      'after record write',
      'before api.submitTransaction',
      'after stakes.get',
      'after signers.get',
      'after signers.get',
    ])
  })

  test.each<{ what: string; policy?: Parameters<SolanaWorld['editPolicy']>[0]; change: (world: SolanaWorld) => void }>([
    { what: 'its policy is taken back', change: (world) => world.editPolicy({ allowedNamespaces: { names: [] } }) },
    {
      what: 'its namespace loses the label that the policy admits it by',
      policy: { allowedNamespaces: { selector: { matchLabels: { team: 'a' } } } },
      change: (world) => void world.namespaces.set('team-a', {}),
    },
    { what: 'it is suspended', change: (world) => world.editSpec({ suspend: true }) },
    { what: 'it is deleted', change: (world) => world.stakes.remove(KEY) },
  ])('is not sent when $what between the writing and the sending, while the watches are silent', async ({ policy, change }) => {
    const world = stakeWorld()
    world.namespaces.set('team-a', { team: 'a' })
    if (policy !== undefined) world.editPolicy(policy)
    const around: Around = (point) => {
      if (!point.startsWith('after record write')) return
      world.silenceNamespaces()
      for (const cache of [operator.caches.stakes, operator.caches.signers]) cache.frozen = true
      change(world)
    }
    const operator = world.start(around)
    await world.visit(operator)
    world.cluster.settle()
    expect(operator.records(KEY)[0]?.status?.attempts).toHaveLength(1)
    world.assertMoney({ funded: 0, withdrawn: 0 })
  })
})

test('suspended while its transaction is in flight, nothing more is signed, and it is still seen final and active', async () => {
  const world = stakeWorld()
  const operator = world.start()
  await world.visit(operator)
  world.editSpec({ suspend: true })
  const signed = world.keys.signed.length
  world.cluster.settle()
  await world.visit(operator)
  expect(world.status().transactions?.stake?.state, world.explain()).toBe('Confirmed')
  expect(world.keys.signed).toHaveLength(signed)
  world.cluster.nextEpoch()
  await world.visit(operator)
  expect(world.status().protocol?.status, world.explain()).toBe('Active')
})
