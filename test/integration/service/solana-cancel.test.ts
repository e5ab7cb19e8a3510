import { randomBytes } from 'node:crypto'
import { PublicKey, SystemProgram, Transaction } from '@solana/web3.js'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { decodeMessage, joinTransaction } from '../../../src/chains/solana/message.ts'
import { buildDeactivationMessage, buildStakeMessage, buildWithdrawalMessage, computeUnits } from '../../../src/chains/solana/stake.ts'
import { lamports } from '../../../src/lib/amounts.ts'
import { Secret } from '../../../src/lib/secret.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { type Body, type SolanaService, sol, stakes, startSolanaService } from './solana-harness.ts'

/** Solana stakes that are cancelled before they are paid. Blocks are made by the test alone. */
const stores = new Map<string, Store>()
let postgres: Postgres | undefined
let solana: SolanaService | undefined

beforeAll(async () => {
  postgres = await startPostgres()
  stores.set('PGlite', await openStore(await memoryDatabase()))
  const url = new Secret(await postgres.createDatabase('solana_cancel'))
  stores.set('PostgreSQL', await openStore({ kind: 'postgres', url, poolSize: 5 }))
})
afterEach(() => solana?.close())
afterAll(async () => {
  for (const store of stores.values()) await store.close()
  await postgres?.stop()
})

const refused = { status: 409, body: { code: 'invalid-state' } }
const pathOf = ({ stakeId }: Body): string => `${stakes}/${stakeId}`

describe.each([{ database: 'PGlite' }, { database: 'PostgreSQL' }])('on $database, a Solana stake that was not paid', ({ database }) => {
  async function start() {
    const store = stores.get(database)
    if (store === undefined) throw new Error(`${database} was not opened`)
    solana = await startSolanaService(store)
    const { service, key } = solana
    const cancel = (path: string, by = key) => service.call('DELETE', path, { key: by })
    const externalReference = `SolanaStake/a/${randomBytes(4).toString('hex')}`
    return { ...solana, store, cancel, externalReference }
  }
  /** The payer makes the stake account by a transaction of its own make. */
  function payBesides({ cluster, payer, withdrawer }: SolanaService, stake: Body, recentBlockhash: string): void {
    const message = buildStakeMessage({
      feePayer: payer.address,
      recentBlockhash,
      computeUnitLimit: computeUnits.stake,
      computeUnitPriceMicroLamports: 0n,
      seed: stake.stakeId,
      stakeAuthority: payer.address,
      withdrawAuthority: withdrawer.address,
      voteAccount: stake.voteAccount,
      amount: lamports(BigInt(stake.amountLamports)),
      prefunded: false,
    })
    cluster.ledger.submit(joinTransaction(message, new Map([[payer.address, payer.sign(message)]])), { kind: 'land' })
    cluster.settle()
  }

  test('can be cancelled, which frees its name, and nothing is handed out for it any more', async () => {
    const { service, create, cancel, approve, post, put, get, externalReference } = await start()
    const stake = (await create({ externalReference })).body
    const path = pathOf(stake)
    const other = await service.key({ account: randomBytes(8).toString('hex') })
    expect((await cancel(path, other)).status).toBe(404)
    expect((await get(path)).body.cancelledAt).toBeUndefined()

    const first = await cancel(path)
    expect(first).toMatchObject({ status: 200, body: { stakeId: stake.stakeId, cancelledAt: expect.any(String) } })
    expect(first.body.challenge).toBeUndefined()
    expect((await cancel(path)).body).toEqual(first.body)
    expect((await get(path)).body.cancelledAt).toBe(first.body.cancelledAt)
    expect(await post(`${path}/stake-transactions`, approve(stake.challenge))).toMatchObject(refused)
    expect(await put(`${path}/stake-transaction-challenge`, {})).toMatchObject(refused)

    const next = await create({ externalReference, amountLamports: String(6n * sol) })
    expect(next.status, next.text).toBe(201)
    expect(next.body.stakeAccount).not.toBe(stake.stakeAccount)
    // Cancelled once more, the older one doesn't free the name of the newer.
    await cancel(path)
    expect(await create({ externalReference })).toMatchObject({ status: 409, body: { existingId: next.body.stakeId } })
  })

  test('can be cancelled once what was handed out has expired on every node, and is not renewed then', async () => {
    const { withTransaction, cancel, cluster, post, create, externalReference } = await start()
    const { path, transaction } = await withTransaction({ externalReference })
    const refresh = () => post(`${path}/transactions/${transaction.txId}/refresh`)
    const early = await cancel(path)
    expect(early).toMatchObject(refused)
    expect(Number(early.headers.get('retry-after'))).toBeGreaterThan(0)
    cluster.produce(152)
    // Beyond its last valid height, but not at a finalized one.
    expect((await cancel(path)).headers.get('retry-after')).not.toBeNull()
    cluster.settle()
    const renewed = await refresh()
    expect(renewed.status).toBe(200)
    expect(await cancel(path), 'made anew').toMatchObject(refused)
    cluster.produce(160)
    expect(await cancel(path)).toMatchObject({ status: 200, body: { transactions: [{ status: 'expired' }] } })
    expect(await refresh()).toMatchObject(refused)
    expect((await create({ externalReference })).status).toBe(201)
  })

  test('can not be cancelled any more once a transaction of it is in a block, reported or not', async () => {
    const { withTransaction, cancel, broadcast, cluster, get } = await start()
    const { path, transaction } = await withTransaction()
    broadcast(transaction)
    cluster.produce()
    expect(await cancel(path), 'in a block').toMatchObject(refused)
    cluster.produce(170)
    const paid = await cancel(path)
    expect(paid).toMatchObject({ ...refused, body: { detail: expect.stringContaining('was paid') } })
    expect(paid.headers.get('retry-after')).toBeNull()
    expect((await get(path)).body.cancelledAt).toBeUndefined()
  })

  test('and is paid after it was cancelled, is seen and told, with who has its name now, and can be got out', async () => {
    const given = await start()
    const { service, create, cancel, withTransaction, store, post, land, get, externalReference } = given
    const stake = (await create({ externalReference })).body
    const { account } = await store.db
      .selectFrom('solana_stakes')
      .select('account')
      .where('id', '=', stake.stakeId)
      .executeTakeFirstOrThrow()
    const endpoint = { id: randomBytes(8).toString('hex'), account, url: 'https://hooks.example/in', created_at: new Date() }
    await store.db.insertInto('webhook_endpoints').values(endpoint).execute()
    await cancel(pathOf(stake))
    const next = (await create({ externalReference })).body
    const { transaction } = await withTransaction()
    payBesides(given, stake, transaction.recentBlockhash)

    const ending = new AbortController()
    const following = service.service.solanaFollower.run(ending.signal)
    await vi.waitFor(
      async () => {
        const row = await store.db.selectFrom('solana_stakes').selectAll().where('id', '=', stake.stakeId).executeTakeFirstOrThrow()
        expect(row.cancelled_at).toBeNull()
      },
      { timeout: 60_000, interval: 100 },
    )
    ending.abort()
    await following
    const [line] = service
      .logs()
      .split('\n')
      .filter((one) => one.includes('that was cancelled was paid'))
      .map((one) => JSON.parse(one))
    expect(line).toMatchObject({ level: 'error', stakeId: stake.stakeId, reference: externalReference, heldBy: next.stakeId })
    const told = await store.db
      .selectFrom('webhook_deliveries')
      .select('status')
      .where('endpoint_id', '=', endpoint.id)
      .where('type', '=', 'solana-stake.cancellation')
      .orderBy('place')
      .execute()
    expect(told).toEqual([{ status: 'cancelled' }, { status: 'paid' }])
    const path = pathOf(stake)
    expect((await get(path)).body).toMatchObject({ protocol: { status: 'ACTIVATING' } })
    expect(await cancel(path)).toMatchObject(refused)
    await land(path, (await post(`${path}/deactivation-transactions`)).body)
    await land(path, (await post(`${path}/withdrawal-transactions`)).body)
    expect((await get(path)).body.protocol.status).toBe('WITHDRAWN')
  })

  describe('but made and emptied before anybody looked', () => {
    /** The payer makes it besides, and takes it out again; nobody asks the service meanwhile. */
    function makeAndEmpty(given: SolanaService, { stake, recentBlockhash }: { stake: Body; recentBlockhash: string }): void {
      payBesides(given, stake, recentBlockhash)
      const { payer, withdrawer, cluster } = given
      const { stakeAccount } = stake
      const frame = { feePayer: payer.address, recentBlockhash, computeUnitLimit: 100_000, computeUnitPriceMicroLamports: 0n }
      const amount = lamports(cluster.balance(stakeAccount))
      const [withdrawAuthority, destination] = [withdrawer.address, withdrawer.address]
      for (const message of [
        buildDeactivationMessage({ ...frame, stakeAccount, stakeAuthority: payer.address }),
        buildWithdrawalMessage({ ...frame, stakeAccount, withdrawAuthority, destination, amount }),
      ]) {
        const signatures = decodeMessage(message).signers.map(
          (one) => [one, (one === payer.address ? payer : withdrawer).sign(message)] as const,
        )
        cluster.ledger.submit(joinTransaction(message, new Map(signatures)), { kind: 'land' })
        cluster.settle()
      }
      expect(cluster.balance(stakeAccount)).toBe(0n)
    }
    async function gone() {
      const given = await start()
      const stake = (await given.create({ externalReference: given.externalReference })).body
      const { transaction } = await given.withTransaction()
      makeAndEmpty(given, { stake, recentBlockhash: transaction.recentBlockhash })
      return { ...given, stake, path: pathOf(stake) }
    }

    test('can not be cancelled: the history of its account shows that it was paid', async () => {
      const { cancel, get, path, create, externalReference, stake } = await gone()
      expect(await cancel(path)).toMatchObject({ ...refused, body: { detail: expect.stringContaining('was paid (it is WITHDRAWN)') } })
      expect((await get(path)).body).toMatchObject({ protocol: { status: 'WITHDRAWN' } })
      expect(await create({ externalReference })).toMatchObject({ status: 409, body: { existingId: stake.stakeId } })
    })
    test('is handed out no transaction that would pay it again', async () => {
      const { post, path, approve, stake } = await gone()
      const again = await post(`${path}/stake-transactions`, approve(stake.challenge))
      expect(again).toMatchObject({ ...refused, body: { detail: expect.stringContaining('WITHDRAWN') } })
    })
    test.each([{ silently: true }, { silently: false }])(
      'is cancelled where no node keeps a history ($silently silently), as nothing shows otherwise',
      async ({ silently }) => {
        const { cancel, cluster, path } = await gone()
        cluster.node.loseHistory({ silently })
        expect(await cancel(path)).toMatchObject({ status: 200 })
      },
    )
    test('after it was cancelled is found out all the same', async () => {
      const given = await start()
      const { create, cancel, withTransaction, service, store, get } = given
      const stake = (await create()).body
      expect((await cancel(pathOf(stake))).status).toBe(200)
      const { transaction } = await withTransaction()
      makeAndEmpty(given, { stake, recentBlockhash: transaction.recentBlockhash })
      const ending = new AbortController()
      const following = service.service.solanaFollower.run(ending.signal)
      await vi.waitFor(
        async () => {
          const row = await store.db.selectFrom('solana_stakes').selectAll().where('id', '=', stake.stakeId).executeTakeFirstOrThrow()
          expect(row).toMatchObject({ cancelled_at: null, seen_slot: expect.any(BigInt) })
        },
        { timeout: 60_000, interval: 100 },
      )
      ending.abort()
      await following
      expect((await get(pathOf(stake))).body.protocol.status).toBe('WITHDRAWN')
    })
    test('and only named by a stranger is still one that was never paid', async () => {
      const { create, cancel, payer, cluster, withTransaction } = await start()
      const stake = (await create()).body
      const { transaction } = await withTransaction()
      const dust = new Transaction({
        feePayer: new PublicKey(payer.address),
        blockhash: transaction.recentBlockhash,
        lastValidBlockHeight: 1,
      })
        .add(
          SystemProgram.transfer({
            fromPubkey: new PublicKey(payer.address),
            toPubkey: new PublicKey(stake.stakeAccount),
            lamports: 2_000_000,
          }),
        )
        .compileMessage()
        .serialize()
      cluster.ledger.submit(joinTransaction(dust, new Map([[payer.address, payer.sign(dust)]])), { kind: 'land' })
      cluster.settle()
      expect((await cancel(pathOf(stake))).status).toBe(200)
    })
  })

  test('is cancelled or has its transaction, whichever of two that ask at once comes first', async () => {
    const { create, cancel, approve, post, get } = await start()
    const stake = (await create()).body
    const path = pathOf(stake)
    const [cancelled, made] = await Promise.all([cancel(path), post(`${path}/stake-transactions`, approve(stake.challenge))])
    const now = (await get(path)).body
    expect([cancelled.status === 200, now.cancelledAt !== undefined]).toEqual([made.status !== 201, made.status !== 201])
    expect(now.transactions).toHaveLength(made.status === 201 ? 1 : 0)
  })
})
