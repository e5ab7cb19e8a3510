import { StakeProgram } from '@solana/web3.js'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { publicKey } from '../../../src/chains/solana/addresses.ts'
import { StakingApiError } from '../../../src/contract/client-error.ts'
import { inSol } from '../../../src/lib/amounts.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { sol } from '../service/solana-harness.ts'
import { land, wallet } from '../solana-chain/wallet.ts'
import { AMOUNT, type Around, createSolanaWorld, FEE, type SolanaParts, type SolanaWorld, startSolanaParts } from './solana-world.ts'

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
afterEach(() => {
  parts.validator.delinquent = false
  parts.cluster.setMinimumDelegation(1n)
  parts.cluster.settle()
})

let names = 0
function newWorld(change = {}, { around, policy = {} }: { around?: Around; policy?: object } = {}) {
  const world = createSolanaWorld(parts)
  world.addSigners(policy)
  const key = `team-a/${++names}-reviewed`
  world.addStake(change, key)
  return { world, key, operator: world.start(around) }
}
async function active(change = {}) {
  const given = newWorld(change)
  await given.world.settle(given.operator, { key: given.key })
  expect(given.world.ready(given.key), given.world.explain(given.key)).toBe(true)
  return given
}
async function inactive() {
  const given = await active()
  given.world.editSpec({ desiredState: 'Inactive' }, given.key)
  await given.world.settle(given.operator, { key: given.key })
  expect(given.world.ready(given.key), given.world.explain(given.key)).toBe(true)
  return given
}
const accountOf = (world: SolanaWorld, key: string) => world.status(key).stakeAccount ?? ''

describe('lamports of a stranger at the stake account', () => {
  test.each([
    { how: 'enough to keep it open', lamports: 3_000_000n },
    { how: 'too few to keep it open', lamports: 1n },
  ])('while its withdrawal is on the way ($how) are withdrawn by another', async ({ lamports }) => {
    const { world, key, operator } = await inactive()
    const account = accountOf(world, key)
    const before = world.cluster.balance(parts.withdrawer.address)
    world.editSpec({ desiredState: 'Withdrawn' }, key)
    world.cluster.node.fate({ kind: 'late', blocks: 3 })
    await world.visit(operator, key)
    expect(world.status(key).phase, world.explain(key)).toBe('Withdrawing')
    world.cluster.fund(account, lamports)
    world.cluster.settle()
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(world.status(key).phase).toBe('Withdrawn')
    expect(world.cluster.balance(account)).toBe(0n)
    expect(world.cluster.balance(parts.withdrawer.address) - before).toBe(AMOUNT + lamports)
  })

  test('after the service has made the withdrawal are told, and withdrawn with the rest', async () => {
    const { world, key, operator } = await inactive()
    const account = accountOf(world, key)
    world.lies.set('createWithdrawalTransaction', (body: object) => {
      world.cluster.fund(account, 7n)
      world.cluster.settle()
      return body
    })
    world.editSpec({ desiredState: 'Withdrawn' }, key)
    await world.visit(operator, key)
    expect(world.condition('Ready', key)?.message, world.explain(key)).toContain(`${AMOUNT + 7n} lamports`)
    expect(world.stalled(key)).toBe('')
    world.lies.clear()
    world.expire()
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(world.cluster.balance(account)).toBe(0n)
  })
})

test('a stake that somebody delegates again after it was deactivated is told, and is not waited for', async () => {
  const { world, key, operator } = await inactive()
  const { payer, validator } = parts
  const delegate = StakeProgram.delegate({
    stakePubkey: publicKey(accountOf(world, key)),
    authorizedPubkey: publicKey(payer.address),
    votePubkey: publicKey(validator.voteAccount),
  })
  land(parts.cluster, delegate, payer)
  world.cluster.nextEpoch()
  world.annotate({ 'staking.dev/reconcile-at': '1' }, key)
  await world.visit(operator, key)
  await world.visit(operator, key)
  expect(world.stalled(key), world.explain(key)).toBe('DelegationChanged')
  world.editSpec({ desiredState: 'Withdrawn' }, key)
  await world.settle(operator, { key })
  expect(world.stalled(key), world.explain(key)).toBe('DelegationChanged')
  // Its message says how it goes on.
  const [, record = '', annotation = '', value = ''] =
    /kubectl annotate stx (\S+) (\S+)=(\d+)/.exec(world.condition('Stalled', key)?.message ?? '') ?? []
  world.records.edit(record, (stx) => ({ ...stx, metadata: { ...stx.metadata, annotations: { [annotation]: value } } }))
  await world.settle(operator, { key })
  expect(world.ready(key), world.explain(key)).toBe(true)
  expect(world.cluster.balance(accountOf(world, key))).toBe(0n)
})

describe('an adopted stake', () => {
  /** Made by another client, which names no fee payer: its withdrawals are paid by the withdraw authority. */
  async function madeByAnother() {
    const { path, stake, transaction } = await parts.withTransaction()
    await parts.land(path, transaction)
    parts.cluster.nextEpoch()
    return { path, stakeId: stake.stakeId as string, account: stake.stakeAccount as string }
  }

  test('of a client that named no fee payer is withdrawn at the cost of the withdraw authority', async () => {
    const { stakeId, account } = await madeByAnother()
    const destination = wallet().address
    const { world, key, operator } = newWorld({ adopt: { stakeId }, destination })
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(world.signed).toEqual([])
    const before = world.cluster.balance(parts.withdrawer.address)
    world.editSpec({ desiredState: 'Withdrawn' }, key)
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(world.cluster.balance(account)).toBe(0n)
    expect(world.cluster.balance(destination)).toBe(AMOUNT)
    expect(before - world.cluster.balance(parts.withdrawer.address)).toBe(FEE)
  })

  test('whose client has made a withdrawal to another destination is not withdrawn to there, and goes on once that has expired', async () => {
    const { path, stakeId, account } = await madeByAnother()
    await parts.land(path, (await parts.post(`${path}/deactivation-transactions`, {})).body)
    parts.cluster.nextEpoch()
    expect((await parts.post(`${path}/withdrawal-transactions`, {})).status).toBe(201)
    const destination = wallet().address
    const { world, key, operator } = newWorld({ adopt: { stakeId }, destination, desiredState: 'Withdrawn' })
    await world.settle(operator, { key })
    expect(world.stalled(key), world.explain(key)).toBe('VerificationFailed')
    expect(world.signed).toEqual([])
    world.expire()
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(world.cluster.balance(destination)).toBe(AMOUNT)
    expect(world.cluster.balance(account)).toBe(0n)
  })
})

test('a stake whose resource has lost its status is not adopted, and withdrawn to elsewhere, by another resource', async () => {
  const { world, key, operator } = await active()
  const stakeId = world.status(key).stakeId ?? ''
  const account = accountOf(world, key)
  world.editStatus(() => undefined, key)
  const thief = `team-a/thief-of-${names}`
  world.addStake({ adopt: { stakeId }, destination: wallet().address, desiredState: 'Withdrawn' }, thief)
  await world.settle(world.start(), { key: thief })
  expect(world.stalled(thief), world.explain(thief)).toBe('AdoptionMismatch')
  expect(world.cluster.balance(account)).toBe(AMOUNT)
  await world.settle(operator, { key })
  expect(world.ready(key), world.explain(key)).toBe(true)
  // What its own resource gives up may be taken over.
  world.stakes.vanish(key)
  await world.settle(world.start(), { key: thief })
  expect(world.ready(thief), world.explain(thief)).toBe(true)
})

test('a service that gives one resource the stake of another has nothing withdrawn to where that one wants it', async () => {
  const { world, key } = await active()
  const { stakeId } = world.status(key)
  const account = accountOf(world, key)
  const theirs = await parts.api.solanaStake(stakeId ?? '', new AbortController().signal)
  const { externalReference: _hidden, ...body } = theirs
  world.lies.set('createSolanaStake', () => body)
  const thief = `team-a/given-${names}`
  world.addStake({ destination: wallet().address, desiredState: 'Withdrawn' }, thief)
  await world.settle(world.start(), { key: thief })
  expect(world.stalled(thief), world.explain(thief)).toBe('VerificationFailed')
  expect(world.condition('Stalled', thief)?.message).toContain('belongs to another resource')
  expect(world.status(thief).transactions).toBeUndefined()
  expect(world.cluster.balance(account)).toBe(AMOUNT)
})

test('one signer may be both authorities: it signs each transaction once, and all money comes back but the fees', async () => {
  const { world, key, operator } = newWorld({ withdrawAuthority: { signer: 'payer' } })
  const before = world.cluster.balance(parts.payer.address)
  for (const desiredState of ['Active', 'Inactive', 'Withdrawn'] as const) {
    world.editSpec({ desiredState }, key)
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
  }
  expect(new Set(world.signed.map(({ by }) => by))).toEqual(new Set(['payer']))
  expect(before - world.cluster.balance(parts.payer.address)).toBe(3n * FEE)
})

describe('writes', () => {
  test.each(['Active', 'Inactive'] as const)('none of a settled stake (%s), whatever epochs pass', async (desiredState) => {
    const { world, key, operator } = desiredState === 'Active' ? await active() : await inactive()
    const look = async (poke: string) => {
      world.annotate({ 'staking.dev/reconcile-at': poke }, key)
      await world.visit(operator, key)
    }
    await look('1')
    const before = world.stakes.statusWrites(key)
    const pokes = ['2', '3']
    for (const poke of pokes) {
      world.cluster.nextEpoch()
      await look(poke)
    }
    // That each was taken up is written, and nothing else.
    expect(world.stakes.statusWrites(key), world.explain(key)).toBe(before + pokes.length)
  })

  test('none while a transaction in flight is waited for', async () => {
    const { world, key, operator } = newWorld()
    world.cluster.node.fate({ kind: 'drop' }, 50)
    await world.visit(operator, key)
    world.cluster.settle()
    await world.visit(operator, key)
    const before = world.stakes.statusWrites(key)
    for (let round = 0; round < 5; round++) {
      world.cluster.produce(10)
      await world.visit(operator, key)
    }
    expect(world.status(key).phase).toBe('Confirming')
    expect(world.stakes.statusWrites(key), world.explain(key)).toBe(before)
    // What is left of the fates strikes nobody else.
    world.expire()
    await world.settle(operator, { key, rounds: 60 })
  })
})

describe('is told with numbers and names, and nothing is signed:', () => {
  test('an amount under the rent reserve and the minimum delegation', async () => {
    parts.cluster.setMinimumDelegation(sol)
    const { world, key, operator } = newWorld({ amountLamports: '3000000' })
    await world.settle(operator, { key })
    expect(world.stalled(key), world.explain(key)).toBe('RequestRefused')
    const message = world.condition('Stalled', key)?.message
    expect(message).toContain('at least 1.00228288 SOL')
    expect(message).toContain('3000000')
    expect(world.signed).toEqual([])
  })

  test('a vote account that became delinquent after the stake was created, also where a transaction is made anew', async () => {
    const { world, key, operator } = newWorld()
    world.cluster.node.fate({ kind: 'drop' })
    world.lies.set('createStakeTransaction', (body: object) => {
      parts.validator.delinquent = true
      return body
    })
    await world.visit(operator, key)
    expect(world.stalled(key), world.explain(key)).toBe('RequestRefused')
    expect(world.condition('Stalled', key)?.message).toContain(parts.validator.voteAccount)
    expect(world.condition('Stalled', key)?.message).toMatch(/delinquent/)
    expect(world.signedMessages()).toEqual([])
    parts.validator.delinquent = false
    await world.settle(operator, { key })
    await world.visit(operator, key)
    world.expire()
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
  })

  test.each([
    { what: 'a program', destination: 'Stake11111111111111111111111111111111111111' },
    { what: 'a sysvar', destination: 'SysvarC1ock11111111111111111111111111111111' },
  ])('$what as the destination, before anything is paid', async ({ what, destination }) => {
    const { world, key, operator } = newWorld({ destination })
    await world.settle(operator, { key })
    expect(world.stalled(key), world.explain(key)).toBe('InvalidSpec')
    expect(world.condition('Stalled', key)?.message).toContain(`is ${what}`)
    expect(world.signed).toEqual([])
  })

  test('the stake account itself as the destination', async () => {
    const { stake } = await parts.withTransaction()
    const { world, key, operator } = newWorld({ adopt: { stakeId: stake.stakeId }, destination: stake.stakeAccount })
    await world.settle(operator, { key })
    expect(world.stalled(key), world.explain(key)).toBe('InvalidSpec')
    expect(world.condition('Stalled', key)?.message).toContain('the stake account itself')
    expect(world.signed).toEqual([])
  })

  // The staking API is told the cap, and keeps to it.
  test('a priority fee over the signer’s cap, whatever the stake allows and the cluster asks for', async () => {
    parts.cluster.setRecentPriorityFee(200_000n)
    const { world, key, operator } = newWorld({ maxPriorityFeeLamports: '9999999999' }, { policy: { maxPriorityFeeLamports: '100' } })
    const before = world.cluster.balance(parts.payer.address)
    await world.settle(operator, { key })
    parts.cluster.setRecentPriorityFee(0n)
    expect(world.ready(key), world.explain(key)).toBe(true)
    const offered = before - world.cluster.balance(parts.payer.address) - AMOUNT - FEE
    expect(offered).toBeGreaterThan(0n)
    expect(offered).toBeLessThanOrEqual(100n)
  })

  test('a payer that would keep less than an account may hold', async () => {
    const poor = wallet()
    const { world, key, operator } = newWorld()
    parts.cluster.fund(poor.address, AMOUNT + FEE + 1n)
    world.mounted.set('poor', poor)
    world.signers.create({
      metadata: { name: 'poor' },
      spec: {
        chain: 'Solana',
        keyName: 'poor',
        address: poor.address,
        policy: {
          allowedNamespaces: { names: ['team-a'] },
          maxPerTransaction: String(100n * sol),
          maxFeePerGasGwei: '100',
          maxPriorityFeeLamports: '0',
        },
      },
    })
    world.editSpec({ stakeAuthority: { signer: 'poor' } }, key)
    await world.visit(operator, key)
    expect(world.condition('Ready', key), world.explain(key)).toMatchObject({ reason: 'InsufficientFunds' })
    expect(world.condition('Ready', key)?.message).toContain('at least 0.00089088')
    expect(world.signedMessages()).toEqual([])
    parts.cluster.fund(poor.address, 890_880n)
    world.cluster.settle()
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
  })

  test('a signer that was replaced by one with another key: the old one is asked for, not another stake', async () => {
    const { world, key } = await active()
    const other = wallet()
    const account = accountOf(world, key)
    world.mounted.set('payer', other)
    world.signers.edit('payer', (signer) => ({ ...signer, spec: { ...signer.spec, address: other.address } }))
    world.editSpec({ desiredState: 'Inactive' }, key)
    const before = world.signed.length
    await world.settle(world.start(), { key })
    expect(world.stalled(key), world.explain(key)).not.toBe('')
    const message = world.condition('Stalled', key)?.message ?? ''
    expect(message).toContain(parts.payer.address)
    expect(message).toContain(other.address)
    expect(message).not.toMatch(/delete this resource/i)
    expect(world.signed).toHaveLength(before)
    expect(world.cluster.balance(account)).toBe(AMOUNT)
  })
})

test('a service that never shows a final transaction is asked ever more seldom, and keeps nothing from being Ready', async () => {
  const { world, key, operator } = newWorld(
    {},
    {
      around: (point) => {
        if (point === 'before api.submitTransaction')
          throw new StakingApiError('not visible', {
            kind: 'problem',
            status: 503,
            code: 'transaction-not-visible',
            retryAfterMs: 1_000,
            outcomeUnknown: false,
          })
      },
    },
  )
  await world.visit(operator, key)
  expect(world.condition('Ready', key), world.explain(key)).toMatchObject({ reason: 'AwaitingFinality' })
  world.cluster.settle()
  await world.visit(operator, key)
  world.cluster.nextEpoch()
  const result = await world.visit(operator, key)
  expect(world.ready(key), world.explain(key)).toBe(true)
  // Thrown: the queue waits longer each time.
  expect(result.kind).toBe('error')
})

test('an earlier attempt that is found after all, and had failed, is no forgery: the present one is seen to its end', async () => {
  const { world, key, operator } = await inactive()
  const account = accountOf(world, key)
  const second = await world.cluster.addNode()
  world.editSpec({ desiredState: 'Withdrawn' }, key)
  // It lands when the account holds something else, and fails; the operator's only node has no memory of it.
  world.cluster.node.fate({ kind: 'late', blocks: 3 })
  await world.visit(operator, key)
  world.cluster.fund(account, 1n)
  world.expire()
  world.cluster.node.loseHistory({ silently: true })
  world.cluster.produce(10)
  world.cluster.node.fate({ kind: 'drop' })
  await world.visit(operator, key)
  expect(world.status(key).transactions?.withdrawal, world.explain(key)).toMatchObject({ attempt: 2, earlier: [{ outcome: 'Expired' }] })
  world.state.rpcUrls = [world.cluster.url, second.url]
  await world.settle(world.start(), { key })
  expect(world.ready(key), world.explain(key)).toBe(true)
  expect(world.status(key).transactions?.withdrawal).toMatchObject({ attempt: 2, state: 'Confirmed' })
  expect(world.cluster.balance(account)).toBe(0n)
})

test('two operators that both take themselves for the leader make, fund and withdraw one account', async () => {
  const { world, key, operator } = newWorld()
  const rival = world.start()
  const before = world.cluster.balance(parts.payer.address)
  for (const desiredState of ['Active', 'Inactive', 'Withdrawn'] as const) {
    world.editSpec({ desiredState }, key)
    for (let round = 0; round < 12; round++) {
      await Promise.all([world.visit(operator, key), world.visit(rival, key)])
      if (world.ready(key)) break
      world.cluster.settle()
      const { phase } = world.status(key)
      if (phase === 'Activating' || phase === 'Deactivating') world.cluster.nextEpoch()
    }
    expect(world.ready(key), world.explain(key)).toBe(true)
  }
  expect(world.cluster.balance(accountOf(world, key))).toBe(0n)
  // The stake authority pays all fees: two signatures of the withdrawal.
  expect(before - world.cluster.balance(parts.payer.address)).toBe(AMOUNT + 4n * FEE)
})

test('a stake that warms up over epochs, and is deactivated half-way, is withdrawn once nothing of it is active', async () => {
  const { world, key, operator } = newWorld()
  const stake = { effective: 380_000_000n * sol, activating: 500_000n * sol, deactivating: 500_000n * sol }
  // So little of the cluster is active that an epoch warms up a part of what activates only.
  world.cluster.setClusterStake({ effective: 30n * sol, activating: 10n * sol, deactivating: 10n * sol })
  await world.visit(operator, key)
  world.cluster.settle()
  await world.visit(operator, key)
  world.cluster.nextEpoch()
  await world.visit(operator, key)
  const { protocol } = world.status(key)
  expect(protocol?.status, world.explain(key)).toBe('Activating')
  expect(BigInt(protocol?.activeLamports ?? 0)).toBeGreaterThan(0n)
  world.editSpec({ desiredState: 'Withdrawn' }, key)
  let epochs = 0
  for (let round = 0; round < 90; round++) {
    await world.visit(operator, key)
    if (world.status(key).phase === 'Withdrawn') break
    const now = world.status(key)
    if (BigInt(now.protocol?.activeLamports ?? 0) > 0n) expect(now.transactions?.withdrawal).toBeUndefined()
    if (now.protocol?.status === 'Deactivating') epochs++
    world.cluster.settle()
    world.cluster.nextEpoch()
  }
  world.cluster.setClusterStake(stake)
  expect(world.ready(key), world.explain(key)).toBe(true)
  // So many take more compute than a withdrawal needs that was active at once.
  expect(epochs).toBeGreaterThan(20)
  expect(world.cluster.balance(accountOf(world, key))).toBe(0n)
})

test('a stake of which somebody has split a part off is told with the numbers', async () => {
  const { world, key, operator } = await active()
  const { payer } = parts
  const other = wallet()
  const split = StakeProgram.split(
    {
      stakePubkey: publicKey(accountOf(world, key)),
      authorizedPubkey: publicKey(payer.address),
      splitStakePubkey: publicKey(other.address),
      lamports: Number(2n * sol),
    },
    2_282_880,
  )
  land(parts.cluster, split, payer, other)
  world.annotate({ 'staking.dev/reconcile-at': '1' }, key)
  await world.visit(operator, key)
  await world.visit(operator, key)
  expect(world.stalled(key), world.explain(key)).toBe('DelegationChanged')
  expect(world.condition('Stalled', key)?.message).toContain(`holds ${inSol(String(AMOUNT - 2n * sol))} of the ${inSol(String(AMOUNT))}`)
  // What is there can be withdrawn all the same.
  world.editSpec({ desiredState: 'Withdrawn' }, key)
  await world.settle(operator, { key })
  expect(world.ready(key), world.explain(key)).toBe(true)
})

test('a deleted stake whose terms somebody took from status is withdrawn all the same, as its spec asks', async () => {
  const { world, key, operator } = await active()
  const account = accountOf(world, key)
  world.editSpec({ desiredState: 'Withdrawn' }, key)
  world.stakes.remove(key)
  world.editStatus(({ stakeAccount: _gone, voteAccount: _too, ...rest }) => rest, key)
  for (let round = 0; round < 8 && world.stakes.get(key) !== undefined; round++) {
    const result = await world.visit(operator, key)
    expect(result.kind, world.explain(key)).not.toBe('error')
    world.cluster.settle()
    world.cluster.nextEpoch()
  }
  expect(world.stakes.get(key)).toBeUndefined()
  expect(world.cluster.balance(account)).toBe(0n)
})

test('a staking API that has forgotten the stake, and gives another for its request: what was paid is known by the log', async () => {
  const { world, key } = await active()
  const account = accountOf(world, key)
  const other = (await parts.create({ feePayer: parts.payer.address })).body
  world.lies.set('createSolanaStake', (body: object) => ({ ...body, stakeId: other.stakeId, stakeAccount: other.stakeAccount }))
  world.editSpec({ desiredState: 'Inactive' }, key)
  await world.settle(world.start(), { key })
  expect(world.condition('Ready', key)?.status, world.explain(key)).toBe('True')
  expect(world.status(key)).toMatchObject({ stakeAccount: account, transactions: { deactivation: { state: 'Confirmed' } } })
})
