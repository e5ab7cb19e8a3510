import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { SolanaStakeStatus, SolanaTransaction } from '../../../src/resources/solana-stake.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { wallet } from '../solana-chain/wallet.ts'
import { AMOUNT, createSolanaWorld, FEE, type SolanaParts, type SolanaWorld, startSolanaParts } from './solana-world.ts'

let store: Store
let parts: SolanaParts
beforeAll(async () => {
  store = await openStore(await memoryDatabase())
  parts = await startSolanaParts(store)
})
afterAll(async () => {
  await parts?.close()
  await store?.close()
})
afterEach(() => parts.cluster.settle())

let names = 0
function newWorld(change = {}, signerPolicy = {}) {
  const world = createSolanaWorld(parts)
  world.addSigners(signerPolicy)
  const key = `team-a/${++names}-in-many-states`
  world.addStake(change, key)
  return { world, key, operator: world.start() }
}
/** Staked, and active. */
async function active(change = {}) {
  const given = newWorld(change)
  await given.world.settle(given.operator, { key: given.key })
  expect(given.world.ready(given.key), given.world.explain(given.key)).toBe(true)
  return given
}
const accountOf = (world: SolanaWorld, key: string) => world.status(key).stakeAccount ?? ''
const spentBy = async (work: () => Promise<unknown>): Promise<bigint> => {
  const before = parts.cluster.balance(parts.payer.address)
  await work()
  parts.cluster.settle()
  return before - parts.cluster.balance(parts.payer.address)
}

describe('a stake that is not wanted', () => {
  test.each(['Inactive', 'Withdrawn'] as const)('before anything was paid (%s) has nothing signed for it', async (desiredState) => {
    const { world, key, operator } = newWorld({ desiredState })
    await world.settle(operator, { key })
    expect(world.condition('Ready', key)).toMatchObject({ status: 'True', reason: 'NothingStaked' })
    expect(world.signed).toEqual([])
    world.stakes.remove(key)
    await world.visit(operator, key)
    expect(world.stakes.get(key)).toBeUndefined()
  })

  test('while its transaction is in flight is first settled, then deactivated', async () => {
    const { world, key, operator } = newWorld()
    await world.visit(operator, key)
    expect(world.status(key).phase).toBe('Confirming')
    world.editSpec({ desiredState: 'Inactive' }, key)
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(world.status(key)).toMatchObject({ phase: 'Inactive', protocol: { inactiveLamports: String(AMOUNT) } })
  })

  test('and whose transaction was never sent, or dropped, is nothing once that cannot land', async () => {
    const { world, key, operator } = newWorld()
    world.cluster.node.fate({ kind: 'drop' })
    await world.visit(operator, key)
    const sent = world.signedMessages().length
    world.editSpec({ desiredState: 'Withdrawn' }, key)
    await world.visit(operator, key)
    expect(world.ready(key)).toBe(false)
    world.expire()
    await world.settle(operator, { key })
    expect(world.condition('Ready', key), world.explain(key)).toMatchObject({ status: 'True', reason: 'NothingStaked' })
    expect(world.signedMessages()).toHaveLength(sent)
  })

  test('any more and whose status was lost is found, deactivated and withdrawn', async () => {
    const { world, key, operator } = await active()
    const account = accountOf(world, key)
    world.editStatus(() => undefined, key)
    world.editSpec({ desiredState: 'Withdrawn' }, key)
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(world.status(key).phase).toBe('Withdrawn')
    expect(world.cluster.balance(account)).toBe(0n)
  })
})

describe('a stake that was withdrawn, and whose status was lost,', () => {
  test.each([
    { now: 'stays withdrawn', ready: 'True', reason: 'Withdrawn' },
    { now: 'goes when it is deleted', ready: '', reason: '' },
  ])('$now', async ({ ready, reason }) => {
    const { world, key, operator } = await active()
    world.editSpec({ desiredState: 'Withdrawn' }, key)
    await world.settle(operator, { key })
    expect(world.status(key).phase, world.explain(key)).toBe('Withdrawn')
    const signed = world.signed.length
    world.editStatus(() => undefined, key)
    if (ready === '') world.stakes.remove(key)
    // Until then, the stake transaction might have been on its way.
    world.expire()
    await world.settle(world.start(), { key })
    if (ready === '') expect(world.stakes.get(key)).toBeUndefined()
    else expect(world.condition('Ready', key), world.explain(key)).toMatchObject({ status: ready, reason })
    expect(world.signed).toHaveLength(signed)
  })
})

describe('deleted,', () => {
  test('a stake that holds money waits, and goes once it is withdrawn as its spec says', async () => {
    const { world, key, operator } = await active()
    const account = accountOf(world, key)
    world.stakes.remove(key)
    const before = world.signed.length
    await world.visit(operator, key)
    expect(world.status(key).phase).toBe('Deleting')
    expect(world.condition('Ready', key)?.message).toContain('"desiredState":"Withdrawn"')
    world.cluster.nextEpoch()
    await world.visit(operator, key)
    expect(world.signed).toHaveLength(before)

    world.editSpec({ desiredState: 'Withdrawn' }, key)
    for (let round = 0; round < 8 && world.stakes.get(key) !== undefined; round++) {
      await world.visit(operator, key)
      world.cluster.settle()
      world.cluster.nextEpoch()
    }
    expect(world.stakes.get(key)).toBeUndefined()
    expect(world.cluster.balance(account)).toBe(0n)
  })

  test('a stake whose transaction is in flight is watched and not sent again; what did not land lets it go', async () => {
    const { world, key, operator } = newWorld()
    world.cluster.node.fate({ kind: 'drop' })
    await world.visit(operator, key)
    world.stakes.remove(key)
    const sent = world.signedMessages().length
    await world.visit(operator, key)
    expect(world.condition('Ready', key)).toMatchObject({ reason: 'Deleting' })
    world.expire()
    await world.visit(operator, key)
    expect(world.stakes.get(key), world.explain(key)).toBeUndefined()
    expect(world.signedMessages()).toHaveLength(sent)
  })

  test('a stake that lost its transaction from status is looked for before it goes', async () => {
    const { world, key, operator } = await active()
    world.editStatus(({ transactions: _lost, protocol: _too, ...rest }) => rest, key)
    world.stakes.remove(key)
    await world.visit(operator, key)
    expect(world.stakes.get(key)).toBeDefined()
    expect(world.condition('Ready', key)?.message).toContain('not withdrawn')
  })

  test('a stake that a person confirms goes at once', async () => {
    const { world, key, operator } = await active()
    world.annotate({ 'staking.dev/confirm-delete': key.split('/')[1] ?? '' }, key)
    world.stakes.remove(key)
    await world.visit(operator, key)
    expect(world.stakes.get(key)).toBeUndefined()
  })
})

describe('a stake that exists', () => {
  test('under this name from before is not bought again: the stall names it, and adopting it goes on with it', async () => {
    const { world, key, operator } = await active()
    const stakeId = world.status(key).stakeId ?? ''
    world.stakes.vanish(key)
    world.addStake({}, key)
    const spent = await spentBy(() => world.settle(operator, { key }))
    expect(world.stalled(key), world.explain(key)).toBe('AlreadyStaked')
    expect(world.condition('Stalled', key)?.message).toContain(stakeId)
    expect(spent).toBe(0n)
    world.editSpec({ adopt: { stakeId } }, key)
    const more = await spentBy(() => world.settle(operator, { key }))
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(more).toBe(0n)
    world.editSpec({ desiredState: 'Withdrawn' }, key)
    await world.settle(operator, { key })
    expect(world.status(key).phase).toBe('Withdrawn')
  })

  test('and is another is not adopted', async () => {
    const first = await active()
    const { world, key, operator } = newWorld({
      adopt: { stakeId: first.world.status(first.key).stakeId ?? '' },
      amountLamports: '6000000000',
    })
    await world.settle(operator, { key })
    expect(world.stalled(key)).toBe('AdoptionMismatch')
    expect(world.signed).toEqual([])
  })
})

describe('suspended,', () => {
  test('nothing is signed or sent, and what is in flight is still seen final', async () => {
    const { world, key, operator } = newWorld()
    await world.visit(operator, key)
    world.editSpec({ suspend: true }, key)
    const signed = world.signed.length
    world.cluster.settle()
    await world.visit(operator, key)
    expect(world.status(key).transactions?.stake?.state, world.explain(key)).toBe('Confirmed')
    expect(world.signed).toHaveLength(signed)
    world.cluster.nextEpoch()
    await world.visit(operator, key)
    expect(world.status(key).protocol?.status).toBe('Active')
  })
})

describe('what somebody writes into status never has anything else signed:', () => {
  const other = () => wallet().address
  const inFlight =
    (change: (transaction: SolanaTransaction, status: SolanaStakeStatus) => Partial<SolanaTransaction>) => (status: SolanaStakeStatus) => {
      const stake = status.transactions?.stake
      if (stake === undefined) throw new Error('nothing is in flight')
      return { ...status, transactions: { stake: { ...stake, ...change(stake, status) } } }
    }
  const cases: readonly { what: string; forge: (status: SolanaStakeStatus) => SolanaStakeStatus }[] = [
    { what: 'another stake id', forge: (status) => ({ ...status, stakeId: 'forged', verifiedStakeId: 'forged' }) },
    { what: 'another stake account', forge: (status) => ({ ...status, stakeAccount: other() }) },
    { what: 'another vote account', forge: (status) => ({ ...status, voteAccount: other() }) },
    { what: 'another withdraw authority', forge: (status) => ({ ...status, withdrawAuthority: other() }) },
    { what: 'another message', forge: inFlight(() => ({ message: Buffer.from('forged').toString('base64') })) },
    { what: 'another signature', forge: inFlight(() => ({ signature: '3'.repeat(87) })) },
    { what: 'another blockhash', forge: inFlight(() => ({ blockhash: other() })) },
    { what: 'a block height long past', forge: inFlight(() => ({ lastValidBlockHeight: 1, preparedAtSlot: 1 })) },
  ]
  test.each(cases)('$what', async ({ forge }) => {
    const { world, key, operator } = newWorld()
    world.cluster.node.fate({ kind: 'drop' })
    await world.visit(operator, key)
    expect(world.status(key).transactions?.stake?.state).toBe('Broadcast')
    const honest = new Set(world.signedMessages().map(({ bytes }) => Buffer.from(bytes).toString('base64')))
    const right = world.status(key)
    world.editStatus(forge, key)
    await world.visit(operator, key)
    // By a fresh process too, which remembers nothing.
    await world.visit(world.start(), key)
    for (const { bytes } of world.signedMessages()) expect(honest).toContain(Buffer.from(bytes).toString('base64'))
    world.editStatus(() => right, key)
    const spent = await spentBy(() => world.settle(world.start(), { key }))
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(spent === AMOUNT + FEE || spent === 0n).toBe(true)
    expect(world.cluster.balance(accountOf(world, key))).toBe(AMOUNT)
  })

  test('that it is confirmed with another’s signature is corrected: status is a mirror of the log', async () => {
    const first = await active()
    const landed = first.world.status(first.key).transactions?.stake?.signature
    const { world, key, operator } = newWorld()
    world.cluster.node.fate({ kind: 'drop' })
    await world.visit(operator, key)
    const own = world.status(key).transactions?.stake
    world.editStatus(
      inFlight(() => ({ signature: landed, landedSignature: landed, state: 'Confirmed', slot: 1 })),
      key,
    )
    await world.visit(operator, key)
    expect(world.status(key).transactions?.stake, world.explain(key)).toMatchObject({ signature: own?.signature, state: 'Broadcast' })
    expect(world.status(key).transactions?.stake?.landedSignature).toBeUndefined()
    expect(world.ready(key)).toBe(false)
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
  })

  test('that it is inactive has nothing withdrawn', async () => {
    const { world, key, operator } = await active({ desiredState: 'Active' })
    world.editSpec({ desiredState: 'Withdrawn' }, key)
    world.editStatus((status) => ({ ...status, protocol: { ...status.protocol, status: 'Inactive', slot: 0 } }), key)
    await world.visit(operator, key)
    world.cluster.settle()
    await world.visit(operator, key)
    expect(world.status(key).transactions?.deactivation?.state, world.explain(key)).toBe('Confirmed')
    expect(world.signedMessages().filter(({ by }) => by === 'withdrawer')).toEqual([])
    world.cluster.nextEpoch()
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(world.cluster.balance(accountOf(world, key))).toBe(0n)
  })

  test('that it was seen in the far future does not keep it from being looked at', async () => {
    const { world, key, operator } = await active()
    const right = world.status(key).protocol
    world.editStatus((status) => ({ ...status, protocol: { ...status.protocol, activeLamports: '9', slot: 9_000_000_000 } }), key)
    world.annotate({ 'staking.dev/reconcile-at': 'now' }, key)
    await world.visit(operator, key)
    expect(world.status(key).protocol).toMatchObject({ activeLamports: right?.activeLamports })
  })

  test('a transaction lost from status while it is in flight is found again', async () => {
    const { world, key, operator } = newWorld()
    const spent = await spentBy(async () => {
      await world.visit(operator, key)
      world.editStatus(({ transactions: _lost, ...rest }) => rest, key)
      await world.settle(operator, { key })
    })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(spent).toBe(AMOUNT + FEE)
  })
})

describe('who is not allowed', () => {
  test.each<{ why: string; policy: object; reason: string }>([
    { why: 'by its namespace', policy: { allowedNamespaces: { names: ['team-b'] } }, reason: 'NamespaceNotAllowed' },
    { why: 'so much', policy: { maxPerTransaction: '100000' }, reason: 'OverLimit' },
    { why: 'that destination', policy: { allowedWithdrawalAddresses: [wallet().address] }, reason: 'WithdrawalAddressNotAllowed' },
  ])('$why has nothing signed', async ({ policy, reason }) => {
    const { world, key, operator } = newWorld({}, policy)
    await world.settle(operator, { key })
    expect(world.stalled(key), world.explain(key)).toBe(reason)
    expect(world.signed).toEqual([])
  })

  test.each<{ what: string; change: object; reason: string }>([
    { what: 'a signer that is not there', change: { withdrawAuthority: { signer: 'nobody' } }, reason: 'SignerNotFound' },
    { what: 'an amount that is none', change: { amountLamports: '0' }, reason: 'InvalidSpec' },
    { what: 'an amount over 64 bits', change: { amountLamports: '18446744073709551616' }, reason: 'InvalidSpec' },
    { what: 'a destination of fewer than 32 bytes', change: { destination: 'z'.repeat(32) }, reason: 'InvalidSpec' },
    { what: 'a network that is not there', change: { network: 'nowhere' }, reason: 'UnknownNetwork' },
    { what: 'a vote account that is none', change: { voteAccount: wallet().address }, reason: 'RequestRefused' },
  ])('names $what, and is told so', async ({ change, reason }) => {
    const { world, key, operator } = newWorld(change)
    await world.settle(operator, { key })
    expect(world.stalled(key), world.explain(key)).toBe(reason)
    expect(world.signed).toEqual([])
    world.stakes.remove(key)
    await world.visit(operator, key)
    expect(world.stakes.get(key)).toBeUndefined()
  })

  test('swapped: the withdraw authority’s key is mounted as the stake authority’s', async () => {
    const { world, key, operator } = newWorld()
    world.mounted.set('payer', parts.withdrawer)
    await world.settle(operator, { key })
    expect(world.stalled(key)).toBe('KeyAddressMismatch')
    expect(world.signed).toEqual([])
  })
})
