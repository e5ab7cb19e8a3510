import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OperationId, type Route, routes } from '../../../src/contract/routes.ts'
import { Secret } from '../../../src/lib/secret.ts'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
import { signalTree } from '../../cluster/signal-tree.ts'
import { callService, type Response, withdrawalAddress } from './harness.ts'
import { type SolanaService, startSolanaService } from './solana-harness.ts'
import { countStalls } from './stalls.ts'

/** What any request is told while PostgreSQL says nothing. (Requests that are half way then: `outage.test.ts`.) */
let postgres: Postgres
let solana: SolanaService
beforeAll(async () => {
  postgres = await startPostgres()
  const database = { kind: 'postgres', url: new Secret(await postgres.createDatabase('frozen')), poolSize: 5 } as const
  solana = await startSolanaService(database, { defaultVoteAccount: true })
})
afterAll(async () => {
  await solana?.close()
  await postgres?.stop()
})

const name = () => randomBytes(8).toString('hex')
const stalls = countStalls()
const transactionHash = `0x${'a'.repeat(64)}`
const signature = '3'.repeat(88)
/** These are answered from memory to a key that is remembered. */
const needNoDatabase: ReadonlySet<OperationId> = new Set(['listNetworks'])

test('every operation answers 503 within five seconds while the database is frozen, and is served again afterwards', async () => {
  const { service } = solana
  const { key } = solana
  const { stakeId, validator } = (await service.stake(key)).body
  const { path, transaction } = await solana.withTransaction()
  const { endpointId } = (await solana.post('/v1/webhook-endpoints', { url: 'https://hooks.example/' })).body
  const bodies: Partial<Record<OperationId, object>> = {
    createEthereumStake: { network: 'devnet', amountEth: 32, withdrawalAddress },
    submitEthereumStake: { transactionHash },
    createExitRequest: {},
    submitExitRequest: { transactionHash },
    createWithdrawalRequest: { amountGwei: '1' },
    submitWithdrawalRequest: { transactionHash },
    createSolanaStake: {
      ...{ network: 'solana-test', amountLamports: '5000000000' },
      ...{ stakeAuthority: solana.payer.address, withdrawAuthority: solana.withdrawer.address },
    },
    createStakeTransaction: { challengeId: '0'.repeat(32), signature },
    submitSolanaTransaction: { signature },
    createWebhookEndpoint: { url: 'https://hooks.example/2' },
  }
  const operations = Object.entries<Route>(routes) as [OperationId, Route][]
  const ids: Readonly<Record<string, string>> = { stakeId, pubkey: validator.pubkey, requestId: stakeId, endpointId }
  const solanaStakeId = path.split('/').at(-1) ?? ''
  const pathOf = (route: Route): string => {
    const own = route.path.includes('/solana/') ? { ...ids, stakeId: solanaStakeId, txId: transaction.txId } : ids
    return route.path.replaceAll(/\{([a-zA-Z]+)\}/g, (_, param: string) => own[param as keyof typeof own] ?? '')
  }
  const ask = async ([operation, route]: [OperationId, Route], as: string): Promise<{ answer: Response; ms: number }> => {
    const begun = performance.now() - stalls()
    const body = bodies[operation]
    const given = { key: as, ...(route.idempotencyKey === 'required' ? { idempotencyKey: name() } : {}), ...(body && { body }) }
    return { answer: await callService(service.url, route.method, pathOf(route), given), ms: performance.now() - stalls() - begun }
  }
  // Each operation with a key that the service remembers, and with one that it must look up.
  const unknown = await Promise.all(operations.map(() => service.key()))
  expect((await service.call('GET', '/v1/networks', { key })).status).toBe(200)
  signalTree(postgres.pid(), 'SIGSTOP')
  try {
    const asked = operations.flatMap((operation, count) =>
      [key, unknown[count] ?? ''].map(async (as) => ({ operation: operation[0], isKnown: as === key, ...(await ask(operation, as)) })),
    )
    const slow: object[] = []
    for (const { operation, isKnown, answer, ms } of await Promise.all(asked)) {
      const { status, body } = answer
      const isRight =
        (status === 503 && body.code === 'service-unavailable') || (isKnown && needNoDatabase.has(operation) && status === 200)
      if (!isRight || ms > 5_500) slow.push({ operation, isKnown, status, body, ms })
    }
    expect(slow).toEqual([])
  } finally {
    signalTree(postgres.pid(), 'SIGCONT')
  }
  await expect.poll(async () => (await fetch(`${service.url}/readyz`)).status, { timeout: 30_000 }).toBe(200)
  for (const operation of operations) {
    const { answer } = await ask(operation, key)
    expect([operation[0], answer.status, answer.body]).not.toMatchObject([operation[0], 500, {}])
    expect([operation[0], answer.body.code]).not.toEqual([operation[0], 'service-unavailable'])
  }
  expect(service.logs()).not.toContain('a request failed for a reason that was not expected')
})
