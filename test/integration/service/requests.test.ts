import { randomBytes } from 'node:crypto'
import { getAddress, keccak256 } from 'viem'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { feeAtExcess, withdrawalRequestContract } from '../../../src/chains/ethereum/requests.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { exitOf, withdrawalOf } from '../../chains/beacon/sender.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import type { Ask } from './harness.ts'
import { createPayer } from './payer.ts'
import { ETH, eventually, startTracked, startValidatorChain, type TrackedService, type ValidatorChain } from './validators.ts'

/** Exits and withdrawals over HTTP, on a chain with the real EIP-7002 contract and the beacon simulator behind it. */
type Hex = `0x${string}`
type Kind = 'exit' | 'withdrawal'
const kinds: readonly Kind[] = ['exit', 'withdrawal']

let chain: ValidatorChain
let store: Store
let running: TrackedService
let key: string
let other: string

beforeAll(async () => {
  chain = await startValidatorChain()
  store = await openStore(await memoryDatabase())
  running = await startTracked(store, chain)
  key = await running.service.key()
  other = await running.service.key({ account: 'other' })
})
afterAll(async () => {
  await running?.stop()
  await store?.close()
  await chain?.stop()
})

const fresh = () => randomBytes(8).toString('hex')
const pathOf = (pubkey: string, kind: Kind) => `/v1/ethereum/validators/${pubkey}/${kind}-requests`
const call = (method: string, path: string, ask: Ask = {}) => running.service.call(method, path, { key, ...ask })
const askFor = (pubkey: string, kind: Kind, body: object = {}, ask: Ask = {}) =>
  call('POST', pathOf(pubkey, kind), {
    idempotencyKey: fresh(),
    body: kind === 'exit' ? body : { amountGwei: String(2n * ETH), ...body },
    ...ask,
  })
async function made(pubkey: string, kind: Kind, body: object = {}) {
  const answer = await askFor(pubkey, kind, body)
  expect(answer, answer.text).toMatchObject({ status: 201 })
  return answer.body
}
const read = async (request: { requestId: string; pubkey: string }, kind: Kind) =>
  (await call('GET', `${pathOf(request.pubkey, kind)}/${request.requestId}`)).body
const report = (request: { requestId: string; pubkey: string }, kind: Kind, transactionHash: string, ask: Ask = {}) =>
  call('PUT', `${pathOf(request.pubkey, kind)}/${request.requestId}/submission`, { body: { transactionHash }, ...ask })
const capacity = async (pubkey: string) => (await call('GET', `/v1/ethereum/validators/${pubkey}/withdrawal-capacity`)).body
const send = (request: { unsignedTransaction: { to: Hex; data: Hex; valueWei: string } }, account = 0) =>
  createPayer(chain.anvil, account).pay(request.unsignedTransaction)
const final = () => chain.anvil.mine(3)
const codesOf = (answer: { body: { errors?: { code: string }[] } }) => answer.body.errors?.map(({ code }) => code)

describe('a request', () => {
  test.each(kinds)('for an %s is the very call of EIP-7002, from the withdrawal address, with the fee and a little more', async (kind) => {
    const pubkey = chain.fresh()
    await chain.simulator.setRequestExcess(50n)
    const request = await made(pubkey, kind)
    await chain.simulator.setRequestExcess(0n)
    const amount = kind === 'exit' ? 0n : 2n * ETH
    expect(request).toMatchObject({
      pubkey,
      status: 'awaiting_submission',
      unsignedTransaction: {
        chainId: chain.anvil.chainId,
        from: getAddress(chain.account(0).address),
        to: withdrawalRequestContract,
        data: `${pubkey}${amount.toString(16).padStart(16, '0')}`,
        valueWei: String(feeAtExcess(50n) + 100n),
      },
      fee: { feeWei: String(feeAtExcess(50n)) },
      transaction: {},
      consensus: { status: 'pending' },
    })
    expect(request.amountGwei).toBe(kind === 'exit' ? undefined : String(amount))
    expect(await read(request, kind)).toEqual(request)
  })

  test('for an exit needs no body, and takes none but an external reference', async () => {
    const pubkey = chain.fresh()
    expect((await call('POST', pathOf(pubkey, 'exit'), { idempotencyKey: fresh() })).status).toBe(201)
    expect((await askFor(pubkey, 'exit', { amountGwei: '1' })).status).toBe(400)
  })

  test.each(kinds)('for an %s that is repeated under its Idempotency-Key is one', async (kind) => {
    const pubkey = chain.fresh()
    const idempotencyKey = fresh()
    const [one, two] = [await askFor(pubkey, kind, {}, { idempotencyKey }), await askFor(pubkey, kind, {}, { idempotencyKey })]
    expect(two.text).toBe(one.text)
    expect(two.headers.get('idempotency-replayed')).toBe('true')
    expect(await askFor(pubkey, kind, { externalReference: 'x' }, { idempotencyKey })).toMatchObject({
      status: 409,
      body: { code: 'idempotency-key-reused' },
    })
  })

  test('holds its external reference until it is cancelled', async () => {
    const pubkey = chain.fresh()
    const externalReference = fresh()
    const first = await made(pubkey, 'exit', { externalReference })
    expect(first.externalReference).toBe(externalReference)
    for (const kind of kinds) {
      const second = await askFor(pubkey, kind, { externalReference })
      expect(second).toMatchObject({ status: 409, body: { code: 'reference-exists', existingId: first.requestId } })
    }
    expect((await call('DELETE', `${pathOf(pubkey, 'exit')}/${first.requestId}`)).status).toBe(200)
    await made(pubkey, 'withdrawal', { externalReference })
  })

  test('is listed by validator and kind, the newest first, page by page', async () => {
    const pubkey = chain.fresh()
    const ids: string[] = []
    for (const externalReference of ['a', 'b', 'c'].map((name) => `${name}-${fresh()}`)) {
      ids.unshift((await made(pubkey, 'withdrawal', { externalReference })).requestId)
    }
    const listed = pathOf(pubkey, 'withdrawal')
    const page = (await call('GET', `${listed}?limit=2`)).body
    expect(page.items.map(({ requestId }: { requestId: string }) => requestId)).toEqual(ids.slice(0, 2))
    const next = (await call('GET', `${listed}?limit=2&cursor=${page.nextCursor}`)).body
    expect(next.items.map(({ requestId }: { requestId: string }) => requestId)).toEqual(ids.slice(2))
    expect(next.nextCursor).toBeUndefined()
    expect((await call('GET', pathOf(pubkey, 'exit'))).body).toEqual({ items: [] })
    expect((await running.service.call('GET', listed, { key: other })).body).toEqual({ items: [] })
    expect((await call('GET', `${listed}?externalReference=none`)).body.items).toEqual([])
  })

  test.each(kinds)('for an %s of another account is not there', async (kind) => {
    const request = await made(chain.fresh(), kind)
    const path = `${pathOf(request.pubkey, kind)}/${request.requestId}`
    expect((await running.service.call('GET', path, { key: other })).status).toBe(404)
    const body = { transactionHash: `0x${'1'.repeat(64)}` }
    expect((await running.service.call('PUT', `${path}/submission`, { key: other, body })).status).toBe(404)
    if (kind === 'exit') expect((await running.service.call('DELETE', path, { key: other })).status).toBe(404)
    expect((await call('GET', `${pathOf(chain.oldStyle, kind)}/${request.requestId}`)).status).toBe(404)
  })
})

describe('what is malformed is refused before anybody is asked', () => {
  test.each([
    { why: 'too short', pubkey: `0x${'ab'.repeat(47)}` },
    { why: 'too long', pubkey: `0x${'ab'.repeat(49)}` },
    { why: 'not hex', pubkey: `0x${'zz'.repeat(48)}` },
    { why: 'not on the curve', pubkey: `0x${'ab'.repeat(48)}` },
    { why: 'the point at infinity', pubkey: `0xc0${'00'.repeat(47)}` },
  ])('a public key that is $why', async ({ pubkey }) => {
    const malformed = { status: 400, body: { code: 'invalid-request', errors: [{ pointer: '/params/pubkey' }] } }
    for (const kind of kinds) {
      expect(await askFor(pubkey, kind)).toMatchObject(malformed)
      expect(await call('GET', pathOf(pubkey, kind))).toMatchObject(malformed)
    }
    expect(await call('GET', `/v1/ethereum/validators/${pubkey}/withdrawal-capacity`)).toMatchObject(malformed)
  })

  test.each(['0', '', '-1', '+1', '1e9', ' 1', '1 ', '1.5', '01', '0x1', String(2n ** 64n), 1, null])(
    'an amount of %j',
    async (amountGwei) => {
      expect(await askFor(chain.oldStyle, 'withdrawal', { amountGwei })).toMatchObject({
        status: 400,
        body: { code: 'invalid-request', errors: [{ pointer: '/body/amountGwei' }] },
      })
    },
  )
})

describe('the rules of the consensus layer', () => {
  const unknown = `0x${'97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb'}`

  test('an unknown validator is refused, and has no capacity', async () => {
    for (const kind of kinds) expect(codesOf(await askFor(unknown, kind))).toEqual(['unknown-validator'])
    expect((await call('GET', `/v1/ethereum/validators/${unknown}/withdrawal-capacity`)).status).toBe(404)
  })

  test('credentials that no request can move are refused', async () => {
    for (const kind of kinds) expect(codesOf(await askFor(chain.locked, kind))).toContain('credentials-not-execution')
    expect(await capacity(chain.locked)).toMatchObject({ eligible: false, credentialsType: '0x00', availableGwei: '0' })
  })

  test('an 0x01 validator may exit, and its excess is paid without a request', async () => {
    const refused = await askFor(chain.oldStyle, 'withdrawal', { amountGwei: '1' })
    expect(refused).toMatchObject({ status: 422, body: { code: 'validation-failed' } })
    expect(codesOf(refused)).toEqual(['credentials-not-compounding'])
    expect(await capacity(chain.oldStyle)).toMatchObject({ eligible: false, credentialsType: '0x01', availableGwei: '0' })
    await made(chain.oldStyle, 'exit')
  })

  test('more than is available is refused with the numbers, and capacity tells them', async () => {
    const pubkey = chain.fresh()
    const refused = await askFor(pubkey, 'withdrawal', { amountGwei: String(8n * ETH + 1n) })
    expect(refused).toMatchObject({ status: 422, body: { errors: [{ pointer: '/body/amountGwei', code: 'amount-over-available' }] } })
    for (const number of ['8000000001', '8000000000', '40000000000']) expect(refused.body.detail).toContain(number)
    expect(await capacity(pubkey)).toMatchObject({
      pubkey,
      eligible: true,
      reasons: [],
      credentialsType: '0x02',
      validatorStatus: 'active_ongoing',
      balanceGwei: String(40n * ETH),
      effectiveBalanceGwei: String(40n * ETH),
      pendingWithdrawalsGwei: '0',
      availableGwei: String(8n * ETH),
      earliestEligibleEpoch: chain.simulator.spec.SHARD_COMMITTEE_PERIOD,
    })
    await made(pubkey, 'withdrawal', { amountGwei: String(8n * ETH) })
  })

  test('too low an effective balance, and nothing over 32 ETH', async () => {
    const [low, even] = [chain.fresh(), chain.fresh()]
    await chain.simulator.setBalance(low, 31n * ETH)
    await chain.simulator.setBalance(even, 32n * ETH)
    await chain.simulator.advanceEpochs(2)
    expect(codesOf(await askFor(low, 'withdrawal'))).toEqual(['effective-balance-too-low'])
    expect(codesOf(await askFor(even, 'withdrawal'))).toEqual(['nothing-available'])
  })

  test('a slashed and an exiting validator are refused', async () => {
    const [slashed, exiting] = [chain.fresh(), chain.fresh()]
    await chain.simulator.slash(slashed)
    await chain.sender.request(chain.account(0), exitOf(exiting))
    for (const kind of kinds) {
      expect(codesOf(await askFor(slashed, kind))).toContain('slashed')
      expect(codesOf(await askFor(exiting, kind))).toContain('already-exiting')
    }
    expect(await capacity(exiting)).toMatchObject({ eligible: false, validatorStatus: 'active_exiting' })
  })

  test('an exit waits for pending withdrawals', async () => {
    const pubkey = chain.fresh()
    await chain.sender.request(chain.account(0), withdrawalOf(pubkey, 3n * ETH))
    const refused = await askFor(pubkey, 'exit')
    expect(codesOf(refused)).toEqual(['pending-withdrawals'])
    expect(refused.body.detail).toMatch(/3 ETH .*epoch \d+/)
    expect(await capacity(pubkey)).toMatchObject({ pendingWithdrawalsGwei: String(3n * ETH), availableGwei: String(5n * ETH) })
  })
})

describe('what became of a request', () => {
  test.each(kinds)('an %s is submitted, confirmed and accepted', async (kind) => {
    const request = await made(chain.fresh(), kind)
    const hash = await send(request)
    expect((await report(request, kind, hash)).body).toMatchObject({ status: 'submitted', transaction: { hash } })
    // Told soon after the block, before it is final.
    const early = await eventually(() => read(request, kind), { status: 'submitted', consensus: { status: 'accepted' } })
    expect(early.consensus.reason).toMatch(kind === 'exit' ? /exits in epoch \d+/ : /2000000000 gwei can be paid from epoch \d+/)
    await final()
    await eventually(() => read(request, kind), { status: 'confirmed', transaction: { hash }, consensus: { status: 'accepted' } })
    // Reported again when it is over, the same.
    expect(await report(request, kind, hash)).toMatchObject({ status: 200, body: { status: 'confirmed' } })
    expect(await report(request, kind, `0x${'2'.repeat(64)}`)).toMatchObject({ status: 409, body: { code: 'already-submitted' } })
  })

  test('a request from another sender is mined, and dropped with the reason', async () => {
    const request = await made(chain.fresh(), 'exit')
    const hash = await send(request, 1)
    await report(request, 'exit', hash)
    await final()
    const dropped = await eventually(() => read(request, 'exit'), { status: 'confirmed', consensus: { status: 'dropped' } })
    expect(dropped.consensus.reason).toContain('sender-not-withdrawal-address')
  })

  test('a request that the state no longer allows is dropped with the reason', async () => {
    const pubkey = chain.fresh()
    // The other way round it would not be made.
    const [exit, withdrawal] = [await made(pubkey, 'exit'), await made(pubkey, 'withdrawal')]
    await report(withdrawal, 'withdrawal', await send(withdrawal))
    await report(exit, 'exit', await send(exit))
    await final()
    await eventually(() => read(withdrawal, 'withdrawal'), { status: 'confirmed', consensus: { status: 'accepted' } })
    const dropped = await eventually(() => read(exit, 'exit'), { status: 'confirmed', consensus: { status: 'dropped' } })
    expect(dropped.consensus.reason).toContain('pending-withdrawals')
  })

  test('a transaction of something else fails the request, and frees its reference', async () => {
    const externalReference = fresh()
    const request = await made(chain.fresh(), 'exit', { externalReference })
    const hash = await createPayer(chain.anvil).pay({ to: chain.account(2).address, data: '0x', valueWei: 1n })
    await report(request, 'exit', hash)
    await final()
    const failed = await eventually(() => read(request, 'exit'), { status: 'failed', consensus: { status: 'pending' } })
    expect(failed.transaction.failureReason).toContain('makes no request')
    await made(request.pubkey, 'exit', { externalReference })
  })

  test('a block that is taken back takes its judgement with it', async () => {
    const request = await made(chain.fresh(), 'exit')
    const payer = createPayer(chain.anvil)
    const raw = await payer.sign(request.unsignedTransaction, await payer.nonce())
    await report(request, 'exit', await payer.broadcast(raw))
    await eventually(() => read(request, 'exit'), { status: 'submitted', consensus: { status: 'accepted' } })
    await chain.anvil.reorg(1)
    await chain.anvil.mine()
    const back = await eventually(() => read(request, 'exit'), { status: 'submitted', consensus: { status: 'pending' } })
    expect(back.transaction.blockNumber).toBeUndefined()
    await payer.broadcast(raw)
    await final()
    await eventually(() => read(request, 'exit'), { status: 'confirmed', consensus: { status: 'accepted' } })
  })

  test('a request that is replaced with a higher fee is followed to the one that lands', async () => {
    const request = await made(chain.fresh(), 'withdrawal')
    const payer = createPayer(chain.anvil)
    await chain.anvil.setAutomine(false)
    try {
      const nonce = await payer.nonce()
      const [slow, fast] = [
        await payer.pay(request.unsignedTransaction, nonce, 20),
        await payer.sign(request.unsignedTransaction, nonce, 40),
      ]
      expect((await report(request, 'withdrawal', slow)).status).toBe(200)
      const hash = await payer.broadcast(fast)
      expect(await report(request, 'withdrawal', hash)).toMatchObject({ status: 200, body: { transaction: { hash } } })
      await final()
      await eventually(() => read(request, 'withdrawal'), { status: 'confirmed', transaction: { hash }, consensus: { status: 'accepted' } })
    } finally {
      await chain.anvil.setAutomine(true)
    }
  })

  test('a request that paid too little is reverted, and failed', async () => {
    const request = await made(chain.fresh(), 'exit')
    const hash = await createPayer(chain.anvil).pay({ ...request.unsignedTransaction, valueWei: 0n })
    await report(request, 'exit', hash)
    await final()
    await eventually(() => read(request, 'exit'), { status: 'failed', transaction: { failureReason: 'the transaction was reverted' } })
  })
})

describe('submission', () => {
  test('of a withdrawal is 202 with Retry-After until the chain shows the hash, under one Idempotency-Key', async () => {
    const request = await made(chain.fresh(), 'withdrawal')
    const payer = createPayer(chain.anvil)
    const raw = await payer.sign(request.unsignedTransaction, await payer.nonce())
    const ask = { idempotencyKey: fresh() }
    const early = await report(request, 'withdrawal', keccak256(raw), ask)
    expect(early).toMatchObject({ status: 202, body: { status: 'submitted', transaction: { hash: keccak256(raw) } } })
    expect(early.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    expect((await report(request, 'withdrawal', keccak256(raw), ask)).status).toBe(202)
    await payer.broadcast(raw)
    expect((await report(request, 'withdrawal', keccak256(raw), ask)).status).toBe(200)
  })

  test.each(kinds)('of an %s before it is sent is recorded, and a further hash must have the same sender and nonce', async (kind) => {
    const request = await made(chain.fresh(), kind)
    const payer = createPayer(chain.anvil)
    const nonce = await payer.nonce()
    const [slow, fast] = [
      await payer.sign(request.unsignedTransaction, nonce, 20),
      await payer.sign(request.unsignedTransaction, nonce, 40),
    ]
    const tell = (raw: Hex, more: object) => {
      const body = { transactionHash: keccak256(raw), ...more }
      return call('PUT', `${pathOf(request.pubkey, kind)}/${request.requestId}/submission`, { body })
    }
    const sentBy = { from: payer.address, nonce }
    const early = kind === 'exit' ? 200 : 202
    expect(await tell(slow, sentBy)).toMatchObject({ status: early, body: { status: 'submitted', transaction: { hash: keccak256(slow) } } })
    expect((await read(request, kind)).transaction).toEqual({ hash: keccak256(slow) })
    expect(await tell(fast, { ...sentBy, nonce: nonce + 1 })).toMatchObject({ status: 409, body: { code: 'already-submitted' } })
    expect((await tell(fast, sentBy)).status).toBe(early)
    // The first one lands all the same.
    await payer.broadcast(slow)
    await final()
    await eventually(() => read(request, kind), { status: 'confirmed', transaction: { hash: keccak256(slow) } })
  })

  test('of a cancel closes its nonce, and the next attempt may have another one', async () => {
    const request = await made(chain.fresh(), 'withdrawal')
    const payer = createPayer(chain.anvil)
    const nonce = await payer.nonce()
    const [payment, again] = [
      await payer.sign(request.unsignedTransaction, nonce),
      await payer.sign(request.unsignedTransaction, nonce + 1),
    ]
    const cancel = await payer.sign({ to: payer.address, data: '0x', valueWei: 0n }, nonce, 40)
    const tell = (raw: Hex, at: number) => {
      const body = { transactionHash: keccak256(raw), from: payer.address, nonce: at }
      return call('PUT', `${pathOf(request.pubkey, 'withdrawal')}/${request.requestId}/submission`, { body })
    }
    await tell(payment, nonce)
    await tell(cancel, nonce)
    await payer.broadcast(cancel)
    expect(await tell(again, nonce + 1)).toMatchObject({ status: 409, body: { code: 'already-submitted' } })
    await final()
    await eventually(() => read(request, 'withdrawal'), { status: 'failed', transaction: { hash: keccak256(cancel) } })
    expect(await tell(again, nonce + 1)).toMatchObject({
      status: 202,
      body: { status: 'submitted', transaction: { hash: keccak256(again) } },
    })
    await payer.broadcast(again)
    await final()
    const landed = { status: 'confirmed', transaction: { hash: keccak256(again) }, consensus: { status: 'accepted' } }
    await eventually(() => read(request, 'withdrawal'), landed)
  })

  test('of an exit is 200 at once', async () => {
    const request = await made(chain.fresh(), 'exit')
    const hash = `0x${'3'.repeat(64)}`
    expect(await report(request, 'exit', hash)).toMatchObject({ status: 200, body: { status: 'submitted', transaction: { hash } } })
    expect(await report(request, 'exit', 'none')).toMatchObject({ status: 400 })
  })

  test('of a second transaction beside a mined one is refused', async () => {
    const request = await made(chain.fresh(), 'withdrawal')
    await report(request, 'withdrawal', await send(request))
    await eventually(() => read(request, 'withdrawal'), { consensus: { status: 'accepted' } })
    expect(await report(request, 'withdrawal', await send(request))).toMatchObject({ status: 409, body: { code: 'already-submitted' } })
  })
})

describe.each(kinds)('cancelling an %s', (kind) => {
  const cancel = (request: { requestId: string; pubkey: string }) => call('DELETE', `${pathOf(request.pubkey, kind)}/${request.requestId}`)

  test('twice is cancelled twice, and takes no hash afterwards', async () => {
    const request = await made(chain.fresh(), kind)
    const [one, two] = [await cancel(request), await cancel(request)]
    expect(one).toMatchObject({ status: 200, body: { requestId: request.requestId, status: 'cancelled' } })
    expect(two.body).toEqual(one.body)
    expect(await report(request, kind, `0x${'4'.repeat(64)}`)).toMatchObject({ status: 409, body: { code: 'invalid-state' } })
    expect(await cancel({ ...request, requestId: 'f'.repeat(32) })).toMatchObject({ status: 404 })
  })

  test('and submitting it at once ends in one of both', async () => {
    const requests = [await made(chain.fresh(), kind), await made(chain.fresh(), kind), await made(chain.fresh(), kind)]
    for (const request of requests) {
      const [cancelled, submitted] = await Promise.all([cancel(request), report(request, kind, `0x${'6'.repeat(64)}`)])
      // 202: recorded, and not visible yet.
      const taken = kind === 'withdrawal' ? 202 : 200
      expect([
        [200, 409],
        [409, taken],
      ]).toContainEqual([cancelled.status, submitted.status])
      expect((await read(request, kind)).status).toBe(cancelled.status === 200 ? 'cancelled' : 'submitted')
    }
  })

  test('is refused once it is submitted', async () => {
    const request = await made(chain.fresh(), kind)
    await report(request, kind, `0x${'5'.repeat(64)}`)
    expect(await cancel(request)).toMatchObject({ status: 409, body: { code: 'invalid-state' } })
    expect(await read(request, kind)).toMatchObject({ status: 'submitted' })
  })
})
