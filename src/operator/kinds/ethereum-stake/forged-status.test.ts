import { describe, expect, test } from 'vitest'
import { ChainError, type Hex } from '../../../chains/ethereum/chain.ts'
import { depositDataRoot, withdrawalCredentials } from '../../../chains/ethereum/deposit.ts'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import type { EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import { DISREGARD_SUBMISSION_ANNOTATION } from '../../../resources/meta.ts'
import { testAddress } from '../../testing/fake-keys.ts'
import { makeStake } from '../../testing/fake-staking-api.ts'
import { createWorld, ETH, hoodi, KEY, type World, withdrawalAddress } from '../../testing/world.ts'

/** Status is a record that someone may have forged: it never decides what is signed. */

type Operator = ReturnType<World['start']>
/** A stake whose transaction is written down, and was not sent: the node was down. */
async function prepared(): Promise<{ world: World; operator: Operator }> {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  const operator = world.start((point) => {
    if (point === 'before chain.send' && down.has(world)) throw new ChainError('unavailable', 'no answer')
  })
  down.add(world)
  await world.visit(operator)
  down.delete(world)
  expect(world.status().transaction?.state).toBe('Prepared')
  world.keys.signed.length = 0
  return { world, operator }
}
const down = new WeakSet<World>()
/** A stake whose transaction waits in the node's pool. */
async function broadcast(): Promise<{ world: World; operator: Operator }> {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  const operator = world.start()
  await world.visit(operator)
  expect(world.status().transaction?.state).toBe('Broadcast')
  world.keys.signed.length = 0
  return { world, operator }
}

type Transaction = NonNullable<EthereumStakeStatus['transaction']>
const inTransaction = (change: (transaction: Transaction) => Partial<Transaction>) => (status: EthereumStakeStatus) => ({
  ...status,
  transaction: { ...(status.transaction as Transaction), ...change(status.transaction as Transaction) },
})
/** An attacker's whole validator: the credentials are right, and the key is not the service's. */
const attackers = makeStake(
  hoodi,
  {
    network: 'hoodi',
    amountGwei: (32n * 10n ** 9n) as never,
    withdrawalAddress,
    credentialsType: '0x02',
    externalReference: 'x',
  },
  'f'.repeat(32),
  666,
).depositData
const attackersFields = {
  pubkey: attackers.pubkey,
  withdrawalCredentials: attackers.withdrawalCredentials,
  amountGwei: '32000000000',
  signature: attackers.signature,
  depositDataRoot: attackers.depositDataRoot,
}
const flip = (text: Hex): Hex => `0x${text.slice(2, -1)}${text.endsWith('0') ? '1' : '0'}`

const forgeries: { forged: string; edit: (status: EthereumStakeStatus) => object }[] = [
  { forged: 'the recipient', edit: inTransaction(() => ({ to: testAddress(2) })) },
  { forged: 'the value', edit: inTransaction(() => ({ valueWei: (33n * ETH).toString() })) },
  { forged: 'the sender', edit: inTransaction(() => ({ from: testAddress(2) })) },
  { forged: 'the chain id', edit: inTransaction(() => ({ chainId: 1 })) },
  { forged: 'the nonce', edit: inTransaction(({ nonce }) => ({ nonce: nonce + 1 })) },
  { forged: 'the hash', edit: inTransaction(({ hash }) => ({ hash: flip(hash) })) },
  { forged: 'nonce and hash', edit: inTransaction(({ nonce, hash }) => ({ nonce: nonce + 5, hash: flip(hash) })) },
  { forged: 'the hash of the calldata', edit: inTransaction(({ dataHash }) => ({ dataHash: flip(dataHash) })) },
  { forged: 'the gas', edit: inTransaction(() => ({ gas: '90000000' })) },
  { forged: 'the fee', edit: inTransaction(() => ({ maxFeePerGasWei: '99000000000' })) },
  { forged: 'the tip', edit: inTransaction(() => ({ maxPriorityFeePerGasWei: '2000000000' })) },
  { forged: 'the stake', edit: (status) => ({ ...status, stakeId: 'f'.repeat(32) }) },
  { forged: 'the deposit data', edit: (status) => ({ ...status, depositData: attackersFields }) },
  {
    forged: 'the deposit data and what says that it was verified',
    edit: (status) => ({ ...status, depositData: attackersFields, verifiedRoot: attackersFields.depositDataRoot }),
  },
  {
    forged: 'the deposit data, with no transaction',
    edit: ({ transaction: _gone, ...status }) => ({
      ...status,
      depositData: attackersFields,
      verifiedRoot: attackersFields.depositDataRoot,
    }),
  },
  {
    forged: 'stake and deposit data, with no transaction',
    edit: ({ transaction: _gone, ...status }) => ({
      ...status,
      stakeId: 'f'.repeat(32),
      depositData: attackersFields,
      verifiedRoot: attackersFields.depositDataRoot,
    }),
  },
]

/** The service's own validator, with something changed and every root right. */
const changed = (status: EthereumStakeStatus, change: Partial<typeof attackersFields>) => {
  const fields = { ...(status.depositData as typeof attackersFields), ...change }
  const depositDataRootOf = depositDataRoot({ ...fields, amountGwei: BigInt(fields.amountGwei) } as never)
  return { ...status, depositData: { ...fields, depositDataRoot: depositDataRootOf }, verifiedRoot: depositDataRootOf }
}
forgeries.push(
  {
    forged: 'the credentials alone',
    edit: (status) => ({
      ...status,
      depositData: {
        ...(status.depositData as typeof attackersFields),
        withdrawalCredentials: attackersFields.withdrawalCredentials,
      },
    }),
  },
  {
    forged: 'the credentials, with no transaction',
    edit: ({ transaction: _gone, ...status }) => changed(status, { withdrawalCredentials: withdrawalCredentials('0x02', testAddress(2)) }),
  },
  {
    // The contract would take it, and the consensus layer would drop it: the money would be lost.
    forged: 'the signature, with no transaction',
    edit: ({ transaction: _gone, ...status }) => changed(status, { signature: attackersFields.signature }),
  },
  {
    forged: 'the amount, with no transaction',
    edit: ({ transaction: _gone, ...status }) => changed(status, { amountGwei: '33000000000' }),
  },
)

/** The money goes to the service's validator once, or not at all. */
function assertNoHarm(world: World): void {
  world.assertMoney({ deposits: world.chain.deposits().length })
  expect(world.chain.deposits().length).toBeLessThanOrEqual(1)
  for (const { pubkey } of world.chain.deposits()) expect(pubkey).toBe(world.service.stakes()[0]?.depositData.pubkey)
  expect(world.chain.everSent().every(({ nonce }) => nonce === 0)).toBe(true)
  // Nor was anything else ever signed.
  for (const { transaction } of world.keys.signed)
    expect(transaction).toMatchObject({ nonce: 0, data: world.service.stakes()[0]?.unsignedTransaction.data })
}

/** Status shows what the log has, and nothing of what somebody wrote. */
function assertMirrored(world: World): void {
  const { transaction, stakeId, depositData } = world.status()
  const record = world.record()
  const stake = world.service.stakes()[0]
  expect(stakeId).toBe(stake?.stakeId)
  const { pubkey, withdrawalCredentials: credentials, signature, depositDataRoot: root } = stake?.depositData ?? {}
  expect(depositData).toMatchObject({
    pubkey,
    withdrawalCredentials: credentials,
    signature,
    depositDataRoot: root,
    amountGwei: '32000000000',
  })
  expect(transaction).toMatchObject({
    hash: record?.status?.outcome?.hash,
    nonce: record?.status?.place,
    valueWei: (32n * ETH).toString(),
    from: record?.spec.from,
    to: hoodi.depositContractAddress,
    chainId: hoodi.chainId,
  })
}

describe('before the transaction was sent', () => {
  test.each(forgeries)('somebody writes another value, and it is put right: $forged', async ({ edit }) => {
    const { world, operator } = await prepared()
    world.editStatus(edit)
    await world.settle(operator)
    assertNoHarm(world)
    expect(world.ready()).toBe(true)
    assertMirrored(world)
    world.assertMoney({ deposits: 1 })
  })
})

test('a status that says Confirmed, and nothing was sent: Ready is not said of it', async () => {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  const operator = world.start()
  world.chain.state.baseFee = 500n * 10n ** 9n
  await world.visit(operator)
  const forged = {
    chainId: hoodi.chainId,
    from: testAddress(0),
    to: hoodi.depositContractAddress,
    valueWei: (32n * ETH).toString(),
    dataHash: `0x${'aa'.repeat(32)}`,
    hash: `0x${'bb'.repeat(32)}`,
    nonce: 0,
    gas: '1',
    maxFeePerGasWei: '1',
    maxPriorityFeePerGasWei: '1',
    preparedAt: '2030-01-01T00:00:00Z',
    broadcastHash: `0x${'bb'.repeat(32)}`,
    reportedHash: `0x${'bb'.repeat(32)}`,
    state: 'Confirmed',
    minedHash: `0x${'bb'.repeat(32)}`,
    blockNumber: 1,
    blockHash: `0x${'cc'.repeat(32)}`,
  }
  world.editStatus((status) => ({ ...status, transaction: forged }))
  await world.visit(operator)
  expect(world.ready()).toBe(false)
  expect(world.status().transaction).toBeUndefined()
  world.chain.state.baseFee = 10n ** 10n
  await world.settle(operator)
  assertMirrored(world)
  world.assertMoney({ deposits: 1 })
})

test.each(forgeries.filter(({ forged }) => forged.endsWith('with no transaction')))(
  'before anything was prepared, and nothing that is forged is ever signed: $forged',
  async ({ edit }) => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const operator = world.start()
    world.chain.state.historySyncing = true
    await world.visit(operator)
    expect(world.condition('Verified')?.status).toBe('True')
    world.editStatus(edit)
    world.chain.state.historySyncing = false
    await world.settle(operator)
    assertNoHarm(world)
    expect(world.ready()).toBe(true)
    assertMirrored(world)
    world.assertMoney({ deposits: 1 })
  },
)

describe('after the transaction was sent', () => {
  test.each(forgeries)('somebody writes another value, and the node forgets the transaction: $forged', async ({ edit }) => {
    const { world, operator } = await broadcast()
    world.chain.forget()
    world.editStatus(edit)
    await world.settle(operator)
    assertNoHarm(world)
    expect(world.ready()).toBe(true)
    assertMirrored(world)
    world.assertMoney({ deposits: 1 })
  })

  test('the hash of another transaction, that was reverted, is not taken for the deposit', async () => {
    const { world, operator } = await broadcast()
    const stranger = testAddress(2)
    world.chain.fund(stranger, ETH)
    const hash = world.chain.mineForeign({ from: stranger, to: hoodi.depositContractAddress, data: '0x' })
    world.chain.mine(3, () => undefined)
    world.editStatus(inTransaction(() => ({ hash, broadcastHash: hash })))
    await world.visit(operator)
    expect(world.status().transaction?.state).toBe('Broadcast')
    expect(world.status().transaction?.hash).not.toBe(hash)
  })

  test('the hash of another transaction, that made no deposit, is not taken for it either', async () => {
    const { world, operator } = await broadcast()
    const stranger = testAddress(2)
    world.chain.fund(stranger, ETH)
    const hash = world.chain.mineForeign({ from: stranger })
    world.chain.mine(3, () => undefined)
    world.editStatus(inTransaction(() => ({ hash, broadcastHash: hash })))
    await world.visit(operator)
    expect(world.status().transaction?.state).toBe('Broadcast')
    expect(world.status().transaction?.hash).not.toBe(hash)
  })
})

describe('a status that was lost is found again', () => {
  test.each<{ phase: string; rounds: number; edit: (status: EthereumStakeStatus) => object | undefined }>([
    { phase: 'sent, all of it', rounds: 0, edit: () => undefined },
    { phase: 'sent, the transaction', rounds: 0, edit: ({ transaction: _gone, ...status }) => status },
    { phase: 'in a block', rounds: 1, edit: () => undefined },
    { phase: 'in a block, the transaction', rounds: 1, edit: ({ transaction: _gone, ...status }) => status },
    { phase: 'final', rounds: 5, edit: () => undefined },
    { phase: 'final, the transaction', rounds: 5, edit: ({ transaction: _gone, ...status }) => status },
  ])('$phase', async ({ rounds, edit }) => {
    const { world, operator } = await broadcast()
    const { hash } = world.status().transaction as Transaction
    world.chain.mine(rounds)
    if (rounds > 2) await world.settle(operator)
    world.editStatus(edit)
    await world.settle(operator)
    expect(world.status().transaction).toMatchObject({ state: 'Confirmed', hash, minedHash: hash })
    world.assertMoney({ deposits: 1 })
    expect(world.service.stakes()).toHaveLength(1)
  })

  test('prepared and not sent: under the same nonce', async () => {
    const { world, operator } = await prepared()
    world.editStatus(() => undefined)
    await world.settle(operator)
    expect(world.status().transaction).toMatchObject({ state: 'Confirmed', nonce: 0 })
    world.assertMoney({ deposits: 1 })
  })

  test('with the log as well, and the deposit on the chain: the chain has it', async () => {
    const { world, operator } = await broadcast()
    world.chain.mine(4)
    world.editStatus(() => undefined)
    world.loseLog()
    await world.settle(operator)
    expect(world.ready()).toBe(true)
    world.assertMoney({ deposits: 1 })
  })

  test('with the log as well, and the transaction in the pool: the staking API was told of it, and it is followed', async () => {
    const { world } = await broadcast()
    const { hash } = world.status().transaction as Transaction
    world.editStatus(() => undefined)
    world.loseLog()
    const next = world.start()
    await world.visit(next)
    expect(world.record()?.status?.attempts).toMatchObject([{ hash, nonce: 0, found: true }])
    await world.settle(next)
    expect(world.status().transaction).toMatchObject({ state: 'Confirmed', hash })
    world.assertMoney({ deposits: 1 })
  })

  test('with the log as well, and the transaction nowhere: nobody can say that it never lands, so a person must', async () => {
    const { world } = await broadcast()
    const { hash } = world.status().transaction as Transaction
    world.editStatus(() => undefined)
    world.loseLog()
    world.chain.forget()
    const next = world.start()
    for (let count = 0; count < 5; count++) {
      await world.visit(next)
      world.clock.advance(12_000)
      world.chain.mine()
    }
    expect(world.stalled()).toBe('UnknownSubmission')
    expect(world.keys.signed).toEqual([])
    const name = world.record()?.metadata.name as string
    world.records.edit(name, (record) => ({
      ...record,
      metadata: { ...record.metadata, annotations: { [DISREGARD_SUBMISSION_ANNOTATION]: hash } },
    }))
    await world.settle(next)
    world.assertMoney({ deposits: 1 })
  })

  test('with the log and what the staking API was told as well, and the transaction in the pool: a person must look', async () => {
    const { world } = await broadcast()
    world.editStatus(() => undefined)
    world.loseLog()
    world.service.state.lie = (body) => ({ ...body, transaction: { status: 'awaiting_submission' } }) as never
    const next = world.start()
    await world.visit(next)
    expect(world.stalled()).toBe('UnaccountedTransactions')
    await world.settle(next)
    world.assertMoney({ deposits: 1 })
  })

  test('of a deposit that was reverted: it is not tried again by itself', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const operator = world.start()
    await world.visit(operator)
    world.chain.state.contractReverts = true
    world.chain.mine()
    world.chain.state.contractReverts = false
    world.chain.mine(3)
    await world.visit(operator)
    expect(world.status().transaction?.state).toBe('Failed')
    expect(world.stalled()).toBe('TransactionReverted')
    world.editStatus(() => undefined)
    await world.settle(operator, [KEY], 4)
    expect(world.status().transaction?.state).toBe('Failed')
    expect(world.chain.everSent()).toHaveLength(1)
  })

  test('between the estimate and the last look at the witnesses, with the log lost: no second nonce is sent', async () => {
    const world = createWorld({ depth: 0 })
    world.addSigner()
    world.addStake()
    const first = world.start()
    await world.visit(first)
    world.editStatus(() => undefined)
    world.loseLog()
    let struck = false
    const operator = world.start((point) => {
      if (point !== 'after chain.estimateGas' || struck) return
      struck = true
      world.chain.mine()
    })
    await world.settle(operator)
    expect(struck).toBe(true)
    expect(world.chain.everSent()).toHaveLength(1)
    world.assertMoney({ deposits: 1 })
  })
})

describe('a deposit of this very stake stands on the chain, in a transaction that status does not know', () => {
  const before = 'team-a/before'
  /** Nonce 1, behind another's nonce 0; then that nonce is used for this stake's deposit, by the same key: a version that status has lost, say. */
  async function paidElsewhere(sent: boolean) {
    const world = createWorld({ depth: 3 })
    world.addSigner('signer-1', {}, { sharedKey: true })
    world.addStake(before)
    world.addStake()
    let down = false
    const operator = world.start((point) => {
      if (point === 'before chain.send' && down) throw new ChainError('unavailable', 'no answer')
    })
    await world.visit(operator, before)
    down = !sent
    await world.visit(operator)
    down = false
    expect(world.status().transaction).toMatchObject({ nonce: 1, state: sent ? 'Broadcast' : 'Prepared' })
    world.chain.forget()
    const { unsignedTransaction } = world.service.stakes()[1] as EthereumStakeBody
    const hash = world.chain.mineForeign({
      from: testAddress(0),
      to: hoodi.depositContractAddress,
      data: unsignedTransaction.data,
      valueWei: unsignedTransaction.valueWei,
    })
    return { world, operator, hash }
  }

  test.each([
    { when: 'before its own was sent', sent: false },
    { when: 'after its own was sent and forgotten', sent: true },
  ])('$when: it is taken for what it is, and nothing more is sent', async ({ sent }) => {
    const { world, operator, hash } = await paidElsewhere(sent)
    // The one under its own nonce is cancelled: it would pay a second time.
    await world.visit(operator)
    expect(world.record()?.status?.attempts?.map(({ kind, nonce }) => `${kind} ${nonce}`)).toEqual(['Call 1', 'Cancel 1'])
    await world.settle(operator, [KEY, before], 20)
    expect(world.status().transaction).toMatchObject({ state: 'Confirmed', nonce: 0, minedHash: hash })
    // The one that lost its nonce is made again.
    expect(world.status(before).transaction).toMatchObject({ state: 'Confirmed' })
    expect(world.record(before)?.status?.closed).toMatchObject([{ nonce: 0, by: 'Foreign' }])
    world.assertMoney({ deposits: 2 })
  })
})

describe('two resources never pay for one validator', () => {
  const second = 'team-a/stake-2'
  test.each([
    { with: 'one signer', signer: 'signer-1' },
    { with: 'two signers', signer: 'signer-2' },
  ])('when both adopt the same stake at the same moment, with $with', async ({ signer }) => {
    const world = createWorld()
    world.addSigner('signer-1')
    world.addSigner('signer-2', {}, {}, 1)
    const made = await world.service.api.createEthereumStake(
      {
        idempotencyKey: 'by hand',
        network: 'hoodi',
        amountGwei: (32n * 10n ** 9n) as never,
        withdrawalAddress,
        credentialsType: '0x02',
        externalReference: 'by hand',
      },
      new AbortController().signal,
    )
    world.addStake(KEY, { adopt: { stakeId: made.stakeId } })
    world.addStake(second, { adopt: { stakeId: made.stakeId }, signer })
    const operator = world.start()
    for (let round = 0; round < 8; round++) {
      await Promise.all([world.visit(operator, KEY), world.visit(operator, second)])
      world.clock.advance(12_000)
      world.chain.mine()
    }
    world.assertMoney({ deposits: 1 })
    expect([world.ready(KEY), world.ready(second)].filter(Boolean)).toHaveLength(1)
    const loser = world.ready(KEY) ? second : KEY
    expect(['AdoptionMismatch', 'PubkeyAlreadyDeposited']).toContain(world.stalled(loser))
  })

  test('a resource that adopts the stake of another namespace is refused, while that one waits and afterwards', async () => {
    const world = createWorld()
    world.addSigner('signer-1', {}, { allowedNamespaces: { names: ['team-a', 'team-b'] } })
    world.addStake(KEY)
    const operator = world.start()
    world.chain.state.baseFee = 500n * 10n ** 9n
    await world.visit(operator, KEY)
    expect(world.condition('Ready')?.reason).toBe('FeeTooHigh')
    const thief = 'team-b/thief'
    world.addStake(thief, { adopt: { stakeId: world.status(KEY).stakeId as string } })
    await world.visit(operator, thief)
    expect(world.stalled(thief)).toBe('AdoptionMismatch')
    world.chain.state.baseFee = 10n ** 10n
    await world.settle(operator, [KEY])
    expect(world.ready(KEY)).toBe(true)
    await world.settle(operator, [thief], 3)
    expect(world.stalled(thief)).toBe('AdoptionMismatch')
    world.assertMoney({ deposits: 1 })
  })

  test('nor one of the same namespace, as long as the resource that made it is there', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake(KEY)
    const operator = world.start()
    world.chain.state.baseFee = 500n * 10n ** 9n
    await world.visit(operator, KEY)
    world.addStake(second, { adopt: { stakeId: world.status(KEY).stakeId as string } })
    await world.visit(operator, second)
    expect(world.stalled(second)).toBe('AdoptionMismatch')
    world.chain.state.baseFee = 10n ** 10n
    await world.settle(operator, [KEY, second], 8)
    expect([world.ready(KEY), world.ready(second)]).toEqual([true, false])
    world.assertMoney({ deposits: 1 })
  })

  test('nor one that was made for no resource and that another namespace has paid, once the one that paid it is gone', async () => {
    const world = createWorld()
    world.addSigner('signer-1', {}, { allowedNamespaces: { names: ['team-a', 'team-b'] } })
    // As of a stake that a person has made at the staking API, for no resource.
    world.service.state.lie = ({ externalReference: _none, ...body }) => body
    world.addStake(KEY)
    const operator = world.start()
    await world.settle(operator)
    expect(world.ready(), JSON.stringify(world.condition('Ready'))).toBe(true)
    const stakeId = world.status().stakeId as string
    world.stakes.vanish(KEY)
    const other = 'team-b/other'
    world.addStake(other, { adopt: { stakeId } })
    await world.settle(operator, [other], 3)
    expect(world.stalled(other), JSON.stringify(world.condition('Ready', other))).toBe('AdoptionMismatch')
    expect(world.condition('Ready', other)?.message).toContain('in that namespace alone')
    world.addStake(second, { adopt: { stakeId } })
    await world.settle(operator, [second], 4)
    expect(world.ready(second), JSON.stringify(world.condition('Ready', second))).toBe(true)
    world.assertMoney({ deposits: 1 })
  })

  test('a stake that does not match the spec is not adopted', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake(KEY)
    const operator = world.start()
    await world.settle(operator)
    world.addStake(second, { amountEth: '33', adopt: { stakeId: world.status(KEY).stakeId as string } })
    await world.settle(operator, [second], 3)
    expect(world.stalled(second)).toBe('AdoptionMismatch')
    world.assertMoney({ deposits: 1 })
  })

  test("what was paid stays with the key that has paid it, whoever's signer adopts it", async () => {
    const world = createWorld()
    world.addSigner('signer-1', {}, { limits: [{ window: '24h', maxCount: 2, per: 'Signer' }] })
    world.addSigner('signer-2', {}, {}, 1)
    const operator = world.start()
    for (const key of [KEY, 'team-a/paid']) {
      world.addStake(key)
      await world.settle(operator, [key])
      expect(world.ready(key)).toBe(true)
    }
    const paid = world.record('team-a/paid')
    world.stakes.vanish('team-a/paid')
    world.addStake(second, { signer: 'signer-2', adopt: { stakeId: paid?.spec.apiId as string } })
    await world.settle(operator, [second])
    expect(world.ready(second), JSON.stringify(world.condition('Ready', second))).toBe(true)
    expect(world.record(second)?.spec).toMatchObject({
      owner: { name: 'stake-2' },
      signer: 'signer-1',
      from: paid?.spec.from,
      earlier: [{ generation: 0, owner: { name: 'paid' }, signer: 'signer-1', from: paid?.spec.from }],
    })
    // Its own lane knows nothing of it.
    world.addStake('team-a/next', { signer: 'signer-2' })
    await world.settle(operator, ['team-a/next', second])
    expect(world.status('team-a/next').transaction).toMatchObject({ nonce: 0, state: 'Confirmed' })
    expect(world.record(second)?.status?.outcome).toEqual(paid?.status?.outcome)
    // And the limit of the key that has paid counts it.
    world.addStake('team-a/third')
    await world.settle(operator, ['team-a/third'], 3)
    expect(world.condition('Ready', 'team-a/third')?.reason).toBe('LimitReached')
    world.assertMoney({ deposits: 3 })
  })

  test('a resource that is gone leaves its stake to the one that adopts it, once nothing of it can land', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake('team-a/gone-1')
    world.addStake('team-a/gone-2')
    const operator = world.start()
    await world.visit(operator, 'team-a/gone-1')
    await world.visit(operator, 'team-a/gone-2')
    const { stakeId } = world.status('team-a/gone-2')
    world.stakes.vanish('team-a/gone-1')
    world.stakes.vanish('team-a/gone-2')
    world.addStake(KEY, { adopt: { stakeId: stakeId as string } })
    await world.settle(operator)
    expect(world.status().transaction).toMatchObject({ state: 'Confirmed', nonce: 2 })
    expect(world.record()?.status?.closed).toMatchObject([{ nonce: 1, by: 'Cancel' }])
    expect(world.record()?.spec).toMatchObject({ generation: 1, owner: { name: 'stake-1' } })
    world.assertMoney({ deposits: 1 })
  })

  test('where the call of the one that is gone lands before its cancel, it is the deposit', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake(KEY)
    const operator = world.start()
    await world.visit(operator, KEY)
    const { stakeId } = world.status(KEY)
    // Gone by force while its transaction waits; its place is cancelled, and a node keeps the first version.
    world.stakes.vanish(KEY)
    world.addStake(second)
    await world.visit(operator, second)
    world.stakes.create({
      metadata: { namespace: 'team-a', name: 'stake-1' },
      spec: {
        network: 'hoodi',
        amountEth: '32',
        withdrawalAddress,
        credentialsType: 'Compounding',
        signer: 'signer-1',
        adopt: { stakeId },
      },
    })
    await world.visit(operator, KEY)
    expect(world.status(KEY).transaction).toBeUndefined()
    world.chain.mine(1, (versions) => versions[0])
    await world.settle(operator, [KEY, second])
    expect(world.ready(KEY) && world.ready(second)).toBe(true)
    expect(world.status(KEY).transaction?.nonce).toBe(0)
    world.assertMoney({ deposits: 2 })
  })
})
