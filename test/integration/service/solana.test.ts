import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { addressBytes, isOnCurve } from '../../../src/chains/solana/addresses.ts'
import { encodeBase58 } from '../../../src/chains/solana/base58.ts'
import { parseChallenge, verifyChallenge } from '../../../src/chains/solana/challenge.ts'
import { decodeInstruction } from '../../../src/chains/solana/instructions.ts'
import { decodeMessage } from '../../../src/chains/solana/message.ts'
import { stakeAccountAddress } from '../../../src/chains/solana/stake.ts'
import { verifyTransaction } from '../../../src/chains/solana/verify-transaction.ts'
import { lamports } from '../../../src/lib/amounts.ts'
import { createLogger } from '../../../src/lib/log.ts'
import { Secret } from '../../../src/lib/secret.ts'
import { apiKeysCreate } from '../../../src/service/commands.ts'
import { runService } from '../../../src/service/run.ts'
import { type DatabaseConfig, openStore, type Store } from '../../../src/service/store/database.ts'
import { startSolanaCluster } from '../../chains/solana/cluster.ts'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { wallet } from '../solana-chain/wallet.ts'
import { callService } from './harness.ts'
import { type Body, domain, type SolanaService, sol, stakes, startSolanaService } from './solana-harness.ts'

const limits = { maxComputeUnits: 100_000, maxPriorityFeeLamports: 10_000n }
const bytes = (transaction: Body) => new Uint8Array(Buffer.from(transaction.messageBase64, 'base64'))

/** One for all tests: each has an account of its own. */
let embedded: Store
let postgres: Postgres | undefined
let solana: SolanaService
const start = async (database: DatabaseConfig | Store = embedded, more = {}) => {
  solana = await startSolanaService(database, more)
  return solana
}
afterEach(() => solana?.close())
beforeAll(async () => {
  embedded = await openStore(await memoryDatabase())
})
afterAll(async () => {
  await embedded?.close()
  await postgres?.stop()
})

describe('a stake lives', () => {
  test.each([
    { database: 'PGlite', open: async () => embedded },
    {
      database: 'PostgreSQL',
      open: async (): Promise<DatabaseConfig> => {
        postgres ??= await startPostgres()
        return { kind: 'postgres', url: new Secret(await postgres.createDatabase('solana')), poolSize: 5 }
      },
    },
  ])('from its creation to its withdrawal, to the lamport, on $database', async ({ open }) => {
    const { create, approve, post, put, get, cluster, payer, withdrawer, validator, broadcast } = await start(await open())
    cluster.setRecentPriorityFee(2_500n)
    const before = { payer: cluster.balance(payer.address), withdrawer: cluster.balance(withdrawer.address) }

    const first = await create({}, 'lost')
    expect(first.status).toBe(201)
    // The record of its answer is lost, and the stake is not: whoever asks again gets the one that there is.
    await solana.service.store.db.deleteFrom('idempotency_keys').where('key', '=', 'lost').execute()
    expect(await create({ amountLamports: String(6n * sol) }, 'lost')).toMatchObject({
      status: 409,
      body: { code: 'idempotency-key-reused' },
    })
    const created = await create({}, 'lost')
    expect(created).toMatchObject({ status: 201, body: { stakeId: first.body.stakeId, challenge: first.body.challenge } })
    expect(created.headers.get('idempotency-replayed')).toBe('true')
    const { stakeId, stakeAccount, challenge } = created.body
    // What its validator keeps and is, by its vote account (version 4).
    expect(first.body.validator).toMatchObject({ commissionPercent: 5, blockRevenueCommissionPercent: 100, blsKey: true })
    const path = `${stakes}/${stakeId}`
    expect(stakeAccount).toBe(stakeAccountAddress(payer.address, stakeId))
    expect(created.body.protocol).toMatchObject({ status: 'CREATED', activeLamports: '0', inactiveLamports: '0', epoch: 600 })
    const expected = {
      domain,
      stakeId,
      challengeId: challenge.challengeId,
      network: 'solana-test',
      amount: lamports(5n * sol),
      stakeAccount,
    }
    const authorities = { stakeAuthority: payer.address, withdrawAuthority: withdrawer.address }
    expect(verifyChallenge({ text: challenge.message, expected: { ...expected, ...authorities }, now: new Date() })).toEqual([])

    const staking = (await post(`${path}/stake-transactions`, approve(challenge))).body
    expect(staking).toMatchObject({ kind: 'stake', status: 'awaiting_submission', requiredSigners: [payer.address] })
    expect(
      verifyTransaction(bytes(staking), {
        kind: 'stake',
        feePayer: payer.address,
        recentBlockhash: staking.recentBlockhash,
        limits,
        seed: stakeId,
        amount: lamports(5n * sol),
        ...authorities,
        voteAccount: validator.voteAccount,
        prefunded: false,
      }),
    ).toEqual([])

    const signature = broadcast(staking)
    const submission = `${path}/transactions/${staking.txId}/submission`
    expect(await put(submission, { signature })).toMatchObject({ status: 503, body: { code: 'transaction-not-visible' } })
    cluster.produce()
    expect(await put(submission, { signature })).toMatchObject({ status: 200, body: { status: 'submitted', signature } })
    cluster.settle()
    expect(await put(submission, { signature })).toMatchObject({ status: 200, body: { status: 'confirmed', signature } })
    expect((await get(path)).body).toMatchObject({
      protocol: { status: 'ACTIVATING', activationEpoch: 600, activeLamports: '0' },
      transactions: [{ status: 'confirmed' }],
    })
    cluster.nextEpoch()
    expect((await get(path)).body.protocol).toMatchObject({ status: 'ACTIVE', inactiveLamports: '2282880', epoch: 601 })

    const deactivation = (await post(`${path}/deactivation-transactions`)).body
    const stakeOf = { feePayer: payer.address, stakeAccount, limits }
    expect(verifyTransaction(bytes(deactivation), { kind: 'deactivation', ...stakeOf, stakeAuthority: payer.address })).toEqual([])
    await solana.land(path, deactivation)
    expect((await get(path)).body.protocol).toMatchObject({ status: 'DEACTIVATING', deactivationEpoch: 601 })
    expect((await post(`${path}/withdrawal-transactions`)).body.code).toBe('invalid-state')
    cluster.nextEpoch()
    expect((await get(path)).body.protocol).toMatchObject({ status: 'INACTIVE', activeLamports: '0', inactiveLamports: String(5n * sol) })

    const destination = wallet().address
    const withdrawal = (await post(`${path}/withdrawal-transactions`, { destination })).body
    // The withdraw authority's alone, as the interface has it.
    expect(withdrawal.requiredSigners).toEqual([withdrawer.address])
    expect(
      verifyTransaction(bytes(withdrawal), {
        kind: 'withdrawal',
        ...stakeOf,
        feePayer: withdrawer.address,
        withdrawAuthority: withdrawer.address,
        destination,
        amount: lamports(5n * sol),
      }),
    ).toEqual([])
    await solana.land(path, withdrawal)
    const end = (await get(path)).body
    expect(end.protocol).toMatchObject({ status: 'WITHDRAWN', activeLamports: '0', inactiveLamports: '0' })
    expect(end.transactions.map((each: Body) => `${each.kind} ${each.status}`)).toEqual([
      'stake confirmed',
      'deactivation confirmed',
      'withdrawal confirmed',
    ])
    expect(cluster.balance(destination)).toBe(5n * sol)
    // One signature and 40,000, 25,000 or 100,000 units at 2,500 millionths.
    expect(before.payer - cluster.balance(payer.address)).toBe(5n * sol + 5_100n + 5_063n)
    expect(before.withdrawer - cluster.balance(withdrawer.address)).toBe(5_250n)
  })

  test('and is told to be partly active while the cluster warms it up', async () => {
    const { cluster, get, withTransaction, land } = await start()
    cluster.setClusterStake({ effective: 100n * sol, activating: 1_000n * sol, deactivating: 0n })
    const { path, transaction } = await withTransaction()
    await land(path, transaction)
    cluster.nextEpoch()
    const { protocol } = (await get(path)).body
    expect(protocol.status).toBe('ACTIVATING')
    expect(BigInt(protocol.activeLamports)).toBeGreaterThan(0n)
    expect(BigInt(protocol.activeLamports) + BigInt(protocol.inactiveLamports)).toBe(5n * sol)
  })

  test('though a stranger has sent lamports to its address before', async () => {
    const { create, approve, post, cluster, get, land } = await start()
    const { stakeId, stakeAccount, challenge } = (await create()).body
    cluster.fund(stakeAccount, 1_000_000n)
    const path = `${stakes}/${stakeId}`
    expect((await get(path)).body.protocol.status).toBe('CREATED')
    await land(path, (await post(`${path}/stake-transactions`, approve(challenge))).body)
    expect((await get(path)).body.protocol.status).toBe('ACTIVATING')
    expect(cluster.balance(stakeAccount)).toBe(5n * sol + 1_000_000n)
  })

  test('and a fee payer that was named pays for the withdrawal too, and signs it', async () => {
    const { cluster, post, withTransaction, land, payer, withdrawer } = await start()
    const { path, transaction } = await withTransaction({ feePayer: payer.address })
    await land(path, transaction)
    await land(path, (await post(`${path}/deactivation-transactions`)).body)
    const before = cluster.balance(withdrawer.address)
    const withdrawal = (await post(`${path}/withdrawal-transactions`)).body
    expect(withdrawal.requiredSigners.toSorted()).toEqual([payer.address, withdrawer.address].toSorted())
    await land(path, withdrawal)
    expect(cluster.balance(withdrawer.address)).toBe(before + 5n * sol)
  })

  test('and one deactivated while it is activating can be withdrawn at once', async () => {
    const { cluster, get, post, withTransaction, land, withdrawer } = await start()
    const { path, transaction } = await withTransaction()
    await land(path, transaction)
    await land(path, (await post(`${path}/deactivation-transactions`, {})).body)
    expect((await get(path)).body.protocol.status).toBe('INACTIVE')
    await land(path, (await post(`${path}/withdrawal-transactions`)).body)
    expect(cluster.balance(withdrawer.address)).toBe(6n * sol - 5_000n)
  })
})

describe('a stake is not created', () => {
  test('against the rules of the cluster, and each is named', async () => {
    const { create, cluster, withdrawer, payer } = await start()
    cluster.setMinimumDelegation(sol)
    const missing = wallet().address
    const derived = Array.from({ length: 50 }, (_, index) => stakeAccountAddress(payer.address, String(index)))
    const offCurve = derived.find((address) => !isOnCurve(address))
    const delinquent = cluster.addValidator({ delinquent: true }).voteAccount
    const withoutKey = cluster.addValidator({ hasBlsKey: false }).voteAccount
    const keepsAll = cluster.addValidator({ commission: 100 }).voteAccount
    const cases = [
      { fields: { network: 'nowhere' }, code: 'unknown-network', pointer: '/body/network' },
      { fields: { amountLamports: '1002282879' }, code: 'amount-out-of-range', pointer: '/body/amountLamports' },
      { fields: { amountLamports: '9007199254740992' }, code: 'amount-out-of-range', pointer: '/body/amountLamports' },
      { fields: { voteAccount: missing }, code: 'vote-account-missing', pointer: '/body/voteAccount' },
      { fields: { voteAccount: withdrawer.address }, code: 'not-a-vote-account', pointer: '/body/voteAccount' },
      { fields: { voteAccount: delinquent }, code: 'vote-account-delinquent', pointer: '/body/voteAccount' },
      { fields: { voteAccount: withoutKey }, code: 'vote-account-without-bls-key', pointer: '/body/voteAccount' },
      { fields: { voteAccount: keepsAll }, code: 'vote-account-keeps-rewards', pointer: '/body/voteAccount' },
      { fields: { voteAccount: undefined }, code: 'vote-account-required', pointer: '/body/voteAccount' },
      { fields: { stakeAuthority: offCurve, feePayer: payer.address }, code: 'address-off-curve', pointer: '/body/stakeAuthority' },
      { fields: { withdrawAuthority: offCurve }, code: 'address-off-curve', pointer: '/body/withdrawAuthority' },
      { fields: { feePayer: offCurve }, code: 'address-off-curve', pointer: '/body/feePayer' },
      { fields: { withdrawAuthority: 'z'.repeat(44) }, code: 'invalid-address', pointer: '/body/withdrawAuthority' },
    ]
    for (const { fields, code, pointer } of cases) {
      const { status, body } = await create(fields)
      expect({ status, errors: body.errors?.map((each: Body) => [each.code, each.pointer]) }, code).toEqual({
        status: 422,
        errors: [[code, pointer]],
      })
    }
    expect((await create({ amountLamports: '1.5' })).status).toBe(400)
    expect((await create({ amountLamports: '1002282880' })).status).toBe(201)
  })

  test('twice: by the same key, by the same reference, or while the cluster is away', async () => {
    const { create, cluster, get, service } = await start(embedded, { defaultVoteAccount: true })
    const first = await create({ externalReference: 'SolanaStake/a/b' }, 'key-1')
    expect(first.body.voteAccount).toBe(solana.validator.voteAccount)
    expect(await create({ externalReference: 'SolanaStake/a/b' })).toMatchObject({
      status: 409,
      body: { code: 'reference-exists', existingId: first.body.stakeId },
    })
    expect((await create({ amountLamports: String(6n * sol) }, 'key-1')).body.code).toBe('idempotency-key-reused')

    await cluster.close()
    const replayed = await create({ externalReference: 'SolanaStake/a/b' }, 'key-1')
    expect(replayed).toMatchObject({ status: 201, text: first.text })
    expect(replayed.headers.get('idempotency-replayed')).toBe('true')
    for (const answer of [await create({}, 'key-2'), await get(`${stakes}/${first.body.stakeId}`), await get(stakes)])
      expect(answer).toMatchObject({ status: 503, body: { code: 'chain-unavailable' } })
    expect((await service.call('GET', '/v1/networks', { key: solana.key })).body.networks).toContainEqual({
      network: 'solana-test',
      chain: 'solana',
      genesisHash: cluster.genesisHash,
    })
  })
})

describe('a challenge', () => {
  test('is good once, for five minutes, until a newer one is made, and only signed by the withdraw authority as an off-chain message', async () => {
    const { create, approve, post, put, advance, payer, withdrawer } = await start()
    const { stakeId, challenge } = (await create()).body
    const path = `${stakes}/${stakeId}`
    const use = (signed: object) => post(`${path}/stake-transactions`, signed)
    expect(Date.parse(challenge.expiresAt) - Date.parse(challenge.issuedAt)).toBe(300_000)

    const plain = encodeBase58(withdrawer.sign(Buffer.from(challenge.message)))
    const other = (await create()).body.challenge
    for (const signature of [plain, approve(challenge, payer).signature, approve(other).signature, '2'.repeat(64)])
      expect(await use({ challengeId: challenge.challengeId, signature })).toMatchObject({
        status: 422,
        body: { errors: [{ code: 'wrong-signature', pointer: '/body/signature' }] },
      })

    const renewed = (await put(`${path}/stake-transaction-challenge`)).body
    expect(renewed.challengeId).not.toBe(challenge.challengeId)
    for (const gone of [challenge, other])
      expect(await use(approve(gone))).toMatchObject({ status: 410, body: { code: 'challenge-expired' } })
    advance(300_001)
    expect((await use(approve(renewed))).status).toBe(410)

    const last = (await put(`${path}/stake-transaction-challenge`, {})).body
    expect((await use(approve(last))).status).toBe(201)
    expect(await use(approve(last))).toMatchObject({ status: 409, body: { code: 'invalid-state' } })
    expect(await put(`${path}/stake-transaction-challenge`)).toMatchObject({ status: 409, body: { code: 'invalid-state' } })
  })

  test('that two requests use at the same time makes one transaction', async () => {
    const { create, approve, post, get } = await start()
    const { stakeId, challenge } = (await create()).body
    const path = `${stakes}/${stakeId}`
    const answers = await Promise.all([1, 2, 3].map(() => post(`${path}/stake-transactions`, approve(challenge))))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409])
    expect((await get(path)).body.transactions).toHaveLength(1)
  })
})

describe('a transaction', () => {
  test('is refreshed under its id only when it has expired for certain', async () => {
    const { withTransaction, post, get, put, cluster, broadcast } = await start()
    const { path, transaction } = await withTransaction()
    const refresh = () => post(`${path}/transactions/${transaction.txId}/refresh`)
    expect(await refresh()).toMatchObject({ status: 409, body: { code: 'invalid-state' } })
    cluster.produce(152)
    // Beyond its last valid height, but not at a finalized one.
    expect(cluster.ledger.head().height).toBeGreaterThan(transaction.lastValidBlockHeight)
    expect((await refresh()).status).toBe(409)
    cluster.settle()
    expect((await get(path)).body.transactions).toMatchObject([{ status: 'expired' }])

    const late = broadcast(transaction)
    expect((await put(`${path}/transactions/${transaction.txId}/submission`, { signature: late })).body.code).toBe('invalid-state')
    const refreshed = await refresh()
    expect(refreshed).toMatchObject({ status: 200, body: { txId: transaction.txId, status: 'awaiting_submission' } })
    expect(refreshed.body.recentBlockhash).not.toBe(transaction.recentBlockhash)
    expect((await refresh()).status).toBe(409)
    // The old message's signature is not the new one's.
    expect((await put(`${path}/transactions/${transaction.txId}/submission`, { signature: late })).status).toBe(422)

    expect(await solana.land(path, refreshed.body)).toMatchObject({ status: 'confirmed' })
    cluster.produce(160)
    expect((await refresh()).status).toBe(409)
  })

  test('is not refreshed for a validator that has stopped meanwhile', async () => {
    const { withTransaction, post, cluster } = await start()
    const { path, transaction } = await withTransaction()
    cluster.produce(152)
    cluster.settle()
    const refresh = () => post(`${path}/transactions/${transaction.txId}/refresh`)
    solana.validator.delinquent = true
    try {
      expect(await refresh()).toMatchObject({ status: 422, body: { errors: [{ code: 'vote-account-delinquent' }] } })
    } finally {
      solana.validator.delinquent = false
    }
    expect((await refresh()).status).toBe(200)
  })

  test('that landed and was not reported is not made anew, whatever its kind, and can be reported still', async () => {
    const { withTransaction, post, put, cluster, broadcast } = await start()
    const { path, transaction: staking } = await withTransaction()
    const landUnreported = async (transaction: Body) => {
      const signature = broadcast(transaction)
      cluster.produce(160)
      const at = `${path}/transactions/${transaction.txId}`
      expect(await post(`${at}/refresh`)).toMatchObject({ status: 409, body: { code: 'invalid-state' } })
      expect(await put(`${at}/submission`, { signature })).toMatchObject({ status: 200, body: { status: 'confirmed', signature } })
    }
    await landUnreported(staking)
    await landUnreported((await post(`${path}/deactivation-transactions`)).body)
    cluster.nextEpoch()
    await landUnreported((await post(`${path}/withdrawal-transactions`)).body)
  })

  test("takes no other signature than its fee payer's of its own message", async () => {
    const { withTransaction, put, payer, withdrawer, cluster, broadcast } = await start()
    const one = await withTransaction()
    const two = await withTransaction()
    const path = `${one.path}/transactions/${one.transaction.txId}/submission`
    const wrong = [
      broadcast(two.transaction),
      encodeBase58(withdrawer.sign(bytes(one.transaction))),
      encodeBase58(payer.sign(Buffer.from('x'))),
    ]
    cluster.settle()
    for (const signature of wrong)
      expect(await put(path, { signature })).toMatchObject({ status: 422, body: { errors: [{ code: 'wrong-signature' }] } })
    expect((await put(`${one.path}/transactions/${two.transaction.txId}/submission`, { signature: wrong[0] })).status).toBe(404)
  })

  test('that fails on the chain says so, moves nothing, and may be followed by another under a new challenge', async () => {
    const { withTransaction, post, put, get, cluster, approve, land } = await start()
    const { path, transaction, stake } = await withTransaction({ amountLamports: String(2_000n * sol) })
    expect(await land(path, transaction)).toMatchObject({ status: 'failed', failureReason: expect.stringContaining('Custom 1') })
    expect((await get(path)).body).toMatchObject({ protocol: { status: 'CREATED' }, transactions: [{ status: 'failed' }] })
    expect((await post(`${path}/transactions/${transaction.txId}/refresh`)).status).toBe(409)
    cluster.fund(solana.payer.address, 2_000n * sol)
    const challenge = (await put(`${path}/stake-transaction-challenge`)).body
    const again = (await post(`${path}/stake-transactions`, approve(challenge))).body
    expect(await land(path, again)).toMatchObject({ status: 'confirmed' })
    expect(cluster.balance(stake.stakeAccount)).toBe(2_000n * sol)
  })

  test('is made only in the state that it is for, and one at a time', async () => {
    const { withTransaction, post, cluster, land, validator } = await start()
    const { path, transaction, stake } = await withTransaction()
    const refused = { status: 409, body: { code: 'invalid-state' } }
    for (const kind of ['deactivation', 'withdrawal']) expect(await post(`${path}/${kind}-transactions`)).toMatchObject(refused)
    await land(path, transaction)
    cluster.nextEpoch()
    expect(await post(`${path}/withdrawal-transactions`)).toMatchObject(refused)
    const live = await post(`${path}/deactivation-transactions`, {}, 'one')
    expect(live.status).toBe(201)
    expect(await post(`${path}/deactivation-transactions`)).toMatchObject(refused)
    expect((await post(`${path}/deactivation-transactions`, {}, 'one')).text).toBe(live.text)
    await land(path, live.body)
    expect(await post(`${path}/deactivation-transactions`)).toMatchObject(refused)
    cluster.nextEpoch()
    const mint = wallet().address
    const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
    cluster.ledger.plant(mint, { owner: tokenProgram, lamports: 1_461_600n, data: new Uint8Array(82), executable: false })
    const bad = [
      { destination: stake.stakeAccount, code: 'destination-is-stake' },
      { destination: 'z'.repeat(44), code: 'invalid-address' },
      { destination: '1nc1nerator11111111111111111111111111111111', code: 'destination-burns' },
      { destination: '1'.repeat(32), code: 'destination-without-key' },
      { destination: validator.voteAccount, code: 'destination-of-program' },
      { destination: mint, code: 'destination-of-program' },
      { destination: 'SysvarC1ock11111111111111111111111111111111', code: 'destination-is-sysvar' },
      { destination: 'Stake11111111111111111111111111111111111111', code: 'destination-is-program' },
    ]
    for (const { destination, code } of bad)
      expect(await post(`${path}/withdrawal-transactions`, { destination })).toMatchObject({ status: 422, body: { errors: [{ code }] } })
    const nobody = await post(`${path}/withdrawal-transactions`, { feePayer: '1'.repeat(32) })
    expect(nobody).toMatchObject({ status: 422, body: { errors: [{ code: 'address-off-curve', pointer: '/body/feePayer' }] } })
    // An owner who means it says so.
    const meant = await post(`${path}/withdrawal-transactions`, { destination: mint, destinationException: true })
    expect(meant.status).toBe(201)
  })

  test('is paid by whom the client names, made anew as well: one key is enough where the other is lost', async () => {
    const { withTransaction, post, cluster, land, withdrawer, payer } = await start()
    const { path, transaction } = await withTransaction({ feePayer: payer.address })
    await land(path, transaction)
    cluster.nextEpoch()
    await land(path, (await post(`${path}/deactivation-transactions`)).body)
    cluster.nextEpoch()
    const withdrawal = (await post(`${path}/withdrawal-transactions`, { feePayer: withdrawer.address })).body
    expect(withdrawal).toMatchObject({ feePayer: withdrawer.address, requiredSigners: [withdrawer.address] })
    cluster.produce(200)
    const again = (await post(`${path}/transactions/${withdrawal.txId}/refresh`)).body
    expect(again).toMatchObject({ feePayer: withdrawer.address, requiredSigners: [withdrawer.address], status: 'awaiting_submission' })
    cluster.produce(200)
    // That of the stake, where the client names none.
    expect((await post(`${path}/withdrawal-transactions`)).body).toMatchObject({ requiredSigners: [payer.address, withdrawer.address] })
  })

  test('is not handed out for an account whose authority has changed, or that is locked', async () => {
    const { withTransaction, post, cluster, land, withdrawer, payer } = await start()
    const { path, transaction, stake } = await withTransaction()
    await land(path, transaction)
    cluster.nextEpoch()
    const stranger = wallet().address
    const accountOf = (address: string) => {
      const found = cluster.ledger.account(address, cluster.ledger.head().height)
      if (found === undefined) throw new Error('there is no stake account')
      return found
    }
    const account = accountOf(stake.stakeAccount)
    /** StakeStateV2: tag (4), rent reserve (8), staker (32), withdrawer (32), lockup: timestamp (8), epoch (8), custodian (32). */
    const change = (write: (data: Buffer) => void) => {
      const data = Buffer.from(account.data)
      write(data)
      cluster.ledger.plant(stake.stakeAccount, { ...account, data: new Uint8Array(data) })
      cluster.settle()
    }
    change((data) => data.set(addressBytes(stranger), 12))
    const deactivation = await post(`${path}/deactivation-transactions`)
    expect(deactivation).toMatchObject({ status: 409, body: { code: 'invalid-state', detail: expect.stringContaining(stranger) } })
    change(() => undefined)
    await land(path, (await post(`${path}/deactivation-transactions`)).body)
    cluster.nextEpoch()
    const cooled = accountOf(stake.stakeAccount)
    const changeCooled = (write: (data: Buffer) => void) => {
      const data = Buffer.from(cooled.data)
      write(data)
      cluster.ledger.plant(stake.stakeAccount, { ...cooled, data: new Uint8Array(data) })
      cluster.settle()
    }
    changeCooled((data) => data.set(addressBytes(stranger), 44))
    expect(await post(`${path}/withdrawal-transactions`)).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining('withdraw authority') },
    })
    changeCooled((data) => {
      data.writeBigUInt64LE(9_999n, 84)
      data.set(addressBytes(stranger), 92)
    })
    const locked = await post(`${path}/withdrawal-transactions`)
    expect(locked).toMatchObject({
      status: 409,
      body: { code: 'invalid-state', detail: expect.stringMatching(/locked until the end of epoch 9998: .*custodian/) },
    })
    expect(locked.body.detail).toContain(stranger)
    changeCooled(() => undefined)
    expect((await post(`${path}/withdrawal-transactions`)).status).toBe(201)
    expect([payer.address, withdrawer.address]).not.toContain(stranger)
  })

  test('offers no more than its client allows, and twice as much at each attempt', async () => {
    const { create, approve, post, cluster } = await start()
    const price = (transaction: Body): bigint => {
      const found = decodeMessage(bytes(transaction))
        .instructions.map(decodeInstruction)
        .find(({ kind }) => kind === 'compute-unit-price')
      return found?.kind === 'compute-unit-price' ? found.microLamports : 0n
    }
    cluster.setRecentPriorityFee(50_000_000n)
    const created = (await create()).body
    const path = `${stakes}/${created.stakeId}`
    const body = { ...approve(created.challenge), maxPriorityFeeLamports: '100' }
    const made = (await post(`${path}/stake-transactions`, body)).body
    expect((price(made) * 40_000n) / 1_000_000n).toBe(100n)

    cluster.setRecentPriorityFee(0n)
    const prices: bigint[] = []
    for (let attempt = 2; attempt <= 4; attempt += 1) {
      cluster.produce(400)
      const again = await post(`${path}/transactions/${made.txId}/refresh`, {})
      expect(again.status, again.text).toBe(200)
      prices.push(price(again.body))
    }
    expect(prices).toEqual([20_000n, 40_000n, 80_000n])
    cluster.produce(400)
    const capped = (await post(`${path}/transactions/${made.txId}/refresh`, { maxPriorityFeeLamports: '2' })).body
    expect(price(capped)).toBe(50n)
  })

  test('offers no more than the policy allows, however dear the cluster is', async () => {
    const { withTransaction, cluster, payer, validator, withdrawer } = await start()
    cluster.setRecentPriorityFee(50_000_000n)
    const { transaction, stake } = await withTransaction()
    const expected = {
      kind: 'stake',
      feePayer: payer.address,
      seed: stake.stakeId,
      amount: lamports(5n * sol),
      stakeAuthority: payer.address,
      withdrawAuthority: withdrawer.address,
      voteAccount: validator.voteAccount,
      prefunded: false,
    } as const
    expect(verifyTransaction(bytes(transaction), { ...expected, limits })).toEqual([])
    const tighter = { ...limits, maxPriorityFeeLamports: 9_999n }
    expect(verifyTransaction(bytes(transaction), { ...expected, limits: tighter })).toMatchObject([{ code: 'priority-fee-too-high' }])
  })
})

test('an account sees its own stakes only, page by page', async () => {
  const { create, get, service, post } = await start()
  const ids: string[] = []
  for (const externalReference of ['a', 'b', 'c']) ids.unshift((await create({ externalReference })).body.stakeId)
  const first = (await get(`${stakes}?limit=2`)).body
  const second = (await get(`${stakes}?limit=2&cursor=${first.nextCursor}`)).body
  expect([...first.items, ...second.items].map(({ stakeId }) => stakeId)).toEqual(ids)
  expect(second.nextCursor).toBeUndefined()
  expect((await get(`${stakes}?externalReference=b`)).body.items).toMatchObject([{ stakeId: ids[1] }])
  const stranger = await service.key({ account: 'other' })
  expect((await service.call('GET', stakes, { key: stranger })).body.items).toEqual([])
  expect((await service.call('GET', `${stakes}/${ids[0]}`, { key: stranger })).status).toBe(404)
  const challenge = await service.call('PUT', `${stakes}/${ids[0]}/stake-transaction-challenge`, { key: stranger })
  expect(challenge.status).toBe(404)
  expect((await post(`${stakes}/${'0'.repeat(32)}/deactivation-transactions`)).status).toBe(404)
})

test('a node that lags behind what was shown is not believed: a stake is not withdrawn by it', async () => {
  const { withTransaction, land, cluster, get } = await start()
  const { path, transaction } = await withTransaction()
  await land(path, transaction)
  cluster.produce(5)
  expect((await get(path)).body.protocol.status).toBe('ACTIVATING')
  cluster.node.lag(20)
  expect(await get(path)).toMatchObject({ status: 503, body: { code: 'chain-unavailable' } })
  cluster.node.lag(0)
  expect((await get(path)).body.protocol.status).toBe('ACTIVATING')
})

test('a history that does not reach back says nothing of a stake transaction that was seen: it is not made anew', async () => {
  const { withTransaction, broadcast, put, post, cluster } = await start()
  const { path, transaction } = await withTransaction()
  const signature = broadcast(transaction)
  const reported = await put(`${path}/transactions/${transaction.txId}/submission`, { signature })
  expect(reported.status).toBe(503)
  cluster.produce(160)
  cluster.node.loseHistory()
  cluster.settle()
  expect(await post(`${path}/transactions/${transaction.txId}/refresh`)).toMatchObject({ status: 503, body: { code: 'chain-unavailable' } })
})

test('the program serves a cluster from its configuration, and challenges name the host that the client asked for', async () => {
  const cluster = await startSolanaCluster()
  const folder = mkdtempSync(join(tmpdir(), 'solana-service-'))
  const config = join(folder, 'service.yaml')
  const validator = cluster.addValidator()
  const network = { name: 'local', chain: 'Solana', rpcUrls: [cluster.url], genesisHash: cluster.genesisHash }
  writeFileSync(join(folder, 'seed'), randomBytes(32).toString('hex'), { mode: 0o600 })
  writeFileSync(
    config,
    JSON.stringify({
      listen: { host: '127.0.0.1', port: 0 },
      database: { dataDir: join(folder, 'data') },
      seedFile: join(folder, 'seed'),
      networks: [network],
      solana: { defaultVoteAccounts: { local: validator.voteAccount } },
    }),
  )
  const ending = new AbortController()
  try {
    const key = (await apiKeysCreate({ config, account: 'acme' })).key.reveal()
    const listening = Promise.withResolvers<string>()
    const log = createLogger({ program: 'service', level: 'warn', destination: { write: () => undefined } })
    const running = runService({ config, version: '0.0.0', log, onListening: listening.resolve }, ending.signal)
    const url = await Promise.race([listening.promise, running.then(() => 'it ended')])
    const created = await callService(url, 'POST', stakes, {
      key,
      idempotencyKey: 'one',
      body: {
        network: 'local',
        amountLamports: String(sol),
        stakeAuthority: wallet().address,
        withdrawAuthority: wallet().address,
      },
    })
    expect(created).toMatchObject({ status: 201, body: { voteAccount: validator.voteAccount } })
    expect(parseChallenge(created.body.challenge.message)?.domain).toBe(new URL(url).host)
    ending.abort()
    await running
  } finally {
    ending.abort()
    rmSync(folder, { recursive: true, force: true })
    await cluster.close()
  }
})
