import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { BeaconChain, WithdrawalView } from '../../../src/chains/ethereum/beacon.ts'
import type { Pubkey } from '../../../src/chains/ethereum/chain.ts'
import { databases } from './harness.ts'
import { createPayer } from './payer.ts'
import { ETH, eventually, startTracked, startValidatorChain, type TrackedService, type ValidatorChain } from './validators.ts'

const { both, stop } = databases('promised')
let chain: ValidatorChain
beforeAll(async () => {
  chain = await startValidatorChain()
})
afterAll(async () => {
  await Promise.all([stop(), chain?.stop()])
})

describe.each(both)('withdrawals of one validator on $database', ({ open }) => {
  let running: TrackedService
  let key: string
  beforeAll(async () => {
    running = await startTracked(await open(), chain)
    key = await running.service.key()
  })
  afterAll(() => running?.stop())
  const path = (pubkey: string) => `/v1/ethereum/validators/${pubkey}/withdrawal-requests`
  const ask = (pubkey: string, eth: bigint, as = key, more: object = {}) =>
    running.service.call('POST', path(pubkey), {
      key: as,
      idempotencyKey: randomBytes(8).toString('hex'),
      body: { amountGwei: String(eth * ETH), ...more },
    })
  const over = {
    status: 422,
    body: { code: 'validation-failed', errors: [{ pointer: '/body/amountGwei', code: 'amount-over-available' }] },
  }

  test('are judged together: what is promised to earlier ones is not available', async () => {
    const pubkey = chain.fresh()
    expect((await ask(pubkey, 5n)).status).toBe(201)
    const refused = await ask(pubkey, 4n)
    expect(refused).toMatchObject(over)
    expect(refused.body.detail).toContain('5000000000 gwei are promised')
    expect((await ask(pubkey, 3n)).status).toBe(201)
    expect(await ask(pubkey, 1n)).toMatchObject(over)
    // What another account asks for says nothing to this one.
    expect((await ask(pubkey, 8n, await running.service.key({ account: 'other' }))).status).toBe(201)
  })

  test('that come at once are as many as fit', async () => {
    const pubkey = chain.fresh()
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(pubkey, 2n)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(4)
    for (const one of answers.filter(({ status }) => status !== 201)) expect(one).toMatchObject(over)
  })

  test('count once when they are mined: then the beacon chain shows them', async () => {
    const pubkey = chain.fresh()
    const { body } = await ask(pubkey, 5n)
    const transactionHash = await createPayer(chain.anvil).pay(body.unsignedTransaction)
    await running.service.call('PUT', `${path(pubkey)}/${body.requestId}/submission`, { key, body: { transactionHash } })
    await eventually(async () => (await running.service.call('GET', `${path(pubkey)}/${body.requestId}`, { key })).body, {
      consensus: { status: 'accepted' },
    })
    expect((await ask(pubkey, 3n)).status).toBe(201)
    expect(await ask(pubkey, 1n)).toMatchObject(over)
  })

  test('count, too, when a beacon node that is behind does not show them yet, though they were accepted', async () => {
    const pubkey = chain.fresh()
    const old: { view?: WithdrawalView } = {}
    const before = (beacon: BeaconChain): BeaconChain => ({
      ...beacon,
      withdrawalView: async (of, at, signal) => (at === 'head' && of === pubkey && old.view) || beacon.withdrawalView(of, at, signal),
    })
    const behind = await startTracked(running.service.store, chain, { before })
    const post = (kind: 'withdrawal' | 'exit', body: object) =>
      behind.service.call('POST', `/v1/ethereum/validators/${pubkey}/${kind}-requests`, {
        ...{ key, idempotencyKey: randomBytes(8).toString('hex'), body },
      })
    try {
      const beacon = behind.service.networks.get('devnet')?.validators?.beacon
      const view = await beacon?.withdrawalView(pubkey as Pubkey, 'head', AbortSignal.timeout(10_000))
      const { body } = await ask(pubkey, 5n)
      const transactionHash = await createPayer(chain.anvil).pay(body.unsignedTransaction)
      await running.service.call('PUT', `${path(pubkey)}/${body.requestId}/submission`, { key, body: { transactionHash } })
      await eventually(async () => (await running.service.call('GET', `${path(pubkey)}/${body.requestId}`, { key })).body, {
        consensus: { status: 'accepted' },
      })
      if (view === undefined) throw new Error('there is no beacon chain')
      old.view = view
      const refused = await post('withdrawal', { amountGwei: String(4n * ETH) })
      expect(refused).toMatchObject(over)
      expect(refused.body.detail).toContain('of 8000000000 gwei that are available, 5000000000 gwei are promised')
      expect(await post('exit', {})).toMatchObject({ status: 422, body: { errors: [{ code: 'pending-withdrawals' }] } })
      expect((await post('withdrawal', { amountGwei: String(3n * ETH) })).status).toBe(201)
    } finally {
      await behind.stop()
    }
  })

  test('that are cancelled are not promised any more', async () => {
    const pubkey = chain.fresh()
    const { body } = await ask(pubkey, 8n)
    expect(await ask(pubkey, 8n)).toMatchObject(over)
    const cancelled = await running.service.call('DELETE', `${path(pubkey)}/${body.requestId}`, { key })
    expect(cancelled).toMatchObject({ status: 200, body: { status: 'cancelled' } })
    expect((await ask(pubkey, 8n)).status).toBe(201)
  })

  test('that were sent and never reported are not cancelled, and others alike are', async () => {
    const pubkey = chain.fresh()
    const [{ body: sent }, { body: other }] = [await ask(pubkey, 2n), await ask(pubkey, 2n)]
    const cancel = ({ requestId }: { requestId: string }) => running.service.call('DELETE', `${path(pubkey)}/${requestId}`, { key })
    const transactionHash = await createPayer(chain.anvil).pay(sent.unsignedTransaction)
    for (const one of [sent, other])
      expect(await cancel(one)).toMatchObject({
        status: 409,
        body: { code: 'invalid-state', detail: expect.stringContaining(`${transactionHash}, which nobody has reported`) },
      })
    await running.service.call('PUT', `${path(pubkey)}/${sent.requestId}/submission`, { key, body: { transactionHash } })
    expect(await cancel(other)).toMatchObject({ status: 200, body: { status: 'cancelled' } })
    expect(await cancel(sent)).toMatchObject({ status: 409 })
  })

  test('that are cancelled, and sent all the same, are seen when their hash is told, and count again', async () => {
    const pubkey = chain.fresh()
    const externalReference = randomBytes(8).toString('hex')
    const { body } = await ask(pubkey, 5n, key, { externalReference })
    const one = `${path(pubkey)}/${body.requestId}`
    const report = (transactionHash: string) => running.service.call('PUT', `${one}/submission`, { key, body: { transactionHash } })
    expect((await running.service.call('DELETE', one, { key })).body.status).toBe('cancelled')
    const successor = await ask(pubkey, 1n, key, { externalReference })
    expect(successor.status).toBe(201)
    const transactionHash = await createPayer(chain.anvil).pay(body.unsignedTransaction)
    for (const hash of [`0x${'7'.repeat(64)}`, transactionHash]) {
      const refused = await report(hash)
      expect([200, 409]).toContain(refused.status)
      if (refused.status === 409)
        expect(refused.body).toMatchObject({ code: 'invalid-state', detail: expect.stringContaining('cancelled') })
    }
    await eventually(async () => (await running.service.call('GET', one, { key })).body, {
      ...{ status: 'submitted', transaction: { hash: transactionHash }, consensus: { status: 'accepted' } },
    })
    expect(running.service.logs()).toContain('a request that counted as cancelled was sent')
    expect(running.service.logs()).toContain(`"heldBy":"${successor.body.requestId}"`)
    expect((await report(transactionHash)).status).toBe(200)
    expect(await ask(pubkey, 4n)).toMatchObject(over)
  })

  test('keep an exit from being made until they are paid or cancelled: the consensus layer would drop it', async () => {
    const pubkey = chain.fresh()
    const exits = `/v1/ethereum/validators/${pubkey}/exit-requests`
    const exit = (as = key) => running.service.call('POST', exits, { key: as, idempotencyKey: randomBytes(8).toString('hex') })
    const pending = {
      status: 422,
      body: { code: 'validation-failed', errors: [{ pointer: '/params/pubkey', code: 'pending-withdrawals' }] },
    }
    const [{ body: one }, { body: other }] = [await ask(pubkey, 2n), await ask(pubkey, 3n)]
    const refused = await exit()
    expect(refused).toMatchObject(pending)
    expect(refused.body.detail).toContain(`5000000000 gwei are promised to withdrawal request ${one.requestId} and 1 more`)
    // What another account asks for says nothing to this one.
    expect((await exit(await running.service.key({ account: 'other' }))).status).toBe(201)
    for (const { requestId } of [one, other])
      expect((await running.service.call('DELETE', `${path(pubkey)}/${requestId}`, { key })).status).toBe(200)
    expect((await exit()).status).toBe(201)
  })

  test('are not made beside an exit that is on its way, and are beside one that was not sent', async () => {
    const pubkey = chain.fresh()
    const exits = `/v1/ethereum/validators/${pubkey}/exit-requests`
    const { body } = await running.service.call('POST', exits, { key, idempotencyKey: randomBytes(8).toString('hex') })
    expect((await ask(pubkey, 2n)).status).toBe(201)
    const transactionHash = `0x${randomBytes(32).toString('hex')}`
    await running.service.call('PUT', `${exits}/${body.requestId}/submission`, { key, body: { transactionHash } })
    const refused = await ask(pubkey, 2n)
    expect(refused).toMatchObject({ status: 422, body: { errors: [{ pointer: '/params/pubkey', code: 'already-exiting' }] } })
    expect(refused.body.detail).toContain(body.requestId)
  })

  test.each(['withdrawal', 'exit'] as const)('a request for an %s whose record was lost is made once', async (kind) => {
    const requests = `/v1/ethereum/validators/${chain.fresh()}/${kind}-requests`
    const post = (amountGwei = String(8n * ETH)) =>
      running.service.call('POST', requests, {
        ...{ key, idempotencyKey: `lost ${requests}` },
        body: { externalReference: requests.slice(-80), ...(kind === 'exit' ? {} : { amountGwei }) },
      })
    const first = await post()
    expect(first.status).toBe(201)
    await running.service.store.db.deleteFrom('idempotency_keys').where('key', '=', `lost ${requests}`).execute()
    const again = await post()
    expect(again).toMatchObject({ status: 201, body: { requestId: first.body.requestId } })
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect((await running.service.call('GET', requests, { key })).body.items).toHaveLength(1)
    if (kind === 'exit') return
    await running.service.store.db.deleteFrom('idempotency_keys').where('key', '=', `lost ${requests}`).execute()
    expect(await post('1')).toMatchObject({ status: 409, body: { code: 'idempotency-key-reused' } })
  })

  const weekAgo = () => new Date(Date.now() - 8 * 24 * 3_600_000)
  const write = (id: string, columns: object) =>
    running.service.store.db.updateTable('ethereum_requests').set(columns).where('id', '=', id).execute()

  test.each(['that nobody has submitted', 'whose hash no node shows'])('%s for a week are forgotten', async (which) => {
    const pubkey = chain.fresh()
    const { body } = await ask(pubkey, 8n)
    if (which.includes('hash')) {
      const transactionHash = `0x${randomBytes(32).toString('hex')}`
      await running.service.call('PUT', `${path(pubkey)}/${body.requestId}/submission`, { key, body: { transactionHash } })
    }
    expect(await ask(pubkey, 8n)).toMatchObject(over)
    await write(body.requestId, { created_at: weekAgo() })
    expect((await ask(pubkey, 8n)).status).toBe(201)
  })

  test.each([
    { of: 'in a block of a moment ago, which no pass has judged', counts: true, block: -1n, turn: undefined },
    { of: 'in a block of long ago, which no pass could judge', counts: false, block: -100n, turn: undefined },
    { of: "in the contract's queue", counts: true, block: -100n, turn: 5n },
    { of: "in the contract's queue, whose turn was a moment ago", counts: true, block: -100n, turn: -1n },
    { of: "in the contract's queue, whose turn was long ago", counts: false, block: -200n, turn: -100n },
  ])('that are $of: promised: $counts', async ({ counts, block, turn }) => {
    const pubkey = chain.fresh()
    const { body } = await ask(pubkey, 8n)
    const latest = (await running.service.networks.get('devnet')?.chain.head(AbortSignal.timeout(10_000)))?.latest ?? 0n
    await write(body.requestId, {
      ...{ status: 'submitted', hash: `0x${'5'.repeat(64)}`, block_number: latest + block, block_hash: `0x${'6'.repeat(64)}` },
      ...(turn === undefined ? {} : { queue_position: 7n, queue_turn: latest + turn }),
      // The tracker has asked for it again and again, as the beacon node is behind; and it does not come by now.
      ...{ created_at: weekAgo(), checked_head: null, check_at: new Date(Date.now() + 3_600_000) },
    })
    const again = await ask(pubkey, 8n)
    if (counts) expect(again).toMatchObject(over)
    else expect(again.status).toBe(201)
  })
})
