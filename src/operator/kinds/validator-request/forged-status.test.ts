import { describe, expect, test } from 'vitest'
import { encodeRequestCalldata } from '../../../chains/ethereum/requests.ts'
import { gwei, wei } from '../../../lib/amounts.ts'
import type { Hex } from '../../../lib/chain-types.ts'
import type { ValidatorRequestStatus } from '../../../resources/validator-request.ts'
import { testAddress } from '../../testing/fake-keys.ts'
import type { FakeRequestBody } from '../../testing/fake-requests-api.ts'
import { createWorld, EXIT, WITHDRAWAL, type World } from '../../testing/world.ts'

/** Neither the staking API's answers nor status decide what is signed. */

const flip = (text: Hex): Hex => `0x${text.slice(2, -1)}${text.endsWith('0') ? '1' : '0'}`
const call = (change: Partial<FakeRequestBody['unsignedTransaction']>) => (body: FakeRequestBody) =>
  ({ ...body, unsignedTransaction: { ...body.unsignedTransaction, ...change } }) as FakeRequestBody

describe('a staking API that lies: nothing is signed', () => {
  const other = createWorld().validator(9)
  const lies: { lie: string; change: (body: FakeRequestBody) => FakeRequestBody; reason?: string; key?: string }[] = [
    { lie: 'another request', change: (body) => ({ ...body, requestId: 'f'.repeat(32) }) },
    { lie: 'another public key', change: (body) => ({ ...body, pubkey: other }) },
    { lie: "another resource's reference", change: (body) => ({ ...body, externalReference: 'ValidatorExit/team-b/exit-1' }) },
    { lie: 'no reference', change: ({ externalReference: _gone, ...body }) => body as FakeRequestBody },
    { lie: 'another contract', change: call({ to: testAddress(2) }) },
    { lie: 'another chain', change: call({ chainId: 1 }) },
    { lie: 'another sender', change: call({ from: testAddress(2) }), reason: 'SignerNotWithdrawalAddress' },
    { lie: 'a value of 1 ETH', change: call({ valueWei: wei(10n ** 18n) }) },
    { lie: 'no value', change: call({ valueWei: wei(0n) }) },
    { lie: 'a fee of 0', change: (body) => ({ ...body, fee: { ...body.fee, feeWei: wei(0n) } }) },
    { lie: 'calldata for another validator', change: call({ data: encodeRequestCalldata({ kind: 'exit', pubkey: other }) }) },
    { lie: 'calldata that is one byte longer', change: (body) => call({ data: `${body.unsignedTransaction.data}00` })(body) },
    { lie: 'no calldata', change: call({ data: '0x' }) },
    {
      lie: 'a full exit for a withdrawal',
      key: WITHDRAWAL,
      change: (body) => call({ data: encodeRequestCalldata({ kind: 'exit', pubkey: body.pubkey }) })(body),
    },
    {
      lie: 'a withdrawal for an exit',
      change: (body) => call({ data: encodeRequestCalldata({ kind: 'withdrawal', pubkey: body.pubkey, amountGwei: gwei(1n) }) })(body),
    },
    { lie: 'another amount', key: WITHDRAWAL, change: (body) => ({ ...body, amountGwei: gwei(2n) }) as FakeRequestBody },
    {
      lie: 'another amount, and calldata for it',
      key: WITHDRAWAL,
      change: (body) =>
        call({ data: encodeRequestCalldata({ kind: 'withdrawal', pubkey: body.pubkey, amountGwei: gwei(2n) }) })({
          ...body,
          amountGwei: gwei(2n),
        } as FakeRequestBody),
    },
  ]
  test.each(lies)('$lie', async ({ change, reason = 'VerificationFailed', key = EXIT }) => {
    const world = createWorld()
    world.addSigner()
    if (key === EXIT) world.addExit()
    else world.addWithdrawal()
    world.requests.state.lie = change
    await world.settle(world.start(), [key], 3)
    expect(world.stalled(key), JSON.stringify(world.condition('Ready', key))).toBe(reason)
    expect(world.keys.signed).toEqual([])
    expect(world.refusals).toContain(reason)
  })

  test('a decision on another transaction is not taken for one on ours', async () => {
    const world = createWorld()
    world.addSigner()
    world.addExit()
    world.requests.state.lie = (body) =>
      body.status === 'confirmed' ? { ...body, transaction: { hash: `0x${'1'.repeat(64)}` as const } } : body
    await world.settle(world.start(), [EXIT], 6)
    expect(world.ready(EXIT)).toBe(false)
    expect(world.requestStatus(EXIT).consensus).toBeUndefined()
  })
})

type Transaction = NonNullable<ValidatorRequestStatus['transaction']>
const inTransaction = (change: (transaction: Transaction) => Partial<Transaction>) => (status: ValidatorRequestStatus) => ({
  ...status,
  transaction: { ...(status.transaction as Transaction), ...change(status.transaction as Transaction) },
})
const forgeries: { forged: string; edit: (status: ValidatorRequestStatus, world: World) => object }[] = [
  { forged: 'the recipient', edit: inTransaction(() => ({ to: testAddress(2) })) },
  { forged: 'the value', edit: inTransaction(() => ({ valueWei: '100000000000000' })) },
  { forged: 'the sender', edit: inTransaction(() => ({ from: testAddress(2) })) },
  { forged: 'the chain id', edit: inTransaction(() => ({ chainId: 1 })) },
  { forged: 'the nonce', edit: inTransaction(({ nonce }) => ({ nonce: nonce + 1 })) },
  { forged: 'the hash', edit: inTransaction(({ hash }) => ({ hash: flip(hash) })) },
  { forged: 'nonce and hash', edit: inTransaction(({ nonce, hash }) => ({ nonce: nonce + 5, hash: flip(hash) })) },
  { forged: 'the hash of the calldata', edit: inTransaction(({ dataHash }) => ({ dataHash: flip(dataHash) })) },
  { forged: 'the gas', edit: inTransaction(() => ({ gas: '90000000' })) },
  { forged: 'the fee', edit: inTransaction(() => ({ maxFeePerGasWei: '99000000000' })) },
  { forged: 'the tip', edit: inTransaction(() => ({ maxPriorityFeePerGasWei: '2000000000' })) },
  { forged: 'the request', edit: (status) => ({ ...status, requestId: 'f'.repeat(32) }) },
  { forged: 'the validator', edit: (status, world) => ({ ...status, validator: { network: 'hoodi', pubkey: world.validator(9) } }) },
  { forged: 'the verified calldata', edit: (status) => ({ ...status, verifiedCalldata: `0x${'1'.repeat(112)}` }) },
  { forged: 'everything away', edit: () => ({}) },
  { forged: 'the transaction away', edit: ({ transaction: _gone, ...status }) => status },
  { forged: 'the request away', edit: ({ requestId: _gone, ...status }) => status },
  {
    forged: 'the validator, with no transaction',
    edit: ({ transaction: _gone, ...status }, world) => ({ ...status, validator: { network: 'hoodi', pubkey: world.validator(9) } }),
  },
]

/** It asks for what the spec says, once, or for nothing. */
function assertNoHarm(world: World): void {
  expect(world.chain.violations).toEqual([])
  expect(world.chain.requests().length).toBeLessThanOrEqual(1)
  const data = encodeRequestCalldata({ kind: 'withdrawal', pubkey: world.validator(), amountGwei: gwei(1_000_000_000n) })
  for (const { transaction } of world.keys.signed) expect(transaction).toMatchObject({ nonce: 0, data, chainId: 560048 })
  for (const { transaction } of world.keys.signed) expect(transaction.valueWei).toBeLessThan(1_000n)
}

describe.each(['before chain.send', 'after chain.send', 'nowhere'])('stopped %s, somebody writes another value', (point) => {
  test.each(forgeries)('$forged', async ({ edit }) => {
    const world = createWorld()
    world.addSigner()
    world.addWithdrawal()
    await world.visit(
      world.start((at, operator) => {
        if (at === point) operator.kill()
      }),
      WITHDRAWAL,
    )
    // Status shows it when the resource is looked at again.
    if (point !== 'nowhere') await world.start().visit(WITHDRAWAL)
    const right = world.requestStatus(WITHDRAWAL)
    expect(world.record(WITHDRAWAL)?.status?.place).toBe(0)
    expect(right.transaction?.state).toBe(point === 'nowhere' ? 'Broadcast' : 'Prepared')
    world.editRequestStatus((status) => edit(status, world), WITHDRAWAL)
    const operator = world.start()
    await world.settle(operator, [WITHDRAWAL], 6)
    assertNoHarm(world)
    if (!world.ready(WITHDRAWAL)) {
      // The right value back, and all is well.
      world.editRequestStatus(() => right, WITHDRAWAL)
      await world.settle(operator, [WITHDRAWAL])
    }
    expect(world.ready(WITHDRAWAL), JSON.stringify(world.condition('Ready', WITHDRAWAL))).toBe(true)
    assertNoHarm(world)
    expect(world.chain.requests()).toHaveLength(1)
  })
})

describe('long after it was made', () => {
  test.each([
    { lost: 'its transaction', edit: ({ transaction: _gone, ...status }: ValidatorRequestStatus) => status },
    { lost: 'all of its status', edit: () => ({}) },
  ])('with $lost lost, it finds its transaction in the log', async ({ edit }) => {
    const world = createWorld()
    world.addSigner()
    world.addWithdrawal()
    const operator = world.start()
    await world.settle(operator, [WITHDRAWAL])
    const { hash } = world.requestStatus(WITHDRAWAL).transaction ?? {}
    world.addExit(EXIT, { validator: { network: 'hoodi', pubkey: world.validator(1) } })
    await world.settle(operator, [EXIT])
    world.editRequestStatus(edit, WITHDRAWAL)
    await world.settle(world.start(), [WITHDRAWAL])
    expect(world.ready(WITHDRAWAL), JSON.stringify(world.condition('Ready', WITHDRAWAL))).toBe(true)
    expect(world.requestStatus(WITHDRAWAL).transaction?.minedHash).toBe(hash)
    expect(world.chain.requests().filter(({ kind }) => kind === 'withdrawal')).toHaveLength(1)
  })

  test.each(['Broadcast', 'Confirmed'] as const)(
    "another's transaction written into status as %s is not taken for its own: it makes its own",
    async (state) => {
      const world = createWorld()
      world.addSigner()
      world.addWithdrawal('withdrawal:team-a/a')
      const operator = world.start()
      await world.settle(operator, ['withdrawal:team-a/a'])
      world.addWithdrawal('withdrawal:team-a/b')
      await world.visit(operator, 'withdrawal:team-a/b')
      const { transaction } = world.requestStatus('withdrawal:team-a/a')
      world.editRequestStatus(
        (status) => ({ ...status, transaction: { ...transaction, state }, consensus: { status: 'Accepted' } }),
        'withdrawal:team-a/b',
      )
      await world.settle(operator, ['withdrawal:team-a/b'])
      expect(world.ready('withdrawal:team-a/b')).toBe(true)
      expect(world.requestStatus('withdrawal:team-a/b').transaction?.minedHash).not.toBe(transaction?.minedHash)
      expect(world.chain.requests()).toHaveLength(2)
    },
  )

  test('what somebody writes of a decision before anything has landed is taken away', async () => {
    const world = createWorld()
    world.addSigner()
    world.addWithdrawal()
    const operator = world.start()
    await world.visit(operator, WITHDRAWAL)
    world.editRequestStatus((status) => ({ ...status, consensus: { status: 'Accepted' } }), WITHDRAWAL)
    await world.visit(operator, WITHDRAWAL)
    expect(world.requestStatus(WITHDRAWAL).consensus).toBeUndefined()
    expect(world.ready(WITHDRAWAL)).toBe(false)
  })
})
