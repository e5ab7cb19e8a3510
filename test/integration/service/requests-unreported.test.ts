import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { databases } from './harness.ts'
import { createPayer } from './payer.ts'
import { ETH, eventually, startTracked, startValidatorChain, type TrackedService, type ValidatorChain } from './validators.ts'

/** Exits and withdrawals that are sent to the EIP-7002 contract and reported by nobody. */
type Kind = 'exit' | 'withdrawal'
const { both, stop } = databases('unreported_requests')
let chain: ValidatorChain
beforeAll(async () => {
  chain = await startValidatorChain()
})
afterAll(async () => {
  await Promise.all([stop(), chain?.stop()])
})

describe.each(both)('a request that nobody reports (on $database)', ({ open }) => {
  let running: TrackedService
  let key: string
  beforeAll(async () => {
    running = await startTracked(await open(), chain)
    key = await running.service.key()
  })
  afterAll(() => running?.stop())
  const pathOf = (pubkey: string, kind: Kind) => `/v1/ethereum/validators/${pubkey}/${kind}-requests`
  const made = async (pubkey: string, kind: Kind, more: object = {}, as = key) => {
    const body = kind === 'exit' ? more : { amountGwei: String(2n * ETH), ...more }
    const ask = { key: as, idempotencyKey: randomBytes(8).toString('hex'), body }
    const answer = await running.service.call('POST', pathOf(pubkey, kind), ask)
    expect(answer, answer.text).toMatchObject({ status: 201 })
    return answer.body
  }
  type Made = { requestId: string; pubkey: string }
  const at = ({ requestId, pubkey }: Made, kind: Kind) => `${pathOf(pubkey, kind)}/${requestId}`
  const read = async (request: Made, kind: Kind) => (await running.service.call('GET', at(request, kind), { key })).body
  const cancel = (request: Made, kind: Kind) => running.service.call('DELETE', at(request, kind), { key })
  const report = (request: Made, kind: Kind, transactionHash: string) =>
    running.service.call('PUT', `${at(request, kind)}/submission`, { key, body: { transactionHash } })
  const payer = () => createPayer(chain.anvil)
  const final = () => chain.anvil.mine(3)
  const lost = `0x${'7'.repeat(64)}`

  test.each(['exit', 'withdrawal'] as const)('is found in the contract’s logs (%s) and followed to its end', async (kind) => {
    const request = await made(chain.fresh(), kind)
    const hash = await payer().pay(request.unsignedTransaction)
    await final()
    await eventually(() => read(request, kind), { status: 'confirmed', transaction: { hash }, consensus: { status: 'accepted' } })
    expect(running.service.logs()).toContain('a request was sent by a transaction that nobody has reported')
    expect((await report(request, kind, hash)).status, 'who reports it late is told that it is known').toBe(200)
  })

  test('is found where another hash was reported that no node shows', async () => {
    const request = await made(chain.fresh(), 'withdrawal')
    await report(request, 'withdrawal', lost)
    const hash = await payer().pay(request.unsignedTransaction)
    await final()
    await eventually(() => read(request, 'withdrawal'), { status: 'confirmed', transaction: { hash } })
  })

  test('is found after it was cancelled, and told, with who has its name now', async () => {
    const externalReference = randomBytes(8).toString('hex')
    const request = await made(chain.fresh(), 'withdrawal', { externalReference })
    expect((await cancel(request, 'withdrawal')).body.status).toBe('cancelled')
    const next = await made(request.pubkey, 'withdrawal', { externalReference, amountGwei: String(ETH) })
    const hash = await payer().pay(request.unsignedTransaction)
    await final()
    await eventually(() => read(request, 'withdrawal'), { status: 'confirmed', transaction: { hash }, consensus: { status: 'accepted' } })
    expect(running.service.logs()).toContain('a request that counted as cancelled was sent: it counts as submitted again')
    expect(running.service.logs()).toContain(`"heldBy":"${next.requestId}"`)
    expect(await read(next, 'withdrawal')).toMatchObject({ status: 'awaiting_submission' })
  })

  test('is found after its reported transaction has failed', async () => {
    const request = await made(chain.fresh(), 'exit')
    await report(request, 'exit', await payer().pay({ ...request.unsignedTransaction, valueWei: 0n }))
    await final()
    await eventually(() => read(request, 'exit'), { status: 'failed' })
    const hash = await payer().pay(request.unsignedTransaction)
    await final()
    await eventually(() => read(request, 'exit'), { status: 'confirmed', transaction: { hash }, consensus: { status: 'accepted' } })
  })

  test('is nobody’s while two may have made it: both are told, none is cancelled, and one report decides', async () => {
    const pubkey = chain.fresh()
    const [one, two] = [await made(pubkey, 'withdrawal'), await made(pubkey, 'withdrawal')]
    const hash = await payer().pay(one.unsignedTransaction)
    await final()
    const told = {
      status: 'awaiting_submission',
      consensus: { status: 'pending', reason: expect.stringContaining(`${hash}, which nobody has reported and 2 requests may have made`) },
    }
    for (const request of [one, two]) {
      await eventually(() => read(request, 'withdrawal'), told)
      expect(await cancel(request, 'withdrawal')).toMatchObject({ status: 409, body: { detail: expect.stringContaining(hash) } })
    }
    expect((await report(one, 'withdrawal', hash)).status).toBe(200)
    await eventually(() => read(one, 'withdrawal'), { status: 'confirmed', transaction: { hash } })
    await eventually(async () => ({ reasons: [(await read(two, 'withdrawal')).consensus.reason] }), { reasons: [undefined] })
    expect((await cancel(two, 'withdrawal')).status).toBe(200)
  })

  test('is each one’s where two are sent for two', async () => {
    const pubkey = chain.fresh()
    const requests = [await made(pubkey, 'withdrawal'), await made(pubkey, 'withdrawal')]
    const hashes: string[] = []
    for (const { unsignedTransaction } of requests) hashes.push(await payer().pay(unsignedTransaction))
    await final()
    const settled = await Promise.all(requests.map((request) => eventually(() => read(request, 'withdrawal'), { status: 'confirmed' })))
    expect(settled.map(({ transaction }) => transaction.hash)).toEqual(hashes)
  })

  test('is not cancelled because another account has reported its hash for a request of its own', async () => {
    const pubkey = chain.fresh()
    const mine = await made(pubkey, 'withdrawal')
    const stranger = await running.service.key({ account: 'stranger' })
    const theirs = await made(pubkey, 'withdrawal', {}, stranger)
    const hash = await payer().pay(mine.unsignedTransaction)
    const claim = { key: stranger, body: { transactionHash: hash } }
    expect((await running.service.call('PUT', `${at(theirs, 'withdrawal')}/submission`, claim)).status).toBe(200)
    expect(await cancel(mine, 'withdrawal')).toMatchObject({ status: 409, body: { detail: expect.stringContaining(hash) } })
    await report(mine, 'withdrawal', hash)
    await final()
    await eventually(() => read(mine, 'withdrawal'), { status: 'confirmed', transaction: { hash } })
  })
})
