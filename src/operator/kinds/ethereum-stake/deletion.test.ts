import { describe, expect, test } from 'vitest'
import { StakingApiError } from '../../../contract/client-error.ts'
import type { Hash } from '../../../lib/chain-types.ts'
import type { EthereumStake, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import type { EthereumTransaction } from '../../../resources/ethereum-transaction.ts'
import { CONFIRM_DELETE_ANNOTATION } from '../../../resources/meta.ts'
import { testAddress } from '../../testing/fake-keys.ts'
import { addressOf, createWorld, ETH, hoodi, KEY, type World } from '../../testing/world.ts'
import { decideDeletion, type LoggedDeposit } from './deletion.ts'

const resource = (annotation?: string): EthereumStake =>
  ({
    metadata: {
      name: 'one',
      namespace: 'team-a',
      uid: 'u',
      resourceVersion: '1',
      ...(annotation && { annotations: { [CONFIRM_DELETE_ANNOTATION]: annotation } }),
    },
    spec: { amountEth: '32' },
  }) as unknown as EthereumStake
const hash: Hash = '0x1'
const inState = (state: EthereumTransaction['state'], validator?: string): EthereumStakeStatus => ({
  transaction: { state, hash, nonce: 3 } as EthereumTransaction,
  ...(validator && { validator: { pubkey: '0xabc', status: validator } }),
})

const depositData = { pubkey: '0xabc' } as EthereumStakeStatus['depositData'] & object
const open: LoggedDeposit = { is: 'open', hash, nonce: 3 }
const landed: LoggedDeposit = { is: 'landed', pubkey: '0xabc' }

test.each<{ given: string; status: EthereumStakeStatus; logged?: LoggedDeposit; annotation?: string; does: 'release' | 'watch' | 'hold' }>([
  { given: 'nothing was made', status: {}, does: 'release' },
  { given: 'a stake that was never paid', status: { stakeId: 's1' }, does: 'release' },
  { given: 'a record of which nothing can land', status: { stakeId: 's1' }, logged: { is: 'idle' }, does: 'release' },
  { given: 'a transaction in the log that status lost', status: {}, logged: open, does: 'watch' },
  { given: 'a prepared transaction', status: inState('Prepared'), logged: open, does: 'watch' },
  { given: 'a transaction on its way', status: inState('Broadcast'), logged: open, does: 'watch' },
  { given: 'a final deposit', status: inState('Confirmed'), logged: landed, does: 'hold' },
  { given: 'a final deposit that status lost', status: {}, logged: landed, does: 'hold' },
  { given: 'a final deposit that status does not show yet', status: { stakeId: 's1', depositData }, logged: landed, does: 'watch' },
  { given: 'an active validator', status: inState('Confirmed', 'active_ongoing'), logged: landed, does: 'hold' },
  { given: 'a validator that is exiting', status: inState('Confirmed', 'active_exiting'), logged: landed, does: 'hold' },
  {
    given: 'a validator that has exited and is not paid out',
    status: inState('Confirmed', 'withdrawal_possible'),
    logged: landed,
    does: 'hold',
  },
  { given: 'a validator that was paid out', status: inState('Confirmed', 'withdrawal_done'), logged: landed, does: 'release' },
  {
    given: 'a status that says so while the transaction is open',
    status: inState('Confirmed', 'withdrawal_done'),
    logged: open,
    does: 'watch',
  },
  { given: 'a reverted transaction', status: inState('Failed'), logged: { is: 'reverted' }, does: 'release' },
  { given: 'a final deposit, confirmed by name', status: inState('Confirmed'), logged: landed, annotation: 'one', does: 'release' },
  { given: 'a transaction on its way, confirmed by name', status: inState('Broadcast'), logged: open, annotation: 'one', does: 'release' },
  { given: 'a final deposit, confirmed for another name', status: inState('Confirmed'), logged: landed, annotation: 'two', does: 'hold' },
  { given: 'a final deposit, confirmed with "true"', status: inState('Confirmed'), logged: landed, annotation: 'true', does: 'hold' },
])('with $given: $does', ({ status, logged = { is: 'none' }, annotation, does }) => {
  const decision = decideDeletion(resource(annotation), status, logged)
  expect(decision.do).toBe(does)
  if (decision.do !== 'release')
    expect(decision.message).toContain(`kubectl annotate ethereumstake one -n team-a ${CONFIRM_DELETE_ANNOTATION}=one`)
})

describe('a stake that was never paid, deleted', () => {
  /** The staking API has it, and nothing of it is signed: its signer has no funds. */
  async function unpaid(spec: object = {}) {
    const world = createWorld()
    world.addSigner()
    world.chain.fund(addressOf(0), -world.chain.balance(addressOf(0)))
    world.addStake(KEY, spec)
    const operator = world.start()
    await world.settle(operator, [KEY], 2)
    const stakeId = world.status().stakeId ?? ''
    expect(stakeId).not.toBe('')
    expect(world.chain.everSent()).toEqual([])
    return { world, operator, stakeId }
  }
  const statusAt = (world: World, stakeId: string) => world.service.stakes().find((one) => one.stakeId === stakeId)?.transaction.status

  test('is cancelled at the staking API, and its name is free for another amount', async () => {
    const { world, operator, stakeId } = await unpaid()
    world.remove(KEY)
    await world.settle(operator, [KEY], 4)
    expect(world.object(KEY)).toBeUndefined()
    expect(statusAt(world, stakeId)).toBe('cancelled')
    world.chain.fund(addressOf(0), 1_000n * ETH)
    world.addStake(KEY, { amountEth: '64' })
    await world.settle(operator)
    expect(world.ready(), world.condition('Ready')?.message).toBe(true)
    expect(world.status().stakeId).not.toBe(stakeId)
    world.assertMoney({ deposits: 1, amountEth: '64' })
  })

  test('stays while the staking API says that it was paid by a transaction that nobody has reported', async () => {
    const { world, operator, stakeId } = await unpaid()
    world.service.state.paid.add(stakeId)
    world.remove(KEY)
    await world.settle(operator, [KEY], 4)
    expect(world.stalled()).toBe('UnknownSubmission')
    expect(world.condition('Ready')?.message).toContain('Look for a deposit for 0x')
    expect(statusAt(world, stakeId)).toBe('awaiting_submission')
  })

  test.each([
    { who: 'somebody else, whose transaction the chain shows: it goes', from: testAddress(2), goes: true },
    { who: 'the signer’s own key, in a transaction that the log does not know: it stays', from: addressOf(0), goes: false },
  ])('paid by $who', async ({ from, goes }) => {
    const { world, operator, stakeId } = await unpaid()
    const paid = world.service.stakes().find((one) => one.stakeId === stakeId)
    if (paid === undefined) throw new Error('no stake was made')
    const { data, valueWei } = paid.unsignedTransaction
    world.chain.fund(from, 100n * ETH)
    world.chain.mineForeign({ from, to: hoodi.depositContractAddress, data, valueWei })
    world.service.state.paid.add(stakeId)
    world.remove(KEY)
    await world.settle(operator, [KEY], 4)
    expect(world.object(KEY) === undefined).toBe(goes)
    expect(world.keys.signed).toEqual([])
    if (!goes) expect(world.condition('Ready')?.status).not.toBe('True')
  })

  test('is cancelled by its name where the operator ended before it had written down that the stake was made', async () => {
    const { world, operator, stakeId } = await unpaid()
    world.editStatus(({ stakeId: _id, depositData: _data, verifiedRoot: _root, ...status }) => status)
    world.loseLog()
    world.remove(KEY)
    await world.settle(operator, [KEY], 4)
    expect(world.object(KEY)).toBeUndefined()
    expect(statusAt(world, stakeId)).toBe('cancelled')
    world.chain.fund(addressOf(0), 1_000n * ETH)
    world.addStake(KEY, { amountEth: '64' })
    await world.settle(operator)
    expect(world.ready(), world.condition('Ready')?.message).toBe(true)
    world.assertMoney({ deposits: 1, amountEth: '64' })
  })

  test('cancelled, and its resource there again as after a restore: it says so, takes no place and is not paid', async () => {
    const { world, operator, stakeId } = await unpaid()
    const { annotations } = world.object(KEY)?.metadata ?? {}
    world.remove(KEY)
    await world.settle(operator, [KEY], 4)
    expect(statusAt(world, stakeId)).toBe('cancelled')
    world.chain.fund(addressOf(0), 1_000n * ETH)
    world.addStake(KEY, {}, { annotations })
    await world.settle(operator, [KEY], 8)
    expect(world.status().stakeId).toBe(stakeId)
    expect(world.stalled(), world.condition('Ready')?.message).toBe('RequestCancelled')
    expect(world.keys.signed).toEqual([])
    expect(world.chain.everSent()).toEqual([])
    // Deleted and made anew, without what the backup had kept, it is another stake.
    world.remove(KEY)
    await world.settle(operator, [KEY], 4)
    world.addStake(KEY)
    await world.settle(operator)
    expect(world.ready(), world.condition('Ready')?.message).toBe(true)
    world.assertMoney({ deposits: 1 })
  })

  test('waits while the staking API is away, and goes after it', async () => {
    const { world, operator, stakeId } = await unpaid()
    const { cancelEthereumStake } = world.service.api
    let away = true
    Object.assign(world.service.api, {
      cancelEthereumStake: async (...args: Parameters<typeof cancelEthereumStake>) => {
        if (away) throw new StakingApiError('away', { kind: 'problem', status: 503, outcomeUnknown: true })
        return cancelEthereumStake(...args)
      },
    })
    world.remove(KEY)
    await world.settle(operator, [KEY], 3).catch(() => undefined)
    expect(world.object(KEY)).toBeDefined()
    away = false
    world.clock.advance(600_000)
    await world.settle(operator, [KEY], 4)
    expect(world.object(KEY)).toBeUndefined()
    expect(statusAt(world, stakeId)).toBe('cancelled')
  })

  test.each(['as status names it', 'by its name alone'])('confirmed by annotation, it is cancelled first, %s', async (how) => {
    const { world, operator, stakeId } = await unpaid()
    if (how.includes('alone')) {
      world.editStatus(({ stakeId: _id, depositData: _data, verifiedRoot: _root, ...status }) => status)
      world.loseLog()
    }
    world.annotate({ [CONFIRM_DELETE_ANNOTATION]: 'stake-1' })
    world.remove(KEY)
    await world.visit(operator)
    expect(world.object(KEY)).toBeUndefined()
    expect(statusAt(world, stakeId)).toBe('cancelled')
  })

  test('confirmed by annotation, and paid by a transaction that the log has lost: it goes, and is not cancelled', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const operator = world.start()
    await world.settle(operator)
    const { stakeId = '' } = world.status()
    world.loseLog()
    const cancelled: string[] = []
    Object.assign(world.service.api, { cancelEthereumStake: async (id: string) => void cancelled.push(id) })
    world.annotate({ [CONFIRM_DELETE_ANNOTATION]: 'stake-1' })
    world.remove(KEY)
    await world.visit(world.start())
    expect(world.object(KEY)).toBeUndefined()
    expect(cancelled).toEqual([])
    expect(statusAt(world, stakeId)).not.toBe('cancelled')
    world.assertMoney({ deposits: 1 })
  })

  test('with a stake in status that is another’s: its own is found by its name and cancelled', async () => {
    const { world, operator, stakeId } = await unpaid()
    world.editStatus((status) => ({ ...status, stakeId: 'f'.repeat(32) }))
    world.remove(KEY)
    await world.settle(operator, [KEY], 4)
    expect(world.object(KEY)).toBeUndefined()
    expect(statusAt(world, stakeId)).toBe('cancelled')
  })

  test('that is another resource’s by its external reference is left alone', async () => {
    const { world, operator, stakeId } = await unpaid()
    world.service.state.lie = (body) => ({ ...body, externalReference: 'EthereumStake/team-b/other' })
    world.remove(KEY)
    await world.settle(operator, [KEY], 4)
    expect(world.object(KEY)).toBeUndefined()
    expect(statusAt(world, stakeId)).toBe('awaiting_submission')
  })
})

test('a stake whose deposit is on the chain, of which a lost log has only a new record, stays when it is deleted', async () => {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  await world.settle(world.start())
  world.loseLog()
  world.service.forget()
  world.editStatus(() => undefined)
  const dying = world.start((point, self) => {
    if (point.startsWith('after record create')) self.kill()
  })
  await world.visit(dying)
  expect(world.record()?.status?.place).toBeUndefined()
  world.remove(KEY)
  await world.settle(world.start(), [KEY], 4)
  expect(world.object(KEY)).toBeDefined()
  expect(world.condition('Ready')?.message).toContain('are staked')
})
