import { StakeAuthorizationLayout, StakeProgram, Transaction } from '@solana/web3.js'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { publicKey } from '../../../src/chains/solana/addresses.ts'
import { SolanaError } from '../../../src/chains/solana/chain.ts'
import { StakingApiError } from '../../../src/contract/client-error.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { sol } from '../service/solana-harness.ts'
import { land, wallet } from '../solana-chain/wallet.ts'
import { AMOUNT, type Around, createSolanaWorld, FEE, type SolanaParts, type SolanaWorld, startSolanaParts } from './solana-world.ts'

let store: Store
let parts: SolanaParts | undefined
beforeAll(async () => {
  store = await openStore(await memoryDatabase())
})
afterEach(async () => {
  await parts?.close()
  parts = undefined
})
afterAll(() => store?.close())

async function worldOf(signerPolicy = {}) {
  parts = await startSolanaParts(store)
  const world = createSolanaWorld(parts)
  world.addSigners(signerPolicy)
  return world
}
async function activeWorld() {
  const world = await worldOf()
  world.addStake()
  await world.settle(world.start())
  expect(world.ready(), world.explain()).toBe(true)
  return world
}
const accountOf = (world: SolanaWorld) => world.status().stakeAccount ?? ''
/** How often lamports came into the stake account. */
const assertFundedOnce = (world: SolanaWorld) => expect(world.cluster.balance(accountOf(world))).toBe(AMOUNT)

describe('a transaction', () => {
  test('that leaders drop is sent again, the same bytes, until it lands', async () => {
    const world = await worldOf()
    world.addStake()
    world.cluster.node.fate({ kind: 'drop' }, 2)
    const operator = world.start()
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status().transactions?.stake).toMatchObject({ attempt: 1, state: 'Confirmed' })
    expect(new Set(world.signedMessages().map(({ bytes }) => Buffer.from(bytes).toString('base64'))).size).toBe(1)
    expect(world.signedMessages().length).toBeGreaterThan(2)
    assertFundedOnce(world)
  })

  test('that expires in an outage is made anew under the same id, and only once that is final', async () => {
    const world = await worldOf()
    world.addStake()
    world.cluster.node.fate({ kind: 'drop' }, 1000)
    const operator = world.start()
    await world.visit(operator)
    const first = world.status().transactions?.stake
    expect(first).toMatchObject({ state: 'Broadcast', attempt: 1 })
    // Its last block has passed, and is not final yet.
    world.cluster.produce((first?.lastValidBlockHeight ?? 0) - world.cluster.ledger.head().height + 1)
    await world.visit(operator)
    expect(world.status().transactions?.stake).toMatchObject({ attempt: 1, state: 'Broadcast' })
    world.cluster.settle()
    await world.visit(operator)
    const second = world.status().transactions?.stake
    expect(second).toMatchObject({
      attempt: 2,
      txId: first?.txId,
      earlier: [{ signature: first?.signature, attempt: 1, outcome: 'Expired' }],
    })
    expect(second?.signature).not.toBe(first?.signature)
  })

  test.each(['deactivation', 'withdrawal'] as const)('of %s that expires is made anew too', async (kind) => {
    const world = await activeWorld()
    const operator = world.start()
    const desiredState = kind === 'deactivation' ? 'Inactive' : 'Withdrawn'
    if (kind === 'withdrawal') {
      world.editSpec({ desiredState: 'Inactive' })
      await world.settle(operator)
    }
    world.editSpec({ desiredState })
    world.cluster.node.fate({ kind: 'drop' }, 1)
    await world.visit(operator)
    expect(world.status().transactions?.[kind]).toMatchObject({ attempt: 1 })
    world.expire()
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status().transactions?.[kind]).toMatchObject({ attempt: 2, state: 'Confirmed' })
  })

  test('that lands when it was thought lost is found, and nothing is made in its place', async () => {
    const world = await worldOf()
    world.addStake()
    world.cluster.node.fate({ kind: 'late', blocks: 120 })
    const operator = world.start()
    await world.visit(operator)
    // The node is cut off until long after it has landed and every status of it has expired.
    world.cluster.produce(400)
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status().transactions?.stake).toMatchObject({ attempt: 1, state: 'Confirmed' })
    assertFundedOnce(world)
  })

  test('of which no history is left is not made anew, and says what is missing', async () => {
    const world = await worldOf()
    world.addStake()
    world.cluster.node.fate({ kind: 'drop' })
    const operator = world.start()
    await world.visit(operator)
    world.expire()
    world.cluster.produce(1000)
    world.cluster.node.loseHistory()
    world.cluster.produce(10)
    await world.visit(operator)
    expect(world.stalled(), world.explain()).toBe('HistoryMissing')
    expect(world.status().transactions?.stake).toMatchObject({ attempt: 1 })
  })

  test('whose sending was answered by nothing is looked for before it is sent again', async () => {
    const world = await worldOf()
    world.addStake()
    let failures = 0
    const operator = world.start((point) => {
      if (point === 'after chain.sendTransaction' && failures++ === 0) throw new SolanaError('unavailable', 'no answer')
    })
    await world.settle(operator)
    expect(failures).toBeGreaterThan(0)
    expect(world.ready(), world.explain()).toBe(true)
    assertFundedOnce(world)
  })

  test('is sent again while the staking API is away', async () => {
    const world = await worldOf()
    world.addStake()
    world.cluster.node.fate({ kind: 'drop' }, 2)
    let away = false
    const operator = world.start((point) => {
      if (away && point.startsWith('before api.')) throw new StakingApiError('no answer', { kind: 'network', outcomeUnknown: true })
    })
    await world.visit(operator)
    away = true
    for (let round = 0; round < 3; round++) {
      world.cluster.settle()
      await world.visit(operator)
    }
    expect(world.status().transactions?.stake, world.explain()).toMatchObject({ attempt: 1, state: 'Confirmed' })
    assertFundedOnce(world)
    away = false
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status().transactions?.stake?.reportedSignature).toBe(world.status().transactions?.stake?.signature)
  })

  test('that the service makes and whose answer is lost is found in its list', async () => {
    const world = await worldOf()
    world.addStake()
    const lost = new Set<string>()
    const around: Around = (point) => {
      if (!/^after api\.(create|renew|refresh|submit)/.test(point) || lost.has(point)) return
      lost.add(point)
      throw new StakingApiError('no answer', { kind: 'timeout', outcomeUnknown: true })
    }
    const operator = world.start(around)
    await world.settle(operator)
    for (const desiredState of ['Inactive', 'Withdrawn'] as const) {
      world.editSpec({ desiredState })
      await world.settle(operator)
      expect(world.ready(), world.explain()).toBe(true)
    }
    expect([...lost]).toEqual(
      expect.arrayContaining([
        'after api.createSolanaStake',
        'after api.createStakeTransaction',
        'after api.submitTransaction',
        'after api.createDeactivationTransaction',
        'after api.createWithdrawalTransaction',
      ]),
    )
  })
})

describe('it waits, and goes on by itself,', () => {
  test('while the stake authority cannot pay: the numbers are told', async () => {
    const world = await worldOf({ maxPerTransaction: String(100_000n * sol) })
    const { payer } = world.parts
    world.addStake({ amountLamports: String(2_000n * sol) })
    const operator = world.start()
    await world.visit(operator)
    expect(world.condition('Ready')).toMatchObject({ reason: 'InsufficientFunds' })
    expect(world.condition('Ready')?.message).toContain('has 1000 SOL; the stake of 2000 and a fee of 0.000005 need')
    expect(world.stalled()).toBe('')
    expect(world.signed).toEqual([])
    world.cluster.fund(payer.address, 1_000n * sol + FEE)
    world.cluster.settle()
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
  })

  test('while rewards are distributed', async () => {
    const world = await activeWorld()
    world.editSpec({ desiredState: 'Inactive' })
    world.cluster.setEpochRewards(true)
    world.cluster.settle()
    const operator = world.start()
    await world.visit(operator)
    expect(world.condition('Ready')).toMatchObject({ reason: 'EpochRewards' })
    expect(world.status().transactions?.deactivation).toBeUndefined()
    world.cluster.setEpochRewards(false)
    world.cluster.settle()
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
  })

  test('while the node is behind', async () => {
    const world = await worldOf()
    world.addStake()
    world.cluster.produce(40)
    world.cluster.node.lag(30)
    world.cluster.node.unhealthy(30)
    const operator = world.start()
    await world.visit(operator)
    expect(world.stalled(), world.explain()).toBe('')
    expect(world.ready()).toBe(false)
    world.cluster.node.lag(0)
    world.cluster.node.unhealthy(undefined)
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    assertFundedOnce(world)
  })
})

describe('lamports of a stranger at the address', () => {
  test('before the transaction is made change its form, not what it does', async () => {
    const world = await worldOf()
    world.addStake()
    let account = ''
    const operator = world.start((point) => {
      if (point !== 'after createStake team-a/stake-1') return
      account = 'made'
    })
    world.lies.set('createSolanaStake', (body: { stakeAccount: string }) => {
      world.cluster.fund(body.stakeAccount, 1_000_000n)
      world.cluster.settle()
      return body
    })
    await world.settle(operator)
    expect(account).toBe('made')
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.cluster.balance(accountOf(world))).toBe(AMOUNT + 1_000_000n)
  })

  test('after it was made have it made anew once it has expired', async () => {
    const world = await worldOf()
    world.addStake()
    world.lies.set('createStakeTransaction', (body: object) => {
      world.cluster.fund(account, 1_000_000n)
      world.cluster.settle()
      return body
    })
    let account = ''
    world.lies.set('createSolanaStake', (body: { stakeAccount: string }) => {
      account = body.stakeAccount
      return body
    })
    const operator = world.start()
    await world.visit(operator)
    expect(world.stalled(), world.explain()).toBe('')
    expect(world.condition('Ready')?.message).toMatch(/stranger/)
    expect(world.signedMessages()).toEqual([])
    world.lies.clear()
    world.expire()
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.cluster.balance(account)).toBe(AMOUNT + 1_000_000n)
  })
})

describe('what others do on the chain', () => {
  test('to an authority is seen and told plainly, and nothing is signed any more', async () => {
    const world = await activeWorld()
    const { payer, withdrawer } = world.parts
    const stranger = wallet()
    const authorize = StakeProgram.authorize({
      stakePubkey: publicKey(accountOf(world)),
      authorizedPubkey: publicKey(withdrawer.address),
      newAuthorizedPubkey: publicKey(stranger.address),
      stakeAuthorizationType: StakeAuthorizationLayout.Withdrawer,
    })
    land(world.cluster, authorize, payer, withdrawer)
    const operator = world.start()
    await world.visit(operator)
    world.annotate({ 'staking.dev/reconcile-at': '1' })
    await world.visit(operator)
    expect(world.stalled(), world.explain()).toBe('AuthorityChanged')
    expect(world.condition('Ready')).toMatchObject({ status: 'False', reason: 'AuthorityChanged' })
    expect(world.condition('Stalled')?.message).toContain(stranger.address)

    const before = world.signed.length
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.settle(world.start())
    expect(world.stalled()).toBe('AuthorityChanged')
    expect(world.signed).toHaveLength(before)
  })

  test('by deactivating and withdrawing with the same keys is no reason to stake again', async () => {
    const world = await activeWorld()
    const { payer, withdrawer } = world.parts
    land(
      world.cluster,
      StakeProgram.deactivate({ stakePubkey: publicKey(accountOf(world)), authorizedPubkey: publicKey(payer.address) }),
      payer,
    )
    const operator = world.start()
    await world.visit(operator)
    world.annotate({ 'staking.dev/reconcile-at': '1' })
    await world.visit(operator)
    expect(world.stalled(), world.explain()).toBe('DelegationChanged')
    world.cluster.nextEpoch()
    const withdraw = StakeProgram.withdraw({
      stakePubkey: publicKey(accountOf(world)),
      authorizedPubkey: publicKey(withdrawer.address),
      toPubkey: publicKey(withdrawer.address),
      lamports: Number(AMOUNT),
    })
    land(world.cluster, withdraw, withdrawer)
    world.annotate({ 'staking.dev/reconcile-at': '2' })
    await world.visit(operator)
    expect(world.stalled(), world.explain()).toBe('AlreadyWithdrawn')

    // Not either when all that was known of it is lost.
    world.editStatus(() => undefined)
    await world.settle(world.start())
    expect(world.stalled(), world.explain()).toBe('AlreadyWithdrawn')
    expect(world.cluster.balance(accountOf(world))).toBe(0n)
  })

  test('by a lockup is told, and the withdrawal goes on when it is over', async () => {
    const world = await activeWorld()
    const operator = world.start()
    world.editSpec({ desiredState: 'Inactive' })
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    // SetLockup of the withdrawer: tag 6, no time, an epoch, no custodian.
    const { ledger } = world.cluster
    const data = Buffer.alloc(4 + 1 + 9 + 1)
    data.writeUInt32LE(6, 0)
    data.writeUInt8(1, 5)
    data.writeBigUInt64LE(ledger.head().epoch + 2n, 6)
    const { withdrawer, payer } = world.parts
    const transaction = new Transaction().add({
      programId: StakeProgram.programId,
      keys: [
        { pubkey: publicKey(accountOf(world)), isSigner: false, isWritable: true },
        { pubkey: publicKey(withdrawer.address), isSigner: true, isWritable: false },
      ],
      data,
    })
    land(world.cluster, transaction, payer, withdrawer)
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.settle(operator)
    expect(world.stalled(), world.explain()).toBe('LockupInForce')
    world.cluster.nextEpoch(3)
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
  })
})

test('a node that serves another genesis is told, and nothing is signed', async () => {
  const world = await worldOf()
  world.addStake()
  const operator = world.start()
  await world.visit(operator)
  world.cluster.settle()
  const before = world.signed.length
  world.cluster.node.claimGenesis(wallet().address)
  await world.visit(world.start())
  expect(world.stalled(), world.explain()).toBe('WrongChain')
  expect(world.signed).toHaveLength(before)
})
