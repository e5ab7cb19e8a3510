import { describe, expect, test } from 'vitest'
import { ChainError } from '../../../chains/ethereum/chain.ts'
import { withdrawalCredentials } from '../../../chains/ethereum/deposit.ts'
import { StakingApiError, type StakingApiErrorFields } from '../../../contract/client-error.ts'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import { gwei } from '../../../lib/amounts.ts'
import { stall } from '../../engine/verdict.ts'
import { testAddress, testKeys } from '../../testing/fake-keys.ts'
import { makeStake } from '../../testing/fake-staking-api.ts'
import { createWorld, ETH, hoodi, KEY, type World, withdrawalAddress } from '../../testing/world.ts'

/** A world with one stake, after some visits: whatever was wrong has had its chance. */
async function visited(prepare: (world: World) => void, stake: Parameters<World['addStake']>[1] = {}): Promise<World> {
  const world = createWorld()
  world.addSigner()
  prepare(world)
  world.addStake(KEY, stake)
  await world.settle(world.start(), [KEY], 4)
  return world
}
function assertNothingMoved(world: World): void {
  expect(world.keys.signed).toEqual([])
  expect(world.chain.everSent()).toEqual([])
  world.assertMoney({ deposits: 0 })
}

describe('a resource that nobody should pay: nothing is signed, and it says why', () => {
  test.each<{ given: string; stake?: Parameters<World['addStake']>[1]; world?: (world: World) => void; reason: string; calls?: number }>([
    {
      given: 'a wrong checksum',
      stake: { withdrawalAddress: '0x52908400098527886E0F7030069857D2E4169Ee7' },
      reason: 'InvalidSpec',
      calls: 0,
    },
    { given: 'the zero address', stake: { withdrawalAddress: `0x${'0'.repeat(40)}` as const }, reason: 'InvalidSpec', calls: 0 },
    { given: 'an address of 19 bytes', stake: { withdrawalAddress: `0x${'1'.repeat(38)}` as const }, reason: 'InvalidSpec', calls: 0 },
    { given: '31 ETH', stake: { amountEth: '31' }, reason: 'InvalidSpec', calls: 0 },
    { given: '2048.000000001 ETH', stake: { amountEth: '2048.000000001' }, reason: 'InvalidSpec', calls: 0 },
    { given: '33 ETH with Execution', stake: { amountEth: '33', credentialsType: 'Execution' }, reason: 'InvalidSpec', calls: 0 },
    { given: 'ten decimals', stake: { amountEth: '32.0000000001' }, reason: 'InvalidSpec', calls: 0 },
    { given: 'an exponent', stake: { amountEth: '4e1' }, reason: 'InvalidSpec', calls: 0 },
    { given: 'no amount', stake: { amountEth: '' }, reason: 'InvalidSpec', calls: 0 },
    { given: 'credentials of no known type', stake: { credentialsType: 'Bls' as 'Execution' }, reason: 'InvalidSpec', calls: 0 },
    { given: 'a fee cap that is no number', stake: { maxFeePerGasGwei: '1e3' }, reason: 'InvalidSpec' },
    { given: 'an unknown network', stake: { network: 'nowhere' }, reason: 'UnknownNetwork', calls: 0 },
    { given: 'an unknown signer', stake: { signer: 'nobody' }, reason: 'SignerNotFound', calls: 0 },
    {
      given: 'a namespace that the policy does not admit',
      world: (world) => world.editPolicy({ allowedNamespaces: { names: ['team-b'] } }),
      reason: 'NamespaceNotAllowed',
      calls: 0,
    },
    { given: 'an empty policy', world: (world) => world.editPolicy({ allowedNamespaces: {} }), reason: 'NamespaceNotAllowed', calls: 0 },
    {
      given: 'a withdrawal address that the policy does not admit',
      world: (world) => world.editPolicy({ allowedWithdrawalAddresses: [testAddress(1)] }),
      reason: 'WithdrawalAddressNotAllowed',
      calls: 0,
    },
    {
      given: 'more than the limit',
      world: (world) => world.editPolicy({ maxPerTransaction: '31.999999999' }),
      reason: 'OverLimit',
      calls: 0,
    },
    {
      given: 'a policy that cannot be read',
      world: (world) => world.editPolicy({ maxPerTransaction: 32 }),
      reason: 'PolicyUnreadable',
      calls: 0,
    },
    { given: 'a missing key', world: (world) => world.keys.break('key-0', 'missing'), reason: 'KeyMissing', calls: 0 },
    { given: 'a malformed key', world: (world) => world.keys.break('key-0', 'malformed'), reason: 'KeyMalformed', calls: 0 },
    { given: 'a wrong password', world: (world) => world.keys.break('key-0', 'wrong-password'), reason: 'KeyMalformed', calls: 0 },
    {
      given: 'a key of another address',
      world: (world) => world.keys.mount('key-0', testKeys[1] as `0x${string}`),
      reason: 'KeyAddressMismatch',
      calls: 0,
    },
    {
      given: 'an older signer with the same address',
      world: (world) => world.signers.create({ ...structuredClone(world.signers.get('signer-1')), metadata: { name: 'a-twin' } }),
      reason: 'DuplicateSigner',
      calls: 0,
    },
    {
      given: 'an RPC node of another chain',
      world: (world) => {
        world.chain.state.wrongChain = true
      },
      reason: 'WrongChain',
    },
    {
      given: 'a contract that refuses',
      world: (world) => {
        world.chain.state.contractReverts = true
      },
      reason: 'RequestRefused',
    },
    {
      given: 'a contract that costs far more gas than a deposit',
      world: (world) => {
        world.chain.state.estimate = 5_000_000n
      },
      reason: 'VerificationFailed',
    },
    {
      given: 'transactions of the key that nobody accounts for',
      world: (world) => world.chain.mineForeign({ from: testAddress(0) }),
      reason: 'UnaccountedTransactions',
    },
  ])('$given: $reason', async ({ stake = {}, world: prepare = () => {}, reason, calls }) => {
    const world = await visited(prepare, stake)
    expect(world.stalled()).toBe(reason)
    expect(world.condition('Ready')).toMatchObject({ status: 'False', reason })
    expect(world.condition('Stalled')?.message.length).toBeGreaterThan(20)
    if (calls !== undefined) expect(world.service.requests).toHaveLength(calls)
    assertNothingMoved(world)
  })

  test('transactions that a person has looked at are no reason to stop, and the nonces go on after them', async () => {
    const world = createWorld()
    world.addSigner('signer-1', { acknowledgedNonce: 1 })
    world.chain.mineForeign({ from: testAddress(0) })
    world.addStake()
    await world.settle(world.start())
    expect(world.status().transaction?.nonce).toBe(1)
    world.assertMoney({ deposits: 1 })
  })

  test('with a shared key they are none either', async () => {
    const world = createWorld()
    world.addSigner('signer-1', {}, { sharedKey: true })
    world.chain.mineForeign({ from: testAddress(0) })
    world.addStake()
    await world.settle(world.start())
    world.assertMoney({ deposits: 1 })
  })

  test('an older CRD in the cluster: nothing is even asked for', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const operator = world.start()
    operator.state.crdsCurrent = stall('OutdatedCRD', 'The installed CustomResourceDefinitions are not those of this operator.')
    await world.settle(operator, [KEY], 2)
    expect(world.stalled()).toBe('OutdatedCRD')
    expect(world.service.requests).toEqual([])
    assertNothingMoved(world)
  })
})

test('a CRD that is replaced by an older one after the stake was created: nothing is signed', async () => {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  const operator = world.start((point) => {
    if (point === 'after api.createEthereumStake') operator.state.crdsCurrent = stall('OutdatedCRD', 'The installed definitions are older.')
  })
  await world.settle(operator, [KEY], 2)
  expect(world.stalled()).toBe('OutdatedCRD')
  assertNothingMoved(world)
})

const other = testAddress(2)
const flip = (hex: `0x${string}`): `0x${string}` => `0x${hex.slice(2, -1)}${hex.endsWith('0') ? '1' : '0'}`
/** A whole and consistent stake for something else. */
const instead =
  (change: { amountEth?: bigint; address?: `0x${string}`; type?: '0x01' | '0x02' }, config = hoodi) =>
  (body: EthereumStakeBody) => ({
    ...makeStake(
      config,
      {
        network: 'hoodi',
        amountGwei: gwei((change.amountEth ?? 32n) * 10n ** 9n),
        withdrawalAddress: change.address ?? withdrawalAddress,
        credentialsType: change.type ?? '0x02',
        externalReference: 'x',
      },
      body.stakeId,
      999,
    ),
  })
const deposit = (change: Partial<EthereumStakeBody['depositData']>) => (body: EthereumStakeBody) => ({
  ...body,
  depositData: { ...body.depositData, ...change },
})
const transaction = (change: Partial<EthereumStakeBody['unsignedTransaction']>) => (body: EthereumStakeBody) => ({
  ...body,
  unsignedTransaction: { ...body.unsignedTransaction, ...change },
})

describe('a service that lies: nothing is signed, and it is not tried again and again', () => {
  test.each<{ given: string; lie: (body: EthereumStakeBody) => EthereumStakeBody }>([
    { given: 'the credentials of somebody else, consistently', lie: instead({ address: other }) },
    { given: 'credentials of the other type, consistently', lie: instead({ type: '0x01' }) },
    { given: 'another amount, consistently', lie: instead({ amountEth: 33n }) },
    { given: 'a signature for another network', lie: instead({}, { ...hoodi, genesisForkVersion: '0x00000000' }) },
    { given: 'only other credentials', lie: deposit({ withdrawalCredentials: withdrawalCredentials('0x02', other) }) },
    { given: 'only another amount', lie: deposit({ amountGwei: gwei(33n * 10n ** 9n) }) },
    { given: 'a bad signature', lie: (body) => deposit({ signature: flip(body.depositData.signature) })(body) },
    { given: 'a wrong root', lie: (body) => deposit({ depositDataRoot: flip(body.depositData.depositDataRoot) })(body) },
    { given: 'a wrong message root', lie: (body) => deposit({ depositMessageRoot: flip(body.depositData.depositMessageRoot) })(body) },
    { given: 'another contract', lie: deposit({ depositContractAddress: other }) },
    { given: 'another chain id', lie: deposit({ chainId: 1 }) },
    { given: 'another fork version', lie: deposit({ forkVersion: '0x00000001' }) },
    { given: 'another network', lie: (body) => ({ ...body, network: 'mainnet' }) },
    { given: 'a transaction to somebody else', lie: transaction({ to: other }) },
    { given: 'a transaction for another chain', lie: transaction({ chainId: 1 }) },
    { given: 'a transaction with more value', lie: transaction({ valueWei: (33n * ETH) as never }) },
    { given: 'a transaction with other calldata', lie: (body) => transaction({ data: flip(body.unsignedTransaction.data) })(body) },
    { given: 'a public key that is none', lie: deposit({ pubkey: `0x${'ab'.repeat(48)}` as const }) },
  ])('$given', async ({ lie }) => {
    const world = await visited((made) => {
      made.service.state.lie = lie
    })
    expect(world.stalled()).toBe('VerificationFailed')
    expect(world.condition('Verified')).toMatchObject({ status: 'False', reason: 'VerificationFailed' })
    expect(world.refusals).toContain('VerificationFailed')
    expect(world.events.some(({ text }) => text.type === 'Warning' && text.reason === 'VerificationFailed')).toBe(true)
    assertNothingMoved(world)
  })

  test('a refusal is counted once, however often it is looked at again', async () => {
    const world = await visited((made) => {
      made.service.state.lie = instead({ address: other })
    })
    await world.settle(world.start(), [KEY], 8)
    expect(world.stalled()).toBe('VerificationFailed')
    expect(world.refusals).toEqual(['VerificationFailed'])
  })

  test('once it tells the truth, that is taken, and nobody has to mend the status', async () => {
    const world = await visited((made) => {
      made.service.state.lie = instead({ address: other })
    })
    expect(world.stalled()).toBe('VerificationFailed')
    world.service.state.lie = undefined
    await world.settle(world.start(), [KEY], 8)
    expect(world.condition('Ready')?.status).toBe('True')
    expect(world.status()?.depositData?.pubkey).toBe(world.service.stakes()[0]?.depositData.pubkey)
  })

  test('the stake of another resource, however valid, is not taken for this one', async () => {
    const world = await visited((made) => {
      made.service.state.lie = (body) => ({ ...body, externalReference: 'EthereumStake/default/another' })
    })
    expect(world.stalled()).toBe('VerificationFailed')
    assertNothingMoved(world)
  })

  test('a lie told only later changes nothing: what was verified is what is signed', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const operator = world.start()
    world.chain.state.historySyncing = true
    await world.visit(operator)
    expect(world.condition('Verified')?.status).toBe('True')
    world.service.state.lie = instead({ address: other })
    world.chain.state.historySyncing = false
    await world.settle(operator)
    world.assertMoney({ deposits: 1 })
  })

  test('a public key that others have deposited for is not paid', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const operator = world.start()
    world.chain.state.historySyncing = true
    await world.visit(operator)
    expect(world.condition('Ready')).toMatchObject({ reason: 'HistorySyncing' })
    const body = world.service.stakes()[0] as EthereumStakeBody
    world.chain.fund(other, 100n * ETH)
    world.chain.mineForeign({
      from: other,
      to: hoodi.depositContractAddress,
      data: body.unsignedTransaction.data,
      valueWei: body.unsignedTransaction.valueWei,
    })
    world.chain.state.historySyncing = false
    await world.settle(operator, [KEY], 3)
    expect(world.stalled()).toBe('PubkeyAlreadyDeposited')
    expect(world.keys.signed).toEqual([])
  })
})

describe('a service that fails: the same request again, with the same key', () => {
  const problem = (fields: Partial<StakingApiErrorFields>) =>
    new StakingApiError('failed', { kind: 'problem', outcomeUnknown: false, ...fields } as StakingApiErrorFields)
  test.each<{ given: string; error: StakingApiError; when?: 'before' | 'after'; stalled?: string }>([
    { given: '500', error: problem({ status: 500, code: 'internal-error' }) },
    { given: '502 with HTML', error: problem({ kind: 'invalid-response' }) },
    { given: 'an endless answer', error: problem({ kind: 'invalid-response', outcomeUnknown: true }), when: 'after' },
    { given: 'a time-out', error: problem({ kind: 'timeout', outcomeUnknown: true }) },
    { given: 'a time-out after it did the work', error: problem({ kind: 'timeout', outcomeUnknown: true }), when: 'after' },
    { given: '429', error: problem({ status: 429, code: 'rate-limited', retryAfterMs: 30_000 }) },
    { given: '503', error: problem({ status: 503, code: 'chain-unavailable', retryAfterMs: 5_000 }) },
    { given: '409 while it works on it', error: problem({ status: 409, code: 'idempotency-key-in-progress' }) },
    { given: '401', error: problem({ status: 401, code: 'unauthenticated' }), stalled: 'Unauthorized' },
    { given: '403', error: problem({ status: 403, code: 'forbidden' }), stalled: 'Unauthorized' },
    { given: 'a key file without a key', error: problem({ code: 'unauthenticated' }), stalled: 'Unauthorized' },
    {
      given: '409 for a reference in use',
      error: problem({ status: 409, code: 'reference-exists', existingId: 'abc' }),
      stalled: 'AlreadyStaked',
    },
    { given: '422', error: problem({ status: 422, code: 'validation-failed', rules: ['amount-too-small'] }), stalled: 'RequestRefused' },
    {
      given: '409 for another request under this key',
      error: problem({ status: 409, code: 'idempotency-key-reused' }),
      stalled: 'RequestRefused',
    },
  ])('$given', async ({ error, when = 'before', stalled = '' }) => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    let failures = 3
    const operator = world.start((point) => {
      if (point === `${when} api.createEthereumStake` && failures-- > 0) throw error
    })
    await world.visit(operator)
    expect(world.stalled()).toBe(stalled)
    expect(world.condition('Ready')?.status).not.toBe('True')
    await world.settle(operator)
    expect(world.service.stakes()).toHaveLength(1)
    expect(new Set(world.service.requests.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
    world.assertMoney({ deposits: 1 })
  })

  test('one that cannot be told the hash keeps the deposit from being sent, until it can', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    let down = true
    const operator = world.start((point) => {
      if (point === 'before api.submitEthereumStake' && down) throw problem({ status: 500, code: 'internal-error' })
    })
    await world.settle(operator, [KEY], 6)
    expect(world.chain.everSent()).toEqual([])
    expect(world.condition('Ready')?.reason).toBe('ServiceUnavailable')
    down = false
    await world.settle(operator)
    world.assertMoney({ deposits: 1 })
  })

  test('one that cannot take the report of what landed does not keep the deposit from being confirmed', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    let told = 0
    const operator = world.start((point) => {
      if (point === 'before api.submitEthereumStake' && told++ > 0) throw problem({ status: 500, code: 'internal-error' })
    })
    await world.settle(operator, [KEY], 6)
    expect(world.condition('Confirmed')?.status).toBe('True')
    expect(world.ready()).toBe(true)
    world.assertMoney({ deposits: 1 })
  })
})

test('a time-out of the broadcast after the node took the transaction leads to no second one', async () => {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  let failures = 2
  const operator = world.start((point) => {
    if (point === 'after chain.send' && failures-- > 0) throw new ChainError('unavailable', 'no answer')
  })
  await world.settle(operator)
  expect(world.chain.everSent()).toHaveLength(1)
  world.assertMoney({ deposits: 1 })
})
