import { StakeProgram } from '@solana/web3.js'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { publicKey } from '../../../src/chains/solana/addresses.ts'
import { SolanaError } from '../../../src/chains/solana/chain.ts'
import { StakingApiError } from '../../../src/contract/client-error.ts'
import type { SolanaStakeBody } from '../../../src/contract/schemas/solana.ts'
import type { SolanaStakeStatus } from '../../../src/resources/solana-stake.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { land, wallet } from '../solana-chain/wallet.ts'
import { AMOUNT, type Around, createSolanaWorld, FEE, type SolanaParts, type SolanaWorld, startSolanaParts } from './solana-world.ts'

let store: Store
let parts: SolanaParts
beforeAll(async () => {
  store = await openStore(await memoryDatabase())
})
afterEach(async () => parts?.close())
afterAll(() => store?.close())

let names = 0
async function newWorld(change = {}, { around, policy = {} }: { around?: Around; policy?: object } = {}) {
  parts = await startSolanaParts(store)
  const world = createSolanaWorld(parts)
  world.addSigners({ allowedNamespaces: { names: ['team-a', 'team-b'] }, ...policy })
  const key = `team-a/logged-${++names}`
  world.addStake(change, key)
  return { world, key, operator: world.start(around) }
}
async function active() {
  const given = await newWorld()
  await given.world.settle(given.operator, { key: given.key })
  expect(given.world.ready(given.key), given.world.explain(given.key)).toBe(true)
  return given
}
/** Nothing is signed: the last look before that gives no answer. */
const unpaid = (point: string): void => {
  if (point === 'before chain.simulate') throw new SolanaError('unavailable', 'no answer')
}
const accountOf = (world: SolanaWorld, key: string) => world.status(key).stakeAccount ?? ''
/** As the API server has them: the cache holds less of those that have landed. */
const recordsOf = (world: SolanaWorld, key: string) =>
  world.records.list().filter(({ spec }) => `${spec.owner.namespace}/${spec.owner.name}` === key)
const stepOf = (world: SolanaWorld, key: string, purpose: string) => recordsOf(world, key).find(({ spec }) => spec.purpose === purpose)
function withdrawnTo(account: string, destination: string): void {
  land(
    parts.cluster,
    StakeProgram.deactivate({ stakePubkey: publicKey(account), authorizedPubkey: publicKey(parts.payer.address) }),
    parts.payer,
  )
  parts.cluster.nextEpoch()
  const withdraw = StakeProgram.withdraw({
    stakePubkey: publicKey(account),
    authorizedPubkey: publicKey(parts.withdrawer.address),
    toPubkey: publicKey(destination),
    lamports: Number(AMOUNT),
  })
  land(parts.cluster, withdraw, parts.withdrawer)
}

describe('the log of a stake', () => {
  test('has one record a step, each attempt in it before it is sent, and says who, how much and what landed', async () => {
    const before: number[] = []
    const given = await newWorld(
      {},
      {
        around: (point) => {
          if (point === 'before chain.sendTransaction')
            before.push(...recordsOf(given.world, given.key).map(({ status }) => status?.attempts?.length ?? 0))
        },
      },
    )
    const { world, key, operator } = given
    for (const desiredState of ['Active', 'Withdrawn'] as const) {
      world.editSpec({ desiredState }, key)
      await world.settle(operator, { key })
      expect(world.ready(key), world.explain(key)).toBe(true)
    }
    expect(before.length).toBeGreaterThan(0)
    expect(before.every((count) => count === 1)).toBe(true)
    const records = recordsOf(world, key)
    expect(records.map(({ spec }) => spec.purpose).sort()).toEqual(['SolanaDeactivation', 'SolanaStake', 'SolanaWithdrawal'])
    for (const { spec, status } of records) {
      expect(spec).toMatchObject({
        chain: 'Solana',
        genesisHash: parts.config.genesisHash,
        subject: accountOf(world, key),
        amount: '5 SOL',
      })
      expect(spec).toMatchObject({ from: parts.payer.address, signer: 'payer', owner: { kind: 'SolanaStake', namespace: 'team-a' } })
      expect(status?.attempts).toHaveLength(1)
      expect(status).toMatchObject({ state: 'Landed', outcome: { is: 'Landed', hash: status?.attempts?.[0]?.hash } })
    }
  })

  test('tells the staking API a signature before it is sent', async () => {
    const order: string[] = []
    const { world, key, operator } = await newWorld({}, { around: (point) => void order.push(point) })
    await world.visit(operator, key)
    const sends = order.indexOf('before chain.sendTransaction')
    expect(sends).toBeGreaterThan(0)
    expect(order.slice(0, sends)).toContain('before api.submitTransaction')
    expect(order.slice(0, sends)).toContain('after signers.get')
    expect(order.slice(0, sends)).toContain('after stakes.get')
  })

  test.each(['the policy was taken back', 'the stake was suspended'])(
    'has nothing sent where %s between the attempt’s write and its first broadcast',
    async (what) => {
      const given = await newWorld(
        {},
        {
          around: (point) => {
            if (point !== 'before transactions.mergePatch') return
            if (what === 'the policy was taken back') given.world.editPolicy({ allowedNamespaces: { names: [] } })
            else given.world.editSpec({ suspend: true }, given.key)
          },
        },
      )
      const { world, key, operator } = given
      const balance = world.cluster.balance(parts.payer.address)
      await world.visit(operator, key)
      world.cluster.settle()
      expect(stepOf(world, key, 'SolanaStake')?.status?.attempts).toHaveLength(1)
      expect(world.cluster.balance(parts.payer.address)).toBe(balance)
    },
  )
})

describe('the first node stands still while the second goes on:', () => {
  async function twoNodes(change = {}) {
    const given = await newWorld(change)
    const second = await given.world.cluster.addNode()
    given.world.state.rpcUrls = [given.world.cluster.url, second.url]
    return { ...given, operator: given.world.start(), second }
  }

  test.each(['comes along', 'is taken out of the configuration'])('what has expired is made anew once the first %s', async (how) => {
    const { world, key, operator, second } = await twoNodes()
    for (const node of [world.cluster.node, second]) node.fate({ kind: 'drop' }, 1000)
    await world.visit(operator, key)
    world.expire()
    world.cluster.node.lag(300)
    await world.visit(operator, key)
    expect(world.condition('Ready', key)?.message, world.explain(key)).toMatch(/node 1 of/)
    expect(stepOf(world, key, 'SolanaStake')?.status?.attempts).toHaveLength(1)
    if (how !== 'comes along') world.state.rpcUrls = [second.url]
    world.cluster.node.lag(0)
    const next = how === 'comes along' ? operator : world.start()
    await world.visit(next, key)
    expect(world.status(key).transactions?.stake, world.explain(key)).toMatchObject({ attempt: 2, earlier: [{ outcome: 'Expired' }] })
  })

  test('a transaction of a staking API whose node stands still is dead on arrival: it is not signed, and nobody is told of forgery', async () => {
    const { world, key, operator } = await twoNodes()
    world.cluster.produce(600)
    world.cluster.node.lag(500)
    await world.visit(operator, key)
    expect(world.stalled(key), world.explain(key)).toBe('')
    expect(world.signedMessages()).toEqual([])
    world.cluster.node.lag(0)
    world.expire()
    // By another operator: this one lets the node that was behind rest for some seconds of real time.
    await world.settle(world.start(), { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(world.cluster.balance(accountOf(world, key))).toBe(AMOUNT)
  })
})

describe('what others do with the keys:', () => {
  test('a stake withdrawn by others to elsewhere is theft, stalled, and not Withdrawn', async () => {
    const { world, key, operator } = await active()
    const account = accountOf(world, key)
    const thief = wallet().address
    withdrawnTo(account, thief)
    const before = world.signed.length
    world.editSpec({ desiredState: 'Withdrawn' }, key)
    await world.settle(operator, { key })
    expect(world.stalled(key), world.explain(key)).toBe('WithdrawnElsewhere')
    expect(world.condition('Stalled', key)?.message).toContain(thief)
    expect(world.ready(key)).toBe(false)
    expect(world.condition('Withdrawn', key)?.status).not.toBe('True')
    expect(world.signed).toHaveLength(before)
    world.stakes.remove(key)
    await world.visit(operator, key)
    expect(world.stakes.get(key)).toBeDefined()
    world.annotate({ 'staking.dev/confirm-delete': key.split('/')[1] ?? '' }, key)
    await world.visit(operator, key)
    expect(world.stakes.get(key)).toBeUndefined()
  })

  test('a stake withdrawn by others to where the resource says is Withdrawn: the chain names the transaction', async () => {
    const { world, key, operator } = await active()
    withdrawnTo(accountOf(world, key), parts.withdrawer.address)
    world.editSpec({ desiredState: 'Withdrawn' }, key)
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(stepOf(world, key, 'SolanaWithdrawal')?.status).toMatchObject({ attempts: [{ found: true }], outcome: { is: 'Landed' } })
    world.stakes.remove(key)
    await world.visit(operator, key)
    expect(world.stakes.get(key)).toBeUndefined()
  })

  test('of a settled stake that is gone, Ready is taken back when it is looked at again', async () => {
    const { world, key, operator } = await active()
    withdrawnTo(accountOf(world, key), wallet().address)
    world.annotate({ 'staking.dev/reconcile-at': '1' }, key)
    await world.visit(operator, key)
    expect(world.ready(key), world.explain(key)).toBe(false)
    expect(world.stalled(key)).toBe('AlreadyWithdrawn')
  })
})

describe('status is a mirror:', () => {
  test.each<{ what: string; forge: (status: SolanaStakeStatus) => object }>([
    {
      what: 'a transaction forged to Confirmed',
      forge: (status) => ({
        ...status,
        transactions: { stake: { attempt: 1, state: 'Confirmed', slot: 1, landedSignature: '3'.repeat(87) } },
        protocol: { status: 'Active', activeLamports: '5000000000', inactiveLamports: '0', epoch: 1, slot: 1 },
      }),
    },
    { what: 'that nothing was staked', forge: ({ transactions: _lost, ...status }) => ({ ...status, looked: true }) },
    { what: 'another stake account', forge: (status) => ({ ...status, stakeId: 'forged', stakeAccount: wallet().address }) },
  ])('$what is corrected', async ({ forge }) => {
    const { world, key, operator } = await newWorld()
    world.cluster.node.fate({ kind: 'drop' }, 3)
    await world.visit(operator, key)
    const right = world.status(key)
    world.editStatus(forge, key)
    await world.visit(operator, key)
    expect(world.ready(key), world.explain(key)).toBe(false)
    expect(world.status(key)).toMatchObject({ stakeId: right.stakeId, stakeAccount: right.stakeAccount, transactions: right.transactions })
    expect(world.status(key).looked).toBeUndefined()
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(world.cluster.balance(accountOf(world, key))).toBe(AMOUNT)
  })

  test('a protocol forged to Active before it is, is looked at again', async () => {
    const { world, key, operator } = await newWorld()
    await world.visit(operator, key)
    world.cluster.settle()
    await world.visit(operator, key)
    expect(world.status(key).phase, world.explain(key)).toBe('Activating')
    world.editStatus((status) => ({ ...status, protocol: { ...status.protocol, status: 'Active' } }), key)
    await world.visit(operator, key)
    expect(world.status(key).protocol?.status, world.explain(key)).toBe('Activating')
    expect(world.ready(key)).toBe(false)
  })
})

describe('one stake of the API', () => {
  test('given to two resources is paid for one, once', async () => {
    const { world, key, operator } = await newWorld()
    world.cluster.node.fate({ kind: 'drop' }, 1)
    const before = world.cluster.balance(parts.payer.address)
    await world.visit(operator, key)
    const body = await parts.api.solanaStake(world.status(key).stakeId ?? '', new AbortController().signal)
    const { externalReference: _hidden, ...stake } = body
    const twin = `team-a/twin-${names}`
    world.lies.set('createSolanaStake', (answer: SolanaStakeBody) => (answer.externalReference === `SolanaStake/${twin}` ? stake : answer))
    world.addStake({ destination: wallet().address }, twin)
    await world.settle(world.start(), { key: twin })
    expect(world.stalled(twin), world.explain(twin)).toBe('VerificationFailed')
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(world.ready(twin)).toBe(false)
    expect(before - world.cluster.balance(parts.payer.address)).toBe(AMOUNT + FEE)
  })

  test('that waits in one namespace is not adopted from another', async () => {
    const { world, key, operator } = await newWorld({}, { around: unpaid })
    await world.visit(operator, key)
    const { stakeId } = world.status(key)
    const thief = `team-b/thief-${names}`
    world.addStake({ adopt: { stakeId: stakeId ?? '' }, destination: wallet().address }, thief)
    await world.settle(world.start(), { key: thief })
    expect(world.stalled(thief), world.explain(thief)).toBe('AdoptionMismatch')
    // Also when its resource is gone.
    world.stakes.vanish(key)
    await world.settle(world.start(), { key: thief })
    expect(world.stalled(thief), world.explain(thief)).toBe('AdoptionMismatch')
    expect(world.signedMessages()).toEqual([])
  })
})

describe('deleted,', () => {
  test.each<{ what: string; change?: object; policy?: object }>([
    { what: 'by policy', policy: { maxPerTransaction: '100000' } },
    { what: 'for its destination', change: { destination: 'Stake11111111111111111111111111111111111111' } },
  ])('a stake that was refused $what before anything was signed goes at once', async ({ change, policy }) => {
    const { world, key, operator } = await newWorld(change, { policy: policy ?? {} })
    await world.settle(operator, { key })
    expect(world.stalled(key), world.explain(key)).not.toBe('')
    expect(world.signedMessages()).toEqual([])
    world.stakes.remove(key)
    await world.visit(operator, key)
    expect(world.stakes.get(key)).toBeUndefined()
  })

  test('a stake that was verified and never paid waits while the staking API is away, and goes after it, cancelled, though its signer is gone', async () => {
    let isAway = false
    const { world, key, operator } = await newWorld(
      {},
      {
        around: (point) => {
          unpaid(point)
          if (isAway && point.startsWith('before api.')) throw new StakingApiError('no answer', { kind: 'network', outcomeUnknown: true })
        },
      },
    )
    await world.visit(operator, key)
    expect(world.status(key).verifiedStakeId, world.explain(key)).toBeDefined()
    const { stakeId = '' } = world.status(key)
    isAway = true
    world.signers.vanish('payer')
    world.stakes.remove(key)
    world.expire()
    await world.visit(operator, key)
    expect(world.stakes.get(key)).toBeDefined()
    isAway = false
    await world.visit(operator, key)
    expect(world.stakes.get(key), world.explain(key)).toBeUndefined()
    expect((await parts.api.solanaStake(stakeId, new AbortController().signal)).cancelledAt).toBeDefined()
  })

  test('a stake that holds money is held, whatever its status says, or does not say', async () => {
    const { world, key, operator } = await active()
    const right = world.status(key)
    world.stakes.remove(key)
    for (const status of [undefined, { ...right, protocol: { ...right.protocol, status: 'Withdrawn' } }, { looked: true }]) {
      world.editStatus(() => status, key)
      await world.visit(operator, key)
      await world.visit(world.start(), key)
      expect(world.stakes.get(key), JSON.stringify(status)).toBeDefined()
    }
    expect(world.condition('Ready', key)?.message).toContain('not withdrawn')
  })
})
